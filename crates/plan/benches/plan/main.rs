//! How long a pass thinks, in CPU time: `cargo bench -p netstead-plan`.
#![allow(clippy::unwrap_used, reason = "a bench is a test")]

use std::collections::BTreeMap;

use jiff::Timestamp;
use netstead_model::{Content, RecordSet, Report, UnitOutcome, View, Wish, Workload};
use netstead_plan::{
    Actual, ActualZone, Domains, Guard, Input, Inventory, Look, Now, Owned, Plan, Settings, after, desired,
    diff, intend,
};

struct Bench {
    inventory: Inventory,
    settings: Settings,
    actual: Actual,
    owned: Owned,
    guard: Guard,
    now: Now,
}

fn main() {
    println!(
        "{:>9}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}",
        "records", "first", "take", "desired", "diff", "unchanged", "one new"
    );
    for count in [1_000, 10_000, 100_000, 1_000_000] {
        run(count);
    }
}

fn run(count: u32) {
    let now = Now { millis: 1_000_000, at: Timestamp::UNIX_EPOCH };
    let settings =
        Settings::new("lan".parse().unwrap(), "blue".parse().unwrap(), vec!["example.com".parse().unwrap()]);
    let zones = ["example.com", "10.in-addr.arpa"];
    let zone = |name: &str| ActualZone { name: name.parse().unwrap(), serial: None, sets: Some(Vec::new()) };
    let actual = Actual { zones: zones.map(zone).to_vec() };
    let (inventory, owned, guard) = (Inventory::default(), Owned::default(), Guard::default());
    let mut bench = Bench { inventory, settings, actual, owned, guard, now };
    let mut workloads: Vec<Workload> = (0..count / 2).map(workload).collect();
    bench.take(workloads.clone());
    let (first, plan) = timed(|| bench.plan());
    assert_eq!(plan.steps.len(), workloads.len() * 2, "an A and a PTR each");
    bench.apply(&plan);
    let report = workloads.clone();
    let (take, ()) = timed(|| bench.take(report));
    let (wanting, wanted) =
        timed(|| desired(&bench.inventory, &bench.settings, &Domains::default(), &bench.owned, now));
    let (diffing, plan) = timed(|| bench.diff(&wanted));
    assert!(plan.is_empty());
    let (unchanged, _) = timed(|| bench.plan());
    workloads.push(workload(count));
    bench.take(workloads);
    let (one, plan) = timed(|| bench.plan());
    assert_eq!(plan.steps.len(), 2);
    println!(
        "{count:>9}  {first:>6}ms  {take:>6}ms  {wanting:>6}ms  {diffing:>6}ms  {unchanged:>7}ms  {one:>6}ms"
    );
}

/// Nanoseconds this thread has computed, which other work on the machine does not change.
fn cpu() -> u128 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn timed<T>(work: impl FnOnce() -> T) -> (u128, T) {
    let start = cpu();
    let result = work();
    ((cpu() - start) / 1_000_000, result)
}

impl Bench {
    fn take(&mut self, workloads: Vec<Workload>) {
        let (source, begun, ended) = ("pve".parse().unwrap(), self.now.at, Vec::new());
        let report = Report { source, view: View::Complete, begun, workloads, ended };
        self.inventory.take(report, Look { now: self.now, session: 1 });
    }

    fn plan(&self) -> Plan {
        self.diff(&desired(&self.inventory, &self.settings, &Domains::default(), &self.owned, self.now))
    }

    fn diff(&self, desired: &netstead_plan::Desired) -> Plan {
        let Self { actual, owned, guard, settings, now, .. } = self;
        diff(&Input { desired, actual, owned, guard, settings, now: *now, clean: false })
    }

    fn apply(&mut self, plan: &Plan) {
        intend(plan, &mut self.owned, &mut self.guard, self.now);
        let mut sets: BTreeMap<_, Vec<RecordSet>> = BTreeMap::new();
        for step in &plan.steps {
            let after = step.unit.changes.iter().filter_map(|change| change.after.clone());
            sets.entry(step.zone.clone()).or_default().extend(after);
        }
        for zone in &mut self.actual.zones {
            zone.sets = sets.remove(&zone.name);
        }
        let outcomes = vec![Some(UnitOutcome::Applied); plan.steps.len()];
        after(plan, &outcomes, &mut self.owned, &mut self.guard, &self.settings, self.now);
    }
}

fn workload(number: u32) -> Workload {
    let name = format!("host-{number}");
    let [_, a, b, c] = number.to_be_bytes();
    let wish = Wish {
        name: format!("{name}.example.com").parse().unwrap(),
        content: Content::Addresses(vec![format!("10.{a}.{b}.{c}").parse().unwrap()]),
        ttl: None,
        providers: Vec::new(),
        reason: "label".into(),
        adopt: false,
        share: false,
        main: true,
    };
    Workload {
        id: name.parse().unwrap(),
        source: "pve".parse().unwrap(),
        kind: "vm".into(),
        name,
        hostname: None,
        labels: BTreeMap::new(),
        tags: Vec::new(),
        interfaces: Vec::new(),
        wishes: vec![wish],
        why_not: Vec::new(),
    }
}
