//! Checks a history: the decision itself.

mod exhaustion;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{
    Action, Held, Operation, Outcome, Pool, Summary, Violation,
    holding::Holding,
    spans::{Moment, Span, gap, has_gap},
};

/// Decides whether `operations`, in any order, can have happened. The module says how. Only in `pools`, whose sizes are
/// known, is it judged whether there was no address left.
pub fn check(operations: &[Operation], pools: &[Pool]) -> Result<Summary, Vec<Violation>> {
    let mut checker = Checker::new(operations);
    checker.collect();
    checker.origins();
    checker.overlaps();
    checker.absences();
    checker.refusals();
    checker.exhaustions(pools);
    checker.lists();
    if checker.violations.is_empty() { Ok(checker.summary()) } else { Err(checker.violations) }
}

struct Checker<'a> {
    operations: &'a [Operation],
    /// Of each operation, as ranks.
    spans: Vec<Span>,
    holdings: HashMap<Arc<str>, Holding>,
    by_key: HashMap<Arc<str>, Vec<Arc<str>>>,
    by_address: HashMap<Arc<str>, Vec<Arc<str>>>,
    /// Starts of claims without an answer.
    unknown_claims: HashMap<Arc<str>, Vec<Moment>>,
    violations: Vec<Violation>,
}

impl<'a> Checker<'a> {
    fn new(operations: &'a [Operation]) -> Self {
        Self {
            operations,
            spans: ranks(operations),
            holdings: HashMap::new(),
            by_key: HashMap::new(),
            by_address: HashMap::new(),
            unknown_claims: HashMap::new(),
            violations: Vec::new(),
        }
    }

    fn each(&self) -> impl Iterator<Item = (&'a Operation, Span)> + use<'a> {
        let spans = self.spans.clone();
        self.operations.iter().zip(spans)
    }

    /// Learns of all holdings from what was seen of them, then of what ended them.
    fn collect(&mut self) {
        for (operation, span) in self.each() {
            if !fits(operation) {
                self.violations.push(Violation::WrongAnswer { operation: operation.clone().into() });
                continue;
            }
            match &operation.outcome {
                Outcome::Holds(held) => {
                    self.see(held, span, matches!(operation.action, Action::Claim { .. }));
                }
                Outcome::All(all) => {
                    for held in all {
                        self.see(held, span, false);
                    }
                }
                _ => {}
            }
        }
        for (operation, span) in self.each() {
            match (&operation.action, &operation.outcome) {
                (Action::Claim { key, .. }, Outcome::Unknown) => {
                    self.unknown_claims.entry(Arc::clone(key)).or_default().push(span.from);
                }
                (Action::Release { id, .. }, Outcome::Released) => {
                    let Some(holding) = self.holdings.get_mut(id) else {
                        // No client was ever given this id.
                        self.violations.push(Violation::WrongAnswer { operation: operation.clone().into() });
                        continue;
                    };
                    if holding.released.replace(span).is_some() {
                        self.violations.push(Violation::ReleasedTwice { id: Arc::clone(id) });
                    }
                }
                (Action::Release { id, .. }, Outcome::Unknown) => {
                    if let Some(holding) = self.holdings.get_mut(id) {
                        holding.unknown_release = holding.unknown_release.min(span.from);
                    }
                }
                _ => {}
            }
        }
    }

    fn see(&mut self, held: &Held, span: Span, by_claim: bool) {
        let holding = self.holdings.entry(Arc::clone(&held.id)).or_insert_with(|| {
            self.by_key.entry(Arc::clone(&held.key)).or_default().push(Arc::clone(&held.id));
            self.by_address.entry(Arc::clone(&held.address)).or_default().push(Arc::clone(&held.id));
            Holding::new(held.clone())
        });
        if holding.held != *held {
            let (first, second) = (holding.held.clone(), held.clone());
            self.violations.push(Violation::ReusedId { first, second });
            return;
        }
        holding.seen(span);
        if by_claim {
            holding.first_claim = holding.first_claim.min(span.from);
        }
    }

    /// Each holding was asked for, each request without an answer made at most one, and none was seen after its end.
    fn origins(&mut self) {
        for (key, ids) in &self.by_key {
            let mut starts = self.unknown_claims.get(key).cloned().unwrap_or_default();
            starts.sort_unstable();
            let mut orphans: Vec<(Moment, &Arc<str>)> = ids
                .iter()
                .filter_map(|id| Some((self.holdings.get(id)?.first_end, id)))
                .filter(|(first_end, id)| {
                    self.holdings.get(*id).is_some_and(|holding| holding.first_claim > *first_end)
                })
                .collect();
            orphans.sort_unstable();
            for (number, (first_end, id)) in orphans.into_iter().enumerate() {
                if starts.get(number).is_none_or(|start| *start > first_end)
                    && let Some(holding) = self.holdings.get(id)
                {
                    self.violations.push(Violation::FromNowhere { held: holding.held.clone() });
                }
            }
            // Any of them may have made any, so each may have begun when the first was sent.
            for id in ids {
                if let Some(holding) = self.holdings.get_mut(id) {
                    holding.unknown_claim =
                        starts.first().copied().filter(|start| *start < holding.first_end);
                }
            }
        }
        let late = self.holdings.values().filter(|holding| holding.last_start > holding.latest_end());
        self.violations.extend(late.map(|holding| Violation::StillThere { held: holding.held.clone() }));
    }

    /// Holdings of one key or one address do not overlap.
    fn overlaps(&mut self) {
        let mut found = Vec::new();
        for (key, ids) in &self.by_key {
            found.extend(self.clashes(ids).map(|(first, second)| Violation::TwoAddresses {
                key: Arc::clone(key),
                first,
                second,
            }));
        }
        for (address, ids) in &self.by_address {
            found.extend(self.clashes(ids).map(|(first, second)| Violation::TwoHolders {
                address: Arc::clone(address),
                first,
                second,
            }));
        }
        // One that needs a moment only finds it outside of the others of its key and of its address.
        for holding in self.holdings.values() {
            let Some(moment) = holding.moment() else { continue };
            let others = |ids: &[Arc<str>]| -> Vec<Span> {
                self.covers(ids).filter(|(id, _)| *id != &holding.held.id).map(|(_, span)| span).collect()
            };
            let of_key = others(listed(&self.by_key, &holding.held.key));
            let of_address = others(listed(&self.by_address, &holding.held.address));
            if has_gap(moment, of_key.iter().chain(&of_address).copied()) {
                continue;
            }
            let (ids, by_key) = if has_gap(moment, of_address) {
                (listed(&self.by_key, &holding.held.key), true)
            } else {
                (listed(&self.by_address, &holding.held.address), false)
            };
            let second = self.covers(ids).find(|(id, span)| *id != &holding.held.id && span.overlaps(moment));
            let Some(second) = second.and_then(|(id, _)| Some(self.holdings.get(id)?.held.clone())) else {
                continue;
            };
            let first = holding.held.clone();
            found.push(if by_key {
                Violation::TwoAddresses { key: Arc::clone(&first.key), first, second }
            } else {
                Violation::TwoHolders { address: Arc::clone(&first.address), first, second }
            });
        }
        self.violations.extend(found);
    }

    /// The time that each of these holdings must cover.
    fn covers<'s>(&'s self, ids: &'s [Arc<str>]) -> impl Iterator<Item = (&'s Arc<str>, Span)> + use<'s, 'a> {
        ids.iter().filter_map(|id| Some((id, self.holdings.get(id)?.must_cover()?)))
    }

