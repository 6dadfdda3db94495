//! Understands deleted keys: what was there is read from the key alone.

use netstead_model::{Address, Ident, Kind};

use super::{Malformed, POOL, RESERVED, Record, SEEN, SLOT, SlotKey, Space, WAIT};

pub(super) fn record(key: &[u8]) -> Result<Option<Record>, Malformed> {
    let text = std::str::from_utf8(key).map_err(|_| Malformed::new(key, "its key is not text"))?;
    let record = if let Some(name) = text.strip_prefix(POOL) {
        name.parse().ok().map(|name| Record::Pool(name, None))
    } else if let Some(rest) = text.strip_prefix(SLOT) {
        slot(rest)
    } else if let Some(rest) = text.strip_prefix(RESERVED) {
        reservation(rest)
    } else if let Some(rest) = text.strip_prefix(SEEN) {
        observation(rest)
    } else if let Some(number) = text.strip_prefix(WAIT) {
        u64::from_str_radix(number, 16).ok().map(|seq| Record::Waiting(seq, None))
    } else {
        return Ok(None);
    };
    match record.filter(|record| record.key().as_deref() == Some(text)) {
        Some(record) => Ok(Some(record)),
        None => Err(Malformed::new(key, "its key is not one of the ledger's")),
    }
}

fn slot(rest: &str) -> Option<Record> {
    let (space, rest) = space(rest)?;
    let (number, length) = match rest.split_once('-') {
        Some((number, length)) => (number, Some(length.parse().ok()?)),
        None => (rest, None),
    };
    let number = u128::from_str_radix(number, 16).ok()?;
    Some(Record::Slot(SlotKey { space, number, length }, None))
}

fn reservation(rest: &str) -> Option<Record> {
    let (pool, first) = rest.split_once('/')?;
    let first = u128::from_str_radix(first, 16).ok()?;
    Some(Record::Reservation { pool: pool.parse().ok()?, first, value: None })
}

fn observation(rest: &str) -> Option<Record> {
    let (Space { vrf, kind, .. }, rest) = space(rest)?;
    let (number, source) = rest.split_once('/')?;
    let address = Address::new(kind, u128::from_str_radix(number, 16).ok()?)?;
    Some(Record::Observation { vrf, address, source: source.parse().ok()?, value: None })
}

/// The number space that `<vrf>/<tag>/<rest>` lies in, and the rest.
fn space(text: &str) -> Option<(Space, &str)> {
    let (vrf, text) = text.split_once('/')?;
    let (tag, rest) = text.split_once('/')?;
    let vrf: Ident = vrf.parse().ok()?;
    let spaces = [Kind::V4, Kind::V6, Kind::Mac].into_iter().flat_map(|kind| {
        let vrf = &vrf;
        [false, true].map(|prefixes| Space { vrf: vrf.clone(), kind, prefixes })
    });
    let mut found = spaces.filter(|space| space.tag() == tag);
    found.next().map(|space| (space, rest))
}
