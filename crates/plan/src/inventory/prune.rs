//! Forgets workloads, earlier versions and scopes that have been gone for long.

use netstead_model::{Key, Scope, Span};

use super::{Presence, SourceState};
use crate::Now;

/// So many old versions of one workload are kept as evidence once they are past grace.
const MOST_FORMER: usize = 8;
/// For so long an old version is kept as evidence.
const FORMER_KEPT: Span = Span::from_secs(86_400);

impl SourceState {
    /// Whether a scope can be ended by hand: it shows nothing that would be back with the next report.
    pub fn may_clean(&self, scope: &Scope) -> bool {
        let ends = |scope: &super::ScopeState| self.detached || !scope.is_listed() || scope.view.is_failed();
        self.scopes.get(scope).is_some_and(ends)
    }

    pub(super) fn prune(&mut self, longest: Span, now: Now, keep: impl Fn(&Key) -> bool) {
        // A person's word ends what is present, too.
        let ended_by_hand = self.cleaned || self.scopes.values().any(|scope| scope.cleaned);
        let looked_at: Vec<Key> = if ended_by_hand {
            self.entries.keys().cloned().collect()
        } else {
            self.tombstones.iter().cloned().collect()
        };
        let gone: Vec<Key> =
            looked_at.into_iter().filter(|id| self.is_gone(id, longest, now) && !keep(id)).collect();
        if !gone.is_empty() {
            let entries = self.entries.edit();
            for id in &gone {
                entries.remove(id);
            }
            self.recount();
        }
        for id in self.tombstones.clone() {
            self.prune_former(&id, longest, now);
        }
        self.scopes.retain(|_, scope| scope.is_listed() || scope.workloads() > 0);
    }

    fn is_gone(&self, id: &Key, longest: Span, now: Now) -> bool {
        let Some(entry) = self.entries.get(id) else { return false };
        match &entry.presence {
            _ if self.is_cleaned(&entry.scope) => true,
            Presence::Present => false,
            Presence::Absent(absence) => {
                let passed = self.scope_of(entry).is_some_and(|scope| scope.passed(absence, longest));
                passed && self.settled_in(&entry.scope)
            }
            Presence::Ended { since } => now.since(*since) >= longest,
            Presence::Asked => true,
        }
    }

    fn prune_former(&mut self, id: &Key, longest: Span, now: Now) {
        let Some(entry) = self.entries.get(id) else { return };
        let Some(scope) = self.scope_of(entry) else { return };
        let mut surplus = entry.former.len().saturating_sub(MOST_FORMER);
        let mut old = Vec::new();
        for former in &entry.former {
            let is_old = scope.passed(&former.absence, longest)
                && (surplus > 0 || now.since(former.absence.since) >= FORMER_KEPT);
            surplus -= usize::from(is_old && surplus > 0);
            old.push(is_old);
        }
        if old.contains(&true) {
            let mut old = old.into_iter();
            self.change(id, |entry, _| entry.former.retain(|_| !old.next().unwrap_or(false)));
        }
    }
}
