//! The verdicts on pools: those of the in-cluster provider's webhooks. Pure.
//!
//! Two things differ, so that no object gets stuck: an update that leaves the spec as it is always passes, because finalizers and
//! annotations must change also on a pool that was stored before any webhook ran; and a pool that `clusterctl move` removes may go.

use netstead_model::Address;
use serde_json::Value;

use super::review::{Operation, Request};
use crate::{
    PoolKind,
    in_cluster::{AddressSpace, FieldError, InClusterSpec, PrefixSpec},
    interval_set::IntervalSet,
    kinds::GROUP,
    object::{DELETE_FOR_MOVE, ObjectName, PoolKey, PoolObject},
};

/// The annotation with which a pool may be deleted although addresses of it are held.
const SKIP_DELETE: &str = "ipam.cluster.x-k8s.io/skip-validate-delete-webhook";
/// More ranges than these are only counted in a message.
const MOST_RANGES: usize = 20;

/// The addresses of a pool that objects hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// All objects, also those whose address cannot be read.
    pub(crate) count: usize,
    pub(crate) addresses: Vec<Address>,
}

/// Why a request is refused, as the API server answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// The fields that are wrong.
    pub(crate) causes: Vec<FieldError>,
}

impl Refusal {
    fn bad_request(message: impl Into<String>) -> Self {
        Self { code: 400, reason: "BadRequest", message: message.into(), causes: Vec::new() }
    }

    fn invalid(kind: PoolKind, name: &str, causes: Vec<FieldError>) -> Self {
        let texts: Vec<String> = causes.iter().map(ToString::to_string).collect();
        let text = if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
        let message = format!("{kind}.{GROUP} \"{name}\" is invalid: {text}");
        Self { code: 422, reason: "Invalid", message, causes }
    }

    /// The operator does not know yet what is held.
    pub(crate) fn not_listed() -> Self {
        let message = "the operator has not listed all addresses yet; try again in a few seconds".to_owned();
        Self { code: 503, reason: "ServiceUnavailable", message, causes: Vec::new() }
    }
}

/// The warnings for a request that is allowed, or why it is refused. `held` says which addresses of a pool are held.
pub(crate) fn judge(
    request: &Request,
    held: impl FnOnce(&PoolKey) -> Result<Held, Refusal>,
) -> Result<Vec<String>, Refusal> {
    let Some(kind) = PoolKind::of_reference(&request.kind.group, &request.kind.kind) else {
        return Ok(Vec::new());
    };
    if kind.is_external() {
        return Ok(Vec::new());
    }
    let namespace = if kind.is_namespaced() { request.namespace.as_str() } else { "" };
    let key = PoolKey { kind, name: ObjectName::new(namespace, &request.name) };
    let (new, old) = (request.object.as_ref(), request.old_object.as_ref());
    match request.operation {
        Operation::Create => {
            let spec = &new.ok_or_else(|| Refusal::bad_request("the review has no object"))?.spec;
            let warnings = warnings(kind, spec);
            space(kind, spec).map_err(|causes| Refusal::invalid(kind, request.shown_name(), causes))?;
            Ok(warnings)
        }
        Operation::Update => {
            let (Some(new), Some(old)) = (new, old) else {
                return Err(Refusal::bad_request("the review lacks an object"));
            };
            if new.spec == old.spec {
                return Ok(Vec::new());
            }
            let space = space(kind, &new.spec);
            let space = space.map_err(|causes| Refusal::invalid(kind, request.shown_name(), causes))?;
            if kind.is_of_prefixes() && length(&new.spec) != length(&old.spec) {
                return Err(Refusal::bad_request("spec.allocationPrefixLength is immutable"));
            }
            let outside = outside(&space, &held(&key)?.addresses);
            if !outside.is_empty() {
                return Err(Refusal::bad_request(format!(
                    "pool addresses does not contain allocated addresses: [{outside}]; keep them in the pool until their claims are \
                     deleted"
                )));
            }
            Ok(warnings(kind, &new.spec))
        }
        Operation::Delete => {
            let may_go = |pool: &PoolObject| {
                [SKIP_DELETE, DELETE_FOR_MOVE].iter().any(|one| pool.metadata.annotations.contains_key(*one))
            };
            if old.is_some_and(may_go) || held(&key)?.count == 0 {
                return Ok(Vec::new());
            }
            Err(Refusal::bad_request(
                "Pool has IPAddresses allocated. Cannot delete Pool until all IPAddresses have been removed.",
            ))
        }
        Operation::Other => Ok(Vec::new()),
    }
}

