//! The dynamic targets that a Docker source or a label asks for.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use netstead_model::Address;

use crate::{
    dialects::TargetSpec,
    dynamic_target::{DynamicTarget, TargetResolver},
};

/// The places that were asked for, and their addresses or why they have none.
pub(super) type ResolvedTargets = BTreeMap<DynamicTarget, Result<Vec<Address>, String>>;

/// The most places the labels of one host can ask for.
const MOST: usize = 32;

/// Resolves the targets that labels ask for.
pub(super) async fn resolve(
    places: Option<&dyn TargetResolver>,
    target: &TargetSpec,
    labels: impl Iterator<Item = &BTreeMap<String, String>>,
) -> ResolvedTargets {
    let mut found = ResolvedTargets::new();
    let Some(places) = places else { return found };
    for place in wanted(target, labels) {
        let at = places.addresses_of(&place).await;
        let at = at.map(|ips| ips.into_iter().map(|ip: IpAddr| Address::from(ip)).collect());
        found.insert(place, at);
    }
    found
}

/// Every label that says where a name points ends alike, whatever its dialect.
fn wanted<'a>(
    target: &TargetSpec,
    labels: impl Iterator<Item = &'a BTreeMap<String, String>>,
) -> BTreeSet<DynamicTarget> {
    let mut wanted: BTreeSet<DynamicTarget> = target.to_dynamic().into_iter().collect();
    for (label, value) in labels.flatten() {
        let value = value.trim();
        if label.ends_with("target")
            && wanted.len() < MOST
            && (value == "public" || value.starts_with("interface:"))
        {
            wanted.extend(value.parse::<TargetSpec>().ok().and_then(|target| target.to_dynamic()));
        }
    }
    wanted
}
