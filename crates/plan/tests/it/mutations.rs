//! A typo in any setting deletes nothing by itself.

use netstead_model::RecordType;
use netstead_plan::{DomainMatch, DomainRule, Network, ProviderTarget, SourceRules, Template};

use crate::world::*;

fn settled() -> World {
    let mut world = World::new();
    world.settings.domains = ["example.com", "*.lab.example.com", "/^web[0-9]/"]
        .map(|domain| domain.parse::<DomainMatch>().unwrap())
        .to_vec();
    world.settings.exclude_domains = vec!["secret.example.com".parse().unwrap()];
    world.domains.0 = vec![DomainRule {
        domain: name("home.example.com"),
        networks: vec![Network { cidr: "10.0.3.0/24".parse().unwrap(), shared_name: Some("nodes".into()) }],
        template: Template::default(),
        ipv6_inherit: false,
    }];
    let mut workloads = fleet(0..5);
    for n in 1..6 {
        let mut machine = bare(&format!("m{n}"));
        let addresses = vec![format!("10.0.3.{n}").parse().unwrap(), format!("fd00::{n}").parse().unwrap()];
        machine.interfaces = vec![netstead_model::Interface { addresses, ..Default::default() }];
        machine.wishes = vec![wish(&format!("m{n}.lab.example.com"), &[&format!("10.0.9.{n}")])];
        workloads.push(machine);
    }
    let mut top = bare("top");
    top.wishes = vec![wish("example.com", &["10.0.9.9"]), wish("*.example.com", &["10.0.9.9"])];
    workloads.push(top);
    world.sees(workloads).pass();
    assert!(world.plan().is_empty());
    world
}

type Typo = (&'static str, fn(&mut World));

/// Everything a person may get wrong in the tables that make names.
fn typos() -> Vec<Typo> {
    fn rule(world: &mut World) -> &mut DomainRule {
        &mut world.domains.0[0]
    }
    fn rules(world: &mut World, rules: SourceRules) {
        world.configure_with("pve", "", false, rules);
    }
    vec![
        ("no domains", |w| w.settings.domains.clear()),
        ("a domain less", |w| drop(w.settings.domains.remove(0))),
        ("another domain less", |w| drop(w.settings.domains.remove(1))),
        ("a domain misspelt", |w| w.settings.domains[0] = "exmaple.com".parse().unwrap()),
        ("a glob misspelt", |w| w.settings.domains = vec!["*.home.exmaple.com".parse().unwrap()]),
        ("a regex that matches nothing", |w| w.settings.domains = vec!["/^$/".parse().unwrap()]),
        ("everything excluded", |w| w.settings.exclude_domains = vec!["example.com".parse().unwrap()]),
        ("excluded by glob", |w| w.settings.exclude_domains = vec!["*".parse().unwrap()]),
        ("another target", |w| {
            w.settings.target = Some(ProviderTarget::Addresses(vec!["192.0.2.1".parse().unwrap()]));
        }),
        ("a name as target", |w| w.settings.target = Some(ProviderTarget::Name(name("x.example.net")))),
        ("an empty target", |w| w.settings.target = Some(ProviderTarget::Addresses(Vec::new()))),
        ("another type", |w| w.settings.kind = Some(RecordType::Aaaa)),
        ("a type without sense", |w| w.settings.kind = Some(RecordType::Mx)),
        ("types the server lost", |w| w.settings.types = vec![RecordType::Txt]),
        ("no reverse", |w| w.settings.reverse = false),
        ("another ttl", |w| w.settings.ttl = 1),
        ("adopt", |w| w.settings.adopt = true),
        ("share", |w| w.settings.share = true),
        ("no grace", |w| (w.settings.grace, w.settings.ended_grace) = Default::default()),
        ("no limits", |w| w.settings.breaker.changes = 0),
        ("another owner", |w| w.settings.owner = "green".parse().unwrap()),
        ("no marks", |w| w.settings.marks = false),
        ("no domain tables", |w| w.domains.0.clear()),
        ("another network", |w| rule(w).networks[0].cidr = "10.0.4.0/24".parse().unwrap()),
        ("no networks", |w| rule(w).networks.clear()),
        ("another shared name", |w| rule(w).networks[0].shared_name = Some("node".into())),
        ("no shared name", |w| rule(w).networks[0].shared_name = None),
        ("another domain table", |w| rule(w).domain = name("hmoe.example.com")),
        ("another template", |w| rule(w).template = "{source}-{name}.{domain}".parse().unwrap()),
        ("another source configuration", |w| w.configure("pve", "two", false)),
        ("a source that is gone", |w| w.configure("pev", "one", false)),
        ("no wildcards", |w| w.settings.wildcard = false),
        ("no top", |w| w.settings.apex = false),
        ("lone zones", |w| w.settings.lone_zones = true),
        ("a source for labels", |w| rules(w, SourceRules::for_labels())),
        ("a source for another domain", |w| {
            rules(w, SourceRules { domains: vec!["exmaple.com".parse().unwrap()], ..SourceRules::default() });
        }),
        ("a source for another type", |w| {
            rules(w, SourceRules { types: vec![RecordType::Txt], ..SourceRules::default() });
        }),
        ("a source without wildcards", |w| {
            rules(w, SourceRules { wildcard: false, apex: false, ..SourceRules::default() });
        }),
        ("authoritative", |w| w.settings.mode = netstead_plan::Mode::Authoritative),
    ]
}

fn lost(before: &World, after: &World) -> Vec<(netstead_model::Name, netstead_model::RecordData)> {
    before.server.values().difference(&after.server.values()).cloned().collect()
}

#[test]
fn a_typo_in_any_setting_removes_nothing_by_itself() {
    let before = settled();
    for (what, typo) in typos() {
        let mut world = before.clone();
        typo(&mut world);
        for _ in 0..20 {
            world.wait(60).pass();
        }
        assert_eq!(lost(&before, &world), [], "{what}");
    }
}

#[test]
fn two_typos_at_once_remove_nothing_either() {
    let before = settled();
    for (first, one) in typos() {
        for (second, two) in typos() {
            let mut world = before.clone();
            one(&mut world);
            // Some go wrong only where there is still something to get wrong.
            if world.settings.domains.len() == 3 && world.domains == before.domains {
                two(&mut world);
            }
            world.wait(60).pass();
            world.wait(600).pass();
            assert_eq!(lost(&before, &world), [], "{first}, {second}");
        }
    }
}

#[test]
fn a_typo_that_is_put_right_leaves_no_trace() {
    let before = settled();
    for (what, typo) in typos() {
        let mut world = before.clone();
        typo(&mut world);
        world.wait(60).pass();
        (world.settings, world.domains) = (before.settings.clone(), before.domains.clone());
        world.inventory = before.inventory.clone();
        for _ in 0..20 {
            world.wait(60).pass();
        }
        // Names that only the typo made are parked; every set that was there before is as it was, and stays.
        let plan = world.plan();
        assert!(plan.is_empty(), "{what}:\n{plan}");
        let names: Vec<_> = before.server.values().into_iter().map(|(name, _)| name).collect();
        let parked = plan.parked.map_or(Vec::new(), |parked| parked.changes);
        assert!(!parked.iter().any(|change| names.contains(&change.name)), "{what}");
        for (zone, sets) in &before.server.0 {
            for (key, set) in sets {
                assert_eq!(world.server.0[zone].get(key), Some(set), "{what}");
            }
        }
    }
}
