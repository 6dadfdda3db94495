//! Ownership in the DNS itself.

use netstead_model::{RecordType, View};
use netstead_plan::{
    DriftKind, Owned,
    marks::{Mark, adoptable, external_dns::Naming, is_mark, mark_name, recover, render},
};

use crate::world::*;

#[test]
fn a_mark_is_found_by_name_wildcard_delegation_and_length() {
    let (owner, zone) = ("blue".parse().unwrap(), name("example.com"));
    let at = |name: &str, delegation| mark_name(&owner, &self::name(name), &zone, delegation);
    assert_eq!(at("web.example.com", false), "_netstead-blue.web.example.com");
    assert_eq!(at("*.example.com", false), "_netstead-blue._wildcard.example.com");
    assert_eq!(at("sub.example.com", true), "b9d2ba2b6e5f._netstead-blue.example.com");
    let long = format!("{}.example.com", vec!["a".repeat(59); 4].join("."));
    let placed = at(&long, false);
    assert!(
        placed.ends_with("._netstead-blue.example.com") && placed.parse::<netstead_model::Name>().is_ok()
    );
    assert_eq!(is_mark(&placed), Some("blue"));
    assert_eq!(is_mark("web.example.com"), None);
}

#[test]
fn a_thousand_values_fit_into_one_mark() {
    let at = name("nodes.example.com");
    let values: Vec<_> = (0..1000).map(|n| data(&format!("A 10.0.{}.{}", n / 256, n % 256))).collect();
    let mark = render(&at, &values).unwrap();
    let netstead_model::RecordData::Txt(strings) = &mark else { panic!() };
    assert!(strings.iter().all(|string| string.len() <= 255));
    assert!(strings.iter().map(Vec::len).sum::<usize>() < 20_000);
    let read = Mark::parse(&mark).unwrap();
    assert!(values.iter().all(|value| read.covers(&at, value)));
    assert!(!read.covers(&at, &data("A 10.9.9.9")) && !read.covers(&name("x.example.com"), &values[0]));
}

#[test]
fn value_first_and_mark_after_but_mark_first_at_removal() {
    let mut world = World::new();
    world.settings.reverse = false;
    let order = |plan: &netstead_plan::Plan| -> Vec<RecordType> {
        let sets = plan.steps[0].unit.changes.iter();
        sets.map(|change| change.before.as_ref().or(change.after.as_ref()).unwrap().kind).collect()
    };
    assert_eq!(order(&world.sees([vm("app", &["10.0.0.1"])]).pass()), [RecordType::A, RecordType::Txt]);
    world.report("pve", View::Complete, Vec::new(), &[("app", true)]);
    assert_eq!(order(&world.pass()), [RecordType::Txt, RecordType::A]);
    assert_eq!(world.server.0[&name("example.com")].len(), 0);
}

#[test]
fn the_mark_of_a_delegation_goes_with_it_and_moves_when_it_becomes_something_else() {
    let mut world = World::new();
    world.settings.reverse = false;
    let odd = |wishes| netstead_model::Workload { wishes, ..bare("odd") };
    let marks = |world: &World| -> Vec<String> {
        let sets = world.server.0[&name("example.com")].keys();
        sets.map(|(name, _)| name.to_string()).filter(|name| is_mark(name).is_some()).collect()
    };
    world.sees([odd(vec![exact("sub.example.com", &["NS ns.example.net."])])]).pass();
    assert_eq!(marks(&world), ["b9d2ba2b6e5f._netstead-blue.example.com"]);
    world.report("pve", View::Complete, Vec::new(), &[("odd", true)]);
    world.pass();
    assert_eq!(world.server.0[&name("example.com")].len(), 0);

    world.sees([odd(vec![exact("sub.example.com", &["NS ns.example.net."])])]).pass();
    world.wait(60).sees([odd(vec![wish("sub.example.com", &["10.0.0.1"])])]).pass();
    world.wait(600).sees([odd(vec![wish("sub.example.com", &["10.0.0.1"])])]).pass();
    world.pass();
    assert_eq!(marks(&world), ["_netstead-blue.sub.example.com"]);
    assert!(world.plan().is_empty());
}

