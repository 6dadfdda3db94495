//! The DNS provider `builtin`: writes zones into Netstead's own store, where every node's nameserver reads them.
//!
//! A write is fenced and repeated until no other writer interferes:
//!
//! 1. Read the zone's header from a snapshot. If its fence (epoch and generation) is above that of the request, the request
//!    is late and refused.
//! 2. If the header is open, a writer crashed in the middle of a change: undo that change first, then start again.
//! 3. Compare the sets with what each unit expects (`change`).
//! 4. Commit the changes with a new header, on condition that the header is still the one of step 1 (`commits`). If the store
//!    refuses, another process wrote to the zone: back to step 1, at most 8 times.
//!
//! So of two leaders that overlap, the one with the older epoch is refused in step 1, or in step 4 and then in step 1.

mod change;
mod commits;

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, ChangeSign, Clock, DnsProvider, Marks, Name, ProviderError, RecordType, UnitOutcome,
    WriteReply, WriteRequest, Zone, ZoneContent,
};
use netstead_settings::{BuildContext, Configured, Identity, Kind, SettingsError, table};
use netstead_store::{Entry as Stored, Snapshot, Store, StoreError, Version};
use tokio::sync::Mutex;

use self::change::Changes;
use crate::{
    stored_zone::{self, Entry, Header, Slot, StoredKey},
    zone_choice::zone_of,
};

/// How many entries are read at once.
const PAGE: usize = 1000;
/// How often a write is tried when other processes write to the zone at the same time.
const TRIES: usize = 8;

pub const KIND: Kind<dyn DnsProvider, Capabilities> =
    Kind::new::<Config>("builtin", "Netstead's own nameserver", capabilities);

table! {
    /// `[dns.NAME]` with `type = "builtin"`.
    pub struct Config {}
}

/// The domains of Netstead's own zones. The process gives them to the context in which `builtin` is built.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnDomains(pub Vec<Name>);

impl Configured<dyn DnsProvider> for Config {
    fn identity(&self) -> Identity {
        Identity::own("builtin")
    }

    fn server(&self) -> String {
        "this process".to_owned()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn DnsProvider>, SettingsError> {
        let store = context.part::<Arc<dyn Store>>();
        let store = store.ok_or_else(|| SettingsError::new("type", "there is no store for its zones"))?;
        let OwnDomains(domains) = context.part().unwrap_or_default();
        Ok(Arc::new(Builtin::new(store, Arc::clone(&context.clock), domains)))
    }
}

/// Its zones are in the same store as what is known of them: a mark there would say nothing more.
fn capabilities() -> Capabilities {
    Capabilities { marks: Marks::None, ..Capabilities::all(RecordType::ALL) }
}

/// Writes zones that every node's nameserver answers from.
///
/// It holds the configured `domains`, and for any name outside them a zone of its own ([`zone_of`]); both come into
/// being with their first record.
#[derive(Debug)]
pub struct Builtin {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    domains: Vec<Name>,
    /// Writes of this process follow one another, so that none undoes another's open change.
    writing: Mutex<()>,
    /// How the writes of this process moved each zone's serial since it was read.
    moves: std::sync::Mutex<BTreeMap<Name, (u32, u32)>>,
}

/// A header as it was read; version `None` if the zone is new.
#[derive(Debug, Clone)]
struct Head {
    header: Header,
    version: Option<Version>,
}

impl Builtin {
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, domains: Vec<Name>) -> Self {
        Self { store, clock, domains, writing: Mutex::new(()), moves: std::sync::Mutex::default() }
    }

    /// Makes sure that every configured domain is a zone, so that it is answered for even while it is empty.
    async fn make_configured_zones(&self) -> Result<(), ProviderError> {
        let _turn = self.writing.lock().await;
        for domain in &self.domains {
            for _ in 0..TRIES {
                let snapshot = self.store.snapshot().await.map_err(|error| self.failed(&error))?;
                let mut head = self.head(snapshot.as_ref(), domain).await?;
                if head.version.is_some() && !head.header.lone {
                    break;
                }
                (head.header.lone, head.header.empty) = (false, false);
                head.header.serial = self.next_serial(head.header.serial);
                match self.commit(domain, &mut head, Vec::new()).await {
                    Ok(()) => break,
                    Err(StoreError::Refused { .. }) => {}
                    Err(error) => return Err(self.failed(&error)),
                }
            }
        }
        Ok(())
    }

