//! The zones of the server as they were last read. A zone is read again only if it may have changed.
//!
//! A zone is read again when its sign of change differs, unless only our own writes changed it; when it is *doubtful* after a
//! report of a former leader; when names are needed that were not read; and after `full_interval`. A zone without a sign is
//! read in every pass, save those that follow a read within half an interval: what we wrote since then is known.
//!
//! After a write with an unclear outcome only the names in question are doubtful. They are read alone where the server can be
//! asked by name, else with their zone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError},
    time::Duration,
};

use netstead_model::{ChangeSign, Name, ProviderError, RecordSet, SetChange, Zone};
use netstead_plan::{Actual, ActualZone, Desired, DomainMatch, Owned, Settings, marks::Tool};
use netstead_store::Write;
use tokio::time::timeout;

use super::{DnsPass, names_to_read::names_by_zone};
use crate::{
    history::{EngineEvent, EngineEventKind},
    keys,
    provider_loop::{self, Worker},
    status::ZoneStatus,
};

/// A server that answers nothing for this long while it is read is taken for gone.
pub(super) const READ_PATIENCE: Duration = Duration::from_mins(2);

type ZoneErrors = Vec<(Name, String)>;

/// A zone that was read, and when.
#[derive(Debug)]
pub(super) struct ZoneCache {
    pub(super) actual: Arc<Actual>,
    reads: BTreeMap<Name, Read>,
    /// When the worker started. Writes of an earlier leader may arrive for `provider_loop::PATIENCE` after that.
    begun: Duration,
    reread: bool,
}

#[derive(Debug, Clone, Default)]
struct Read {
    at: Duration,
    doubt: Doubt,
    /// The sign from before our writes, which are in the sets already.
    wrote: Option<ChangeSign>,
    failures: u32,
    error: Option<String>,
    /// The names it was about, where a zone is read by name.
    names: BTreeSet<Name>,
}

/// Part of a zone that may have changed whatever the sign of change says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Doubt {
    #[default]
    None,
    Names(BTreeSet<Name>),
    Zone,
}

/// Part of a zone that a pass reads.
enum Look {
    /// Nothing: nothing of it matters here.
    Not,
    /// Nothing: these are its sets.
    Known(Vec<RecordSet>),
    /// Some names; the other sets are known.
    Names(Vec<RecordSet>, BTreeSet<Name>),
    All,
}

impl ZoneCache {
    pub(super) fn new(begun: Duration) -> Self {
        Self { actual: Arc::default(), reads: BTreeMap::new(), begun, reread: false }
    }

    /// The next pass reads this zone whatever its sign of change.
    pub(super) fn mark_doubtful(&mut self, zone: &Name) {
        if let Some(read) = self.reads.get_mut(zone) {
            read.doubt = Doubt::Zone;
        }
    }

    /// The next pass reads these names of a zone.
    pub(super) fn doubt_names(&mut self, zone: &Name, names: BTreeSet<Name>) {
        if names.is_empty() {
            return;
        }
        let Some(read) = self.reads.get_mut(zone) else { return };
        match &mut read.doubt {
            Doubt::None => read.doubt = Doubt::Names(names),
            Doubt::Names(known) => known.extend(names),
            Doubt::Zone => {}
        }
    }

    /// How many zones may hold something else than what was read.
    pub(super) fn doubtful(&self) -> usize {
        self.reads.values().filter(|read| read.doubt != Doubt::None).count()
    }

    /// The server took these changes. If its sign of change says that nothing else happened, they need not be read back.
    pub(super) fn apply_written<'a>(
        &mut self,
        zone: &Name,
        changes: impl IntoIterator<Item = &'a SetChange>,
    ) {
        let held = Arc::make_mut(&mut self.actual).zones.iter_mut().find(|held| held.name == *zone);
        match (held, self.reads.get_mut(zone)) {
            (None, _) | (_, None) => self.mark_doubtful(zone),
            (Some(held), Some(read)) => {
                let mut changes = changes.into_iter().peekable();
                if changes.peek().is_some() {
                    held.apply_changes(changes);
                    read.wrote.clone_from(&held.sign);
                }
            }
        }
    }
}

