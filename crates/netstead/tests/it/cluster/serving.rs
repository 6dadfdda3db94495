//! Requests that any node serves.

use netstead_testkit::{Process, wait_until};
use reqwest::Method;
use serde_json::json;

use super::nodes::Nodes;
use crate::{
    external_dns::{WWW, ask},
    resolve,
    sandbox::SOON,
};

#[test]
fn any_node_serves_addresses_names_and_events() {
    let Some(nodes) =
        Nodes::start("[dns.own]\ntype = \"builtin\"\ndomains = [\"home.test\"]\nreverse = false\n")
    else {
        return;
    };
    let (leader, [one, other]) = (nodes.leader(), nodes.followers());
    let sandbox = |node: usize| &nodes.sandboxes[node];
    // A write at a node that follows is done, and every node knows of it at once.
    sandbox(one).does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    assert_eq!(sandbox(other).does("claim lan web-1"), "10.0.3.50\n");
    for node in 0..3 {
        assert!(sandbox(node).does("get claims -o json").contains("10.0.3.50"), "node {node}");
    }
    assert_eq!(sandbox(leader).does("claim lan web-2"), "10.0.3.51\n");
    assert_eq!(sandbox(one).does("claim lan web-1"), "10.0.3.50\n", "the same key, the same address");
    // Names: set at one node, answered by each.
    sandbox(other).does("record set www.home.test A 10.0.3.9");
    for node in 0..3 {
        resolve::until(&["10.0.3.9"], || resolve::a(sandbox(node).dns(), "www.home.test"));
        resolve::until(&["10.0.3.50"], || resolve::a(sandbox(node).dns(), "web-1.home.test"));
    }
    // What only the leader's engine knows is had from any.
    for line in [
        "get providers",
        "get records",
        "get sources",
        "get zones",
        "get workloads",
        "get plans",
        "get changes",
    ] {
        assert_eq!(sandbox(one).does(line), sandbox(leader).does(line), "{line}");
    }
    assert!(sandbox(one).does("explain www.home.test").contains("10.0.3.9"));
    sandbox(one).does("apply");
    // Events come at a node that follows, and their order is the same.
    assert_eq!(sandbox(one).does("events export"), sandbox(leader).does("events export"));
    assert!(sandbox(other).netstead(["store", "check"]).err.contains("all well"));

    // How it stands.
    let said = sandbox(one).does("status");
    assert!(said.contains("follows") && said.contains("3 members") && said.contains("own"), "{said}");
    let said = sandbox(leader).does("status");
    assert!(said.contains("leads; 3 members"), "{said}");
    let members = sandbox(one).does("cluster status");
    assert_eq!(members.matches("follower").count(), 2, "{members}");
    assert_eq!(members.matches("leader").count(), 1, "{members}");
    assert_eq!(nodes.number(leader, "netstead_leader"), Some(1.0));
    assert_eq!(nodes.number(one, "netstead_leader"), Some(0.0));
    assert_eq!(nodes.number(one, "netstead_epoch"), nodes.number(leader, "netstead_epoch"));
    assert!(nodes.number(one, "netstead_lag_seconds").is_some_and(|lag| lag < 30.0));
    assert!(nodes.number(one, "netstead_forwarded_requests_total").is_some_and(|sent| sent > 3.0));
    assert_eq!(nodes.number(leader, "netstead_forwarded_requests_total"), Some(0.0));
    sandbox(one).does("status --ready");
}

