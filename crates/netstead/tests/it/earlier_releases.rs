//! Stores that earlier releases wrote. This release opens them with everything.

mod home;
mod make;
mod removed_meanwhile;
mod said;

use std::{fs, path::PathBuf};

use netstead_testkit::{Process, has_command, skip};

use self::home::{Home, Kind, fixtures};
use crate::{
    resolve,
    sandbox::{SOON, Sandbox},
    shared_store::run,
};

/// Nothing listens there: the DNS server that had names of the fixtures is gone.
const NOWHERE: &str = "http://127.0.0.1:9";

/// The fixtures of all releases; none where this machine cannot unpack them.
fn releases() -> Vec<PathBuf> {
    if !has_command("xz") {
        skip("the package xz-utils is not installed");
        return Vec::new();
    }
    let entries = fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

fn open(sandbox: &Sandbox) -> Process {
    let mut server = run(sandbox);
    server.wait_for_line("is ready", SOON).unwrap();
    server.wait_for_line("This node leads", SOON).unwrap();
    server
}

fn opens_with_everything(kind: Kind, archive: &str) {
    for release in releases() {
        let home = Home::prepare(&release, kind, NOWHERE);
        // All stores of a kind hold the same; what their server said of it stands beside one of them.
        home.unpack(&release.join(format!("{kind}.tar.xz")));
        fs::remove_dir_all(home.sandbox.data()).unwrap();
        home.unpack(&release.join(archive));
        let mut server = open(&home.sandbox);
        said::compare(&home, &[]);
        tokens_are_heard(&home);
        goes_on(&home);
        server.terminate().unwrap();
        assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
        let said = home.sandbox.netstead(["store", "check", "--local"]);
        assert!(said.code == 0 && said.err.contains("all well"), "{said:?}");
    }
}

/// Each token may do what it might before.
fn tokens_are_heard(home: &Home) {
    let typed = |subject: &str, line: &str| {
        let token = home.token(subject);
        home.sandbox.netstead(line.split(' ').chain(["--token", &token]))
    };
    assert_eq!(typed("ci", "claim office by-ci").code, 0);
    assert_eq!(typed("ci", "claim lab by-ci").code, 1);
    assert_eq!(typed("auditor", "get claims").code, 0);
    assert_eq!(typed("auditor", "claim office by-auditor").code, 1);
    assert_eq!(typed("admin-2", "token list").code, 0);
}

/// Everything goes on from what is there.
fn goes_on(home: &Home) {
    let sandbox = &home.sandbox;
    assert_eq!(sandbox.does("claim office web-1"), "10.20.0.50\n");
    assert_eq!(sandbox.does("claim office old-1"), "10.20.0.54\n", "it rested, and its key gets it back");
    assert_eq!(sandbox.does("claim sites4 ber"), "10.64.0.0/24\n");
    sandbox.does("renew office ci-1");
    let address = sandbox.does("claim office next");
    resolve::until(&[address.trim()], || resolve::a(sandbox.dns(), "next.office.test"));
    // Others wait in a queue; who came first is served first.
    sandbox.does("release tight one");
    let claims = sandbox.does("get claims --pool tight -o csv");
    let served = claims.lines().find(|line| line.contains("three")).unwrap_or_default();
    assert!(served.contains("10.40.0.1"), "{claims}");
    // What a guard held back is done when a person says so.
    let plan: serde_json::Value =
        serde_json::from_str(&sandbox.netstead("plan own -o json".split(' ')).out).unwrap();
    let hash = plan[0]["parked"]["hash"].as_str().unwrap_or_else(|| panic!("{plan}"));
    sandbox.does(&format!("apply {hash}"));
    resolve::until(&["10.22.0.7"], || resolve::a(sandbox.dns(), "rack-7.racks.test"));
}

#[test]
fn a_store_that_an_earlier_release_closed_is_opened_with_everything() {
    opens_with_everything(Kind::Local, "local.tar.xz");
}

#[test]
fn a_store_of_an_earlier_release_that_was_killed_is_opened_with_everything() {
    opens_with_everything(Kind::Local, "killed.tar.xz");
}

#[test]
fn a_cluster_of_an_earlier_release_is_opened_with_everything() {
    opens_with_everything(Kind::Raft, "raft.tar.xz");
}

#[test]
fn a_backup_of_an_earlier_release_is_restored_with_everything() {
    for release in releases() {
        let home = Home::prepare(&release, Kind::Local, NOWHERE);
        let sandbox = &home.sandbox;
        home.unpack(&release.join("local.tar.xz"));
        fs::remove_dir_all(sandbox.data()).unwrap();
        sandbox.does("store restore whole.backup");
        let _server = open(sandbox);
        // A restore revokes all tokens but the admin's.
        said::compare(&home, &["token list"]);
        let said = sandbox.netstead(["claim", "office", "next"]);
        assert!(said.code == 3 && said.err.contains("netstead resume"), "{said:?}");
        sandbox.does("resume");
        goes_on(&home);
        let said = sandbox.netstead(["store", "check"]);
        assert!(said.code == 0 && said.err.contains("all well"), "{said:?}");
    }
}
