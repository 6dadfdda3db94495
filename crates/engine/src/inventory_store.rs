//! Loads the inventory from the store, and stores what changed in it.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use netstead_model::{Ident, Key, Scope, Span};
use netstead_plan::{Entry, Inventory, Now, Presence, ScopeState, SourceState, grace_passed_between};
use netstead_store::Write;
use serde::Serialize;

use crate::{EngineError, fenced_store::FencedStore, keys};

/// A source's own key is written at least this often, so that its age survives a restart.
const REMEMBER: u64 = 60_000;

/// The durable part of the inventory.
#[derive(Debug)]
pub(crate) struct InventoryStore {
    fenced_store: FencedStore,
    /// As the store has it, but for what changes with every look.
    kept: Arc<Inventory>,
    /// When each source's own key was written.
    remembered: BTreeMap<Ident, u64>,
    /// Workloads that were gone already at some number of the inventory.
    gone: Option<(u64, HashSet<(Ident, Key)>)>,
    /// Every member reads scopes, so they are written.
    scopes: bool,
}

impl InventoryStore {
    /// Everything the store knows.
    pub(crate) async fn load(fenced_store: FencedStore) -> Result<(Self, Inventory), EngineError> {
        #[derive(Serialize)]
        struct Whole {
            sources: BTreeMap<String, SourceState>,
        }
        let mut sources: BTreeMap<String, SourceState> =
            fenced_store.all(keys::SOURCE).await?.into_iter().collect();
        for (place, entry) in fenced_store.all::<Entry>(keys::WORKLOAD).await? {
            let Some((source, _)) = place.split_once('/') else { continue };
            let state = sources.entry(source.to_owned()).or_default();
            state.entries.edit().insert(entry.workload.id.clone(), entry);
        }
        let damaged = |error: serde_json::Error| EngineError::Damaged {
            key: keys::SOURCE.into(),
            reason: error.to_string(),
        };
        let whole = serde_json::to_value(Whole { sources }).map_err(damaged)?;
        let inventory: Inventory = serde_json::from_value(whole).map_err(damaged)?;
        let kept = Arc::new(inventory.clone());
        let scopes = writes_scopes(&fenced_store).await;
        Ok((Self { fenced_store, kept, remembered: BTreeMap::new(), gone: None, scopes }, inventory))
    }

    /// Writes what is not in the store yet. What fails is written the next time.
    pub(crate) async fn save_changes(
        &mut self,
        newest: &Arc<Inventory>,
        now: Now,
        time: Write,
    ) -> Result<(), EngineError> {
        if !self.scopes && writes_scopes(&self.fenced_store).await {
            self.scopes = true;
            // Everything is written once more, now with its scope.
            (self.kept, self.remembered) = (Arc::default(), BTreeMap::new());
        }
        let mut writes = Vec::new();
        let mut written = Vec::new();
        let names: BTreeSet<&Ident> =
            newest.sources().map(|(name, _)| name).chain(self.kept.sources().map(|(name, _)| name)).collect();
        for name in names {
            let (old, new) = (self.kept.source(name), newest.source(name));
            let stale = self.remembered.get(name).is_none_or(|at| now.millis.saturating_sub(*at) >= REMEMBER);
            match new {
                None => writes.push(Write::Delete(format!("{}{name}", keys::SOURCE).into_bytes())),
                Some(new) if stale || old.is_none_or(|old| source_changed(old, new)) => {
                    let value = keys::encode(&without_workloads(new, self.scopes));
                    writes.push(Write::Put(format!("{}{name}", keys::SOURCE).into_bytes(), value));
                    written.push(name.clone());
                }
                Some(_) => {}
            }
            workload_writes(name, old, new, self.scopes, &mut writes);
        }
        if !writes.is_empty() {
            writes.push(time);
            self.fenced_store.put(writes).await?;
        }
        self.remembered.extend(written.into_iter().map(|name| (name, now.millis)));
        self.kept = newest.clone();
        Ok(())
    }

    /// Forgets workloads that have been gone for long and are no longer a reason for any value.
    ///
    /// A pass that began before something went may still make it a reason, so only what was gone when the passes that
    /// are finished now had not yet begun is forgotten. `number` is the inventory's, `passed` the lowest a finished
    /// pass began with.
    pub(crate) fn prune(
        &mut self,
        inventory: &mut Inventory,
        number: u64,
        passed: u64,
        longest: Span,
        now: Now,
        reasons: impl FnOnce() -> HashSet<(Ident, Key)>,
    ) {
        if let Some((at, gone)) = self.gone.take() {
            if passed < at {
                self.gone = Some((at, gone));
                return;
            }
            let reasons = if gone.is_empty() { HashSet::new() } else { reasons() };
            inventory.prune(longest, now, |source, id| {
                let place = (source.clone(), id.clone());
                !gone.contains(&place) || reasons.contains(&place)
            });
        }
        let gone = inventory.sources().flat_map(|(name, state)| {
            let cleaned = |entry: &Entry| {
                state.cleaned || state.scopes.get(&entry.scope).is_some_and(|scope| scope.cleaned)
            };
            let is_gone = move |entry: &Entry| cleaned(entry) || entry.presence != Presence::Present;
            let gone = state.entries.iter().filter(move |(_, entry)| is_gone(entry));
            gone.map(|(id, _)| (name.clone(), id.clone()))
        });
        self.gone = Some((number, gone.collect()));
    }
}

