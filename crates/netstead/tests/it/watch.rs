use netstead_testkit::Process;

use crate::sandbox::{SOON, Sandbox};

fn watch(sandbox: &Sandbox, words: &[&str]) -> Process {
    Process::start("watch", sandbox.command().args(words)).unwrap()
}

#[test]
fn what_changes_is_shown_as_it_happens() {
    let mut sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    sandbox.does("claim lan before");
    let mut claims = watch(&sandbox, &["get", "claims", "--watch"]);
    let mut events = watch(&sandbox, &["get", "events", "--watch", "--what", "claimed"]);
    let mut lines = watch(&sandbox, &["get", "pools", "--watch", "-o", "json"]);
    claims.wait_for_line("listed   lan   before", SOON).unwrap();
    events.wait_for_line("before", SOON).unwrap();
    lines.wait_for_line(r#"{"change":"listed","object":{"name":"lan""#, SOON).unwrap();

    sandbox.does("claim lan after");
    claims.wait_for_line("new      lan   after", SOON).unwrap();
    events.wait_for_line("after", SOON).unwrap();
    lines.wait_for_line(r#"{"change":"changed""#, SOON).unwrap();
    sandbox.does("release lan after");
    claims.wait_for_line("gone     lan   after", SOON).unwrap();

    // A restart of the server is bridged, and nothing is shown twice.
    sandbox.stop();
    sandbox.start(&[]);
    sandbox.does("claim lan later");
    claims.wait_for_line("new      lan   later", SOON).unwrap();
    events.wait_for_line("later", SOON).unwrap();
    let log = events.log();
    assert!(!log.contains("released"), "{log}");
    for key in ["before", "after", "later"] {
        assert_eq!(log.matches(key).count(), 1, "{log}");
    }
}

#[test]
fn events_of_addresses_and_of_names_are_shown_together() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60 --domain home.test");
    let mut events = watch(&sandbox, &["events", "watch"]);
    let mut lines = watch(&sandbox, &["events", "watch", "-o", "json"]);
    events.wait_for_line("SUBJECT", SOON).unwrap();
    // Both are connected once they show what the ledger did.
    sandbox.does("claim lan first");
    events.wait_for_line("ledger  claimed", SOON).unwrap();
    lines.wait_for_line(r#""of":"ledger""#, SOON).unwrap();
    sandbox.does("claim lan second");
    events.wait_for_line("second.home.test  ", SOON).unwrap();
    lines.wait_for_line(r#""name":"second.home.test""#, SOON).unwrap();
    let log = events.log();
    let told = log.lines().find(|line| line.contains("second.home.test ")).unwrap();
    let words: Vec<&str> = told.split_whitespace().skip(1).collect();
    assert_eq!(words, ["engine", "applied", "builtin", "second.home.test", "+", "A", "10.0.3.51"], "{log}");
}

#[test]
fn an_export_goes_on_where_the_last_one_ended() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    let said = sandbox.netstead(["events", "export"]);
    let cursor = said.err.trim().rsplit(' ').next().unwrap().to_owned();
    sandbox.does("claim lan web-1");
    let more = sandbox.does(&format!("events export --after {cursor}"));
    assert_eq!(more.lines().count(), 1, "{more}");
    assert!(more.contains("\"claimed\"") && said.out.contains("\"pool-created\""));
    assert!(sandbox.fails("events export --after 00000000:1").err.contains("hint: "));
}
