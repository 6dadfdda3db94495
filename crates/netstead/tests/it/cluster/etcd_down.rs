//! Without the etcd, or with one that is full.

use netstead_testkit::{Etcd, wait_until};
use reqwest::Method;

use super::nodes::Nodes;
use crate::{resolve, sandbox::SOON};

#[test]
fn without_etcd_names_and_old_answers_go_on_and_the_rest_says_why_not() {
    let config = "[dns.own]\ntype = \"builtin\"\ndomains = [\"home.test\"]\nreverse = false\n";
    let Some(mut nodes) = Nodes::start(config) else { return };
    let [one, _] = nodes.followers();
    nodes.sandboxes[one].does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    assert_eq!(nodes.sandboxes[one].does("claim lan web-1"), "10.0.3.50\n");
    for node in 0..3 {
        resolve::until(&["10.0.3.50"], || resolve::a(nodes.sandboxes[node].dns(), "web-1.home.test"));
    }
    nodes.etcd.member(0).kill().unwrap();
    let silent = |node: usize| {
        let ready = nodes.http.try_get(&format!("{}/readyz", nodes.sandboxes[node].url()));
        ready.filter(|text| text.contains("not-ready"))
    };
    for node in 0..3 {
        assert!(wait_until(SOON, || silent(node)).is_some(), "node {node} says that something is wrong");
        assert_eq!(
            resolve::a(nodes.sandboxes[node].dns(), "web-1.home.test").values,
            ["10.0.3.50"],
            "node {node}"
        );
        let stale = nodes.ask(node, Method::GET, "/claims?stale=ok", None);
        assert_eq!(stale.status, 200, "{stale:?}");
        assert_eq!(stale.body["items"][0]["address"], "10.0.3.50");
        assert!(stale.age.as_ref().is_some_and(|age| age.parse::<f64>().unwrap() > 0.0), "{stale:?}");
        let fresh = nodes.ask(node, Method::GET, "/claims", None);
        assert_eq!((fresh.status, fresh.problem()), (503, "unavailable"), "{fresh:?}");
        assert!(fresh.body["detail"].as_str().unwrap().contains("?stale=ok"), "{fresh:?}");
        let typed = nodes.sandboxes[node].fails("get claims --timeout 3s");
        assert!(typed.err.contains("hint: `--stale`"), "{}", typed.err);
        assert!(nodes.sandboxes[node].does("get claims --stale").contains("10.0.3.50"));
        let said = nodes.sandboxes[node].netstead(["status"]);
        assert!(said.code == 1 && said.out.contains("not ready") && said.out.contains("\nlan "), "{said:?}");
        let write = nodes.claim(node, "web-2");
        assert!(matches!(write.status, 503 | 504), "{write:?}");
        let alive = nodes.http.try_get(&format!("{}/healthz", nodes.sandboxes[node].url()));
        assert_eq!(alive.as_deref(), Some("ok\n"));
    }
    nodes.etcd.restart(0).unwrap();
    let healed = wait_until(SOON, || Some(nodes.claim(one, "web-2")).filter(|answer| answer.status < 300));
    assert_eq!(healed.unwrap().address(), "10.0.3.51");
    for node in 0..3 {
        resolve::until(&["10.0.3.51"], || resolve::a(nodes.sandboxes[node].dns(), "web-2.home.test"));
        assert_eq!(nodes.sandboxes[node].does("claim lan web-1"), "10.0.3.50\n");
    }
}

#[test]
fn when_etcds_quota_is_used_up_every_node_says_that_nothing_can_be_changed() {
    let Some(etcd) = Etcd::start_with(1, "http", &["--quota-backend-bytes=33554432"]) else { return };
    let nodes = Nodes::start_on(etcd, "");
    let followers = nodes.followers();
    nodes.sandboxes[followers[0]].does("pool create lan --range 10.0.3.50-10.0.3.200");
    nodes.sandboxes[followers[0]].does("claim lan web-1");
    let value = "x".repeat(100_000);
    let full = (0..1000).any(|number| nodes.etcd.ctl(&["put", &format!("/fill/{number}"), &value]).is_err());
    assert!(full, "the quota cannot be used up");

    let why = "etcd has used up its quota and takes no changes: compact, defragment (`etcdctl defrag`), then `etcdctl \
               alarm disarm`";
    let readiness = |node: usize| nodes.http.try_get(&format!("{}/readyz", nodes.sandboxes[node].url()));
    for node in followers {
        let degraded = format!("degraded, following: no change can be made: {why}\n");
        let told = wait_until(SOON, || readiness(node).filter(|said| *said == degraded));
        assert!(told.is_some(), "{:?}", readiness(node));
        let sandbox = &nodes.sandboxes[node];
        assert_eq!(sandbox.does("get claims -o name"), "lan/web-1\n", "it can be read");
        let said = sandbox.does("status");
        assert!(said.contains(&format!(" is degraded: {why}")), "{said}");
        assert_eq!(sandbox.netstead(["status", "--check"]).code, 1);
        let said = sandbox.netstead(["doctor"]);
        assert!(said.code == 1 && said.out.contains("and etcd takes no changes"), "{said:?}");
    }
    // So does the leader, also before it is asked to change something.
    let leader = (0..3).find(|node| !followers.contains(node)).unwrap();
    let told = wait_until(SOON, || readiness(leader).filter(|said| said.contains("quota")));
    assert!(told.is_some(), "{:?}", readiness(leader));
    nodes.claim(leader, "web-2");
    let told = wait_until(SOON, || readiness(leader).filter(|said| said.contains("quota is used up")));
    assert!(told.is_some(), "{:?}", readiness(leader));

    nodes.etcd.ctl(&["del", "--prefix", "/fill/"]).unwrap();
    let status = nodes.etcd.ctl(&["endpoint", "status", "-w", "json"]).unwrap();
    let revision = status.split("\"revision\":").nth(1).unwrap();
    let revision: String = revision.chars().take_while(char::is_ascii_digit).collect();
    nodes.etcd.ctl(&["compact", "--physical", &revision]).unwrap();
    nodes.etcd.ctl(&["defrag"]).unwrap();
    nodes.etcd.ctl(&["alarm", "disarm"]).unwrap();
    for node in 0..3 {
        let told = wait_until(SOON, || readiness(node).filter(|said| said.starts_with("ok, ")));
        assert!(told.is_some(), "{:?}", readiness(node));
    }
    let healed =
        wait_until(SOON, || Some(nodes.claim(followers[0], "web-3")).filter(|answer| answer.status < 300));
    assert!(healed.is_some());
}