/// Writes for the changed workloads of one source.
fn workload_writes(
    name: &Ident,
    old: Option<&SourceState>,
    new: Option<&SourceState>,
    scopes: bool,
    writes: &mut Vec<Write>,
) {
    if let (Some(old), Some(new)) = (old, new)
        && old.entries.is_shared_with(&new.entries)
    {
        return;
    }
    let key = |id: &Key| format!("{}{name}/{id}", keys::WORKLOAD).into_bytes();
    for (id, entry) in new.iter().flat_map(|new| &new.entries) {
        let known = old.and_then(|old| old.entries.get(id));
        if known.is_none_or(|known| !is_same(known, entry)) {
            let value = if scopes || entry.scope.is_whole() {
                keys::encode(entry)
            } else {
                keys::encode(&Entry { scope: Scope::WHOLE, ..entry.clone() })
            };
            writes.push(Write::Put(key(id), value));
        }
    }
    let lacks = |id: &Key| new.is_none_or(|new| !new.entries.contains_key(id));
    let gone = old.iter().flat_map(|old| old.entries.keys()).filter(|id| lacks(id));
    writes.extend(gone.map(|id| Write::Delete(key(id))));
}

/// Whether what is known about a workload is the same, but for what begins anew with the next leader anyway.
fn is_same(old: &Entry, new: &Entry) -> bool {
    let presence = match (&old.presence, &new.presence) {
        (Presence::Absent(old), Presence::Absent(new)) => {
            (old.since, old.confirmed) == (new.since, new.confirmed)
        }
        (old, new) => old == new,
    };
    let mut former = old.former.iter().zip(&new.former);
    presence
        && (old.first, old.config, &old.scope) == (new.first, new.config, &new.scope)
        && old.workload == new.workload
        && old.former.len() == new.former.len()
        && former.all(|(old, new)| {
            let absence = |absence: netstead_plan::Absence| (absence.since, absence.confirmed);
            old.workload == new.workload
                && old.config == new.config
                && absence(old.absence) == absence(new.absence)
        })
}

/// Whether the source's state changed, ignoring timestamps.
fn source_changed(old: &SourceState, new: &SourceState) -> bool {
    let flags =
        |state: &SourceState| (state.fresh, state.commanded, state.detached, state.cleaned, state.movable);
    old.view != new.view
        || flags(old) != flags(new)
        || (old.config, old.form, old.configured_at) != (new.config, new.form, new.configured_at)
        || (old.suspect, old.together) != (new.suspect, new.together)
        || old.unread_roster != new.unread_roster
        || old.rules != new.rules
        || scopes_changed(old, new)
}

fn scopes_changed(old: &SourceState, new: &SourceState) -> bool {
    old.scopes.len() != new.scopes.len()
        || old.scopes.iter().zip(&new.scopes).any(|((one, old), (other, new))| {
            let facts = |scope: &ScopeState| (scope.fresh, scope.suspect, scope.standing, scope.cleaned);
            one != other || old.view != new.view || facts(old) != facts(new) || old.config != new.config
        })
}

/// Whether providers have something new to plan; one of `graces` that passed is something new.
pub(crate) fn inventory_changed(old: &Inventory, new: &Inventory, graces: &[Span]) -> bool {
    old.sources().count() != new.sources().count()
        || new.sources().any(|(name, new)| {
            let Some(old) = old.source(name) else { return true };
            source_changed(old, new) || entries_changed(old, new) || grace_passed_between(old, new, graces)
        })
}

fn entries_changed(old: &SourceState, new: &SourceState) -> bool {
    if old.entries.is_shared_with(&new.entries) {
        return false;
    }
    old.entries.len() != new.entries.len()
        || old
            .entries
            .iter()
            .zip(&new.entries)
            .any(|((one, old), (other, new))| one != other || !is_same(old, new))
}

/// A source without its workloads. While a member knows no scopes, it is written as version 0.1.0 did: as its worst scope.
fn without_workloads(state: &SourceState, scopes: bool) -> SourceState {
    let mut bare = state.clone();
    bare.entries = netstead_plan::Entries::default();
    if !scopes {
        bare.scopes.clear();
        (bare.together, bare.unread_roster, bare.movable) = (None, None, false);
    }
    bare
}

/// Whether all members of the cluster read scopes: the store has format 2, or no member ever wrote a format.
async fn writes_scopes(fenced_store: &FencedStore) -> bool {
    match fenced_store.get_bytes(keys::STORE_FORMAT).await {
        Ok(Some(value)) => {
            let format = std::str::from_utf8(&value).ok().and_then(|text| text.parse::<u32>().ok());
            format.is_some_and(|format| format >= keys::SCOPES_SINCE)
        }
        Ok(None) => true,
        Err(_) => false,
    }
}
