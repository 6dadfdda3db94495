//! The status of pools.

use netstead_testkit::wait_until;
use serde_json::{Value, json};

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
    // The rules of the definition let it pass.
    space.pool("InClusterIPPool", "lan", "{ addresses: [10.0.0.10, 10.0.0.30-10.0.0.20], prefix: 24 }");
    let ready = || {
        let object = space.get(&space.pool_path("InClusterIPPool", "lan"))?;
        let ready = object["status"]["conditions"].as_array()?.first()?.clone();
        Some((ready["reason"].as_str()?.to_owned(), ready["message"].as_str()?.to_owned()))
    };
    let (reason, message) = wait_until(SOON, ready).unwrap();
    assert_eq!(reason, "InvalidSpec");
    assert_eq!(
        message,
        "spec.addresses: Invalid value: \"10.0.0.30-10.0.0.20\": it begins at `10.0.0.30`, after its end `10.0.0.20`; write \
         `10.0.0.20-10.0.0.30`"
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

/// The verdicts of the in-cluster provider's webhook, as far as CEL can say them, each for create and update.
#[test]
fn the_server_refuses_a_pool_that_says_nonsense_without_any_webhook() {
    let space = Space::new("rules");
    let good = json!({ "addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24 });
    let good6 = json!({ "prefixes": ["fd00::/48"] });
    let with = |change: Value| {
        let mut spec = good.clone();
        spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        spec
    };
    let addresses = |list: &[&str], prefix: i64| json!({ "addresses": list, "prefix": prefix });
    let of_prefixes =
        |list: &[&str], length: i64| json!({ "prefixes": list, "allocationPrefixLength": length });
    let address_cases = [
        (good.clone(), ""),
        (addresses(&["10.0.0.1", "10.0.0.3"], 0), ""),
        (addresses(&["10.0.0.0/25", "10.0.0.130/26"], 24), ""),
        (addresses(&["fd00::/65", "fd00::7-fd00::9"], 20), ""),
        (with(json!({ "gateway": "10.99.0.1" })), ""),
        (with(json!({ "gateway": "" })), ""),
        (with(json!({ "excludedAddresses": ["10.0.0.11", "10.7.0.0/16"] })), ""),
        (addresses(&[], 24), "spec.addresses"),
        (addresses(&["10.0.0.1/33"], 24), "spec.addresses[0]"),
        (addresses(&["10.0.0.300"], 24), "spec.addresses[0]"),
        (addresses(&["10.0.0.10-10.0.0"], 24), "spec.addresses[0]"),
        (addresses(&["10.0.0.10"], -1), "spec.prefix"),
        (addresses(&["10.0.0.10"], 33), "spec.prefix"),
        (addresses(&["fd00::1"], 129), "spec.prefix"),
        (addresses(&["10.0.0.10", "10.0.1.10"], 24), "spec.addresses"),
        (addresses(&["10.0.1.1", "10.0.0.1"], 24), "spec.addresses"),
        (addresses(&["10.0.0.10", "10.0.0.250-10.0.1.3"], 24), "spec.addresses"),
        (addresses(&["10.0.0.0/8"], 16), "spec.addresses"),
        (addresses(&["10.0.0.10", "fd00::1"], 24), "spec.addresses"),
        (with(json!({ "excludedAddresses": ["fd00::1"] })), "spec.excludedAddresses"),
        (with(json!({ "excludedAddresses": ["10.0.0.256"] })), "spec.excludedAddresses[0]"),
        (with(json!({ "gateway": "fd00::1" })), "spec.gateway"),
        (with(json!({ "gateway": "the router" })), "spec.gateway"),
    ];
    let prefix_cases = [
        (good6.clone(), ""),
        (
            json!({ "prefixes": ["fd00::/48"], "gateway": "fd00::1", "excludedPrefixes": ["fd00::1", "fd00::/80"] }),
            "",
        ),
        (of_prefixes(&[], 64), "spec.prefixes"),
        (of_prefixes(&["10.0.0.0/8"], 64), "spec.prefixes[0]"),
        (of_prefixes(&["fd00::1/48"], 64), "spec.prefixes[0]"),
        (of_prefixes(&["fd00::/72"], 64), "spec.prefixes"),
        (of_prefixes(&["fd00::/48"], 0), "spec.allocationPrefixLength"),
        (of_prefixes(&["fd00::/48"], 129), "spec.allocationPrefixLength"),
        (json!({ "prefixes": ["fd00::/48"], "gateway": "10.0.0.1" }), "spec.gateway"),
        (json!({ "prefixes": ["fd00::/48"], "excludedPrefixes": ["10.0.0.1"] }), "spec.excludedPrefixes[0]"),
    ];
    let kinds =
        ["InClusterIPPool", "GlobalInClusterIPPool", "InClusterPrefixPool", "GlobalInClusterPrefixPool"];
    for kind in kinds {
        let (good, cases) =
            if kind.contains("Prefix") { (&good6, &prefix_cases[..]) } else { (&good, &address_cases[..]) };
        space.pool(kind, "rules", &good.to_string());
        let stored = space.pool_path(kind, "rules");
        let all = stored.trim_end_matches("/rules");
        for (spec, field) in cases {
            let object = json!({ "apiVersion": "ipam.cluster.x-k8s.io/v1alpha2", "kind": kind, "metadata": { "name": "new" },
                "spec": spec });
            let (status, answer) = space.server.call("POST", &format!("{all}?dryRun=All"), Some(&object));
            judge(&format!("{kind} {spec}"), status, &answer, field);
            // The operator may write its status in between.
            let update = || {
                let mut changed = space.get(&stored)?;
                changed["spec"] = spec.clone();
                if kind.contains("Prefix") && spec.get("allocationPrefixLength").is_none() {
                    changed["spec"]["allocationPrefixLength"] = json!(64);
                }
                let answered = space.server.call("PUT", &format!("{stored}?dryRun=All"), Some(&changed));
                (answered.0 != 409).then_some(answered)
            };
            let (status, answer) = wait_until(SOON, update).unwrap();
            judge(&format!("update: {kind} {spec}"), status, &answer, field);
        }
    }
}

/// Whether the server took it, or named this field and nothing that it could not compute.
fn judge(case: &str, status: u16, answer: &Value, field: &str) {
    let message = answer["message"].as_str().unwrap_or_default();
    if field.is_empty() {
        assert!(matches!(status, 200 | 201), "{case}: {message}");
    } else {
        assert_eq!(status, 422, "{case}: {message}");
        assert!(message.contains(&format!("{field}: Invalid value")), "{case}: {message}");
        assert!(!message.contains("rule evaluation error"), "{case}: {message}");
    }
}
