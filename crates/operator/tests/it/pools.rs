//! The status of pools.

use netstead_testkit::wait_until;

use crate::world::{SOON, Space};

#[test]
fn counts_are_those_of_the_in_cluster_provider() {
    let space = Space::new("counts");
    let _operator = space.operator();
    let rows = [
        ("{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }", 2, "11/2/9/0"),
        ("{ addresses: [10.0.0.10-10.0.0.20], prefix: 24, gateway: 10.0.0.10 }", 1, "10/1/9/0"),
        ("{ addresses: [10.0.0.10-10.0.0.20], prefix: 24, gateway: 10.0.0.1 }", 1, "11/1/10/0"),
        ("{ addresses: [10.0.0.0-10.0.0.1], prefix: 24 }", 1, "1/1/0/0"),
        ("{ addresses: [10.0.0.254-10.0.0.255], prefix: 24 }", 1, "1/1/0/0"),
        ("{ addresses: ['fe80::10:ff'], prefix: 120 }", 1, "1/1/0/0"),
        ("{ addresses: ['fd00::/64'], prefix: 64 }", 1, "9223372036854775807/1/9223372036854775807/0"),
    ];
    for kind in ["InClusterIPPool", "GlobalInClusterIPPool"] {
        for (number, (spec, claims, _)) in rows.iter().enumerate() {
            let pool = format!("counts-{}-{number}", kind.to_lowercase());
            space.pool(kind, &pool, spec);
            for claim in 0..*claims {
                space.claim(&format!("{pool}-{claim}"), kind, &pool);
            }
        }
        for (number, (_, _, wanted)) in rows.iter().enumerate() {
            space.counts(kind, &format!("counts-{}-{number}", kind.to_lowercase()), wanted);
        }
    }
}

#[test]
fn a_narrower_pool_says_which_addresses_it_does_not_have_any_more() {
    let space = Space::new("narrower");
    let _operator = space.operator();
    let kind = "InClusterIPPool";
    let rows = [
        (
            5,
            "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }",
            "{ addresses: [10.0.0.13-10.0.0.20], prefix: 24 }",
            "8/5/6/3",
        ),
        (
            2,
            "{ addresses: [10.0.0.254-10.0.0.255], prefix: 24, allocateReservedIPAddresses: true }",
            "{ addresses: [10.0.0.254-10.0.0.255], prefix: 24, allocateReservedIPAddresses: false }",
            "1/2/0/1",
        ),
        (
            2,
            "{ addresses: [10.0.0.0-10.0.0.1], prefix: 24, allocateReservedIPAddresses: true }",
            "{ addresses: [10.0.0.0-10.0.0.1], prefix: 24, allocateReservedIPAddresses: false }",
            "1/2/0/1",
        ),
        (
            3,
            "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }",
            "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24, gateway: 10.0.0.11 }",
            "10/3/8/1",
        ),
    ];
    for (number, (claims, before, after, wanted)) in rows.into_iter().enumerate() {
        let pool = format!("lan-{number}");
        space.pool(kind, &pool, before);
        for claim in 0..claims {
            let claim = format!("{pool}-{claim}");
            space.claim(&claim, kind, &pool);
            space.bound(&claim);
        }
        space.pool(kind, &pool, after);
        space.counts(kind, &pool, wanted);
    }
}

#[test]
fn a_pool_that_cannot_be_used_says_why() {
    let space = Space::new("unusable");
    let _operator = space.operator();
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10, 10.0.7.10], prefix: 24 }");
    let ready = || {
        let object = space.get(&space.pool_path("InClusterIPPool", "lan"))?;
        let ready = object["status"]["conditions"].as_array()?.first()?.clone();
        Some((ready["reason"].as_str()?.to_owned(), ready["message"].as_str()?.to_owned()))
    };
    let (reason, message) = wait_until(SOON, ready).unwrap();
    assert_eq!(reason, "InvalidSpec");
    assert_eq!(
        message,
        "spec.addresses: Invalid value: \"10.0.7.10\": it belongs to a different subnet than `10.0.0.0/24`, that of the lowest \
         address"
    );
    space.claim("one", "InClusterIPPool", "lan");
    space.wait_for_reason("one", "PoolNotReady");
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10], prefix: 24 }");
    assert_eq!(space.bound("one"), "10.0.0.10");
    assert!(wait_until(SOON, || ready().filter(|(reason, _)| reason == "PoolReady")).is_some());
    let metrics = || {
        let operator = space.operator();
        wait_until(SOON, || {
            let text = operator.operator.metrics();
            text.contains("pool_addresses{kind=\"InClusterIPPool\",namespace=\"unusable\",pool=\"lan\",state=\"used\"} 1").then_some(())
        })
    };
    assert!(metrics().is_some());
}
