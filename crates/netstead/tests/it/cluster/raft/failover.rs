//! The leader stops, or is stopped.

use netstead_testkit::{PowerDns, wait_until};
use reqwest::Method;
use serde_json::json;

use super::{super::nodes::run, nodes::Nodes};
use crate::sandbox::SOON;

#[test]
fn three_servers_keep_their_store_together_and_survive_the_loss_of_one() {
    let mut nodes = Nodes::start();
    let leader = nodes.leader();
    let (follower, third) = ((leader + 1) % 3, (leader + 2) % 3);
    let pool = json!({"family": "ipv4", "ranges": ["10.0.3.50-10.0.3.200"]});
    nodes.done(follower, &Method::PUT, "/pools/lan", &pool);
    let first = nodes.done(follower, &Method::PUT, "/pools/lan/claims/web", &json!({}));
    // Every node has it.
    for node in 0..3 {
        let (status, claim) = nodes.ask(node, Method::GET, "/pools/lan/claims/web", None);
        assert_eq!((status, &claim["address"]), (200, &first["address"]));
    }
    let (_, cluster) = nodes.ask(third, Method::GET, "/cluster", None);
    let list = cluster["nodes"].as_array().unwrap();
    assert_eq!(list.len(), 3, "{cluster}");
    assert_eq!(list.iter().filter(|node| node["role"] == "leader").count(), 1);
    let shown = nodes.sandboxes[third].does("cluster status");
    for address in &nodes.addresses {
        assert!(shown.contains(address), "{shown}");
    }

    // The leader is killed: another one goes on with everything.
    drop(nodes.servers[leader].take());
    let next = nodes.leader();
    assert_ne!(next, leader);
    let again = nodes.done(third, &Method::PUT, "/pools/lan/claims/web", &json!({}));
    assert_eq!(again["address"], first["address"]);
    nodes.done(third, &Method::PUT, "/pools/lan/claims/db", &json!({}));

    // It comes back with an empty directory, as a new node in the old one's place.
    std::fs::remove_dir_all(nodes.sandboxes[leader].path().join("node")).unwrap();
    nodes.servers[leader] = Some(run(&nodes.sandboxes[leader]));
    let whole = wait_until(SOON, || {
        let (_, cluster) = nodes.ask(third, Method::GET, "/cluster", None);
        let list = cluster["nodes"].as_array()?;
        let voting = list.iter().all(|node| node["role"] != "learner");
        let answering =
            list.iter().all(|node| node["last_contact_ms"].as_u64().is_some_and(|age| age < 2000));
        (list.len() == 3 && voting && answering).then_some(())
    });
    whole.expect("three nodes again");
    let back = wait_until(SOON, || {
        let (status, claim) = nodes.ask(leader, Method::GET, "/pools/lan/claims/db", None);
        (status == 200).then_some(claim)
    });
    assert!(back.is_some(), "the new node has everything");

    // A node is removed by name of its address, and the last word on a stranger is clear.
    let (status, told) = nodes.ask(third, Method::DELETE, "/cluster/nodes/nobody", None);
    assert_eq!(status, 404, "{told}");
}

#[test]
fn a_leader_that_is_told_to_stop_hands_over_and_writes_go_on() {
    let mut nodes = Nodes::start();
    let pool = json!({"family": "ipv4", "ranges": ["10.0.3.50-10.0.3.200"]});
    nodes.done(0, &Method::PUT, "/pools/lan", &pool);
    let leader = nodes.leader();
    let other = (leader + 1) % 3;
    let mut server = nodes.servers[leader].take().unwrap();
    server.terminate().unwrap();
    for number in 0..30 {
        // One that was under way in that very moment may be unknown or refused, and is repeated as anybody would.
        nodes.done(other, &Method::PUT, &format!("/pools/lan/claims/k{number}"), &json!({}));
    }
    assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
    let log = server.log();
    assert!(log.contains("Another node leads the cluster now; this one stops."), "{log}");
}

