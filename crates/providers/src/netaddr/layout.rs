//! [`RangeKeys`]: the keys of one range, byte for byte as terraform-provider-netaddr has them.
//!
//! | key after the prefix | value |
//! |---|---|
//! | `info/type` | `ipv4` or `mac` |
//! | `info/firstaddr`, `info/lastaddr` | address |
//! | `data/nextaddr` | address: the pointer |
//! | `data/name/` name | address |
//! | `data/address/generated/` address | name |
//! | `data/address/hardcoded/` address | name |
//! | `data/address/deleted/` address | last name |
//!
//! Two keys are ours and have a lease: `data/planned/` address (a fixed address that a plan is about to take) and
//! `data/pending/` name (a creation whose caller may have died). The original provider never reads them.
//! A range exists if there are exactly three keys under `info/`.

use netstead_wire::etcd::messages::{
    Compare, CompareResult, CompareTarget, DeleteRangeRequest, KeyValue, Operand, Operation, PutRequest,
    RangeRequest, RequestOp, ResponseOp,
};

use super::raw::RawAddress;

/// The keys of the range with a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RangeKeys {
    prefix: String,
}

/// Addresses by how they were given, and those that were given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressList {
    Generated,
    Hardcoded,
    Deleted,
    Planned,
}

impl AddressList {
    const fn path(self) -> &'static str {
        match self {
            Self::Generated => "data/address/generated/",
            Self::Hardcoded => "data/address/hardcoded/",
            Self::Deleted => "data/address/deleted/",
            Self::Planned => "data/planned/",
        }
    }
}

impl RangeKeys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn info(&self) -> Vec<u8> {
        self.at("info/")
    }

    pub(super) fn data(&self) -> Vec<u8> {
        self.at("data/")
    }

    pub(super) fn kind(&self) -> Vec<u8> {
        self.at("info/type")
    }

    pub(super) fn first(&self) -> Vec<u8> {
        self.at("info/firstaddr")
    }

    pub(super) fn last(&self) -> Vec<u8> {
        self.at("info/lastaddr")
    }

    pub(super) fn next(&self) -> Vec<u8> {
        self.at("data/nextaddr")
    }

    pub(super) fn names(&self) -> Vec<u8> {
        self.at("data/name/")
    }

    pub(super) fn name(&self, name: &str) -> Vec<u8> {
        [self.names().as_slice(), name.as_bytes()].concat()
    }

    pub(super) fn pending(&self, name: &str) -> Vec<u8> {
        [self.at("data/pending/").as_slice(), name.as_bytes()].concat()
    }

    pub(super) fn list(&self, list: AddressList) -> Vec<u8> {
        self.at(list.path())
    }

    pub(super) fn address(&self, list: AddressList, address: &RawAddress) -> Vec<u8> {
        [self.list(list).as_slice(), address.bytes()].concat()
    }

    fn at(&self, path: &str) -> Vec<u8> {
        [self.prefix.as_bytes(), path.as_bytes()].concat()
    }
}

/// The first key past all that begin with `prefix`.
pub(super) fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(more) = last.checked_add(1) {
            end.push(more);
            return end;
        }
    }
    vec![0]
}

pub(super) fn get(key: Vec<u8>) -> RequestOp {
    Operation::Range(RangeRequest { key, ..RangeRequest::default() }).into()
}

/// All keys that begin with `prefix`, at most `limit` of them unless it is 0.
pub(super) fn get_all(prefix: &[u8], limit: i64) -> RequestOp {
    get_from(prefix, prefix.to_vec(), limit, false)
}

/// As [`get_all`], from the key `start` on.
pub(super) fn get_from(prefix: &[u8], start: Vec<u8>, limit: i64, keys_only: bool) -> RequestOp {
    let range_end = end_of(prefix);
    Operation::Range(RangeRequest { key: start, range_end, limit, keys_only, ..RangeRequest::default() })
        .into()
}

