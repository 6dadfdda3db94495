//! A lead that is lost and regained, and the order of claims after it.

use std::{collections::BTreeSet, net::TcpListener, thread, time::Duration};

use netstead_operator::OperatorOptions;
use netstead_testkit::wait_until;
use serde_json::json;

use crate::world::{Running, SOON, Space};

/// Removes an object past its finalizers, as a person or another program would.
fn remove(space: &Space, path: &str) {
    if space.get(path).is_some() {
        space.server.patch(path, &json!({ "metadata": { "finalizers": null } }));
        space.server.delete(path);
    }
}

#[test]
fn a_lead_that_is_lost_in_a_burst_and_regained_leaks_nothing() {
    const CLAIMS: usize = 30;
    let space = Space::new("regained");
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.1-10.0.0.30], prefix: 24 }");
    let mut operator = space.operator();
    let name = |number: usize| format!("claim-{number:02}");
    for number in 0..CLAIMS {
        space.claim(&name(number), "InClusterIPPool", "lan");
        if number == CLAIMS / 2 {
            // Steps are under way now.
            assert!(wait_until(SOON, || space.get(&space.address_path(&name(0)))).is_some());
            operator.drop_run();
        }
    }
    for number in (0..CLAIMS).filter(|number| number % 2 == 0) {
        remove(&space, &space.address_path(&name(number)));
        remove(&space, &space.claim_path(&name(number)));
    }
    operator.begin();
    for number in (0..CLAIMS).filter(|number| number % 2 == 0) {
        space.claim(&format!("new-{number:02}"), "InClusterIPPool", "lan");
    }
    // All thirty addresses are needed, and each claim is served, also one whose step was cut off.
    let mut addresses = BTreeSet::new();
    for number in 0..CLAIMS {
        let claim = if number % 2 == 0 { format!("new-{number:02}") } else { name(number) };
        assert!(addresses.insert(space.bound(&claim)));
    }
    space.counts("InClusterIPPool", "lan", "30/30/0/0");
}

#[test]
fn claims_that_waited_while_no_node_led_are_served_in_the_order_they_came() {
    let space = Space::new("in-order");
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.12], prefix: 24 }");
    // The list has them by name, which is the wrong order.
    let claims = ["c6", "c5", "c4", "c3", "c2", "c1"];
    for claim in claims {
        space.claim(claim, "InClusterIPPool", "lan");
        // The server writes the time of creation in whole seconds.
        thread::sleep(Duration::from_millis(1100));
    }
    let options = OperatorOptions { concurrency: 6, ..space.options(&space.server.kubeconfig()) };
    let mut operator = Running::with(options);
    let mut got: Vec<String> = claims.iter().take(3).map(|claim| space.bound(claim)).collect();
    got.sort();
    assert_eq!(got, ["10.0.0.10", "10.0.0.11", "10.0.0.12"]);
    for claim in claims.iter().skip(3) {
        space.wait_for_reason(claim, "PoolExhausted");
    }
    // Another lead knows the order too.
    operator.drop_run();
    for claim in ["c6", "c5"] {
        remove(&space, &space.address_path(claim));
        remove(&space, &space.claim_path(claim));
    }
    operator.begin();
    let mut got = [space.bound("c3"), space.bound("c2")];
    got.sort();
    assert_ne!(got[0], got[1]);
    space.stays_without("c1");
}

#[test]
fn a_taken_port_for_metrics_stops_nothing() {
    let space = Space::new("taken-port");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let options = OperatorOptions { metrics: Some(address), ..space.options(&space.server.kubeconfig()) };
    let _operator = Running::with(options);
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10], prefix: 24 }");
    space.claim("one", "InClusterIPPool", "lan");
    space.bound("one");
    // Once the port is free, metrics are answered there.
    drop(taken);
    let answered = || {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(address).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.contains("netstead_operator_allocations").then_some(())
    };
    assert!(wait_until(SOON, answered).is_some());
}
