//! A world to plan in: sources that say what a test wants, and a naive server.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use netstead_model::{
    Content, Ended, Name, RecordData, RecordSet, RecordType, Report, SetChange, Unit, UnitOutcome, View,
    Wish, Workload,
};
use netstead_plan::{
    Actual, ActualZone, Desired, Digest, Domains, Guard, Input, Inventory, Now, Owned, Plan, ReportArrival,
    Settings, SourceConfig, SourceRules, desired, diff, record_intent, record_outcome,
};

#[derive(Clone)]
pub struct World {
    pub settings: Settings,
    pub domains: Domains,
    pub inventory: Inventory,
    pub server: Server,
    pub owned: Owned,
    pub guard: Guard,
    pub millis: u64,
    pub session: u64,
}

/// A server that takes units one by one and checks what it is told to expect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server(pub BTreeMap<Name, BTreeMap<(Name, RecordType), RecordSet>>);

impl Server {
    pub fn actual(&self) -> Actual {
        let zone = |(name, sets): (&Name, &BTreeMap<_, RecordSet>)| ActualZone {
            name: name.clone(),
            sign: None,
            sets: Some(sets.values().cloned().collect()),
        };
        Actual { zones: self.0.iter().map(zone).collect() }
    }

    pub fn add(&mut self, zone: &str, name: &str, text: &str) {
        let value = data(text);
        let (name, kind) = (self::name(name), value.kind());
        let zone = self.0.get_mut(&self::name(zone)).unwrap();
        let set = zone.entry((name.clone(), kind)).or_insert_with(|| RecordSet::new(name, kind, 300, []));
        set.values.insert(value);
    }

    pub fn has(&self, name: &str, text: &str) -> bool {
        let value = data(text);
        let key = (self::name(name), value.kind());
        self.0.values().any(|zone| zone.get(&key).is_some_and(|set| set.values.contains(&value)))
    }

    pub fn write(&mut self, zone: &Name, unit: &Unit) -> UnitOutcome {
        let zone = self.0.get_mut(zone).unwrap();
        let place = |change: &SetChange| {
            let set = change.before.as_ref().or(change.after.as_ref()).unwrap();
            (set.name.clone(), set.kind)
        };
        if unit.changes.iter().any(|change| zone.get(&place(change)) != change.before.as_ref()) {
            return UnitOutcome::Changed;
        }
        for change in &unit.changes {
            let key = place(change);
            match &change.after {
                Some(set) => zone.insert(key, set.clone()),
                None => zone.remove(&key),
            };
        }
        let kinds: Vec<RecordType> =
            zone.keys().filter(|(name, _)| *name == unit.name).map(|(_, kind)| *kind).collect();
        assert!(kinds.len() < 2 || !kinds.contains(&RecordType::Cname), "an alias beside something else");
        UnitOutcome::Applied
    }

    /// Every value but marks.
    pub fn values(&self) -> BTreeSet<(Name, RecordData)> {
        let sets = self.0.values().flat_map(BTreeMap::values);
        let sets = sets.filter(|set| netstead_plan::marks::is_mark(set.name.as_str()).is_none());
        sets.flat_map(|set| set.values.iter().map(|value| (set.name.clone(), value.clone()))).collect()
    }
}

impl World {
    pub fn new() -> Self {
        let settings = Settings::new(
            "lan".parse().unwrap(),
            "blue".parse().unwrap(),
            vec!["example.com".parse().unwrap()],
        );
        let zones = ["example.com", "0.10.in-addr.arpa"];
        Self {
            settings,
            domains: Domains::default(),
            inventory: Inventory::default(),
            server: Server(zones.into_iter().map(|zone| (name(zone), BTreeMap::new())).collect()),
            owned: Owned::default(),
            guard: Guard::default(),
            millis: 1_000_000,
            session: 1,
        }
    }

    pub fn now(&self) -> Now {
        Now { millis: self.millis, at: at(self.millis) }
    }

    pub fn wait(&mut self, seconds: u64) -> &mut Self {
        self.millis += seconds * 1000;
        self
    }

