//! Puts a report into the inventory: what is present and what is absent, scope by scope.

mod scope_looks;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use netstead_model::{Key, Report, Scope, Workload};
use serde::{Deserialize, Serialize};

use self::scope_looks::{Listed, ScopeLook};
use super::{Entry, Former, Inventory, Presence, ScopeState, SourceState, entry::asks_the_same};
use crate::Now;

/// When a report came, when it was begun, and through which connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportArrival {
    pub now: Now,
    /// Engine time at which the source was asked: what it says is at least as new as this.
    pub began: u64,
    /// Another number means that source or Netstead connected anew: every grace starts again.
    pub session: u64,
}

/// The outcome of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportOutcome {
    /// Begun before the present leader, the present configuration or the newest report: not looked at.
    Stale,
    Accepted,
    /// Accepted, but a scope sent changes to something that is not known here: it must show everything.
    Unbased,
}

impl Inventory {
    /// Takes what a source saw. Only a Complete scope makes anything absent, and only of itself.
    pub fn ingest(&mut self, report: Report, look: ReportArrival) -> ReportOutcome {
        let known = self.sources.get(&report.source);
        let floor = known.map_or(0, |state| state.configured_at).max(self.led_since);
        if look.began < known.map_or(0, |state| state.began).max(floor) {
            return ReportOutcome::Stale;
        }
        self.sources.entry(report.source.clone()).or_default().apply_report(report, look, floor)
    }
}

/// The workloads that a report shows, each with the scope that shows it.
type Shown = BTreeMap<Key, (Scope, Arc<Workload>)>;

impl SourceState {
    fn apply_report(&mut self, report: Report, look: ReportArrival, floor: u64) -> ReportOutcome {
        let (now, begun) = (look.now, report.begun);
        let settled: BTreeSet<Scope> =
            self.scopes.keys().filter(|scope| self.settled_in(scope)).cloned().collect();
        let (mut looks, unbased) = self.scope_looks(report, look, floor);
        let shown = self.shown(&mut looks);
        self.tick(&looks, &settled, now);
        for (id, (scope, workload)) in &shown {
            let Some(seen) = looks.get(scope) else { continue };
            self.mark_present(id, scope, workload, seen.begun, seen.counts, now);
        }
        self.mark_absent(&looks, &shown, now);
        self.mark_ended(&looks, &shown, now);
        let mut complete = Vec::new();
        for (name, seen) in looks {
            let Some(scope) = self.scopes.get_mut(&name) else { continue };
            if seen.view.is_complete() {
                scope.fresh = true;
                scope.last_complete = Some(seen.last);
                scope.complete_at = Some(seen.begun);
                complete.push(name);
            }
            (scope.view, scope.begun, scope.began) = (seen.view, seen.begun, seen.began);
            (scope.last, scope.session) = (seen.last, seen.session);
            (scope.version, scope.based) = (seen.version, seen.based);
        }
        self.update_suspicion(&complete, now);
        (self.began, self.session) = (look.began, look.session);
        // Those of its worst scope, if it has any.
        (self.begun, self.last) = (begun, now.millis);
        self.summarise();
        if unbased { ReportOutcome::Unbased } else { ReportOutcome::Accepted }
    }

    /// The workloads by id. Of two with one id the choice does not depend on their order, and one that its own scope still
    /// shows stays there.
    fn shown(&self, looks: &mut BTreeMap<Scope, ScopeLook>) -> Shown {
        let mut shown = Shown::new();
        for (scope, look) in looks {
            let own = |id: &Key| self.entries.get(id).is_some_and(|entry| entry.scope == *scope);
            for workload in std::mem::take(&mut look.workloads) {
                match shown.get(&workload.id) {
                    Some((at, other)) if at == scope && format!("{other:?}") <= format!("{workload:?}") => {}
                    Some((at, _)) if at != scope && !own(&workload.id) => {}
                    _ => drop(shown.insert(workload.id.clone(), (scope.clone(), workload))),
                }
            }
        }
        shown
    }

    /// Lets the clocks run on, before anything begins to be absent. Time counts for scopes that were `settled` until now.
    fn tick(&mut self, looks: &BTreeMap<Scope, ScopeLook>, settled: &BTreeSet<Scope>, now: Now) {
        for (name, look) in looks {
            let Some(scope) = self.scopes.get_mut(name) else { continue };
            if scope.session != look.session {
                let based = look.based;
                scope.restart(now);
                scope.based = based;
            } else if look.counts && settled.contains(name) {
                let step = look.last.saturating_sub(scope.last);
                scope.clock.time = scope.clock.time.saturating_add(step);
            }
            scope.clock.reports = scope.clock.reports.saturating_add(u64::from(look.counts));
        }
    }

