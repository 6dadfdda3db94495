//! The webhooks, called by the API server.
//!
//! They are for the whole cluster, so each test has a server of its own. A Service leads nowhere here: the API server gets a URL.

use std::{net::SocketAddr, path::PathBuf, thread, time::Duration};

use netstead_operator::{OperatorOptions, PoolKind, WebhookOptions, definition};
use netstead_testkit::{KubeApiServer, free_port, wait_until};
use serde_json::{Value, json};

use crate::world::{Running, SOON, Space};

const IPAM: &str = "ipam.cluster.x-k8s.io";
const REVERSED: &str = "10.0.0.9-10.0.0.1";

/// The options of an operator with webhooks at a free port.
fn options(space: &Space, cert_dir: Option<PathBuf>) -> OperatorOptions {
    let port = free_port().unwrap();
    let webhook = WebhookOptions {
        cert_dir,
        url: Some(format!("https://127.0.0.1:{port}")),
        interval: Duration::from_millis(500),
        settle: Duration::from_secs(2),
        ..WebhookOptions::new(SocketAddr::from(([127, 0, 0, 1], port)), space.name.as_str())
    };
    OperatorOptions { webhook: Some(webhook), ..space.options(&space.server.kubeconfig()) }
}

fn server() -> &'static KubeApiServer {
    let server = Box::leak(Box::new(KubeApiServer::start(&[])));
    server.apply(include_str!("cluster-api.yaml"));
    server
}

/// A definition without rules, as the in-cluster provider has them: nothing but the webhook refuses.
fn without_rules(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|field, _| {
                !["x-kubernetes-validations", "pattern", "minItems", "minLength"].contains(&field.as_str())
            });
            if fields.get("type").and_then(Value::as_str) == Some("integer") {
                fields.retain(|field, _| field != "minimum" && field != "maximum");
            }
            fields.values_mut().for_each(without_rules);
        }
        Value::Array(values) => values.iter_mut().for_each(without_rules),
        _ => {}
    }
}

impl Space {
    /// Status and message of a dry run of making a pool.
    fn try_pool(&self, version: &str, kind: &str, spec: &Value) -> (u16, Value) {
        let path = self.pool_path(kind, "").replace("v1alpha2", version);
        let object = json!({ "apiVersion": format!("{IPAM}/{version}"), "kind": kind, "metadata": { "name": "new" }, "spec": spec });
        self.server.call("POST", &format!("{}?dryRun=All", path.trim_end_matches('/')), Some(&object))
    }

    fn wait_for_webhooks(&self, kind: &str) {
        let spec = json!({ "addresses": [REVERSED], "prefix": 24 });
        let refused = || {
            let (status, answer) = self.try_pool("v1alpha2", kind, &spec);
            (status == 422 && answer["message"].as_str()?.contains("denied the request")).then_some(())
        };
        assert!(wait_until(SOON, refused).is_some(), "{:?}", self.try_pool("v1alpha2", kind, &spec));
    }

    /// Changes the spec of a pool in a dry run, whatever else changes meanwhile.
    fn try_update(&self, path: &str, spec: &Value) -> (u16, Value) {
        let update = || {
            let mut object = self.get(path)?;
            object["spec"] = spec.clone();
            let answer = self.server.call("PUT", &format!("{path}?dryRun=All"), Some(&object));
            (answer.0 != 409).then_some(answer)
        };
        wait_until(SOON, update).unwrap()
    }

    fn try_delete(&self, path: &str) -> (u16, Value) {
        self.server.call("DELETE", &format!("{path}?dryRun=All"), None)
    }
}

#[test]
fn the_verdicts_hold_without_any_rule_in_the_definitions() {
    let server = server();
    for kind in PoolKind::ALL.into_iter().filter(|kind| !kind.is_external()) {
        let mut definition = definition(kind);
        without_rules(&mut definition);
        if kind == PoolKind::GlobalInClusterIpPool {
            // As if another provider had installed it.
            definition["metadata"]["labels"]["cluster.x-k8s.io/provider"] = json!("ipam-in-cluster");
            definition["spec"]["conversion"] = json!({ "strategy": "None" });
        }
        server.apply(&definition.to_string());
    }
    let space = Space::on(server, "verdicts");
    let _operator = Running::with(options(&space, None));
    space.wait_for_webhooks("InClusterIPPool");
    space.wait_for_webhooks("GlobalInClusterIPPool");
    for kind in ["InClusterIPPool", "GlobalInClusterIPPool"] {
        specs_of_addresses(&space, kind);
        pools_in_use(&space, kind);
    }
    for kind in ["InClusterPrefixPool", "GlobalInClusterPrefixPool"] {
        specs_of_prefixes(&space, kind);
    }
    let definition = |plural: &str| {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{IPAM}");
        space.get(&path).unwrap()["spec"]["conversion"].clone()
    };
    assert_eq!(definition("globalinclusterippools"), json!({ "strategy": "None" }));
    assert!(definition("inclusterippools")["webhook"]["clientConfig"]["caBundle"].is_string());
    // Nothing is asked about other namespaces: this operator does not look at them.
    let elsewhere = Space::on(server, "elsewhere");
    let spec = json!({ "addresses": [REVERSED], "prefix": 24 });
    assert_eq!(elsewhere.try_pool("v1alpha2", "InClusterIPPool", &spec).0, 201);
}

