//! Plans for IPAM systems: ownership per field, needs, guards that count workloads.

mod properties;

use std::collections::BTreeMap;

use crate::world::{World, bare};
use netstead_model::{
    FieldValue, Fields, Interface, IpamCapabilities, IpamObject, ObjectChange, ObjectKey, ObjectKind,
    ObjectMark, UnitOutcome, View, Workload, standard_kinds, standard_objects,
};
use netstead_plan::{
    Domains, Guard, Mode,
    ipam::{
        IpamClaim, IpamDesired, IpamInput, IpamPast, IpamPlan, IpamScope, IpamSettings, IpamWorld,
        OwnedField, OwnedObjects, ipam_desired, ipam_diff, ipam_rollback, record_object_intent,
        record_object_outcome,
    },
};

/// A naive IPAM system and everything that is planned from.
struct Ipam {
    world: World,
    settings: IpamSettings,
    claims: Vec<IpamClaim>,
    server: BTreeMap<u32, IpamObject>,
    next: u32,
    owned: OwnedObjects,
    guard: Guard,
}

fn can() -> IpamCapabilities {
    IpamCapabilities { kinds: standard_kinds(), most_units: None }
}

fn text(text: &str) -> FieldValue {
    FieldValue::Text(text.into())
}

/// A machine with one interface.
fn machine(id: &str, addresses: &[&str]) -> Workload {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    let interface = Interface { name: Some("eth0".into()), addresses, ..Interface::default() };
    Workload { interfaces: vec![interface], ..bare(id) }
}

fn key(kind: ObjectKind, id: &str, part: &str) -> ObjectKey {
    ObjectKey::new(kind, &"pve".parse().unwrap(), &id.parse().unwrap(), part)
}

impl Ipam {
    fn new() -> Self {
        let mut settings = IpamSettings::new("office".parse().unwrap(), "blue".parse().unwrap());
        settings.scope = IpamScope::All;
        let (claims, server, owned) = (Vec::new(), BTreeMap::new(), OwnedObjects::default());
        Self { world: World::new(), settings, claims, server, next: 1, owned, guard: Guard::default() }
    }

    fn sees(&mut self, workloads: &[Workload]) -> &mut Self {
        self.world.sees(workloads.to_vec());
        self
    }

    fn plan_for(&self, clean: bool) -> IpamPlan {
        let now = self.world.now();
        let can = can();
        let world = IpamWorld {
            inventory: &self.world.inventory,
            claims: Some(&self.claims),
            domains: &Domains::default(),
            can: &can,
            shape: &standard_objects,
        };
        let desired = ipam_desired(&world, &self.settings, &self.owned, now);
        let desired = if clean { IpamDesired::default() } else { desired };
        let actual: Vec<IpamObject> = self.server.values().cloned().collect();
        let (owned, guard, settings, can) = (&self.owned, &self.guard, &self.settings, &can);
        ipam_diff(&IpamInput { desired: &desired, actual: &actual, can, owned, guard, settings, now, clean })
    }

    fn plan(&self) -> IpamPlan {
        self.plan_for(false)
    }

    fn pass(&mut self) -> IpamPlan {
        let plan = self.plan();
        self.carry_out(&plan, |_| false);
        plan
    }

    /// Writes the plan; the server rejects the objects that `rejects` says.
    fn carry_out(&mut self, plan: &IpamPlan, rejects: impl Fn(&ObjectKey) -> bool) -> Vec<UnitOutcome> {
        let now = self.world.now();
        let before = record_object_intent(plan, &mut self.owned, &mut self.guard, now);
        let mut done: BTreeMap<ObjectKey, bool> = BTreeMap::new();
        let mut outcomes = Vec::new();
        for step in &plan.steps {
            let met = step.unit.needs.iter().all(|need| done.get(need).copied().unwrap_or(true));
            let outcome = if !met {
                UnitOutcome::NotTried
            } else if rejects(&step.unit.key) {
                UnitOutcome::Rejected { reason: "no".into() }
            } else {
                self.write(&step.unit.key, &step.unit.change)
            };
            done.insert(step.unit.key.clone(), outcome == UnitOutcome::Applied);
            outcomes.push(outcome);
        }
        let (owned, guard) = (&mut self.owned, &mut self.guard);
        record_object_outcome(plan, &before, &outcomes, owned, guard, &self.settings, now);
        outcomes
    }

