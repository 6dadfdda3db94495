//! The inventory beside a naive model that counts every absence by itself, for any sequence of reports by scope.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use netstead_model::{Ident, Report, Roster, Scope, ScopeReport, Seen, View, Workload};
use netstead_plan::{Digest, Inventory, Now, ReportArrival, ReportOutcome, SourceConfig, SourceRules};
use proptest::prelude::*;

use crate::{scopes::scope, world::*};

const SCOPES: usize = 3;
const GRACE: u64 = 300_000;

/// The word of a report about one scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Complete,
    Partial,
    Failed,
    /// In the roster, without a view.
    Nothing,
    /// Not in the roster.
    Unlisted,
}

#[derive(Debug, Clone)]
enum Happens {
    /// Seconds pass; then a report comes. Each workload is in one scope, or nowhere.
    Report {
        after: u64,
        says: [Says; SCOPES],
        places: Vec<Option<usize>>,
        roster: bool,
    },
    Reconnects,
    TakesOver,
}

fn happens() -> impl Strategy<Value = Happens> {
    let says = prop_oneof![
        12 => Just(Says::Complete), 1 => Just(Says::Partial), 2 => Just(Says::Failed), 1 => Just(Says::Nothing),
        1 => Just(Says::Unlisted)
    ];
    let place = prop_oneof![1 => Just(None), 5 => (0..SCOPES).prop_map(Some)];
    let report = (1u64..200, [says.clone(), says.clone(), says], prop::collection::vec(place, 14), 0u8..12);
    prop_oneof![
        20 => report.prop_map(|(after, says, places, roster)| Happens::Report {
            after, says, places, roster: roster > 0
        }),
        1 => Just(Happens::Reconnects),
        1 => Just(Happens::TakesOver),
    ]
}

/// One workload, as the naive model sees it.
#[derive(Debug, Clone)]
struct Naive {
    scope: usize,
    present: bool,
    waited: u64,
    reports: u32,
    confirmed: bool,
}

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct NaiveScope {
    known: bool,
    listed: bool,
    complete: bool,
    fresh: bool,
    last: u64,
    session: u64,
    suspect: Option<(u64, u32)>,
}

#[derive(Debug, Clone, Default)]
struct Model {
    movable: bool,
    unread: bool,
    scopes: [NaiveScope; SCOPES],
    together: Option<(u64, u32)>,
    workloads: BTreeMap<usize, Naive>,
}

impl Model {
    fn settled(&self, at: usize) -> bool {
        let own = |scope: &NaiveScope| scope.complete && scope.fresh && scope.suspect.is_none();
        let all = || !self.unread && self.scopes.iter().all(|scope| !scope.listed || own(scope));
        own(&self.scopes[at]) && self.together.is_none() && (!self.movable || all())
    }

    fn restart(&mut self, at: usize, now: u64) {
        for one in self.workloads.values_mut().filter(|one| one.scope == at) {
            (one.waited, one.reports) = (0, 0);
        }
        if let Some(suspect) = &mut self.scopes[at].suspect {
            *suspect = (now, 0);
        }
    }

    fn take_over(&mut self, now: u64) {
        for at in 0..SCOPES {
            self.restart(at, now);
            self.scopes[at].fresh = false;
        }
        if let Some(suspect) = &mut self.together {
            *suspect = (now, 0);
        }
    }

