//! Turns units into calls, and finds out what became of them.

use std::collections::{HashMap, VecDeque};

use netstead_model::{
    DnsProvider as _, Name, ProviderError, RecordSet, RecordType, SetChange, Unit, UnitOutcome, WriteReply,
    WriteRequest,
};
use netstead_wire::external_dns::{Changes, Endpoint};

use super::{
    DomainFilter, ExternalDns,
    listed::{Listed, by_key},
};
use crate::dns::{
    per_record::judge,
    preconditions::{ServerRecords, halves, wanted},
    tidy,
};

/// Units in one request: a provider has about ten seconds for it.
const MOST_CHANGES: usize = 200;
/// So many units refused, each by itself and none taken: then it is not the units that are wrong.
const MOST_REFUSED: usize = 3;

/// A unit as the provider would hold it.
struct Adjusted {
    unit: Unit,
    /// The endpoints to send, with what the provider added.
    endpoints: HashMap<(Name, RecordType), Endpoint>,
    /// The sets that were asked for, and what the provider makes of each.
    made: Vec<(RecordSet, RecordSet)>,
    /// Why it cannot be sent.
    refused: Option<String>,
}

/// A write that is under way.
struct Progress {
    outcomes: Vec<Option<UnitOutcome>>,
    listed: Listed,
    found: ServerRecords,
    /// Units that were refused by themselves, and whether any was taken.
    refused: Vec<usize>,
    taken: bool,
}

impl ExternalDns {
    pub(super) async fn apply(
        &self,
        zone: &Name,
        request: &WriteRequest,
    ) -> Result<WriteReply, ProviderError> {
        let filter = self.client.filter().await?;
        if !filter.reaches(zone) {
            return Err(self.missing(zone));
        }
        let listed = self.client.records().await?;
        let found = listed.listing().found();
        self.adjustments().learn(&found);
        let units = self.adjust_units(&request.units).await?;
        let can = self.capabilities();
        let judged = |adjusted: &Adjusted| {
            let reason = adjusted.refused.clone().or_else(|| outside(&filter, &adjusted.unit));
            match reason {
                Some(reason) => Some(UnitOutcome::Rejected { reason }),
                None => judge(&can, zone, &adjusted.unit, &found),
            }
        };
        let outcomes: Vec<Option<UnitOutcome>> = units.iter().map(judged).collect();
        let open: Vec<usize> =
            outcomes.iter().enumerate().filter(|(_, outcome)| outcome.is_none()).map(|(at, _)| at).collect();
        let mut progress = Progress { outcomes, listed, found, refused: Vec::new(), taken: false };
        let done: Vec<usize> = (0..units.len()).filter(|at| progress.is_applied(*at)).collect();
        self.note(&units, &done, false);
        let mut waiting: VecDeque<Vec<usize>> = open.chunks(MOST_CHANGES).map(<[_]>::to_vec).collect();
        while let Some(batch) = waiting.pop_front() {
            let sent = match request.guard.permit().await {
                Ok(()) => self.client.change(&changes(&units, &batch, &progress.listed)).await,
                Err(error) => Err(error),
            };
            let reason = match sent {
                Ok(Ok(())) => {
                    progress.settle(&batch, &UnitOutcome::Applied);
                    self.note(&units, &batch, true);
                    progress.taken = true;
                    continue;
                }
                Ok(Err(reason)) => reason,
                Err(error) => return Ok(progress.ended(&batch, error)),
            };
            // Many providers carry out a part before they refuse.
            let listed = match self.client.records().await {
                Ok(listed) => listed,
                Err(error) => {
                    progress.settle(&batch, &UnitOutcome::Unknown);
                    return Ok(progress.ended(&[], error));
                }
            };
            let left = progress.read_again(listed, &units, &batch);
            let taken: Vec<usize> = batch.iter().filter(|at| progress.is_applied(**at)).copied().collect();
            self.note(&units, &taken, true);
            match left.as_slice() {
                [] => {}
                [one] if batch.len() == 1 => {
                    progress.settle(&[*one], &UnitOutcome::Rejected { reason: reason.clone() });
                    progress.refused.push(*one);
                    if !progress.taken && progress.refused.len() >= MOST_REFUSED && !waiting.is_empty() {
                        let refused = std::mem::take(&mut progress.refused);
                        progress.settle(&refused, &UnitOutcome::NotTried);
                        let error = ProviderError::Unreachable { server: self.server(), reason };
                        return Ok(progress.ended(&[], error));
                    }
                }
                left => {
                    let (first, second) = halves(left);
                    waiting.push_front(second.to_vec());
                    waiting.push_front(first.to_vec());
                    waiting.retain(|part| !part.is_empty());
                }
            }
        }
        Ok(progress.ended(&[], None))
    }

