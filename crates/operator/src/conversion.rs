//! Conversion of address pools between v1alpha1 and v1alpha2, as the in-cluster provider does it.
//!
//! v1alpha1 has `subnet`, `start` and `end` beside `addresses`; v1alpha2 has only `addresses`, and fields that v1alpha1 lacks.
//! Fields that the other version lacks are kept in annotations, so that an object is the same after both conversions: the old
//! fields in the annotation of Cluster API that the in-cluster provider uses too, the new ones in an annotation of ours.

use netstead_model::{Address, Cidr};
use serde_json::{Map, Value, json};

use crate::{
    PoolKind, cel,
    in_cluster::{FieldError, address},
    kinds::GROUP,
};

/// The version that old clusters have stored.
const OLD: &str = "v1alpha1";
const NEW: &str = "v1alpha2";
/// The annotation of a v1alpha2 object with its v1alpha1 form.
const OLD_FORM: &str = "cluster.x-k8s.io/conversion-data";
/// The annotation of a v1alpha1 object with the fields that only v1alpha2 has.
const NEW_FIELDS: &str = "ipam.netstead.io/v1alpha2-fields";
/// The fields of both versions.
const COMMON: [&str; 3] = ["addresses", "prefix", "gateway"];
/// The fields of v1alpha1 alone.
const RANGE: [&str; 3] = ["subnet", "start", "end"];

/// Why an object cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConversionError {
    #[error("{name}: {error}")]
    Field { name: String, error: FieldError },
    #[error("{name}: the annotation {NEW_FIELDS} holds no JSON object; remove it, or mend it")]
    Annotation { name: String },
    #[error("there is no conversion from {from} to {to}")]
    Version { from: String, to: String },
}

/// Whether pools of the kind exist as v1alpha1 too.
pub(crate) const fn has_old_version(kind: PoolKind) -> bool {
    matches!(kind, PoolKind::InClusterIpPool | PoolKind::GlobalInClusterIpPool)
}

/// Converts an object to the version `wanted`, such as `ipam.cluster.x-k8s.io/v1alpha2`.
pub(crate) fn convert(mut object: Value, wanted: &str) -> Result<Value, ConversionError> {
    let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    let version =
        |text: &str| text.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix('/')).map(str::to_owned);
    match (version(&from).as_deref(), version(wanted).as_deref()) {
        (Some(OLD), Some(OLD)) | (Some(NEW), Some(NEW)) => return Ok(object),
        (Some(OLD), Some(NEW)) => to_new(&mut object)?,
        (Some(NEW), Some(OLD)) => to_old(&mut object),
        _ => return Err(ConversionError::Version { from, to: wanted.to_owned() }),
    }
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), Value::from(wanted));
    }
    Ok(object)
}

fn to_new(object: &mut Value) -> Result<(), ConversionError> {
    let name = name(object);
    let old = take_spec(object);
    let mut new = new_spec(&old).map_err(|error| ConversionError::Field { name: name.clone(), error })?;
    if let Some(text) = take_annotation(object, NEW_FIELDS) {
        let fields: Map<String, Value> =
            serde_json::from_str(&text).map_err(|_| ConversionError::Annotation { name })?;
        new.extend(fields.into_iter().filter(|(field, _)| !is_old(field)));
    }
    take_annotation(object, OLD_FORM);
    if RANGE.iter().any(|field| old.contains_key(*field)) {
        annotate(object, OLD_FORM, &json!({ "spec": old }));
    }
    put_spec(object, new);
    Ok(())
}

fn to_old(object: &mut Value) {
    let mut spec = take_spec(object);
    let rest: Map<String, Value> = spec
        .iter()
        .filter(|(field, _)| !is_old(field))
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    spec.retain(|field, _| is_old(field));
    // The old form holds as long as the pool still means the same.
    let kept = take_annotation(object, OLD_FORM).and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let kept = kept.and_then(|form| form.get("spec").and_then(Value::as_object).cloned());
    if let Some(mut kept) = kept
        && new_spec(&kept)
            .is_ok_and(|new| COMMON.iter().all(|field| means(&new, field) == means(&spec, field)))
    {
        kept.retain(|field, _| is_old(field));
        spec = kept;
    }
    take_annotation(object, NEW_FIELDS);
    if !rest.is_empty() {
        annotate(object, NEW_FIELDS, &Value::Object(rest));
    }
    put_spec(object, spec);
}

