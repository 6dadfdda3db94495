//! A claim never joins a name that another owner or source has.

use insta::assert_snapshot;
use netstead_model::{RecordType, View, Workload};
use netstead_plan::{Owned, SourceConfig, SourceRules};

use crate::world::*;

const WWW: &str = "www.example.com";

/// Several sources beside each other: what each says stays until it says something else.
struct Town {
    world: World,
}

impl Town {
    fn new() -> Self {
        let mut world = World::new();
        world.settings.reverse = false;
        let config = |source: &str| SourceConfig {
            config: netstead_plan::Digest::of([source]),
            commanded: source != "docker",
            movable: false,
            rules: SourceRules::default(),
        };
        let sources = ["docker", "ledger", "manual"].map(|name| (name.parse().unwrap(), config(name)));
        world.inventory.configure(&sources.into(), world.now());
        Self { world }
    }

    fn says(&mut self, source: &str, workloads: &[Workload]) -> &mut Self {
        self.world.wait(1).report(source, View::Complete, workloads.to_vec(), &[]);
        self
    }

    fn has(&self, address: &str) -> bool {
        self.world.has(WWW, &format!("A {address}"))
    }
}

/// A claim of `owner` that asks for `www.example.com`.
fn claim(id: &str, owner: &str, address: &str) -> Workload {
    let (kind, owner) = ("claim".into(), Some(owner.into()));
    Workload { kind, owner, wishes: vec![wish(WWW, &[address])], ..bare(id) }
}

fn record(values: &[&str]) -> Workload {
    Workload { kind: "record".into(), wishes: vec![exact(WWW, values)], ..bare("www.example.com/A") }
}

fn container(id: &str, address: &str) -> Workload {
    Workload { kind: "container".into(), wishes: vec![wish(WWW, &[address])], ..bare(id) }
}

#[test]
fn a_claim_does_not_join_a_record_that_came_before_and_the_plan_shows_both_ways_out() {
    let mut town = Town::new();
    town.says("manual", &[record(&["A 10.0.0.1"])]);
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]);
    assert_snapshot!(town.world.pass(), @r"
    zone example.com on lan
      + www.example.com  A      10.0.0.1  manual/www.example.com/A: label
    blocked on lan
      ! www.example.com  A      10.0.0.2
          manual/www.example.com/A has the name, and ledger/lan/x came later
          there: A 10.0.0.1
          free it: netstead record delete www.example.com A
          share the name: share = true in [dns.lan]
    lan: 1 to add, 0 to change, 0 to remove, 1 blocked
    ");
    assert!(town.has("10.0.0.1") && !town.has("10.0.0.2"));
    let why_not = town.world.desired().why_not;
    assert_eq!(why_not.len(), 1);
    assert_eq!(
        (why_not[0].workload.as_str(), why_not[0].why.as_str(), why_not[0].refused),
        ("lan/x", "manual/www.example.com/A has the name, and a claim does not join it", true)
    );
}

#[test]
fn claims_of_one_owner_share_a_name_and_those_of_another_do_not() {
    let mut town = Town::new();
    let (one, two) = (claim("lan/a", "alice", "10.0.0.1"), claim("lan/b", "alice", "10.0.0.2"));
    town.says("ledger", std::slice::from_ref(&one));
    let plan = town.says("ledger", &[one, two, claim("lan/c", "bob", "10.0.0.3")]).world.pass();
    assert!(town.has("10.0.0.1") && town.has("10.0.0.2") && !town.has("10.0.0.3"));
    assert_eq!(plan.blocked[0].free_by.as_deref(), Some("netstead release lan a"));
    assert_eq!(plan.blocked[0].holder.as_deref(), Some("ledger/lan/a"));
}

#[test]
fn containers_share_a_name_as_ever_and_a_claim_does_not_join_them() {
    let mut town = Town::new();
    town.says("docker", &[container("a", "10.0.0.1"), container("b", "10.0.0.2")]);
    let plan = town.says("ledger", &[claim("lan/x", "ci", "10.0.0.3")]).world.pass();
    assert!(town.has("10.0.0.1") && town.has("10.0.0.2") && !town.has("10.0.0.3"));
    assert_eq!(plan.blocked[0].free_by.as_deref(), Some("take the name from docker/a"));
    // The claims that are made for a source are the source's own.
    let own = claim("lan/docker/a", "source/docker", "10.0.0.4");
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.3"), own]).world.pass();
    assert!(town.has("10.0.0.4") && !town.has("10.0.0.3"));
}

