//! Only what is ours is touched.

use netstead_model::{RecordType, View};
use netstead_plan::{ActualZone, DriftKind, Input, diff};

use crate::world::*;

fn with_foreign(text: &str) -> World {
    let mut world = World::new();
    world.settings.reverse = false;
    world.server.add("example.com", "app.example.com", text);
    world.sees([vm("app", &["10.0.0.1"])]);
    world
}

#[test]
fn a_name_somebody_else_has_is_blocked_with_both_ways_out() {
    let mut world = with_foreign("A 192.0.2.1");
    let plan = world.pass();
    assert!(plan.steps.is_empty());
    assert!(plan.blocked[0].adopt && plan.blocked[0].share);
    assert!(world.owned.is_empty());
}

#[test]
fn another_type_of_somebody_else_blocks_the_name_too() {
    assert_eq!(with_foreign("TXT \"hands off\"").pass().blocked.len(), 1);
}

#[test]
fn share_stands_beside_it_and_leaves_it_there_with_its_ttl() {
    let mut world = with_foreign("A 192.0.2.1");
    world.settings.share = true;
    world.settings.ttl = 60;
    world.pass();
    assert!(world.has("app.example.com", "A 10.0.0.1") && world.has("app.example.com", "A 192.0.2.1"));
    let set = &world.server.0[&name("example.com")][&(name("app.example.com"), RecordType::A)];
    assert_eq!(set.ttl, 300);
    world.report("pve", View::Complete, Vec::new(), &[("app", true)]);
    world.pass();
    assert!(!world.has("app.example.com", "A 10.0.0.1") && world.has("app.example.com", "A 192.0.2.1"));
}

#[test]
fn an_alias_cannot_be_shared() {
    let mut world = with_foreign("CNAME other.example.net.");
    world.settings.share = true;
    let plan = world.pass();
    assert!(plan.steps.is_empty());
    assert_eq!((plan.blocked[0].adopt, plan.blocked[0].share), (true, false));
}

#[test]
fn an_equal_record_is_taken_over_only_with_adopt() {
    let mut world = with_foreign("A 10.0.0.1");
    assert_eq!(world.pass().blocked.len(), 1);
    world.report("pve", View::Complete, Vec::new(), &[("app", true)]);
    world.pass();
    assert!(world.has("app.example.com", "A 10.0.0.1"), "never ours, never removed");
    let mut world = with_foreign("A 10.0.0.1");
    world.settings.adopt = true;
    world.pass();
    assert_eq!(world.owned.len(), 1);
    assert!(world.pass().is_empty());
}

#[test]
fn adopt_takes_over_equal_records_only() {
    let mut world = with_foreign("A 192.0.2.1");
    world.settings.adopt = true;
    assert_eq!(world.pass().blocked.len(), 1);
}

#[test]
fn without_marks_adoption_needs_no_write() {
    let mut world = with_foreign("A 10.0.0.1");
    (world.settings.adopt, world.settings.marks) = (true, false);
    assert!(world.pass().is_empty());
    assert_eq!(world.owned.len(), 1);
}

#[test]
fn what_somebody_removes_is_put_back_and_what_somebody_adds_is_left() {
    let mut world = World::new();
    world.settings.reverse = false;
    world.sees([vm("app", &["10.0.0.1", "10.0.0.2"])]).pass();
    let key = (name("app.example.com"), RecordType::A);
    let set = world.server.0.get_mut(&name("example.com")).unwrap().get_mut(&key).unwrap();
    set.values.remove(&data("A 10.0.0.1"));
    set.values.insert(data("A 192.0.2.1"));
    let plan = world.pass();
    let kinds: Vec<_> = plan.drift.iter().map(|drift| drift.kind).collect();
    assert_eq!(kinds, [DriftKind::Missing, DriftKind::Foreign]);
    for value in ["A 10.0.0.1", "A 10.0.0.2", "A 192.0.2.1"] {
        assert!(world.has("app.example.com", value), "{value}");
    }
}

#[test]
fn a_record_somebody_edited_is_theirs_now() {
    let mut world = World::new();
    world.settings.reverse = false;
    world.sees([vm("app", &["10.0.0.1"])]).pass();
    let key = (name("app.example.com"), RecordType::A);
    let set = world.server.0.get_mut(&name("example.com")).unwrap().get_mut(&key).unwrap();
    set.values = [data("A 192.0.2.1")].into();
    let plan = world.plan();
    assert_eq!((plan.blocked.len(), plan.drift[0].kind), (1, DriftKind::Missing));
}