/// The v1alpha2 fields that a v1alpha1 spec means.
fn new_spec(old: &Map<String, Value>) -> Result<Map<String, Value>, FieldError> {
    let text = |field: &str| old.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut addresses = match old.get("addresses") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(addresses)) => addresses.clone(),
        Some(other) => return Err(invalid("spec.addresses", &other.to_string(), "it is no list")),
    };
    let mut prefix = old.get("prefix").cloned().unwrap_or_else(|| json!(0));
    let (mut start, mut end) = (text("start").to_owned(), text("end").to_owned());
    let subnet = text("subnet");
    if !subnet.is_empty() {
        let (first, last, length) =
            ends(subnet).map_err(|problem| invalid("spec.subnet", subnet, &problem))?;
        if start.is_empty() {
            start = first.to_string();
        }
        if end.is_empty() {
            end = last.to_string();
        }
        if prefix.as_i64().unwrap_or_default() == 0 {
            prefix = json!(length);
        }
    }
    if !start.is_empty() && !end.is_empty() {
        addresses.push(Value::from(format!("{start}-{end}")));
    }
    let mut new = Map::new();
    new.insert("addresses".to_owned(), Value::Array(addresses));
    new.insert("prefix".to_owned(), prefix);
    if let Some(gateway) = old.get("gateway") {
        new.insert("gateway".to_owned(), gateway.clone());
    }
    Ok(new)
}

/// The second and the last but one address of a network, and its length.
fn ends(subnet: &str) -> Result<(Address, Address, u8), String> {
    let (base, length) =
        subnet.split_once('/').ok_or_else(|| "it is no network; write `10.0.0.0/24`".to_owned())?;
    let length: u8 =
        length.parse().map_err(|_| "the length behind `/` is no number from 0 to 128".to_owned())?;
    let block =
        Cidr::containing(address(base)?, length).map_err(|_| format!("the length {length} is too long"))?;
    let narrow = || "it has no address between its first and its last; set `start` and `end`".to_owned();
    let first = block.first().succ().ok_or_else(narrow)?;
    let last = block.last().pred().ok_or_else(narrow)?;
    Ok((first, last, length))
}

/// The value of a common field; one that is left out means the same as an empty one.
fn means(spec: &Map<String, Value>, field: &str) -> Value {
    let empty = |value: &Value| {
        value.is_null()
            || *value == json!(0)
            || *value == json!("")
            || value.as_array().is_some_and(Vec::is_empty)
    };
    spec.get(field).filter(|value| !empty(value)).cloned().unwrap_or_default()
}

fn is_old(field: &str) -> bool {
    COMMON.contains(&field) || RANGE.contains(&field)
}

fn invalid(field: &'static str, value: &str, problem: &str) -> FieldError {
    FieldError { field, value: value.to_owned(), problem: problem.to_owned() }
}

fn name(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}", text("/kind"), text("/metadata/name"))
}

fn take_spec(object: &mut Value) -> Map<String, Value> {
    match object.get_mut("spec").map(Value::take) {
        Some(Value::Object(spec)) => spec,
        _ => Map::new(),
    }
}

fn put_spec(object: &mut Value, spec: Map<String, Value>) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("spec".to_owned(), Value::Object(spec));
    }
}

fn take_annotation(object: &mut Value, name: &str) -> Option<String> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let value = annotations.remove(name);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    value.and_then(|value| value.as_str().map(str::to_owned))
}

fn annotate(object: &mut Value, name: &str, value: &Value) {
    let Some(fields) = object.as_object_mut() else { return };
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(name.to_owned(), Value::from(value.to_string()));
    }
}

