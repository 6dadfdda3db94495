//! [`Inventory`]: the workloads of all sources over time, and which of them count as gone.

mod alive;
mod entry;
mod grace;
mod ingest;
mod redacted;
mod source;

use std::collections::BTreeMap;

use netstead_model::{Ident, Key, Span};
use serde::{Deserialize, Serialize};

pub(crate) use self::grace::GraceVerdict;
pub use self::{
    alive::{Alive, Grace},
    entry::{Absence, Entry, Former, Presence},
    ingest::{ReportArrival, ReportOutcome},
    source::{SourceConfig, SourceState, Suspicion},
};
use crate::Now;

/// What runs, by source and id, with what is known about things that are no longer seen. It is kept in the store:
/// counts, suspicion and tombstones outlive a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Engine time at which the present leader took over.
    #[serde(default)]
    led_since: u64,
    #[serde(default)]
    sources: BTreeMap<Ident, SourceState>,
}

/// So many old versions of one workload are kept as evidence once they are past grace.
const MOST_FORMER: usize = 8;

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
        for state in self.sources.values_mut() {
            state.fresh = false;
            state.began = state.began.min(now.millis);
            state.restart(now);
        }
    }

    /// Carries what `was` brought over to the source's new name. What the new name has seen itself is the later word.
    pub fn rename(&mut self, was: &Ident, name: &Ident) {
        let Some(old) = self.sources.remove(was) else { return };
        match self.sources.get_mut(name) {
            None => {
                self.sources.insert(name.clone(), old);
            }
            Some(state) => {
                for (id, entry) in old.entries {
                    state.entries.entry(id).or_insert(entry);
                }
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

    /// Forgets what has been gone for longer than every provider's grace, unless `keep` still needs it: as long as
    /// something is ours because of a workload, the evidence that it went stays.
    pub fn prune(&mut self, longest: Span, now: Now, keep: impl Fn(&Ident, &Key) -> bool) {
        for (name, state) in &mut self.sources {
            let settled = state.settled();
            state.entries.retain(|id, entry| {
                let gone = match &entry.presence {
                    _ if state.cleaned => true,
                    Presence::Present => false,
                    Presence::Absent(absence) => settled && absence.passed(longest),
                    Presence::Ended { since } => now.since(*since) >= longest,
                    Presence::Asked => true,
                };
                !gone || keep(name, id)
            });
            for entry in state.entries.values_mut() {
                let mut surplus = entry.former.len().saturating_sub(MOST_FORMER);
                entry.former.retain(|former| {
                    let old = former.absence.passed(longest)
                        && (surplus > 0 || now.since(former.absence.since) >= Span::from_secs(86_400));
                    surplus -= usize::from(old && surplus > 0);
                    !old
                });
            }
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
