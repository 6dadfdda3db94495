//! One source over time: its scopes, its configuration, and all workloads it reported.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use netstead_model::{Key, Scope, View};
use serde::{Deserialize, Serialize};

use super::{Clock, Entries, Entry, Presence, ScopeState, Suspicion, scope::Counts};
use crate::{Digest, Now, SourceRules};

/// The form of the digests that this version makes: over the keys and values of a table as they are written.
const DIGEST_FORM: u8 = 1;

/// Facts about a source beside its reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceConfig {
    /// Over everything in the source's table.
    pub config: Digest,
    /// People say what is in it (`manual`, `ledger`): what it changes was asked for.
    #[serde(default)]
    pub commanded: bool,
    /// Workloads can move between its scopes: absence counts only while all of them are Complete.
    #[serde(default)]
    pub movable: bool,
    #[serde(default)]
    pub rules: SourceRules,
}

/// A source: its scopes, and everything it brought.
///
/// `view`, `begun`, `last`, `last_complete`, `fresh` and `suspect` are those of its worst scope. They are for people, and
/// stored for members of version 0.1.0, which know no scopes and then err on the safe side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct SourceState {
    pub view: View,
    pub begun: Timestamp,
    /// Engine time at which the newest report was begun, which a clock set back does not move.
    pub began: u64,
    pub last: u64,
    pub last_complete: Option<u64>,
    pub session: u64,
    pub config: Digest,
    /// The form of `config`; 0 is that of version 0.1.0, over the settings as that version understood them.
    pub form: u8,
    /// Engine time; reports begun before this were made under another configuration.
    pub configured_at: u64,
    /// Every scope gave a Complete report to the present leader.
    pub fresh: bool,
    pub commanded: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub movable: bool,
    /// Limits of the names and records the source may ask for.
    pub rules: SourceRules,
    pub detached: bool,
    pub cleaned: bool,
    pub suspect: Option<Suspicion>,
    /// Too much vanished from all Complete scopes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub together: Option<Suspicion>,
    /// Why the list of scopes could not be read completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread_roster: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub scopes: BTreeMap<Scope, ScopeState>,
    pub entries: Entries,
    /// Entries that are not there, or have earlier versions.
    #[serde(skip)]
    pub(super) tombstones: BTreeSet<Key>,
}

impl Default for SourceState {
    fn default() -> Self {
        Self {
            view: View::Failed { reason: "no report yet".into() },
            begun: Timestamp::MIN,
            began: 0,
            last: 0,
            last_complete: None,
            session: 0,
            config: Digest::of([""]),
            form: 0,
            configured_at: 0,
            fresh: false,
            commanded: false,
            movable: false,
            rules: SourceRules::default(),
            detached: false,
            cleaned: false,
            suspect: None,
            together: None,
            unread_roster: None,
            scopes: BTreeMap::new(),
            entries: Entries::default(),
            tombstones: BTreeSet::new(),
        }
    }
}

impl SourceState {
    pub(super) fn configure(&mut self, config: &SourceConfig, now: Now) {
        if self.form < DIGEST_FORM {
            self.replace_digest(config.config);
        }
        if self.config != config.config {
            self.config = config.config;
            self.configured_at = now.millis;
        }
        (self.commanded, self.movable) = (config.commanded, config.movable);
        self.rules.clone_from(&config.rules);
        self.cleaned = false;
    }

    /// Takes over a digest of an older form, which cannot be compared, as equal: an upgrade alone is no new configuration.
    fn replace_digest(&mut self, new: Digest) {
        let old = std::mem::replace(&mut self.config, new);
        self.form = DIGEST_FORM;
        for scope in self.scopes.values_mut().filter(|scope| scope.config == old) {
            scope.config = new;
        }
        for entry in self.entries.edit().values_mut() {
            let former = entry.former.iter_mut().map(|former| &mut former.config);
            for digest in former.chain([&mut entry.config]) {
                if *digest == old {
                    *digest = new;
                }
            }
        }
    }

    /// A new leader begins: no scope has reported yet, and every clock starts at zero.
    pub(super) fn take_over(&mut self, now: Now) {
        self.fresh = false;
        self.began = self.began.min(now.millis);
        if let Some(suspect) = &mut self.together {
            suspect.restart(now);
        }
        for scope in self.scopes.values_mut() {
            (scope.fresh, scope.began) = (false, scope.began.min(now.millis));
            scope.clock = Clock::default();
            scope.restart(now);
        }
        for id in self.tombstones.clone() {
            self.change(&id, |entry, _| {
                let own =
                    if let Presence::Absent(absence) = &mut entry.presence { Some(absence) } else { None };
                let former = entry.former.iter_mut().map(|former| &mut former.absence);
                former.chain(own).for_each(|absence| absence.from = Clock::default());
            });
        }
        if !self.scopes.is_empty() {
            self.summarise();
        }
        self.fresh = false;
    }

    /// The scope of an entry.
    pub fn scope_of(&self, entry: &Entry) -> Option<&ScopeState> {
        self.scopes.get(&entry.scope)
    }

    /// When a workload was last seen: a Complete report shows all that are present.
    pub fn last_seen(&self, entry: &Entry) -> Timestamp {
        let complete = self.scope_of(entry).and_then(|scope| scope.complete_at);
        let complete = complete.filter(|_| entry.presence == Presence::Present);
        complete.map_or(entry.last_at, |complete| complete.max(entry.last_at))
    }

