//! Absence is not deletion.

use netstead_model::{Span, View, Workload};
use netstead_plan::Cause;

use crate::world::*;

fn settled(workloads: &[Workload]) -> World {
    let mut world = World::new();
    world.sees(workloads.to_vec()).pass();
    world
}

#[test]
fn one_omitted_host_stays_until_grace_and_two_reports_have_passed() {
    let all = fleet(0..8);
    let mut world = settled(&all);
    world.goes_on(5, &all[1..]);
    assert!(world.has("w0.example.com", "A 10.0.0.0"));
    world.goes_on(1, &all[1..]);
    assert!(!world.has("w0.example.com", "A 10.0.0.0"));
    assert!(world.has("w1.example.com", "A 10.0.0.1"));
}

#[test]
fn grace_alone_is_not_enough_without_a_second_report() {
    let all = fleet(0..8);
    let mut world = settled(&all);
    world.wait(60).sees(all[1..].to_vec()).wait(3600).pass();
    assert!(world.has("w0.example.com", "A 10.0.0.0"));
}

#[test]
fn a_reappearance_cancels_the_tombstone() {
    let all = fleet(0..8);
    let mut world = settled(&all);
    for _ in 0..10 {
        world.goes_on(4, &all[1..]);
        world.goes_on(1, &all);
    }
    assert!(world.has("w0.example.com", "A 10.0.0.0"));
}

#[test]
fn grace_runs_only_while_the_source_is_complete() {
    let all = fleet(0..8);
    let mut world = settled(&all);
    world.goes_on(2, &all[1..]);
    for view in [View::Failed { reason: "timeout".into() }, View::Partial { reason: "pve2 is down".into() }] {
        for _ in 0..60 {
            world.wait(60).report("pve", view.clone(), Vec::new(), &[]);
            world.pass();
        }
    }
    world.goes_on(2, &all[1..]);
    assert!(world.has("w0.example.com", "A 10.0.0.0"));
    world.goes_on(3, &all[1..]);
    assert!(!world.has("w0.example.com", "A 10.0.0.0"));
}

#[test]
fn a_new_connection_starts_every_grace_anew() {
    let all = fleet(0..8);
    let mut world = settled(&all);
    world.goes_on(5, &all[1..]);
    world.session += 1;
    world.goes_on(5, &all[1..]);
    assert!(world.has("w0.example.com", "A 10.0.0.0"));
    world.goes_on(1, &all[1..]);
    assert!(!world.has("w0.example.com", "A 10.0.0.0"));
}

#[test]
fn an_end_that_was_seen_needs_thirty_seconds() {
    let all = fleet(0..8);
    let mut world = settled(&all);
    world.report("pve", View::Complete, all[1..].to_vec(), &[("w0", false)]);
    world.wait(29).pass();
    assert!(world.has("w0.example.com", "A 10.0.0.0"));
    world.wait(1).pass();
    assert!(!world.has("w0.example.com", "A 10.0.0.0"));
}

#[test]
fn what_ended_and_is_back_stays() {
    let all = fleet(0..8);
    let mut world = settled(&all);
    world.report("pve", View::Complete, all.clone(), &[("w0", false)]);
    world.wait(600).pass();
    assert!(world.has("w0.example.com", "A 10.0.0.0"));
}

#[test]
fn what_was_asked_for_goes_at_once() {
    let all = fleet(0..8);
    let mut world = settled(&all);
    world.report("pve", View::Complete, all[1..].to_vec(), &[("w0", true)]);
    world.pass();
    assert!(!world.has("w0.example.com", "A 10.0.0.0"));
}

#[test]
fn a_source_that_loses_half_is_suspect_until_it_says_so_again() {
    let all = fleet(0..10);
    let mut world = settled(&all);
    world.goes_on(1, &all[5..]);
    let source = "pve".parse().unwrap();
    assert!(world.inventory.source(&source).unwrap().suspect.is_some());
    world.goes_on(4, &all[5..]);
    assert!(world.inventory.source(&source).unwrap().suspect.is_some());
    world.goes_on(1, &all[5..]);
    assert!(world.inventory.source(&source).unwrap().suspect.is_none());
    assert!(world.has("w0.example.com", "A 10.0.0.0"), "now grace runs");
    world.goes_on(5, &all[5..]);
    assert!(!world.has("w0.example.com", "A 10.0.0.0"));
}

