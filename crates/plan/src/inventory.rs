//! [`Inventory`]: the workloads of all sources over time, and which of them count as gone.

mod alive;
mod due;
mod entries;
mod entry;
mod grace;
mod ingest;
mod prune;
mod redacted;
mod scope;
mod source;
mod suspicion;
mod upgrade;

use std::collections::BTreeMap;

use netstead_model::{Ident, Key, Scope, Span};
use serde::{Deserialize, Deserializer, Serialize};

pub(crate) use self::grace::GraceVerdict;
pub use self::{
    alive::{Alive, Grace},
    due::{WaitingForGrace, grace_passed_between},
    entries::Entries,
    entry::{Absence, Entry, Former, Presence},
    ingest::{ReportArrival, ReportOutcome},
    scope::{Clock, RetiredBy, ScopeState, Standing},
    source::{SourceConfig, SourceState},
    suspicion::Suspicion,
};
use crate::Now;

/// All workloads, by source and id, with those that are no longer seen. It is kept in the store:
/// counts, suspicion and tombstones outlive a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Engine time at which the present leader took over.
    #[serde(default)]
    led_since: u64,
    #[serde(default, deserialize_with = "upgraded")]
    sources: BTreeMap<Ident, SourceState>,
}

/// Reads sources as any version stored them.
fn upgraded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Ident, SourceState>, D::Error> {
    let mut sources = BTreeMap::<Ident, SourceState>::deserialize(deserializer)?;
    sources.values_mut().for_each(SourceState::upgrade);
    Ok(sources)
}

impl Inventory {
    /// Tells which sources are configured. One that is no longer is detached: what it brought stays.
    pub fn configure(&mut self, sources: &BTreeMap<Ident, SourceConfig>, now: Now) {
        for (name, state) in &mut self.sources {
            state.detached = !sources.contains_key(name);
        }
        for (name, config) in sources {
            self.sources.entry(name.clone()).or_default().configure(config, now);
        }
    }

    /// A new leader begins: only reports begun from now on count, and every grace runs anew.
    pub fn take_over(&mut self, now: Now) {
        self.led_since = now.millis;
        self.sources.values_mut().for_each(|state| state.take_over(now));
    }

    /// Carries what `was` brought over to the source's new name. What the new name has seen itself is the later word.
    pub fn rename(&mut self, was: &Ident, name: &Ident) {
        let Some(old) = self.sources.remove(was) else { return };
        match self.sources.get_mut(name) {
            None => {
                self.sources.insert(name.clone(), old);
            }
            Some(state) => {
                for (name, scope) in old.scopes {
                    state.scopes.entry(name).or_insert(scope);
                }
                for (id, entry) in &old.entries {
                    state.entries.edit().entry(id.clone()).or_insert_with(|| entry.clone());
                }
                state.recount();
            }
        }
    }

    /// A person wants everything gone that a detached source brought; also one of which only what is ours because of
    /// it is known. False if the source is configured.
    pub fn clean(&mut self, source: &Ident) -> bool {
        let unknown = || SourceState { detached: true, ..SourceState::default() };
        let state = self.sources.entry(source.clone()).or_insert_with(unknown);
        state.cleaned |= state.detached;
        state.cleaned
    }

    /// A person wants everything gone that one scope brought. False if the scope is looked at and shows something: then
    /// its workloads would be back with the next report.
    pub fn clean_scope(&mut self, source: &Ident, scope: &Scope) -> bool {
        let Some(state) = self.sources.get_mut(source) else { return false };
        let may = state.may_clean(scope);
        let Some(scope) = state.scopes.get_mut(scope) else { return false };
        scope.cleaned |= may;
        scope.cleaned
    }

    /// Forgets what has been gone for longer than every provider's grace, unless `keep` still needs it: as long as
    /// something is ours because of a workload, the evidence that it went stays.
    pub fn prune(&mut self, longest: Span, now: Now, keep: impl Fn(&Ident, &Key) -> bool) {
        for (name, state) in &mut self.sources {
            state.prune(longest, now, |id| keep(name, id));
        }
        self.sources.retain(|_, state| !(state.detached && state.entries.is_empty()));
    }

    pub fn source(&self, name: &Ident) -> Option<&SourceState> {
        self.sources.get(name)
    }

    pub fn sources(&self) -> impl Iterator<Item = (&Ident, &SourceState)> {
        self.sources.iter()
    }

    pub fn entry(&self, source: &Ident, id: &Key) -> Option<&Entry> {
        self.sources.get(source)?.entries.get(id)
    }
}
