//! Many claims at once, with all that can go wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    thread,
    time::Duration,
};

use netstead_testkit::wait_until;
use serde_json::{Value, json};

use crate::{
    fault_proxy::FaultProxy,
    world::{Running, Space},
};

const PATIENCE: Duration = Duration::from_mins(4);

fn create_claims(space: &Space, numbers: std::ops::Range<usize>, kind: &str, pool: &str) {
    let path = format!("/apis/ipam.cluster.x-k8s.io/v1beta2/namespaces/{}/ipaddressclaims", space.name);
    thread::scope(|scope| {
        for part in 0..4 {
            let (path, numbers) = (path.as_str(), numbers.clone());
            scope.spawn(move || {
                for number in numbers.filter(|number| number % 4 == part) {
                    let claim = json!({
                        "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddressClaim",
                        "metadata": { "name": format!("claim-{number}") },
                        "spec": { "poolRef": { "apiGroup": "ipam.cluster.x-k8s.io", "kind": kind, "name": pool } },
                    });
                    let (status, answer) = space.server.call("POST", path, Some(&claim));
                    assert_eq!(status, 201, "{answer}");
                }
            });
        }
    });
}

fn list(space: &Space, plural: &str) -> Vec<Value> {
    let path = format!("/apis/ipam.cluster.x-k8s.io/v1beta2/namespaces/{}/{plural}", space.name);
    let list = space.get(&path).unwrap();
    list["items"].as_array().unwrap().clone()
}

/// Waits until this many claims are bound, and sees that each has one address and no address two claims.
fn all_bound(space: &Space, count: usize) -> BTreeMap<String, String> {
    let bound = || {
        let claims = list(space, "ipaddressclaims");
        let told = |claim: &Value| claim["status"]["addressRef"]["name"].is_string();
        (claims.iter().filter(|claim| told(claim)).count() == count).then_some(())
    };
    let done = wait_until(PATIENCE, || {
        thread::sleep(Duration::from_millis(200));
        bound()
    });
    let addresses = list(space, "ipaddresses");
    assert!(done.is_some(), "{} of {count} addresses were made", addresses.len());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let by_claim: BTreeMap<String, String> =
        addresses.iter().map(|one| (text(&one["metadata"]["name"]), text(&one["spec"]["address"]))).collect();
    let different: BTreeSet<&String> = by_claim.values().collect();
    assert_eq!((by_claim.len(), different.len()), (count, count));
    by_claim
}

/// Two replicas that work at the same time, a server that refuses, loses answers and is busy, and events that come late.
#[test]
fn two_replicas_and_a_failing_server_give_no_address_twice() {
    burst("burst", 300);
}

/// The same with more claims: `cargo test -p netstead-operator --test it -- --ignored --nocapture`.
#[test]
#[ignore = "it takes a minute or more"]
fn a_thousand_claims_get_an_address_each() {
    burst("thousand", 1000);
}

fn burst(name: &str, claims: usize) {
    let space = Space::new(name);
    let proxy = FaultProxy::before(space.server.kubeconfig());
    // Neither asks the other for the lead: both work at once.
    let replicas =
        [Running::with(space.options(&proxy.kubeconfig)), Running::with(space.options(&proxy.kubeconfig))];
    // No address is left over, so a wrong step shows.
    let last = Ipv4Addr::from_bits(0x0a01_0000 + u32::try_from(claims).unwrap());
    space.pool("GlobalInClusterIPPool", name, &format!("{{ addresses: [10.1.0.1-{last}], prefix: 16 }}"));
    create_claims(&space, 0..claims, "GlobalInClusterIPPool", name);
    all_bound(&space, claims);
    space.counts("GlobalInClusterIPPool", name, &format!("{claims}/{claims}/0/0"));
    assert!(proxy.made() > 100, "only {} faults", proxy.made());
    // All can go again, in the middle of which one replica crashes.
    let path = format!("/apis/ipam.cluster.x-k8s.io/v1beta2/namespaces/{}/ipaddressclaims", space.name);
    space.server.delete(&path);
    let [one, other] = replicas;
    thread::sleep(Duration::from_secs(1));
    one.crash();
    let gone = wait_until(PATIENCE, || {
        thread::sleep(Duration::from_millis(200));
        (list(&space, "ipaddressclaims").is_empty() && list(&space, "ipaddresses").is_empty()).then_some(())
    });
    assert!(gone.is_some(), "{} claims are left", list(&space, "ipaddressclaims").len());
    space.counts("GlobalInClusterIPPool", name, &format!("{claims}/0/{claims}/0"));
    drop(other);
    proxy.end();
}

