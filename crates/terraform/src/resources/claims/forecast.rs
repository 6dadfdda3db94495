//! Looks at pools before anything is claimed: what a plan can say.
//!
//! What the same apply may change is a warning; what it cannot change is an error.

use netstead_client::{
    Client, PoolQuery,
    types::{ClaimOutput, PoolOutput},
};
use netstead_model::{Address, Range};

use super::Place;
use crate::protocol::{Diagnostic, Object};

/// Warns where the pools of `planned` have nothing left.
pub(in crate::resources) async fn warn_if_full(
    client: &Client,
    planned: &Object,
    wanted: u128,
) -> Vec<Diagnostic> {
    let place = Place::of(planned);
    let pools = match (&place.pool, &place.selector) {
        (Some(pool), _) => match client.pool(pool).await {
            Ok(pool) => vec![pool.value],
            Err(_) => return Vec::new(),
        },
        (None, Some(selector)) => {
            let query = PoolQuery { selector: Some(selector.clone()), ..PoolQuery::default() };
            client.all(query).await.unwrap_or_default()
        }
        (None, None) => {
            let all = client.all(PoolQuery::default()).await.unwrap_or_default();
            all.into_iter().filter(|pool| place.pools.contains(&pool.name)).collect()
        }
    };
    let at = match (&place.pool, &place.selector) {
        (Some(_), _) => "pool",
        (None, Some(_)) => "selector",
        (None, None) => "pools",
    };
    warn_if_all_full(&pools, &place.words(), wanted).map(|said| said.at(at)).into_iter().collect()
}

/// Warns where these pools together have fewer addresses free than `wanted`.
pub(in crate::resources) fn warn_if_all_full(
    pools: &[PoolOutput],
    words: &str,
    wanted: u128,
) -> Option<Diagnostic> {
    let free = |text: &str| text.parse::<u128>().unwrap_or(u128::MAX);
    let left = pools.iter().fold(0_u128, |sum, pool| sum.saturating_add(free(&pool.usage.free)));
    if pools.is_empty() || left >= wanted {
        return None;
    }
    let said = format!("{left} {} free in {words}", if left == 1 { "address is" } else { "addresses are" });
    let detail = format!(
        "This needs {wanted}. Unless the same apply makes room, it will fail: make the pool larger, or release what is not needed."
    );
    Some(Diagnostic::warning(said, detail))
}

/// The addresses that a pool has.
pub(in crate::resources) fn extent(pool: &PoolOutput) -> Vec<Range> {
    let ranges: Vec<Range> = pool.ranges.iter().filter_map(|range| range.parse().ok()).collect();
    if ranges.is_empty() {
        pool.network.iter().filter_map(|network| network.parse().ok()).collect()
    } else {
        Range::joined(ranges)
    }
}

/// Looks at one address, or a prefix, of a pool. A pool that the same apply makes is not there yet.
pub(in crate::resources) async fn check_fixed(
    client: &Client,
    pool: &str,
    wanted: &str,
    attribute: &str,
) -> Vec<Diagnostic> {
    let Ok(known) = client.pool(pool).await else { return Vec::new() };
    let range = wanted.parse::<Address>().ok().and_then(|one| Range::new(one, one).ok());
    let Some(range) = range.or_else(|| wanted.parse().ok()) else { return Vec::new() };
    let extent = extent(&known.value);
    if !extent.is_empty() && !extent.iter().any(|part| part.contains_range(range)) {
        let said = Diagnostic::error(
            format!("{wanted} is not in pool `{pool}`"),
            format!(
                "The pool hands out {}. Choose one of these, or add a range to the pool.",
                known.value.ranges.join(", ")
            ),
        );
        return vec![said.at(attribute)];
    }
    let Ok(known) = client.explain(&range.first().to_string()).await else { return Vec::new() };
    let holder =
        known.places.iter().filter_map(|place| place.claim.as_ref()).find(|claim| claim.pool == pool);
    let Some(ClaimOutput { key, owner, .. }) = holder else { return Vec::new() };
    let said = Diagnostic::warning(
        format!("{wanted} is held by `{key}` of `{owner}`"),
        "Unless the same apply releases it, this will fail.",
    );
    vec![said.at(attribute)]
}

/// A creation of what a key holds already.
pub(in crate::resources) fn taken(held: &ClaimOutput) -> Diagnostic {
    let ClaimOutput { pool, key, owner, since, .. } = held;
    let address = held.address.as_deref().unwrap_or("an address");
    Diagnostic::warning(
        format!("`{key}` holds {address} of pool `{pool}` already"),
        format!(
            "It is held by `{owner}` since {since}. If that is the owner of this token, the apply takes it over as it is, which \
             is what you want after an apply that was cut off; else it fails. To take it over on purpose, import it: \
             `terraform import ADDRESS {pool}/{key}`."
        ),
    )
    .at("key")
}
