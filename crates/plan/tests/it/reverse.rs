//! The names of addresses, and names from addresses.

use netstead_model::{Interface, View, Wish, Workload};
use netstead_plan::{DomainRule, Domains, Network};

use crate::world::*;

const AT: &str = "1.0.0.10.in-addr.arpa";

fn named(id: &str, kind: &str, main: bool) -> Workload {
    let mut workload = vm(id, &["10.0.0.1"]);
    workload.kind = kind.into();
    workload.wishes[0].main = main;
    workload
}

#[test]
fn a_claims_hostname_comes_before_a_workloads_name_before_who_came_first() {
    let (first, own, claim) = (named("a", "vm", false), named("b", "vm", true), named("c", "claim", true));
    let ptr = |workloads: Vec<Workload>| {
        let mut world = World::new();
        world.sees(workloads).pass();
        world.owned.of(&name(AT))[0].data.to_string()
    };
    assert_eq!(ptr(vec![first.clone(), own.clone(), claim]), "c.example.com.");
    assert_eq!(ptr(vec![first.clone(), own]), "b.example.com.");
    assert_eq!(ptr(vec![named("d", "vm", false), first]), "a.example.com.");
}

#[test]
fn it_moves_only_when_its_name_goes() {
    let (a, c) = (named("a", "vm", false), named("c", "claim", true));
    let mut world = World::new();
    world.sees([a.clone()]).pass();
    world.wait(60).sees([a, c.clone()]).pass();
    assert!(world.has(AT, "PTR a.example.com."));
    world.report("pve", View::Complete, vec![c], &[("a", true)]);
    world.pass();
    assert!(world.has(AT, "PTR c.example.com.") && !world.has(AT, "PTR a.example.com."));
}

#[test]
fn wildcards_and_targets_get_none_and_a_foreign_one_is_left() {
    let mut world = World::new();
    let mut wild = bare("w");
    wild.wishes = vec![wish("*.example.com", &["10.0.0.1"])];
    world.sees([wild]).pass();
    assert!(world.owned.of(&name(AT)).is_empty());
    let mut world = World::new();
    world.server.add("0.10.in-addr.arpa", AT, "PTR hand.example.com.");
    let plan = world.sees([vm("a", &["10.0.0.1"])]).pass();
    assert_eq!(plan.blocked.len(), 1);
    assert!(world.has(AT, "PTR hand.example.com.") && world.has("a.example.com", "A 10.0.0.1"));
}

#[test]
fn a_ptr_that_was_asked_for_exactly_wins() {
    let mut world = World::new();
    let mut asked = bare("x");
    asked.wishes = vec![exact(AT, &["PTR gateway.example.net."])];
    world.sees([vm("a", &["10.0.0.1"]), asked]).pass();
    assert!(world.has(AT, "PTR gateway.example.net."));
    assert_eq!(world.owned.of(&name(AT)).len(), 1);
}

fn domains() -> Domains {
    let network = |cidr: &str, shared: Option<&str>| Network {
        cidr: cidr.parse().unwrap(),
        shared_name: shared.map(Into::into),
    };
    let rule = |domain: &str, networks| DomainRule {
        domain: name(domain),
        networks,
        template: netstead_plan::Template::default(),
        ipv6_inherit: false,
    };
    Domains(vec![
        rule("home.example.com", vec![network("10.0.0.0/16", None)]),
        rule("lab.example.com", vec![network("10.0.3.0/24", Some("nodes"))]),
    ])
}

fn machine(id: &str, address: &str) -> Workload {
    let addresses = vec![address.parse().unwrap(), "127.0.0.1".parse().unwrap(), "fe80::1".parse().unwrap()];
    Workload { interfaces: vec![Interface { addresses, ..Interface::default() }], ..bare(id) }
}