#[test]
fn who_came_first_keeps_the_name_whoever_joins_later() {
    let mut town = Town::new();
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]);
    town.says("manual", &[record(&["A 10.0.0.1"])]).world.pass();
    assert!(town.has("10.0.0.1") && town.has("10.0.0.2"));
    assert!(town.world.pass().blocked.is_empty());
}

#[test]
fn an_old_claim_that_asks_for_the_name_later_is_the_later_one() {
    let mut town = Town::new();
    let mut elsewhere = claim("lan/x", "ci", "10.0.0.2");
    elsewhere.wishes[0].name = name("x.example.com");
    town.says("ledger", &[elsewhere]);
    town.says("docker", &[container("a", "10.0.0.1")]);
    // Nothing is written yet, so only the order in which they asked tells.
    let plan = town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]).world.pass();
    assert!(town.has("10.0.0.1") && !town.has("10.0.0.2"), "{plan}");
    // The same claim in the hands of another owner asks anew.
    let mut town = Town::new();
    town.says("ledger", &[claim("lan/x", "alice", "10.0.0.2")]);
    town.says("docker", &[container("a", "10.0.0.1")]);
    town.says("ledger", &[claim("lan/x", "bob", "10.0.0.2")]).world.pass();
    assert!(town.has("10.0.0.1") && !town.has("10.0.0.2"));
}

#[test]
fn a_restart_does_not_change_who_was_first() {
    let mut town = Town::new();
    let mut early = claim("lan/x", "ci", "10.0.0.2");
    early.wishes[0].name = name("x.example.com");
    town.says("ledger", &[early]);
    town.says("docker", &[container("a", "10.0.0.1")]);
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]);
    for order in [["docker", "ledger"], ["ledger", "docker"]] {
        let text = serde_json::to_string(&town.world.inventory).unwrap();
        let mut again = Town::new();
        again.world.millis = town.world.millis + 60_000;
        again.world.inventory = serde_json::from_str(&text).unwrap();
        again.world.inventory.take_over(again.world.now());
        for source in order {
            let workload = match source {
                "docker" => container("a", "10.0.0.1"),
                _ => claim("lan/x", "ci", "10.0.0.2"),
            };
            again.says(source, &[workload]);
        }
        again.world.pass();
        assert!(again.has("10.0.0.1") && !again.has("10.0.0.2"), "{order:?}");
    }
}

#[test]
fn a_holder_that_may_come_back_still_has_the_name() {
    let mut town = Town::new();
    town.says("docker", &[container("a", "10.0.0.1")]).world.pass();
    town.says("docker", &[]);
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]).world.pass();
    assert!(town.has("10.0.0.1") && !town.has("10.0.0.2"));
    for _ in 0..6 {
        town.world.wait(60);
        town.says("docker", &[]);
    }
    let plan = town.world.pass();
    assert!(!town.has("10.0.0.1") && town.has("10.0.0.2"));
    assert_eq!(plan.steps.len(), 1, "one goes as the other comes: {plan}");
}

#[test]
fn a_holder_that_flaps_keeps_the_name_also_where_nothing_stands_yet() {
    let mut town = Town::new();
    town.says("docker", &[container("a", "10.0.0.1")]);
    town.says("docker", &[Workload { wishes: Vec::new(), ..container("a", "10.0.0.1") }]);
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]);
    town.says("docker", &[container("a", "10.0.0.1")]);
    assert_eq!(town.world.owned, Owned::default());
    town.world.pass();
    assert!(town.has("10.0.0.1") && !town.has("10.0.0.2"));
}