#[test]
fn a_zone_that_could_not_be_read_is_left_and_so_is_its_parent() {
    let mut world = World::new();
    world.settings.reverse = false;
    let mut sub = vm("x", &["10.0.0.1"]);
    sub.wishes[0].name = name("x.sub.example.com");
    world.sees([sub, vm("app", &["10.0.0.2"])]);
    let mut actual = world.server.actual();
    actual.zones.push(ActualZone { name: name("sub.example.com"), sign: None, sets: None });
    let wanted = world.desired();
    let (owned, guard, settings, now) = (&world.owned, &world.guard, &world.settings, world.now());
    let plan = diff(&Input { desired: &wanted, actual: &actual, owned, guard, settings, now, clean: false });
    let names: Vec<_> = plan.steps.iter().map(|step| step.unit.name.as_str()).collect();
    assert_eq!(names, ["app.example.com"]);
    assert_eq!(plan.kept[0].name, "sub.example.com");
}

#[test]
fn nothing_is_written_below_a_delegation_or_as_alias_at_the_top() {
    let mut world = World::new();
    world.server.add("example.com", "sub.example.com", "NS ns.example.net.");
    let mut below = vm("x", &["10.0.0.1"]);
    below.wishes[0].name = name("x.sub.example.com");
    let mut top = bare("top");
    top.wishes = vec![exact("example.com", &["CNAME www.example.net."])];
    let plan = world.sees([below, top]).pass();
    let why: Vec<_> = plan.blocked.iter().map(|blocked| blocked.why.as_str()).collect();
    assert_eq!(why, ["a CNAME cannot stand at the top of a zone", "another server answers for it"]);
}

#[test]
fn the_name_servers_of_a_zone_do_not_block_its_top() {
    let mut world = World::new();
    world.server.add("example.com", "example.com", "NS ns1.example.net.");
    let mut top = vm("top", &["10.0.0.1"]);
    top.wishes[0].name = name("example.com");
    world.sees([top]).pass();
    assert!(world.has("example.com", "A 10.0.0.1"));
}

#[test]
fn the_store_knows_of_a_value_before_the_server_does() {
    let mut world = World::new();
    world.settings.reverse = false;
    world.sees([vm("app", &["10.0.0.1"])]);
    let (plan, now) = (world.plan(), world.now());
    netstead_plan::record_intent(&plan, &mut world.owned, &mut world.guard, now);
    // The server takes it, and we crash before the answer comes.
    world.server.write(&plan.steps[0].zone, &plan.steps[0].unit);
    let plan = world.pass();
    assert!(plan.is_empty() && plan.blocked.is_empty());
    assert!(!world.owned.get(&name("app.example.com"), &data("A 10.0.0.1")).unwrap().pending);
}

#[test]
fn what_the_server_refuses_is_not_ours() {
    let mut world = World::new();
    world.settings.reverse = false;
    world.sees([vm("app", &["10.0.0.1"])]);
    let (plan, now) = (world.plan(), world.now());
    let intent = netstead_plan::record_intent(&plan, &mut world.owned, &mut world.guard, now);
    let refused = netstead_model::UnitOutcome::Rejected { reason: "no".into() };
    netstead_plan::record_outcome(
        &plan,
        &intent,
        &[refused],
        &mut world.owned,
        &mut world.guard,
        &world.settings,
        now,
    );
    assert!(world.owned.is_empty());
}

#[test]
fn clean_removes_all_that_is_ours_and_nothing_else() {
    let mut world = World::new();
    world.server.add("example.com", "hand.example.com", "A 192.0.2.1");
    world.sees(fleet(0..50)).pass();
    let (wanted, actual, now) = (world.desired(), world.server.actual(), world.now());
    let (owned, guard, settings) = (&world.owned, &world.guard, &world.settings);
    let plan = diff(&Input { desired: &wanted, actual: &actual, owned, guard, settings, now, clean: true });
    assert_eq!((plan.steps.len(), plan.parked), (100, None));
    for step in &plan.steps {
        world.server.write(&step.zone, &step.unit);
    }
    assert_eq!(world.server.values().len(), 1);
}
