//! The definitions of the pool kinds, for `kubectl apply`.

use serde_json::{Value, json};

use crate::{PoolKind, cel, conversion};

mod own_kinds;

/// The definition of a kind, as an object of the API server.
///
/// Fields, defaults and columns are those of the in-cluster provider, so that either can serve the pools of the other; the
/// conditions and the columns `Ready` and `Age` are ours.
pub fn definition(kind: PoolKind) -> Value {
    match kind {
        PoolKind::PhpIpamPool => return phpipam_definition(kind),
        PoolKind::NetBoxPool | PoolKind::GlobalNetBoxPool => return own_kinds::netbox_definition(kind),
        PoolKind::NetsteadPool | PoolKind::GlobalNetsteadPool => return own_kinds::netstead_definition(kind),
        _ => {}
    }
    let prefixes = kind.is_of_prefixes();
    let (list, units) = if prefixes { ("prefixes", "prefixes") } else { ("addresses", "addresses") };
    let title = if prefixes { "Prefixes" } else { "Addresses" };
    let description = format!("A pool of {units} that claims of Cluster API get theirs out of.");
    let spec = if prefixes { prefix_spec() } else { address_spec() };
    let columns = json!([{ "name": title, "type": "string", "jsonPath": format!(".spec.{list}") }]);
    let mut definition = whole(kind, &description, &spec, &status(units), &columns);
    if conversion::has_old_version(kind) {
        conversion::serve_old_version(&mut definition);
    }
    definition
}

/// The columns of every kind; those of one kind come before them.
fn columns(own: &Value) -> Vec<Value> {
    let count = |name: &str, field: &str| json!({ "name": name, "type": "integer", "jsonPath": format!(".status.ipAddresses.{field}") });
    let condition = |name: &str, field: &str, priority: u8| {
        let path = format!(".status.conditions[?(@.type==\"Ready\")].{field}");
        json!({ "name": name, "type": "string", "jsonPath": path, "priority": priority })
    };
    let mut columns = own.as_array().cloned().unwrap_or_default();
    columns.extend([
        count("Total", "total"),
        count("Free", "free"),
        count("Used", "used"),
        condition("Ready", "status", 0),
        condition("Reason", "reason", 1),
        condition("Message", "message", 1),
        json!({ "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" }),
    ]);
    columns
}

fn whole(kind: PoolKind, description: &str, spec: &Value, status: &Value, own: &Value) -> Value {
    let version = kind.version();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{}", kind.plural(), kind.group()),
            "labels": {
                "cluster.x-k8s.io/provider": "ipam-netstead",
                "cluster.x-k8s.io/v1beta1": version,
                "cluster.x-k8s.io/v1beta2": version,
                // Pools and their addresses go along with `clusterctl move`, which looks at kinds with the first label only.
                "clusterctl.cluster.x-k8s.io": "",
                "clusterctl.cluster.x-k8s.io/move-hierarchy": "",
            },
        },
        "spec": {
            "group": kind.group(),
            "scope": if kind.is_namespaced() { "Namespaced" } else { "Cluster" },
            "names": {
                "kind": kind.as_str(),
                "listKind": format!("{kind}List"),
                "plural": kind.plural(),
                "singular": kind.plural().trim_end_matches('s'),
                "categories": ["cluster-api"],
            },
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": columns(own),
                "schema": { "openAPIV3Schema": {
                    "description": description,
                    "type": "object",
                    "properties": {
                        "apiVersion": { "type": "string" },
                        "kind": { "type": "string" },
                        "metadata": { "type": "object" },
                        "spec": spec,
                        "status": status,
                    },
                } },
            }],
        },
    })
}

/// A subnet of phpIPAM: the fields of the provider that had the kind before, and what it lacked.
fn phpipam_definition(kind: PoolKind) -> Value {
    let text = |description: &str| json!({ "description": description, "type": "string", "maxLength": 1024 });
    let spec = json!({
        "type": "object",
        "required": ["subnetid"],
        "properties": {
            "subnetid": { "description": "The id of the subnet in phpIPAM.", "type": "integer", "minimum": 0 },
            "credentials": {
                "description": "How phpIPAM is reached. Better in a Secret: see `credentialsRef`.",
                "type": "object",
                "properties": {
                    "username": text("A user of phpIPAM."),
                    "password": text("The password of the user."),
                    "app_id": text("The id of the app in Administration, API."),
                    "endpoint": text("The address of the API: `https://ipam.example.com/api`."),
                },
            },
            "credentialsRef": {
                "description": "A Secret with the keys `username`, `password`, `app_id` and `endpoint`, instead of `credentials`.",
                "type": "object",
                "required": ["name", "namespace"],
                "properties": { "name": text("Its name."), "namespace": text("Its namespace.") },
            },
            "tls": {
                "type": "object",
                "properties": {
                    "insecure": { "description": "Trusts any certificate; for a first try.", "type": "boolean" },
                    "fingerprint": text("The SHA-256 of the one certificate to trust."),
                    "serverName": text("The name that the certificate must be for."),
                },
            },
        },
        "x-kubernetes-validations": [{
            "rule": "has(self.credentials) != has(self.credentialsRef)",
            "message": "one of credentials and credentialsRef is needed",
        }],
    });
    let status = status_with_network();
    let columns = json!([
        { "name": "Subnet", "type": "integer", "jsonPath": ".spec.subnetid" },
        { "name": "Gateway", "type": "string", "jsonPath": ".status.gateway" },
        { "name": "Mask", "type": "string", "jsonPath": ".status.mask" },
    ]);
    whole(
        kind,
        "A subnet of phpIPAM that claims of Cluster API get their addresses out of.",
        &spec,
        &status,
        &columns,
    )
}

