//! A server with one record per call, as strict as the real ones, that fails when a test wants it to.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use netstead_model::{Capabilities, Name, ProviderError, RecordType, Zone, ZoneSource};
use netstead_providers::dns::per_record::{Listing, NewRecord, Record, RecordApi, RecordError};

use crate::support::zone;

/// A failure of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// 429, and nothing is done.
    Busy,
    /// It is done, and the answer is lost.
    Lost,
    /// Nothing is done, and there is no answer either.
    Dropped,
    /// It is refused.
    Refused,
}

#[derive(Debug)]
pub struct Held {
    pub records: Vec<Record>,
    pub calls: usize,
    /// Calls that changed, or would have changed, something.
    pub changes: usize,
    /// The number of such a call, from 1 on, and what happens there.
    pub faults: Vec<(usize, Fault)>,
    /// A listing fails half way.
    pub loses_page: bool,
    next: u64,
}

#[derive(Debug, Clone)]
pub struct Server {
    pub can: Capabilities,
    pub held: Arc<Mutex<Held>>,
    /// It does not know these credentials.
    pub stranger: bool,
    /// It can be asked for single names.
    pub by_name: bool,
}

impl Server {
    pub fn new(can: Capabilities) -> Self {
        let (records, faults) = (Vec::new(), Vec::new());
        let held = Held { records, calls: 0, changes: 0, faults, loses_page: false, next: 0 };
        Self { can, held: Arc::new(Mutex::new(held)), stranger: false, by_name: false }
    }

    fn call(&self) -> Result<std::sync::MutexGuard<'_, Held>, ProviderError> {
        if self.stranger {
            return Err(ProviderError::Denied { server: self.server(), reason: "no such token".into() });
        }
        let mut held = self.held.lock().unwrap();
        held.calls += 1;
        Ok(held)
    }

    /// Makes a change through `change`, or what a fault makes of it.
    fn change<T>(
        &self,
        zone: &Name,
        change: impl FnOnce(&mut Held) -> Result<T, RecordError>,
    ) -> Result<T, RecordError> {
        let mut held = self.call()?;
        self.knows(zone)?;
        held.changes += 1;
        let number = held.changes;
        let fault = held.faults.iter().find(|(at, _)| *at == number).map(|(_, fault)| *fault);
        let lost = || ProviderError::Unknown { server: self.server(), reason: "the line went dead".into() };
        match fault {
            None => change(&mut held),
            Some(Fault::Busy) => {
                let retry_after = Some(Duration::from_secs(7));
                Err(ProviderError::Busy { server: self.server(), retry_after }.into())
            }
            Some(Fault::Lost) => {
                let _ = change(&mut held);
                Err(lost().into())
            }
            Some(Fault::Dropped) => Err(lost().into()),
            Some(Fault::Refused) => Err(RecordError::Rejected { reason: "not today".into() }),
        }
    }

    fn knows(&self, asked: &Name) -> Result<(), ProviderError> {
        if self.can.zones == ZoneSource::Listed && *asked != zone() {
            return Err(ProviderError::NoSuchZone { server: self.server(), zone: asked.clone() });
        }
        Ok(())
    }

    /// Checks what a real server does.
    fn check(&self, held: &Held, new: &NewRecord, but: Option<&str>) -> Result<(), RecordError> {
        let rejected = |reason: &str| Err(RecordError::Rejected { reason: reason.into() });
        let (kind, at) =
            (new.data.kind(), |record: &&Record| record.name == new.name && Some(&*record.id) != but);
        let others: BTreeSet<RecordType> =
            held.records.iter().filter(at).map(|record| record.data.kind()).collect();
        if !new.name.is_subdomain_of(&zone()) {
            return rejected("not in this zone");
        }
        if !self.can.types.contains(&kind) {
            return rejected("unknown type");
        }
        if new.ttl != self.can.ttl.adjust(new.ttl) {
            return rejected("no such time to live");
        }
        if kind == RecordType::Cname && !others.is_empty() || others.contains(&RecordType::Cname) {
            return rejected("a CNAME stands alone");
        }
        if self.can.one_value && others.contains(&kind) {
            return rejected("one value per name");
        }
        if held.records.iter().filter(at).any(|record| record.data == new.data) {
            return rejected("it exists already");
        }
        Ok(())
    }
}

#[async_trait]
impl RecordApi for Server {
    fn kind(&self) -> &'static str {
        "fake"
    }

    fn server(&self) -> String {
        "fake".into()
    }

    fn capabilities(&self) -> Capabilities {
        self.can.clone()
    }

    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        let held = self.call()?;
        let near = |domain: &Name| domain.is_subdomain_of(&zone()) || zone().is_subdomain_of(domain);
        let sign = self.can.signs_changes.then(|| u32::try_from(held.next).unwrap().into());
        Ok(domains.iter().any(near).then(|| Zone { name: zone(), sign }).into_iter().collect())
    }

    async fn list(&self, zone: &Name) -> Result<Listing, ProviderError> {
        let held = self.call()?;
        self.knows(zone)?;
        if held.loses_page {
            let reason = "page 2 of 3 is missing".into();
            return Err(ProviderError::Malformed { server: self.server(), reason });
        }
        let sign = self.can.signs_changes.then(|| u32::try_from(held.next).unwrap().into());
        Ok(Listing { records: held.records.clone(), sign, ..Listing::default() })
    }

    fn can_list_names(&self) -> bool {
        self.by_name
    }

    async fn list_names(&self, zone: &Name, names: &BTreeSet<Name>) -> Result<Listing, ProviderError> {
        let mut listing = self.list(zone).await?;
        if self.by_name {
            listing.records.retain(|record| names.contains(&record.name));
        }
        Ok(listing)
    }

    async fn create(&self, zone: &Name, new: &NewRecord) -> Result<Record, RecordError> {
        self.change(zone, |held| {
            self.check(held, new, None)?;
            held.next += 1;
            let made = new.made(held.next.to_string());
            held.records.push(made.clone());
            Ok(made)
        })
    }

    async fn update(&self, zone: &Name, old: &Record, new: &NewRecord) -> Result<Record, RecordError> {
        self.change(zone, |held| {
            let at = held.records.iter().position(|record| record.id == old.id).ok_or(RecordError::Gone)?;
            self.check(held, new, Some(&old.id))?;
            held.next += 1;
            held.records[at] = new.made(old.id.clone());
            Ok(held.records[at].clone())
        })
    }

    async fn delete(&self, zone: &Name, old: &Record) -> Result<(), RecordError> {
        self.change(zone, |held| {
            let at = held.records.iter().position(|record| record.id == old.id).ok_or(RecordError::Gone)?;
            held.records.remove(at);
            held.next += 1;
            Ok(())
        })
    }
}