#[test]
fn two_thefts_of_a_third_are_as_suspect_as_one_of_half() {
    let all = fleet(0..9);
    let mut world = settled(&all);
    world.goes_on(1, &all[3..]);
    world.goes_on(1, &all[6..]);
    assert!(world.inventory.source(&"pve".parse().unwrap()).unwrap().suspect.is_some());
}

#[test]
fn ends_that_were_seen_are_not_suspect() {
    let all = fleet(0..10);
    let mut world = settled(&all);
    let ended: Vec<_> = ["w0", "w1", "w2", "w3", "w4", "w5"].map(|id| (id, false)).to_vec();
    world.report("pve", View::Complete, all[6..].to_vec(), &ended);
    assert_eq!(world.inventory.source(&"pve".parse().unwrap()).unwrap().suspect, None);
}

#[test]
fn an_address_that_vanishes_from_a_running_machine_is_absent_not_gone() {
    let mut world = settled(&[vm("db", &["10.0.0.9"])]);
    world.goes_on(5, &[vm("db", &[])]);
    assert!(world.has("db.example.com", "A 10.0.0.9"));
    world.goes_on(1, &[vm("db", &[])]);
    assert!(!world.has("db.example.com", "A 10.0.0.9"));
}

#[test]
fn an_address_that_is_replaced_changes_at_once() {
    let mut world = settled(&[vm("db", &["10.0.0.9"])]);
    world.wait(1).sees([vm("db", &["10.0.0.10"])]).pass();
    assert!(!world.has("db.example.com", "A 10.0.0.9"));
    assert!(world.has("db.example.com", "A 10.0.0.10"));
    assert!(world.has("10.0.0.10.in-addr.arpa", "PTR db.example.com."));
    assert!(world.has("9.0.0.10.in-addr.arpa", "PTR db.example.com."), "nothing takes its place");
    world.goes_on(5, &[vm("db", &["10.0.0.10"])]);
    assert!(!world.has("9.0.0.10.in-addr.arpa", "PTR db.example.com."));
}

#[test]
fn a_renamed_machine_keeps_its_old_name_for_a_while() {
    let mut renamed = vm("db", &["10.0.0.9"]);
    renamed.wishes[0].name = name("sql.example.com");
    let mut world = settled(&[vm("db", &["10.0.0.9"])]);
    world.goes_on(1, &[renamed.clone()]);
    assert!(world.has("db.example.com", "A 10.0.0.9") && world.has("sql.example.com", "A 10.0.0.9"));
    world.goes_on(5, &[renamed]);
    assert!(!world.has("db.example.com", "A 10.0.0.9"));
}

#[test]
fn a_new_leader_plans_only_from_reports_begun_after_it_took_over() {
    let all = fleet(0..8);
    let mut world = settled(&all);
    world.goes_on(5, &all[1..]);
    let before = world.now();
    world.wait(60);
    let now = world.now();
    world.inventory.take_over(now);
    let late = netstead_model::Report::whole("pve".parse().unwrap(), before.at, View::Complete, Vec::new());
    let look = netstead_plan::ReportArrival { now, began: before.millis, session: 1 };
    assert_eq!(world.inventory.ingest(late, look), netstead_plan::ReportOutcome::Stale);
    world.wait(3600).pass();
    assert!(world.has("w0.example.com", "A 10.0.0.0"));
}

#[test]
fn a_clock_that_was_set_back_makes_no_report_stale() {
    let mut world = settled(&fleet(0..8));
    world.wait(60);
    let now = world.now();
    let report = netstead_model::Report::whole(
        "pve".parse().unwrap(),
        "1999-12-31T23:59:59Z".parse().unwrap(),
        View::Complete,
        fleet(0..9),
    );
    let look = netstead_plan::ReportArrival { now, began: now.millis, session: 1 };
    assert_eq!(world.inventory.ingest(report, look), netstead_plan::ReportOutcome::Accepted);
    world.pass();
    assert!(world.has("w8.example.com", "A 10.0.0.8"));
}

#[test]
fn a_source_that_vanishes_from_the_file_is_detached() {
    let mut world = World::new();
    world.configure("pve", "one", false);
    world.sees(fleet(0..3)).pass();
    world.configure("other", "one", false);
    world.wait(86_400);
    assert!(world.pass().steps.is_empty());
    assert!(world.has("w0.example.com", "A 10.0.0.0"));
    world.inventory.clean(&"pve".parse().unwrap());
    world.pass();
    assert_eq!(world.server.values().len(), 0);
}

