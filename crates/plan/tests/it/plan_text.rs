//! Plans as people read them, at 80 columns.

use insta::assert_snapshot;
use netstead_model::View;

use crate::world::*;

#[test]
fn a_partial_view_never_removes() {
    let mut world = World::new();
    (world.settings.reverse, world.settings.marks) = (false, false);
    world.sees([vm("old", &["192.0.2.7"])]).pass();
    world.wait(60).sees([]);
    world.wait(600).report("pve", View::Partial { reason: "pve2 is down".into() }, Vec::new(), &[]);
    assert_snapshot!(world.plan(), @r"
      = old.example.com  A      192.0.2.7  kept: source pve incomplete: pve2 is down
    lan: nothing to change, 1 kept
    ");
}

#[test]
fn a_plan_reads_like_a_diff() {
    let mut world = World::new();
    world.server.add("example.com", "mail.example.com", "A 192.0.2.25");
    let long = "a-machine-with-quite-a-long-name.and.a.deep.domain.example.com";
    let mut deep = vm("deep", &["10.0.0.4", "fd00::4"]);
    deep.wishes[0].name = name(long);
    let before = [
        vm("app", &["10.0.0.1"]),
        vm("db", &["10.0.0.2"]),
        vm("gone", &["10.0.0.3"]),
        vm("slow", &["10.0.0.5"]),
    ];
    world.sees(before).pass();
    world.settings.exclude_domains = vec!["app.example.com".parse().unwrap()];
    let after = vec![vm("app", &["10.0.0.1"]), vm("db", &["10.0.0.12"]), deep, vm("mail", &["10.0.0.25"])];
    world.wait(60).report("pve", View::Complete, after.clone(), &[("gone", false)]);
    world.wait(60).report("pve", View::Complete, after, &[]);
    assert_snapshot!(world.plan().at(world.now()), @r"
    zone 0.10.in-addr.arpa on lan
      + 12.0.0.10.in-addr.arpa            PTR    db.example.com.  pve/db: label
      - 3.0.0.10.in-addr.arpa             PTR    gone.example.com.
          pve/gone: ended 1m ago
      + 4.0.0.10.in-addr.arpa
          PTR    a-machine-with-quite-a-long-name.and.a.deep.domain.example.com.
          pve/deep: label
    zone example.com on lan
      + a-machine-with-quite-a-long-name.and.a.deep.domain.example.com
          A      10.0.0.4  pve/deep: label
      + a-machine-with-quite-a-long-name.and.a.deep.domain.example.com
          AAAA   fd00::4  pve/deep: label
      ~ db.example.com                    A      10.0.0.2 → 10.0.0.12
          pve/db: replaced by its workload
      - gone.example.com                  A      10.0.0.3  pve/gone: ended 1m ago
    parked on lan, until `netstead apply d4f4b6183d0e9a10`
      because: the configuration changed
      - 1.0.0.10.in-addr.arpa             PTR    app.example.com.
          pve/app: the configuration changed
      - app.example.com                   A      10.0.0.1
          pve/app: the configuration changed
    blocked on lan
      ! mail.example.com                  A      10.0.0.25
          a record of another owner is there
          there: A 192.0.2.25
          take it over: netstead adopt mail.example.com
          share the name: share = true in [dns.lan]
    kept: absent 1m, grace 5m
      = 2.0.0.10.in-addr.arpa             PTR    db.example.com.
      = 5.0.0.10.in-addr.arpa             PTR    slow.example.com.
      = slow.example.com                  A      10.0.0.5
    lan: 4 to add, 1 to change, 2 to remove, 2 parked, 1 blocked, 3 kept
    ");
}

#[test]
fn nothing_to_do_is_one_line() {
    let mut world = World::new();
    world.sees(fleet(0..3)).pass();
    assert_snapshot!(world.plan(), @"lan: nothing to change");
}

#[test]
fn many_of_one_kind_are_cut_short() {
    let mut world = World::new();
    world.settings.reverse = false;
    world.sees(fleet(0..30)).pass();
    world.settings.domains = vec!["exmaple.com".parse().unwrap()];
    let text = world.plan().to_string();
    let more = "and 10 more: `netstead plan lan --all` shows them";
    assert!(text.contains(more) && text.ends_with("lan: nothing to change, 30 parked"), "{text}");
    let full = world.plan().at(world.now()).in_full().to_string();
    assert!(!full.contains("more") && full.matches(" - ").count() == 30, "{full}");
}
