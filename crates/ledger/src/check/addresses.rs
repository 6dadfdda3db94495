//! Checks slots, address by address, in the order of their keys.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use netstead_model::{Cidr, Claim, ClaimId, Ident, Key, Range};

use super::CheckedPool;
use crate::record::{Head, Rest, Slot, SlotKey, Space};

/// The keys and slots seen so far.
#[derive(Default)]
pub(super) struct AddressCheck {
    claims: u64,
    keys: HashMap<(Ident, Key), Arc<str>>,
    ids: HashMap<ClaimId, Arc<str>>,
    /// The last prefix that each pool holds.
    last_prefix: HashMap<Ident, (Range, Arc<str>)>,
    /// Where the last prefix that a pool has or had begins.
    last_start: HashMap<(Space, Ident), (u128, Arc<str>)>,
}

impl AddressCheck {
    pub fn claims(&self) -> u64 {
        self.claims
    }

    /// Problems of the slot under `key`.
    pub fn slot_problems(
        &mut self,
        key: &str,
        place: &SlotKey,
        slot: &Slot,
        pools: &BTreeMap<Ident, CheckedPool>,
        unread: &BTreeSet<String>,
        head: Option<&Head>,
    ) -> Vec<String> {
        let mut problems: Vec<String> = misshapen(place, slot).into_iter().collect();
        let key: Arc<str> = key.into();
        if place.space.prefixes {
            let begins = (place.space.clone(), slot.pool().clone());
            let before = self.last_start.insert(begins, (place.number, key.clone()));
            if let Some((_, other)) = before.filter(|(number, _)| *number == place.number) {
                problems.push(format!("it begins where `{other}` of the same pool does"));
            }
        }
        match slot {
            Slot::Rested(rest) => problems.extend(head.and_then(|head| rest_problem(rest, head))),
            Slot::Held(claim) => {
                self.claims += 1;
                if !unread.contains(claim.pool.as_str()) {
                    problems.extend(claim_problem(&place.space, claim, pools));
                }
                problems.extend(head.and_then(|head| is_newer(claim.id, head)));
                self.compare(&key, claim, &mut problems);
            }
        }
        problems
    }

    /// With what was held before it.
    fn compare(&mut self, key: &Arc<str>, claim: &Claim, problems: &mut Vec<String>) {
        if let Some(other) = self.keys.insert((claim.pool.clone(), claim.key.clone()), key.clone()) {
            problems.push(format!("`{}` holds `{other}` too", claim.key));
        }
        if let Some(other) = self.ids.insert(claim.id, key.clone()) {
            problems.push(format!("its id {} is that of `{other}` too", claim.id));
        }
        if let Some(prefix) = claim.prefix().map(Range::from) {
            let before = self.last_prefix.insert(claim.pool.clone(), (prefix, key.clone()));
            if let Some((_, other)) = before.filter(|(range, _)| range.overlaps(prefix)) {
                problems.push(format!("it overlaps `{other}`"));
            }
        }
    }
}

/// Prefixes have a length and begin where such a prefix begins; nothing else has one.
fn misshapen(place: &SlotKey, slot: &Slot) -> Option<String> {
    match (place.space.prefixes, place.length) {
        (true, Some(length)) => Cidr::new(slot.address(), length).err().map(|error| error.to_string()),
        (true, None) => Some("it is a prefix without a length".into()),
        (false, Some(_)) => Some("it has a length and is no prefix".into()),
        (false, None) => None,
    }
}

fn claim_problem(space: &Space, claim: &Claim, pools: &BTreeMap<Ident, CheckedPool>) -> Option<String> {
    let Some(ground) = pools.get(&claim.pool) else {
        return Some(format!("pool `{}` does not exist", claim.pool));
    };
    if ground.space.as_ref() != Some(space) {
        return Some(format!("it does not lie in the VRF and family of pool `{}`", claim.pool));
    }
    let range = claim.prefix().map_or_else(|| Range::single(claim.address), Range::from);
    let inside = ground.usable.iter().any(|part| part.contains_range(range));
    (!inside).then(|| format!("{} is not in pool `{}`", claim.held(), claim.pool))
}

/// Its pool may be gone, or lie elsewhere by now: the next one made there lets it go on resting.
fn rest_problem(rest: &Rest, head: &Head) -> Option<String> {
    let late = || format!("it was freed at {} ms, and ledger time is {} ms", rest.freed, head.time);
    is_newer(rest.claim, head).or_else(|| (rest.freed > head.time).then(late))
}

fn is_newer(id: ClaimId, head: &Head) -> Option<String> {
    let newer = id.ledger == head.ledger && id.seq > head.seq;
    newer.then(|| format!("its id {id} is newer than the head, {}", head.seq))
}
