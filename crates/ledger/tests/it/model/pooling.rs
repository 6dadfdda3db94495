//! Pools: none overlaps another, save inside a held prefix.

use netstead_ledger::{Refusal, Reply};
use netstead_model::{Claim, ClaimId, Family, Ident, Origin, Pool, PoolSpec};

use super::{
    Block, Model,
    free_blocks::{block_of, covers, extent, kind, overlap, span, usable},
    invalid,
};

impl Model {
    pub fn create_pool(&mut self, spec: &PoolSpec) -> Result<Reply, Refusal> {
        spec.check().map_err(|error| invalid(error.field))?;
        if let Some(pool) = self.pools.get(&spec.name) {
            let same = pool.spec == *spec && !pool.closing;
            let other = Refusal::PoolExists { pool: spec.name.clone() };
            return if same { Ok(Reply::Pool(pool.clone().into())) } else { Err(other) };
        }
        let pool = self.draft(spec)?;
        self.event();
        self.pools.insert(spec.name.clone(), pool.clone());
        Ok(Reply::Pool(pool.into()))
    }

    /// The pool as it would be, if it may lie there.
    fn draft(&self, spec: &PoolSpec) -> Result<Pool, Refusal> {
        let mut pool = Pool {
            spec: spec.clone(),
            version: self.seq + 1,
            created: self.wall,
            origin: Origin::Api,
            within: None,
            closing: false,
        };
        let ours = extent(&pool);
        let mut around: Option<&Claim> = None;
        let neighbours = self.pools.values().filter(|other| {
            other.spec.name != spec.name && other.spec.vrf == spec.vrf && kind(other) == kind(&pool)
        });
        for other in neighbours {
            let Some(at) = first_overlap(spec, &extent(other)) else { continue };
            let carries = |claim: &&Claim| ours.iter().all(|part| covers(&[block_of(claim)], *part));
            let prefixes = other.spec.family == Family::Prefix;
            match self.holders(other).map(|held| &held.claim).find(carries).filter(|_| prefixes) {
                Some(claim) => around = around.filter(|before| before.length >= claim.length).or(Some(claim)),
                None if self.lies_below(other, &spec.name) => {}
                None => {
                    let (pool, other, vrf) = (spec.name.clone(), other.name().clone(), spec.vrf.clone());
                    return Err(Refusal::Overlap { pool, other, vrf, at });
                }
            }
        }
        pool.within = around.map(|claim| claim.id);
        Ok(pool)
    }

    /// Whether a pool lies in a prefix of another, or in a prefix of a pool that does.
    fn lies_below(&self, pool: &Pool, outer: &Ident) -> bool {
        let Some(claim) = pool.within.and_then(|id| self.claim_with(id)) else { return false };
        claim.pool == *outer || self.lies_below(&self.pools[&claim.pool], outer)
    }

    pub fn claim_with(&self, id: ClaimId) -> Option<&Claim> {
        self.held.iter().map(|held| &held.claim).find(|claim| claim.id == id)
    }

    pub fn update_pool(&mut self, spec: &PoolSpec, if_version: Option<u64>) -> Result<Reply, Refusal> {
        let before = self.pool(&spec.name)?.clone();
        if before.spec == *spec && !before.closing {
            // It is as it should be: perhaps this is a repeat.
            return Ok(Reply::Pool(before.into()));
        }
        check_version(&before, if_version)?;
        spec.check().map_err(|error| invalid(error.field))?;
        if before.spec.family != spec.family {
            return Err(invalid("family"));
        }
        if before.spec.vrf != spec.vrf {
            return Err(invalid("vrf"));
        }
        if before.spec.kind() != spec.kind() {
            return Err(invalid("ranges"));
        }
        let pool = Pool { created: before.created, ..self.draft(spec)? };
        let stranded = self
            .holders(&before)
            .map(|held| &held.claim)
            .filter(|claim| !covers(&usable(&pool), block_of(claim)));
        if let Some(claim) = stranded.min_by_key(|claim| claim.address) {
            let (address, key, owner) = (claim.held(), claim.key.clone(), claim.owner.clone());
            return Err(Refusal::WouldStrand { pool: spec.name.clone(), address, key, owner });
        }
        let mut reserved = self.reservations.iter().filter(|r| r.pool == spec.name);
        if reserved.any(|r| !covers(&extent(&pool), span(r.range))) {
            return Err(invalid("ranges"));
        }
        self.event();
        self.pools.insert(spec.name.clone(), pool.clone());
        Ok(Reply::Pool(pool.into()))
    }

    pub fn delete_pool(
        &mut self,
        name: &Ident,
        force: bool,
        if_version: Option<u64>,
    ) -> Result<Reply, Refusal> {
        if if_version.is_some() && !self.pools.contains_key(name) {
            return Ok(Reply::PoolDeleted { released: 0, left: 0, owed: 0 });
        }
        let pool = self.pool(name)?.clone();
        check_version(&pool, if_version)?;
        let claims = self.holders(&pool).count();
        let reservations = self.reservations.iter().filter(|r| r.pool == *name).count() as u64;
        if !force && (claims > 0 || reservations > 0) {
            let (pool, claims) = (name.clone(), claims as u64);
            return Err(Refusal::PoolInUse { pool, claims, reservations });
        }
        let mut keys: Vec<_> =
            self.holders(&pool).map(|held| (held.claim.address, held.claim.key.clone())).collect();
        keys.sort();
        for (_, key) in keys {
            let place = self.held_index(name, &key).unwrap();
            self.free(place)?;
        }
        for queued in &mut self.queue {
            queued.waiting.pools.retain(|pool| pool != name);
        }
        let before = self.queue.len();
        self.queue.retain(|queued| !queued.waiting.pools.is_empty());
        self.reservations.retain(|r| r.pool != *name);
        self.pools.remove(name);
        self.seq += (before - self.queue.len()) as u64 + reservations + 1;
        Ok(Reply::PoolDeleted { released: claims as u64, left: 0, owed: 0 })
    }
}

fn check_version(pool: &Pool, asked: Option<u64>) -> Result<(), Refusal> {
    match asked {
        Some(asked) if asked != pool.version => {
            Err(Refusal::VersionMismatch { pool: pool.name().clone(), is: pool.version, asked })
        }
        _ => Ok(()),
    }
}

/// The first of our ranges that touches theirs, as people write it.
fn first_overlap(spec: &PoolSpec, theirs: &[Block]) -> Option<String> {
    let ours = spec.extent();
    let hit = ours.iter().find(|range| theirs.iter().any(|their| overlap(span(**range), *their)));
    hit.map(ToString::to_string)
}
