//! New bounds of a range, in place.
//!
//! Addresses that come in before the old start are free, but the pointer is past them: they are listed as given back. A step moves the
//! start by at most [`PER_STEP`] addresses and lists them in the same transaction. So a range lists no address that is outside of it, and none
//! that a name got meanwhile:
//!
//! 1. This process reads the bounds, the pointer, and the addresses before the start that are held or listed.
//! 2. Another client gets one of them. (The original takes an address from the list without a look at the bounds.)
//! 3. The transaction finds that a key there is newer than what was read, and does nothing. The step begins again.
//!
//! A process that ends between two steps leaves a range that is smaller than it was to become, and else as it should be.

use std::collections::BTreeMap;

use netstead_wire::etcd::messages::{Compare, RequestOp};

use super::{
    error::NetaddrError,
    layout::{
        AddressList, Found, RangeKeys, delete_between, end_of, found, get, get_all, is_at, keys_between,
        none_between, none_newer, put,
    },
    listing::HeldName,
    ranges::NewRange,
    raw::RawAddress,
    session::Session,
    view::{Info, info, pointer},
};

/// Addresses before the old start of a range that can be added to it; each becomes a key.
const MOST_ADDED: u128 = 4096;
/// Addresses of one transaction.
const PER_STEP: u128 = 100;
/// Held addresses before the start whose keys are conditions of their own. Only a fault leaves any there.
const MOST_HELD: usize = 20;

/// The outcome of one transaction.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Done,
    /// The range is larger than before, and not yet as wanted.
    More,
    /// Another client wrote meanwhile.
    Lost,
}

/// A range before a step.
struct Before {
    info: Info,
    next: RawAddress,
    next_revision: i64,
    /// Nothing of it was given in turn, or none of it stays, so it can begin anew.
    unused: bool,
    revision: i64,
}

/// Conditions and writes of a step.
#[derive(Default)]
struct Transaction {
    compare: Vec<Compare>,
    success: Vec<RequestOp>,
}

impl Session {
    /// Changes the bounds of a range in place. Every address in use must stay inside.
    pub(super) async fn resize_range(&self, wanted: &NewRange) -> Result<(), NetaddrError> {
        let keys = RangeKeys::new(&wanted.prefix);
        let (deadline, mut round) = (self.deadline(), 0);
        loop {
            match self.resize_step(&keys, wanted).await? {
                Step::Done => return Ok(()),
                Step::More => continue,
                Step::Lost => {}
            }
            if Self::is_over(deadline) {
                return Err(self.too_busy());
            }
            round += 1;
            Self::step_back(round).await;
        }
    }

    async fn resize_step(&self, keys: &RangeKeys, wanted: &NewRange) -> Result<Step, NetaddrError> {
        let before = self.before_resize(keys, wanted).await?;
        let Before { info: now, next, .. } = &before;
        if now.first == wanted.first && now.last == wanted.last {
            return Ok(Step::Done);
        }
        let mut transaction = Transaction::default();
        if now.first < wanted.first || wanted.last < now.last {
            self.check_outside(keys, wanted, before.revision, &mut transaction).await?;
        }
        let first = start_of_step(&before, wanted)?;
        if !before.unused && first < now.first {
            self.list_added(keys, &first, &now.first, &mut transaction).await?;
        }
        let pointer = if before.unused {
            first.clone()
        } else if *next > wanted.last {
            wanted.last.next()
        } else {
            next.clone().max(first.clone())
        };
        transaction.finish(keys, &before, (&first, &wanted.last, &pointer));
        self.forget_pointer(&wanted.prefix);
        match self.write(transaction.compare, transaction.success, Vec::new()).await {
            Ok(written) if !written.succeeded => Ok(Step::Lost),
            Ok(written) => {
                self.note_revision(&wanted.prefix, written.revision);
                Ok(if first == wanted.first { Step::Done } else { Step::More })
            }
            // What became of it is read.
            Err(NetaddrError::Unknown { .. }) => Ok(Step::Lost),
            Err(error) => Err(error),
        }
    }

    async fn before_resize(&self, keys: &RangeKeys, wanted: &NewRange) -> Result<Before, NetaddrError> {
        let reads =
            vec![get_all(&keys.info(), 4), get(keys.next()), get_all(&keys.list(AddressList::Generated), 1)];
        let answer = self.read(reads).await?;
        let mut responses = answer.responses.into_iter();
        let info = info(keys, &found(responses.next()))?;
        let (next, next_revision) = pointer(keys, found(responses.next()))?;
        let generated = found(responses.next()).one();
        info.is(keys, wanted.kind)?;
        if info.first.len() != wanted.first.len() {
            let reason = format!("its addresses have {} bytes", info.first.len());
            return Err(NetaddrError::Invalid { reason });
        }
        let is_elsewhere = wanted.last < info.first || info.last < wanted.first;
        let unused = generated.is_none() && (next == info.first || is_elsewhere);
        Ok(Before { info, next, next_revision, unused, revision: answer.revision })
    }

