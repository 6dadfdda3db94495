//! A source with scopes: only its own scope removes a workload.

use std::{collections::BTreeMap, sync::Arc};

use netstead_model::{Ended, Ident, Report, Roster, Scope, ScopeReport, Seen, Span, View, Workload};
use netstead_plan::{
    Digest, KeptReason, Presence, ReportArrival, ReportOutcome, RetiredBy, ScopeState, SourceConfig,
    SourceRules, SourceState, Standing,
};

use crate::world::*;

fn k8s() -> Ident {
    "pve".parse().unwrap()
}

pub fn scope(name: &str) -> Scope {
    name.parse().unwrap()
}

/// A scope that shows these.
fn shows(name: &str, workloads: &[Workload]) -> (Scope, ScopeReport) {
    (scope(name), ScopeReport::all(View::Complete, workloads.to_vec()))
}

fn fails(name: &str) -> (Scope, ScopeReport) {
    (scope(name), ScopeReport::failed("forbidden"))
}

impl World {
    /// A report of the scopes, begun now.
    pub fn scopes(&mut self, scopes: impl IntoIterator<Item = (Scope, ScopeReport)>) -> ReportOutcome {
        let report = Report::of(k8s(), self.now().at, scopes);
        self.takes(report)
    }

    pub fn takes(&mut self, report: Report) -> ReportOutcome {
        let look = ReportArrival { now: self.now(), began: self.now().millis, session: self.session };
        self.inventory.ingest(report, look)
    }

    /// The same scopes every minute, with a pass after each.
    fn scopes_go_on(&mut self, minutes: u64, scopes: &[(Scope, ScopeReport)]) -> &mut Self {
        for _ in 0..minutes {
            self.wait(60).scopes(scopes.iter().cloned());
            self.pass();
        }
        self
    }

    fn state(&self) -> &SourceState {
        self.inventory.source(&k8s()).unwrap()
    }

    fn of_scope(&self, name: &str) -> &ScopeState {
        &self.state().scopes[&scope(name)]
    }

    fn has_vm(&self, n: u8) -> bool {
        self.has(&format!("w{n}.example.com"), &format!("A 10.0.0.{n}"))
    }

    fn configured(&mut self, config: &str, movable: bool) {
        let config = SourceConfig {
            config: Digest::of([config]),
            commanded: false,
            movable,
            rules: SourceRules::default(),
        };
        let now = self.now();
        self.inventory.configure(&BTreeMap::from([(k8s(), config)]), now);
    }

    fn why_kept(&self, name: &str) -> String {
        let name = crate::world::name(name);
        let plan = self.plan();
        let kept = plan.kept.iter().find(|kept| kept.name == name);
        kept.map_or_else(String::new, |kept| KeptReason::at(&kept.why, self.now()))
    }
}

/// Pods w0 to w4 and services w5 to w9.
fn two_scopes() -> (World, Vec<Workload>) {
    let (mut world, all) = (World::new(), fleet(0..10));
    world.configured("one", false);
    world.scopes([shows("pods", &all[..5]), shows("services", &all[5..])]);
    world.pass();
    (world, all)
}

#[test]
fn one_failed_scope_does_not_freeze_the_others() {
    let (mut world, all) = two_scopes();
    world.scopes_go_on(6, &[shows("pods", &all[1..5]), fails("services")]);
    assert!(!world.has_vm(0), "its own scope said for five minutes that it is gone");
    assert!((1..10).all(|n| world.has_vm(n)));
    assert_eq!(
        world.state().view,
        View::Failed { reason: "services: forbidden".into() },
        "the worst is shown"
    );
    assert_eq!((world.of_scope("pods").present(), world.of_scope("services").present()), (4, 5));
}

#[test]
fn a_workload_of_a_failed_scope_stays_and_the_reason_names_the_scope() {
    let (mut world, all) = two_scopes();
    world.scopes_go_on(1, &[shows("pods", &all[..5]), shows("services", &all[6..])]);
    world.scopes_go_on(30, &[shows("pods", &all[..5]), fails("services")]);
    assert!(world.has_vm(5));
    assert_eq!(world.why_kept("w5.example.com"), "scope services of source pve failed: forbidden");
}

#[test]
fn a_scope_of_the_roster_without_a_view_has_failed() {
    let (mut world, all) = two_scopes();
    for _ in 0..20 {
        world.wait(60);
        let mut report = Report::of(k8s(), world.now().at, [shows("pods", &all[..5])]);
        report.roster = Roster::Complete([scope("pods"), scope("services")].into());
        assert_eq!(world.takes(report), ReportOutcome::Accepted);
        world.pass();
    }
    assert!((0..10).all(|n| world.has_vm(n)));
    assert_eq!(world.of_scope("services").view, View::Failed { reason: "services was not looked at".into() });
}

