//! Lists of names and addresses, and how full a range is.

use netstead_wire::etcd::messages::{Operation, RangeRequest};

use super::{
    error::NetaddrError,
    layout::{AddressList, RangeKeys, end_of, found, get, get_all, get_from},
    raw::RawAddress,
    session::Session,
    view::{Held, Info, held, info, pointer, text},
};

/// Keys of one answer.
const PAGE: i64 = 1000;

/// A name and its address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    pub name: String,
    pub address: RawAddress,
}

/// A name that holds an address, with the revision at which it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldName {
    pub name: String,
    pub address: RawAddress,
    pub created: i64,
}

/// A list of addresses, as data sources show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    Generated,
    Hardcoded,
    Deleted,
}

impl Session {
    /// The name's address in one range.
    pub(super) async fn held(&self, range: &str, name: &str) -> Result<(Info, Option<Held>), NetaddrError> {
        let keys = RangeKeys::new(range);
        let answer = self.read(vec![get_all(&keys.info(), 4), get(keys.name(name))]).await?;
        let mut responses = answer.responses.into_iter();
        let info = info(&keys, &found(responses.next()))?;
        Ok((info, found(responses.next()).one().map(held)))
    }

    /// A page of names that begin with `begin`, after the name `after`, in their order. Returns whether there are more.
    pub(super) async fn names(
        &self,
        range: &str,
        begin: &str,
        after: Option<&str>,
        limit: i64,
    ) -> Result<(Vec<HeldName>, bool), NetaddrError> {
        let keys = RangeKeys::new(range);
        let start = match after {
            Some(after) => [keys.name(after).as_slice(), &[0]].concat(),
            None => keys.name(begin),
        };
        let reads = vec![get_all(&keys.info(), 4), get_from(&keys.name(begin), start, limit, false)];
        let mut responses = self.read(reads).await?.responses.into_iter();
        info(&keys, &found(responses.next()))?;
        let page = found(responses.next());
        let names = keys.names();
        let of = |kv: netstead_wire::etcd::messages::KeyValue| {
            let name = text(kv.key.strip_prefix(names.as_slice())?);
            let Held { address, created, .. } = held(kv);
            Some(HeldName { name, address, created })
        };
        Ok((page.kvs.into_iter().filter_map(of).collect(), page.more))
    }

    /// All names of a range, by name.
    pub(super) async fn all_names(&self, range: &str) -> Result<Vec<HeldName>, NetaddrError> {
        let mut all: Vec<HeldName> = Vec::new();
        loop {
            let after = all.last().map(|last| last.name.clone());
            let (page, more) = self.names(range, "", after.as_deref(), PAGE).await?;
            let empty = page.is_empty();
            all.extend(page);
            if !more || empty {
                return Ok(all);
            }
        }
    }

    /// All addresses of a list, by name.
    pub(super) async fn list(&self, range: &str, list: Listed) -> Result<Vec<Named>, NetaddrError> {
        let list = match list {
            Listed::Generated => AddressList::Generated,
            Listed::Hardcoded => AddressList::Hardcoded,
            Listed::Deleted => AddressList::Deleted,
        };
        let prefix = RangeKeys::new(range).list(list);
        let (mut all, mut start) = (Vec::new(), prefix.clone());
        loop {
            let answer = self.read(vec![get_from(&prefix, start, PAGE, false)]).await?;
            let page = found(answer.responses.into_iter().next());
            let Some(last) = page.kvs.last() else { break };
            start = [last.key.as_slice(), &[0]].concat();
            all.extend(page.kvs.iter().filter_map(|kv| {
                let address = RawAddress::new(kv.key.strip_prefix(prefix.as_slice())?);
                Some(Named { name: text(&kv.value), address })
            }));
            if !page.more {
                break;
            }
        }
        all.sort();
        Ok(all)
    }

    /// The range, its pointer, and how many names hold an address of it.
    pub(super) async fn count(&self, range: &str) -> Result<(Info, RawAddress, u128), NetaddrError> {
        let keys = RangeKeys::new(range);
        let names = keys.names();
        let range_end = end_of(&names);
        let count = RangeRequest { key: names, range_end, count_only: true, ..RangeRequest::default() };
        let reads = vec![get_all(&keys.info(), 4), get(keys.next()), Operation::Range(count).into()];
        let mut responses = self.read(reads).await?.responses.into_iter();
        let info = info(&keys, &found(responses.next()))?;
        let (next, _) = pointer(&keys, found(responses.next()))?;
        let counted = responses.next().unwrap_or_default().range.unwrap_or_default().count;
        Ok((info, next, u128::from(counted.unsigned_abs())))
    }
}
