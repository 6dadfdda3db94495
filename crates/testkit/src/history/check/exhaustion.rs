//! Checks that a pool which answered `Exhausted` may have been full at that moment.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{
    super::{
        Action, Outcome, Pool, Violation,
        spans::{Moment, NEVER, Span},
    },
    Checker, listed,
};

/// Holdings that are possible in a pool, and when.
struct Room<'a> {
    pool: &'a Pool,
    /// Each holding that was seen, as long as it can have been.
    seen: Vec<(Arc<str>, Arc<str>, Span)>,
    /// Keys that may have held an address that no client saw, except while they must have held another one.
    unseen: Vec<(Arc<str>, Span, Vec<Span>)>,
}

impl Checker<'_> {
    pub(super) fn exhaustions(&mut self, pools: &[Pool]) {
        let ends = self.known_ends();
        let looks = self.last_looks();
        let mut found = Vec::new();
        for pool in pools {
            let room = self.room(pool, &ends, &looks);
            for (operation, span) in self.each() {
                let (Action::Claim { key, .. }, Outcome::Exhausted) = (&operation.action, &operation.outcome)
                else {
                    continue;
                };
                if !pool.has(key) {
                    continue;
                }
                let most = room.most(key, span, &self.must_hold(key));
                if most.is_none_or(|most| most < pool.size) {
                    let operation = Box::new(operation.clone());
                    found.push(Violation::NotFull { operation, held: most, size: pool.size });
                }
            }
        }
        self.violations.extend(found);
    }

    /// When this key held an address in every order.
    fn must_hold(&self, key: &Arc<str>) -> Vec<Span> {
        self.covers(listed(&self.by_key, key)).map(|(_, cover)| cover).collect()
    }

    /// By when holdings had ended, as those saw who looked for them once they had begun.
    fn known_ends(&self) -> HashMap<Arc<str>, Moment> {
        let mut ends: HashMap<Arc<str>, Moment> = HashMap::new();
        for (operation, span) in self.each() {
            let begun =
                |id: &&Arc<str>| self.holdings.get(*id).is_some_and(|holding| holding.first_end <= span.from);
            for id in self.missed(operation).iter().filter(begun) {
                let end = ends.entry(Arc::clone(id)).or_insert(NEVER);
                *end = span.to.min(*end);
            }
        }
        ends
    }

    /// The last start of a look at a key, or at all keys that start like this, that got an answer.
    fn last_looks(&self) -> Vec<(Arc<str>, bool, Moment)> {
        let mut looks: HashMap<(Arc<str>, bool), Moment> = HashMap::new();
        for (operation, span) in self.each() {
            let place = match (&operation.action, &operation.outcome) {
                (Action::Claim { key, .. }, Outcome::Holds(_))
                | (Action::ReadKey { key }, Outcome::Holds(_) | Outcome::Nothing) => (Arc::clone(key), false),
                (Action::List { prefix }, Outcome::All(_)) => (Arc::clone(prefix), true),
                _ => continue,
            };
            let last = looks.entry(place).or_default();
            *last = span.from.max(*last);
        }
        looks.into_iter().map(|((place, all), last)| (place, all, last)).collect()
    }

    fn room<'p>(
        &self,
        pool: &'p Pool,
        ends: &HashMap<Arc<str>, Moment>,
        looks: &[(Arc<str>, bool, Moment)],
    ) -> Room<'p> {
        let seen = self.holdings.values().filter(|holding| pool.has(&holding.held.key)).map(|holding| {
            let end = ends.get(&holding.held.id).copied().unwrap_or(NEVER);
            let span = Span { from: holding.earliest_begin(), to: holding.latest_end().min(end) };
            (Arc::clone(&holding.held.key), Arc::clone(&holding.held.address), span)
        });
        let unseen = self.unknown_claims.iter().filter(|(key, _)| pool.has(key)).map(|(key, starts)| {
            let first = starts.iter().min().copied().unwrap_or(NEVER);
            // A release names the id. So a holding that no client saw never ends: a later look would have shown it.
            let at = |place: &str, all: bool| if all { key.starts_with(place) } else { &**key == place };
            let looked = looks.iter().filter(|(place, all, _)| at(place, *all)).map(|(_, _, last)| *last);
            let span = Span { from: first.max(looked.max().unwrap_or_default()), to: NEVER };
            (Arc::clone(key), span, self.must_hold(key))
        });
        Room { pool, seen: seen.collect(), unseen: unseen.collect() }
    }
}

impl Room<'_> {
    /// The most addresses that others than `key` can have held at one moment of `span` at which `key` need not have held
    /// one itself; `None` if there is no such moment. `own` is when it must have.
    ///
    /// A moment here is the time right after a rank, up to the next.
    fn most(&self, key: &Arc<str>, span: Span, own: &[Span]) -> Option<usize> {
        let near = |of: &Arc<str>, stretch: &Span| of != key && stretch.overlaps(span);
        let seen: Vec<_> = self.seen.iter().filter(|(of, _, stretch)| near(of, stretch)).collect();
        let unseen: Vec<_> = self.unseen.iter().filter(|(of, stretch, _)| near(of, stretch)).collect();
        // More can only be held where something begins, or where a key is done with something else.
        let begins = seen.iter().map(|(_, _, stretch)| stretch.from);
        let begins = begins.chain(unseen.iter().map(|(_, stretch, _)| stretch.from));
        let others = unseen.iter().flat_map(|(_, _, others)| others);
        let moments = begins.chain(others.chain(own).map(|cover| cover.to)).chain([span.from]);
        let free = moments.filter(|at| span.has(*at) && !held_at(own, *at));
        free.map(|at| {
            let seen = seen.iter().filter(|(_, _, stretch)| stretch.has(at));
            let held: HashSet<&str> = seen.map(|(_, address, _)| &**address).collect();
            let unseen = unseen.iter().filter(|(_, stretch, others)| stretch.has(at) && !held_at(others, at));
            (held.len() + unseen.count()).min(self.pool.size)
        })
        .max()
    }
}

fn held_at(covers: &[Span], at: Moment) -> bool {
    covers.iter().any(|cover| cover.has(at))
}
