//! Most of the nodes are gone.

use std::time::Duration;

use netstead_testkit::wait_until;
use reqwest::Method;
use serde_json::json;

use super::{
    super::nodes::run,
    nodes::{Nodes, secret, store},
};
use crate::{
    resolve::{self, Stopwatch},
    sandbox::SOON,
};

#[test]
fn without_a_majority_a_node_says_so_and_its_own_copy_can_be_read_and_rescued() {
    let mut nodes = Nodes::start();
    let pool = json!({"family": "ipv4", "ranges": ["10.0.3.50-10.0.3.200"]});
    nodes.done(0, &Method::PUT, "/pools/lan", &pool);
    nodes.done(0, &Method::PUT, "/pools/lan/claims/web", &json!({}));
    let (left, gone) = (0, [1, 2]);
    let seen = wait_until(SOON, || {
        let (status, _) = nodes.ask(left, Method::GET, "/pools/lan/claims/web", None);
        (status == 200).then_some(())
    });
    seen.expect("it has everything");
    for node in gone {
        nodes.servers[node].take().unwrap().kill().unwrap();
    }
    let sandbox = &nodes.sandboxes[left];
    let refused = wait_until(SOON, || {
        let said = sandbox.netstead(["claim", "lan", "late"]);
        (said.code != 0 && said.err.contains("majority")).then_some(said)
    });
    refused.expect("a change says why it cannot be done");
    assert!(sandbox.does("get claims --stale").contains("web"));
    // It may have led before, and does so no more.
    let leads_no_more = wait_until(SOON, || {
        let said = sandbox.netstead(["cluster", "status"]);
        let told = said.err.contains("only 1 of 3 nodes answer") && !said.out.contains("leader");
        (told && nodes.number(left, "netstead_leader") == Some(0.0)).then_some(())
    });
    assert!(leads_no_more.is_some(), "{:?}", sandbox.netstead(["cluster", "status"]));
    // Its own server is in the way, and that is what is told.
    let said = sandbox.fails("get claims --local");
    assert!(said.err.contains("stop it first"), "{}", said.err);
    nodes.servers[left].take().unwrap().kill().unwrap();

    // What is left of it becomes a cluster of one.
    let config = sandbox.path().join("netstead.toml");
    let said = sandbox.fails("store backup whole.backup --local");
    assert!(said.err.contains("majority") && said.err.contains("--stale"), "{}", said.err);
    let said = sandbox.fails("store migrate elsewhere");
    assert!(said.err.contains("1 of 3 answer") && said.err.contains("--stale"), "{}", said.err);
    assert!(!sandbox.path().join("elsewhere").exists());
    sandbox.does("store backup rescue.backup --local --stale");
    std::fs::rename(sandbox.path().join("node"), sandbox.path().join("old-node")).unwrap();
    // With the old `peers` it would wait for the others, and says so.
    let said = sandbox.netstead(["store", "restore", "rescue.backup"]);
    assert!(said.code == 1 && said.err.contains("leave `peers` out"), "{}", said.err);
    assert!(!sandbox.path().join("node").exists());
    std::fs::write(&config, store(&nodes.addresses[left])).unwrap();
    sandbox.does("store restore rescue.backup");
    nodes.servers[left] = Some(run(sandbox));
    nodes.leader();
    assert!(sandbox.does("get claims").contains("web"));
}

/// Checks what a node without a majority still does, and how it refuses the rest.
fn answers_alone(nodes: &Nodes, node: usize) {
    let sandbox = &nodes.sandboxes[node];
    let get = |path: &str| nodes.http.try_get(&format!("{}{path}", sandbox.url()));
    let told = wait_until(SOON, || get("/readyz").filter(|text| text.contains("majority")));
    assert!(told.is_some(), "{:?}", get("/readyz"));
    assert_eq!(get("/healthz").as_deref(), Some("ok\n"));
    let answer = wait_until(SOON, || resolve::try_a(sandbox.dns(), "web-1.home.test"));
    assert_eq!(answer.unwrap().values, ["10.0.3.50"]);

    let stale = nodes.answer(node, Method::GET, "/claims?stale=ok", None);
    assert_eq!((stale.status, &stale.body["items"][0]["address"]), (200, &json!("10.0.3.50")), "{stale:?}");
    assert!(stale.age.as_ref().is_some_and(|age| age.parse::<f64>().unwrap() > 0.0), "{stale:?}");
    let old = sandbox.netstead(["get", "claims", "--stale"]);
    assert!(old.out.contains("10.0.3.50") && old.err.contains(" ago: the store was not asked"), "{old:?}");
    for line in ["status", "status --stale"] {
        let said = sandbox.netstead(line.split(' '));
        assert_eq!(said.code, 1, "{said:?}");
        let first = said.out.lines().next().unwrap_or_default();
        assert!(first.contains(" is not ready: no ") && first.contains("majority"), "{}", said.out);
        assert!(said.out.contains("\nStale     as of ") && said.out.contains("\nlan "), "{}", said.out);
    }
    let said = sandbox.netstead(["status", "-o", "json"]);
    assert!(
        said.code == 1 && said.out.contains("\"not ready\"") && said.err.starts_with("as of "),
        "{said:?}"
    );
    let said = sandbox.fails("release lan web-1");
    assert!(said.err.contains("majority") && !said.err.contains("stale"), "{}", said.err);
    let said = sandbox.fails("store backup none.backup");
    assert!(said.err.contains("majority") && said.err.contains("--local --stale"), "{}", said.err);
    let said = sandbox.netstead(["doctor"]);
    let wrong = ["takes changes", "1 may fail", "store check", "is its address"];
    assert!(!wrong.iter().any(|wrong| said.out.contains(wrong)), "{}", said.out);

    let fresh = nodes.answer(node, Method::GET, "/claims", None);
    assert_eq!((fresh.status, fresh.problem()), (503, "unavailable"), "{fresh:?}");
    assert!(fresh.body["detail"].as_str().unwrap().contains("?stale=ok"), "{fresh:?}");
    let write = nodes.answer(node, Method::PUT, "/pools/lan/claims/web-2", Some(json!({})));
    assert!(matches!(write.status, 503 | 504), "{write:?}");
    assert!(write.body["detail"].as_str().unwrap().contains("majority"), "{write:?}");
}

