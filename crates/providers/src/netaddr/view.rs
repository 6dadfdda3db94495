//! [`RangeView`]: what a claim must know of a range, read in one transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use netstead_wire::etcd::messages::{KeyValue, RequestOp, ResponseOp};

use super::{
    error::NetaddrError,
    layout::{AddressList, Found, RangeKeys, found, get, get_all, get_from},
    raw::{RangeType, RawAddress},
};

/// With a known pointer, so many fixed addresses after it are read.
const FIXED: i64 = 1024;
/// Addresses that plans are about to take.
const PLANNED: i64 = 512;
/// Reads of a range, without those of names.
pub(super) const READS: usize = 5;

/// The three keys under `info/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Info {
    pub(super) kind: RangeType,
    pub(super) first: RawAddress,
    pub(super) last: RawAddress,
}

/// An address that a name holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) address: RawAddress,
    /// The revision at which the name was written first. A later holder of the same name has another.
    pub(super) created: i64,
    pub(super) revision: i64,
}

/// The part of a range that a claim must know.
#[derive(Debug, Clone)]
pub(super) struct RangeView {
    pub(super) keys: RangeKeys,
    pub(super) info: Info,
    pub(super) next: RawAddress,
    pub(super) next_revision: i64,
    /// The lowest addresses that were given back, with the revisions of their keys.
    pub(super) freed: Vec<(RawAddress, i64)>,
    /// Fixed addresses from the pointer on; with `fixed_to`, only up to there.
    pub(super) fixed: BTreeSet<RawAddress>,
    pub(super) fixed_to: Option<RawAddress>,
    /// Fixed addresses that plans are about to take, with their names.
    pub(super) planned: BTreeMap<RawAddress, String>,
    pub(super) names: HashMap<String, Held>,
    /// All of this is as it was at this revision.
    pub(super) revision: i64,
}

/// Where the reading of fixed addresses begins.
#[derive(Debug, Clone)]
pub(super) struct FixedFrom(pub(super) Option<RawAddress>);

/// The reads that [`views`] understands: for each range its own, then each name in each range.
pub(super) fn reads(ranges: &[RangeKeys], from: &[FixedFrom], names: &[String]) -> Vec<RequestOp> {
    let freed = i64::try_from(names.len()).unwrap_or(i64::MAX).saturating_mul(2).saturating_add(8);
    let mut reads = Vec::new();
    for (keys, from) in ranges.iter().zip(from) {
        let list = keys.list(AddressList::Hardcoded);
        let fixed = match &from.0 {
            Some(pointer) => get_from(&list, keys.address(AddressList::Hardcoded, pointer), FIXED, true),
            None => get_from(&list, list.clone(), 0, true),
        };
        reads.extend([
            get_all(&keys.info(), 4),
            get(keys.next()),
            get_all(&keys.list(AddressList::Deleted), freed),
            fixed,
            get_all(&keys.list(AddressList::Planned), PLANNED),
        ]);
    }
    reads.extend(names.iter().flat_map(|name| ranges.iter().map(|keys| get(keys.name(name)))));
    reads
}

/// The ranges as the answers to [`reads`] show them. `None` for one whose pointer is before where the reading of fixed
/// addresses began: it must be read again from its start.
pub(super) fn views(
    ranges: &[RangeKeys],
    from: &[FixedFrom],
    names: &[String],
    responses: Vec<ResponseOp>,
    revision: i64,
) -> Result<Option<Vec<RangeView>>, NetaddrError> {
    let mut responses = responses.into_iter();
    let mut views = Vec::new();
    for (keys, from) in ranges.iter().zip(from) {
        let info = info(keys, &found(responses.next()))?;
        let (next, next_revision) = pointer(keys, found(responses.next()))?;
        let freed = found(responses.next());
        let fixed = found(responses.next());
        let planned = found(responses.next());
        if from.0.as_ref().is_some_and(|from| next < *from) {
            return Ok(None);
        }
        let of = |list: AddressList, kv: &KeyValue| {
            kv.key.strip_prefix(keys.list(list).as_slice()).map(RawAddress::new)
        };
        let fixed_keys: BTreeSet<_> =
            fixed.kvs.iter().filter_map(|kv| of(AddressList::Hardcoded, kv)).collect();
        views.push(RangeView {
            keys: keys.clone(),
            next,
            next_revision,
            freed: freed
                .kvs
                .iter()
                .filter_map(|kv| Some((of(AddressList::Deleted, kv)?, kv.mod_revision)))
                .filter(|(address, _)| info.contains(address))
                .collect(),
            fixed_to: fixed.more.then(|| fixed_keys.last().cloned()).flatten(),
            fixed: fixed_keys,
            planned: planned
                .kvs
                .iter()
                .filter_map(|kv| Some((of(AddressList::Planned, kv)?, text(&kv.value))))
                .collect(),
            names: HashMap::new(),
            revision,
            info,
        });
    }
    for name in names {
        for view in &mut views {
            if let Some(held) = found(responses.next()).one().map(held) {
                view.names.insert(name.clone(), held);
            }
        }
    }
    Ok(Some(views))
}

impl Info {
    pub(super) fn contains(&self, address: &RawAddress) -> bool {
        address.len() == self.first.len() && self.first <= *address && *address <= self.last
    }

    pub(super) fn is(&self, keys: &RangeKeys, wanted: RangeType) -> Result<(), NetaddrError> {
        if self.kind == wanted {
            return Ok(());
        }
        let (range, found) = (keys.prefix().to_owned(), self.kind.to_string());
        Err(NetaddrError::OtherType { range, found, wanted: wanted.as_str() })
    }
}

/// A range exists if there are exactly three keys.
pub(super) fn info(keys: &RangeKeys, found: &Found) -> Result<Info, NetaddrError> {
    let range = || keys.prefix().to_owned();
    let value = |key: Vec<u8>| found.kvs.iter().find(|kv| kv.key == key).map(|kv| kv.value.clone());
    let (Some(kind), Some(first), Some(last), 3) =
        (value(keys.kind()), value(keys.first()), value(keys.last()), found.kvs.len())
    else {
        return Err(NetaddrError::NoRange { range: range() });
    };
    let kind = match kind.as_slice() {
        b"ipv4" => RangeType::Ipv4,
        b"mac" => RangeType::Mac,
        other => {
            let found = text(other);
            return Err(NetaddrError::OtherType { range: range(), found, wanted: "ipv4` or `mac" });
        }
    };
    Ok(Info { kind, first: RawAddress::new(first), last: RawAddress::new(last) })
}

/// The pointer with its revision. An empty one was written by the original after the very last MAC address: the range is full.
pub(super) fn pointer(keys: &RangeKeys, found: Found) -> Result<(RawAddress, i64), NetaddrError> {
    let Some(kv) = found.one() else {
        let reason = "it has no `data/nextaddr`".to_owned();
        return Err(NetaddrError::Damaged { range: keys.prefix().to_owned(), reason });
    };
    let next = if kv.value.is_empty() { RawAddress::new([0xff_u8; 32]) } else { RawAddress::new(kv.value) };
    Ok((next, kv.mod_revision))
}

pub(super) fn held(kv: KeyValue) -> Held {
    Held { address: RawAddress::new(kv.value), created: kv.create_revision, revision: kv.mod_revision }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