/// The spec with its defaults, if it lacks one: only prefix pools have any.
pub(crate) fn default_length(request: &Request) -> Option<i64> {
    let kind = PoolKind::of_reference(&request.kind.group, &request.kind.kind)?;
    let spec = &request.object.as_ref()?.spec;
    let given = spec.get("allocationPrefixLength").is_some_and(|length| !length.is_null() && *length != 0);
    (kind.is_of_prefixes() && spec.is_object() && !given).then_some(PrefixSpec::DEFAULT_LENGTH)
}

/// Reads what a spec gives out.
fn space(kind: PoolKind, spec: &Value) -> Result<AddressSpace, Vec<FieldError>> {
    let unreadable = |error: serde_json::Error| {
        vec![FieldError { field: "spec", value: spec.to_string(), problem: error.to_string() }]
    };
    if kind.is_of_prefixes() {
        let spec: PrefixSpec = serde_json::from_value(spec.clone()).map_err(unreadable)?;
        return AddressSpace::of_prefixes(&spec);
    }
    let spec: InClusterSpec = serde_json::from_value(spec.clone()).map_err(unreadable)?;
    AddressSpace::of_addresses(&spec)
}

fn length(spec: &Value) -> i64 {
    let length = spec.get("allocationPrefixLength").and_then(Value::as_i64);
    length.filter(|length| *length != 0).unwrap_or(PrefixSpec::DEFAULT_LENGTH)
}

/// Warnings about what is odd and allowed.
fn warnings(kind: PoolKind, spec: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if !kind.is_of_prefixes() || length(spec) != 128 {
        return warnings;
    }
    warnings.push(
        "spec.allocationPrefixLength=128 behaves like host-address allocation; consider InClusterIPPool for single-address semantics"
            .to_owned(),
    );
    let spec: PrefixSpec = serde_json::from_value(spec.clone()).unwrap_or_default();
    let whole = AddressSpace::of_prefixes(&PrefixSpec { excluded_prefixes: Vec::new(), ..spec });
    if whole.is_ok_and(|space| space.gateway().is_some_and(|gateway| space.contains(gateway))) {
        warnings.push(
            "spec.gateway is within spec.prefixes and is not reserved; with /128 allocationPrefixLength it may also be allocated to \
             claims"
                .to_owned(),
        );
    }
    warnings
}