/// How long a node may take from its start to its first answers. On a quiet machine it takes two seconds.
const FIRST_ANSWERS: Duration = Duration::from_secs(6);

/// Sees that a node answers soon after its start, though it has no majority, and says why it is not ready.
fn answers_within(nodes: &Nodes, node: usize, begun: Stopwatch, reason: &str) {
    let sandbox = &nodes.sandboxes[node];
    let get = |path: &str| nodes.http.try_get(&format!("{}{path}", sandbox.url()));
    assert_eq!(wait_until(SOON, || get("/healthz")).as_deref(), Some("ok\n"));
    let told = get("/readyz").unwrap();
    assert!(told.contains("not-ready") && told.contains(reason), "{told}");
    let said = sandbox.netstead(["status"]);
    let took = begun.elapsed();
    assert!(said.code == 1 && said.out.contains(" is not ready: ") && said.out.contains(reason), "{said:?}");
    println!("first answers after {took:?}");
    assert!(took < FIRST_ANSWERS, "{took:?}");
}

#[test]
fn a_new_node_that_waits_for_the_others_says_so() {
    let mut nodes = Nodes::prepare(|_| secret(), "");
    let begun = Stopwatch::start();
    nodes.servers[0] = Some(run(&nodes.sandboxes[0]));
    answers_within(&nodes, 0, begun, "nothing is known here yet");
    let waits = || {
        let said = nodes.sandboxes[0].netstead(["status"]);
        said.out.contains("waiting for the other nodes of the cluster").then_some(said)
    };
    assert!(wait_until(SOON, waits).is_some(), "{:?}", nodes.sandboxes[0].netstead(["status"]));
    // It can be stopped while it waits.
    let mut server = nodes.servers[0].take().unwrap();
    server.terminate().unwrap();
    assert_eq!(server.wait(SOON).unwrap().code(), Some(0));

    for node in 0..3 {
        nodes.servers[node] = Some(run(&nodes.sandboxes[node]));
    }
    for node in 0..3 {
        nodes.ready(node);
    }
    nodes.leader();
}

#[test]
fn the_last_node_answers_from_its_copy_also_after_a_restart_and_nothing_is_lost() {
    let more =
        "timeout = \"2s\"\n[dns.own]\ntype = \"builtin\"\ndomains = [\"home.test\"]\nreverse = false\n";
    let mut nodes = Nodes::start_with(more);
    let leader = nodes.leader();
    let (left, other) = ((leader + 1) % 3, (leader + 2) % 3);
    nodes.sandboxes[left].does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    assert_eq!(nodes.sandboxes[left].does("claim lan web-1"), "10.0.3.50\n");
    let claimed = Stopwatch::start();
    let answers = |nodes: &Nodes, name: &str, address: &str| {
        for sandbox in &nodes.sandboxes {
            let right = || resolve::try_a(sandbox.dns(), name).filter(|answer| answer.values == [address]);
            assert!(wait_until(SOON, right).is_some(), "{name} should be {address}");
        }
    };
    answers(&nodes, "web-1.home.test", "10.0.3.50");

    for node in [leader, other] {
        nodes.kill(node);
    }
    answers_alone(&nodes, left);
    let said = nodes.sandboxes[left].fails("get claims");
    assert!(said.err.contains("majority") && said.err.contains("hint: `--stale`"), "{}", said.err);
    nodes.kill(left);
    let begun = Stopwatch::start();
    nodes.servers[left] = Some(run(&nodes.sandboxes[left]));
    answers_within(&nodes, left, begun, "majority");
    // After a restart the copy is as old as the last change in it, not as the restart.
    let least = claimed.elapsed().as_secs_f64() - 1.0;
    let stale = nodes.answer(left, Method::GET, "/claims?stale=ok", None);
    assert!(
        stale.age.as_ref().is_some_and(|age| age.parse::<f64>().unwrap() >= least),
        "{least} s: {stale:?}"
    );
    answers_alone(&nodes, left);

    for node in [leader, other] {
        nodes.servers[node] = Some(run(&nodes.sandboxes[node]));
    }
    for node in 0..3 {
        nodes.ready(node);
    }
    let next = nodes.done(left, &Method::PUT, "/pools/lan/claims/web-2", &json!({}));
    assert_eq!(next["address"], "10.0.3.51");
    answers(&nodes, "web-2.home.test", "10.0.3.51");
    for sandbox in &nodes.sandboxes {
        assert_eq!(sandbox.does("claim lan web-1"), "10.0.3.50\n");
    }
    assert!(nodes.sandboxes[left].netstead(["store", "check"]).err.contains("all well"));
}
