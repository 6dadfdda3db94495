//! An adapter for servers that take one record per call.
//!
//! A server says how to list, create, change and delete a record ([`RecordApi`]); [`PerRecord`] makes a [`DnsProvider`] of it:
//!
//! 1. `zones` and `read` come from listings. Where the server knows no zones, one listing serves all domains, and a digest
//!    over it is the sign of change.
//! 2. `write` lists once more and leaves out units that do not find what they expect.
//! 3. The changes of a unit become a list of calls (`unit_calls`), in an order that leaves no name without a value longer than
//!    the server makes it.
//! 4. The calls are made one by one (`unit_writer`), each with the consent of the guard. If one is rejected, those before it
//!    are taken back, so that a rejected unit leaves nothing behind.

mod record;
mod shared_listing;
pub(super) mod unit_calls;
mod unit_writer;

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, DnsProvider, Name, ProviderError, RecordData, RecordSet, SetChange, Unit, UnitOutcome,
    WriteReply, WriteRequest, Zone, ZoneContent, ZoneSource,
};

pub use self::record::{Listing, NewRecord, Record, RecordError};
pub(super) use self::shared_listing::SharedListing;
use self::unit_writer::UnitWriter;
use super::{preconditions::ServerRecords, tidy};

/// So many units with an unclear outcome in a row end a write.
const MOST_UNKNOWN: usize = 3;
const NO_WILDCARDS: &str = "the server knows no wildcards";

/// A server that takes one record per call.
#[async_trait]
pub trait RecordApi: Send + Sync + std::fmt::Debug + 'static {
    fn kind(&self) -> &'static str;

    /// The server, for people and for finding two providers that mean the same one.
    fn server(&self) -> String;

    fn capabilities(&self) -> Capabilities;

    /// The zones that lie at, above or below `domains`. Not asked if the server knows no zones.
    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        let _ = domains;
        Ok(Vec::new())
    }

    /// All records of `zone`; of the whole server if it knows no zones. What is not complete is an error.
    async fn list(&self, zone: &Name) -> Result<Listing, ProviderError>;

    /// Whether [`RecordApi::list_names`] asks for no more than these names.
    fn can_list_names(&self) -> bool {
        false
    }

    /// The records at `names`, and perhaps others.
    async fn list_names(&self, zone: &Name, names: &BTreeSet<Name>) -> Result<Listing, ProviderError> {
        let _ = names;
        self.list(zone).await
    }

    /// Whether changes of `zone` would be taken, asked without changing anything.
    async fn may_write(&self, zone: &Name) -> Result<(), ProviderError> {
        let _ = zone;
        Ok(())
    }

    /// Returns the set as the server would hold it; its time to live is adjusted elsewhere.
    fn adjust(&self, set: RecordSet) -> RecordSet {
        set
    }

    /// As [`DnsProvider::cannot_hold`]; wildcards are refused without asking.
    fn cannot_hold(&self, name: &Name, data: &RecordData) -> Option<String> {
        let _ = (name, data);
        None
    }

    /// Makes a record. One that is there already counts as made.
    async fn create(&self, zone: &Name, new: &NewRecord) -> Result<Record, RecordError>;

    /// Changes a record in place. Only called if the order of the server is `InPlace`.
    async fn update(&self, zone: &Name, old: &Record, new: &NewRecord) -> Result<Record, RecordError> {
        let _ = (zone, old, new);
        Err(RecordError::Rejected { reason: "this server changes no record in place".into() })
    }

    async fn delete(&self, zone: &Name, old: &Record) -> Result<(), RecordError>;

    /// Makes the changes of a write count, where they do not by themselves. Called at the end of every write.
    async fn finish(&self) -> Result<(), ProviderError> {
        Ok(())
    }

    /// As [`DnsProvider::close`].
    async fn close(&self) {}
}

/// A [`DnsProvider`] made of a [`RecordApi`].
#[derive(Debug)]
pub struct PerRecord<T> {
    api: T,
    /// The newest listing of a server without zones.
    shared: Mutex<Option<SharedListing>>,
    writing: tokio::sync::Mutex<()>,
}

impl<T: RecordApi> PerRecord<T> {
    pub fn new(api: T) -> Self {
        Self { api, shared: Mutex::default(), writing: tokio::sync::Mutex::default() }
    }

    fn knows_zones(&self) -> bool {
        self.api.capabilities().zones == ZoneSource::Listed
    }

    /// Lists everything of a server without zones, once for all domains.
    async fn list_all(&self, domains: &[Name]) -> Result<SharedListing, ProviderError> {
        let Some(any) = domains.first() else {
            return Ok(SharedListing::default());
        };
        Ok(SharedListing::new(domains, self.api.list(any).await?))
    }

    async fn content(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        if self.knows_zones() {
            let listing = self.api.list(zone).await?;
            return Ok(ZoneContent { sign: listing.sign.clone(), sets: listing.found().into_sets() });
        }
        let held = match self.unread(zone) {
            Some(held) => held,
            None => self.list_all(std::slice::from_ref(zone)).await?,
        };
        Ok(held.content(zone))
    }