impl Worker<DnsPass> {
    /// Reads the zones that may have changed. Returns the errors of single zones, for which nothing is planned, and the zones
    /// that a former leader wrote to late.
    pub(super) async fn refresh_zones(
        &mut self,
        desired: &Desired,
    ) -> Result<(ZoneErrors, BTreeSet<Name>), ProviderError> {
        let server = self.setup.provider.server();
        let clock = self.shared.clock.clone();
        self.check_pause()?;
        let asked = domains_to_list(&self.state.settings, &self.state.owned, desired);
        let listed = with_timeout(&server, self.setup.provider.zones(&asked)).await?;
        let (listed, fresh) = self.with_new_zones(listed, desired);
        let needed = needed_zones(&listed, desired, &self.state.owned);
        let doubts = self.collect_doubts();
        let mut before: BTreeMap<Name, ActualZone> = Arc::make_mut(&mut self.state.zone_cache.actual)
            .zones
            .drain(..)
            .map(|zone| (zone.name.clone(), zone))
            .collect();
        let (mut zones, mut reads, mut errors) =
            (Vec::with_capacity(listed.len()), BTreeMap::new(), Vec::new());
        let mut unreachable: Option<ProviderError> = None;
        let by_name = self.setup.provider.can_read_names();
        let mut expected = self.names_to_read(&listed, desired);
        for Zone { name, sign } in listed {
            let old = before.remove(&name).and_then(|zone| Some((zone.sign, zone.sets?)));
            let mut read = self.state.zone_cache.reads.remove(&name).unwrap_or_default();
            let now = clock.monotonic();
            let (mut known, mut sets) = (sign.clone(), None);
            let names = expected.remove(&name).unwrap_or_default();
            let age = now.saturating_sub(read.at);
            let fresh_enough =
                read.doubt != Doubt::Zone && age < self.setup.full_interval && names.is_subset(&read.names);
            let is_known = |at: Option<&ChangeSign>, wrote: Option<&ChangeSign>| match (at, &sign, wrote) {
                (Some(at), Some(sign), None) => at == sign,
                (Some(_), Some(sign), Some(before)) => self.setup.provider.moved_alone(&name, before, sign),
                (None, None, _) => age < self.setup.interval / 2,
                _ => false,
            };
            let look = match old {
                _ if fresh.contains(&name) => Look::Known(Vec::new()),
                _ if !needed.contains(&name) => Look::Not,
                Some((at, old)) if fresh_enough && is_known(at.as_ref(), read.wrote.as_ref()) => {
                    match std::mem::take(&mut read.doubt) {
                        Doubt::Names(doubtful) if by_name => Look::Names(old, doubtful),
                        Doubt::Names(_) | Doubt::Zone => Look::All,
                        Doubt::None => Look::Known(old),
                    }
                }
                _ => Look::All,
            };
            let (rest, asked) = match look {
                Look::Not => (None, None),
                Look::Known(old) => {
                    (sets, read.wrote) = (Some(old), None);
                    (None, None)
                }
                Look::Names(old, doubtful) => (Some(old), Some(doubtful)),
                Look::All => (None, Some(names)),
            };
            if let Some(asked) = asked {
                let read_now = match &unreachable {
                    Some(error) => Err(error.clone()),
                    None => with_timeout(&server, self.setup.provider.read_names(&name, &asked)).await,
                };
                match (read_now, rest) {
                    (Ok(content), None) => {
                        (known, sets) = (content.sign, Some(content.sets));
                        read = Read { at: now, names: asked, ..Read::default() };
                    }
                    // What the listing said stays the sign: if the zone changed since then, the next pass sees it.
                    (Ok(content), Some(mut rest)) => {
                        rest.retain(|set| !asked.contains(&set.name));
                        rest.extend(content.sets.into_iter().filter(|set| asked.contains(&set.name)));
                        (sets, read.wrote) = (Some(rest), None);
                    }
                    (Err(error), _) => {
                        read.doubt = Doubt::Zone;
                        read.failures += 1;
                        read.error = Some(error.to_string());
                        if matches!(error, ProviderError::Unreachable { .. } | ProviderError::Busy { .. }) {
                            unreachable = Some(error);
                        }
                    }
                }
            }
            errors.extend(read.error.clone().filter(|_| sets.is_none()).map(|error| (name.clone(), error)));
            reads.insert(name.clone(), read);
            zones.push(ActualZone::new(name, known, sets));
        }
        self.state.zone_cache.reads = reads;
        self.state.zone_cache.actual = Arc::new(Actual { zones });
        self.clear_doubts(&doubts, &errors).await;
        self.publish_zones();
        Ok((errors, doubts))
    }