#[test]
fn crashes_lose_and_double_nothing() {
    const CLAIMS: usize = 150;
    let space = Space::new("crashes");
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.1.0.1-10.1.0.150], prefix: 16 }");
    create_claims(&space, 0..CLAIMS, "InClusterIPPool", "lan");
    let told = || {
        let claims = list(&space, "ipaddressclaims");
        let name = |claim: &Value| claim["status"]["addressRef"]["name"].as_str().map(str::to_owned);
        claims.iter().filter_map(name).collect::<BTreeSet<String>>()
    };
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for _ in 0..6 {
        let operator = space.operator();
        thread::sleep(Duration::from_millis(400));
        operator.crash();
        let told = told();
        let addresses = list(&space, "ipaddresses");
        // No owner is told of an address before its object exists.
        let there: BTreeSet<String> =
            addresses.iter().map(|one| one["metadata"]["name"].as_str().unwrap().to_owned()).collect();
        assert!(told.is_subset(&there), "{:?}", told.difference(&there));
        for address in addresses {
            let name = address["metadata"]["name"].as_str().unwrap().to_owned();
            let value = address["spec"]["address"].as_str().unwrap().to_owned();
            if told.contains(&name) {
                assert_eq!(
                    known.entry(name.clone()).or_insert(value.clone()),
                    &value,
                    "{name} has another address"
                );
            }
        }
    }
    let _operator = space.operator();
    let all = all_bound(&space, CLAIMS);
    assert!(known.iter().all(|(name, address)| all.get(name) == Some(address)));
}

#[test]
fn a_claim_that_goes_in_the_middle_leaves_nothing() {
    const CLAIMS: usize = 60;
    let space = Space::new("in-the-middle");
    let _operator = space.operator();
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.1.0.1-10.1.0.40], prefix: 16 }");
    create_claims(&space, 0..CLAIMS, "InClusterIPPool", "lan");
    // Whatever has become of each by now.
    for number in (0..CLAIMS).filter(|number| number % 3 != 0) {
        space.server.delete(&space.claim_path(&format!("claim-{number}")));
    }
    all_bound(&space, CLAIMS / 3);
    space.counts("InClusterIPPool", "lan", "40/20/20/0");
}

#[test]
fn one_replica_works_and_the_other_takes_over() {
    let space = Space::new("lease");
    let options = || netstead_operator::OperatorOptions {
        lease_namespace: Some("lease".to_owned()),
        ..space.options(&space.server.kubeconfig())
    };
    let holder = || {
        let lease = space.get("/apis/coordination.k8s.io/v1/namespaces/lease/leases/netstead-operator")?;
        lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(str::to_owned)
    };
    let first = Running::with(options());
    let one = wait_until(PATIENCE, holder).unwrap();
    let _second = Running::with(options());
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }");
    space.claim("one", "InClusterIPPool", "lan");
    space.bound("one");
    assert_eq!(holder().as_ref(), Some(&one));
    first.stop();
    let other = wait_until(PATIENCE, || holder().filter(|holder| *holder != one));
    assert!(other.is_some(), "no replica took over");
    space.claim("two", "InClusterIPPool", "lan");
    space.bound("two");
}