#[test]
fn who_took_a_free_name_keeps_it_when_the_former_holder_asks_again() {
    let mut town = Town::new();
    let (silent, asks) =
        (Workload { wishes: Vec::new(), ..container("a", "10.0.0.1") }, container("a", "10.0.0.1"));
    town.says("docker", std::slice::from_ref(&asks)).world.pass();
    for _ in 0..7 {
        town.world.wait(60);
        town.says("docker", std::slice::from_ref(&silent));
    }
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]).world.pass();
    assert!(!town.has("10.0.0.1") && town.has("10.0.0.2"));
    for _ in 0..3 {
        town.says("docker", std::slice::from_ref(&asks));
        let plan = town.world.pass();
        assert!(town.has("10.0.0.2") && plan.parked.is_none(), "{plan}");
    }
}

#[test]
fn share_lets_a_claim_join() {
    let mut town = Town::new();
    town.world.settings.share = true;
    town.says("manual", &[record(&["A 10.0.0.1"])]);
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]).world.pass();
    assert!(town.has("10.0.0.1") && town.has("10.0.0.2"));
}

#[test]
fn a_record_of_another_type_is_held_as_well() {
    let mut town = Town::new();
    town.says("manual", &[record(&["MX 10 mail.example.com."])]);
    let plan = town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]).world.pass();
    assert_eq!((plan.steps.len(), plan.blocked.len(), plan.blocked[0].share), (1, 1, true));
}

#[test]
fn a_claim_of_the_address_that_stands_there_is_one_more_reason() {
    let mut town = Town::new();
    town.says("docker", &[container("a", "10.0.0.1")]);
    let plan = town.says("ledger", &[claim("lan/x", "ci", "10.0.0.1")]).world.pass();
    assert!(plan.blocked.is_empty());
    assert_eq!(town.world.owned.of(&name(WWW))[0].reasons.len(), 2);
}

#[test]
fn a_claim_does_not_replace_an_alias_whose_holder_is_away_for_a_moment() {
    let mut town = Town::new();
    let aliased =
        Workload { wishes: vec![exact(WWW, &["CNAME one.example.net."])], ..container("a", "10.0.0.1") };
    town.says("docker", &[aliased]).world.pass();
    town.says("docker", &[]);
    let plan = town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]).world.pass();
    assert!(town.world.has(WWW, "CNAME one.example.net."), "{plan}");
    assert!(!plan.blocked[0].share, "an alias cannot be shared");
}

#[test]
fn a_blocked_claim_gets_no_ptr_to_the_name() {
    let mut town = Town::new();
    town.world.settings.reverse = true;
    town.says("manual", &[record(&["A 10.0.0.1"])]);
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]).world.pass();
    assert!(town.world.owned.of(&name("2.0.0.10.in-addr.arpa")).is_empty());
}

#[test]
fn what_was_joined_before_stays_until_a_person_removes_it() {
    let mut town = Town::new();
    town.says("docker", &[container("a", "10.0.0.1")]);
    let joined = [claim("lan/x", "ci", "10.0.0.2")];
    town.says("ledger", &joined).world.settings.share = true;
    town.world.pass();
    // An older version joined without being asked.
    town.world.settings.share = false;
    for _ in 0..60 {
        town.world.wait(60);
        town.says("docker", &[container("a", "10.0.0.1")]).says("ledger", &joined).world.pass();
    }
    assert_snapshot!(town.world.plan(), @r"
      = www.example.com  A      10.0.0.2
          kept: docker/a asked for the name first, and claims no longer join it
    lan: nothing to change, 1 kept
    ");
    assert!(town.has("10.0.0.1") && town.has("10.0.0.2"));
    // One more of the same owner does not come.
    let plan = town.says("ledger", &[joined[0].clone(), claim("lan/y", "ci", "10.0.0.3")]).world.pass();
    assert_eq!((plan.blocked.len(), town.has("10.0.0.2"), town.has("10.0.0.3")), (1, true, false));
    town.world.wait(1).report("ledger", View::Complete, Vec::new(), &[("lan/x", true), ("lan/y", true)]);
    town.world.pass();
    assert!(town.has("10.0.0.1") && !town.has("10.0.0.2"));
}

#[test]
fn a_claim_that_shared_a_value_does_not_join_with_another_one() {
    let mut town = Town::new();
    town.says("docker", &[container("a", "10.0.0.1")]);
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.1")]).world.pass();
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]).world.pass();
    assert!(town.has("10.0.0.1") && !town.has("10.0.0.2"));
    // One that has the name alone may have another address.
    let mut town = Town::new();
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.1")]).world.pass();
    town.says("docker", &[container("a", "10.0.0.5")]).world.pass();
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]).world.pass();
    assert!(!town.has("10.0.0.1") && town.has("10.0.0.2") && town.has("10.0.0.5"));
}

