//! The same decision by trying every order: too slow for more than a few operations, and too simple to be wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Action, Held, Operation, Outcome};

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Ledger {
    held: BTreeMap<Arc<str>, Held>,
    used: BTreeSet<Arc<str>>,
    size: usize,
}

/// Whether some order explains all answers of one pool with `size` addresses. Holdings that no client saw are left out.
pub(super) fn possible(operations: &[Operation], size: usize) -> bool {
    let all: BTreeSet<Held> = operations
        .iter()
        .flat_map(|operation| match &operation.outcome {
            Outcome::Holds(held) => vec![held.clone()],
            Outcome::All(all) => all.clone(),
            _ => Vec::new(),
        })
        .collect();
    let waiting: BTreeSet<usize> = (0..operations.len()).collect();
    search(operations, &all, &waiting, &Ledger { size, ..Ledger::default() }, &mut BTreeSet::new())
}

type VisitedStates = BTreeSet<(BTreeSet<usize>, Ledger)>;

fn search(
    operations: &[Operation],
    all: &BTreeSet<Held>,
    waiting: &BTreeSet<usize>,
    ledger: &Ledger,
    seen: &mut VisitedStates,
) -> bool {
    // What got no answer need not have been done.
    if waiting.iter().all(|number| operations[*number].outcome == Outcome::Unknown) {
        return true;
    }
    if !seen.insert((waiting.clone(), ledger.clone())) {
        return false;
    }
    // Next may be whatever began before all that must still come had ended.
    let answered = waiting.iter().filter(|number| operations[**number].outcome != Outcome::Unknown);
    let first_end = answered.map(|number| operations[*number].end).min();
    waiting.iter().any(|number| {
        let operation = &operations[*number];
        if first_end.is_some_and(|end| operation.start > end) {
            return false;
        }
        let mut rest = waiting.clone();
        rest.remove(number);
        ledger.after(operation, all).iter().any(|next| search(operations, all, &rest, next, seen))
    })
}

impl Ledger {
    /// Every state this operation may leave behind, if its answer is right in this one.
    fn after(&self, operation: &Operation, all: &BTreeSet<Held>) -> Vec<Self> {
        let same = |is: bool| if is { vec![self.clone()] } else { Vec::new() };
        match (&operation.action, &operation.outcome) {
            (_, Outcome::Failed) => same(true),
            (Action::Claim { key, exact }, Outcome::Holds(held)) => {
                if held.key != *key || exact.as_ref().is_some_and(|exact| *exact != held.address) {
                    return Vec::new();
                }
                match self.held.get(key) {
                    Some(old) => same(old == held),
                    None => self.with(held),
                }
            }
            (Action::Claim { key, exact }, Outcome::Unknown) => match self.held.get(key) {
                Some(_) => same(true),
                None => all
                    .iter()
                    .filter(|held| {
                        held.key == *key && exact.as_ref().is_none_or(|exact| *exact == held.address)
                    })
                    .flat_map(|held| self.with(held))
                    .chain(same(true))
                    .collect(),
            },
            (Action::Claim { key, exact: None }, Outcome::Exhausted) => {
                same(!self.held.contains_key(key) && self.held.len() >= self.size)
            }
            (Action::Release { id, .. }, Outcome::Released) => self.without(id),
            (Action::Release { id, .. }, Outcome::Unknown) => {
                let done = self.without(id);
                if done.is_empty() { same(true) } else { done }
            }
            (Action::Release { id, .. } | Action::Renew { id, .. }, Outcome::Gone) => {
                same(self.held.values().all(|held| held.id != *id))
            }
            (Action::Renew { key, id }, Outcome::Holds(held)) => {
                same(held.id == *id && self.held.get(key) == Some(held))
            }
            (Action::ReadKey { key }, Outcome::Holds(held)) => same(self.held.get(key) == Some(held)),
            (Action::ReadKey { key }, Outcome::Nothing) => same(!self.held.contains_key(key)),
            (Action::ReadAddress { address }, Outcome::Holds(held)) => {
                same(held.address == *address && self.held.get(&held.key) == Some(held))
            }
            (Action::ReadAddress { address }, Outcome::Nothing) => {
                same(self.held.values().all(|held| held.address != *address))
            }
            (Action::List { prefix }, Outcome::All(all)) => {
                let here: BTreeSet<&Held> =
                    self.held.values().filter(|held| held.key.starts_with(&**prefix)).collect();
                same(here == all.iter().collect())
            }
            _ => same(operation.outcome == Outcome::Unknown),
        }
    }

    fn with(&self, new: &Held) -> Vec<Self> {
        if self.used.contains(&new.id) || self.held.values().any(|held| held.address == new.address) {
            return Vec::new();
        }
        let mut next = self.clone();
        next.used.insert(Arc::clone(&new.id));
        next.held.insert(Arc::clone(&new.key), new.clone());
        vec![next]
    }

    fn without(&self, id: &Arc<str>) -> Vec<Self> {
        let mut next = self.clone();
        next.held.retain(|_, held| held.id != *id);
        if next.held.len() == self.held.len() { Vec::new() } else { vec![next] }
    }
}
