//! Ranges: made, read, removed. `resize.rs` makes them larger and smaller.

use super::{
    error::NetaddrError,
    layout::{RangeKeys, delete_all, end_of, found, get, get_all, get_from, is_absent, none_between, put},
    listing::HeldName,
    raw::{RangeType, RawAddress},
    session::Session,
    view::{Info, info},
};

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

    /// Makes a range, unless another one under the same path has addresses of it.
    ///
    /// 1. Two ranges that overlap are made at once. Neither sees the other before both are made.
    /// 2. Both look again. The one that was made later sees the other, and is removed; the earlier one stays.
    pub(super) async fn create_range_alone(&self, range: &NewRange) -> Result<(), NetaddrError> {
        let overlaps = |others: Vec<String>| {
            let range = range.prefix.clone();
            if others.is_empty() { Ok(()) } else { Err(NetaddrError::Overlaps { range, others }) }
        };
        overlaps(self.overlapping(range).await?)?;
        self.create_range(range).await?;
        let own = self.made_at(&range.prefix).await?;
        let others = self.siblings(range).await?;
        let earlier = others.into_iter().filter(|(_, made)| own.is_none_or(|own| *made < own));
        let refused = overlaps(earlier.map(|(prefix, _)| prefix).collect());
        if refused.is_err() {
            self.delete_range(&range.prefix).await?;
        }
        refused
    }

    /// The revision at which a range was made; `None` if it does not exist.
    async fn made_at(&self, prefix: &str) -> Result<Option<i64>, NetaddrError> {
        let answer = self.read(vec![get(RangeKeys::new(prefix).kind())]).await?;
        let kind = found(answer.responses.into_iter().next()).one();
        Ok(kind.map(|kv| kv.create_revision))
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

    /// Other ranges under the same path that have addresses of this one.
    ///
    /// Only the first key of each range is looked for, so it costs two requests for each of them, whatever they hold.
    pub(super) async fn overlapping(&self, wanted: &NewRange) -> Result<Vec<String>, NetaddrError> {
        Ok(self.siblings(wanted).await?.into_iter().map(|(prefix, _)| prefix).collect())
    }

    /// As [`Session::overlapping`], with the revision at which each was made.
    async fn siblings(&self, wanted: &NewRange) -> Result<Vec<(String, i64)>, NetaddrError> {
        let path = wanted.prefix.trim_end_matches('/');
        let Some((parent, _)) = path.rsplit_once('/') else { return Ok(Vec::new()) };
        let parent = format!("{parent}/").into_bytes();
        let (mut start, mut overlapping) = (parent.clone(), Vec::<(String, i64)>::new());
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
            if prefix == wanted.prefix || overlapping.iter().any(|(known, _)| *known == prefix) {
                continue;
            }
            let other = self.range(&prefix).await.ok().flatten();
            let meets = |other: &Info| {
                other.kind == wanted.kind && other.first <= wanted.last && wanted.first <= other.last
            };
            if other.as_ref().is_some_and(meets)
                && let Some(made) = self.made_at(&prefix).await?
            {
                overlapping.push((prefix, made));
            }
        }
        Ok(overlapping)
    }
}

/// The prefix of the range that a key is of.
fn prefix_of(key: &[u8]) -> Option<String> {
    let ends: [&[u8]; 6] =
        [b"data/nextaddr", b"data/address/", b"data/name/", b"data/planned/", b"data/pending/", b"info/"];
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
        assert_eq!(prefix_of(b"/ranges/lan/data/planned/\x0a").unwrap(), "/ranges/lan/");
        assert_eq!(prefix_of(b"/ranges/other"), None);
    }
}