    fn report(
        &mut self,
        says: [Says; SCOPES],
        places: &[Option<usize>],
        roster: bool,
        session: u64,
        now: u64,
    ) {
        let settled: Vec<bool> = (0..SCOPES).map(|at| self.settled(at)).collect();
        self.unread =
            !roster && (self.scopes.iter().any(|scope| scope.known) || says.iter().any(|one| viewed(*one)));
        let mut complete = [None; SCOPES];
        for at in 0..SCOPES {
            let scope = &mut self.scopes[at];
            let listed = viewed(says[at]) || (roster && says[at] == Says::Nothing);
            if listed {
                (scope.known, scope.listed) = (true, true);
                complete[at] = Some(says[at] == Says::Complete);
            } else if scope.known && roster {
                // Missing from a roster that was read: nothing is in it.
                scope.listed = false;
                complete[at] = Some(true);
                if !self.workloads.values().any(|one| one.scope == at) {
                    *scope = NaiveScope::default();
                    complete[at] = None;
                }
            } else if scope.known {
                complete[at] = Some(false);
            }
        }
        let all =
            !self.unread && (0..SCOPES).all(|at| !self.scopes[at].listed || complete[at].unwrap_or(false));
        for at in 0..SCOPES {
            let Some(complete) = complete[at] else { continue };
            let counts = complete && (all || !self.movable);
            if self.scopes[at].session != session {
                self.restart(at, now);
            }
            let step = if self.scopes[at].session == session && settled[at] {
                now - self.scopes[at].last
            } else {
                0
            };
            for one in self.workloads.values_mut().filter(|one| one.scope == at && !one.present && counts) {
                one.waited += step;
                one.reports += 1;
            }
        }
        for (id, place) in places.iter().enumerate() {
            let seen = place.filter(|at| matches!(says[*at], Says::Complete | Says::Partial));
            let fresh = |scope| Naive { scope, present: true, waited: 0, reports: 0, confirmed: false };
            if let Some(at) = seen {
                self.workloads.insert(id, fresh(at));
            } else if let Some(one) = self.workloads.get_mut(&id)
                && one.present
                && complete[one.scope] == Some(true)
            {
                let counts = all || !self.movable;
                *one = Naive { present: false, reports: u32::from(counts), ..fresh(one.scope) };
            }
        }
        for (at, complete) in complete.iter().enumerate() {
            let Some(complete) = *complete else { continue };
            let scope = &mut self.scopes[at];
            (scope.complete, scope.fresh) = (complete, scope.fresh || complete);
            (scope.last, scope.session) = (now, session);
        }
        self.suspect(complete, now);
    }

    fn suspect(&mut self, complete: [Option<bool>; SCOPES], now: u64) {
        let judge = |before: Option<(u64, u32)>, present: usize, missing: usize| {
            let of = present + missing;
            if of < 5 || missing * 2 < of {
                return (None, false);
            }
            let (since, polls) = before.unwrap_or((now, 0));
            if polls + 1 >= 3 && now - since >= 300_000 {
                (None, true)
            } else {
                (Some((since, polls + 1)), false)
            }
        };
        let count = |workloads: &BTreeMap<usize, Naive>, of: &dyn Fn(usize) -> bool| {
            let own = workloads.values().filter(|one| of(one.scope));
            own.fold((0, 0), |(present, missing), one| {
                (present + usize::from(one.present), missing + usize::from(!one.present && !one.confirmed))
            })
        };
        let mut any = false;
        for at in (0..SCOPES).filter(|at| complete[*at] == Some(true)) {
            any = true;
            let (present, missing) = count(&self.workloads, &|scope| scope == at);
            let (suspect, confirmed) = judge(self.scopes[at].suspect, present, missing);
            self.scopes[at].suspect = suspect;
            if confirmed {
                self.workloads
                    .values_mut()
                    .filter(|one| one.scope == at)
                    .for_each(|one| one.confirmed = true);
            }
        }
        if !any {
            return;
        }
        let counted: BTreeSet<usize> =
            (0..SCOPES).filter(|at| self.scopes[*at].complete && self.scopes[*at].fresh).collect();
        let (present, missing) = count(&self.workloads, &|scope| counted.contains(&scope));
        let (suspect, confirmed) =
            if counted.len() < 2 { (None, false) } else { judge(self.together, present, missing) };
        self.together = suspect;
        if confirmed {
            let own = self.workloads.values_mut().filter(|one| counted.contains(&one.scope));
            own.for_each(|one| one.confirmed = true);
        }
    }

    /// The workloads that may still be there, each with whether it is present.
    fn alive(&self) -> BTreeMap<String, bool> {
        let gone =
            |one: &Naive| !one.present && self.settled(one.scope) && one.waited >= GRACE && one.reports >= 2;
        let alive = self.workloads.iter().filter(|(_, one)| !gone(one));
        alive.map(|(id, one)| (format!("w{id}"), one.present)).collect()
    }
}

fn viewed(says: Says) -> bool {
    matches!(says, Says::Complete | Says::Partial | Says::Failed)
}

/// A source that sends only changes where it can.
#[derive(Debug, Default)]
struct Changes {
    /// By scope, the number and the workloads of the last report, if that was Complete.
    base: BTreeMap<Scope, (u64, BTreeSet<usize>)>,
    number: u64,
}

