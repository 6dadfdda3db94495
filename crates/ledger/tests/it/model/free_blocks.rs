//! Which blocks of a pool there are, and which of them are free.

use netstead_ledger::Reply;
use netstead_model::{Address, Claim, Family, Ident, Key, Kind, Order, Pool, Range, Span, Usage};

use super::{Block, Held, Model, Rested};

impl Model {
    pub fn holders<'a>(&'a self, pool: &'a Pool) -> impl Iterator<Item = &'a Held> {
        self.held.iter().filter(|held| held.claim.pool == *pool.name())
    }

    /// Single addresses rest wherever they lie, under whichever pool is there now; prefixes in the pool they came from.
    pub fn rests_in<'a>(&'a self, pool: &'a Pool) -> impl Iterator<Item = &'a Rested> {
        self.rests.iter().filter(move |rest| {
            let prefixes = pool.spec.family == Family::Prefix;
            rest.vrf == pool.spec.vrf
                && rest.claim.address.kind() == kind(pool)
                && rest.claim.length.is_some() == prefixes
                && (!prefixes || rest.claim.pool == *pool.name())
                && in_extent(pool, rest.claim.address)
        })
    }

    /// Addresses that no other key may have yet.
    pub fn resting_in<'a>(&'a self, pool: &'a Pool) -> impl Iterator<Item = &'a Rested> {
        self.rests_in(pool).filter(|rest| self.rest_left(pool, rest) > 0)
    }

    pub fn rest_left(&self, pool: &Pool, rest: &Rested) -> u64 {
        match pool.spec.order {
            Order::FreedFirst => 0,
            _ => (rest.freed + pool.spec.cooldown.as_millis()).saturating_sub(self.now),
        }
    }

    fn set_aside(&self, pool: &Pool, block: Block) -> bool {
        let reserved = self.reservations.iter().filter(|r| r.pool == *pool.name()).map(|r| span(r.range));
        reserved.chain(self.seen_in(pool)).any(|other| overlap(other, block))
    }

    pub fn seen_in(&self, pool: &Pool) -> impl Iterator<Item = Block> {
        let here = self.sightings.iter().filter(|seen| {
            seen.vrf == pool.spec.vrf && seen.address.kind() == kind(pool) && in_extent(pool, seen.address)
        });
        here.map(|seen| (seen.address.number(), seen.address.number()))
    }

    fn is_held(&self, pool: &Pool, block: Block) -> bool {
        self.holders(pool).any(|held| overlap(block_of(&held.claim), block))
    }

    fn is_free(&self, pool: &Pool, block: Block) -> bool {
        covers(&usable(pool), block)
            && !self.is_held(pool, block)
            && !self.resting_in(pool).any(|rest| overlap(block_of(&rest.claim), block))
            && !self.set_aside(pool, block)
    }

    /// The address that the pool's order hands out next; of a `random` pool, the Book's choice if that is allowed.
    pub fn pick(&self, pool: &Pool, length: u8, hint: Option<&Reply>) -> Option<u128> {
        let free: Vec<u128> = blocks(&usable(pool), kind(pool).bits(), length)
            .filter(|start| self.is_free(pool, block(pool, *start, length)))
            .collect();
        let lowest = free.first().copied();
        let round_from = |pointer: Option<u128>| {
            let from = pointer.map_or(0, |last| last + 1);
            free.iter().copied().find(|start| *start >= from).or(lowest)
        };
        let claims = self.holders(pool).map(|held| &held.claim);
        let all = claims.chain(self.rests_in(pool).map(|rest| &rest.claim));
        let generated = all.filter(|claim| !claim.fixed);
        match pool.spec.order {
            Order::Lowest => lowest,
            Order::Next => round_from(generated.max_by_key(|claim| claim.id.seq).map(|c| c.address.number())),
            Order::Random => hinted(hint).filter(|start| free.contains(start)).or(lowest),
            Order::FreedFirst => {
                let highest = generated.map(|claim| claim.address.number()).max();
                let freed = self.rests_in(pool).map(|rest| rest.claim.address.number());
                freed.filter(|start| free.contains(start)).min().or_else(|| round_from(highest))
            }
        }
    }

    /// A resting block that could be handed out if it did not rest.
    fn only_rests(&self, pool: &Pool, rest: &Rested, length: u8) -> bool {
        let here = block_of(&rest.claim);
        rest.claim.length.unwrap_or(kind(pool).bits()) == length
            && covers(&usable(pool), here)
            && !self.is_held(pool, here)
            && !self.set_aside(pool, here)
            && !self
                .resting_in(pool)
                .any(|o| o.claim.id != rest.claim.id && overlap(block_of(&o.claim), here))
    }

    /// When nothing else is free: the one that has rested longest, if it has rested enough.
    pub fn pick_early(&self, pool: &Pool, length: u8) -> Option<u128> {
        let least = pool.spec.cooldown_min.as_millis();
        let rested = self.resting_in(pool).filter(|rest| rest.freed + least <= self.now);
        let could_go = rested.filter(|rest| self.only_rests(pool, rest, length));
        could_go.map(|rest| (rest.freed, rest.claim.address.number())).min().map(|(_, start)| start)
    }

    /// The address that this key and owner gave back last and that still rests.
    pub fn sticky(&self, pool: &Pool, key: &Key, owner: &str, length: u8) -> Option<u128> {
        let own = self.resting_in(pool).filter(|rest| rest.claim.key == *key && *rest.claim.owner == *owner);
        let whole = own.filter(|rest| pool.spec.sticky && self.only_rests(pool, rest, length));
        whole.map(|rest| (rest.freed, rest.claim.address.number())).max().map(|(_, start)| start)
    }