#[test]
fn a_request_is_sent_on_once_and_with_the_callers_own_token() {
    let Some(nodes) = Nodes::start("") else { return };
    let [one, other] = nodes.followers();
    let (url, admin) = (nodes.sandboxes[one].url(), nodes.sandboxes[one].token());
    nodes.sandboxes[one].does("pool create lan --range 10.0.3.50-10.0.3.200");
    nodes.sandboxes[one].does("pool create lab --range 10.0.4.50-10.0.4.200");
    // A node that was asked by another node asks no third one.
    let claim = format!("{url}/api/v1/pools/lan/claims/web-1");
    let once = nodes.http.ask(Method::PUT, &claim, &admin, &[("Netstead-Forwarded", "x")], Some(json!({})));
    assert_eq!((once.status, once.problem()), (503, "not-leading"), "{once:?}");
    assert_eq!(once.body["facts"]["leader"], nodes.sandboxes[nodes.leader()].url());

    // A token of one node is one of all, with its role and its scopes.
    let token = nodes.sandboxes[other].does("token create ci --role claim --pool lan");
    let ask = |method, path: &str, body| {
        nodes.http.ask(method, &format!("{url}/api/v1{path}"), token.trim(), &[], Some(body))
    };
    let mine = ask(Method::PUT, "/pools/lan/claims/web-1", json!({}));
    assert_eq!(
        (mine.status, mine.address(), &mine.body["owner"]),
        (201, "10.0.3.50", &json!("ci")),
        "{mine:?}"
    );
    let scoped = ask(Method::PUT, "/pools/lab/claims/web-1", json!({}));
    assert_eq!((scoped.status, scoped.problem()), (403, "forbidden"), "{scoped:?}");
    let role = ask(Method::PUT, "/pools/new", json!({"ranges": ["10.0.5.1-10.0.5.9"]}));
    assert_eq!(role.status, 403, "{role:?}");
    let wrong = ask(Method::PUT, "/pools/lan/claims/web-2", json!({"adress": "10.0.3.60"}));
    assert_eq!((wrong.status, wrong.body["field"].as_str()), (400, Some("adress")), "{wrong:?}");
    let nobody = nodes.http.ask(Method::PUT, &claim, "nst_aaaaaaaa_x", &[], Some(json!({})));
    assert_eq!(nobody.status, 401, "{nobody:?}");
}

#[test]
fn a_token_that_was_revoked_opens_nothing_at_any_node() {
    let Some(nodes) = Nodes::start("") else { return };
    let (leader, followers) = (nodes.leader(), nodes.followers());
    let look = |node: usize, token: &str| {
        nodes.http.ask(
            Method::GET,
            &format!("{}/api/v1/pools", nodes.sandboxes[node].url()),
            token,
            &[],
            None,
        )
    };
    for round in 0..10 {
        let made =
            nodes.ask(leader, Method::POST, "/tokens", Some(json!({"subject": "ci", "role": "read"}))).body;
        let (id, secret) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
        for node in followers {
            assert_eq!(look(node, secret).status, 200, "{round}");
        }
        let revoked = nodes.ask(followers[0], Method::DELETE, &format!("/tokens/{id}"), None);
        assert_eq!(revoked.status, 204);
        for node in followers {
            assert_eq!(look(node, secret).status, 401, "{round}");
        }
    }
}

#[test]
fn who_waits_at_a_node_that_follows_is_served() {
    let Some(nodes) = Nodes::start("") else { return };
    let [one, other] = nodes.followers();
    nodes.sandboxes[one].does("pool create one --range 10.0.6.1-10.0.6.1 --cooldown 0s");
    nodes.sandboxes[one].does("claim one first");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| nodes.sandboxes[one].does("claim one second --wait 30s"));
        let queued = || nodes.sandboxes[other].does("get claims -o json").contains("waiting").then_some(());
        assert!(wait_until(SOON, queued).is_some());
        nodes.sandboxes[other].does("release one first");
        assert_eq!(waiting.join().unwrap(), "10.0.6.1\n");
    });
    // Conditions go along.
    let pool = |node: usize| {
        nodes.ask(node, Method::PUT, "/pools/lan", Some(json!({"ranges": ["10.0.3.1-10.0.3.9"]}))).status
    };
    assert_eq!(pool(one), 201);
    let (url, token) = (nodes.sandboxes[one].url(), nodes.sandboxes[one].token());
    let again = nodes.http.ask(
        Method::PUT,
        &format!("{url}/api/v1/pools/lan"),
        &token,
        &[("If-None-Match", "*")],
        Some(json!({"ranges": ["10.0.3.1-10.0.3.8"]})),
    );
    assert_eq!((again.status, again.problem()), (409, "pool-exists"), "{again:?}");
}