/// The keys from `start` to before `end`, without their values.
pub(super) fn keys_between(start: Vec<u8>, end: Vec<u8>) -> RequestOp {
    let range = RangeRequest { key: start, range_end: end, keys_only: true, ..RangeRequest::default() };
    Operation::Range(range).into()
}

pub(super) fn put(key: Vec<u8>, value: impl Into<Vec<u8>>) -> RequestOp {
    Operation::Put(PutRequest { key, value: value.into(), lease: 0 }).into()
}

pub(super) fn put_leased(key: Vec<u8>, value: impl Into<Vec<u8>>, lease: i64) -> RequestOp {
    Operation::Put(PutRequest { key, value: value.into(), lease }).into()
}

pub(super) fn delete(key: Vec<u8>) -> RequestOp {
    Operation::DeleteRange(DeleteRangeRequest { key, ..DeleteRangeRequest::default() }).into()
}

/// The keys from `start` to before `end`.
pub(super) fn delete_between(start: Vec<u8>, end: Vec<u8>) -> RequestOp {
    Operation::DeleteRange(DeleteRangeRequest { key: start, range_end: end }).into()
}

pub(super) fn delete_all(prefix: Vec<u8>) -> RequestOp {
    let range_end = end_of(&prefix);
    Operation::DeleteRange(DeleteRangeRequest { key: prefix, range_end }).into()
}

/// Holds if the key was last written at `revision`, or is not there and that is 0.
pub(super) fn is_at(key: Vec<u8>, revision: i64) -> Compare {
    compare(key, CompareResult::Equal, revision)
}

pub(super) fn is_absent(key: Vec<u8>) -> Compare {
    is_at(key, 0)
}

pub(super) fn exists(key: Vec<u8>) -> Compare {
    compare(key, CompareResult::Greater, 0)
}

/// Holds if there is no key from `start` to before `end`.
pub(super) fn none_between(start: Vec<u8>, end: Vec<u8>) -> Compare {
    Compare { range_end: end, ..is_absent(start) }
}

/// Holds if no key from `start` to before `end` was written after `revision`.
pub(super) fn none_newer(start: Vec<u8>, end: Vec<u8>, revision: i64) -> Compare {
    Compare { range_end: end, ..compare(start, CompareResult::Less, revision.saturating_add(1)) }
}

fn compare(key: Vec<u8>, result: CompareResult, revision: i64) -> Compare {
    Compare {
        result: result.into(),
        target: CompareTarget::Mod.into(),
        key,
        operand: Some(Operand::ModRevision(revision)),
        range_end: Vec::new(),
    }
}

/// The keys that one reading of a transaction found.
pub(super) fn found(response: Option<ResponseOp>) -> Found {
    let range = response.unwrap_or_default().range.unwrap_or_default();
    Found { kvs: range.kvs, more: range.more }
}

#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) kvs: Vec<KeyValue>,
    pub(super) more: bool,
}

impl Found {
    pub(super) fn one(self) -> Option<KeyValue> {
        self.kvs.into_iter().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_original() {
        let keys = RangeKeys::new("/ranges/lan/");
        let address = RawAddress::new([0x02, 0x2f, 0, 0, 0, 1]);
        let text = |key: Vec<u8>| String::from_utf8_lossy(&key).into_owned();
        assert_eq!(text(keys.kind()), "/ranges/lan/info/type");
        assert_eq!(text(keys.name("web/1")), "/ranges/lan/data/name/web/1");
        let key = keys.address(AddressList::Hardcoded, &address);
        assert_eq!(key, b"/ranges/lan/data/address/hardcoded/\x02\x2f\x00\x00\x00\x01");
        assert_eq!(end_of(b"/a/"), b"/a0");
        assert_eq!(end_of(b"a\xff\xff"), b"b");
        assert_eq!(end_of(b"\xff"), b"\0");
    }
}