    pub fn report(&mut self, source: &str, view: View, workloads: Vec<Workload>, ended: &[(&str, bool)]) {
        let ended =
            ended.iter().map(|(id, asked)| Ended { id: id.parse().unwrap(), asked: *asked }).collect();
        let (source, begun) = (source.parse().unwrap(), self.now().at);
        let report = Report::whole(source, begun, view, workloads).with_ended(ended);
        self.inventory.ingest(
            report,
            ReportArrival { now: self.now(), began: self.now().millis, session: self.session },
        );
    }

    /// A Complete report of the source `pve`.
    pub fn sees(&mut self, workloads: impl IntoIterator<Item = Workload>) -> &mut Self {
        self.report("pve", View::Complete, workloads.into_iter().collect(), &[]);
        self
    }

    /// The same report every minute, with a pass after each.
    pub fn goes_on(&mut self, minutes: u64, workloads: &[Workload]) -> &mut Self {
        for _ in 0..minutes {
            self.wait(60).sees(workloads.to_vec()).pass();
        }
        self
    }

    pub fn configure(&mut self, source: &str, config: &str, commanded: bool) {
        self.configure_with(source, config, commanded, SourceRules::default());
    }

    pub fn configure_with(&mut self, source: &str, config: &str, commanded: bool, rules: SourceRules) {
        let config = SourceConfig { config: Digest::of([config]), commanded, movable: false, rules };
        let now = self.now();
        self.inventory.configure(&BTreeMap::from([(source.parse().unwrap(), config)]), now);
    }

    pub fn desired(&self) -> Desired {
        let zones = self.server.actual().zone_tops(&self.settings);
        desired(&self.inventory, &self.settings, &self.domains, &zones, &self.owned, self.now())
    }

    pub fn plan(&self) -> Plan {
        self.plan_without(|_, _| None)
    }

    /// The plan for a server that cannot hold some values.
    pub fn plan_without(&self, cannot: impl Fn(&Name, &RecordData) -> Option<String>) -> Plan {
        let (mut desired, actual) = (self.desired(), self.server.actual());
        desired.refuse(&self.settings.provider, &self.owned, cannot);
        let Self { owned, guard, settings, .. } = self;
        let now = self.now();
        diff(&Input { desired: &desired, actual: &actual, owned, guard, settings, now, clean: false })
    }

    /// Plans and does it.
    pub fn pass(&mut self) -> Plan {
        let plan = self.plan();
        let now = self.now();
        let intent = record_intent(&plan, &mut self.owned, &mut self.guard, now);
        let outcomes: Vec<_> =
            plan.steps.iter().map(|step| self.server.write(&step.zone, &step.unit)).collect();
        record_outcome(&plan, &intent, &outcomes, &mut self.owned, &mut self.guard, &self.settings, now);
        plan
    }

    pub fn has(&self, name: &str, text: &str) -> bool {
        self.server.has(name, text)
    }
}

pub fn at(millis: u64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    start + SignedDuration::from_millis(i64::try_from(millis).unwrap())
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// `A 10.0.0.1`.
pub fn data(text: &str) -> RecordData {
    serde_json::from_value(text.into()).unwrap()
}

/// A workload without wishes.
pub fn bare(id: &str) -> Workload {
    Workload::new("pve".parse().unwrap(), id.parse().unwrap(), "vm", id)
}

pub fn wish(name: &str, addresses: &[&str]) -> Wish {
    Wish {
        name: self::name(name),
        content: Content::Addresses(addresses.iter().map(|text| text.parse().unwrap()).collect()),
        ttl: None,
        providers: Vec::new(),
        reason: "label".into(),
        adopt: false,
        share: false,
        main: false,
        borrowed: false,
        moves: false,
        proxied: None,
        entrypoints: Vec::new(),
    }
}

pub fn exact(name: &str, values: &[&str]) -> Wish {
    let values: Vec<RecordData> = values.iter().map(|text| data(text)).collect();
    Wish { content: Content::Records { kind: values[0].kind(), values }, ..wish(name, &[]) }
}

/// A machine `id.example.com` at these addresses.
pub fn vm(id: &str, addresses: &[&str]) -> Workload {
    Workload { wishes: vec![wish(&format!("{id}.example.com"), addresses)], ..bare(id) }
}

/// Machines `w0` to `wN` at 10.0.0.N.
pub fn fleet(range: std::ops::Range<u8>) -> Vec<Workload> {
    range.map(|n| vm(&format!("w{n}"), &[&format!("10.0.0.{n}")])).collect()
}