#[test]
fn a_claim_keeps_a_name_that_it_had_before_another_source_was_allowed_to_have_it() {
    let mut town = Town::new();
    let away = Workload { wishes: vec![wish("a.example.com", &["10.0.0.5"])], ..container("a", "10.0.0.5") };
    town.says("docker", &[away]);
    town.says("ledger", &[claim("lan/x", "alice", "10.0.0.1")]).world.pass();
    town.says("docker", &[container("a", "10.0.0.5")]);
    for owner in ["alice", "bob"] {
        for _ in 0..3 {
            let plan = town.says("ledger", &[claim("lan/x", owner, "10.0.0.1")]).world.pass();
            assert!(town.has("10.0.0.1") && plan.parked.is_none() && plan.blocked.is_empty(), "{plan}");
        }
    }
}

#[test]
fn a_released_claim_that_was_joined_goes_at_once() {
    let mut town = Town::new();
    town.says("docker", &[container("a", "10.0.0.1")]);
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]).world.settings.share = true;
    town.world.pass();
    town.world.settings.share = false;
    town.world.pass();
    town.world.wait(1).report("ledger", View::Complete, Vec::new(), &[("lan/x", true)]);
    town.world.pass();
    assert!(town.has("10.0.0.1") && !town.has("10.0.0.2"));
}

#[test]
fn a_claim_waits_with_what_a_guard_holds_back() {
    let mut town = Town::new();
    town.says("docker", &[container("a", "10.0.0.1")]).world.pass();
    // The source is configured otherwise, so what it loses is parked.
    let config = |source: &str, of: &str| SourceConfig {
        config: netstead_plan::Digest::of([of]),
        commanded: source != "docker",
        movable: false,
        rules: SourceRules::default(),
    };
    let sources = [("docker", "another"), ("ledger", "ledger"), ("manual", "manual")];
    let sources = sources.map(|(name, of)| (name.parse().unwrap(), config(name, of)));
    town.world.wait(1);
    let now = town.world.now();
    town.world.inventory.configure(&sources.into(), now);
    for _ in 0..7 {
        town.world.wait(60);
        town.says("docker", &[]);
    }
    town.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]);
    let plan = town.world.pass();
    assert_eq!(
        plan.blocked[0].why,
        "what another workload has there is parked, and a claim does not join it"
    );
    assert_eq!((plan.steps.len(), plan.parked.map(|parked| parked.changes.len())), (0, Some(1)));
    assert!(town.has("10.0.0.1") && !town.has("10.0.0.2"));
    let (hash, now) = (town.world.plan().parked.unwrap().hash, town.world.now());
    town.world.guard.approve(hash, now).unwrap();
    town.world.pass();
    assert!(!town.has("10.0.0.1") && town.has("10.0.0.2"));
}

#[test]
fn a_claim_joins_nothing_that_is_kept_for_a_source_that_is_gone() {
    let mut town = Town::new();
    town.says("docker", &[container("a", "10.0.0.1")]).world.pass();
    // The store knows what is ours, and nothing of the source any more.
    let mut again = Town::new();
    again.world.millis = town.world.millis + 1000;
    (again.world.server, again.world.owned) = (town.world.server.clone(), town.world.owned.clone());
    let plan = again.says("ledger", &[claim("lan/x", "ci", "10.0.0.2")]).world.pass();
    assert!(again.has("10.0.0.1") && !again.has("10.0.0.2"), "{plan}");
    assert_eq!(
        plan.blocked[0].why,
        "what another workload has there is kept: source docker has not said all"
    );
    let set = &again.world.server.0[&name("example.com")][&(name(WWW), RecordType::A)];
    assert_eq!(set.values.len(), 1);
}