    /// Leaves the server alone for as long as it asked for.
    fn check_pause(&self) -> Result<(), ProviderError> {
        let left = self.not_before.and_then(|over| over.checked_sub(self.shared.clock.monotonic()));
        match left.filter(|left| !left.is_zero()) {
            None => Ok(()),
            retry_after => Err(ProviderError::Busy { server: self.setup.provider.server(), retry_after }),
        }
    }

    /// Marks the zones that a former leader may have written to, and returns those that it reported.
    fn collect_doubts(&mut self) -> BTreeSet<Name> {
        let told = std::mem::take(&mut *self.nudges.doubts.lock().unwrap_or_else(PoisonError::into_inner));
        let doubts: BTreeSet<Name> = told.iter().filter_map(|zone| zone.parse().ok()).collect();
        for zone in &doubts {
            self.state.zone_cache.mark_doubtful(zone);
        }
        let led = self.shared.clock.monotonic().saturating_sub(self.state.zone_cache.begun);
        if !self.state.zone_cache.reread && led > provider_loop::PATIENCE {
            self.state.zone_cache.reread = true;
            if !self.setup.provider.capabilities().fenced {
                self.state.zone_cache.reads.values_mut().for_each(|read| read.doubt = Doubt::Zone);
            }
        }
        doubts
    }

    /// As `refresh_zones`, between passes: doubtful zones stay doubtful, so that the next pass handles them.
    pub(super) async fn refresh_zones_between_passes(
        &mut self,
        desired: &Desired,
    ) -> Result<ZoneErrors, ProviderError> {
        let (errors, doubts) = self.refresh_zones(desired).await?;
        self.nudges
            .doubts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(doubts.iter().map(ToString::to_string));
        Ok(errors)
    }

    /// Reads zones for a person, all that matter here and are `wanted`, whatever passes need. `near` is a name that may
    /// lie outside of what is configured. Where only single names can be read, `tool` is the one whose names and marks are
    /// asked for; without it that is an error. Also the zones that could not be read, and why.
    pub(super) async fn read_zones(
        &self,
        near: Option<&Name>,
        tool: Option<Tool>,
        wanted: impl Fn(&Name) -> bool,
    ) -> Result<(Actual, ZoneErrors), ProviderError> {
        let server = self.setup.provider.server();
        let desired = self.snapshot.read().desired.clone();
        let mut asked = domains_to_list(&self.state.settings, &self.state.owned, &desired);
        asked.extend(near.cloned());
        let listed = with_timeout(&server, self.setup.provider.zones(&asked)).await?;
        let (mut zones, mut errors) = (Vec::new(), Vec::new());
        let settings = &self.state.settings;
        let mut names = names_by_zone(&listed, &desired, &self.state.owned, settings);
        for Zone { name, .. } in listed.into_iter().filter(|zone| wanted(&zone.name)) {
            let mut read = with_timeout(&server, self.setup.provider.read(&name)).await;
            if let (Err(ProviderError::Denied { .. } | ProviderError::Malformed { .. }), Some(tool)) =
                (&read, tool)
                && self.setup.provider.reads_by_name()
            {
                let known = names.remove(&name).unwrap_or_default();
                if let Some(names) = self.names_of_tool(&name, known, tool).await? {
                    read = with_timeout(&server, self.setup.provider.read_names(&name, &names)).await;
                }
            }
            match read {
                Ok(read) => zones.push(ActualZone { name, sign: read.sign, sets: Some(read.sets) }),
                Err(error @ (ProviderError::Unreachable { .. } | ProviderError::Denied { .. })) => {
                    return Err(error);
                }
                Err(error) => errors.push((name, error.to_string())),
            }
        }
        Ok((Actual { zones }, errors))
    }

