//! Without the etcd.

use netstead_testkit::wait_until;
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
        assert!(nodes.sandboxes[node].does("status --stale").contains("not ready"));
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