#[test]
fn a_roster_that_was_not_read_completely_retires_nothing() {
    let (mut world, all) = two_scopes();
    for _ in 0..20 {
        world.wait(60);
        let mut report = Report::of(k8s(), world.now().at, [shows("pods", &all[1..5])]);
        report.roster = Roster::Partial { reason: "the API list is forbidden".into() };
        world.takes(report);
        world.pass();
    }
    assert!(!world.has_vm(0), "a view that came counts all the same");
    assert!((1..10).all(|n| world.has_vm(n)));
    assert_eq!(world.of_scope("services").standing, Standing::Listed);
}

#[test]
fn a_scope_that_the_platform_ended_is_absent_with_grace_and_suspicion() {
    let (mut world, all) = two_scopes();
    world.scopes_go_on(1, &[shows("pods", &all[..5])]);
    let since = world.now().millis;
    assert_eq!(world.of_scope("services").standing, Standing::Retired { since, by: RetiredBy::Platform });
    assert!(world.of_scope("services").suspect.is_some(), "five of five vanished");
    assert_eq!(world.state().view, View::Complete, "what is retired is not looked at");
    world.scopes_go_on(5, &[shows("pods", &all[..5])]);
    assert!(world.has_vm(5), "after the suspicion grace runs");
    world.scopes_go_on(5, &[shows("pods", &all[..5])]);
    assert!((0..5).all(|n| world.has_vm(n)) && (5..10).all(|n| !world.has_vm(n)));
    let now = world.now();
    world.inventory.prune(world.settings.grace, now, |_, _| false);
    assert_eq!(world.state().scopes.len(), 1, "a retired scope without workloads is forgotten");
}

#[test]
fn a_scope_that_the_configuration_ended_is_parked() {
    let (mut world, all) = two_scopes();
    world.wait(1).configured("two", false);
    world.scopes_go_on(20, &[shows("pods", &all[..5])]);
    assert!((0..10).all(|n| world.has_vm(n)));
    let plan = world.plan();
    assert_eq!(plan.parked.unwrap().changes.len(), 10, "five names and their PTR records");
    assert_eq!(world.of_scope("services").suspect, None, "a person decides anyway");
    // The person puts it back.
    world.wait(1).configured("one", false);
    world.scopes_go_on(1, &[shows("pods", &all[..5]), shows("services", &all[5..])]);
    assert_eq!(world.plan().parked, None);
}

#[test]
fn one_scope_is_ended_by_hand() {
    let (mut world, all) = two_scopes();
    let (source, services) = (k8s(), scope("services"));
    assert!(!world.inventory.clean_scope(&source, &services), "it shows something");
    world.scopes_go_on(1, &[shows("pods", &all[..5]), fails("services")]);
    assert!(world.inventory.clean_scope(&source, &services));
    world.pass();
    assert!((0..5).all(|n| world.has_vm(n)) && (5..10).all(|n| !world.has_vm(n)));
    world.scopes_go_on(1, &[shows("pods", &all[..5]), shows("services", &all[5..])]);
    assert!((0..10).all(|n| world.has_vm(n)), "it is back");
    assert!(!world.inventory.clean_scope(&source, &scope("nodes")), "there is no such scope");
}

#[test]
fn where_workloads_move_absence_counts_only_while_all_scopes_are_complete() {
    let (mut world, all) = two_scopes();
    world.configured("one", true);
    world.scopes_go_on(20, &[shows("pods", &all[1..5]), fails("services")]);
    assert!(world.has_vm(0), "it may be in the other one");
    assert_eq!(world.why_kept("w0.example.com"), "scope services of source pve failed: forbidden");
    let moved: Vec<Workload> = [&all[..1], &all[5..]].concat();
    world.scopes_go_on(1, &[shows("pods", &all[1..5]), shows("services", &moved)]);
    let entry = world.inventory.entry(&k8s(), &"w0".parse().unwrap()).unwrap();
    assert_eq!((&entry.scope, &entry.presence), (&scope("services"), &Presence::Present));
    assert_eq!((world.of_scope("pods").present(), world.of_scope("services").present()), (4, 6));
    // The old scope has no say any more.
    let ended = vec![Ended { id: "w0".parse().unwrap(), asked: false }];
    let pods = ScopeReport { ended, ..ScopeReport::all(View::Complete, all[1..5].to_vec()) };
    world.scopes_go_on(20, &[(scope("pods"), pods), fails("services")]);
    assert!(world.has_vm(0));
    world.scopes_go_on(6, &[shows("pods", &all[1..5]), shows("services", &all[5..])]);
    assert!(!world.has_vm(0));
}