/// The ranges of held addresses that a pool would not have any more; empty if there are none.
fn outside(space: &AddressSpace, held: &[Address]) -> String {
    let outside: Vec<Address> = held.iter().filter(|address| !space.contains(**address)).copied().collect();
    let mut ranges = Vec::new();
    for kind in [netstead_model::Kind::V4, netstead_model::Kind::V6] {
        let mut numbers = IntervalSet::default();
        for address in outside.iter().filter(|address| address.kind() == kind) {
            numbers.insert(address.number(), address.number());
        }
        let text =
            |number| Address::new(kind, number).map_or_else(String::new, |address| address.to_string());
        ranges.extend(numbers.intervals().map(|(first, last)| format!("{}-{}", text(first), text(last))));
    }
    let more = ranges.len().saturating_sub(MOST_RANGES);
    ranges.truncate(MOST_RANGES);
    let text = ranges.join(" ");
    if more > 0 { format!("{text} and {more} more ranges") } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(operation: &str, kind: &str, new: &Value, old: &Value) -> Request {
        serde_json::from_value(json!({
            "uid": "1", "kind": { "group": GROUP, "version": "v1alpha2", "kind": kind }, "name": "lan", "namespace": "shop",
            "operation": operation, "object": new, "oldObject": old,
        }))
        .unwrap()
    }

    fn pool(spec: &Value) -> Value {
        json!({ "metadata": { "name": "lan", "namespace": "shop" }, "spec": spec })
    }

    fn held(addresses: &[&str]) -> Held {
        let addresses: Vec<Address> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        Held { count: addresses.len(), addresses }
    }

    /// `ok` with the number of warnings, or code and message.
    fn said(request: &Request, of: &[&str]) -> String {
        match judge(request, |_| Ok(held(of))) {
            Ok(warnings) => format!("ok {}", warnings.len()),
            Err(refusal) => format!("{} {} {}", refusal.code, refusal.reason, refusal.message),
        }
    }

    #[test]
    fn an_update_never_leaves_a_held_address_outside() {
        let base =
            json!({ "addresses": ["10.0.0.0-10.0.0.20"], "prefix": 24, "allocateReservedIPAddresses": true });
        let with = |field: &str, value: Value| {
            let mut spec = base.clone();
            spec[field] = value;
            spec
        };
        let of = ["10.0.0.0", "10.0.0.10", "10.0.0.11", "10.0.0.20"];
        let lost = |ranges: &str| {
            format!(
                "400 BadRequest pool addresses does not contain allocated addresses: [{ranges}]; keep them"
            )
        };
        let cases = [
            (base.clone(), "ok 0".to_owned()),
            (with("addresses", json!(["10.0.0.0-10.0.0.30"])), "ok 0".to_owned()),
            (
                with("addresses", json!(["10.0.0.0-10.0.0.9"])),
                lost("10.0.0.10-10.0.0.11 10.0.0.20-10.0.0.20"),
            ),
            (with("excludedAddresses", json!(["10.0.0.11"])), lost("10.0.0.11-10.0.0.11")),
            (with("gateway", json!("10.0.0.10")), lost("10.0.0.10-10.0.0.10")),
            (with("gateway", json!("10.0.0.15")), "ok 0".to_owned()),
            (with("allocateReservedIPAddresses", json!(false)), lost("10.0.0.0-10.0.0.0")),
        ];
        for kind in ["InClusterIPPool", "GlobalInClusterIPPool"] {
            for (spec, wanted) in &cases {
                let request = request("UPDATE", kind, &pool(spec), &pool(&base));
                let said = said(&request, &of);
                assert!(said.starts_with(wanted.as_str()), "{spec}: {said}");
            }
        }
    }

    #[test]
    fn a_spec_that_stays_passes_whatever_it_says() {
        let wrong = json!({ "addresses": ["10.0.0.9-10.0.0.1"], "prefix": 24 });
        let same = request("UPDATE", "InClusterIPPool", &pool(&wrong), &pool(&wrong));
        assert_eq!(said(&same, &["10.0.0.77"]), "ok 0");
        let changed = json!({ "addresses": ["10.0.0.9-10.0.0.2"], "prefix": 24 });
        let said = said(&request("UPDATE", "InClusterIPPool", &pool(&changed), &pool(&wrong)), &[]);
        let wanted = "422 Invalid InClusterIPPool.ipam.cluster.x-k8s.io \"lan\" is invalid: spec.addresses: Invalid value: \
                      \"10.0.0.9-10.0.0.2\": ";
        assert!(said.starts_with(wanted), "{said}");
    }

    #[test]
    fn a_pool_in_use_is_not_deleted_unless_it_says_so() {
        let refused = "400 BadRequest Pool has IPAddresses allocated. Cannot delete Pool until all IPAddresses have been removed.";
        for (kind, spec) in [
            ("InClusterIPPool", json!({ "addresses": ["no address at all"] })),
            ("GlobalInClusterPrefixPool", json!({ "prefixes": ["10.0.0.0/8"] })),
        ] {
            let deletion = |annotations: Value| {
                let mut old = pool(&spec);
                old["metadata"]["annotations"] = annotations;
                request("DELETE", kind, &Value::Null, &old)
            };
            assert_eq!(said(&deletion(json!({})), &["10.0.0.1"]), refused);
            assert_eq!(said(&deletion(json!({})), &[]), "ok 0");
            assert_eq!(said(&deletion(json!({ SKIP_DELETE: "" })), &["10.0.0.1"]), "ok 0");
            assert_eq!(said(&deletion(json!({ DELETE_FOR_MOVE: "" })), &["10.0.0.1"]), "ok 0");
        }
    }

    #[test]
    fn what_is_held_is_asked_only_where_it_matters() {
        let good = pool(&json!({ "addresses": ["10.0.0.1"], "prefix": 24 }));
        let ask = |request: &Request| judge(request, |_| Err(Refusal::not_listed()));
        assert_eq!(ask(&request("CREATE", "InClusterIPPool", &good, &Value::Null)), Ok(Vec::new()));
        assert_eq!(ask(&request("UPDATE", "InClusterIPPool", &good, &good)), Ok(Vec::new()));
        let refused = ask(&request("DELETE", "InClusterIPPool", &Value::Null, &good)).unwrap_err();
        assert_eq!((refused.code, refused.reason), (503, "ServiceUnavailable"));
    }

    #[test]
    fn prefix_pools_keep_their_length_and_warn_of_single_addresses() {
        let base = json!({ "prefixes": ["fd00::/56"], "allocationPrefixLength": 64 });
        let update = |spec: Value| request("UPDATE", "InClusterPrefixPool", &pool(&spec), &pool(&base));
        assert_eq!(
            said(&update(json!({ "prefixes": ["fd00::/56"], "allocationPrefixLength": 60 })), &[]),
            "400 BadRequest spec.allocationPrefixLength is immutable"
        );
        assert_eq!(said(&update(json!({ "prefixes": ["fd00::/56"] })), &["fd00:0:0:1::"]), "ok 0");
        let fewer = json!({ "prefixes": ["fd00::/56"], "excludedPrefixes": ["fd00:0:0:1::7"] });
        assert!(said(&update(fewer), &["fd00:0:0:1::"]).contains("[fd00:0:0:1::-fd00:0:0:1::]"));
        let create = |spec: Value| request("CREATE", "GlobalInClusterPrefixPool", &pool(&spec), &Value::Null);
        let single = |gateway: &str| json!({ "prefixes": ["fd00::/120"], "allocationPrefixLength": 128, "gateway": gateway, "excludedPrefixes": ["fd00::1"] });
        assert_eq!(said(&create(single("")), &[]), "ok 1");
        assert_eq!(said(&create(single("fd01::1")), &[]), "ok 1");
        assert_eq!(said(&create(single("fd00::1")), &[]), "ok 2");
    }

    #[test]
    fn only_the_length_of_prefixes_has_a_default() {
        let default =
            |kind: &str, spec: Value| default_length(&request("CREATE", kind, &pool(&spec), &Value::Null));
        assert_eq!(default("InClusterPrefixPool", json!({ "prefixes": [] })), Some(64));
        assert_eq!(default("InClusterPrefixPool", json!({ "allocationPrefixLength": 0 })), Some(64));
        assert_eq!(default("InClusterPrefixPool", json!({ "allocationPrefixLength": null })), Some(64));
        assert_eq!(default("InClusterPrefixPool", json!({ "allocationPrefixLength": 60 })), None);
        assert_eq!(default("InClusterIPPool", json!({ "addresses": [] })), None);
    }
}