/// The command line asks the next node when one does not answer.
#[test]
fn several_urls_are_tried_in_turn() {
    let Some(nodes) = Nodes::start("") else { return };
    let [one, _] = nodes.followers();
    let dead = "http://127.0.0.1:1";
    let sandbox = &nodes.sandboxes[one];
    let urls = format!("{dead}, {},{dead}", sandbox.url());
    for line in
        ["pool create lan --range 10.0.3.50-10.0.3.200", "claim lan web-1", "get claims", "status --ready"]
    {
        let words = line.split_whitespace().chain(["--url", &urls]);
        let said = sandbox.netstead(words);
        assert_eq!(said.code, 0, "{line}: {}", said.err);
    }
    let said = sandbox.netstead(["get", "claims", "--url", "http://127.0.0.1:1,http://127.0.0.1:2"]);
    assert!(said.code == 1 && said.err.contains("nothing answers"), "{}", said.err);
}

#[test]
fn a_node_that_follows_passes_on_the_events_of_the_leaders_engine() {
    let Some(nodes) =
        Nodes::start("[dns.own]\ntype = \"builtin\"\ndomains = [\"home.test\"]\nreverse = false\n")
    else {
        return;
    };
    let [one, other] = nodes.followers();
    let write = |line: &str| nodes.sandboxes[other].does(line);
    write("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    let watch = ["events", "watch", "-o", "json"];
    let mut shown = Process::start("watch", nodes.sandboxes[one].command().args(watch)).unwrap();
    // The stream is open once it shows a claim.
    let open = wait_until(SOON, || {
        write("claim lan probe");
        write("release lan probe");
        shown.log().contains(r#""of":"ledger""#).then_some(())
    });
    assert!(open.is_some(), "{}", shown.log());
    write("record set www.home.test A 10.0.3.9");
    let line = shown.wait_for_line(r#""name":"www.home.test""#, SOON).unwrap();
    assert!(line.contains(r#""of":"engine""#), "{line}");
    shown.kill().unwrap();
}

#[test]
fn external_dns_may_call_any_node() {
    let port = netstead_testkit::free_port().unwrap();
    // All nodes are on one machine here, so only one of them gets the port: the first that starts.
    let Some(mut nodes) = Nodes::start("[dns.own]\ntype = \"builtin\"\ndomains = [\"apps.test\"]\n") else {
        return;
    };
    let [one, _] = nodes.followers();
    let leader = nodes.leader();
    for (node, port) in [(one, port), (leader, 0)] {
        let file = nodes.sandboxes[node].path().join("netstead.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let table = format!(
            "[external_dns.k8s]\nlisten = \"127.0.0.1:{port}\"\ndomains = [\"apps.test\"]\ntoken = \"s3cret\"\n"
        );
        let sign = "Configuration read again; it is in force.";
        std::fs::write(&file, format!("{text}{table}")).unwrap();
        let server = &mut nodes.servers[node];
        server.signal("HUP").unwrap();
        assert!(wait_until(SOON, || server.log().contains(sign).then_some(())).is_some(), "{}", server.log());
    }
    assert_eq!(ask(port, "GET", "/", "").0, 200);
    let create = format!(r#"{{"create":[{WWW}]}}"#);
    assert_eq!(ask(port, "POST", "/records", &create), (204, String::new()));
    let (status, held) = ask(port, "GET", "/records", "");
    assert!(status == 200 && held.contains("www.apps.test"), "{status} {held}");
    for node in 0..3 {
        resolve::until(&["192.0.2.1"], || resolve::a(nodes.sandboxes[node].dns(), "www.apps.test"));
    }
    // The leader goes. The node answers itself if it leads now, or sends the call to the new leader, or says 503.
    nodes.servers[leader].kill().unwrap();
    let delete = format!(r#"{{"delete":[{WWW}]}}"#);
    let done = wait_until(SOON, || {
        let (status, body) = ask(port, "POST", "/records", &delete);
        assert!([204, 503].contains(&status), "{status} {body}");
        // A leader without the table does not take its records.
        (status == 204 || body.contains("is not in the configuration")).then_some(())
    });
    assert!(done.is_some());
}
