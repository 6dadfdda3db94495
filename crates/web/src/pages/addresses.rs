//! All pools: a tree by VRF and network, with bars and what is left.

use std::collections::BTreeMap;

use askama::Template;
use axum::response::Response;
use netstead_client::types::{AddressOutput, Page, PoolOutput};
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
/// Blocks that are found at most.
const FOUND: usize = 5;
/// Pools whose free blocks are shown.
const LOOKED_AT: usize = 40;

#[derive(Debug, Template)]
#[template(path = "addresses.html")]
struct AddressesPage {
    shell: Shell,
    vrfs: Vec<Vrf>,
    next: String,
    is_empty: bool,
    csv: String,
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
    /// The largest free blocks.
    blocks: Vec<Found>,
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
    let (found, find_error) = match everywhere(&visit, &pools, &find).await {
        Ok(found) => (found, String::new()),
        Err(told) => (Vec::new(), told),
    };
    let free = free_blocks(&visit, &pools.items).await;
    visit.page(&AddressesPage {
        is_empty: pools.items.is_empty(),
        vrfs: tree(&pools.items, &free, visit.base()),
        csv: format!("{}/csv/pools", visit.base()),
        next: pools.next.map(|next| format!("?after={}", encoded(&next))).unwrap_or_default(),
        find,
        found,
        find_error,
        shell: visit.shell(Section::Addresses, "Addresses"),
    })
}

/// Looks for a block in the pools of this page, and then in those of the others.
async fn everywhere(visit: &Visit, first: &Page<PoolOutput>, find: &str) -> Result<Vec<Found>, String> {
    let mut all = found(visit, &first.items, find).await?;
    let mut next = first.next.clone();
    while let Some(after) = next.take().filter(|_| !find.is_empty() && all.len() < FOUND) {
        let target = Target::of(["pools"]).with("limit", "1000").with("after", after);
        let page = visit.calls.look::<Page<PoolOutput>>(target).await;
        let page = page.map_err(|trouble| trouble.detail)?;
        all.extend(found(visit, &page.items, find).await?);
        next = page.next;
    }
    all.truncate(FOUND);
    Ok(all)
}

/// The largest free blocks of pools of prefixes, and of small pools, by pool.
async fn free_blocks(visit: &Visit, pools: &[PoolOutput]) -> BTreeMap<String, Vec<String>> {
    let asked = pools.iter().filter(|pool| pool.usage.free != "0" && pool.usage.claims < 500);
    let asked = asked.filter(|pool| matches!(pool.family.as_str(), "ipv4" | "prefix")).take(LOOKED_AT);
    let each = asked.map(async |pool| {
        let target = Target::of(["addresses"]).with("pool", &pool.name).with("limit", "1000");
        let listed = visit.calls.look::<Page<AddressOutput>>(target).await.ok()?;
        if listed.next.is_some() {
            return None;
        }
        let ranges = grid::ranges(pool);
        let gaps =
            ranges.iter().flat_map(|range| grid::gaps(std::slice::from_ref(range), &listed.items, *range));
        let mut blocks: Vec<Cidr> =
            gaps.flat_map(|gap| Range::new(gap.first, gap.last).map(blocks_of).unwrap_or_default()).collect();
        blocks.sort_by_key(|block| (block.len(), block.first()));
        // Single addresses are what the grid of the pool shows.
        let large = blocks.into_iter().filter(|block| block.kind().bits() - block.len() >= 3).take(3);
        Some((pool.name.clone(), large.map(|block| block.to_string()).collect()))
    });
    futures::future::join_all(each).await.into_iter().flatten().collect()
}

/// A range as the fewest blocks.
fn blocks_of(range: Range) -> Vec<Cidr> {
    let bits = range.first().kind().bits();
    let (mut blocks, mut next) = (Vec::new(), Some(range.first()));
    while let Some(first) = next.filter(|first| *first <= range.last() && blocks.len() < 64) {
        let largest = (0..=bits).find_map(|length| {
            let block = Cidr::containing(first, length).ok()?;
            (block.first() == first && block.last() <= range.last()).then_some(block)
        });
        let Some(block) = largest else { break };
        next = block.last().succ();
        blocks.push(block);
    }
    blocks
}

/// Pools by VRF, in the order of their networks, each inside of those that have all of it.
fn tree(pools: &[PoolOutput], free: &BTreeMap<String, Vec<String>>, base: &str) -> Vec<Vrf> {
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
                blocks: free
                    .get(&pool.name)
                    .into_iter()
                    .flatten()
                    .map(|block| Found {
                        href: format!("{base}/pools/{}?at={}", encoded(&pool.name), encoded(block)),
                        pool: pool.name.clone(),
                        free: block.clone(),
                    })
                    .collect(),
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
        if found.len() == FOUND {
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
    let listed: Page<AddressOutput> = visit.calls.look(target).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_said_in_the_fewest_blocks() {
        let blocks = |range: &str| {
            let blocks = blocks_of(range.parse().unwrap());
            blocks.into_iter().map(|block| block.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(blocks("10.0.3.0-10.0.3.255"), "10.0.3.0/24");
        assert_eq!(blocks("10.0.3.50-10.0.3.63"), "10.0.3.50/31 10.0.3.52/30 10.0.3.56/29");
        assert_eq!(blocks("10.0.3.7-10.0.3.7"), "10.0.3.7/32");
        assert_eq!(blocks("255.255.255.254-255.255.255.255"), "255.255.255.254/31");
    }
}
