//! Names and records that sources may not ask for, and their fate where they are already published.

use insta::assert_snapshot;
use netstead_model::{Capabilities, Name, RecordData, RecordType, View, Workload};
use netstead_plan::{MOST_NAMES, Presence, SourceRules, WhyNot};

use crate::world::*;

fn asking(wishes: Vec<netstead_model::Wish>) -> Workload {
    Workload { kind: "container".into(), wishes, ..bare("app") }
}

/// Everything the review of labels found them to write.
fn greedy() -> Workload {
    asking(vec![
        exact("example.com", &["NS ns.evil.example."]),
        exact("sub.example.com", &["NS ns.evil.example."]),
        exact("example.com", &["MX 10 mail.evil.example."]),
        exact("example.com", &["CAA 0 issue \"evil.example\""]),
        exact("9.0.0.10.in-addr.arpa", &["PTR app.evil.example."]),
        exact("_netstead-blue.mail.example.com", &["TXT \"netstead/1 A:000000000000\""]),
        exact("_netstead-fence-blue.example.com", &["TXT \"1 1\""]),
        exact("0123456789ab._netstead-green.example.com", &["TXT \"netstead/1 A:000000000000\""]),
        wish("example.com", &["10.0.0.1"]),
        wish("*.example.com", &["10.0.0.1"]),
        wish("app.example.com", &["10.0.0.1"]),
    ])
}

fn labels(world: &mut World) -> &mut World {
    world.settings.reverse = false;
    world.configure_with("pve", "one", false, SourceRules::for_labels());
    world
}

