//! Claims of one address that the caller names.

use super::{
    claims::Claimed,
    error::NetaddrError,
    layout::{AddressList, Found, RangeKeys, delete, found, get, get_all, is_absent, is_at, put, put_leased},
    raw::{RangeType, RawAddress},
    session::Session,
    view::{Held, held, info, text},
};

/// A fixed address and a name, as they are in some ranges.
#[derive(Debug)]
pub(super) struct Place {
    /// The range that the address is from.
    pub(super) range: usize,
    /// The name that has the address, and whether it was fixed for it.
    pub(super) holder: Option<(String, bool)>,
    /// The address that the name holds, and the number of its range.
    pub(super) held: Option<(usize, Held)>,
    /// The revision of the address's key among those that were given back; 0 without.
    freed: i64,
}

impl Session {
    /// Gives `name` exactly this address of the first of `ranges` that has it.
    pub(super) async fn claim_fixed(
        &self,
        ranges: &[String],
        kind: RangeType,
        name: &str,
        address: &RawAddress,
    ) -> Result<Claimed, NetaddrError> {
        let all: Vec<RangeKeys> = ranges.iter().map(|range| RangeKeys::new(range)).collect();
        let (deadline, mut round, mut tried) = (self.deadline(), 0, false);
        loop {
            let place = self.place(&all, kind, name, address).await;
            let place = place.map_err(|error| lost_if(tried, error))?;
            if let Some((at, Held { address: has, created, .. })) = place.held {
                let range = all.get(at).map(RangeKeys::prefix).unwrap_or_default().to_owned();
                let made = tried && has == *address;
                return Ok(Claimed { range, kind, address: has, created, made });
            }
            let Some(keys) = all.get(place.range) else { continue };
            if let Some((holder, _)) = place.holder {
                let address = address.text(kind);
                let range = keys.prefix().to_owned();
                return Err(NetaddrError::AddressTaken { address, range, name: holder });
            }
            let at = |list| keys.address(list, address);
            // The name is free in every range, and the address neither held nor changed since it was read: also not given back.
            let mut compare: Vec<_> = all.iter().map(|keys| is_absent(keys.name(name))).collect();
            compare.extend([
                is_absent(at(AddressList::Hardcoded)),
                is_absent(at(AddressList::Generated)),
                is_at(at(AddressList::Deleted), place.freed),
            ]);
            let mut success = vec![
                put(at(AddressList::Hardcoded), name.as_bytes()),
                put(keys.name(name), address.bytes()),
                delete(at(AddressList::Deleted)),
                delete(at(AddressList::Planned)),
            ];
            if let Some(mark) = self.pending_mark().await {
                success.push(put_leased(keys.pending(name), mark.origin, mark.lease));
            }
            match self.write(compare, success, Vec::new()).await {
                Ok(written) if written.succeeded => {
                    let (range, created) = (keys.prefix().to_owned(), written.revision);
                    self.note_revision(&range, created);
                    return Ok(Claimed { range, kind, address: address.clone(), created, made: true });
                }
                Ok(_) | Err(NetaddrError::LeaseEnded { .. }) => {}
                Err(NetaddrError::Unknown { .. }) => tried = true,
                Err(error) => return Err(lost_if(tried, error)),
            }
            if Self::is_over(deadline) {
                return Err(lost_if(tried, self.too_busy()));
            }
            round += 1;
            Self::step_back(round).await;
        }
    }

    /// Looks a fixed address and a name up in all of the ranges, in one transaction.
    pub(super) async fn place(
        &self,
        ranges: &[RangeKeys],
        kind: RangeType,
        name: &str,
        address: &RawAddress,
    ) -> Result<Place, NetaddrError> {
        let reads = ranges.iter().flat_map(|keys| {
            let at = |list| get(keys.address(list, address));
            [
                get_all(&keys.info(), 4),
                get(keys.name(name)),
                at(AddressList::Hardcoded),
                at(AddressList::Generated),
                at(AddressList::Deleted),
            ]
        });
        let answer = self.read(reads.collect()).await?;
        let mut responses = answer.responses.into_iter();
        let (mut place, mut has) = (None, None);
        for (at, keys) in ranges.iter().enumerate() {
            let info = info(keys, &found(responses.next()))?;
            info.is(keys, kind)?;
            let name = found(responses.next()).one();
            let fixed = found(responses.next());
            let generated = found(responses.next());
            let freed = found(responses.next());
            has = has.or_else(|| Some((at, held(name?))));
            if place.is_some() || !info.contains(address) {
                continue;
            }
            let holder = |found: Found, fixed| found.one().map(|kv| (text(&kv.value), fixed));
            place = Some(Place {
                range: at,
                holder: holder(fixed, true).or_else(|| holder(generated, false)),
                held: None,
                freed: freed.one().map_or(0, |kv| kv.mod_revision),
            });
        }
        let ranges = || ranges.iter().map(|keys| keys.prefix().to_owned()).collect();
        match place {
            Some(place) => Ok(Place { held: has, ..place }),
            // A name that holds something is told before an address that cannot be had.
            None if has.is_some() => Ok(Place { range: 0, holder: None, held: has, freed: 0 }),
            None => Err(NetaddrError::Outside { address: address.text(kind), ranges: ranges() }),
        }
    }

    /// Keeps a fixed address from being given to other names for some minutes, because a plan is about to take it. A user without the
    /// right to do that goes without.
    pub(super) async fn note_planned(&self, range: &str, name: &str, address: &RawAddress) {
        let Some(lease) = self.planned_lease().await else { return };
        let key = RangeKeys::new(range).address(AddressList::Planned, address);
        let noted = self.write(Vec::new(), vec![put_leased(key, name, lease)], Vec::new()).await;
        if let Err(error) = noted {
            tracing::debug!(%error, "A fixed address could not be kept for its plan.");
        }
    }
}

/// The error of a request after one whose answer was lost.
fn lost_if(tried: bool, error: NetaddrError) -> NetaddrError {
    match error {
        NetaddrError::Unavailable { url, reason } if tried => NetaddrError::Unknown { url, reason },
        error => error,
    }
}
