//! The kinds of Netstead's own group: pools of NetBox, and pools of Netstead's ledger.

use serde_json::{Value, json};

use super::{status, status_with_network, whole};
use crate::{PoolKind, cel};

/// The longest text of a field.
const LONGEST: u16 = 253;
/// A rule is computed for each prefix.
const MOST_PREFIXES: u8 = 64;

fn text(description: &str) -> Value {
    json!({ "description": description, "type": "string", "minLength": 1, "maxLength": LONGEST })
}

fn address(description: &str) -> Value {
    json!({
        "description": description, "type": "string", "maxLength": 45,
        "x-kubernetes-validations": cel::address(),
    })
}

/// A pool of Netstead's ledger.
pub(super) fn netstead_definition(kind: PoolKind) -> Value {
    let spec = json!({
        "type": "object",
        "required": ["pool"],
        "properties": {
            "pool": {
                "description": "The name of a pool of Netstead, as `netstead get pools` shows it.",
                "type": "string", "minLength": 1, "maxLength": 63,
                "x-kubernetes-validations": cel::never_changes("the pool never changes: its addresses are held there"),
            },
        },
    });
    let columns = json!([
        { "name": "Pool", "type": "string", "jsonPath": ".spec.pool" },
        { "name": "Gateway", "type": "string", "jsonPath": ".status.gateway" },
        { "name": "Mask", "type": "string", "jsonPath": ".status.mask" },
    ]);
    let description = "A pool of Netstead's ledger that claims of Cluster API get their addresses and their names in DNS out of.";
    whole(kind, description, &spec, &status_with_network(), &columns)
}

/// Prefixes of NetBox.
pub(super) fn netbox_definition(kind: PoolKind) -> Value {
    let mut reference = json!({
        "description": "A Secret with the keys `url` and `token`, in the namespace of the pool.",
        "type": "object",
        "required": ["name"],
        "properties": { "name": text("Its name.") },
    });
    if !kind.is_namespaced() {
        reference = json!({
            "description": "A Secret with the keys `url` and `token`.",
            "type": "object",
            "required": ["name", "namespace"],
            "properties": { "name": text("Its name."), "namespace": text("Its namespace.") },
        });
    }
    let spec = json!({
        "type": "object",
        "required": ["credentialsRef", "prefixes"],
        "properties": {
            "credentialsRef": reference,
            "tls": {
                "type": "object",
                "properties": {
                    "insecure": { "description": "Trusts any certificate; for a first try.", "type": "boolean" },
                    "fingerprint": text("The SHA-256 of the one certificate to trust."),
                    "serverName": text("The name that the certificate must be for."),
                },
            },
            "keyField": {
                "description": "The custom field that has our keys: `netstead_key` unless set. It is made if the token may do that.",
                "type": "string", "pattern": "^[a-z0-9_]{1,50}$",
                "x-kubernetes-validations": cel::never_changes("the field never changes: addresses are found by it"),
            },
            "prefixes": {
                "description": "Prefixes of NetBox. An address is taken from the first that has one free.",
                "type": "array", "minItems": 1, "maxItems": MOST_PREFIXES,
                "items": {
                    "type": "object",
                    "properties": {
                        "id": { "description": "The id of the prefix in NetBox.", "type": "integer", "minimum": 1 },
                        "cidr": { "description": "The prefix itself: `10.0.3.0/24`.", "type": "string", "maxLength": 49 },
                        "vrf": text("The name of the VRF of `cidr`; without it the global table."),
                        "gateway": address("The gateway, if `gatewayField` has none."),
                    },
                    "x-kubernetes-validations": cel::netbox_prefix(),
                },
            },
            "gatewayField": text("A custom field of the prefix with its gateway; it goes before `gateway`."),
            "gateway": address("The gateway of prefixes that have none."),
            "tenant": text("The tenant of new addresses: its slug."),
            "tags": {
                "description": "The tags of new addresses: their slugs.",
                "type": "array", "maxItems": 32, "items": text("A tag."),
            },
            "status": {
                "description": "The status of new addresses: `active` unless set.",
                "type": "string", "minLength": 1, "maxLength": 50,
            },
            "customFields": {
                "description": "Custom fields of new addresses.",
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            },
            "domain": text("The domain of names: the DNS name of an address is its machine's name in it."),
        },
    });
    let columns = json!([
        { "name": "Prefixes", "type": "string", "jsonPath": ".spec.prefixes" },
    ]);
    let description = "Prefixes of NetBox that claims of Cluster API get their addresses out of.";
    whole(kind, description, &spec, &status("addresses"), &columns)
}