impl Changes {
    fn shrink(&mut self, report: &mut Report, ids: &BTreeMap<Scope, BTreeSet<usize>>) {
        self.number += 1;
        self.base.retain(|scope, _| report.scopes.contains_key(scope));
        for (name, seen) in &mut report.scopes {
            seen.version = self.number;
            let now = ids.get(name).cloned().unwrap_or_default();
            let before = self.base.remove(name);
            if seen.view != View::Complete {
                continue;
            }
            if let Some((since, before)) = before {
                let changed = now.difference(&before).map(|id| Arc::new(workload(*id))).collect();
                let removed = before.difference(&now).map(|id| workload(*id).id).collect();
                seen.seen = Seen::Changes { since, changed, removed };
            }
            self.base.insert(name.clone(), (self.number, now));
        }
    }
}

fn workload(id: usize) -> Workload {
    vm(&format!("w{id}"), &[&format!("10.0.0.{id}")])
}

fn named(at: usize) -> Scope {
    scope(["a", "b", "c"][at])
}

fn pve() -> Ident {
    "pve".parse().unwrap()
}

fn alive(inventory: &Inventory, now: Now) -> BTreeMap<String, bool> {
    let grace = netstead_plan::Grace::default();
    inventory.alive(&pve(), grace, now).iter().map(|one| (one.id.to_string(), one.present)).collect()
}

fn report(
    says: [Says; SCOPES],
    places: &[Option<usize>],
    roster: bool,
    now: Now,
) -> (Report, BTreeMap<Scope, BTreeSet<usize>>) {
    let mut ids: BTreeMap<Scope, BTreeSet<usize>> = BTreeMap::new();
    for (id, at) in places.iter().enumerate().filter_map(|(id, at)| Some((id, (*at)?))) {
        ids.entry(named(at)).or_default().insert(id);
    }
    let views = (0..SCOPES).filter(|at| viewed(says[*at])).map(|at| {
        let own = || ids.get(&named(at)).into_iter().flatten().map(|id| workload(*id));
        let seen = match says[at] {
            Says::Complete => ScopeReport::all(View::Complete, own()),
            Says::Partial => ScopeReport::all(View::Partial { reason: "half".into() }, own()),
            _ => ScopeReport::failed("down"),
        };
        (named(at), seen)
    });
    let mut report = Report::of(pve(), now.at, views);
    let listed = (0..SCOPES).filter(|at| says[*at] != Says::Unlisted).map(named).collect();
    report.roster =
        if roster { Roster::Complete(listed) } else { Roster::Partial { reason: "no list".into() } };
    (report, ids)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn clocks_count_like_a_model_that_counts_every_absence(
        events in prop::collection::vec(happens(), 1..60),
        movable in any::<bool>(),
    ) {
        let mut world = World::new();
        let (rules, commanded) = (SourceRules::default(), false);
        let config = SourceConfig { config: Digest::of(["one"]), commanded, movable, rules };
        let now = world.now();
        world.inventory.configure(&BTreeMap::from([(pve(), config)]), now);
        let mut sparse = world.inventory.clone();
        let mut model = Model { movable, ..Model::default() };
        let mut changes = Changes::default();
        for event in events {
            match event {
                Happens::Reconnects => {
                    world.session += 1;
                    changes.base.clear();
                }
                Happens::TakesOver => {
                    let now = world.wait(1).now();
                    world.inventory.take_over(now);
                    sparse.take_over(now);
                    model.take_over(now.millis);
                    changes.base.clear();
                }
                Happens::Report { after, says, places, roster } => {
                    let now = world.wait(after).now();
                    let (full, ids) = report(says, &places, roster, now);
                    let look = ReportArrival { now, began: now.millis, session: world.session };
                    let mut few = full.clone();
                    changes.shrink(&mut few, &ids);
                    prop_assert_eq!(world.inventory.ingest(full, look), ReportOutcome::Accepted);
                    prop_assert_eq!(sparse.ingest(few, look), ReportOutcome::Accepted);
                    // Before any scope is known, a report that shows none is one of a source that failed.
                    let blind = !roster && says.iter().all(|one| !viewed(*one)) && model.scopes.iter().all(|one| !one.known);
                    if !blind {
                        model.report(says, &places, roster, world.session, now.millis);
                    }
                }
            }
            let (now, expected) = (world.now(), model.alive());
            prop_assert_eq!(&alive(&world.inventory, now), &expected, "shown in full");
            prop_assert_eq!(&alive(&sparse, now), &expected, "shown by its changes");
            let text = serde_json::to_string(&world.inventory).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Inventory>(&text).unwrap(), &world.inventory);
        }
    }
}