#[test]
fn a_changed_source_filter_parks_what_it_loses() {
    let all = fleet(0..8);
    let mut world = World::new();
    world.configure("pve", "one", false);
    world.sees(all.clone()).pass();
    world.wait(1).configure("pve", "two", false);
    world.goes_on(20, &all[1..]);
    assert!(world.has("w0.example.com", "A 10.0.0.0"));
    assert_eq!(world.plan().parked.unwrap().changes.len(), 2, "the A and its PTR");
}

#[test]
fn what_people_command_changes_at_once_unless_it_was_the_file_that_changed() {
    let mut world = World::new();
    (world.settings.reverse, world.settings.marks) = (false, false);
    let named =
        |name: &str| netstead_model::Workload { wishes: vec![wish(name, &["10.0.0.1"])], ..bare("web") };
    world.configure("pve", "one", true);
    world.sees([named("web.example.com")]).pass();
    world.wait(1).sees([named("app.example.com")]).pass();
    assert!(world.has("app.example.com", "A 10.0.0.1") && !world.has("web.example.com", "A 10.0.0.1"));
    world.configure("pve", "another", true);
    let plan = world.wait(1).sees([named("typo.example.com")]).pass();
    assert!(world.has("typo.example.com", "A 10.0.0.1") && world.has("app.example.com", "A 10.0.0.1"));
    assert_eq!(plan.parked.unwrap().changes.len(), 1);
    // Whatever is asked for after that goes at once again.
    world.wait(1).sees([named("web.example.com")]).pass();
    assert!(!world.has("typo.example.com", "A 10.0.0.1") && world.has("app.example.com", "A 10.0.0.1"));
}

#[test]
fn a_value_goes_with_the_last_of_its_reasons() {
    let mut twin = vm("b", &["10.0.0.9"]);
    twin.wishes[0].name = name("a.example.com");
    let mut world = settled(&[vm("a", &["10.0.0.9"]), twin.clone()]);
    world.report("pve", View::Complete, vec![twin], &[("a", true)]);
    world.pass();
    assert!(world.has("a.example.com", "A 10.0.0.9"));
    world.report("pve", View::Complete, Vec::new(), &[("b", true)]);
    world.pass();
    assert!(!world.has("a.example.com", "A 10.0.0.9"));
}

#[test]
fn the_inventory_forgets_only_what_nobody_needs() {
    let all = fleet(0..8);
    let mut world = settled(&all);
    world.report("pve", View::Complete, all[1..].to_vec(), &[("w0", true)]);
    let (now, source, id) = (world.now(), "pve".parse().unwrap(), "w0".parse().unwrap());
    world.inventory.prune(world.settings.grace, now, |_, _| true);
    assert!(world.inventory.entry(&source, &id).is_some());
    world.pass();
    world.inventory.prune(world.settings.grace, now, |_, _| false);
    assert!(world.inventory.entry(&source, &id).is_none());
}

#[test]
fn an_inventory_survives_the_store() {
    let mut world = settled(&fleet(0..8));
    world.goes_on(2, &fleet(2..8));
    let text = serde_json::to_string(&world.inventory).unwrap();
    assert_eq!(serde_json::from_str::<netstead_plan::Inventory>(&text).unwrap(), world.inventory);
    assert!(Cause::Absent.may_empty() && !Cause::Updated.may_empty());
}

#[test]
fn what_a_workload_asked_for_stays_while_its_labels_cannot_be_read() {
    let all = [vm("a", &["10.0.0.9"]), vm("b", &["10.0.0.8"])];
    let mut world = settled(&all);
    let unreadable = netstead_model::Workload { unclear: true, ..bare("a") };
    world.goes_on(60 * 30, &[unreadable]);
    assert!(world.has("a.example.com", "A 10.0.0.9"), "nobody knows what it asks for now");
    assert!(!world.has("b.example.com", "A 10.0.0.8"), "the others go on as ever");
    let kept = world.plan().kept.into_iter().find(|kept| kept.name == name("a.example.com")).unwrap();
    assert_eq!(kept.why.to_string(), "something it asks for now cannot be read");
    world.goes_on(10, &[bare("a")]);
    assert!(!world.has("a.example.com", "A 10.0.0.9"));
}