    /// Whether a zone of this name would hold what it is asked to hold.
    fn may_hold(&self, zone: &Name) -> bool {
        zone_of(zone, &self.domains) == *zone
    }

    async fn head(&self, snapshot: &dyn Snapshot, zone: &Name) -> Result<Head, ProviderError> {
        let key = stored_zone::zone_key(zone);
        let Some(entry) = snapshot.get(&key).await.map_err(|error| self.failed(&error))? else {
            let lone = !self.domains.contains(zone);
            return Ok(Head { header: Header { lone, ..Header::default() }, version: None });
        };
        let header = stored_zone::decode(&key, &entry.value).map_err(|reason| self.malformed(reason))?;
        Ok(Head { header, version: Some(entry.version) })
    }

    /// The entries under `prefix`, all of them.
    async fn entries(
        &self,
        snapshot: &dyn Snapshot,
        prefix: &[u8],
    ) -> Result<Vec<(Slot, Entry)>, ProviderError> {
        let mut found = Vec::new();
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page =
                snapshot.range(prefix, after.as_deref(), PAGE).await.map_err(|error| self.failed(&error))?;
            for Stored { key, value, .. } in &page {
                let entry = stored_zone::decode(key, value).map_err(|reason| self.malformed(reason))?;
                match stored_zone::parse_key(key) {
                    Some(StoredKey::Set(_, slot)) => found.push((slot, entry)),
                    _ => {
                        return Err(
                            self.malformed(format!("`{}` is no record set", String::from_utf8_lossy(key)))
                        );
                    }
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.key.clone()),
                _ => return Ok(found),
            }
        }
    }

    /// The serial after `last`: it only grows, and is the time where that is later.
    fn next_serial(&self, last: u32) -> u32 {
        let now = u32::try_from(self.clock.wall().as_second()).unwrap_or(0);
        last.wrapping_add(1).max(now)
    }

    fn failed(&self, error: &StoreError) -> ProviderError {
        let (server, reason) = (self.server(), error.to_string());
        match error {
            StoreError::Unknown { .. } => ProviderError::Unknown { server, reason },
            StoreError::Refused { .. } => ProviderError::Busy { server, retry_after: None },
            StoreError::Invalid { .. } | StoreError::Damaged { .. } => {
                ProviderError::Malformed { server, reason }
            }
            _ => ProviderError::Unreachable { server, reason },
        }
    }

    fn malformed(&self, reason: String) -> ProviderError {
        ProviderError::Malformed { server: self.server(), reason }
    }

    /// One attempt to write; `None` if another process wrote to the zone in between.
    async fn attempt(
        &self,
        zone: &Name,
        request: &WriteRequest,
    ) -> Result<Option<Vec<UnitOutcome>>, ProviderError> {
        let snapshot = self.store.snapshot().await.map_err(|error| self.failed(&error))?;
        let mut head = self.head(snapshot.as_ref(), zone).await?;
        if head.version.is_none() && !self.may_hold(zone) {
            return Err(ProviderError::NoSuchZone { server: self.server(), zone: zone.clone() });
        }
        let fence = (request.fence.epoch, request.fence.generation);
        if fence < (head.header.epoch, head.header.generation) {
            return Err(ProviderError::Late { server: self.server(), zone: zone.clone() });
        }
        let written = if head.header.open {
            self.undo_unfinished_change(zone, snapshot.as_ref(), &mut head).await.map(|()| None)
        } else {
            let serial = head.header.serial;
            let present = self.present(snapshot.as_ref(), zone, request, &head.header).await?;
            let changes = Changes::decide(zone, request, present);
            head.header.empty = head.header.lone && changes.left == 0;
            let written = self.write_changes(zone, &mut head, fence, &changes.slots).await;
            written.map(|()| {
                let mut moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
                // A chain of our own writes counts as one.
                let first =
                    moves.get(zone).filter(|(_, last)| *last == serial).map_or(serial, |(first, _)| *first);
                moves.insert(zone.clone(), (first, head.header.serial));
                Some(changes.outcomes)
            })
        };
        match written {
            Ok(outcomes) => Ok(outcomes),
            Err(StoreError::Refused { .. }) => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }
}

