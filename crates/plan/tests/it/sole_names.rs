//! Machines that are called alike: one has the name.

use netstead_model::{Interface, View, Workload};
use netstead_plan::{DomainRule, Domains, Network};

use crate::world::*;

const NAME: &str = "app.example.com";

/// A machine whose own name is `app.example.com`, made at that second; 0 if the platform does not tell.
fn machine(id: &str, addresses: &[&str], created: i64) -> Workload {
    let created = (created > 0).then(|| jiff::Timestamp::from_second(created).unwrap());
    let wish = netstead_model::Wish { main: true, ..wish(NAME, addresses) };
    Workload { wishes: vec![wish], created, sole_name: true, ..bare(id) }
}

/// The addresses at the name.
fn there(world: &World) -> Vec<String> {
    let values = world.server.values().into_iter().filter(|(at, _)| *at == name(NAME));
    values.map(|(_, data)| data.to_string()).collect()
}

fn why(world: &World) -> Vec<String> {
    let whys = world.desired().why_not.into_iter();
    whys.map(|one| format!("{}: {}", one.workload, one.why)).collect()
}

#[test]
fn the_one_that_was_created_first_has_the_name_and_the_other_learns_why() {
    let mut world = World::new();
    let both = [machine("1", &["10.0.0.1", "fd00::1"], 200), machine("2", &["10.0.0.2", "fd00::2"], 100)];
    world.goes_on(2, &both);
    assert_eq!(there(&world), ["10.0.0.2", "fd00::2"]);
    let told = "`2` (pve/2) is called the same and came first; rename one of the two";
    assert_eq!(why(&world), [format!("1: {told}")]);
    // Which has no time of its creation leaves it to the id.
    let mut world = World::new();
    world.goes_on(2, &[machine("2", &["10.0.0.2"], 0), machine("1", &["10.0.0.1"], 200)]);
    assert_eq!(there(&world), ["10.0.0.1"]);
}

#[test]
fn the_one_that_has_the_name_keeps_it_from_an_older_one_and_when_its_address_changes() {
    let mut world = World::new();
    world.goes_on(2, &[machine("1", &["10.0.0.1"], 200)]);
    world.goes_on(2, &[machine("1", &["10.0.0.1"], 200), machine("2", &["10.0.0.2"], 100)]);
    assert_eq!(there(&world), ["10.0.0.1"]);
    let moved = [machine("1", &["10.0.0.9"], 200), machine("2", &["10.0.0.2"], 100)];
    world.goes_on(20, &moved);
    assert_eq!(there(&world), ["10.0.0.9"]);
}

#[test]
fn one_that_is_missing_keeps_the_name_until_its_grace_is_over_and_one_that_ended_hands_it_on() {
    let (first, second) = (machine("1", &["10.0.0.1"], 100), machine("2", &["10.0.0.2"], 200));
    let others = fleet(0..8);
    let with = |some: &[&Workload]| -> Vec<Workload> {
        some.iter().map(|one| (*one).clone()).chain(others.clone()).collect()
    };
    let mut world = World::new();
    world.goes_on(2, &with(&[&first, &second]));
    // It is missed by some looks, and back.
    world.goes_on(4, &with(&[&second]));
    assert_eq!(there(&world), ["10.0.0.1"]);
    world.goes_on(2, &with(&[&first, &second]));
    assert_eq!(there(&world), ["10.0.0.1"]);
    // A look that did not see everything means nothing.
    for _ in 0..20 {
        world.wait(60).report("pve", View::Partial { reason: "x".into() }, with(&[&second]), &[]);
        world.pass();
    }
    assert_eq!(there(&world), ["10.0.0.1"]);
    let mut missing = world.clone();
    missing.goes_on(8, &with(&[&second]));
    assert_eq!(there(&missing), ["10.0.0.2"]);
    world.wait(60).report("pve", View::Complete, with(&[&second]), &[("1", false)]);
    world.pass();
    assert!(world.has(NAME, "A 10.0.0.2"), "the end of the other is certain");
    world.goes_on(2, &with(&[&second]));
    assert_eq!(there(&world), ["10.0.0.2"]);
}

