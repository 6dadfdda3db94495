//! Which fields of the document are enums or have a format.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{openapi::document, support::House};

/// Fields that are never a plain string.
const TYPED: &[&str] = &[
    // Enums.
    "action",
    "drift",
    "family",
    "kind",
    "mode",
    "order",
    "origin",
    "outcome",
    "role",
    "stale",
    "state",
    "type",
    "view",
    "what",
    // Addresses, ranges and networks.
    "address",
    "addresses",
    "exclude",
    "gateway",
    "network",
    "prefer",
    "range",
    "ranges",
    // DNS names.
    "domain",
    "hostnames",
    "names",
    "zone",
    "zones",
    // Names of pools, VRFs, sources and providers.
    "pool",
    "pools",
    "provider",
    "seen_by",
    "source",
    "vrf",
    "vrfs",
    // Times.
    "at",
    "begun",
    "created",
    "expires",
    "failing_since",
    "last",
    "seen",
    "since",
    "started",
    "until",
    // Lengths of time.
    "cooldown",
    "cooldown_min",
    "expires_in",
    "for",
    "grace",
    "ttl",
    "wait",
    "url",
];

/// Fields with one of these names that are free text, and why.
const FREE_TEXT: &[(&str, &str)] = &[
    // A sentence.
    ("PassOutput", "outcome"),
    ("WorkloadOutput", "state"),
    // A URN.
    ("Problem", "type"),
    // A place in a file.
    ("ConfigProblem", "at"),
    // `host:port`.
    ("NodeInput", "address"),
    ("NodeOutput", "address"),
];

/// Whether a schema is text of which nothing more is said.
fn is_plain(document: &Value, schema: &Value) -> bool {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/components/schemas/")) {
        return is_plain(document, &document["components"]["schemas"][name]);
    }
    if let Some(parts) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        return parts.iter().any(|part| is_plain(document, part));
    }
    if !schema["items"].is_null() {
        return is_plain(document, &schema["items"]);
    }
    let kinds = &schema["type"];
    let is_text = kinds == "string" || kinds.as_array().is_some_and(|kinds| kinds.contains(&"string".into()));
    is_text && schema["enum"].is_null() && schema["format"].is_null()
}

#[tokio::test]
async fn no_field_that_has_a_type_of_its_own_is_a_plain_string() {
    let house = House::open().await;
    let document = document(&house).await;
    let mut plain: BTreeSet<(String, String)> = BTreeSet::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (of, schema) in document["components"]["schemas"].as_object().unwrap() {
        let parts = schema["allOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
        let fields = parts.iter().filter_map(|part| part["properties"].as_object()).flatten();
        for (field, schema) in fields.filter(|(field, _)| TYPED.contains(&field.as_str())) {
            seen.insert(field.clone());
            if is_plain(&document, schema) {
                plain.insert((of.clone(), field.clone()));
            }
        }
    }
    for (method, path, operation) in crate::openapi::operations(&document) {
        for one in operation["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "query")
        {
            let name = one["name"].as_str().unwrap();
            let enums = ["order", "stale", "state", "what"];
            seen.insert(name.to_owned());
            if enums.contains(&name) && is_plain(&document, &one["schema"]) {
                plain.insert((format!("{method} {path}"), name.to_owned()));
            }
        }
    }
    let allowed = FREE_TEXT.iter().map(|(of, field)| ((*of).to_owned(), (*field).to_owned()));
    assert_eq!(plain, allowed.collect());
    let unused: Vec<_> = TYPED.iter().filter(|field| !seen.contains(**field)).collect();
    assert!(unused.is_empty(), "no schema has {unused:?}");
}

#[tokio::test]
async fn enums_list_their_values_and_lists_have_the_format_of_their_items() {
    let house = House::open().await;
    let document = document(&house).await;
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Family"]["enum"], serde_json::json!(["ipv4", "ipv6", "mac", "prefix"]));
    assert_eq!(schemas["ReleaseOutcome"]["enum"], serde_json::json!(["released", "already gone"]));
    let pool = &schemas["PoolOutput"]["properties"];
    assert_eq!(pool["family"], serde_json::json!({"$ref": "#/components/schemas/Family"}));
    assert_eq!(
        pool["ranges"],
        serde_json::json!({"type": "array", "items": {"type": "string", "format": "range"}})
    );
    assert_eq!(pool["network"], serde_json::json!({"type": ["string", "null"], "format": "cidr"}));
}
