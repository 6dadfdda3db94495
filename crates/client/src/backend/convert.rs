//! From the API's JSON to the model. What cannot be understood is an error, never a guess.

use std::str::FromStr;

use netstead_model::{Address, BackendObject, BackendPoolInfo, Cidr, ParseError, Range};

use crate::types::{ClaimOutput, PoolOutput};

pub(super) fn object(claim: ClaimOutput) -> Result<BackendObject, String> {
    let held = claim.address.ok_or("a claim has no address")?;
    let (address, length) = match held.parse::<Cidr>() {
        Ok(prefix) if held.contains('/') => (prefix.network(), Some(prefix.len())),
        _ => (read("address", &held)?, None),
    };
    Ok(BackendObject {
        reference: claim.id.ok_or("a claim has no id")?,
        key: claim.key,
        holder: Some(claim.owner),
        address,
        length,
        since: Some(claim.since),
    })
}

pub(super) fn pool(pool: PoolOutput) -> Result<BackendPoolInfo, String> {
    let ranges = |field, list: &[String]| {
        list.iter().map(|range| read::<Range>(field, range)).collect::<Result<_, _>>()
    };
    let number =
        |field, value: &str| value.parse::<u128>().map_err(|_| format!("{field}: `{value}` is no number"));
    Ok(BackendPoolInfo {
        family: read("family", pool.family.as_str())?,
        network: pool.network.map(|network| read("network", &network)).transpose()?,
        ranges: ranges("ranges", &pool.ranges)?,
        exclude: ranges("exclude", &pool.exclude)?,
        gateway: pool.gateway.map(|gateway| read::<Address>("gateway", &gateway)).transpose()?,
        use_reserved: pool.use_reserved,
        length: pool.length,
        size: number("size", &pool.usage.size)?,
        free: number("free", &pool.usage.free)?,
        installations: pool.installations,
    })
}

fn read<T: FromStr<Err = ParseError>>(field: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("{field}: {error}"))
}