    /// Pairs that must cover the same moment.
    fn clashes<'s>(&'s self, ids: &'s [Arc<str>]) -> impl Iterator<Item = (Held, Held)> + use<'s, 'a> {
        let mut covers: Vec<(Span, &Arc<str>)> = self.covers(ids).map(|(id, span)| (span, id)).collect();
        covers.sort_unstable();
        let mut pairs = Vec::new();
        let mut longest: Option<(Span, &Arc<str>)> = None;
        for (span, id) in covers {
            if let Some((before, other)) = longest
                && before.overlaps(span)
                && let (Some(first), Some(second)) = (self.holdings.get(other), self.holdings.get(id))
            {
                pairs.push((first.held.clone(), second.held.clone()));
            }
            if longest.is_none_or(|(before, _)| before.to < span.to) {
                longest = Some((span, id));
            }
        }
        pairs.into_iter()
    }

    /// The ids that an operation looked for and did not find.
    fn missed<'s>(&'s self, operation: &'s Operation) -> &'s [Arc<str>] {
        match (&operation.action, &operation.outcome) {
            (Action::ReadKey { key }, Outcome::Nothing) => listed(&self.by_key, key),
            (Action::ReadAddress { address }, Outcome::Nothing) => listed(&self.by_address, address),
            (Action::Release { id, .. } | Action::Renew { id, .. }, Outcome::Gone) => {
                std::slice::from_ref(id)
            }
            _ => &[],
        }
    }

    /// Checks that each read of nothing has a moment at which nothing was held.
    fn absences(&mut self) {
        for (operation, span) in self.each() {
            let covers: Vec<(Arc<str>, Span)> = self
                .covers(self.missed(operation))
                .filter(|(_, cover)| cover.overlaps(span))
                .map(|(id, cover)| (Arc::clone(id), cover))
                .collect();
            if has_gap(span, covers.iter().map(|(_, cover)| *cover)) {
                continue;
            }
            let held = covers.iter().filter_map(|(id, _)| Some(self.holdings.get(id)?.held.clone()));
            let held = held.collect();
            self.violations.push(Violation::Missing { seen_by: operation.clone().into(), held });
        }
    }

    /// Checks that each refused address may have been held by another key at that time.
    fn refusals(&mut self) {
        for (operation, span) in self.each() {
            let (Action::Claim { key, exact: Some(address) }, Outcome::Taken) =
                (&operation.action, &operation.outcome)
            else {
                continue;
            };
            let of_key = self.by_key.get(key).into_iter().flatten();
            let of_address = self.by_address.get(address).into_iter().flatten();
            let mut possible = of_key.chain(of_address).filter_map(|id| self.holdings.get(id));
            let held = possible.any(|holding| {
                let can = Span { from: holding.earliest_begin(), to: holding.latest_end() };
                // Its own key with just this address would have been given it.
                (holding.held.key != *key || holding.held.address != *address) && can.overlaps(span)
            });
            // A claim without an answer may hold anything, unseen.
            let unseen = || self.unknown_claims.values().flatten().any(|start| *start < span.to);
            if !held && !unseen() {
                self.violations.push(Violation::RefusedForNothing { operation: operation.clone().into() });
            }
        }
    }

    /// A list was true at one moment.
    fn lists(&mut self) {
        for (operation, span) in self.each() {
            let (Action::List { prefix }, Outcome::All(all)) = (&operation.action, &operation.outcome) else {
                continue;
            };
            let listed: BTreeMap<&str, &Held> = all.iter().map(|held| (&*held.id, held)).collect();
            let (mut span, mut covers) = (span, Vec::new());
            for (id, holding) in &self.holdings {
                if listed.contains_key(&**id) {
                    span.from = span.from.max(holding.earliest_begin());
                    span.to = span.to.min(holding.latest_end());
                } else if holding.held.key.starts_with(&**prefix) {
                    covers.extend(holding.must_cover());
                }
            }
            if span.from >= span.to || gap(span, &mut covers).is_none() {
                self.violations.push(Violation::TornList { operation: operation.clone().into() });
            }
        }
    }

    fn summary(&self) -> Summary {
        let count = |outcome: &Outcome| {
            self.operations.iter().filter(|operation| operation.outcome == *outcome).count()
        };
        Summary {
            operations: self.operations.len(),
            unknown: count(&Outcome::Unknown),
            failed: count(&Outcome::Failed),
            exhausted: count(&Outcome::Exhausted),
            holdings: self.holdings.len(),
        }
    }
}

