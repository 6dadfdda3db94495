use std::sync::Arc;

use netstead_client::RemotePools;
use netstead_ledger::contract::{self, Subject};
use netstead_testkit::{skip, wait_until};

use crate::sandbox::{SOON, Sandbox};

/// A head office with a pool `branch-7`, and a branch office whose file draws from it.
fn offices(pool: &str) -> (Sandbox, Sandbox) {
    let head = Sandbox::with_server();
    head.does("pool create branch-7 --range 10.7.0.10-10.7.0.19 --gateway 10.7.0.1 --cooldown 0");
    let token = head.does("token create branch-7 --role claim --pool branch-7");
    let branch = Sandbox::empty();
    std::fs::write(branch.path().join("head-office.token"), token.trim()).unwrap();
    let file = format!(
        "[backend.head-office]\ntype = \"netstead\"\nurl = \"{}\"\ntoken = {{ file = \"{}\" }}\n{pool}",
        head.url(),
        branch.path().join("head-office.token").display()
    );
    std::fs::write(branch.path().join("netstead.toml"), file).unwrap();
    (head, branch)
}

/// Waits until the worker knows of the pause.
fn is_paused(branch: &Sandbox) {
    let known = || {
        let status = branch.netstead(["status", "-o", "json"]);
        let status: serde_json::Value = serde_json::from_str(&status.out).ok()?;
        (status["backends"][0]["paused"] == true).then_some(())
    };
    assert!(wait_until(SOON, known).is_some(), "{:?}", branch.netstead(["status"]));
}

const LAN: &str = "\n[pool.lan]\nbackend = \"head-office\"\nbackend_pool = \"branch-7\"\ncooldown = \"0\"\n";