fn told(why_not: &[WhyNot]) -> String {
    let line = |one: &WhyNot| {
        let name = one.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        format!("{name}{}{}", one.why, if one.refused { "" } else { " (no rule)" })
    };
    why_not.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn labels_write_no_delegation_no_mark_and_nothing_that_speaks_for_a_domain() {
    let mut world = World::new();
    world.server.add("example.com", "example.com", "NS ns.example.com.");
    labels(&mut world).sees([greedy()]).pass();
    assert_snapshot!(told(&world.desired().why_not), @r"
    *.example.com: a wildcard needs `wildcard = true` in [source.pve]
    0123456789ab._netstead-green.example.com: that is the name of an ownership mark, which only Netstead itself writes
    9.0.0.10.in-addr.arpa: PTR is not among the `types` of [source.pve]
    _netstead-blue.mail.example.com: that is the name of an ownership mark, which only Netstead itself writes
    _netstead-fence-blue.example.com: that is the name of an ownership mark, which only Netstead itself writes
    example.com: CAA is not among the `types` of [source.pve]
    example.com: MX is not among the `types` of [source.pve]
    example.com: the NS records at the top of a zone are its server's own
    example.com: the top of a zone or domain needs `apex = true` in [source.pve]
    sub.example.com: labels never write NS records; `netstead record set` does
    ");
    let ours: Vec<_> = world.owned.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(ours, ["app.example.com"]);
}

#[test]
fn what_people_declare_writes_all_but_marks_and_the_ns_of_a_zone() {
    let mut world = World::new();
    world.sees([greedy()]).pass();
    assert_snapshot!(told(&world.desired().why_not), @r"
    0123456789ab._netstead-green.example.com: that is the name of an ownership mark, which only Netstead itself writes
    _netstead-blue.mail.example.com: that is the name of an ownership mark, which only Netstead itself writes
    _netstead-fence-blue.example.com: that is the name of an ownership mark, which only Netstead itself writes
    example.com: the NS records at the top of a zone are its server's own
    ");
    assert!(world.has("sub.example.com", "NS ns.evil.example.") && world.has("*.example.com", "A 10.0.0.1"));
    world.settings.types = vec![RecordType::A];
    assert!(told(&world.desired().why_not).contains("sub.example.com: `lan` cannot hold NS records"));
}

#[test]
fn a_plan_says_what_the_server_cannot_hold_and_nothing_of_types_that_a_person_left_out() {
    let mut world = World::new();
    world.settings.types = vec![RecordType::A, RecordType::Txt, RecordType::Mx];
    let can = Capabilities::all([RecordType::A, RecordType::Aaaa, RecordType::Txt]);
    world.settings = world.settings.clone().within(&can);
    world.sees([asking(vec![
        exact("mail.example.com", &["MX 10 mx.example.com."]),
        exact("six.example.com", &["AAAA fd00::1"]),
        exact("one.example.com", &["A 10.0.0.1"]),
    ])]);
    world.pass();
    // A value of ours is not removed for one that cannot take its place.
    world.wait(60).sees([asking(vec![exact("one.example.com", &["A 10.0.0.2"])])]);
    let no_twos = |name: &Name, data: &RecordData| {
        (name.is_wildcard() || data.to_string().ends_with('2')).then(|| "it is not to its taste".to_owned())
    };
    let refused = |plan: &netstead_plan::Plan| -> Vec<String> {
        plan.refused.iter().map(|one| format!("{}: {}", one.name, one.why)).collect()
    };
    let plan = world.plan_without(no_twos);
    assert_eq!((refused(&plan), plan.steps.len()), (vec![], 1), "the server is asked to replace it");
    world.sees([asking(vec![
        exact("mail.example.com", &["MX 10 mx.example.com."]),
        exact("six.example.com", &["AAAA fd00::1"]),
    ])]);
    assert_eq!(refused(&world.plan()), ["mail.example.com: `lan` cannot hold MX records"]);

    let mut world = World { settings: world.settings, ..World::new() };
    world.sees([asking(vec![
        exact("*.example.com", &["A 10.0.0.1"]),
        exact("two.example.com", &["A 10.0.0.1", "A 10.0.0.2"]),
    ])]);
    let plan = world.plan_without(no_twos);
    assert_eq!(
        refused(&plan),
        [
            "*.example.com: `lan` cannot hold A 10.0.0.1: it is not to its taste",
            "two.example.com: `lan` cannot hold A 10.0.0.2: it is not to its taste",
        ]
    );
    assert_eq!(plan.steps.len(), 1, "the other value of the set is written");
    let text = plan.to_string();
    for part in
        ["refused on lan: the server cannot hold it\n", "  ! *.example.com", "lan: 1 to add", ", 2 refused"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn consent_is_given_by_source_and_by_provider() {
    let mut world = World::new();
    let rules = SourceRules {
        domains: vec!["example.com".parse().unwrap()],
        types: vec![RecordType::A, RecordType::Mx],
        wildcard: true,
        apex: true,
        ..SourceRules::for_labels()
    };
    labels(&mut world).configure_with("pve", "one", false, rules.clone());
    world.sees([greedy()]).pass();
    for (at, value) in [
        ("example.com", "MX 10 mail.evil.example."),
        ("example.com", "A 10.0.0.1"),
        ("*.example.com", "A 10.0.0.1"),
    ] {
        assert!(world.has(at, value), "{at} {value}");
    }
    let mut world = World::new();
    (world.settings.wildcard, world.settings.apex) = (false, false);
    world.configure_with(
        "pve",
        "one",
        false,
        SourceRules { domains: vec!["*.example.com".parse().unwrap()], ..rules },
    );
    world
        .sees([asking(vec![wish("example.com", &["10.0.0.1"]), wish("*.example.com", &["10.0.0.1"])])])
        .pass();
    assert_snapshot!(told(&world.desired().why_not), @r"
    *.example.com: `wildcard = false` in [dns.lan]
    example.com: it matches none of the `domains` of [source.pve]
    ");
    world.configure_with("pve", "one", false, SourceRules::default());
    assert!(told(&world.desired().why_not).contains("example.com: `apex = false` in [dns.lan]"));
    assert!(world.owned.is_empty());
}

#[test]
fn a_domain_has_a_top_wherever_its_zone_begins_and_a_lone_name_has_none() {
    let mut world = World::new();
    world.settings.domains = vec!["home.example.com".parse().unwrap(), "*.lab.example.com".parse().unwrap()];
    let both =
        || [asking(vec![wish("home.example.com", &["10.0.0.1"]), wish("a.lab.example.com", &["10.0.0.1"])])];
    labels(&mut world).sees(both());
    let top = "home.example.com: the top of a zone or domain needs `apex = true` in [source.pve]";
    assert_eq!(told(&world.desired().why_not), top);
    // The built-in nameserver makes a zone for every name that it finds no domain for.
    world.server.0.insert(name("a.lab.example.com"), std::collections::BTreeMap::default());
    world.settings.lone_zones = true;
    assert_eq!(told(&world.desired().why_not), top);
    world.settings.lone_zones = false;
    assert!(told(&world.desired().why_not).starts_with("a.lab.example.com: the top of a zone"));
}

#[test]
fn labels_of_one_workload_give_so_many_names_and_no_more() {
    let names = |count: usize| -> Workload {
        asking((0..count).map(|n| wish(&format!("n{n:05}.example.com"), &["10.0.0.1"])).collect())
    };
    let mut world = World::new();
    labels(&mut world).sees([names(300)]).pass();
    assert_eq!(world.owned.len(), MOST_NAMES);
    let why_not = world.desired().why_not;
    assert_eq!(why_not.len(), 17);
    assert_eq!(why_not[0].name, None);
    assert_eq!(why_not[0].why, "it asks for 300 names, and labels give at most 256: 28 more are refused");
    assert_eq!(why_not[1].name, Some(name("n00256.example.com")));
    assert_eq!(why_not[1].why, "it asks for 300 names, and labels give at most 256");
    // A name may be asked for twice, and what people declare has no such limit.
    let mut twice = names(MOST_NAMES);
    twice.wishes.extend(names(MOST_NAMES).wishes);
    let mut world = World::new();
    labels(&mut world).sees([twice]);
    assert_eq!(world.desired().why_not, []);
    let mut world = World::new();
    world.sees([names(300)]).pass();
    assert_eq!(world.owned.iter().filter(|(name, _)| name.as_str().starts_with('n')).count(), 300);
}

/// A world in which an older version published everything.
fn published() -> World {
    let mut world = World::new();
    world.settings.reverse = false;
    world.server.add("example.com", "example.com", "NS ns.example.com.");
    world.sees([greedy()]).pass();
    let reasons = world.owned.of(&name("app.example.com"))[0].reasons.clone();
    // It wrote the NS of a zone and marks, too.
    for (at, value) in [
        ("example.com", "NS ns.evil.example."),
        ("_netstead-blue.mail.example.com", "TXT \"netstead/1 A:000000000000\""),
    ] {
        world.server.add("example.com", at, value);
        let (data, origin) = (data(value), netstead_plan::Origin::Written);
        let value = netstead_plan::OwnedValue { data, reasons: reasons.clone(), origin, pending: false };
        world.owned.put(&name(at), value);
    }
    labels(&mut world);
    world
}

#[test]
fn what_is_published_already_stays_with_its_reason_until_a_person_removes_it() {
    let mut world = published();
    let before = world.server.clone();
    world.goes_on(60, &[greedy()]);
    assert_eq!(world.server.values(), before.values());
    assert_snapshot!(world.plan(), @r#"
    parked on lan, until `netstead apply 10cb7c7633400ca0`
      because: what asks for them may not have them any more
      - 9.0.0.10.in-addr.arpa            PTR    app.evil.example.
          pve/app: PTR is not among the `types` of [source.pve]
      - *.example.com                    A      10.0.0.1
          pve/app: a wildcard needs `wildcard = true` in [source.pve]
      - _netstead-blue.mail.example.com  TXT    "netstead/1 A:000000000000"
          pve/app: that is the name of an ownership mark, which only Netstead itself
          writes
      - example.com                      A      10.0.0.1
          pve/app: the top of a zone or domain needs `apex = true` in [source.pve]
      - example.com                      MX     10 mail.evil.example.
          pve/app: MX is not among the `types` of [source.pve]
      - example.com                      CAA    0 issue "evil.example"
          pve/app: CAA is not among the `types` of [source.pve]
      - example.com                      NS     ns.evil.example.
          pve/app: the NS records at the top of a zone are its server's own
      - sub.example.com                  NS     ns.evil.example.
          pve/app: labels never write NS records; `netstead record set` does
    lan: nothing to change, 5 parked
    "#);
    let (hash, now) = (world.plan().parked.unwrap().hash, world.now());
    world.guard.approve(hash, now).unwrap();
    world.pass();
    let left: Vec<_> =
        world.server.values().into_iter().map(|(name, data)| format!("{name} {data}")).collect();
    assert_eq!(left, ["app.example.com 10.0.0.1", "example.com ns.example.com."]);
    assert!(!world.server.0[&name("example.com")].keys().any(|(at, _)| at.as_str().contains("mail")));
    assert!(world.plan().parked.is_none());
}

#[test]
fn what_is_refused_is_not_put_back_and_does_not_go_with_its_workload_either() {
    let mut world = published();
    let wild = |world: &World| world.has("*.example.com", "A 10.0.0.1");
    world.goes_on(2, &[greedy()]);
    assert!(wild(&world));
    let mut emptied = world.clone();
    let key = (name("*.example.com"), RecordType::A);
    emptied.server.0.get_mut(&name("example.com")).unwrap().remove(&key);
    emptied.goes_on(2, &[greedy()]);
    assert!(!wild(&emptied), "a person removed it from the server");
    world.report("pve", View::Complete, Vec::new(), &[("app", false)]);
    let plan = world.wait(30).pass();
    assert!(wild(&world) && !world.has("app.example.com", "A 10.0.0.1"), "what is parked stays so");
    assert!(plan.parked.unwrap().changes.iter().all(|change| &*change.guard == "parked before"));
}

#[test]
fn a_refused_name_is_not_emptied_by_another_value_of_its_workload() {
    let mut world = World::new();
    let at = |address: &str| asking(vec![wish("*.example.com", &[address])]);
    world.settings.reverse = false;
    world.sees([at("10.0.0.1")]).pass();
    labels(&mut world);
    world.goes_on(30, &[at("10.0.0.2")]);
    assert!(world.has("*.example.com", "A 10.0.0.1") && !world.has("*.example.com", "A 10.0.0.2"));
    let parked = world.plan().parked.unwrap();
    assert_eq!((parked.changes.len(), parked.changes[0].lines.len()), (1, 1));
}

#[test]
fn what_another_source_asks_for_stays_without_being_parked() {
    let mut world = published();
    let mut declared = asking(vec![wish("*.example.com", &["10.0.0.1"])]);
    declared.kind = "host".into();
    world.wait(1).report("hosts", View::Complete, vec![declared], &[]);
    world.goes_on(2, &[greedy()]);
    let parked = world.plan().parked.unwrap();
    assert!(!parked.changes.iter().any(|change| change.name == name("*.example.com")));
    assert!(world.has("*.example.com", "A 10.0.0.1"));
    let reasons = &world.owned.of(&name("*.example.com"))[0].reasons;
    assert_eq!((reasons.len(), reasons[0].source.as_str()), (1, "hosts"));
}

#[test]
fn rules_of_an_old_store_are_none_and_new_ones_are_kept() {
    let mut world = published();
    let text = serde_json::to_string(&world.inventory).unwrap();
    assert_eq!(serde_json::from_str::<netstead_plan::Inventory>(&text).unwrap(), world.inventory);
    let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
    old["sources"]["pve"].as_object_mut().unwrap().remove("rules");
    let entry = old["sources"]["pve"]["entries"]["app"].as_object_mut().unwrap();
    entry.remove("asked");
    world.inventory = serde_json::from_value(old).unwrap();
    let state = world.inventory.source(&"pve".parse().unwrap()).unwrap();
    assert_eq!(state.rules, SourceRules::default());
    assert_eq!(state.entries["app"].presence, Presence::Present);
}

#[test]
fn a_provider_publishes_only_what_is_on_its_entry_points() {
    let mut world = World::new();
    world.settings.reverse = false;
    world.settings.entrypoints = vec!["websecure".to_owned(), "lan".to_owned()];
    let on = |name: &str, entrypoints: &[&str]| netstead_model::Wish {
        entrypoints: entrypoints.iter().map(|one| (*one).to_owned()).collect(),
        ..wish(name, &["10.0.0.1"])
    };
    let app = asking(vec![
        on("out.example.com", &["web", "admin"]),
        on("both.example.com", &["web", "lan"]),
        on("all.example.com", &[]),
    ]);
    world.sees([app]).pass();
    assert_eq!(
        told(&world.desired().why_not),
        "out.example.com: it is on web, admin, and `entrypoints` in [dns.lan] has none of these (no rule)"
    );
    let names: Vec<String> = world.desired().sets.iter().map(|set| set.name.to_string()).collect();
    assert_eq!(names, ["all.example.com", "both.example.com"]);
}