#[test]
fn twenty_nodes_whose_three_guests_vanish_are_suspect_together() {
    let (mut world, all) = (World::new(), fleet(0..60));
    let nodes = |lost: bool| -> Vec<(Scope, ScopeReport)> {
        let guests = all.chunks(3).enumerate();
        guests.map(|(n, guests)| shows(&format!("node{n}"), if lost { &[] } else { guests })).collect()
    };
    world.scopes(nodes(false));
    world.pass();
    world.scopes_go_on(1, &nodes(true));
    assert!(world.state().scopes.values().all(|scope| scope.suspect.is_none()), "none of them has enough");
    let suspicion = world.state().suspect.unwrap();
    assert_eq!((suspicion.missing, suspicion.of), (60, 60));
    assert_eq!(world.why_kept("w0.example.com"), "source pve is suspect, 60 of 60 vanished");
    world.scopes_go_on(5, &nodes(true));
    assert_eq!(world.state().suspect, None, "it said so for five minutes");
    assert!((0..60).all(|n| world.has_vm(n)), "and now grace runs");
}

#[test]
fn workloads_without_a_scope_stay_until_a_scope_shows_them() {
    let (mut world, all) = (World::new(), fleet(0..10));
    // As version 0.1.0 knew them.
    world.sees(all.clone()).pass();
    world.wait(60);
    let now = world.now();
    world.inventory.take_over(now);
    let pods: Vec<(Scope, ScopeReport)> = vec![shows("pods", &all[..5]), fails("services")];
    world.scopes_go_on(20, &pods);
    assert!((0..10).all(|n| world.has_vm(n)));
    assert_eq!(world.of_scope("").standing, Standing::Unassigned);
    assert_eq!((world.of_scope("").present(), world.of_scope("pods").present()), (5, 5));
    world.scopes_go_on(1, &[shows("pods", &all[..5]), shows("services", &all[5..9])]);
    assert_eq!((world.of_scope("").workloads(), world.of_scope("services").present()), (1, 4));
    world.scopes_go_on(5, &[shows("pods", &all[..5]), shows("services", &all[5..9])]);
    assert!(!world.has_vm(9) && (0..9).all(|n| world.has_vm(n)), "all scopes are complete, and none has it");
}

/// Changes to the report with the number `since`.
fn changes(since: u64, version: u64, changed: &[Workload], removed: &[&str]) -> ScopeReport {
    let changed = changed.iter().cloned().map(Arc::new).collect();
    let removed = removed.iter().map(|id| id.parse().unwrap()).collect();
    let seen = Seen::Changes { since, changed, removed };
    ScopeReport { version, seen, ..ScopeReport::all(View::Complete, []) }
}

fn numbered(version: u64, workloads: &[Workload]) -> ScopeReport {
    ScopeReport { version, ..ScopeReport::all(View::Complete, workloads.to_vec()) }
}

#[test]
fn a_source_that_sends_changes_confirms_the_rest() {
    let (mut world, all) = (World::new(), fleet(0..8));
    world.scopes([(scope("pods"), numbered(1, &all))]);
    world.pass();
    let before = world.state().entries.clone();
    world.wait(60).scopes([(scope("pods"), changes(1, 1, &[], &[]))]);
    assert!(world.state().entries.is_shared_with(&before), "what brings nothing costs nothing");
    world.wait(60).scopes([(scope("pods"), changes(1, 2, &[], &["w0"]))]);
    for _ in 0..5 {
        world.wait(60).pass();
        assert!(world.has_vm(0));
        assert_eq!(world.scopes([(scope("pods"), changes(2, 2, &[], &[]))]), ReportOutcome::Accepted);
    }
    world.pass();
    assert!(!world.has_vm(0) && (1..8).all(|n| world.has_vm(n)));
    world.scopes([(scope("pods"), changes(2, 3, &all[..1], &[]))]);
    world.pass();
    assert!(world.has_vm(0));
}

#[test]
fn changes_to_an_unknown_report_ask_for_all() {
    let (mut world, all) = (World::new(), fleet(0..8));
    assert_eq!(world.scopes([(scope("pods"), changes(1, 2, &all, &[]))]), ReportOutcome::Unbased);
    world.wait(60).scopes([(scope("pods"), numbered(3, &all))]);
    assert_eq!(world.of_scope("pods").view, View::Complete);
    world.wait(60);
    assert_eq!(world.scopes([(scope("pods"), changes(2, 4, &[], &["w0"]))]), ReportOutcome::Unbased);
    assert!(matches!(world.of_scope("pods").view, View::Partial { .. }));
    let there =
        |world: &World| world.inventory.entry(&k8s(), &"w0".parse().unwrap()).unwrap().presence.clone();
    assert_eq!(there(&world), Presence::Present, "nothing of it is taken");
    // A new connection begins with everything, too.
    world.wait(60).scopes([(scope("pods"), numbered(5, &all))]);
    world.session += 1;
    assert_eq!(world.wait(60).scopes([(scope("pods"), changes(5, 6, &[], &[]))]), ReportOutcome::Unbased);
}

