//! A swarm, seen from its managers and workers.

use netstead_model::{Source as _, View};
use netstead_sources::docker::{Config, Mode};
use serde_json::json;

use super::{config, container, docker, fake::Fake, reason, wishes};

fn swarm(fake: &Fake, state: &str, manager: bool) {
    fake.answers(
        "/info",
        &json!({ "Swarm": { "LocalNodeState": state, "ControlAvailable": manager, "NodeAddr": "10.0.0.5" } }),
    );
}

/// A service with two tasks on an overlay, of which one runs, and one service beside the host.
fn services(fake: &Fake) {
    fake.answers(
        "/services",
        &json!([
            { "ID": "s1", "Spec": { "Name": "web", "Labels": { "netstead.hostname": "web.home.test", "netstead.target": "network:ov" } },
              "Endpoint": { "VirtualIPs": [{ "NetworkID": "n3", "Addr": "10.1.0.2/24" }] } },
            { "ID": "s2", "Spec": { "Name": "db", "Labels": { "netstead.hostname": "db.home.test" } }, "Endpoint": {} },
        ]),
    );
    let task = |service: &str, state: &str, network: &str, address: &str| {
        json!({ "ServiceID": service, "Status": { "State": state },
            "NetworksAttachments": [{ "Network": { "ID": network }, "Addresses": [address] }] })
    };
    fake.answers(
        "/tasks",
        &json!([
            task("s1", "running", "n3", "10.1.0.3/24"),
            task("s1", "preparing", "n3", "10.1.0.4/24"),
            task("s2", "running", "n2", "10.0.3.7/24"),
        ]),
    );
}

#[tokio::test]
async fn a_manager_shows_services_with_the_addresses_of_their_tasks() {
    let fake = Fake::start();
    swarm(&fake, "active", true);
    services(&fake);
    let mut task = container("web.1.abc", ("ov", "n3"), "10.1.0.3");
    task["Labels"]["com.docker.swarm.service.id"] = json!("s1");
    fake.answers("/containers/json", &json!([container("alone", ("lan", "n2"), "10.0.3.9"), task]));
    let report = docker(config(&fake.socket())).report().await;
    assert_eq!(report.view(), View::Complete);
    let found: Vec<String> =
        report.workloads().into_iter().map(|one| format!("{} {}", one.kind, one.id)).collect();
    assert_eq!(found, ["container alone", "service service/db", "service service/web"]);
    let interfaces: Vec<String> = report.workloads()[2]
        .interfaces
        .iter()
        .map(|one| format!("{} {:?} {}", one.name.as_deref().unwrap(), one.addresses, one.local))
        .collect();
    assert_eq!(interfaces.len(), 2, "{interfaces:?}");
    assert!(
        interfaces[0].starts_with("ov (virtual)") && interfaces[1].contains("10.1.0.3"),
        "{interfaces:?}"
    );
    assert!(!interfaces[1].contains("10.1.0.4"), "only what runs has an address");
    assert_eq!(wishes(&report)[..2], ["alone.home.test 10.0.3.9", "db.home.test 10.0.3.7"]);
    assert!(wishes(&report)[2].contains("10.1.0.2"), "{:?}", wishes(&report));

    let only = docker(Config { mode: Mode::Swarm, ..config(&fake.socket()) }).report().await;
    assert_eq!(only.workloads().len(), 2);
}

#[tokio::test]
async fn a_worker_says_that_only_managers_show_services() {
    let fake = Fake::start();
    swarm(&fake, "active", false);
    fake.answers("/containers/json", &json!([container("alone", ("lan", "n2"), "10.0.3.9")]));
    let auto = docker(config(&fake.socket())).report().await;
    assert!(matches!(auto.view(), View::Partial { .. }), "services that are not shown are not gone");
    assert!(reason(&auto).contains("is a worker of a swarm, and only a manager shows services"));
    assert_eq!(auto.workloads().len(), 1);
    let swarm_only = docker(Config { mode: Mode::Swarm, ..config(&fake.socket()) }).report().await;
    assert!(matches!(swarm_only.view(), View::Failed { .. }));
    let standalone = docker(Config { mode: Mode::Standalone, ..config(&fake.socket()) }).report().await;
    assert_eq!(standalone.view(), View::Complete);
}

#[tokio::test]
async fn a_swarm_that_has_no_leader_removes_nothing() {
    let fake = Fake::start();
    swarm(&fake, "active", true);
    fake.says("/services", 503, r#"{"message":"The swarm does not have a leader."}"#);
    let report = docker(config(&fake.socket())).report().await;
    assert!(matches!(report.view(), View::Failed { .. }));
    assert_eq!(reason(&report), "GET /services answers 503: The swarm does not have a leader.");
    swarm(&fake, "locked", false);
    let locked = docker(config(&fake.socket())).report().await;
    assert!(matches!(locked.view(), View::Partial { .. }));
    assert!(reason(&locked).ends_with(" is locked"));
}