    /// How much rests, and how long until the first of it may go early.
    pub fn resting(&self, pool: &Pool) -> (u128, Option<Span>) {
        let least = pool.spec.cooldown_min.min(pool.spec.cooldown).as_millis();
        let size = self.resting_in(pool).map(|rest| size(block_of(&rest.claim))).sum();
        let next = self.resting_in(pool).map(|rest| (rest.freed + least).saturating_sub(self.now)).min();
        (size, next.map(Span::from_millis))
    }

    /// All counters, counted: an address is the first of these that it is.
    pub fn usage(&self, name: &Ident) -> Usage {
        let pool = &self.pools[name];
        let mut left = usable(pool);
        let mut count = |blocks: &[Block]| {
            let before: u128 = left.iter().copied().map(size).sum();
            for block in blocks {
                left = without(std::mem::take(&mut left), *block);
            }
            before - left.iter().copied().map(size).sum::<u128>()
        };
        let held: Vec<Block> = self.holders(pool).map(|held| block_of(&held.claim)).collect();
        let resting: Vec<Block> = self.resting_in(pool).map(|rest| block_of(&rest.claim)).collect();
        let reserved: Vec<Block> =
            self.reservations.iter().filter(|r| r.pool == *name).map(|r| span(r.range)).collect();
        let seen: Vec<Block> = self.seen_in(pool).collect();
        Usage {
            size: usable(pool).into_iter().map(size).sum(),
            held: count(&held),
            resting: count(&resting),
            reserved: count(&reserved),
            observed: count(&seen),
            free: left.into_iter().map(size).sum(),
            claims: held.len() as u64,
            waiting: self.queue.iter().filter(|queued| queued.waiting.pools.contains(name)).count() as u64,
        }
    }
}

pub fn kind(pool: &Pool) -> Kind {
    pool.spec.kind().unwrap()
}

/// The addresses of the pool, neighbours joined.
pub fn extent(pool: &Pool) -> Vec<Block> {
    let mut ranges: Vec<Block> = match (pool.spec.ranges.as_slice(), pool.spec.network) {
        ([], Some(network)) => vec![(network.first().number(), network.last().number())],
        (ranges, _) => ranges.iter().map(|range| span(*range)).collect(),
    };
    ranges.sort_unstable();
    let mut joined: Vec<Block> = Vec::new();
    for (first, last) in ranges {
        match joined.last_mut() {
            Some(before) if before.1.checked_add(1) == Some(first) => before.1 = last,
            _ => joined.push((first, last)),
        }
    }
    joined
}

/// The addresses that can be handed out.
pub fn usable(pool: &Pool) -> Vec<Block> {
    let mut left = extent(pool);
    for range in &pool.spec.exclude {
        left = without(left, span(*range));
    }
    if let Some(gateway) = pool.spec.gateway {
        left = without(left, (gateway.number(), gateway.number()));
    }
    if pool.spec.use_reserved || matches!(pool.spec.family, Family::Mac | Family::Prefix) {
        return left;
    }
    let written = pool.spec.ranges.iter().filter_map(Range::cidr);
    let networks: Vec<_> = pool.spec.network.map_or_else(|| written.collect(), |network| vec![network]);
    for network in networks.into_iter().filter(|network| network.size() > 2) {
        let (first, last) = (network.first().number(), network.last().number());
        left = without(left, (first, first));
        if kind(pool) == Kind::V4 {
            left = without(left, (last, last));
        }
    }
    left
}

pub fn in_extent(pool: &Pool, address: Address) -> bool {
    let number = address.number();
    address.kind() == kind(pool) && extent(pool).iter().any(|(first, last)| (first..=last).contains(&&number))
}

pub fn covers(parts: &[Block], block: Block) -> bool {
    parts.iter().any(|part| part.0 <= block.0 && block.1 <= part.1)
}

pub fn overlap(one: Block, other: Block) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}

fn without(parts: Vec<Block>, hole: Block) -> Vec<Block> {
    let mut left = Vec::new();
    for (first, last) in parts {
        if !overlap((first, last), hole) {
            left.push((first, last));
            continue;
        }
        if first < hole.0 {
            left.push((first, hole.0 - 1));
        }
        if hole.1 < last {
            left.push((hole.1 + 1, last));
        }
    }
    left
}

fn size(block: Block) -> u128 {
    block.1 - block.0 + 1
}

pub fn span(range: Range) -> Block {
    (range.first().number(), range.last().number())
}

/// The addresses a block of `length` that begins at `start` has.
pub fn block(pool: &Pool, start: u128, length: u8) -> Block {
    (start, start + (1u128 << (kind(pool).bits() - length)) - 1)
}

pub fn block_of(claim: &Claim) -> Block {
    claim.prefix().map_or((claim.address.number(), claim.address.number()), |prefix| span(prefix.into()))
}

/// The starts of all blocks of `length` that fit into `parts`, lowest first.
pub fn blocks(parts: &[Block], bits: u8, length: u8) -> impl Iterator<Item = u128> {
    let step = 1u128 << (bits - length);
    parts.iter().flat_map(move |(first, last)| {
        let start = first.next_multiple_of(step);
        (0..).map(move |count| start + count * step).take_while(move |start| start + (step - 1) <= *last)
    })
}

/// The address the Book gave.
pub fn hinted(hint: Option<&Reply>) -> Option<u128> {
    match hint {
        Some(Reply::Claimed { claim, .. }) => Some(claim.address.number()),
        _ => None,
    }
}