/// Adds v1alpha1 to the definition of a kind that has it, with the conversion by the webhook.
///
/// Without the conversion the API server would read old pools without their `subnet`, `start` and `end`, and the next write would
/// lose these; so a pool that is stored as v1alpha1 is an error until the webhook answers.
pub(crate) fn serve_old_version(definition: &mut Value) {
    let Some(mut old) = definition.pointer("/spec/versions/0").cloned() else { return };
    let text = |description: &str| json!({ "description": description, "type": "string", "maxLength": cel::LONGEST_ENTRY });
    let spec = json!({
        "type": "object",
        "properties": {
            "addresses": {
                "description": "Single addresses, networks and ranges; not together with `subnet`, `start` and `end`.",
                "type": "array",
                "maxItems": cel::MOST_ENTRIES,
                "items": { "type": "string", "maxLength": cel::LONGEST_ENTRY },
            },
            "subnet": text("The network of the pool, such as `10.0.0.0/24`."),
            "start": text("The first address that is given out; the second of `subnet` if unset."),
            "end": text("The last address that is given out; the last but one of `subnet` if unset."),
            "prefix": {
                "description": "The length of the network that the addresses are in; that of `subnet` if unset.",
                "type": "integer", "minimum": 0, "maximum": 128,
            },
            "gateway": text("The gateway of the network. It is never given out."),
        },
    });
    if let Some(place) = old.pointer_mut("/schema/openAPIV3Schema/properties/spec") {
        *place = spec;
    }
    if let Some(fields) = old.as_object_mut() {
        fields.insert("name".to_owned(), Value::from(OLD));
        fields.insert("storage".to_owned(), Value::Bool(false));
    }
    if let Some(columns) = old.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut) {
        let range = [("Subnet", "subnet"), ("First", "start"), ("Last", "end")];
        let range = range.map(
            |(name, field)| json!({ "name": name, "type": "string", "jsonPath": format!(".spec.{field}") }),
        );
        let behind = columns.len().min(1);
        columns.splice(behind..behind, range);
    }
    if let Some(versions) = definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        versions.push(old);
    }
    let service = json!({
        "namespace": crate::admission::NAMESPACE, "name": crate::admission::SERVICE, "path": "/convert", "port": 443,
    });
    if let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) {
        let webhook = json!({ "conversionReviewVersions": ["v1"], "clientConfig": { "service": service } });
        spec.insert("conversion".to_owned(), json!({ "strategy": "Webhook", "webhook": webhook }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn object(version: &str, spec: &Value) -> Value {
        json!({ "apiVersion": format!("{GROUP}/{version}"), "kind": "InClusterIPPool",
            "metadata": { "name": "lan", "namespace": "shop", "labels": { "a": "b" } }, "spec": spec })
    }

    fn to(version: &str, object: &Value) -> Result<Value, ConversionError> {
        convert(object.clone(), &format!("{GROUP}/{version}"))
    }

    #[test]
    fn the_old_fields_become_addresses() {
        let cases = [
            (json!({ "addresses": ["10.0.0.9"], "prefix": 24 }), json!(["10.0.0.9"]), 24),
            (json!({ "subnet": "10.0.0.0/24" }), json!(["10.0.0.1-10.0.0.254"]), 24),
            (json!({ "subnet": "10.0.0.77/24", "start": "10.0.0.10" }), json!(["10.0.0.10-10.0.0.254"]), 24),
            (
                json!({ "subnet": "10.0.0.0/24", "end": "10.0.0.10", "prefix": 16 }),
                json!(["10.0.0.1-10.0.0.10"]),
                16,
            ),
            (
                json!({ "start": "10.0.0.1", "end": "10.0.0.9", "prefix": 24 }),
                json!(["10.0.0.1-10.0.0.9"]),
                24,
            ),
            (json!({ "start": "10.0.0.1", "prefix": 24 }), json!([]), 24),
            (json!({ "subnet": "fd00::/120" }), json!(["fd00::1-fd00::fe"]), 120),
            (
                json!({ "addresses": ["10.0.0.9"], "start": "10.0.0.1", "end": "10.0.0.2", "prefix": 24 }),
                json!(["10.0.0.9", "10.0.0.1-10.0.0.2"]),
                24,
            ),
        ];
        for (old, addresses, prefix) in cases {
            let new = to(NEW, &object(OLD, &old)).unwrap();
            assert_eq!(
                (&new["spec"]["addresses"], &new["spec"]["prefix"]),
                (&addresses, &json!(prefix)),
                "{old}"
            );
            assert_eq!(new["apiVersion"], "ipam.cluster.x-k8s.io/v1alpha2");
            for field in RANGE {
                assert_eq!(new["spec"].get(field), None, "{old}");
            }
        }
    }

    #[test]
    fn a_subnet_that_cannot_be_read_is_named() {
        for subnet in ["10.0.0.0", "10.0.0.0/33", "the net", "10.0.0/24", "255.255.255.255/32"] {
            let error = to(NEW, &object(OLD, &json!({ "subnet": subnet }))).unwrap_err().to_string();
            let wanted = format!("InClusterIPPool lan: spec.subnet: Invalid value: \"{subnet}\": ");
            assert!(error.starts_with(&wanted), "{error}");
        }
        let broken = json!({ "apiVersion": format!("{GROUP}/{OLD}"), "kind": "InClusterIPPool",
            "metadata": { "name": "lan", "annotations": { NEW_FIELDS: "[" } }, "spec": { "addresses": [] } });
        assert!(to(NEW, &broken).unwrap_err().to_string().contains(NEW_FIELDS));
        assert!(to("v1beta1", &object(OLD, &json!({}))).is_err());
    }

    /// The in-cluster provider keeps the whole object in the annotation, in Go's order of fields.
    #[test]
    fn the_old_form_that_the_in_cluster_provider_kept_is_used() {
        let kept = r#"{"spec":{"end":"10.0.0.20","prefix":24,"start":"10.0.0.10","subnet":"10.0.0.0/24"},"status":{}}"#;
        let mut new =
            object(NEW, &json!({ "addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24, "gateway": "" }));
        new["metadata"]["annotations"] = json!({ OLD_FORM: kept });
        let old = to(OLD, &new).unwrap();
        let wanted =
            json!({ "subnet": "10.0.0.0/24", "start": "10.0.0.10", "end": "10.0.0.20", "prefix": 24 });
        assert_eq!(old["spec"], wanted);
        assert_eq!(old["metadata"].get("annotations"), None);
        // A pool that was changed as v1alpha2 since means something else.
        new["spec"]["addresses"] = json!(["10.0.0.10-10.0.0.30"]);
        assert_eq!(to(OLD, &new).unwrap()["spec"], new["spec"]);
    }

    fn text(of: &[&'static str]) -> BoxedStrategy<Option<&'static str>> {
        proptest::option::of(proptest::sample::select(of.to_vec())).boxed()
    }

    fn spec(fields: Vec<(&str, Option<Value>)>) -> Value {
        fields
            .into_iter()
            .filter_map(|(field, value)| Some((field.to_owned(), value?)))
            .collect::<Map<_, _>>()
            .into()
    }

    const ENTRIES: [&str; 4] = ["10.0.0.5", "10.0.0.16/28", "10.0.0.40-10.0.0.50", "fd00::1-fd00::9"];

    fn entries() -> BoxedStrategy<Option<Vec<&'static str>>> {
        proptest::option::of(proptest::collection::vec(proptest::sample::select(ENTRIES.to_vec()), 0..4))
            .boxed()
    }

    proptest! {
        #[test]
        fn an_old_pool_comes_back_as_it_was(
            addresses in entries(), subnet in text(&["10.0.0.0/24", "10.0.0.9/20", "fd00::/64", ""]),
            start in text(&["10.0.0.2", "fd00::2", ""]), end in text(&["10.0.0.100", ""]),
            prefix in proptest::option::of(0..129), gateway in text(&["10.0.0.1", ""]),
        ) {
            let old = object(OLD, &spec(vec![
                ("addresses", addresses.map(|list| json!(list))), ("subnet", subnet.map(|text| json!(text))),
                ("start", start.map(|text| json!(text))), ("end", end.map(|text| json!(text))),
                ("prefix", prefix.map(|number| json!(number))), ("gateway", gateway.map(|text| json!(text))),
            ]));
            let new = to(NEW, &old).unwrap();
            let back = to(OLD, &new).unwrap();
            if RANGE.iter().any(|field| old["spec"].get(field).is_some()) {
                prop_assert_eq!(&back, &old);
            } else {
                // v1alpha2 needs both of these.
                let mut wanted = old.clone();
                for (field, empty) in [("addresses", json!([])), ("prefix", json!(0))] {
                    wanted["spec"].as_object_mut().unwrap().entry(field).or_insert(empty);
                }
                prop_assert_eq!(&back, &wanted);
            }
            prop_assert_eq!(to(NEW, &back).unwrap(), new);
        }

        #[test]
        fn a_new_pool_comes_back_as_it_was(
            addresses in entries(), prefix in 0..129, gateway in text(&["10.0.0.1", ""]), excluded in entries(),
            reserved in proptest::option::of(any::<bool>()), grace in proptest::option::of(0..1000),
        ) {
            let mut new = object(NEW, &spec(vec![
                ("addresses", Some(json!(addresses.unwrap_or_default()))), ("prefix", Some(json!(prefix))),
                ("gateway", gateway.map(|text| json!(text))), ("excludedAddresses", excluded.map(|list| json!(list))),
                ("allocateReservedIPAddresses", reserved.map(|flag| json!(flag))),
                ("addressReuseGracePeriodSeconds", grace.map(|number| json!(number))),
            ]));
            new["status"] = json!({ "ipAddresses": { "total": 7 }, "conditions": [{ "type": "Ready" }] });
            let old = to(OLD, &new).unwrap();
            for field in old["spec"].as_object().unwrap().keys() {
                prop_assert!(is_old(field));
            }
            prop_assert_eq!(&to(NEW, &old).unwrap(), &new);
        }
    }
}