#[test]
fn a_view_counts_as_of_the_time_it_is_confirmed_for() {
    let (mut world, all) = (World::new(), fleet(0..8));
    world.scopes([(scope("pods"), numbered(1, &all))]);
    world.pass();
    world.wait(60).scopes([(scope("pods"), changes(1, 2, &[], &["w0"]))]);
    let gone = world.now().millis;
    // The watch is silent: the same moment is confirmed again and again.
    for minutes in 1..20 {
        world.wait(60);
        let age = Span::from_secs(60 * minutes);
        world.scopes([(scope("pods"), ScopeReport { age, ..changes(2, 2, &[], &[]) })]);
        world.pass();
    }
    assert!(world.has_vm(0), "nothing is known about the time since");
    assert_eq!((world.of_scope("pods").last, world.of_scope("pods").clock.reports), (gone, 2));
    let age = Span::from_secs(60);
    world.scopes([(scope("pods"), ScopeReport { age, ..changes(2, 2, &[], &[]) })]);
    world.pass();
    assert!(!world.has_vm(0), "it was still complete a minute ago");
    let now = world.now();
    world.inventory.take_over(now);
    world.scopes([(scope("pods"), ScopeReport { age, ..numbered(3, &all) })]);
    assert!(!world.of_scope("pods").fresh, "that was before this leader");
}

#[test]
fn an_unclear_workload_leaves_its_scope_complete() {
    let (mut world, all) = two_scopes();
    let hung = Workload { unclear: true, ..bare("w0") };
    let pods: Vec<Workload> = [vec![hung], all[2..5].to_vec()].concat();
    world.scopes_go_on(10, &[shows("pods", &pods), shows("services", &all[5..])]);
    assert!(world.has_vm(0) && !world.has_vm(1));
    assert_eq!(world.state().view, View::Complete);
}

#[test]
fn a_scope_that_comes_back_restarts_its_own_graces_only() {
    let (mut world, all) = two_scopes();
    let lost = |session: u64| {
        let (name, pods) = shows("pods", &all[1..5]);
        [(name, ScopeReport { session, ..pods }), shows("services", &all[6..])]
    };
    world.scopes_go_on(4, &lost(0));
    world.scopes_go_on(2, &lost(1));
    assert!(world.has_vm(0) && !world.has_vm(5));
    world.scopes_go_on(4, &lost(1));
    assert!(!world.has_vm(0));
}

#[test]
fn scopes_survive_the_store_and_an_inventory_of_version_0_1_0_becomes_one() {
    let (mut world, all) = two_scopes();
    world.scopes_go_on(2, &[shows("pods", &all[1..5]), fails("services")]);
    let text = serde_json::to_string(&world.inventory).unwrap();
    assert_eq!(serde_json::from_str::<netstead_plan::Inventory>(&text).unwrap(), world.inventory);

    let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
    let source = &mut old["sources"]["pve"];
    source.as_object_mut().unwrap().remove("scopes");
    for entry in source["entries"].as_object_mut().unwrap().values_mut() {
        entry.as_object_mut().unwrap().remove("scope");
        if let Some(absence) = entry["presence"].get_mut("absent") {
            *absence = serde_json::json!({ "since": 1_060_000, "waited": "4m", "reports": 5 });
        }
    }
    let read: netstead_plan::Inventory = serde_json::from_value(old).unwrap();
    let state = read.source(&k8s()).unwrap();
    let whole = &state.scopes[&scope("")];
    assert_eq!((state.scopes.len(), whole.present(), whole.workloads()), (1, 9, 10));
    assert!(matches!(whole.view, View::Failed { .. }), "the worst view of all");
    let Presence::Absent(absence) = &state.entries["w0"].presence else { panic!("it is absent") };
    assert_eq!((whole.waited(absence), whole.reports(absence)), (Span::from_secs(240), 5));
}

#[test]
fn a_source_that_never_reported_is_not_complete_under_a_new_leader() {
    let mut world = World::new();
    world.configured("one", false);
    let now = world.now();
    world.inventory.take_over(now);
    assert_eq!(
        (&world.state().view, world.state().fresh),
        (&View::Failed { reason: "no report yet".into() }, false)
    );
    // A source that looks after nothing now has said so.
    assert_eq!(world.scopes([]), ReportOutcome::Accepted);
    assert_eq!((&world.state().view, world.state().begun), (&View::Complete, world.now().at));
}