#[test]
fn the_longest_network_gives_the_domain_and_a_shared_name() {
    let mut world = World::new();
    world.domains = domains();
    world.sees([machine("db", "10.0.1.1"), machine("n1", "10.0.3.1"), machine("n2", "10.0.3.2")]).pass();
    assert!(world.has("db.home.example.com", "A 10.0.1.1"));
    assert!(world.has("n1.lab.example.com", "A 10.0.3.1"));
    assert!(
        world.has("nodes.lab.example.com", "A 10.0.3.1") && world.has("nodes.lab.example.com", "A 10.0.3.2")
    );
    assert!(world.has("1.3.0.10.in-addr.arpa", "PTR n1.lab.example.com."), "not the shared name");
}

#[test]
fn an_ipv6_address_is_called_like_the_ipv4_address_beside_it() {
    let mut world = World::new();
    world.domains = domains();
    let mut both = machine("n1", "10.0.3.1");
    both.interfaces[0].addresses.push("fd00::1".parse().unwrap());
    let mut alone = machine("n2", "10.0.3.2");
    let addresses = vec!["fd00::2".parse().unwrap()];
    alone.interfaces.push(Interface { addresses, ..Interface::default() });
    world.sees([both.clone(), alone.clone()]).pass();
    assert!(!world.has("n1.lab.example.com", "AAAA fd00::1"));
    world.domains.0[1].ipv6_inherit = true;
    world.sees([both, alone]).pass();
    assert!(world.has("n1.lab.example.com", "AAAA fd00::1"));
    assert!(!world.has("nodes.lab.example.com", "AAAA fd00::1"), "its own name alone");
    assert!(!world.has("n2.lab.example.com", "AAAA fd00::2"), "another interface");
}

#[test]
fn a_workload_that_names_its_addresses_itself_still_shares_a_name() {
    let mut world = World::new();
    world.domains = domains();
    world.domains.0[1].networks[0].shared_name = Some("all.example.com.".into());
    let mut own = machine("n1", "10.0.3.1");
    own.interfaces[0].mapped = true;
    own.interfaces[0].addresses.push("10.0.3.9".parse().unwrap());
    let main = wish("n1.example.com", &["10.0.3.1"]);
    own.wishes = vec![Wish { main: true, ..main }, wish("tag.example.com", &["10.0.3.1", "10.0.3.9"])];
    world.sees([own]).pass();
    assert!(world.has("n1.example.com", "A 10.0.3.1") && world.has("all.example.com", "A 10.0.3.1"));
    assert!(!world.has("n1.lab.example.com", "A 10.0.3.1"));
    assert!(world.has("n1.lab.example.com", "A 10.0.3.9"), "an address that it does not name");
}

#[test]
fn a_name_that_cannot_be_one_is_explained() {
    let mut world = World::new();
    world.domains = domains();
    let mut odd = machine("x", "10.0.1.1");
    odd.name = "My VM!".into();
    world.sees([odd]).pass();
    assert!(world.owned.is_empty());
    assert!(world.desired().why_not[0].why.contains("is not a host name"));
}

#[test]
fn an_address_that_a_wish_names_gets_no_second_name() {
    let mut world = World::new();
    world.domains = domains();
    let mut both = machine("x", "10.0.1.1");
    both.wishes = vec![wish("web", &["10.0.1.1"])];
    world.sees([both]).pass();
    assert!(world.has("web.home.example.com", "A 10.0.1.1"));
    assert!(!world.has("x.home.example.com", "A 10.0.1.1"));
}

#[test]
fn an_address_that_many_share_is_not_called_after_any_of_them() {
    let mut world = World::new();
    let borrowed = |id: &str| {
        let mut workload = named(id, "container", false);
        workload.wishes[0].borrowed = true;
        workload
    };
    world.sees([borrowed("app"), borrowed("web")]).pass();
    assert!(world.has("app.example.com", "A 10.0.0.1") && world.owned.of(&name(AT)).is_empty());
    // The machine itself still is.
    world.wait(60).sees([borrowed("app"), borrowed("web"), named("host", "vm", true)]).pass();
    assert!(world.has(AT, "PTR host.example.com."));
}