    /// Asks the provider what it would make of the sets that are wanted.
    async fn adjust_units(&self, units: &[Unit]) -> Result<Vec<Adjusted>, ProviderError> {
        let asked = |set: &RecordSet| self.adjustments().asked(tidy(set.clone()));
        let sets = units.iter().flat_map(|unit| unit.changes.iter().filter_map(wanted));
        let sets: Vec<RecordSet> = sets.map(asked).collect();
        let sent: Vec<Endpoint> = sets.iter().map(Endpoint::new).collect();
        let mut answers =
            if sent.is_empty() { HashMap::new() } else { by_key(self.client.adjust(&sent).await?) };
        let mut adjusted = Vec::with_capacity(units.len());
        for unit in units {
            let (mut endpoints, mut refused, mut changes) = (HashMap::new(), None, Vec::new());
            let mut pairs = Vec::new();
            for change in &unit.changes {
                let Some(set) = wanted(change).map(asked) else {
                    changes.push(change.clone());
                    continue;
                };
                let key = (set.name.clone(), set.kind);
                let answer = answers.remove(&key);
                let Some((endpoint, made)) =
                    answer.and_then(|answer| Some((answer.clone(), answer.to_set()?)))
                else {
                    refused =
                        Some(format!("the provider does not hold the {} set of `{}`", set.kind, set.name));
                    changes.push(change.clone());
                    continue;
                };
                let held = self.adjustments().listed(&set, &made);
                pairs.push((set, made));
                endpoints.insert(key, endpoint);
                changes.push(SetChange { before: change.before.clone(), after: Some(held) });
            }
            adjusted.push(Adjusted {
                unit: Unit { name: unit.name.clone(), changes },
                endpoints,
                made: pairs,
                refused,
            });
        }
        Ok(adjusted)
    }

    /// Remembers what the provider made of units that stand there.
    fn note(&self, units: &[Adjusted], batch: &[usize], written: bool) {
        let mut adjustments = self.adjustments();
        for adjusted in batch.iter().filter_map(|at| units.get(*at)) {
            for (asked, made) in &adjusted.made {
                adjustments.remember(asked, made, written);
            }
            for change in adjusted.unit.changes.iter().filter(|change| wanted(change).is_none()) {
                if let Some(old) = &change.before {
                    adjustments.forget(&old.name, old.kind);
                }
            }
        }
    }
}

impl Progress {
    fn is_applied(&self, at: usize) -> bool {
        self.outcomes.get(at) == Some(&Some(UnitOutcome::Applied))
    }

    fn settle(&mut self, batch: &[usize], outcome: &UnitOutcome) {
        for at in batch {
            if let Some(slot) = self.outcomes.get_mut(*at) {
                *slot = Some(outcome.clone());
            }
        }
    }

    /// Compares the units of a refused request with what stands now. Gives those that did not begin.
    fn read_again(&mut self, listed: Listed, units: &[Adjusted], batch: &[usize]) -> Vec<usize> {
        self.found = listed.listing().found();
        self.listed = listed;
        let mut left = Vec::new();
        for at in batch {
            let Some(adjusted) = units.get(*at) else { continue };
            match self.found.outcome(&adjusted.unit) {
                None => left.push(*at),
                Some(UnitOutcome::Applied) => {
                    self.taken = true;
                    self.settle(&[*at], &UnitOutcome::Applied);
                }
                // A part of it stands, or others were here too.
                Some(_) => self.settle(&[*at], &UnitOutcome::Unknown),
            }
        }
        left
    }

    /// The reply of a write that ends with `error` at `batch`.
    fn ended(mut self, batch: &[usize], error: impl Into<Option<ProviderError>>) -> WriteReply {
        let stopped = error.into();
        let unclear = stopped.as_ref().is_some_and(ProviderError::may_have_acted);
        self.settle(batch, if unclear { &UnitOutcome::Unknown } else { &UnitOutcome::NotTried });
        let outcomes = self.outcomes.into_iter().map(|outcome| outcome.unwrap_or(UnitOutcome::NotTried));
        WriteReply { outcomes: outcomes.collect(), stopped }
    }
}

/// The changes of some units. Sets that are there are sent as the provider listed them.
fn changes(units: &[Adjusted], batch: &[usize], listed: &Listed) -> Changes {
    let mut changes = Changes::default();
    for adjusted in batch.iter().filter_map(|at| units.get(*at)) {
        for change in &adjusted.unit.changes {
            let Some(some) = change.after.as_ref().or(change.before.as_ref()) else { continue };
            let key = (some.name.clone(), some.kind);
            let new = wanted(change).and(adjusted.endpoints.get(&key)).cloned();
            match (listed.endpoint(&key), new) {
                (None, Some(new)) => changes.create.push(new),
                (Some(old), Some(mut new)) => {
                    for (name, value) in &old.labels {
                        new.labels.entry(name.clone()).or_insert_with(|| value.clone());
                    }
                    changes.update_old.push(old);
                    changes.update_new.push(new);
                }
                (Some(old), None) => changes.delete.push(old),
                (None, None) => {}
            }
        }
    }
    changes
}

/// Why the provider's filter leaves the unit out.
fn outside(filter: &DomainFilter, unit: &Unit) -> Option<String> {
    let added = unit.changes.iter().filter(|change| wanted(change).is_some()).filter_map(SetChange::name);
    let name = added.into_iter().find(|name| !filter.takes(name))?;
    Some(format!("`{name}` is outside the domain filter of the provider"))
}