#[async_trait]
impl DnsProvider for Builtin {
    fn kind(&self) -> &'static str {
        "builtin"
    }

    fn server(&self) -> String {
        "the built-in nameserver".into()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    async fn prepare(&self) -> Result<(), ProviderError> {
        self.make_configured_zones().await
    }

    fn zone_of(&self, name: &Name) -> Option<Name> {
        Some(zone_of(name, &self.domains))
    }

    fn makes_zones(&self) -> bool {
        true
    }

    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        let near = |zone: &Name| {
            domains.iter().any(|domain| zone.is_subdomain_of(domain) || domain.is_subdomain_of(zone))
        };
        let snapshot = self.store.snapshot().await.map_err(|error| self.failed(&error))?;
        let mut zones: Vec<Zone> = Vec::new();
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = snapshot.range(stored_zone::ZONES.as_bytes(), after.as_deref(), PAGE).await;
            let page = page.map_err(|error| self.failed(&error))?;
            for Stored { key, value, .. } in &page {
                let header: Header =
                    stored_zone::decode(key, value).map_err(|reason| self.malformed(reason))?;
                let there = header.serial > 0 && !header.empty;
                if let Some(StoredKey::Header(name)) = stored_zone::parse_key(key).filter(|_| there) {
                    zones.push(Zone { name, sign: Some(header.serial.into()) });
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.key.clone()),
                _ => break,
            }
        }
        for domain in &self.domains {
            if zones.iter().all(|zone| zone.name != *domain) {
                zones.push(Zone { name: domain.clone(), sign: None });
            }
        }
        zones.retain(|zone| near(&zone.name));
        Ok(zones)
    }

    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        self.moves.lock().unwrap_or_else(PoisonError::into_inner).remove(zone);
        let snapshot = self.store.snapshot().await.map_err(|error| self.failed(&error))?;
        let head = self.head(snapshot.as_ref(), zone).await?;
        if head.version.is_none() && !self.may_hold(zone) {
            return Err(ProviderError::NoSuchZone { server: self.server(), zone: zone.clone() });
        }
        let entries = self.entries(snapshot.as_ref(), &stored_zone::zone_prefix(zone)).await?;
        let seen = |(slot, entry): &(Slot, Entry)| {
            entry.visible_values(head.header.visible).map(|values| values.to_set(slot))
        };
        let sign = Some(head.header.serial).filter(|serial| *serial > 0).map(ChangeSign::from);
        Ok(ZoneContent { sign, sets: entries.iter().filter_map(seen).collect() })
    }

    async fn fence(&self, zone: &Name, _owner: &str) -> Result<Option<(u64, u64)>, ProviderError> {
        let snapshot = self.store.snapshot().await.map_err(|error| self.failed(&error))?;
        let head = self.head(snapshot.as_ref(), zone).await?;
        Ok(head.version.is_some().then_some((head.header.epoch, head.header.generation)))
    }

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError> {
        let _turn = self.writing.lock().await;
        for _ in 0..TRIES {
            if let Some(outcomes) = self.attempt(zone, request).await? {
                return Ok(outcomes.into());
            }
        }
        Err(ProviderError::Busy { server: self.server(), retry_after: None })
    }

    fn moved_alone(&self, zone: &Name, before: &ChangeSign, after: &ChangeSign) -> bool {
        let mut moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = moves.get(zone).map(|(first, last)| (ChangeSign::from(*first), ChangeSign::from(*last)));
        let alone = moved.is_some_and(|(first, last)| (&first, &last) == (before, after));
        if alone {
            moves.remove(zone);
        }
        alone
    }
}
