//! Ranges: made, read, made larger or smaller, removed.

use super::{
    error::NetaddrError,
    layout::{
        AddressList, RangeKeys, delete, delete_all, end_of, found, get_all, get_from, is_absent, is_at,
        none_between, none_newer, put,
    },
    listing::{HeldName, Listed},
    raw::{RangeType, RawAddress},
    session::Session,
    view::{Info, info, pointer},
};

/// Addresses before the old start of a range that can be added to it; each becomes a key.
const MOST_ADDED: u128 = 4096;
/// Keys of one transaction.
const PER_STEP: usize = 100;
/// Other ranges under the same path that are looked at.
const MOST_SIBLINGS: usize = 64;

/// A range as it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRange {
    pub prefix: String,
    pub kind: RangeType,
    pub first: RawAddress,
    pub last: RawAddress,
}

impl NewRange {
    /// Reads what a person wrote.
    ///
    /// # Errors
    ///
    /// The words say what is wrong.
    pub fn parse(prefix: &str, kind: RangeType, first: &str, last: &str) -> Result<Self, String> {
        let (first, last) = (RawAddress::parse(kind, first)?, RawAddress::parse(kind, last)?);
        if first.len() != last.len() {
            return Err(format!(
                "{} and {} are MAC addresses of two lengths",
                first.text(kind),
                last.text(kind)
            ));
        }
        if first > last {
            return Err(format!(
                "the range begins at {}, after its end {}",
                first.text(kind),
                last.text(kind)
            ));
        }
        Ok(Self { prefix: prefix.to_owned(), kind, first, last })
    }
}

impl Session {
    /// Makes a range. One that is there already is an error.
    pub(super) async fn create_range(&self, range: &NewRange) -> Result<(), NetaddrError> {
        let keys = RangeKeys::new(&range.prefix);
        let all = [keys.kind(), keys.first(), keys.last(), keys.next()];
        let compare = all.iter().cloned().map(is_absent).collect();
        let success = vec![
            put(keys.kind(), range.kind.as_str()),
            put(keys.first(), range.first.bytes()),
            put(keys.last(), range.last.bytes()),
            put(keys.next(), range.first.bytes()),
        ];
        let exists = || NetaddrError::RangeExists { range: range.prefix.clone() };
        match self.write(compare, success, Vec::new()).await {
            Ok(written) if written.succeeded => Ok(()),
            Ok(_) => Err(exists()),
            Err(error @ NetaddrError::Unknown { .. }) => {
                // It is as asked, and untouched: so it is the one that was to be made.
                let (info, next, names) = self.count(&range.prefix).await.map_err(|_| error)?;
                let same = info.first == range.first && info.last == range.last && info.kind == range.kind;
                if same && next == range.first && names == 0 { Ok(()) } else { Err(exists()) }
            }
            Err(error) => Err(error),
        }
    }

