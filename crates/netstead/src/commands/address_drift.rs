//! Differences between claims and the addresses that sources see: `netstead get drift`, and `netstead adopt` for observed
//! addresses.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use netstead_client::{
    AddressQuery, ClaimQuery, ClientError, WorkloadQuery,
    types::{AddressOutput, AddressState, ClaimInput, ClaimOutput, WorkloadOutput},
};
use serde::Serialize;

use super::{Context, many, say};
use crate::{
    cli::{Format, adopt_and_rollback::Adopt},
    failure::{Exit, Failure},
    output::{self, Audience, Row},
};

/// One difference between a claim and what is seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct AddressDrift {
    pub(crate) pool: String,
    pub(crate) address: String,
    /// `unknown`: seen, and no claim has it. `reclaimable`: claimed, and nothing in its pool's networks shows it. `mismatch`:
    /// claimed, and something else has it.
    pub(crate) drift: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    /// When it was claimed, or first seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// Everything that has the address now.
    pub(crate) seen: Vec<String>,
    /// The key under which `adopt` claims it.
    #[serde(skip)]
    adopted_as: String,
}

impl Row for AddressDrift {
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) =
        (&["POOL", "ADDRESS", "DRIFT", "KEY", "SEEN ON"], &["OWNER", "SINCE"]);

    fn cells(&self, look: Audience) -> Vec<String> {
        vec![
            self.pool.clone(),
            self.address.clone(),
            self.drift.to_owned(),
            self.key.clone().unwrap_or_default(),
            self.seen.join(", "),
            self.owner.clone().unwrap_or_default(),
            self.since.map(|since| look.since(since)).unwrap_or_default(),
        ]
    }

    fn name(&self) -> String {
        self.address.clone()
    }
}

/// Reads everything, and compares it.
pub(crate) async fn read(context: &Context) -> anyhow::Result<Vec<AddressDrift>> {
    let addresses = context.client.all(AddressQuery::default()).await?;
    let claims = context.client.all(ClaimQuery::default()).await?;
    let workloads = context.client.all(WorkloadQuery::default()).await?;
    Ok(compare(&addresses, &claims, &workloads))
}

/// The same; nothing for a token that may not see all workloads.
pub(crate) async fn read_if_allowed(context: &Context) -> anyhow::Result<Vec<AddressDrift>> {
    match read(context).await {
        Err(error) if matches!(error.downcast_ref(), Some(ClientError::Denied { .. })) => Ok(Vec::new()),
        other => other,
    }
}

/// Compares claims with what is seen. A claim counts as unseen only in a pool of which something is seen: where no source
/// looks, nothing can be said.
fn compare(
    addresses: &[AddressOutput],
    claims: &[ClaimOutput],
    workloads: &[WorkloadOutput],
) -> Vec<AddressDrift> {
    let watched: BTreeSet<&str> = addresses
        .iter()
        .filter(|address| !address.seen_by.is_empty())
        .filter_map(|address| address.pool.as_deref())
        .collect();
    let mut having: BTreeMap<&str, Vec<&WorkloadOutput>> = BTreeMap::new();
    // The ledger is a source too: its workloads are the claims themselves.
    for workload in
        workloads.iter().filter(|workload| workload.state == "present" && workload.source != "ledger")
    {
        let own: BTreeSet<&str> =
            workload.interfaces.iter().flat_map(|one| &one.addresses).map(String::as_str).collect();
        for address in own {
            having.entry(address).or_default().push(workload);
        }
    }
    let hostnames: BTreeMap<(&str, &str), &[String]> = claims
        .iter()
        .map(|claim| ((claim.pool.as_str(), claim.key.as_str()), claim.hostnames.as_slice()))
        .collect();
    let mut found = Vec::new();
    for address in addresses {
        let Some(pool) = address.pool.as_deref() else { continue };
        let on = having.get(address.address.as_str()).map(Vec::as_slice).unwrap_or_default();
        let drift = match &address.state {
            AddressState::Observed => "unknown",
            AddressState::Held if address.seen_by.is_empty() && watched.contains(pool) => "reclaimable",
            AddressState::Held if !address.seen_by.is_empty() => {
                let key = address.key.as_deref().unwrap_or_default();
                let names = hostnames.get(&(pool, key)).copied().unwrap_or_default();
                let of_claim = |workload: &&WorkloadOutput| is_of(address, key, names, workload);
                // What is no workload says no name that could differ.
                if on.iter().all(of_claim) {
                    continue;
                }
                "mismatch"
            }
            _ => continue,
        };
        found.push(AddressDrift {
            pool: pool.to_owned(),
            address: address.address.clone(),
            drift,
            key: address.key.clone(),
            owner: address.owner.clone(),
            since: address.since,
            seen: seen(address, on),
            adopted_as: adopted_as(address, on),
        });
    }
    found
}

/// Whether the workload is the one that the claim was made for: by the workload itself, or under one of its names.
fn is_of(address: &AddressOutput, key: &str, hostnames: &[String], workload: &WorkloadOutput) -> bool {
    let own = format!("{}/{}", workload.source, workload.id);
    if key == own || key.starts_with(&format!("{own}/")) {
        return true;
    }
    if address.owner.as_deref() == Some(&format!("source/{}", workload.source)) {
        return false;
    }
    let label = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let called: BTreeSet<String> = [Some(workload.name.as_str()), workload.hostname.as_deref()]
        .into_iter()
        .flatten()
        .chain(workload.names.iter().map(String::as_str))
        .map(label)
        .collect();
    hostnames.iter().map(String::as_str).chain([key]).any(|name| called.contains(&label(name)))
}

