//! Pools.

use netstead_client::types::{self, PoolInput, PoolOutput};
use netstead_ledger::Described;
use netstead_model::{Cidr, Family, Ident, Kind, PoolSpec, PoolStatus, Range, Upstream, Usage, default_vrf};

use super::{each, labels, maybe, pairs};
use crate::problem::Failure;

/// The pool that is asked for, with every rule that is not named at its default: a pool is replaced as a whole.
pub(crate) fn spec(name: Ident, input: PoolInput) -> Result<PoolSpec, Failure> {
    let upstream = upstream(&input)?;
    let network: Option<Cidr> = maybe("network", input.network.as_ref())?;
    let ranges: Vec<Range> = each("ranges", &input.ranges)?;
    let family = match maybe("family", input.family.as_ref())? {
        Some(family) => family,
        // The backend says it.
        None if upstream.is_some() => Family::Ipv4,
        None => follows(network, &ranges)?,
    };
    let defaults = PoolSpec::new(name, family);
    let spec = PoolSpec {
        vrf: maybe("vrf", input.vrf.as_ref())?.unwrap_or_else(default_vrf),
        network,
        ranges,
        exclude: each("exclude", &input.exclude)?,
        gateway: maybe("gateway", input.gateway.as_ref())?,
        use_reserved: input.use_reserved.unwrap_or(defaults.use_reserved),
        length: input.length,
        domain: maybe("domain", input.domain.as_ref())?,
        order: maybe("order", input.order.as_ref())?.unwrap_or(defaults.order),
        cooldown: maybe("cooldown", input.cooldown.as_ref())?.unwrap_or(defaults.cooldown),
        cooldown_min: maybe("cooldown_min", input.cooldown_min.as_ref())?.unwrap_or(defaults.cooldown_min),
        sticky: input.sticky.unwrap_or(defaults.sticky),
        max_per_owner: input.max_per_owner,
        labels: labels("labels", input.labels)?,
        description: input.description,
        upstream,
        ..defaults
    };
    if spec.upstream.is_some() {
        return Ok(spec);
    }
    spec.check().map_err(|error| Failure::impossible(error.field, error.reason))?;
    Ok(spec)
}

/// The backend of the pool, if one is named. What only the backend can say is refused.
fn upstream(input: &PoolInput) -> Result<Option<Box<Upstream>>, Failure> {
    let backend: Option<Ident> = maybe("backend", input.backend.as_ref())?;
    let (backend, pool) = match (backend, &input.backend_pool) {
        (None, None) => return Ok(None),
        (Some(backend), Some(pool)) if !pool.trim().is_empty() => (backend, pool.clone()),
        (Some(_), _) => {
            return Err(Failure::impossible("backend_pool", "say which pool of the backend"));
        }
        (None, Some(_)) => return Err(Failure::impossible("backend", "say which backend has this pool")),
    };
    let said_there = [
        ("family", input.family.is_some()),
        ("network", input.network.is_some()),
        ("ranges", !input.ranges.is_empty()),
        ("exclude", !input.exclude.is_empty()),
        ("gateway", input.gateway.is_some()),
        ("use_reserved", input.use_reserved.is_some()),
        ("order", input.order.is_some()),
    ];
    if let Some((field, _)) = said_there.iter().find(|(_, set)| *set) {
        return Err(Failure::impossible(*field, "the backend decides it: leave it out"));
    }
    Ok(Some(Box::new(Upstream { backend, pool, owner: String::new(), installations: Vec::new() })))
}

fn follows(network: Option<Cidr>, ranges: &[Range]) -> Result<Family, Failure> {
    let kind = network.map(|network| network.kind()).or_else(|| ranges.first().map(Range::kind));
    match kind {
        Some(Kind::V4) => Ok(Family::Ipv4),
        Some(Kind::V6) => Ok(Family::Ipv6),
        Some(Kind::Mac) => Ok(Family::Mac),
        None => {
            Err(Failure::impossible("ranges", "the pool names no address: give `ranges`, or a `network`"))
        }
    }
}

pub(crate) fn output(status: &PoolStatus) -> PoolOutput {
    let (pool, spec) = (&status.pool, &status.pool.spec);
    PoolOutput {
        name: spec.name.to_string(),
        family: spec.family.into(),
        vrf: spec.vrf.to_string(),
        network: spec.network.map(|network| network.to_string()),
        ranges: spec.ranges.iter().map(Range::to_string).collect(),
        exclude: spec.exclude.iter().map(Range::to_string).collect(),
        gateway: spec.gateway.map(|gateway| gateway.to_string()),
        use_reserved: spec.use_reserved,
        length: spec.length,
        domain: spec.domain.as_ref().map(ToString::to_string),
        order: spec.order.into(),
        cooldown: spec.cooldown.to_string(),
        cooldown_min: spec.cooldown_min.to_string(),
        sticky: spec.sticky,
        max_per_owner: spec.max_per_owner,
        labels: pairs(&spec.labels),
        description: spec.description.clone(),
        origin: pool.origin.into(),
        within: pool.within.map(|claim| claim.to_string()),
        created: pool.created,
        version: pool.version,
        usage: usage(&status.usage),
        backend: spec.upstream.as_ref().map(|upstream| upstream.backend.to_string()),
        backend_pool: spec.upstream.as_ref().map(|upstream| upstream.pool.clone()),
        described: None,
        closing: pool.closing,
        installations: spec.upstream.iter().flat_map(|upstream| upstream.installations.clone()).collect(),
    }
}

/// As [`output`], with what the backend last said of its pool.
pub(crate) fn described(status: &PoolStatus, said: Option<&Described>) -> PoolOutput {
    let Some(said) = said.filter(|_| status.pool.spec.upstream.is_some()) else { return output(status) };
    let status = PoolStatus { pool: status.pool.clone(), usage: described_usage(status, Some(said)) };
    PoolOutput { described: Some(said.at), ..output(&status) }
}