    /// Zones that come into being with their first record.
    pub(super) fn with_new_zones(
        &self,
        mut listed: Vec<Zone>,
        desired: &Desired,
    ) -> (Vec<Zone>, BTreeSet<Name>) {
        let mut fresh = BTreeSet::new();
        let provider = &self.setup.provider;
        if provider.makes_zones() {
            let known: BTreeSet<Name> = listed.iter().map(|zone| zone.name.clone()).collect();
            let names = desired.sets.iter().map(|set| &set.name);
            fresh
                .extend(names.filter_map(|name| provider.zone_of(name)).filter(|zone| !known.contains(zone)));
            listed.extend(fresh.iter().map(|name| Zone { name: name.clone(), sign: None }));
        }
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        listed.dedup_by(|one, other| one.name == other.name);
        (listed, fresh)
    }

    /// Deletes the reports about zones that have been read again.
    async fn clear_doubts(&mut self, doubts: &BTreeSet<Name>, errors: &[(Name, String)]) {
        for zone in doubts {
            if errors.iter().any(|(name, _)| name == zone) {
                self.nudges.doubts.lock().unwrap_or_else(PoisonError::into_inner).insert(zone.to_string());
                continue;
            }
            let key = format!("{}{}/{zone}", keys::DOUBT, self.name()).into_bytes();
            if let Err(error) = self.fenced_store.put(vec![Write::Delete(key)]).await {
                tracing::warn!(%error, %zone, "A doubt could not be taken back; the zone is read once more.");
            }
            let text = format!("{zone} was read again: a former leader wrote to it late");
            self.shared
                .record_event(EngineEvent::new(EngineEventKind::Late, text).on(self.name()).in_zone(zone))
                .await;
        }
    }

    fn publish_zones(&self) {
        let zones = self.state.zone_cache.actual.zones.iter().map(|zone| ZoneStatus {
            name: zone.name.clone(),
            serial: zone.sign.as_ref().and_then(ChangeSign::serial),
            sets: zone.sets.as_ref().map(Vec::len),
            error: self.state.zone_cache.reads.get(&zone.name).and_then(|read| read.error.clone()),
        });
        let zones = Arc::new(zones.collect());
        self.snapshot.update(|seen| seen.view.zones = zones);
    }
}

pub(super) async fn with_timeout<T>(
    server: &str,
    answer: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    let reason = || format!("no answer within {} s", READ_PATIENCE.as_secs());
    let late = |_| Err(ProviderError::Unreachable { server: server.to_owned(), reason: reason() });
    timeout(READ_PATIENCE, answer).await.unwrap_or_else(late)
}

/// The domains to ask the server for: those configured, and where patterns leave that open, the top of every name.
pub(super) fn domains_to_list(settings: &Settings, owned: &Owned, desired: &Desired) -> Vec<Name> {
    let known: Vec<Name> = settings.domains.iter().filter_map(DomainMatch::domain).collect();
    let mut asked: BTreeSet<Name> = known.iter().cloned().collect();
    if settings.reverse {
        asked.extend(["in-addr.arpa", "ip6.arpa"].iter().filter_map(|name| name.parse().ok()));
    }
    let names = desired.sets.iter().map(|set| &set.name).chain(owned.iter().map(|(name, _)| name));
    for name in names {
        let covered = |domain: &Name| name.is_subdomain_of(domain);
        if known.iter().any(covered) || settings.reverse && name.labels().next_back() == Some("arpa") {
            continue;
        }
        let top = name.labels().next_back().and_then(|label| label.parse().ok());
        asked.extend(top.filter(|top| !asked.contains(top)));
    }
    asked.into_iter().collect()
}

/// The zones in which something is wanted or ours.
pub(super) fn needed_zones(zones: &[Zone], desired: &Desired, owned: &Owned) -> BTreeSet<Name> {
    let known: BTreeMap<&str, &Name> = zones.iter().map(|zone| (zone.name.as_str(), &zone.name)).collect();
    let names = desired.sets.iter().map(|set| &set.name).chain(owned.iter().map(|(name, _)| name));
    let mut needed = BTreeSet::new();
    for name in names {
        let mut rest = Some(name.as_str());
        while let Some(text) = rest {
            if let Some(zone) = known.get(text) {
                needed.insert((*zone).clone());
                break;
            }
            rest = text.split_once('.').map(|(_, rest)| rest);
        }
    }
    needed
}
