//! All pools: a tree by VRF and network, with bars and what is left.

use std::collections::BTreeMap;

use askama::Template;
use axum::response::Response;
use netstead_client::types::{Page, PoolOutput};
use netstead_model::{Cidr, Range};

use super::{grid, history::encoded};
use crate::{
    calls::{Target, Trouble},
    parts::{Bar, count, extent, percent},
    shell::{Section, Shell},
    visit::{Params, Visit},
};

/// Pools of one page.
const MOST: &str = "500";

#[derive(Debug, Template)]
#[template(path = "addresses.html")]
struct AddressesPage {
    shell: Shell,
    vrfs: Vec<Vrf>,
    next: String,
    is_empty: bool,
    find: String,
    found: Vec<Found>,
    find_error: String,
}

#[derive(Debug)]
struct Vrf {
    name: String,
    pools: Vec<Line>,
}

/// A pool in the tree.
#[derive(Debug)]
struct Line {
    name: String,
    href: String,
    /// How deep it is inside of others.
    depth: usize,
    family: String,
    extent: String,
    bar: Bar,
    percent: String,
    free: String,
    waiting: u64,
    note: String,
}

/// A pool with room for what was looked for.
#[derive(Debug)]
struct Found {
    pool: String,
    href: String,
    free: String,
}

pub(crate) async fn list(visit: Visit, params: Params) -> Response {
    let target = Target::of(["pools"]).with("limit", MOST).with("after", params.text("after"));
    let pools: Page<PoolOutput> = match visit.calls.look(target).await {
        Ok(pools) => pools,
        Err(trouble) => return visit.trouble(&trouble),
    };
    let find = params.text("find").to_owned();
    let (found, find_error) = match found(&visit, &pools.items, &find).await {
        Ok(found) => (found, String::new()),
        Err(told) => (Vec::new(), told),
    };
    visit.page(&AddressesPage {
        is_empty: pools.items.is_empty(),
        vrfs: tree(&pools.items, visit.base()),
        next: pools.next.map(|next| format!("?after={}", encoded(&next))).unwrap_or_default(),
        find,
        found,
        find_error,
        shell: visit.shell(Section::Addresses, "Addresses"),
    })
}

/// Pools by VRF, in the order of their networks, each inside of those that have all of it.
fn tree(pools: &[PoolOutput], base: &str) -> Vec<Vrf> {
    let mut vrfs: BTreeMap<&str, Vec<(Option<Cidr>, &PoolOutput)>> = BTreeMap::new();
    for pool in pools {
        let network = pool.network.as_ref().and_then(|network| network.parse().ok());
        let around = network.or_else(|| grid::around(&grid::ranges(pool)));
        vrfs.entry(&pool.vrf).or_default().push((around, pool));
    }
    let of_vrf = |(name, mut pools): (&str, Vec<(Option<Cidr>, &PoolOutput)>)| {
        pools.sort_by(|(one, a), (other, b)| one.cmp(other).then(a.name.cmp(&b.name)));
        let mut above: Vec<(Cidr, bool)> = Vec::new();
        let line = |(around, pool): &(Option<Cidr>, &PoolOutput)| {
            let is_prefix = pool.family.as_str() == "prefix";
            while let (Some((last, holds)), Some(around)) = (above.last(), around)
                && !(*holds && last.contains_cidr(*around))
            {
                above.pop();
            }
            let depth = if around.is_some() { above.len() } else { 0 };
            above.extend(around.map(|around| (around, is_prefix)));
            Line {
                name: pool.name.clone(),
                href: format!("{base}/pools/{}", encoded(&pool.name)),
                depth: depth.min(6),
                family: pool.family.to_string(),
                extent: extent(pool),
                bar: Bar::new(&pool.usage),
                percent: percent(&pool.usage),
                free: count(&pool.usage.free),
                waiting: pool.usage.waiting,
                note: pool.description.clone().or_else(|| pool.domain.clone()).unwrap_or_default(),
            }
        };
        Vrf { name: name.to_owned(), pools: pools.iter().map(line).collect() }
    };
    vrfs.into_iter().map(of_vrf).collect()
}

/// Where a block of a length is free: `/27` is looked for in pools of prefixes, and as a free stretch of the others.
async fn found(visit: &Visit, pools: &[PoolOutput], find: &str) -> Result<Vec<Found>, String> {
    if find.is_empty() {
        return Ok(Vec::new());
    }
    let told = || format!("`{find}` is no length of a block: write `/27`");
    let length: u8 = find.trim_start_matches('/').parse().map_err(|_| told())?;
    let mut found = Vec::new();
    for pool in pools.iter().filter(|pool| pool.usage.free != "0" && pool.family.as_str() != "mac") {
        let ranges = grid::ranges(pool);
        let Some(bits) = ranges.first().map(|range| range.kind().bits()) else { continue };
        if length > bits || pool.usage.size.parse::<u128>().unwrap_or_default() < size_of(bits, length) {
            continue;
        }
        if let Ok(Some(block)) = first_free(visit, pool, &ranges, bits, length).await {
            found.push(Found {
                href: format!(
                    "{}/pools/{}?at={}",
                    visit.base(),
                    encoded(&pool.name),
                    encoded(&block.to_string())
                ),
                pool: pool.name.clone(),
                free: block.to_string(),
            });
        }
        if found.len() == 5 {
            break;
        }
    }
    Ok(found)
}

fn size_of(bits: u8, length: u8) -> u128 {
    1_u128.checked_shl(u32::from(bits.saturating_sub(length))).unwrap_or(u128::MAX)
}

/// The first block of this length that has nothing in it, as far as the first thousand things of the pool show.
async fn first_free(
    visit: &Visit,
    pool: &PoolOutput,
    ranges: &[Range],
    bits: u8,
    length: u8,
) -> Result<Option<Cidr>, Trouble> {
    let target = Target::of(["addresses"]).with("pool", &pool.name).with("limit", "1000");
    let listed: Page<netstead_client::types::AddressOutput> = visit.calls.look(target).await?;
    let last_known = if listed.next.is_some() {
        listed.items.iter().filter_map(grid::range_of).map(|range| range.last()).max()
    } else {
        None
    };
    let step = size_of(bits, length);
    for range in ranges {
        for gap in grid::gaps(std::slice::from_ref(range), &listed.items, *range) {
            let Ok(first) = Cidr::containing(gap.first, length) else { return Ok(None) };
            let begins =
                if first.first() == gap.first { Some(gap.first) } else { first.first().checked_add(step) };
            let Some(block) = begins.and_then(|begins| Cidr::new(begins, length).ok()) else { continue };
            let fits = block.first() >= gap.first && block.last() <= gap.last;
            if fits && last_known.is_none_or(|last| block.last() <= last) {
                return Ok(Some(block));
            }
        }
    }
    Ok(None)
}
