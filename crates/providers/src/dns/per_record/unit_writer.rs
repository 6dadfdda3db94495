//! Makes the calls of one unit after the other, and takes back those of a unit that is rejected half way.

use std::collections::BTreeMap;

use netstead_model::{Name, ProviderError, Unit, UnitOutcome, WriteRequest};

use super::{
    RecordApi,
    record::{Listing, Record, RecordError},
    unit_calls::{RecordCall, unit_calls},
};
use crate::dns::preconditions::ServerRecords;

pub(super) struct UnitWriter<'a, T> {
    api: &'a T,
    zone: &'a Name,
    request: &'a WriteRequest,
    /// Records on the server by name, with those written since.
    records: BTreeMap<Name, Vec<Record>>,
    found: ServerRecords,
}

/// How a call ended.
enum Ended {
    Done(RecordCall),
    Rejected(String),
    Gone,
    Failed(ProviderError),
}

impl<'a, T: RecordApi> UnitWriter<'a, T> {
    pub(super) fn new(api: &'a T, zone: &'a Name, request: &'a WriteRequest, listing: Listing) -> Self {
        let found = listing.found();
        let mut records: BTreeMap<Name, Vec<Record>> = BTreeMap::new();
        for record in listing.records {
            records.entry(record.name.clone()).or_default().push(record);
        }
        Self { api, zone, request, records, found }
    }

    /// Sets on the server now.
    pub(super) fn found(&self) -> &ServerRecords {
        &self.found
    }

    /// Makes the calls of a unit. An error besides the outcome is one of the server, not of the unit.
    pub(super) async fn write(&mut self, unit: &Unit) -> (UnitOutcome, Option<ProviderError>) {
        let names = unit.names();
        let records: Vec<Record> =
            names.iter().filter_map(|name| self.records.get(*name)).flatten().cloned().collect();
        let calls = unit_calls(unit, &records, self.api.capabilities().order);
        let mut done: Vec<RecordCall> = Vec::new();
        for call in calls {
            match self.call(call, !done.is_empty()).await {
                Ended::Done(reverse) => done.push(reverse),
                Ended::Rejected(reason) => {
                    return match self.take_back(done).await {
                        Ok(()) => (UnitOutcome::Rejected { reason }, None),
                        Err(error) => (UnitOutcome::Unknown, Some(error)),
                    };
                }
                Ended::Gone => {
                    return match self.take_back(done).await {
                        Ok(()) => (UnitOutcome::Changed, None),
                        Err(error) => (UnitOutcome::Unknown, Some(error)),
                    };
                }
                Ended::Failed(error) => {
                    let half = !done.is_empty() || error.may_have_acted();
                    let outcome = if half { UnitOutcome::Unknown } else { UnitOutcome::NotTried };
                    return (outcome, Some(error));
                }
            }
        }
        (UnitOutcome::Applied, None)
    }

    /// Undoes calls, the last one first. Half a unit would be worse than a late one: the time of the pass does not count here.
    async fn take_back(&mut self, done: Vec<RecordCall>) -> Result<(), ProviderError> {
        for call in done.into_iter().rev() {
            match self.call(call, true).await {
                Ended::Done(_) | Ended::Gone => {}
                Ended::Rejected(reason) => {
                    return Err(ProviderError::Unknown { server: self.api.server(), reason });
                }
                Ended::Failed(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One call, and the call that undoes it. In the middle of a unit the time of the pass does not count.
    async fn call(&mut self, call: RecordCall, in_the_middle: bool) -> Ended {
        match self.request.guard.permit().await {
            Ok(()) => {}
            Err(ProviderError::OutOfTime { .. }) if in_the_middle => {}
            Err(error) => return Ended::Failed(error),
        }
        let (api, zone) = (self.api, self.zone);
        let ended = match &call {
            RecordCall::Create(new) => api.create(zone, new).await.map(RecordCall::Delete),
            RecordCall::Update(old, new) => {
                api.update(zone, old, new).await.map(|made| RecordCall::Update(made, old.again()))
            }
            RecordCall::Delete(old) => match api.delete(zone, old).await {
                // Gone is what was wanted.
                Ok(()) | Err(RecordError::Gone) => Ok(RecordCall::Create(old.again())),
                Err(error) => Err(error),
            },
        };
        match ended {
            Ok(reverse) => {
                self.note(&call, &reverse);
                Ended::Done(reverse)
            }
            Err(RecordError::Rejected { reason }) => Ended::Rejected(reason),
            Err(RecordError::Gone) => Ended::Gone,
            Err(RecordError::Failed(error)) => Ended::Failed(error),
        }
    }

    /// Brings what is known in line with a call that was made. `reverse` undoes it, and so has the record that came.
    fn note(&mut self, call: &RecordCall, reverse: &RecordCall) {
        if let RecordCall::Update(old, _) | RecordCall::Delete(old) = call {
            self.records.entry(old.name.clone()).or_default().retain(|record| record != old);
            self.found.sets.remove(&(old.name.clone(), old.data.kind()));
            self.find(&old.name);
        }
        if let RecordCall::Delete(made) | RecordCall::Update(made, _) = reverse {
            self.records.entry(made.name.clone()).or_default().push(made.clone());
            self.find(&made.name);
        }
    }

    /// Makes the sets of one name anew.
    fn find(&mut self, name: &Name) {
        let records = self.records.get(name).cloned().unwrap_or_default();
        self.found.sets.extend(Listing { records, ..Listing::default() }.found().sets);
    }
}