/// Clients that keep their connections open ask a follower all the time, also while it is told to stop.
#[test]
fn a_follower_that_is_told_to_stop_leaves_nobody_in_doubt() {
    let mut nodes = Nodes::start();
    let pool = json!({"family": "ipv4", "ranges": ["10.0.0.0-10.0.255.255"]});
    nodes.done(0, &Method::PUT, "/pools/lan", &pool);
    let follower = (nodes.leader() + 1) % 3;
    let mut server = nodes.servers[follower].take().unwrap();
    let answers: Vec<(u16, String)> = std::thread::scope(|scope| {
        let client = |number: usize| {
            let nodes = &nodes;
            move || {
                let claim = |round| {
                    let path = format!("/pools/lan/claims/{number}-{round}");
                    nodes.answer(follower, Method::PUT, &path, Some(json!({})))
                };
                // Until it takes no connection any more.
                (0..100_000).map(claim).take_while(|answer| answer.status > 0).collect::<Vec<_>>()
            }
        };
        let clients: Vec<_> = (0..8).map(|number| scope.spawn(client(number))).collect();
        nodes.done(follower, &Method::PUT, "/pools/lan/claims/first", &json!({}));
        server.terminate().unwrap();
        let seen = clients.into_iter().flat_map(|client| client.join().unwrap());
        seen.map(|answer| (answer.status, answer.problem().to_owned())).collect()
    });
    assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
    let doubtful: Vec<_> =
        answers.iter().filter(|(status, kind)| !matches!(status, 200 | 201) && kind != "stopping").collect();
    assert!(doubtful.is_empty(), "{} of {}: {doubtful:?}", doubtful.len(), answers.len());
}

/// A server beside the sandbox is written to only when something changed, also after a change of leader.
#[test]
fn the_first_pass_of_a_new_leader_writes_nothing_when_nothing_changed() {
    let Some(server) = PowerDns::start(&["home.test", "3.0.10.in-addr.arpa"]) else { return };
    let mut nodes = Nodes::start_with(&format!(
        "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n[dns.lan]\ntype = \"powerdns\"\nurl = \"{}\"\n\
         api_key = \"{}\"\ndomains = [\"home.test\"]\ninterval = \"1s\"\ngrace = \"0s\"\n",
        server.api_url(),
        server.api_key()
    ));
    let hosts: Vec<String> = (1..=20).map(|n| format!("10.0.3.{n} host-{n}.home.test\n")).collect();
    for sandbox in &nodes.sandboxes {
        std::fs::write(sandbox.path().join("hosts"), hosts.concat()).unwrap();
    }
    let first = nodes.leader();
    let applied =
        "netstead_changes_total{provider=\"lan\",zone=\"home.test\",action=\"create\",outcome=\"applied\"}";
    let calls = |operation: &str| {
        format!(
            "netstead_provider_calls_total{{provider=\"lan\",operation=\"{operation}\",outcome=\"answered\"}}"
        )
    };
    let settled = |nodes: &Nodes, node: usize| {
        let in_sync = nodes.number(node, "netstead_provider_in_sync{provider=\"lan\"}")? > 0.0;
        let owned = nodes.number(node, "netstead_provider_owned{provider=\"lan\"}")? >= 40.0;
        (in_sync && owned).then_some(())
    };
    wait_until(SOON, || settled(&nodes, first)).expect("the first leader writes all of it");
    wait_until(SOON, || nodes.number(first, applied).filter(|changes| *changes >= 20.0))
        .expect("and counts it");

    nodes.kill(first);
    let next = nodes.leader();
    wait_until(SOON, || settled(&nodes, next)).expect("the next one knows what is there");
    let passes = "netstead_provider_passes_total{provider=\"lan\",outcome=\"done\"}";
    wait_until(SOON, || nodes.number(next, passes).filter(|passes| *passes >= 3.0)).expect("it passes");
    assert!(nodes.number(next, &calls("GET")) >= Some(1.0), "it looked");
    assert_eq!((nodes.number(next, &calls("PATCH")), nodes.number(next, applied)), (None, None));
}