    /// A range that becomes smaller keeps every address in use.
    async fn check_outside(
        &self,
        keys: &RangeKeys,
        wanted: &NewRange,
        revision: i64,
        transaction: &mut Transaction,
    ) -> Result<(), NetaddrError> {
        let held = self.all_names(&wanted.prefix).await?;
        let is_outside = |held: &&HeldName| held.address < wanted.first || wanted.last < held.address;
        let outside: Vec<&HeldName> = held.iter().filter(is_outside).collect();
        if let Some(HeldName { name, address, .. }) = outside.first() {
            let reason = format!(
                "{} addresses in use would be outside, such as {} of `{name}`",
                outside.len(),
                address.text(wanted.kind)
            );
            return Err(NetaddrError::Invalid { reason });
        }
        let names = keys.names();
        transaction.compare.push(none_newer(names.clone(), end_of(&names), revision));
        Ok(())
    }

    /// Lists the addresses from `first` to before `until` as given back, but for those that are held or listed already.
    async fn list_added(
        &self,
        keys: &RangeKeys,
        first: &RawAddress,
        until: &RawAddress,
        transaction: &mut Transaction,
    ) -> Result<(), NetaddrError> {
        let lists = [AddressList::Generated, AddressList::Hardcoded, AddressList::Deleted];
        let span = |list| (keys.address(list, first), keys.address(list, until));
        let reads = lists.map(|list| {
            let (start, end) = span(list);
            keys_between(start, end)
        });
        let answer = self.read(reads.to_vec()).await?;
        let mut there: BTreeMap<RawAddress, (Vec<u8>, i64)> = BTreeMap::new();
        for (list, response) in lists.into_iter().zip(answer.responses) {
            let Found { kvs, .. } = found(Some(response));
            let prefix = keys.list(list);
            there.extend(kvs.into_iter().filter_map(|kv| {
                let address = RawAddress::new(kv.key.strip_prefix(prefix.as_slice())?);
                Some((address, (kv.key, kv.mod_revision)))
            }));
            let (start, end) = span(list);
            transaction.compare.push(none_newer(start, end, answer.revision));
        }
        // One that is released meanwhile would be lost. A key that is gone is not newer.
        let conditions = there.values().take(MOST_HELD).map(|(key, revision)| is_at(key.clone(), *revision));
        transaction.compare.extend(conditions);
        let mut address = first.clone();
        while address < *until {
            if !there.contains_key(&address) {
                transaction.success.push(put(keys.address(AddressList::Deleted, &address), Vec::new()));
            }
            address = address.next();
        }
        Ok(())
    }
}

impl Transaction {
    /// Adds the bounds and the pointer. No address outside of the range, and none from the pointer on, stays listed as given back.
    fn finish(
        &mut self,
        keys: &RangeKeys,
        before: &Before,
        (first, last, next): (&RawAddress, &RawAddress, &RawAddress),
    ) {
        self.compare.push(none_newer(keys.info(), end_of(&keys.info()), before.revision));
        self.compare.push(is_at(keys.next(), before.next_revision));
        let generated = keys.list(AddressList::Generated);
        if before.unused {
            self.compare.push(none_between(generated.clone(), end_of(&generated)));
        }
        let freed = keys.list(AddressList::Deleted);
        let at = |address| keys.address(AddressList::Deleted, address);
        self.success.extend([
            delete_between(freed.clone(), at(first)),
            delete_between(at(next), end_of(&freed)),
            put(keys.first(), first.bytes()),
            put(keys.last(), last.bytes()),
            put(keys.next(), next.bytes()),
        ]);
    }
}

/// The start of the range after the next step.
fn start_of_step(before: &Before, wanted: &NewRange) -> Result<RawAddress, NetaddrError> {
    let now = &before.info.first;
    if before.unused || *now <= wanted.first {
        return Ok(wanted.first.clone());
    }
    let count = wanted.first.count_to(now).saturating_sub(1);
    if count > MOST_ADDED {
        let reason = format!(
            "{count} addresses before {} would be added; {MOST_ADDED} at most can be",
            now.text(wanted.kind)
        );
        return Err(NetaddrError::Invalid { reason });
    }
    let mut first = wanted.first.clone();
    for _ in 0..count.saturating_sub(PER_STEP) {
        first = first.next();
    }
    Ok(first)
}
