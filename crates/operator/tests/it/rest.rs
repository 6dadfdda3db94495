//! Released addresses rest before they are given out again, without their claims.

use netstead_testkit::wait_until;

use crate::world::{SOON, Space};

fn pool(space: &Space, seconds: &str, addresses: &str) {
    space.apply(&format!(
        "apiVersion: ipam.cluster.x-k8s.io/v1alpha2\nkind: InClusterIPPool\nmetadata: {{ name: lan, annotations: {{ \
         ipam.netstead.io/reuse-delay-seconds: '{seconds}' }} }}\nspec: {{ addresses: [{addresses}], prefix: 24 }}\n"
    ));
}

/// The addresses that rest, as the status counts them.
fn wait_for_cooling(space: &Space, wanted: u64) {
    let path = space.pool_path("InClusterIPPool", "lan");
    let count = || space.get(&path)?["status"]["ipAddresses"]["cooling"].as_u64();
    let seen = wait_until(SOON, || count().filter(|seen| *seen == wanted));
    assert!(seen.is_some(), "{:?} addresses rest, not {wanted}", count());
}

#[test]
fn a_released_address_rests_although_its_claim_is_gone_and_the_operator_starts_anew() {
    let space = Space::new("resting");
    let operator = space.operator();
    pool(&space, "600", "10.0.0.10-10.0.0.12");
    for claim in ["a", "b"] {
        space.claim(claim, "InClusterIPPool", "lan");
        space.bound(claim);
    }
    for claim in ["a", "b"] {
        space.server.delete(&space.claim_path(claim));
    }
    for claim in ["a", "b"] {
        space.gone(&space.claim_path(claim));
        space.gone(&space.address_path(claim));
    }
    wait_for_cooling(&space, 2);
    space.counts("InClusterIPPool", "lan", "3/0/1/0");
    // A crash forgets nothing: the pool's annotation has them.
    operator.crash();
    let _operator = space.operator();
    space.claim("c", "InClusterIPPool", "lan");
    assert_eq!(space.bound("c"), "10.0.0.12");
    space.claim("d", "InClusterIPPool", "lan");
    space.wait_for_reason("d", "PoolExhausted");
    let wish = ", annotations: { ipam.netstead.io/address: 10.0.0.11 }";
    space.claim_with("wish", "InClusterIPPool", "lan", wish, "");
    space.wait_for_reason("wish", "AllocationFailed");
    wait_for_cooling(&space, 2);
    // A person ends the rest of one.
    let path = space.pool_path("InClusterIPPool", "lan");
    let text = space.get(&path).unwrap()["metadata"]["annotations"]["ipam.netstead.io/cooling"].clone();
    let (first, second) = text.as_str().unwrap().split_once(',').unwrap();
    assert!(first.starts_with("10.0.0.10=") && second.starts_with("10.0.0.11="), "{text}");
    space.annotate(&path, "ipam.netstead.io/cooling", Some(second));
    assert_eq!(space.bound("d"), "10.0.0.10");
}

#[test]
fn a_claim_that_waits_gets_an_address_when_its_rest_ends() {
    let space = Space::new("rest-ends");
    let _operator = space.operator();
    pool(&space, "3", "10.0.0.10");
    space.claim("a", "InClusterIPPool", "lan");
    space.bound("a");
    space.claim("b", "InClusterIPPool", "lan");
    space.wait_for_reason("b", "PoolExhausted");
    space.server.delete(&space.claim_path("a"));
    space.gone(&space.claim_path("a"));
    wait_for_cooling(&space, 1);
    assert_eq!(space.get(&space.address_path("b")), None, "the address did not rest");
    assert_eq!(space.bound("b"), "10.0.0.10");
    wait_for_cooling(&space, 0);
    let path = space.pool_path("InClusterIPPool", "lan");
    let annotation = || {
        let annotations = space.get(&path)?["metadata"]["annotations"].clone();
        annotations.get("ipam.netstead.io/cooling").is_none().then_some(())
    };
    assert!(wait_until(SOON, annotation).is_some());
}

#[test]
fn a_rest_that_is_no_number_is_reported_on_the_pool() {
    let space = Space::new("no-number");
    let _operator = space.operator();
    pool(&space, "soon", "10.0.0.10");
    let message = || {
        let object = space.get(&space.pool_path("InClusterIPPool", "lan"))?;
        Some(object["status"]["conditions"].as_array()?.first()?["message"].as_str()?.to_owned())
    };
    assert_eq!(
        wait_until(SOON, message).as_deref(),
        Some(
            "annotation ipam.netstead.io/reuse-delay-seconds: `soon`: write a number of seconds, a year (31536000) at most"
        )
    );
}
