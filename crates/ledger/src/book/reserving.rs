//! The commands *reserve* and *unreserve*: sub-ranges that no generated claim gets.

use std::sync::Arc;

use netstead_model::{EventKind, Ident, Key, Range, Reservation, Subject};

use super::{
    claiming::{check_description, check_new_key},
    pool_state::PoolState,
    transaction::Transaction,
};
use crate::{
    command::Reply,
    record::{Record, Slot},
    refusal::Refusal,
};

impl Transaction<'_> {
    /// Sets a range of the pool aside for the caller: nothing generated comes from it. Asking again changes nothing but
    /// the description, if another one is given.
    pub fn reserve(
        &mut self,
        pool: &Ident,
        key: &Key,
        range: Range,
        description: Option<&String>,
    ) -> Result<Reply, Refusal> {
        check_description(description.map(String::as_str))?;
        let state = self.pool(pool)?;
        if let Some(existing) = reservation_of(state, key) {
            return self.reserve_again(existing, range, description);
        }
        check_new_key(key)?;
        if let Some(upstream) = &state.pool.spec.upstream {
            let reason = format!(
                "pool `{pool}` has a backend, which knows no reservation of ours: set it aside at `{}`",
                upstream.backend
            );
            return Err(Refusal::invalid("pool", reason));
        }
        if state.pool.closing {
            return Err(Refusal::PoolClosing { pool: pool.clone() });
        }
        if !Range::joined(state.pool.spec.extent()).iter().any(|part| part.contains_range(range)) {
            return Err(Refusal::NotInPool { address: range.to_string(), pool: pool.clone() });
        }
        let (first, last) = (range.first().number(), range.last().number());
        if let Some(other) = state.reservation_at(first, last) {
            let (key, owner) = (other.key.clone(), other.owner.clone());
            return Err(Refusal::Reserved {
                address: other.range.to_string(),
                pool: pool.clone(),
                key,
                owner,
            });
        }
        let foreign = state.slots_in(first, last).find_map(|slot| match slot {
            Slot::Held(claim) if claim.owner != *self.caller.owner() => Some(claim),
            _ => None,
        });
        if let Some(claim) = foreign {
            let (key, owner) = (claim.key.clone(), claim.owner.clone());
            return Err(Refusal::AddressHeld { address: claim.held(), pool: pool.clone(), key, owner });
        }
        let value = Arc::new(Reservation {
            pool: pool.clone(),
            key: key.clone(),
            owner: self.caller.owner().clone(),
            range,
            since: self.moment.wall,
            description: new_description(None, description),
        });
        self.put(Record::Reservation { pool: pool.clone(), first, value: Some(value.clone()) });
        self.event(EventKind::Reserved, None, Some(Subject::Reservation(value.clone())), None);
        Ok(Reply::Reserved(value))
    }

    fn reserve_again(
        &mut self,
        existing: Arc<Reservation>,
        range: Range,
        description: Option<&String>,
    ) -> Result<Reply, Refusal> {
        if !self.may_touch(&existing.owner) {
            let (pool, key, owner) = (existing.pool.clone(), existing.key.clone(), existing.owner.clone());
            return Err(Refusal::NotYours { pool, key, owner });
        }
        if existing.range != range {
            let reason =
                format!("`{}` has {} reserved already; unreserve it first", existing.key, existing.range);
            return Err(Refusal::invalid("range", reason));
        }
        let description = new_description(existing.description.as_ref(), description);
        if description == existing.description {
            return Ok(Reply::Reserved(existing));
        }
        let changed = Arc::new(Reservation { description, ..Reservation::clone(&existing) });
        let (pool, first) = (changed.pool.clone(), range.first().number());
        self.put(Record::Reservation { pool, first, value: Some(changed.clone()) });
        let (before, after) = (Subject::Reservation(existing), Subject::Reservation(changed.clone()));
        self.event(EventKind::Updated, Some(before), Some(after), None);
        Ok(Reply::Reserved(changed))
    }

    pub fn unreserve(&mut self, pool: &Ident, key: &Key) -> Result<Reply, Refusal> {
        let state = self.pool(pool)?;
        let Some(existing) = reservation_of(state, key) else { return Ok(Reply::Gone(false)) };
        if !self.may_touch(&existing.owner) {
            let (pool, key, owner) = (pool.clone(), key.clone(), existing.owner.clone());
            return Err(Refusal::NotYours { pool, key, owner });
        }
        let first = existing.range.first().number();
        self.put(Record::Reservation { pool: pool.clone(), first, value: None });
        self.event(EventKind::Unreserved, Some(Subject::Reservation(existing)), None, None);
        Ok(Reply::Gone(true))
    }
}

/// Nothing said keeps what is, and an empty one takes it away, as with claims.
fn new_description(was: Option<&String>, asked: Option<&String>) -> Option<String> {
    asked.or(was).filter(|text| !text.is_empty()).cloned()
}

/// Reservations are few per pool: people make them.
fn reservation_of(state: &PoolState, key: &Key) -> Option<Arc<Reservation>> {
    state.reservations.values().find(|reservation| reservation.key == *key).cloned()
}