/// Everything that has the address, for people.
fn seen(address: &AddressOutput, on: &[&WorkloadOutput]) -> Vec<String> {
    if on.is_empty() {
        let note = address.note.clone().or_else(|| address.seen_by.first().cloned());
        return note.filter(|_| !address.seen_by.is_empty()).into_iter().collect();
    }
    on.iter().map(|one| format!("{} {} of {}", one.kind, one.name, one.source)).collect()
}

/// A key that no name follows from: the workload has its names already.
fn adopted_as(address: &AddressOutput, on: &[&WorkloadOutput]) -> String {
    if let Some(workload) = on.first() {
        format!("{}/{}/{}", workload.source, workload.id, address.address)
    } else {
        let source = address.seen_by.first().map_or("seen", String::as_str);
        format!("{source}/{}", address.address)
    }
}

/// Turns one observed address, or all of them, into claims.
pub(crate) async fn adopt(context: &Context, args: &Adopt) -> anyhow::Result<Exit> {
    let mut observed = read(context).await?;
    let asked = args.address.as_ref().map(|address| address.0.as_str());
    observed.retain(|one| {
        one.drift == "unknown"
            && asked.is_none_or(|asked| one.address == asked)
            && args.pool.as_ref().is_none_or(|pool| one.pool == pool.as_str())
    });
    if let Some(asked) = asked.filter(|_| observed.is_empty()) {
        let hint =
            format!("`netstead explain {asked}` says what it is; `netstead get drift` lists what is seen");
        return Err(Failure::new(format!("{asked} is not seen in a pool without a claim")).hint(hint).into());
    }
    let (mut claims, mut failed) = (Vec::new(), 0_usize);
    for one in observed.iter().filter(|_| !args.dry) {
        let claim = ClaimInput {
            address: Some(one.address.clone()),
            description: one.seen.first().map(|seen| format!("seen on {seen}")),
            adopt: true,
            ..ClaimInput::default()
        };
        // One that another process took meanwhile stops no other.
        match context.client.claim(&one.pool, &one.adopted_as, &claim).await {
            Ok((claim, _)) => claims.push(claim),
            Err(error) => {
                failed += 1;
                say!("error: {}: {error}", one.address);
            }
        }
    }
    match (args.dry, context.format) {
        (true, format) => output::list(&observed, format, context.now())?,
        (false, Some(format @ (Format::Json | Format::Yaml))) => output::document(&claims, format)?,
        (false, format) => output::list(&claims, format, context.now())?,
    }
    let (count, what) =
        if args.dry { (observed.len(), "would be claimed") } else { (claims.len(), "claimed") };
    say!("{} {what}", if count == 1 { "1 address".to_owned() } else { format!("{count} addresses") });
    if failed > 0 {
        say!("{} not claimed", many(failed, "observation"));
    }
    Ok(if failed == 0 { Exit::Fine } else { Exit::Error })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_unknown_reclaimable_and_mismatched_is_told_and_nothing_where_no_source_looks() {
        let addresses: Vec<AddressOutput> = serde_json::from_value(json!([
            { "address": "10.0.3.1", "vrf": "default", "pool": "lan", "state": "gateway" },
            { "address": "10.0.3.10", "vrf": "default", "pool": "lan", "state": "observed", "seen_by": ["pve"] },
            { "address": "10.0.3.11", "vrf": "default", "pool": "lan", "state": "held", "key": "web", "owner": "alice",
              "seen_by": ["pve"] },
            { "address": "10.0.3.12", "vrf": "default", "pool": "lan", "state": "held", "key": "db", "owner": "alice",
              "seen_by": ["pve"] },
            { "address": "10.0.3.13", "vrf": "default", "pool": "lan", "state": "held", "key": "old", "owner": "alice" },
            { "address": "10.0.3.14", "vrf": "default", "pool": "lan", "state": "observed", "seen_by": ["scan"],
              "note": "answers pings" },
            { "address": "10.0.3.15", "vrf": "default", "pool": "lan", "state": "held", "key": "c-7", "owner": "ci",
              "seen_by": ["pve"] },
            { "address": "10.0.9.10", "vrf": "default", "pool": "far", "state": "held", "key": "x", "owner": "alice" },
        ]))
        .unwrap();
        let workload = |id: &str, name: &str, address: &str| {
            json!({ "source": "pve", "id": id, "kind": "vm", "name": name, "state": "present",
                    "interfaces": [{ "addresses": [address] }] })
        };
        let workloads: Vec<WorkloadOutput> = serde_json::from_value(json!([
            workload("100/a", "new", "10.0.3.10"),
            workload("101/a", "web", "10.0.3.11"),
            workload("102/a", "cache", "10.0.3.12"),
            workload("103/a", "ci-runner", "10.0.3.15"),
        ]))
        .unwrap();
        let claims: Vec<ClaimOutput> = serde_json::from_value(json!([
            { "pool": "lan", "vrf": "default", "key": "c-7", "state": "bound", "family": "ipv4", "owner": "ci", "since": "2026-01-01T00:00:00Z",
              "hostnames": ["ci-runner.lab.test"] },
        ]))
        .unwrap();
        let told = |one: &AddressDrift| {
            let AddressDrift { address, drift, seen, adopted_as, .. } = one;
            format!("{address} {drift} [{}] {adopted_as}", seen.join(", "))
        };
        let found: Vec<String> = compare(&addresses, &claims, &workloads).iter().map(told).collect();
        assert_eq!(
            found,
            [
                "10.0.3.10 unknown [vm new of pve] pve/100/a/10.0.3.10",
                "10.0.3.12 mismatch [vm cache of pve] pve/102/a/10.0.3.12",
                "10.0.3.13 reclaimable [] seen/10.0.3.13",
                "10.0.3.14 unknown [answers pings] scan/10.0.3.14",
            ]
        );
    }
}