    fn write(&mut self, key: &ObjectKey, change: &ObjectChange) -> UnitOutcome {
        match change {
            ObjectChange::Create { fields } => {
                let mark = Some(ObjectMark { owner: "blue".into(), key: key.clone() });
                let (id, fields) = (self.next.to_string(), fields.clone());
                self.server.insert(self.next, IpamObject { kind: key.kind.clone(), id, mark, fields });
                self.next += 1;
            }
            ObjectChange::Update { id, adopted, before, after } => {
                let object = self.server.get_mut(&id.parse().unwrap()).unwrap();
                assert_eq!(object.mark.is_none(), *adopted, "only an adopted object has no mark");
                object.mark = Some(ObjectMark { owner: "blue".into(), key: key.clone() });
                for (name, value) in before {
                    assert_eq!(object.fields.get(name), Some(value), "{key} {name}");
                    object.fields.remove(name);
                }
                for (name, value) in after {
                    assert_eq!(object.fields.insert(name.clone(), value.clone()), None, "{key} {name}");
                }
            }
            ObjectChange::Delete { id, .. } => {
                let gone = self.server.remove(&id.parse().unwrap()).unwrap();
                assert_eq!(gone.mark.map(|mark| mark.key), Some(key.clone()), "only marked objects go");
            }
        }
        UnitOutcome::Applied
    }

    fn foreign(&mut self, kind: ObjectKind, fields: Fields) {
        let id = self.next.to_string();
        self.server.insert(self.next, IpamObject { kind, id, mark: None, fields });
        self.next += 1;
    }

    fn at(&mut self, key: &ObjectKey) -> Option<&mut IpamObject> {
        self.server.values_mut().find(|object| object.mark.as_ref().is_some_and(|mark| mark.key == *key))
    }

    fn settle(&mut self) -> &mut Self {
        for _ in 0..3 {
            self.pass();
        }
        self
    }
}

#[test]
fn a_machine_comes_with_interface_address_and_primary_and_the_next_pass_writes_nothing() {
    let mut ipam = Ipam::new();
    ipam.sees(&[machine("v1", &["10.0.0.1"])]);
    let shown: Vec<String> = ipam.pass().to_string().lines().map(ToOwned::to_owned).collect();
    assert_eq!(
        shown,
        [
            "  + machine v1 name=v1 type=vm  vm v1 of pve",
            "  + interface eth0 of v1 machine=v1  vm v1 of pve",
            "  + address 10.0.0.1 interface=eth0 status=active  vm v1 of pve",
            "office: 3 to add, 0 to change, 0 to remove",
        ]
    );
    let plan = ipam.pass();
    let lines: Vec<_> = plan.steps.iter().flat_map(|step| &step.lines).map(|line| &line.text).collect();
    assert_eq!(lines, ["machine v1 primary_ip4: (empty) → 10.0.0.1"]);
    assert!(ipam.pass().is_empty());
}

#[test]
fn a_step_whose_need_failed_is_not_tried_and_nothing_of_it_is_ours() {
    let mut ipam = Ipam::new();
    ipam.sees(&[machine("v1", &["10.0.0.1"])]);
    let plan = ipam.plan();
    let outcomes = ipam.carry_out(&plan, |key| key.kind == ObjectKind::MACHINE);
    let rejected = UnitOutcome::Rejected { reason: "no".into() };
    assert_eq!(outcomes, [rejected, UnitOutcome::NotTried, UnitOutcome::NotTried]);
    assert_eq!(ipam.owned, OwnedObjects::default());
}

#[test]
fn a_value_of_others_is_drift_and_stays_and_an_empty_field_is_filled() {
    let mut ipam = Ipam::new();
    ipam.sees(&[machine("v1", &["10.0.0.1"])]).settle();
    let at = key(ObjectKind::MACHINE, "v1", "");
    ipam.at(&at).unwrap().fields.insert("name".into(), text("by hand"));
    ipam.at(&at).unwrap().fields.remove("type");
    ipam.at(&at).unwrap().fields.insert("comments".into(), text("rack 7"));
    let plan = ipam.pass();
    insta::assert_snapshot!(plan.steps[0].lines[0].text, @"machine v1 type: (empty) → vm");
    assert_eq!((plan.steps.len(), plan.drift.len()), (1, 1));
    ipam.sees(&[Workload { name: "renamed".into(), ..machine("v1", &["10.0.0.1"]) }]).settle();
    let fields = &ipam.at(&at).unwrap().fields;
    assert_eq!(fields.get("name"), Some(&text("by hand")));
    assert_eq!(fields.get("comments"), Some(&text("rack 7")));
}