    /// `None` if it does not exist.
    pub(super) async fn range(&self, prefix: &str) -> Result<Option<Info>, NetaddrError> {
        let keys = RangeKeys::new(prefix);
        let answer = self.read(vec![get_all(&keys.info(), 4)]).await?;
        match info(&keys, &found(answer.responses.into_iter().next())) {
            Ok(info) => Ok(Some(info)),
            Err(NetaddrError::NoRange { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a range that no name has an address of. Another range whose prefix begins with this one stays.
    ///
    /// Returns whether it was there.
    pub(super) async fn delete_range(&self, prefix: &str) -> Result<bool, NetaddrError> {
        let keys = RangeKeys::new(prefix);
        let mut tried = false;
        loop {
            if self.range(prefix).await?.is_none() {
                return Ok(tried);
            }
            let names = keys.names();
            let compare = vec![none_between(names.clone(), end_of(&names))];
            let success = vec![delete_all(keys.info()), delete_all(keys.data())];
            match self.write(compare, success, Vec::new()).await {
                Ok(written) if written.succeeded => return Ok(true),
                Ok(_) => {
                    let held = self.all_names(prefix).await?;
                    let Some(HeldName { name, .. }) = held.first().cloned() else { continue };
                    return Err(NetaddrError::InUse { range: prefix.to_owned(), name, count: held.len() });
                }
                Err(NetaddrError::Unknown { .. }) if !tried => tried = true,
                Err(error) => return Err(error),
            }
        }
    }

    /// Changes the bounds of a range in place. Every address in use must stay inside.
    pub(super) async fn resize_range(&self, wanted: &NewRange) -> Result<(), NetaddrError> {
        let keys = RangeKeys::new(&wanted.prefix);
        let (deadline, mut round) = (self.deadline(), 0);
        loop {
            if self.try_resize(&keys, wanted).await? {
                return Ok(());
            }
            if Self::is_over(deadline) {
                return Err(self.too_busy());
            }
            round += 1;
            Self::step_back(round).await;
        }
    }

    async fn try_resize(&self, keys: &RangeKeys, wanted: &NewRange) -> Result<bool, NetaddrError> {
        let invalid = |reason: String| NetaddrError::Invalid { reason };
        let text = |address: &RawAddress| address.text(wanted.kind);
        let reads = vec![get_all(&keys.info(), 4), get_all(&keys.next(), 1)];
        let answer = self.read(reads).await?;
        let mut responses = answer.responses.into_iter();
        let now = info(keys, &found(responses.next()))?;
        let (next, next_revision) = pointer(keys, found(responses.next()))?;
        now.is(keys, wanted.kind)?;
        if now.first == wanted.first && now.last == wanted.last {
            return Ok(true);
        }
        if now.first.len() != wanted.first.len() {
            return Err(invalid(format!("its addresses have {} bytes", now.first.len())));
        }
        let inside = |address: &RawAddress| wanted.first <= *address && *address <= wanted.last;
        let held = self.all_names(&wanted.prefix).await?;
        let outside: Vec<&HeldName> = held.iter().filter(|held| !inside(&held.address)).collect();
        if let Some(HeldName { name, address, .. }) = outside.first() {
            return Err(invalid(format!(
                "{} addresses in use would be outside, such as {} of `{name}`",
                outside.len(),
                text(address)
            )));
        }
        // A range from which nothing was given yet begins anew; else what comes in before the pointer is free, and listed as such.
        let unused = next == now.first;
        let mut freed = Vec::new();
        if !unused && wanted.first < now.first {
            let count = wanted.first.count_to(&now.first).saturating_sub(1);
            if count > MOST_ADDED {
                let reason = format!(
                    "{count} addresses before {} would be added; {MOST_ADDED} at most can be",
                    text(&now.first)
                );
                return Err(invalid(reason));
            }
            let mut address = wanted.first.clone();
            while address < now.first {
                freed.push(put(keys.address(AddressList::Deleted, &address), Vec::new()));
                address = address.next();
            }
        }
        for step in freed.chunks(PER_STEP) {
            self.write(Vec::new(), step.to_vec(), Vec::new()).await?;
        }
        let above = wanted.last.next();
        let pointer = if unused {
            wanted.first.clone()
        } else if next > wanted.last {
            above
        } else {
            next.clone().max(wanted.first.clone())
        };
        let (first, last) = (keys.first(), keys.last());
        let names = keys.names();
        let compare = vec![
            none_newer(keys.info(), end_of(&keys.info()), answer.revision),
            none_newer(names.clone(), end_of(&names), answer.revision),
            is_at(keys.next(), next_revision),
        ];
        let success = vec![
            put(first, wanted.first.bytes()),
            put(last, wanted.last.bytes()),
            put(keys.next(), pointer.bytes()),
        ];
        self.forget_pointer(&wanted.prefix);
        match self.write(compare, success, Vec::new()).await {
            Ok(written) if written.succeeded => {}
            Ok(_) | Err(NetaddrError::Unknown { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.drop_outside(keys, wanted).await.map(|()| true)
    }

    /// Removes addresses that are outside now from those that were given back.
    async fn drop_outside(&self, keys: &RangeKeys, wanted: &NewRange) -> Result<(), NetaddrError> {
        let freed = self.list(&wanted.prefix, Listed::Deleted).await?;
        let outside = freed.iter().filter(|one| one.address < wanted.first || wanted.last < one.address);
        let keys: Vec<_> =
            outside.map(|one| delete(keys.address(AddressList::Deleted, &one.address))).collect();
        for step in keys.chunks(PER_STEP) {
            self.write(Vec::new(), step.to_vec(), Vec::new()).await?;
        }
        Ok(())
    }

    /// Other ranges under the same path that have addresses of this one.
    ///
    /// Only the first key of each range is looked for, so it costs two requests for each of them, whatever they hold.
    pub(super) async fn overlapping(&self, wanted: &NewRange) -> Result<Vec<String>, NetaddrError> {
        let path = wanted.prefix.trim_end_matches('/');
        let Some((parent, _)) = path.rsplit_once('/') else { return Ok(Vec::new()) };
        let parent = format!("{parent}/").into_bytes();
        let (mut start, mut overlapping) = (parent.clone(), Vec::new());
        for _ in 0..MOST_SIBLINGS {
            let answer = self.read(vec![get_from(&parent, start.clone(), 1, true)]).await?;
            let Some(first) = found(answer.responses.into_iter().next()).one() else { break };
            let Some(prefix) = prefix_of(&first.key) else {
                start = [first.key.as_slice(), &[0]].concat();
                continue;
            };
            // Past all of its data; its `info/` comes after that.
            let data = RangeKeys::new(&prefix).data();
            start = if first.key.starts_with(&data) {
                end_of(&data)
            } else {
                end_of(&RangeKeys::new(&prefix).info())
            };
            if prefix == wanted.prefix || overlapping.contains(&prefix) {
                continue;
            }
            let other = self.range(&prefix).await.ok().flatten();
            let meets = |other: &Info| {
                other.kind == wanted.kind && other.first <= wanted.last && wanted.first <= other.last
            };
            if other.as_ref().is_some_and(meets) {
                overlapping.push(prefix);
            }
        }
        Ok(overlapping)
    }
}

/// The prefix of the range that a key is of.
fn prefix_of(key: &[u8]) -> Option<String> {
    let ends: [&[u8]; 4] = [b"data/nextaddr", b"data/address/", b"data/name/", b"info/"];
    let at =
        ends.iter().filter_map(|part| key.windows(part.len()).position(|window| window == *part)).min()?;
    String::from_utf8(key.get(..at)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_must_fit_together() {
        let parse = |kind, first: &str, last: &str| NewRange::parse("/r/", kind, first, last);
        assert!(parse(RangeType::Ipv4, "10.0.0.1", "10.0.0.9").is_ok());
        let wrong = parse(RangeType::Ipv4, "10.0.0.9", "10.0.0.1").unwrap_err();
        assert_eq!(wrong, "the range begins at 10.0.0.9, after its end 10.0.0.1");
        let wrong = parse(RangeType::Mac, "02:00:00:00:00:01", "02:00:00:00:00:00:00:09").unwrap_err();
        assert_eq!(wrong, "02:00:00:00:00:01 and 02:00:00:00:00:00:00:09 are MAC addresses of two lengths");
        assert!(parse(RangeType::Ipv4, "10.0.0.1", "02:00:00:00:00:01").is_err());
    }

    #[test]
    fn the_range_of_a_key_is_known() {
        assert_eq!(prefix_of(b"/ranges/lan/data/address/generated/\xff/info/").unwrap(), "/ranges/lan/");
        assert_eq!(prefix_of(b"/ranges/lan/info/type").unwrap(), "/ranges/lan/");
        assert_eq!(prefix_of(b"/ranges/other"), None);
    }
}