#[test]
fn a_machine_that_is_made_anew_has_its_name_at_once() {
    let (old, new) = (machine("1", &["10.0.0.1"], 100), machine("2", &["10.0.0.2"], 200));
    let others = fleet(0..8);
    let with =
        |one: &Workload| -> Vec<Workload> { [one.clone()].into_iter().chain(others.clone()).collect() };
    let mut world = World::new();
    world.goes_on(2, &with(&old));
    world.goes_on(1, &with(&new));
    assert_eq!(there(&world), ["10.0.0.1", "10.0.0.2"], "the old address has its grace");
    world.goes_on(8, &with(&new));
    assert_eq!(there(&world), ["10.0.0.2"]);
}

#[test]
fn values_that_are_there_already_stay_until_they_change() {
    // As an earlier release left them.
    let shared = |one: Workload| Workload { sole_name: false, ..one };
    let both = [machine("1", &["10.0.0.1"], 100), machine("2", &["10.0.0.2"], 200)];
    let mut world = World::new();
    world.goes_on(2, &both.clone().map(shared));
    assert_eq!(there(&world), ["10.0.0.1", "10.0.0.2"]);
    world.goes_on(20, &both);
    assert_eq!(there(&world), ["10.0.0.1", "10.0.0.2"]);
    let plan = world.plan();
    let kept = plan.kept.iter().filter(|kept| kept.name == name(NAME));
    let kept: Vec<String> = kept.map(|kept| format!("{:?}", kept.why)).collect();
    assert!(kept.len() == 1 && kept[0].contains("rename one of the two"), "{kept:?}");
    let moved = [machine("1", &["10.0.0.1"], 100), machine("2", &["10.0.0.3"], 200)];
    world.goes_on(20, &moved);
    assert_eq!(there(&world), ["10.0.0.1"]);
}

#[test]
fn what_is_shared_on_purpose_stays_shared() {
    let mut world = World::new();
    let container = |id: &str, address: &str| Workload { wishes: vec![wish(NAME, &[address])], ..bare(id) };
    let replicas = [container("c1", "10.0.0.7"), container("c2", "10.0.0.8")];
    let machines = [machine("1", &["10.0.0.1"], 100), machine("2", &["10.0.0.1"], 200)];
    world.goes_on(2, &[replicas.to_vec(), machines.to_vec()].concat());
    assert_eq!(there(&world), ["10.0.0.1", "10.0.0.7", "10.0.0.8"], "containers, and one address of two");
    assert_eq!(why(&world), [""; 0]);
    // A name that a machine asks for beside its own.
    let tagged = |one: Workload| {
        let wishes =
            one.wishes.into_iter().map(|wish| netstead_model::Wish { main: false, ..wish }).collect();
        Workload { wishes, ..one }
    };
    let mut world = World::new();
    world.goes_on(2, &[tagged(machine("1", &["10.0.0.1"], 1)), tagged(machine("2", &["10.0.0.2"], 2))]);
    assert_eq!(there(&world), ["10.0.0.1", "10.0.0.2"]);
}

#[test]
fn names_of_networks_are_a_machines_own_and_their_shared_names_are_not() {
    let mut world = World::new();
    let network = Network { cidr: "10.0.0.0/24".parse().unwrap(), shared_name: Some("all".into()) };
    world.domains = Domains(vec![DomainRule {
        domain: name("example.com"),
        networks: vec![network],
        template: netstead_plan::Template::default(),
        ipv6_inherit: false,
    }]);
    let called_app = |id: &str, address: &str, sole_name: bool| {
        let interface = Interface { addresses: vec![address.parse().unwrap()], ..Interface::default() };
        Workload { hostname: Some(name("app")), interfaces: vec![interface], sole_name, ..bare(id) }
    };
    let machines = [called_app("1", "10.0.0.1", true), called_app("2", "10.0.0.2", true)];
    let mut containers = world.clone();
    world.goes_on(2, &machines);
    assert_eq!(there(&world), ["10.0.0.1"]);
    assert!(world.has("all.example.com", "A 10.0.0.1") && world.has("all.example.com", "A 10.0.0.2"));
    containers.goes_on(2, &[called_app("1", "10.0.0.1", false), called_app("2", "10.0.0.2", false)]);
    assert_eq!(there(&containers), ["10.0.0.1", "10.0.0.2"]);
}