#[test]
fn of_tags_only_our_own_are_changed() {
    let mut ipam = Ipam::new();
    let tagged = |tags: &[&str]| Workload {
        tags: tags.iter().map(ToString::to_string).collect(),
        ..machine("v1", &["10.0.0.1"])
    };
    ipam.sees(&[tagged(&["a", "b"])]).settle();
    let at = key(ObjectKind::MACHINE, "v1", "");
    let set = |tags: &[&str]| FieldValue::Set(tags.iter().map(ToString::to_string).collect());
    ipam.at(&at).unwrap().fields.insert("tags".into(), set(&["a", "b", "theirs"]));
    ipam.sees(&[tagged(&["b", "c"])]).settle();
    assert_eq!(ipam.at(&at).unwrap().fields.get("tags"), Some(&set(&["b", "c", "theirs"])));
    ipam.sees(&[tagged(&[])]).settle();
    assert_eq!(ipam.at(&at).unwrap().fields.get("tags"), Some(&set(&["theirs"])));
}

#[test]
fn an_object_of_others_blocks_ours_and_stays() {
    let mut ipam = Ipam::new();
    ipam.foreign(ObjectKind::ADDRESS, Fields::from([("address".into(), text("10.0.0.1/24"))]));
    ipam.sees(&[machine("v1", &["10.0.0.1"])]).settle();
    let blocked = ipam.plan().blocked;
    let why = "an object with the id 1 is there and not ours";
    assert_eq!(blocked.iter().map(|one| one.why.as_str()).collect::<Vec<_>>(), [why]);
    assert_eq!(ipam.server[&1].mark, None);
}

#[test]
fn an_object_that_a_person_lets_us_have_gets_the_mark_and_our_values_or_keeps_its_own() {
    for keep in [false, true] {
        let mut ipam = Ipam::new();
        let theirs = [("address".into(), text("10.0.0.1")), ("status".into(), text("dhcp"))];
        ipam.foreign(ObjectKind::ADDRESS, Fields::from(theirs));
        ipam.sees(&[machine("v1", &["10.0.0.1"])]).settle();
        let at = key(ObjectKind::ADDRESS, "v1", "10.0.0.1");
        let owned = ipam.owned.0.entry(at.clone()).or_default();
        owned.taken = Some("1".into());
        if keep {
            owned.accepted.insert("status".into(), text("dhcp"));
        } else {
            owned.fields.insert("status".into(), OwnedField::adopted(text("dhcp")));
        }
        ipam.settle();
        let status = if keep { "dhcp" } else { "active" };
        let object = ipam.at(&at).unwrap().clone();
        assert_eq!((object.id.as_str(), object.fields.get("status")), ("1", Some(&text(status))));
        assert!(object.fields.contains_key("interface"), "an empty field is filled");
        let plan = ipam.plan();
        assert!(plan.is_empty() && plan.drift.is_empty() && plan.blocked.is_empty(), "{plan}");
        assert_eq!(ipam.owned.0[&at].taken, None);
        // The value was never ours, so it is drift if it comes again.
        if !keep {
            ipam.at(&at).unwrap().fields.insert("status".into(), text("dhcp"));
            assert_eq!((ipam.pass().drift.len(), ipam.plan().steps.len()), (1, 0));
        }
    }
}

#[test]
fn without_the_store_marked_objects_are_known_again_and_unwanted_ones_stay() {
    let mut ipam = Ipam::new();
    ipam.sees(&[machine("v1", &["10.0.0.1"]), machine("v2", &["10.0.0.2"])]).settle();
    let before = ipam.owned.clone();
    let server = ipam.server.clone();
    (ipam.owned, ipam.guard) = (OwnedObjects::default(), Guard::default());
    ipam.sees(&[machine("v1", &["10.0.0.1"])]);
    let plan = ipam.pass();
    assert!(plan.is_empty(), "{plan}");
    assert_eq!((plan.kept.len(), plan.drift.len()), (3, 0), "the objects of v2, within its grace");
    assert_eq!(ipam.server, server);
    let of = |owned: &OwnedObjects, id: &str| -> OwnedObjects {
        let mut owned = owned.clone();
        owned.0.retain(|key, object| {
            object.fields.values_mut().for_each(|field| field.former.clear());
            key.workload.as_str() == id
        });
        owned
    };
    assert_eq!(of(&ipam.owned, "v1"), of(&before, "v1"));
    ipam.sees(&[Workload { name: "renamed".into(), ..machine("v1", &["10.0.0.1"]) }]).settle();
    let name = ipam.at(&key(ObjectKind::MACHINE, "v1", "")).unwrap().fields.get("name").cloned();
    assert_eq!(name, Some(text("renamed")));
}