    /// The listing that `zones` made, unless the zone was read from it before.
    fn unread(&self, zone: &Name) -> Option<SharedListing> {
        let mut held = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_mut()?.unread(zone)
    }
}

/// A unit as the server would hold it.
pub(super) fn adjusted(unit: &Unit, adjust: impl Fn(RecordSet) -> RecordSet) -> Unit {
    let adjust = |set: &RecordSet| adjust(set.clone());
    let change = |change: &SetChange| SetChange {
        before: change.before.as_ref().map(adjust),
        after: change.after.as_ref().map(adjust),
    };
    Unit { name: unit.name.clone(), changes: unit.changes.iter().map(change).collect() }
}

/// The outcome of a unit that needs no call; none if it is to be written.
pub(super) fn judge(
    can: &Capabilities,
    zone: &Name,
    unit: &Unit,
    found: &ServerRecords,
) -> Option<UnitOutcome> {
    let rejected = |reason: String| Some(UnitOutcome::Rejected { reason });
    if let Some(outside) = unit.names().into_iter().find(|name| !name.is_subdomain_of(zone)) {
        return rejected(format!("`{outside}` is not in the zone `{zone}`"));
    }
    if !can.wildcards && unit.name.is_wildcard() && unit.changes.iter().any(|change| change.after.is_some()) {
        return rejected(NO_WILDCARDS.to_owned());
    }
    let sets = unit.changes.iter().filter_map(|change| change.after.as_ref());
    for set in sets {
        if !can.types.contains(&set.kind) {
            return rejected(format!("the server holds no records of type {}", set.kind));
        }
        if can.one_value && set.values.len() > 1 {
            return rejected(format!("the server holds one {} at a name", set.kind));
        }
    }
    found.outcome(unit).or_else(|| found.cname_conflict(unit).and_then(rejected))
}

#[async_trait]
impl<T: RecordApi> DnsProvider for PerRecord<T> {
    fn kind(&self) -> &'static str {
        self.api.kind()
    }

    fn server(&self) -> String {
        self.api.server()
    }

    fn capabilities(&self) -> Capabilities {
        self.api.capabilities()
    }

    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        if self.knows_zones() {
            return self.api.zones(domains).await;
        }
        let held = self.list_all(domains).await?;
        let zones = held.zones();
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(zones)
    }

    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        self.content(zone).await
    }

    fn can_read_names(&self) -> bool {
        self.api.can_list_names()
    }

    async fn read_names(&self, zone: &Name, names: &BTreeSet<Name>) -> Result<ZoneContent, ProviderError> {
        if names.is_empty() || !self.api.can_list_names() {
            return self.content(zone).await;
        }
        let listing = self.api.list_names(zone, names).await?.filter(|name| names.contains(name));
        Ok(ZoneContent { sign: listing.sign.clone(), sets: listing.found().into_sets() })
    }

    async fn may_write(&self, zone: &Name) -> Result<(), ProviderError> {
        self.api.may_write(zone).await
    }

    fn adjust(&self, set: RecordSet, can: &Capabilities) -> RecordSet {
        let mut set = self.api.adjust(tidy(set));
        set.ttl = can.ttl.adjust(set.ttl);
        set
    }

    fn cannot_hold(&self, name: &Name, data: &RecordData) -> Option<String> {
        if name.is_wildcard() && !self.api.capabilities().wildcards {
            return Some(NO_WILDCARDS.to_owned());
        }
        self.api.cannot_hold(name, data)
    }

    async fn close(&self) {
        self.api.close().await;
    }

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError> {
        let _alone = self.writing.lock().await;
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let can = self.api.capabilities();
        let units: Vec<Unit> =
            request.units.iter().map(|unit| adjusted(unit, |set| self.adjust(set, &can))).collect();
        let names: BTreeSet<Name> = units.iter().flat_map(Unit::names).cloned().collect();
        let listing = self.api.list_names(zone, &names).await?;
        // Only now: some servers must be asked before it is known which version they are.
        let can = self.api.capabilities();
        let mut writer = UnitWriter::new(&self.api, zone, request, listing);
        let (mut outcomes, mut unknown) = (Vec::with_capacity(units.len()), 0);
        for unit in &units {
            if let Some(outcome) = judge(&can, zone, unit, writer.found()) {
                outcomes.push(outcome);
                continue;
            }
            let (outcome, failed) = writer.write(unit).await;
            unknown = if outcome == UnitOutcome::Unknown { unknown + 1 } else { 0 };
            outcomes.push(outcome);
            if let Some(error) = failed.filter(|error| !error.may_have_acted() || unknown >= MOST_UNKNOWN) {
                outcomes.resize(units.len(), UnitOutcome::NotTried);
                // Even so, what was written shall count. If that fails too, the first error says more.
                let _ = self.api.finish().await;
                return Ok(WriteReply { outcomes, stopped: Some(error) });
            }
        }
        Ok(WriteReply { outcomes, stopped: self.api.finish().await.err() })
    }
}