/// The counters of a pool; size and what is free as its backend says, if it has one that said so.
pub(crate) fn described_usage(status: &PoolStatus, said: Option<&Described>) -> Usage {
    match said.filter(|_| status.pool.spec.upstream.is_some()) {
        Some(said) => Usage { size: said.info.size, free: said.info.free, ..status.usage },
        None => status.usage,
    }
}

pub(crate) fn usage(usage: &Usage) -> types::Usage {
    types::Usage {
        size: usage.size.to_string(),
        held: usage.held.to_string(),
        resting: usage.resting.to_string(),
        reserved: usage.reserved.to_string(),
        observed: usage.observed.to_string(),
        free: usage.free.to_string(),
        claims: usage.claims,
        waiting: usage.waiting,
        used_permyriad: used(usage),
    }
}

/// The used part in hundredths of a percent of the size. Rounds so that 0 % means empty and 100 % means full.
pub(crate) fn used(usage: &Usage) -> u32 {
    let used = usage.size.saturating_sub(usage.free);
    if used == 0 {
        return 0;
    }
    if usage.free == 0 {
        return 10_000;
    }
    // Sizes beyond 2^100 lose bits that no person misses, instead of overflowing.
    let shift = 28_u32.saturating_sub(usage.size.leading_zeros());
    let permyriad = ((used >> shift) * 10_000).checked_div(usage.size >> shift).unwrap_or(10_000);
    u32::try_from(permyriad).unwrap_or(10_000).clamp(1, 9_999)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn wrong(json: &str) -> String {
        let failure = spec("lan".parse().unwrap(), serde_json::from_str(json).unwrap()).unwrap_err();
        let problem = failure.problem(None);
        format!("{} {}", problem.status, problem.detail)
    }

    #[test]
    fn the_family_follows_from_the_addresses() {
        for (json, family) in [
            (r#"{"network": "10.0.3.0/24"}"#, Family::Ipv4),
            (r#"{"ranges": ["fd00::/64"]}"#, Family::Ipv6),
            (r#"{"ranges": ["52:54:00:00:00:00-52:54:00:ff:ff:ff"]}"#, Family::Mac),
            (r#"{"family": "prefix", "network": "fd00::/48", "length": 64}"#, Family::Prefix),
        ] {
            assert_eq!(
                spec("p".parse().unwrap(), serde_json::from_str(json).unwrap()).unwrap().family,
                family
            );
        }
    }

    #[test]
    fn errors_name_the_field() {
        let all = [
            wrong("{}"),
            wrong(r#"{"ranges": ["10.0.0.1", "10.0.0.9-10.0.0.5"]}"#),
            wrong(r#"{"ranges": ["10.0.0.1-fd00::1"]}"#),
            wrong(r#"{"ranges": ["10.0.0.1", "fd00::1"]}"#),
            wrong(r#"{"network": "fd00::/129"}"#),
            wrong(r#"{"ranges": ["52:54:00:00:00"]}"#),
            wrong(r#"{"network": "10.0.0.0/24", "family": "ipv5"}"#),
            wrong(r#"{"network": "10.0.0.0/24", "gateway": "10.0.1.1"}"#),
            wrong(r#"{"network": "10.0.0.0/24", "cooldown": "10"}"#),
            wrong(r#"{"network": "10.0.0.0/24", "labels": {"a b": "c"}}"#),
            wrong(r#"{"network": "10.0.0.0/24", "domain": "-x.test"}"#),
            wrong(r#"{"network": "10.0.0.0/24", "order": "best"}"#),
        ];
        assert_snapshot!(all.join("\n"), @"
        422 ranges: the pool names no address: give `ranges`, or a `network`
        400 ranges[1]: `10.0.0.9-10.0.0.5` is not a range: it begins at `10.0.0.9`, after its end `10.0.0.5`; write `10.0.0.5-10.0.0.9`
        400 ranges[0]: `10.0.0.1-fd00::1` is not a range: `10.0.0.1` is an IPv4 address, but `fd00::1` an IPv6 address
        422 ranges: `fd00::1` is not of the family of the pool (ipv4)
        400 network: `fd00::/129` is not a network: the length `129` at character 8 is over 128, all bits of an IPv6 address
        400 ranges[0]: `52:54:00:00:00` is not a range: it has 5 bytes, a MAC address has 6
        400 family: `ipv5` is not a family: use `ipv4`, `ipv6`, `mac` or `prefix`
        422 gateway: `10.0.1.1` is not inside the network `10.0.0.0/24`
        400 cooldown: `10` is not a length of time: it has no unit: write `90s`, `10m`, `12h` or `7d`
        400 labels.a b: `a b` is not a label name: only letters, digits, `.`, `_`, `/` and `-` are allowed
        400 domain: `-x.test` is not a DNS name: the label `-x` at character 1 begins with a hyphen
        400 order: `best` is not an order: use `lowest`, `next`, `random` or `freed-first`
        ");
    }

    #[test]
    fn a_pool_is_only_empty_when_it_is_and_full_when_it_is() {
        let of = |size, free| used(&Usage { size, free, ..Usage::default() });
        assert_eq!(of(256, 256), 0);
        assert_eq!(of(256, 128), 5_000);
        assert_eq!(of(u128::MAX, u128::MAX - 1), 1);
        assert_eq!(of(u128::MAX, u128::MAX / 2), 5_000);
        assert_eq!(of(u128::MAX, 1), 9_999);
        assert_eq!(of(256, 0), 10_000);
        assert_eq!(of(0, 0), 0);
    }
}