fn has_pool(branch: &Sandbox) {
    let made =
        wait_until(SOON, || (branch.netstead(["get", "pools", "-o", "name"]).out == "lan\n").then_some(()));
    assert!(made.is_some(), "the pool of the file is made: {:?}", branch.netstead(["get", "pools"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_netstead_keeps_the_contract_of_pool_backends() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.52 --cooldown 0");
    let backend = Arc::new(RemotePools::new(sandbox.client()));
    let (pool, outside) = ("lan".into(), "10.0.9.1".parse().unwrap());
    contract::pools(&Subject { backend, pool, size: 3, outside }).await;
}

#[test]
fn a_branch_office_draws_from_the_pool_of_its_head_office() {
    let (head, mut branch) = offices(LAN);
    branch.start(&[]);
    has_pool(&branch);
    assert_eq!(branch.does("claim lan web-1"), "10.7.0.10\n");
    assert_eq!(branch.does("claim lan web-1"), "10.7.0.10\n");
    let held = head.does("get claims -o json");
    let held: serde_json::Value = serde_json::from_str(&held).unwrap();
    let key = held[0]["key"].as_str().unwrap();
    assert!(key.ends_with("/lan/web-1"), "{held}");
    assert_eq!((&held[0]["address"], &held[0]["owner"]), (&"10.7.0.10".into(), &"branch-7".into()));
    let own: serde_json::Value = serde_json::from_str(&branch.does("get claims -o json")).unwrap();
    assert_eq!((&own[0]["backend_key"], &own[0]["state"]), (&key.into(), &"bound".into()));
    let pools: serde_json::Value = serde_json::from_str(&branch.does("get pools -o json")).unwrap();
    assert_eq!((&pools[0]["backend"], &pools[0]["gateway"]), (&"head-office".into(), &"10.7.0.1".into()));

    branch.does("release lan web-1");
    let empty = || head.does("get claims -o name").is_empty().then_some(());
    assert!(wait_until(SOON, empty).is_some(), "the head office has it back: {}", head.does("get claims"));
}

#[test]
fn a_claim_waits_while_the_head_office_is_away_and_gets_its_address_when_it_is_back() {
    let (mut head, mut branch) = offices(LAN);
    branch.start(&[]);
    has_pool(&branch);
    head.kill();
    let waits = branch.netstead(["claim", "lan", "web-1", "--wait", "1s", "--keep"]);
    assert_eq!(waits.code, 2, "{waits:?}");
    assert!(waits.err.contains("waits for the backend of pool `lan`"), "{}", waits.err);
    branch.kill();
    branch.start(&[]);
    head.start(&[]);
    let bound = wait_until(SOON, || {
        let claims = branch.netstead(["get", "claims", "-o", "json"]);
        claims.out.contains("10.7.0.10").then_some(())
    });
    assert!(bound.is_some(), "{:?}", branch.netstead(["get", "claims"]));
    assert_eq!(head.does("get claims -o name").lines().count(), 1);
}

#[test]
fn a_pool_that_leads_back_to_its_own_installation_is_refused() {
    let (mut head, mut branch) = offices(LAN);
    branch.start(&[]);
    has_pool(&branch);
    let token = branch.does("token create head --role claim");
    std::fs::write(head.path().join("branch.token"), token.trim()).unwrap();
    let file = format!(
        "[backend.branch]\ntype = \"netstead\"\nurl = \"{}\"\ntoken = {{ file = \"{}\" }}\n",
        branch.url(),
        head.path().join("branch.token").display()
    );
    std::fs::write(head.path().join("netstead.toml"), file).unwrap();
    head.stop();
    head.start(&[]);
    let refused = head.fails("pool create circle --backend branch --backend-pool lan");
    assert!(refused.err.contains("a chain cannot lead back to its start"), "{}", refused.err);
    let unknown = head.fails("pool create other --backend nowhere --backend-pool lan");
    assert!(unknown.err.contains("there is no backend `nowhere`"), "{}", unknown.err);
}

#[test]
fn a_pool_is_made_by_hand_paused_closed_and_abandoned() {
    let (head, mut branch) = offices("");
    branch.start(&[]);
    let made = wait_until(SOON, || {
        let made =
            branch.netstead("pool create lan --backend head-office --backend-pool branch-7".split(' '));
        (made.code == 0).then_some(())
    });
    assert!(made.is_some());
    let refused = branch.fails("pool create lan2 --backend head-office --backend-pool branch-7 --order next");
    assert!(refused.err.contains("the backend decides it"), "{}", refused.err);
    assert_eq!(branch.does("claim lan web-1"), "10.7.0.10\n");
    branch.does("pause --backend head-office");
    is_paused(&branch);
    let waits = branch.netstead(["claim", "lan", "web-2", "--wait", "1s", "--keep"]);
    assert_eq!(waits.code, 2, "{waits:?}");
    branch.does("resume --backend head-office");
    let bound =
        wait_until(SOON, || (branch.netstead(["claim", "lan", "web-2"]).out == "10.7.0.11\n").then_some(()));
    assert!(bound.is_some());
    assert_eq!(branch.does("get drift --backends -o name"), "");
    let closing = branch.netstead(["pool", "delete", "lan", "--force", "moving out"]);
    assert!(closing.err.contains("pool lan is closing"), "{closing:?}");
    let abandoned = branch.netstead(["pool", "delete", "lan", "--abandon", "it burned down"]);
    assert_eq!(abandoned.code, 0, "{abandoned:?}");
    assert_eq!(branch.does("get pools -o name"), "");
    assert_eq!(
        head.does("get claims -o name").lines().count(),
        2,
        "what was abandoned stays at the head office"
    );
}

#[test]
fn a_pool_with_a_backend_is_made_once_all_members_understand_it() {
    if !cfg!(debug_assertions) {
        return skip("only a debug build can take itself for another version");
    }
    let (_head, mut branch) = offices("");
    branch.set("PRETEND_STORE_FORMAT", "2");
    branch.start(&[]);
    let make = "pool create lan --backend head-office --backend-pool branch-7";
    let refused = branch.fails(make);
    assert!(refused.err.contains("a pool with a backend needs all members upgraded"), "{}", refused.err);
    branch.stop();
    branch.set("PRETEND_STORE_FORMAT", "3");
    branch.start(&[]);
    let made = wait_until(SOON, || (branch.netstead(make.split(' ')).code == 0).then_some(()));
    assert!(made.is_some(), "{:?}", branch.netstead(make.split(' ')));
}

#[test]
fn a_dry_run_asks_no_backend_and_says_so() {
    let (head, mut branch) = offices(LAN);
    branch.start(&[]);
    has_pool(&branch);
    branch.stop();
    branch.start(&["--dry-run"]);
    let refused = branch.fails("claim lan web-1");
    assert!(refused.err.contains("runs with `--dry-run` and asks no backend"), "{}", refused.err);
    assert_eq!(head.does("get claims -o name"), "");
}

#[test]
fn a_claim_that_the_head_office_lost_stays_bound_and_is_restored_by_hand() {
    let (head, mut branch) = offices(LAN);
    branch.start(&[]);
    has_pool(&branch);
    assert_eq!(branch.does("claim lan web-1"), "10.7.0.10\n");
    let keys = || -> Vec<String> {
        let held: serde_json::Value = serde_json::from_str(&head.does("get claims -o json")).unwrap();
        held.as_array().unwrap().iter().map(|claim| claim["key"].as_str().unwrap().to_owned()).collect()
    };
    let key = keys().remove(0);
    head.does(&format!("release branch-7 {key}"));
    assert_eq!(branch.does("claim lan web-1"), "10.7.0.10\n");
    branch.does("pool restore lan web-1");
    assert_eq!(keys(), [key]);
    let unknown = branch.fails("pool restore lan nothing");
    assert!(unknown.err.contains("nothing"), "{}", unknown.err);
}

#[test]
fn a_pause_outlives_the_leader_that_heard_of_it() {
    let (head, mut branch) = offices(LAN);
    branch.start(&[]);
    has_pool(&branch);
    assert_eq!(branch.does("claim lan web-1"), "10.7.0.10\n");
    branch.does("pause --backend head-office");
    is_paused(&branch);
    let waits = branch.netstead(["claim", "lan", "web-2", "--wait", "1s", "--keep"]);
    assert_eq!(waits.code, 2, "{waits:?}");
    branch.stop();
    branch.start(&[]);
    // The worker runs once its backends are shown, and it asks for nothing.
    is_paused(&branch);
    let held = head.does("get claims -o name");
    assert_eq!(held.lines().count(), 1, "{held}");
    let status = branch.netstead(["status"]);
    assert!(status.out.contains("Backend `head-office` is paused"), "{}", status.out);
    let doctor = branch.netstead(["doctor"]);
    assert!(doctor.out.contains("it is paused, and claims in its pools wait"), "{}", doctor.out);
    branch.does("resume --backend head-office");
    let bound = wait_until(SOON, || (head.does("get claims -o name").lines().count() == 2).then_some(()));
    assert!(bound.is_some(), "{:?}", branch.netstead(["get", "claims"]));
}

#[test]
fn a_backend_that_does_not_answer_is_shown_by_status_and_doctor() {
    let (mut head, mut branch) = offices(LAN);
    branch.start(&[]);
    has_pool(&branch);
    assert_eq!(branch.does("claim lan web-1"), "10.7.0.10\n");
    let backend = || -> Option<serde_json::Value> {
        let status = branch.netstead(["status", "-o", "json"]);
        let status: serde_json::Value = serde_json::from_str(&status.out).ok()?;
        Some(status["backends"][0].clone())
    };
    assert_eq!(backend(), Some(serde_json::json!({"name": "head-office", "paused": false})));
    head.kill();
    branch.netstead(["claim", "lan", "web-2", "--wait", "1s", "--keep"]);
    let away = wait_until(SOON, || backend().filter(|backend| backend["error"].is_string()));
    assert!(away.is_some(), "{:?}", backend());
    let status = branch.netstead(["status"]);
    assert!(status.out.contains("Backend `head-office` does not answer: "), "{}", status.out);
    let doctor = branch.netstead(["doctor"]);
    assert!(
        doctor.out.contains("backend head-office") && doctor.out.contains("it does not answer: "),
        "{}",
        doctor.out
    );
    head.start(&[]);
    let back = wait_until(SOON, || backend().filter(|backend| backend["error"].is_null()));
    assert!(back.is_some(), "{:?}", backend());
}

#[test]
fn one_pool_that_cannot_be_made_leaves_the_others_alone() {
    let bad = "\n[pool.annex]\nbackend = \"head-office\"\nbackend_pool = \"nowhere\"\n";
    let (_head, mut branch) = offices(&format!("{bad}{LAN}"));
    branch.start(&[]);
    has_pool(&branch);
}