fn check(case: &str, (status, answer): (u16, Value), field: &str) {
    let message = answer["message"].as_str().unwrap_or_default();
    if field.is_empty() {
        assert!(matches!(status, 200 | 201), "{case}: {message}");
        return;
    }
    assert_eq!((status, answer["reason"].as_str()), (422, Some("Invalid")), "{case}: {message}");
    assert!(
        message.contains("denied the request") && message.contains(&format!("{field}: Invalid value")),
        "{case}: {message}"
    );
    let causes: Vec<_> =
        answer["details"]["causes"].as_array().unwrap().iter().map(|cause| &cause["field"]).collect();
    assert!(causes.contains(&&json!(field)), "{case}: {causes:?}");
}

fn specs_of_addresses(space: &Space, kind: &str) {
    let good = json!({ "addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24 });
    let with = |field: &str, value: Value| {
        let mut spec = good.clone();
        spec[field] = value;
        spec
    };
    let cases = [
        (good.clone(), ""),
        (json!({ "addresses": ["10.0.0.1", "10.7.0.3"], "prefix": 0 }), ""),
        (with("gateway", json!("10.99.0.1")), ""),
        (with("excludedAddresses", json!(["10.0.0.11", "192.168.0.0/16"])), ""),
        (with("addresses", json!([])), "spec.addresses"),
        (with("addresses", json!(["the lan"])), "spec.addresses"),
        (with("addresses", json!([REVERSED])), "spec.addresses"),
        (with("addresses", json!(["10.0.0.0/33"])), "spec.addresses"),
        (with("addresses", json!(["10.0.0.10", "10.0.1.10"])), "spec.addresses"),
        (with("addresses", json!(["10.0.0.250-10.0.1.3"])), "spec.addresses"),
        (with("addresses", json!(["10.0.0.10", "fd00::1"])), "spec.addresses"),
        (with("prefix", json!(-1)), "spec.prefix"),
        (with("prefix", json!(33)), "spec.prefix"),
        (json!({ "addresses": ["fd00::1"], "prefix": 129 }), "spec.prefix"),
        (with("excludedAddresses", json!(["10.0.0.11", "fd00::1"])), "spec.excludedAddresses"),
        (with("excludedAddresses", json!(["fd00::1"])), "spec.excludedAddresses"),
        (with("gateway", json!("fd00::1")), "spec.gateway"),
        (with("gateway", json!("the router")), "spec.gateway"),
    ];
    space.pool(kind, "specs", &good.to_string());
    let path = space.pool_path(kind, "specs");
    for (spec, field) in cases {
        check(&format!("{kind} {spec}"), space.try_pool("v1alpha2", kind, &spec), field);
        check(&format!("update: {kind} {spec}"), space.try_update(&path, &spec), field);
    }
}

fn pools_in_use(space: &Space, kind: &str) {
    let name = kind.to_lowercase();
    let path = space.pool_path(kind, &name);
    space.pool(kind, &name, "{ addresses: [10.0.0.10-10.0.0.20], prefix: 24 }");
    assert_eq!(space.try_delete(&path).0, 200);
    space.claim(&name, kind, &name);
    assert_eq!(space.bound(&name), "10.0.0.10");
    for spec in [
        json!({ "addresses": ["10.0.0.11-10.0.0.20"], "prefix": 24 }),
        json!({ "addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24, "excludedAddresses": ["10.0.0.0/28"] }),
        json!({ "addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24, "gateway": "10.0.0.10" }),
    ] {
        let (status, answer) = space.try_update(&path, &spec);
        let message = answer["message"].as_str().unwrap();
        assert_eq!((status, answer["reason"].as_str()), (400, Some("BadRequest")), "{spec}: {message}");
        assert!(message.contains("[10.0.0.10-10.0.0.10]"), "{message}");
    }
    let wider = json!({ "addresses": ["10.0.0.10-10.0.0.30"], "prefix": 24 });
    check(kind, space.try_update(&path, &wider), "");
    let (status, answer) = space.try_delete(&path);
    assert_eq!((status, answer["reason"].as_str()), (400, Some("BadRequest")));
    assert!(answer["message"].as_str().unwrap().contains("Pool has IPAddresses allocated"), "{answer}");
    let skip = "ipam.cluster.x-k8s.io/skip-validate-delete-webhook";
    space.annotate(&path, skip, Some("true"));
    assert_eq!(space.try_delete(&path).0, 200);
    space.annotate(&path, skip, None);
    assert_eq!(space.try_delete(&path).0, 400);
    space.server.delete(&space.claim_path(&name));
    space.gone(&space.address_path(&name));
    let free = || (space.try_delete(&path).0 == 200).then_some(());
    assert!(wait_until(SOON, free).is_some());
}

fn specs_of_prefixes(space: &Space, kind: &str) {
    let cases = [
        (json!({ "prefixes": ["fd00::/48"] }), ""),
        (
            json!({ "prefixes": ["fd00::/48"], "gateway": "fd00::1", "excludedPrefixes": ["fd00::1", "fd00::/80"] }),
            "",
        ),
        (json!({ "prefixes": [] }), "spec.prefixes"),
        (json!({ "prefixes": ["10.0.0.0/8"] }), "spec.prefixes"),
        (json!({ "prefixes": ["fd00::1/48"] }), "spec.prefixes"),
        (json!({ "prefixes": ["fd00::/72"] }), "spec.prefixes"),
        (json!({ "prefixes": ["fd00::/48"], "allocationPrefixLength": 129 }), "spec.allocationPrefixLength"),
        (json!({ "prefixes": ["fd00::/48"], "gateway": "10.0.0.1" }), "spec.gateway"),
        (json!({ "prefixes": ["fd00::/48"], "excludedPrefixes": ["10.0.0.1"] }), "spec.excludedPrefixes"),
    ];
    for (spec, field) in cases {
        check(&format!("{kind} {spec}"), space.try_pool("v1alpha2", kind, &spec), field);
    }
    let (status, made) =
        space.try_pool("v1alpha2", kind, &json!({ "prefixes": ["fd00::/48"], "allocationPrefixLength": 0 }));
    assert_eq!((status, &made["spec"]["allocationPrefixLength"]), (201, &json!(64)), "{made}");
    space.pool(kind, "length", "{ prefixes: ['fd00::/48'] }");
    let other = json!({ "prefixes": ["fd00::/48"], "allocationPrefixLength": 60 });
    let (status, answer) = space.try_update(&space.pool_path(kind, "length"), &other);
    assert_eq!((status, answer["reason"].as_str()), (400, Some("BadRequest")), "{answer}");
}

/// The definition of an old cluster: v1alpha1 alone.
fn old_definition() -> Value {
    let mut definition = definition(PoolKind::InClusterIpPool);
    let mut old = definition["spec"]["versions"][1].clone();
    old["storage"] = json!(true);
    definition["spec"]["versions"] = json!([old]);
    definition["spec"]["conversion"] = json!({ "strategy": "None" });
    definition
}

#[test]
fn pools_of_old_clusters_are_served_and_a_new_certificate_is_trusted() {
    let server = server();
    server.apply(&old_definition().to_string());
    let space = Space::on(server, "old");
    let old_path = |name: &str| space.pool_path("InClusterIPPool", name).replace("v1alpha2", "v1alpha1");
    let old_pool = |name: &str, spec: &str| {
        space.apply(&format!(
            "apiVersion: {IPAM}/v1alpha1\nkind: InClusterIPPool\nmetadata: {{ name: {name} }}\nspec: {spec}\n"
        ));
    };
    old_pool("stored", "{ subnet: 10.0.0.0/24, start: 10.0.0.10, gateway: 10.0.0.1 }");
    for kind in PoolKind::ALL {
        server.apply(&definition(kind).to_string());
    }
    let definition =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/inclusterippools.ipam.cluster.x-k8s.io";
    let versions = || {
        (space.get(definition)?["status"]["storedVersions"] == json!(["v1alpha1", "v1alpha2"])).then_some(())
    };
    assert!(wait_until(SOON, versions).is_some(), "{:?}", space.get(definition));

    let _operator = Running::with(options(&space, None));
    space.wait_for_webhooks("InClusterIPPool");
    // What was stored as v1alpha1 is a pool, and stays what it was.
    space.claim("one", "InClusterIPPool", "stored");
    assert_eq!(space.bound("one"), "10.0.0.10");
    // Its status was written as v1alpha2, and with it the pool is stored so.
    space.counts("InClusterIPPool", "stored", "245/1/244/0");
    let new = space.get(&space.pool_path("InClusterIPPool", "stored")).unwrap();
    assert_eq!(
        new["spec"],
        json!({ "addresses": ["10.0.0.10-10.0.0.254"], "prefix": 24, "gateway": "10.0.0.1" })
    );
    let old = space.get(&old_path("stored")).unwrap();
    assert_eq!(old["spec"], json!({ "subnet": "10.0.0.0/24", "start": "10.0.0.10", "gateway": "10.0.0.1" }));
    assert_eq!(old["status"]["ipAddresses"]["used"], 1);

    // What v1alpha1 cannot say survives a change by a client that knows nothing else.
    space.pool(
        "InClusterIPPool",
        "new",
        "{ addresses: [10.1.0.10-10.1.0.20], prefix: 24, excludedAddresses: [10.1.0.10], addressReuseGracePeriodSeconds: 1 }",
    );
    let change = || {
        let mut old = space.get(&old_path("new"))?;
        old["spec"]["gateway"] = json!("10.1.0.11");
        let (status, answer) = server.call("PUT", &old_path("new"), Some(&old));
        assert!(matches!(status, 200 | 409), "{answer}");
        (status == 200).then_some(())
    };
    assert!(wait_until(SOON, change).is_some());
    let new = space.get(&space.pool_path("InClusterIPPool", "new")).unwrap();
    assert_eq!(
        new["spec"],
        json!({ "addresses": ["10.1.0.10-10.1.0.20"], "prefix": 24, "excludedAddresses": ["10.1.0.10"],
            "addressReuseGracePeriodSeconds": 1, "gateway": "10.1.0.11" })
    );
    // The verdicts are about what it means.
    let reversed = json!({ "start": "10.0.0.9", "end": "10.0.0.1", "prefix": 24 });
    check("v1alpha1", space.try_pool("v1alpha1", "InClusterIPPool", &reversed), "spec.addresses");
    let (status, answer) = space.try_pool("v1alpha1", "InClusterIPPool", &json!({ "subnet": "10.0.0.0" }));
    assert!(status >= 400 && answer["message"].as_str().unwrap().contains("spec.subnet"), "{answer}");
    certificates_are_renewed(&space);
}

/// Twice, so that the first authority is not trusted any more in the end.
fn certificates_are_renewed(space: &Space) {
    let path = format!("/api/v1/namespaces/{}/secrets/netstead-operator-webhook", space.name);
    let chain = || space.get(&path).unwrap()["data"]["tls.crt"].clone();
    let first = space.get(&path).unwrap()["data"]["ca.crt"].as_str().unwrap().to_owned();
    let spec = json!({ "addresses": [REVERSED, "10.0.0.1-10.0.0.9"], "prefix": 24 });
    let reversed = json!({ "start": "10.0.0.9", "end": "10.0.0.1", "prefix": 24 });
    for _ in 0..2 {
        let before = chain();
        space.annotate(&path, "ipam.netstead.io/certificate-ends", Some("2020-01-01T00:00:00Z"));
        let renewed = wait_until(SOON, || (chain() != before).then_some(()));
        assert!(renewed.is_some());
        // Both while the old certificate is shown, and after that.
        for _ in 0..20 {
            check("validation", space.try_pool("v1alpha2", "InClusterIPPool", &spec), "spec.addresses");
            check("conversion", space.try_pool("v1alpha1", "InClusterIPPool", &reversed), "spec.addresses");
            thread::sleep(Duration::from_millis(250));
        }
    }
    let configuration =
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/netstead-operator";
    let trusted = || space.get(configuration).unwrap()["webhooks"][0]["clientConfig"]["caBundle"].clone();
    assert_ne!(trusted(), json!(first));
    assert_eq!(trusted(), space.get(&path).unwrap()["data"]["ca.crt"]);
}

#[test]
fn a_certificate_may_come_from_a_directory() {
    let server = server();
    for kind in PoolKind::ALL {
        server.apply(&definition(kind).to_string());
    }
    let space = Space::on(server, "directory");
    let dir = std::env::temp_dir().join(format!("netstead-webhook-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let write = || {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        for (name, text) in [("tls.crt", &chain), ("tls.key", &key), ("ca.crt", &chain)] {
            std::fs::write(dir.join(name), text).unwrap();
        }
        data_encoding::BASE64.encode(chain.as_bytes())
    };
    write();
    let _operator = Running::with(options(&space, Some(dir.clone())));
    space.wait_for_webhooks("InClusterIPPool");
    let secret = format!("/api/v1/namespaces/{}/secrets/netstead-operator-webhook", space.name);
    assert_eq!(space.get(&secret), None);
    let second = write();
    let configuration =
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/netstead-operator";
    let trusted = || {
        let webhooks = space.get(configuration)?["webhooks"].clone();
        (webhooks[0]["clientConfig"]["caBundle"] == json!(second)).then_some(())
    };
    // Also while the old certificate is still shown.
    let refused = || {
        let reversed = json!({ "addresses": [REVERSED], "prefix": 24 });
        check("directory", space.try_pool("v1alpha2", "InClusterIPPool", &reversed), "spec.addresses");
    };
    let told = wait_until(SOON, || {
        refused();
        trusted()
    });
    assert!(told.is_some());
    refused();
    let _ = std::fs::remove_dir_all(dir);
}