#[test]
fn what_may_still_be_there_is_told_to_others() {
    let mut world = settled(&[vm("a", &["10.0.0.9"]), vm("b", &["10.0.0.8"])]);
    let alive = |world: &World| {
        let pve = "pve".parse().unwrap();
        let alive = world.inventory.alive(&pve, world.settings.graces(), world.now());
        let all = world.inventory.source(&pve).unwrap().says_all();
        (alive.iter().map(|one| (one.id.to_string(), one.present)).collect::<Vec<_>>(), all)
    };
    let both = |b: bool| vec![("a".to_owned(), true), ("b".to_owned(), b)];
    assert_eq!(alive(&world), (both(true), true));
    world.goes_on(2, &[vm("a", &["10.0.0.9"])]);
    assert_eq!(alive(&world), (both(false), true));
    world.report("pve", View::Failed { reason: "away".into() }, vec![], &[]);
    assert!(!alive(&world).1);
    world.goes_on(10, &[vm("a", &["10.0.0.9"])]);
    assert_eq!(alive(&world), (both(true)[..1].to_vec(), true));
}

#[test]
fn another_look_is_due_when_the_first_grace_runs_out() {
    let all: Vec<_> = (1..9).map(|n| vm(&format!("w{n}"), &[&format!("10.0.0.{n}")])).collect();
    let mut world = settled(&all);
    world.settings.grace = Span::from_secs(5);
    let pve = "pve".parse().unwrap();
    let graces = [Span::from_secs(5), Span::from_secs(300)];
    let next = |world: &World| world.inventory.source(&pve).unwrap().next_look(&graces);
    let waiting = |world: &World| {
        let waiting = world.inventory.source(&pve).unwrap().waiting(&[world.settings.graces()], world.now());
        waiting.map(|waiting| (waiting.workloads, waiting.next))
    };
    assert_eq!((next(&world), waiting(&world)), (None, None), "nothing is absent");
    world.wait(10).sees(all[..7].to_vec()).pass();
    let gone = world.now().millis;
    assert_eq!(next(&world), Some(gone + 5_000));
    assert_eq!(waiting(&world), Some((1, gone + 5_000)));
    let kept =
        |world: &World| world.plan().kept.iter().map(|kept| kept.why.at(world.now())).collect::<Vec<_>>();
    let plan = world.plan();
    world.wait(2);
    assert_eq!(kept(&world), ["absent 2s, grace 5s"; 2], "worded when it is shown");
    assert_eq!(world.plan(), plan, "and the plan is the same whenever it is made");
    world.wait(3).sees(all[..7].to_vec());
    assert!(world.plan().kept.is_empty(), "two reports without it, five seconds apart");
    assert_eq!(next(&world), Some(gone + 300_000), "the longer grace of another provider");
    assert_eq!(waiting(&world), None);
    world.report("pve", View::Partial { reason: "one node".into() }, Vec::new(), &[]);
    assert_eq!(next(&world), None, "a source that does not see everything ends no grace");
}

#[test]
fn a_suspicion_ends_after_five_minutes_if_the_source_is_looked_at_when_due() {
    let all: Vec<_> = (1..11).map(|n| vm(&format!("w{n}"), &[&format!("10.0.0.{n}")])).collect();
    let mut world = settled(&all);
    let pve = "pve".parse().unwrap();
    world.wait(10).sees(all[..4].to_vec());
    let since = world.now().millis;
    let mut looks = Vec::new();
    while world.inventory.source(&pve).unwrap().suspect.is_some() {
        let next = world.inventory.source(&pve).unwrap().next_look(&[Span::from_secs(300)]).unwrap();
        looks.push(next - since);
        world.millis = next;
        world.sees(all[..4].to_vec());
    }
    assert_eq!(looks, [150_000, 300_000]);
    let waiting = world.inventory.source(&pve).unwrap().waiting(&[world.settings.graces()], world.now());
    let waiting = waiting.map(|waiting| (waiting.workloads, waiting.next - since));
    assert_eq!(waiting, Some((6, 600_000)), "from then on it waits for grace, and says so");
}

#[test]
fn what_ended_goes_at_a_time_that_is_known() {
    let mut world = settled(&[vm("a", &["10.0.0.9"]), vm("b", &["10.0.0.8"])]);
    assert_eq!(world.desired().next_end(), None);
    world.wait(10).report("pve", View::Complete, vec![vm("a", &["10.0.0.9"])], &[("b", false)]);
    let ended = world.now().millis;
    assert_eq!(world.desired().next_end(), Some(ended + 30_000));
    world.wait(29);
    assert_eq!(world.plan().kept[0].why.at(world.now()), "ended 29s ago, grace 30s");
    world.wait(1).pass();
    assert_eq!((world.has("b.example.com", "A 10.0.0.8"), world.desired().next_end()), (false, None));
}
