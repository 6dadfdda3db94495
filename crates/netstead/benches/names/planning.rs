//! Thinking alone, in CPU time: what one pass over everything costs.

use std::collections::BTreeMap;

use netstead_model::{Clock as _, RecordSet, Report as Said, SystemClock, UnitOutcome, View, Workload};
use netstead_plan::{
    Actual, ActualZone, Domains, Guard, Input, Inventory, Now, Owned, Plan, ReportArrival, Settings, desired,
    diff, record_intent, record_outcome,
};

use crate::{
    engine_setup::{ZONE, settings, workload},
    report::{Report, median},
};

const SMALL: u32 = 10_000;
const USUAL: u32 = 100_000;
const LARGE: u32 = 1_000_000;

pub fn measure(report: &mut Report) {
    let before = resident();
    let mut usual = World::settled(USUAL);
    report.note(
        "memory per record: sources, server, ours",
        (resident() - before) / f64::from(USUAL),
        "bytes",
    );
    let small = World::settled(SMALL);
    let mut times: [Vec<f64>; 2] = Default::default();
    // Interleaved, so that a busy moment of the machine hits both.
    for _ in 0..5 {
        times[0].push(unchanged(&small));
        times[1].push(unchanged(&usual));
    }
    let [at_small, at_usual] = times.map(median);
    report.note("planning 10 000 unchanged records", at_small, "s CPU");
    report.judge("planning 100 000 unchanged records", at_usual, "s CPU", "under 0.5", at_usual < 0.5);
    let ratio = at_usual / at_small;
    report.judge("  10 times the records", ratio, "x", "within 12", ratio <= 12.0);
    usual.workloads.push(workload(USUAL));
    let workloads = usual.workloads.clone();
    let (take, ()) = timed(|| usual.ingest(workloads));
    let (one, plan) = timed(|| usual.plan());
    assert_eq!(plan.steps.len(), 2, "an A and a PTR");
    report.note("one new of 100 000: hearing of it", take, "s CPU");
    report.note("one new of 100 000: planning", one, "s CPU");
    report.note("  to planning without news", one / at_usual, "x");
    drop((usual, small));
    let large = World::settled(LARGE);
    let at_large = median((0..3).map(|_| unchanged(&large)).collect());
    report.note("planning 1 000 000 unchanged records", at_large, "s CPU");
    let ratio = at_large / at_usual;
    report.judge("  10 times the records again", ratio, "x", "within 12", ratio <= 12.0);
}

fn unchanged(world: &World) -> f64 {
    let (seconds, plan) = timed(|| world.plan());
    assert!(plan.is_empty());
    seconds
}

/// Everything that a plan is made of.
struct World {
    workloads: Vec<Workload>,
    inventory: Inventory,
    settings: Settings,
    actual: Actual,
    owned: Owned,
    guard: Guard,
    now: Now,
}

impl World {
    /// So many records, half of them PTR, all as they should be.
    fn settled(records: u32) -> Self {
        let now = Now { millis: 1_000_000, at: SystemClock.wall() };
        let zone = |name: &str| ActualZone::new(name.parse().expect("a name"), None, Some(Vec::new()));
        let mut world = Self {
            workloads: (0..records / 2).map(workload).collect(),
            inventory: Inventory::default(),
            settings: settings(),
            actual: Actual { zones: ["10.in-addr.arpa", ZONE].map(zone).to_vec() },
            owned: Owned::default(),
            guard: Guard::default(),
            now,
        };
        world.ingest(world.workloads.clone());
        let plan = world.plan();
        assert_eq!(plan.steps.len(), world.workloads.len() * 2, "an A and a PTR each");
        world.apply(&plan);
        world
    }

    fn ingest(&mut self, workloads: Vec<Workload>) {
        let (source, begun) = ("bench".parse().expect("a name"), self.now.at);
        let report = Said::whole(source, begun, View::Complete, workloads);
        self.inventory.ingest(report, ReportArrival { now: self.now, began: self.now.millis, session: 1 });
    }

    fn plan(&self) -> Plan {
        let Self { actual, owned, guard, settings, now, .. } = self;
        let zones = actual.zone_tops(settings);
        let desired = &desired(&self.inventory, settings, &Domains::default(), &zones, owned, *now);
        diff(&Input { desired, actual, owned, guard, settings, now: *now, clean: false })
    }

    fn apply(&mut self, plan: &Plan) {
        let intent = record_intent(plan, &mut self.owned, &mut self.guard, self.now);
        let mut sets: BTreeMap<_, Vec<RecordSet>> = BTreeMap::new();
        for step in &plan.steps {
            let after = step.unit.changes.iter().filter_map(|change| change.after.clone());
            sets.entry(step.zone.clone()).or_default().extend(after);
        }
        for zone in &mut self.actual.zones {
            *zone = ActualZone::new(zone.name.clone(), None, sets.remove(&zone.name));
        }
        let outcomes = vec![UnitOutcome::Applied; plan.steps.len()];
        record_outcome(plan, &intent, &outcomes, &mut self.owned, &mut self.guard, &self.settings, self.now);
    }
}

/// Seconds this thread has computed, which other work on the machine does not change.
#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux machine");
    let nanoseconds: u64 = text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    nanoseconds as f64 / 1e9
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = cpu();
    let result = work();
    (cpu() - start, result)
}

/// Bytes of memory this process has.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: f64 =
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).expect("a Linux machine");
    kilobytes * 1024.0
}