/// The ids under a key or an address.
fn listed<'s>(all: &'s HashMap<Arc<str>, Vec<Arc<str>>>, of: &Arc<str>) -> &'s [Arc<str>] {
    all.get(of).map_or(&[], Vec::as_slice)
}

/// Whether an answer is about what was asked.
fn fits(operation: &Operation) -> bool {
    let held = match &operation.outcome {
        Outcome::Unknown | Outcome::Failed => return true,
        Outcome::Holds(held) => Some(held),
        _ => None,
    };
    match (&operation.action, &operation.outcome, held) {
        (Action::Claim { key, exact }, _, Some(held)) => {
            *key == held.key && exact.as_ref().is_none_or(|address| *address == held.address)
        }
        (Action::Renew { key, id }, _, Some(held)) => *key == held.key && *id == held.id,
        (Action::ReadKey { key }, _, Some(held)) => *key == held.key,
        (Action::ReadAddress { address }, _, Some(held)) => *address == held.address,
        (Action::Claim { .. }, Outcome::Taken, _)
        | (Action::Claim { exact: None, .. }, Outcome::Exhausted, _)
        | (Action::Release { .. }, Outcome::Released, _)
        | (Action::Release { .. } | Action::Renew { .. }, Outcome::Gone, _)
        | (Action::ReadKey { .. } | Action::ReadAddress { .. }, Outcome::Nothing, _)
        | (Action::List { .. }, Outcome::All(_), _) => true,
        _ => false,
    }
}

/// The start and end of each operation as its place among all starts and ends. Of what happens at the same time, starts
/// come first: operations that touch may have overlapped.
fn ranks(operations: &[Operation]) -> Vec<Span> {
    let mut moments: Vec<_> = operations
        .iter()
        .enumerate()
        .flat_map(|(number, operation)| [(operation.start, false, number), (operation.end, true, number)])
        .collect();
    moments.sort_unstable();
    let mut spans = vec![Span { from: 0, to: 0 }; operations.len()];
    for (rank, (_, is_end, number)) in (1..).zip(moments) {
        if let Some(span) = spans.get_mut(number) {
            if is_end {
                span.to = rank;
            } else {
                span.from = rank;
            }
        }
    }
    spans
}