    fn mark_present(
        &mut self,
        id: &Key,
        scope: &Scope,
        workload: &Arc<Workload>,
        begun: Timestamp,
        counts: bool,
        now: Now,
    ) {
        let config = self.config;
        let Some(entry) = self.entries.get(id) else {
            let entry = Entry {
                workload: Arc::clone(workload),
                scope: scope.clone(),
                first: now.millis,
                first_at: begun,
                last_at: begun,
                config,
                presence: Presence::Present,
                former: Vec::new(),
                asked: BTreeMap::new(),
            };
            return self.insert(id.clone(), entry);
        };
        let changed = *entry.workload != **workload;
        let stays = entry.presence == Presence::Present && entry.config == config && entry.scope == *scope;
        // A scope that is not Complete says of what it lists that it was seen; a Complete one says so of all.
        let seen_alone = !counts && entry.last_at != begun;
        if stays && !changed && !seen_alone {
            return;
        }
        self.change(id, |entry, scopes| {
            let Some(state) = scopes.get(scope) else { return };
            if entry.scope != *scope {
                // Its earlier versions are counted by the clocks of another scope now.
                entry.scope.clone_from(scope);
                entry.former.iter_mut().for_each(|former| former.absence.from = state.clock);
            }
            if changed {
                replace(entry, Arc::clone(workload), state, counts, now);
            }
            entry.presence = Presence::Present;
            (entry.last_at, entry.config) = (begun, config);
        });
    }

    /// Marks what Complete scopes do not show, and what scopes say is no longer there.
    fn mark_absent(&mut self, looks: &BTreeMap<Scope, ScopeLook>, shown: &Shown, now: Now) {
        let mut absent: Vec<Key> = Vec::new();
        let whole = |entry: &Entry| looks.get(&entry.scope).is_some_and(|look| look.listed == Listed::All);
        if looks.values().any(|look| look.listed == Listed::All) {
            let missed = self.entries.iter().filter(|(id, entry)| {
                entry.presence == Presence::Present && !shown.contains_key(*id) && whole(entry)
            });
            absent.extend(missed.map(|(id, _)| id.clone()));
        }
        for (scope, look) in looks {
            let own = |id: &&Key| self.entries.get(*id).is_some_and(|entry| entry.scope == *scope);
            absent.extend(look.removed.iter().filter(|id| !shown.contains_key(*id)).filter(own).cloned());
        }
        for id in absent {
            self.change(&id, |entry, scopes| {
                let Some(scope) = scopes.get(&entry.scope) else { return };
                if entry.presence != Presence::Present {
                    return;
                }
                let counts = looks.get(&entry.scope).is_some_and(|look| look.counts);
                entry.last_at = scope.complete_at.map_or(entry.last_at, |at| at.max(entry.last_at));
                entry.presence = Presence::Absent(scope.absence(now, counts));
            });
        }
    }

    /// Marks the workloads whose end their own scope saw.
    fn mark_ended(&mut self, looks: &BTreeMap<Scope, ScopeLook>, shown: &Shown, now: Now) {
        for (scope, look) in looks {
            for ended in &look.ended {
                let Some(entry) = self.entries.get(&ended.id) else { continue };
                // It ended and is back, or runs in another scope now.
                let elsewhere = entry.scope != *scope && !self.is_unassigned(&entry.scope);
                if shown.contains_key(&ended.id) || elsewhere {
                    continue;
                }
                let presence = match (&entry.presence, ended.asked) {
                    (Presence::Asked, _) | (Presence::Ended { .. }, false) => continue,
                    (_, true) => Presence::Asked,
                    (_, false) => Presence::Ended { since: now.millis },
                };
                self.change(&ended.id, |entry, _| entry.presence = presence);
            }
        }
    }
}

/// A new version; the old one becomes a tombstone if it asked for something else.
fn replace(entry: &mut Entry, workload: Arc<Workload>, scope: &ScopeState, counts: bool, now: Now) {
    entry.note_names(&workload, scope, now);
    let old = std::mem::replace(&mut entry.workload, workload);
    let new = &entry.workload;
    entry.former.retain(|former| !asks_the_same(&former.workload, new));
    if old.unclear && !new.unclear {
        // Meanwhile it was unknown what it no longer asks for: that counts from now on.
        entry.former.iter_mut().for_each(|former| former.absence.from = scope.clock);
    }
    if !asks_the_same(&old, new) {
        // Under another configuration of its source it may well ask for something else by itself.
        let (absence, config) = (scope.absence(now, counts), entry.config);
        entry.former.push(Former { workload: old, absence, config });
    }
}