#[test]
fn marks_at_wildcards_delegations_and_long_names_are_recovered() {
    let mut world = World::new();
    let long = format!("{}.example.com", vec!["a".repeat(59); 4].join("."));
    let mut odd = bare("odd");
    odd.wishes = vec![
        wish("*.example.com", &["10.0.0.1"]),
        exact("sub.example.com", &["NS ns.example.net."]),
        wish(&long, &["10.0.0.2"]),
    ];
    world.sees([odd, vm("plain", &["10.0.0.3"])]).pass();
    let lost = std::mem::take(&mut world.owned);
    let recovered = recover(&world.settings.owner, &world.server.actual());
    assert!(recovered.loose.is_empty());
    let values = |owned: &Owned| -> Vec<_> {
        owned.iter().flat_map(|(n, values)| values.iter().map(move |v| (n.clone(), v.data.clone()))).collect()
    };
    assert_eq!(values(&recovered.owned), values(&lost));
    world.owned = recovered.owned;
    assert!(world.pass().is_empty(), "nothing changes on the server");
    assert_eq!(world.owned, lost, "and the reasons are back");
}

#[test]
fn without_recover_a_lost_store_touches_nothing() {
    let mut world = World::new();
    world.sees(fleet(0..5)).pass();
    let before = world.server.clone();
    world.owned = Owned::default();
    let plan = world.wait(60).sees(fleet(0..2)).pass();
    assert_eq!(world.server, before);
    assert!(plan.drift.iter().any(|drift| drift.kind == DriftKind::Mark));
}

#[test]
fn what_was_recovered_and_is_wanted_by_nobody_is_parked() {
    let mut world = World::new();
    world.sees(fleet(0..5)).pass();
    world.owned = recover(&world.settings.owner, &world.server.actual()).owned;
    world.inventory = netstead_plan::Inventory::default();
    world.wait(60).sees(fleet(0..2));
    let plan = world.pass();
    assert!(plan.steps.is_empty());
    assert_eq!(plan.parked.unwrap().changes.len(), 6);
}

#[test]
fn a_second_installation_touches_nothing_of_the_first() {
    let mut world = World::new();
    world.sees(fleet(0..5)).pass();
    let before = world.server.clone();
    let mut second = World::new();
    second.settings.owner = "green".parse().unwrap();
    second.server = world.server;
    let plan = second.sees(fleet(0..3)).pass();
    assert_eq!(second.server, before);
    assert!(plan.blocked.iter().all(|blocked| blocked.why.contains("installation `blue`")), "{plan}");
    assert!(recover(&second.settings.owner, &second.server.actual()).owned.is_empty());
}

#[test]
fn a_mark_that_somebody_damaged_is_repaired() {
    let mut world = World::new();
    world.settings.reverse = false;
    world.sees([vm("app", &["10.0.0.1"])]).pass();
    let before = world.server.clone();
    let zone = world.server.0.get_mut(&name("example.com")).unwrap();
    zone.remove(&(name("_netstead-blue.app.example.com"), RecordType::Txt));
    assert_eq!(world.pass().steps.len(), 1);
    assert_eq!(world.server, before);
}

#[test]
fn records_of_dnsweaver_and_external_dns_can_be_adopted_and_their_marks_go() {
    let mut world = World::new();
    world.settings.reverse = false;
    for (at, value) in [
        ("app.example.com", "A 10.0.0.1"),
        ("_dnsweaver.app.example.com", "TXT \"heritage=dnsweaver,instance=home\""),
        ("web.example.com", "A 10.0.0.2"),
        ("a-web.example.com", "TXT \"heritage=external-dns,external-dns/owner=k8s\""),
        ("hand.example.com", "A 10.0.0.3"),
    ] {
        world.server.add("example.com", at, value);
    }
    let found = adoptable(&world.server.actual(), &Naming::default());
    let by: Vec<_> = found.iter().map(|one| format!("{} {} by {}", one.name, one.data, one.by())).collect();
    assert_eq!(
        by,
        ["app.example.com 10.0.0.1 by dnsweaver home", "web.example.com 10.0.0.2 by external-dns k8s"]
    );
    for one in &found {
        world.owned.put(&one.name, one.owned());
        let (at, mark) = one.discarded();
        world.owned.put(&at, mark);
    }
    world.sees([vm("app", &["10.0.0.1"])]).pass();
    assert!(world.has("web.example.com", "A 10.0.0.2"), "adopted, and nothing asks for it");
    assert!(!world.has("a-web.example.com", "TXT \"heritage=external-dns,external-dns/owner=k8s\""));
    assert_eq!(world.server.values().len(), 3);
    assert!(world.pass().is_empty());
}