    /// The entries that are not there, or have earlier versions.
    pub fn tombstones(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.tombstones.iter().filter_map(|id| self.entries.get_key_value(id))
    }

    /// Changes one entry, and everything that is counted about it.
    pub(super) fn change(
        &mut self,
        id: &Key,
        change: impl FnOnce(&mut Entry, &mut BTreeMap<Scope, ScopeState>),
    ) {
        let Some(entry) = self.entries.edit().get_mut(id) else { return };
        count(&mut self.scopes, entry, false);
        change(entry, &mut self.scopes);
        count(&mut self.scopes, entry, true);
        index(&mut self.tombstones, id, entry);
    }

    pub(super) fn insert(&mut self, id: Key, entry: Entry) {
        count(&mut self.scopes, &entry, true);
        index(&mut self.tombstones, &id, &entry);
        self.entries.edit().insert(id, entry);
    }

    /// Counts everything again, after entries came or went beside [`SourceState::change`].
    pub(super) fn recount(&mut self) {
        self.scopes.values_mut().for_each(|scope| scope.counts = Counts::default());
        self.tombstones.clear();
        for (id, entry) in &self.entries {
            count(&mut self.scopes, entry, true);
            index(&mut self.tombstones, id, entry);
        }
    }

    /// Whether the absences of a scope may be believed now.
    pub(crate) fn settled_in(&self, scope: &Scope) -> bool {
        let settled = self.scopes.get(scope).is_some_and(ScopeState::settled);
        settled && self.together.is_none() && (!self.movable || self.all_settled())
    }

    /// Whether every absence may be believed now.
    pub(crate) fn settled(&self) -> bool {
        self.together.is_none() && self.all_settled()
    }

    fn all_settled(&self) -> bool {
        self.unread_roster.is_none()
            && !self.scopes.is_empty()
            && self.scopes.values().all(|scope| !scope.is_listed() || scope.settled())
    }

    /// Whether a person's word ended the scope.
    pub(crate) fn is_cleaned(&self, scope: &Scope) -> bool {
        self.cleaned || self.scopes.get(scope).is_some_and(|scope| scope.cleaned)
    }

    /// Shows the worst of the scopes as the source's own.
    pub(super) fn summarise(&mut self) {
        let listed = || self.scopes.iter().filter(|(_, scope)| scope.is_listed());
        let unread = self.unread_roster.as_ref();
        let mut view = match unread {
            Some(reason) if listed().next().is_none() => View::Failed { reason: reason.clone() },
            Some(reason) => View::Partial { reason: reason.clone() },
            None => View::Complete,
        };
        for (name, scope) in listed() {
            if *view.worse(&scope.view) != view {
                view = named(&scope.view, name);
            }
        }
        let begun = listed().map(|(_, scope)| scope.begun).min();
        let last = listed().map(|(_, scope)| scope.last).min();
        let complete = listed().map(|(_, scope)| scope.last_complete).min().flatten();
        let fresh = unread.is_none() && listed().all(|(_, scope)| scope.fresh);
        let of_scopes = self.scopes.values().filter_map(|scope| scope.suspect).max_by_key(|one| one.missing);
        if let (Some(begun), Some(last)) = (begun, last) {
            (self.begun, self.last, self.last_complete) = (begun, last, complete);
        }
        (self.suspect, self.view, self.fresh) = (self.together.or(of_scopes), view, fresh);
    }
}

/// The view of a scope as that of its source.
fn named(view: &View, scope: &Scope) -> View {
    if scope.is_whole() {
        return view.clone();
    }
    match view {
        View::Complete => View::Complete,
        View::Partial { reason } => View::Partial { reason: format!("{scope}: {reason}") },
        View::Failed { reason } => View::Failed { reason: format!("{scope}: {reason}") },
    }
}

fn count(scopes: &mut BTreeMap<Scope, ScopeState>, entry: &Entry, add: bool) {
    let Some(scope) = scopes.get_mut(&entry.scope) else { return };
    let step = |number: &mut usize, is: bool| {
        *number = if add { *number + usize::from(is) } else { number.saturating_sub(usize::from(is)) };
    };
    step(&mut scope.counts.entries, true);
    step(&mut scope.counts.present, entry.presence == Presence::Present);
    let missing = matches!(&entry.presence, Presence::Absent(absence) if !absence.confirmed);
    step(&mut scope.counts.missing, missing);
}

fn index(tombstones: &mut BTreeSet<Key>, id: &Key, entry: &Entry) {
    if entry.presence == Presence::Present && entry.former.is_empty() {
        tombstones.remove(id);
    } else if !tombstones.contains(id) {
        tombstones.insert(id.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Now {
        Now { millis, at: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn a_digest_of_an_older_form_counts_as_equal_once() {
        let digest = |text: &str| SourceConfig {
            config: Digest::of([text]),
            commanded: false,
            movable: false,
            rules: SourceRules::default(),
        };
        // As version 0.1.0 stored it.
        let mut state: SourceState =
            serde_json::from_value(serde_json::json!({ "config": Digest::of(["old"]), "configured_at": 7 }))
                .unwrap();
        state.configure(&digest("new"), at(100));
        assert_eq!((state.config, state.configured_at, state.form), (Digest::of(["new"]), 7, DIGEST_FORM));
        state.configure(&digest("newer"), at(200));
        assert_eq!((state.config, state.configured_at), (Digest::of(["newer"]), 200));
    }
}
