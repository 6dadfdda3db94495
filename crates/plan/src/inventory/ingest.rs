//! Puts a report into the inventory: what is present, what is absent, and whether the source is suspect.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use netstead_model::{Ident, Key, Report, Span, View, Workload};
use serde::{Deserialize, Serialize};

use super::{Absence, Entry, Former, Inventory, Presence, SourceState, Suspicion, entry::asks_the_same};
use crate::Now;

/// A source is suspect from this many workloads on, when half are missing…
const FEWEST: usize = 5;
/// …until it said so this often…
const POLLS: u32 = 3;
/// …over this time.
const DOUBT: Span = Span::from_secs(300);

/// When a report came, when it was begun, and through which connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportArrival {
    pub now: Now,
    /// Engine time at which the source was asked: what it says is at least as new as this.
    pub began: u64,
    /// Another number means that source or Netstead connected anew: every grace starts again.
    pub session: u64,
}

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportOutcome {
    /// Begun before the present leader, the present configuration or the newest report: not looked at.
    Stale,
    Accepted,
}

impl Inventory {
    /// Takes what a source saw. Only a Complete report makes anything absent, and only of its own source.
    pub fn ingest(&mut self, report: Report, look: ReportArrival) -> ReportOutcome {
        let known = self.sources.get(&report.source);
        let newest = known.map_or(0, |state| state.began.max(state.configured_at)).max(self.led_since);
        if look.began < newest {
            return ReportOutcome::Stale;
        }
        self.sources.entry(report.source.clone()).or_default().apply_report(report, look);
        ReportOutcome::Accepted
    }
}

impl SourceState {
    fn apply_report(&mut self, report: Report, look: ReportArrival) {
        let now = look.now;
        let mut step = Span::ZERO;
        if self.session != look.session {
            self.restart(now);
        } else if self.settled() {
            step = now.since(self.last);
        }
        let complete = report.view == View::Complete;
        let mut listed: BTreeSet<&Key> = BTreeSet::new();
        if !matches!(report.view, View::Failed { .. }) {
            let seen = by_id(report.workloads, &report.source);
            listed = report.ended.iter().map(|ended| &ended.id).filter(|id| seen.contains_key(*id)).collect();
            if complete {
                self.mark_absent(&seen, step, now);
            }
            for (id, workload) in seen {
                self.mark_present(id, workload, report.begun, complete, now);
            }
        }
        for ended in &report.ended {
            let Some(entry) = self.entries.get_mut(&ended.id) else { continue };
            match (&entry.presence, ended.asked) {
                // It ended and is back.
                _ if listed.contains(&ended.id) => {}
                (_, true) => entry.presence = Presence::Asked,
                (Presence::Ended { .. } | Presence::Asked, false) => {}
                (_, false) => entry.presence = Presence::Ended { since: now.millis },
            }
        }
        if complete {
            self.fresh = true;
            self.last_complete = Some(now.millis);
            self.update_suspicion(now);
        }
        (self.view, self.begun, self.began) = (report.view, report.begun, look.began);
        (self.last, self.session) = (now.millis, look.session);
    }

    /// What a Complete report does not have.
    fn mark_absent(&mut self, seen: &BTreeMap<Key, Workload>, step: Span, now: Now) {
        for (id, entry) in &mut self.entries {
            let now_seen = seen.get(id);
            // What it asks for cannot be told, so it cannot be told either what it no longer asks for.
            if now_seen.is_none_or(|workload| !workload.unclear) {
                entry.former.iter_mut().for_each(|former| former.absence.tick(step));
            }
            if now_seen.is_some() {
                continue;
            }
            match &mut entry.presence {
                Presence::Present => entry.presence = Presence::Absent(Absence::begin(now, true)),
                Presence::Absent(absence) => absence.tick(step),
                Presence::Ended { .. } | Presence::Asked => {}
            }
        }
    }

    fn mark_present(&mut self, id: Key, workload: Workload, begun: Timestamp, complete: bool, now: Now) {
        let config = self.config;
        let Some(entry) = self.entries.get_mut(&id) else {
            let (first, first_at, last_at) = (now.millis, begun, begun);
            let workload = Arc::new(workload);
            let (presence, former, asked) = (Presence::Present, Vec::new(), BTreeMap::new());
            let entry = Entry { workload, first, first_at, last_at, config, presence, former, asked };
            self.entries.insert(id, entry);
            return;
        };
        if *entry.workload != workload {
            replace(entry, workload, complete, now);
        }
        entry.presence = Presence::Present;
        entry.last_at = begun;
        entry.config = config;
    }

    /// Whether so much vanished, unseen, that the source must say so again.
    fn update_suspicion(&mut self, now: Now) {
        let mut present = 0usize;
        let mut missing = 0usize;
        for entry in self.entries.values() {
            match &entry.presence {
                Presence::Present => present += 1,
                Presence::Absent(absence) if !absence.confirmed => missing += 1,
                _ => {}
            }
        }
        let of = present + missing;
        if of < FEWEST || missing * 2 < of {
            self.suspect = None;
            return;
        }
        let before = self.suspect.unwrap_or(Suspicion { since: now.millis, polls: 0, missing: 0, of: 0 });
        let polls = before.polls.saturating_add(1);
        if polls < POLLS || now.since(before.since) < DOUBT {
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            self.suspect =
                Some(Suspicion { since: before.since, polls, missing: count(missing), of: count(of) });
            return;
        }
        self.suspect = None;
        for entry in self.entries.values_mut() {
            if let Presence::Absent(absence) = &mut entry.presence {
                absence.confirmed = true;
            }
        }
    }
}

/// The workloads of a report by id. Of two with one id the choice does not depend on their order.
fn by_id(workloads: Vec<Workload>, source: &Ident) -> BTreeMap<Key, Workload> {
    let mut seen: BTreeMap<Key, Workload> = BTreeMap::new();
    for mut workload in workloads {
        workload.source.clone_from(source);
        match seen.get(&workload.id) {
            Some(other) if format!("{other:?}") <= format!("{workload:?}") => {}
            _ => {
                seen.insert(workload.id.clone(), workload);
            }
        }
    }
    seen
}

/// A new version; the old one becomes a tombstone if it asked for something else.
fn replace(entry: &mut Entry, workload: Workload, complete: bool, now: Now) {
    entry.note_names(&workload, now);
    let old = std::mem::replace(&mut entry.workload, Arc::new(workload));
    let new = &entry.workload;
    entry.former.retain(|former| !asks_the_same(&former.workload, new));
    if !asks_the_same(&old, new) {
        // Under another configuration of its source it may well ask for something else by itself.
        let (absence, config) = (Absence::begin(now, complete), entry.config);
        entry.former.push(Former { workload: old, absence, config });
    }
}
