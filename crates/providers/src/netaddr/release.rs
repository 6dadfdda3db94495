//! Gives addresses back.

use super::{
    error::NetaddrError,
    layout::{AddressList, RangeKeys, delete, found, get, get_all, is_at, put},
    raw::RawAddress,
    session::Session,
    view::{held, info, pointer},
};

/// The result of giving an address back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freed {
    Done,
    /// The name does not hold it any more. Nothing was touched.
    AlreadyGone,
}

impl Session {
    /// Gives back what `name` holds, if that is `address`, and with `created` the very same object.
    pub(super) async fn release(
        &self,
        range: &str,
        name: &str,
        address: &RawAddress,
        created: Option<i64>,
    ) -> Result<Freed, NetaddrError> {
        let keys = RangeKeys::new(range);
        let at = |list| keys.address(list, address);
        let (deadline, mut round, mut tried) = (self.deadline(), 0, false);
        loop {
            let reads = vec![
                get_all(&keys.info(), 4),
                get(keys.next()),
                get(keys.name(name)),
                get(at(AddressList::Generated)),
                get(at(AddressList::Hardcoded)),
            ];
            let mut responses = self.read(reads).await?.responses.into_iter();
            let info = info(&keys, &found(responses.next()))?;
            let (next, next_revision) = pointer(&keys, found(responses.next()))?;
            let has = found(responses.next()).one().map(held);
            let [generated, fixed] = [0, 1].map(|_| found(responses.next()).one());
            let Some(has) = has.filter(|has| {
                has.address == *address && created.is_none_or(|created| created == has.created)
            }) else {
                return Ok(if tried { Freed::Done } else { Freed::AlreadyGone });
            };
            let is_ours = |kv: &netstead_wire::etcd::messages::KeyValue| kv.value == name.as_bytes();
            let revision =
                |kv: Option<&netstead_wire::etcd::messages::KeyValue>| kv.map_or(0, |kv| kv.mod_revision);
            let others = [&generated, &fixed].into_iter().flatten().any(|kv| !is_ours(kv));
            let mut compare = vec![
                is_at(keys.name(name), has.revision),
                is_at(at(AddressList::Generated), revision(generated.as_ref())),
                is_at(at(AddressList::Hardcoded), revision(fixed.as_ref())),
            ];
            let mut success = vec![delete(keys.name(name)), delete(keys.pending(name))];
            if generated.as_ref().is_some_and(is_ours) {
                success.push(delete(at(AddressList::Generated)));
            }
            if fixed.as_ref().is_some_and(is_ours) {
                success.push(delete(at(AddressList::Hardcoded)));
            }
            if *address < next {
                // An address that another name has as well, through a fault of the original, does not become free.
                if !others && info.contains(address) {
                    success.push(put(at(AddressList::Deleted), name.as_bytes()));
                }
            } else {
                // The pointer is written again as it is: a claim that saw this address as held must not pass it now.
                compare.push(is_at(keys.next(), next_revision));
                success.push(put(keys.next(), next.bytes()));
            }
            match self.write(compare, success, Vec::new()).await {
                Ok(written) if written.succeeded => {
                    self.note_revision(range, written.revision);
                    return Ok(Freed::Done);
                }
                Ok(_) => {}
                Err(NetaddrError::Unknown { .. }) => tried = true,
                Err(error) => return Err(error),
            }
            if Self::is_over(deadline) {
                return Err(self.too_busy());
            }
            round += 1;
            Self::step_back(round).await;
        }
    }
}