#[test]
fn a_rollback_brings_fields_and_objects_back_and_leaves_those_of_others() {
    let mut ipam = Ipam::new();
    ipam.sees(&[machine("v1", &["10.0.0.1"]), machine("v2", &["10.0.0.2"])]).settle();
    let shown = |ipam: &Ipam| -> Vec<String> {
        let mut all: Vec<String> = (ipam.server.values())
            .map(|one| format!("{:?} {:?}", one.mark.as_ref().map(|mark| mark.key.to_string()), one.fields))
            .collect();
        all.sort();
        all
    };
    let before = shown(&ipam);
    let mut past = IpamPast::default();
    let mut run = |ipam: &mut Ipam| {
        let plan = ipam.pass();
        plan.steps.iter().for_each(|step| past.add(&step.unit));
    };
    let renamed = Workload { name: "renamed".into(), ..machine("v1", &["10.0.0.1"]) };
    ipam.sees(&[renamed.clone(), machine("v2", &["10.0.0.2"]), machine("v3", &["10.0.0.3"])]);
    (0..3).for_each(|_| run(&mut ipam));
    for _ in 0..8 {
        ipam.world.wait(60);
        ipam.sees(&[renamed.clone(), machine("v3", &["10.0.0.3"])]);
        run(&mut ipam);
    }
    assert_ne!(shown(&ipam), before);
    for _ in 0..2 {
        let actual: Vec<IpamObject> = ipam.server.values().cloned().collect();
        let (desired, can, now) = (IpamDesired::default(), can(), ipam.world.now());
        let (owned, guard, settings) = (&ipam.owned, &ipam.guard, &ipam.settings);
        let (desired, actual, can) = (&desired, actual.as_slice(), &can);
        let input = IpamInput { desired, actual, can, owned, guard, settings, now, clean: false };
        let plan = ipam_rollback(&past, &input);
        ipam.carry_out(&plan, |_| false);
    }
    assert_eq!(shown(&ipam), before);
}

#[test]
fn a_rollback_keeps_objects_that_others_changed_and_expects_nothing_that_is_not_ours() {
    let mut ipam = Ipam::new();
    ipam.sees(&[machine("v1", &["10.0.0.1"])]).settle();
    let mut past = IpamPast::default();
    let fleet = [("v1", "10.0.0.1"), ("v2", "10.0.0.2"), ("v3", "10.0.0.3")];
    ipam.sees(&fleet.map(|(id, address)| machine(id, &[address])));
    for _ in 0..3 {
        ipam.pass().steps.iter().for_each(|step| past.add(&step.unit));
    }
    let address = |id, part| key(ObjectKind::ADDRESS, id, part);
    let mut change = |key: &ObjectKey, field: &str, value| {
        let of_it = |object: &&mut IpamObject| object.mark.as_ref().is_some_and(|mark| mark.key == *key);
        ipam.server.values_mut().find(of_it).unwrap().fields.insert(field.to_owned(), text(value))
    };
    // Beside ours a person wrote a comment, which may change until the request arrives.
    assert_eq!(change(&address("v2", "10.0.0.2"), "comment", "rack 4"), None);
    assert!(change(&address("v3", "10.0.0.3"), "status", "deprecated").is_some(), "it is a field of ours");
    let actual: Vec<IpamObject> = ipam.server.values().cloned().collect();
    let (desired, can, now) = (IpamDesired::default(), can(), ipam.world.now());
    let (owned, guard, settings) = (&ipam.owned, &ipam.guard, &ipam.settings);
    let (desired, actual, can) = (&desired, actual.as_slice(), &can);
    let plan =
        ipam_rollback(&past, &IpamInput { desired, actual, can, owned, guard, settings, now, clean: false });
    let removed: Vec<String> = plan.steps.iter().map(|step| step.unit.key.to_string()).collect();
    assert_eq!(removed, ["address:pve:10.0.0.2@v2", "interface:pve:eth0@v2", "machine:pve:@v2"]);
    for step in &plan.steps {
        let ObjectChange::Delete { before, .. } = &step.unit.change else { panic!("{step:?}") };
        let ours: Vec<&String> = ipam.owned.0[&step.unit.key].fields.keys().collect();
        assert_eq!(before.keys().collect::<Vec<_>>(), ours, "{}", step.unit.key);
    }
    let kept: Vec<String> =
        plan.kept.iter().map(|kept| format!("{}: {}", kept.key, kept.why.at(now))).collect();
    assert_eq!(
        kept,
        [
            "address:pve:10.0.0.3@v3: others changed its status",
            "interface:pve:eth0@v3: address:pve:10.0.0.3@v3 still hangs on it",
            "machine:pve:@v3: interface:pve:eth0@v3 still hangs on it",
        ]
    );
}

