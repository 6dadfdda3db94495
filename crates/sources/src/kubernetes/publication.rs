//! [`Publication`]: the workloads of one scope as they were reported, and what changed since.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use netstead_model::{Ended, Key, ScopeReport, Seen, View, Workload};

#[derive(Debug, Default)]
pub(super) struct Publication {
    workloads: BTreeMap<Key, Arc<Workload>>,
    /// Since the last report.
    changed: BTreeSet<Key>,
    removed: BTreeSet<Key>,
    ended: BTreeSet<Key>,
    version: u64,
    /// The engine has the version before.
    based: bool,
}

impl Publication {
    /// Notes the workload of an object as it is now.
    pub(super) fn set(&mut self, id: Key, fresh: Option<Workload>) {
        match fresh {
            Some(fresh) if self.workloads.get(&id).is_some_and(|known| **known == fresh) => {}
            Some(fresh) => {
                self.workloads.insert(id.clone(), Arc::new(fresh));
                self.removed.remove(&id);
                self.changed.insert(id);
            }
            None => {
                if self.workloads.remove(&id).is_some() {
                    self.changed.remove(&id);
                    self.removed.insert(id);
                }
            }
        }
    }

    /// Notes objects whose end was seen.
    pub(super) fn end(&mut self, ids: impl IntoIterator<Item = Key>) {
        self.ended.extend(ids);
    }

    /// Shows everything in the next report.
    pub(super) fn show_all(&mut self) {
        self.based = false;
    }

    /// The report of the scope: everything, or what changed since the report before.
    pub(super) fn report(&mut self, view: View, session: u64) -> ScopeReport {
        let (changed, removed) = (std::mem::take(&mut self.changed), std::mem::take(&mut self.removed));
        // An object that was made anew did not end.
        let ended = std::mem::take(&mut self.ended).into_iter().filter(|id| !self.workloads.contains_key(id));
        let ended = ended.map(|id| Ended { id, asked: false }).collect();
        let since = self.version;
        if !changed.is_empty() || !removed.is_empty() || !self.based {
            self.version = self.version.wrapping_add(1);
        }
        let seen = if self.based {
            let changed = changed.iter().filter_map(|id| self.workloads.get(id).cloned()).collect();
            Seen::Changes { since, changed, removed: removed.into_iter().collect() }
        } else {
            Seen::All(self.workloads.values().cloned().collect())
        };
        self.based = true;
        ScopeReport { session, version: self.version, seen, ended, ..ScopeReport::shared(view, Vec::new()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(id: &str, why: &str) -> Workload {
        let id: Key = id.parse().unwrap();
        Workload { why_not: vec![why.to_owned()], ..Workload::new("k".parse().unwrap(), id, "ingress", "x") }
    }

    fn key(id: &str) -> Key {
        id.parse().unwrap()
    }

    #[test]
    fn one_change_among_many_is_reported_alone() {
        let mut scope = Publication::default();
        for id in ["a", "b", "c"] {
            scope.set(key(id), Some(workload(id, "1")));
        }
        let first = scope.report(View::Complete, 0);
        assert_eq!((first.version, first.seen.workloads().len()), (1, 3));
        let same = scope.report(View::Complete, 0);
        let nothing = Seen::Changes { since: 1, changed: Vec::new(), removed: Vec::new() };
        assert_eq!((same.version, same.seen), (1, nothing));
        scope.set(key("b"), Some(workload("b", "2")));
        scope.set(key("c"), Some(workload("c", "1")));
        scope.set(key("a"), None);
        scope.end([key("a"), key("c")]);
        let third = scope.report(View::Complete, 0);
        let changed = vec![Arc::new(workload("b", "2"))];
        assert_eq!(third.seen, Seen::Changes { since: 1, changed, removed: vec![key("a")] });
        assert_eq!((third.version, third.ended), (2, vec![Ended { id: key("a"), asked: false }]));
        scope.show_all();
        assert_eq!(scope.report(View::Complete, 0).seen.workloads().len(), 2);
    }
}
