//! From the API's JSON to the model. What cannot be understood is an error, never a guess.

use std::{fmt::Display, str::FromStr};

use netstead_model::{
    Address, Cidr, Claim, Details, Labels, Name, Origin, ParseError, Pool, PoolSpec, PoolStatus, Range, Usage,
};

use crate::types::{ClaimOutput, PoolOrigin, PoolOutput};

pub(super) fn claim(claim: ClaimOutput) -> Result<Claim, String> {
    let held = claim.address.ok_or("a claim has no address")?;
    let (address, length) = match held.parse::<Cidr>() {
        Ok(prefix) if held.contains('/') => (prefix.network(), Some(prefix.len())),
        _ => (read("address", &held)?, None),
    };
    let details = Details {
        labels: Labels::new(claim.labels).map_err(text)?,
        hostnames: claim
            .hostnames
            .iter()
            .map(|name| read::<Name>("hostname", name))
            .collect::<Result<_, _>>()?,
        description: claim.description,
    };
    Ok(Claim {
        id: read("id", &claim.id.ok_or("a claim has no id")?)?,
        pool: read("pool", &claim.pool)?,
        key: read("key", &claim.key)?,
        owner: claim.owner.into(),
        address,
        length,
        fixed: claim.fixed,
        since: claim.since,
        ttl: claim.ttl.map(|ttl| read("ttl", &ttl)).transpose()?,
        details: (details != Details::default()).then(|| Box::new(details)),
    })
}

pub(super) fn pool(pool: PoolOutput) -> Result<PoolStatus, String> {
    let ranges = |field, list: &[String]| {
        list.iter().map(|range| read::<Range>(field, range)).collect::<Result<_, _>>()
    };
    let spec = PoolSpec {
        name: read("name", &pool.name)?,
        family: read("family", pool.family.as_str())?,
        vrf: read("vrf", &pool.vrf)?,
        network: pool.network.map(|network| read("network", &network)).transpose()?,
        ranges: ranges("ranges", &pool.ranges)?,
        exclude: ranges("exclude", &pool.exclude)?,
        gateway: pool.gateway.map(|gateway| read::<Address>("gateway", &gateway)).transpose()?,
        use_reserved: pool.use_reserved,
        length: pool.length,
        domain: pool.domain.map(|domain| read("domain", &domain)).transpose()?,
        order: read("order", pool.order.as_str())?,
        cooldown: read("cooldown", &pool.cooldown)?,
        cooldown_min: read("cooldown_min", &pool.cooldown_min)?,
        sticky: pool.sticky,
        max_per_owner: pool.max_per_owner,
        labels: Labels::new(pool.labels).map_err(text)?,
        description: pool.description,
    };
    let number =
        |field, value: &str| value.parse::<u128>().map_err(|_| format!("{field}: `{value}` is no number"));
    let usage = Usage {
        size: number("size", &pool.usage.size)?,
        held: number("held", &pool.usage.held)?,
        resting: number("resting", &pool.usage.resting)?,
        reserved: number("reserved", &pool.usage.reserved)?,
        observed: number("observed", &pool.usage.observed)?,
        free: number("free", &pool.usage.free)?,
        claims: pool.usage.claims,
        waiting: pool.usage.waiting,
    };
    let within = pool.within.map(|claim| read("within", &claim)).transpose()?;
    let origin = if pool.origin == PoolOrigin::File { Origin::File } else { Origin::Api };
    let pool = Pool { spec, version: pool.version, created: pool.created, origin, within, closing: false };
    Ok(PoolStatus { pool, usage })
}

fn read<T: FromStr<Err = ParseError>>(field: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("{field}: {error}"))
}

fn text(error: impl Display) -> String {
    error.to_string()
}