#[test]
fn only_addresses_with_a_name_are_written_unless_all_are_wanted() {
    let mut ipam = Ipam::new();
    ipam.settings.scope = IpamScope::Named;
    let full = Workload { hostname: Some("v2.example.com".parse().unwrap()), ..machine("v2", &["10.0.0.2"]) };
    ipam.sees(&[machine("v1", &["10.0.0.1"]), full]).settle();
    let keys: Vec<String> =
        (ipam.server.values()).map(|one| one.mark.as_ref().unwrap().key.to_string()).collect();
    assert_eq!(keys, ["machine:pve:@v2", "interface:pve:eth0@v2", "address:pve:10.0.0.2@v2"]);
}

#[test]
fn many_workloads_at_once_are_parked_whatever_the_number_of_objects() {
    let mut ipam = Ipam::new();
    let fleet: Vec<Workload> =
        (0..40).map(|n| machine(&format!("v{n}"), &[&format!("10.0.0.{n}")])).collect();
    ipam.sees(&fleet).settle();
    assert_eq!(ipam.server.len(), 120);
    // Nine of forty go: below half, so the source is believed, and below ten.
    for _ in 0..8 {
        ipam.world.wait(60);
        ipam.sees(&fleet[9..]).pass();
    }
    assert_eq!((ipam.server.len(), ipam.plan().parked), (93, None));
    for _ in 0..7 {
        ipam.world.wait(60);
        ipam.sees(&fleet[13..]).pass();
    }
    assert_eq!(ipam.server.len(), 93);
    let parked = ipam.plan().parked.unwrap();
    assert_eq!(parked.changes.len(), 12, "four workloads with three objects each");
    assert_eq!(&*parked.changes[0].guard, "13 workloads within 10m");
    let now = ipam.world.now();
    ipam.guard.approve(parked.hash, now).unwrap();
    ipam.settle();
    assert_eq!(ipam.server.len(), 81);
}

#[test]
fn a_claim_has_an_address_of_its_own_until_a_workload_has_it_and_goes_with_its_release() {
    let mut ipam = Ipam::new();
    ipam.sees(&[]);
    let address = "10.0.0.9".parse().unwrap();
    let (pool, key) = ("lan".parse().unwrap(), "web".parse().unwrap());
    ipam.claims = vec![IpamClaim { pool, key, owner: "alice".into(), address, name: None }];
    ipam.settle();
    let fields = |ipam: &Ipam| ipam.server.values().map(|object| object.fields.clone()).collect::<Vec<_>>();
    let own = Fields::from([
        ("address".into(), text("10.0.0.9")),
        ("claim".into(), text("lan/web")),
        ("status".into(), text("reserved")),
    ]);
    assert_eq!(fields(&ipam), [own]);
    ipam.sees(&[machine("v1", &["10.0.0.9"])]).settle();
    let addresses: Vec<_> = ipam.server.values().filter(|one| one.kind == ObjectKind::ADDRESS).collect();
    assert_eq!(addresses.len(), 1);
    assert_eq!(addresses[0].fields.get("claim"), Some(&text("lan/web")));
    assert_eq!(addresses[0].fields.get("status"), Some(&text("active")));
    ipam.claims.clear();
    ipam.settle();
    let address = ipam.server.values().find(|one| one.kind == ObjectKind::ADDRESS).unwrap();
    assert_eq!(address.fields.get("claim"), None);
}

#[test]
fn a_partial_view_removes_nothing_and_clean_removes_only_marked_objects() {
    let mut ipam = Ipam::new();
    ipam.foreign(ObjectKind::MACHINE, Fields::from([("name".into(), text("theirs"))]));
    ipam.sees(&[machine("v1", &["10.0.0.1"])]).settle();
    let partial = View::Partial { reason: "a node is away".into() };
    for _ in 0..10 {
        ipam.world.wait(60).report("pve", partial.clone(), Vec::new(), &[]);
        assert!(ipam.pass().is_empty());
    }
    let plan = ipam.plan_for(true);
    assert_eq!(plan.steps.len(), 3);
    ipam.carry_out(&plan, |_| false);
    assert_eq!(ipam.server.keys().copied().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_mode_that_never_removes_keeps_objects() {
    let mut ipam = Ipam::new();
    ipam.settings.mode = Mode::Additive;
    ipam.sees(&[machine("v1", &["10.0.0.1"])]).settle();
    for _ in 0..10 {
        ipam.world.wait(60);
        ipam.sees(&[]).pass();
    }
    assert_eq!((ipam.server.len(), ipam.plan().kept.len()), (3, 3));
}