/// The status of a pool that is one network, with its gateway and length.
fn status_with_network() -> Value {
    let text = |description: &str| json!({ "description": description, "type": "string", "maxLength": 1024 });
    let mut status = status("addresses");
    if let Some(fields) = status.pointer_mut("/properties").and_then(Value::as_object_mut) {
        fields.insert("gateway".to_owned(), text("The gateway of the subnet; empty if it has none."));
        fields.insert("mask".to_owned(), text("The length of the subnet."));
    }
    status
}

fn entries(description: &str, at_least: u8, rules: &Value) -> Value {
    json!({
        "description": description,
        "type": "array",
        "minItems": at_least,
        "maxItems": cel::MOST_ENTRIES,
        "items": {
            "type": "string",
            "minLength": 2,
            "maxLength": cel::LONGEST_ENTRY,
            "pattern": "^[0-9a-fA-F.:]+([/-][0-9a-fA-F.:]+)?$",
            "x-kubernetes-validations": rules,
        },
    })
}

fn address_spec() -> Value {
    json!({
        "type": "object",
        "required": ["addresses", "prefix"],
        "properties": {
            "addresses": entries(
                "Single addresses, networks (`10.0.0.0/28`) and ranges (`10.0.0.10-10.0.0.20`), all of one family and inside one \
                 network of the length `prefix`.", 1, &cel::entry()),
            "prefix": {
                "description": "The length of the network that the addresses are in. It is written on every address.",
                "type": "integer", "minimum": 0, "maximum": 128,
            },
            "gateway": { "description": "The gateway of the network. It is never given out.", "type": "string", "maxLength": 45 },
            "excludedAddresses": entries(
                "Addresses that are never given out, written as in `addresses`.", 0, &cel::entry()),
            "allocateReservedIPAddresses": {
                "description": "Gives out the first address of the network too, and the last of an IPv4 network.",
                "type": "boolean",
            },
            "addressReuseGracePeriodSeconds": {
                "description": "How long a deleted claim keeps its address, and stays itself.",
                "type": "integer", "format": "int32", "minimum": 0,
            },
        },
        "x-kubernetes-validations": cel::address_spec(),
    })
}

fn prefix_spec() -> Value {
    json!({
        "type": "object",
        "required": ["prefixes"],
        "properties": {
            "prefixes": entries(
                "IPv6 networks that prefixes are cut out of, such as `2001:db8::/48`.", 1, &cel::aggregate()),
            "allocationPrefixLength": {
                "description": "The length of each prefix. It never changes.",
                "type": "integer", "minimum": 1, "maximum": 128, "default": 64,
                "x-kubernetes-validations": [{ "rule": "self == oldSelf", "message": "the length of prefixes never changes" }],
            },
            "gateway": {
                "description": "An IPv6 address that is written on every prefix. It blocks none.",
                "type": "string", "maxLength": 45,
            },
            "excludedPrefixes": entries(
                "Addresses, networks and ranges; a prefix that overlaps one is never given out.", 0, &cel::excluded_prefix()),
        },
        "x-kubernetes-validations": cel::prefix_spec(),
    })
}

fn status(units: &str) -> Value {
    let count = |description: &str| json!({ "description": description, "type": "integer" });
    json!({
        "type": "object",
        "properties": {
            "ipAddresses": {
                "description": format!("How many {units} there are; the highest 64-bit number if there are more."),
                "type": "object",
                "required": ["free", "outOfRange", "total", "used"],
                "properties": {
                    "total": count("All that can be given out."),
                    "used": count("Those that are held."),
                    "free": count("Those that are not."),
                    "outOfRange": count("Those that are held and that the pool does not have any more."),
                    "cooling": count("Those that were released and rest before they are given out again."),
                },
            },
            "conditions": {
                "type": "array",
                "maxItems": 32,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {
                    "type": "object",
                    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
                    "properties": {
                        "type": { "type": "string", "maxLength": 316 },
                        "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                        "reason": { "type": "string", "minLength": 1, "maxLength": 1024 },
                        "message": { "type": "string", "maxLength": 32768 },
                        "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
                        "lastTransitionTime": { "type": "string", "format": "date-time" },
                    },
                },
            },
        },
    })
}
