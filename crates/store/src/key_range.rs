//! The keys that a range call means, as bounds of an ordered map.

use std::ops::Bound;

use crate::{Key, MAX_KEY_BYTES};

/// The bounds of one range call; never empty, so that no map has to be asked for nothing.
pub(crate) type KeyRange = (Bound<Key>, Bound<Key>);

/// The keys with `prefix` that are greater than `after`, or `None` when there can be none.
pub(crate) fn forward(prefix: &[u8], after: Option<&[u8]>) -> Option<KeyRange> {
    if prefix.len() > MAX_KEY_BYTES {
        return None;
    }
    let end = end_of(prefix);
    let start = match after.map(clip) {
        Some(after) if after >= prefix => {
            if matches!(&end, Bound::Excluded(end) if after >= end.as_slice()) {
                return None;
            }
            Bound::Excluded(after.to_vec())
        }
        _ => Bound::Included(prefix.to_vec()),
    };
    Some((start, end))
}

/// The keys with `prefix` that are less than `before`, or `None` when there can be none.
pub(crate) fn backward(prefix: &[u8], before: Option<&[u8]>) -> Option<KeyRange> {
    if prefix.len() > MAX_KEY_BYTES {
        return None;
    }
    let end = match (before.map(clip), end_of(prefix)) {
        (Some(before), _) if before <= prefix => return None,
        (Some(before), Bound::Excluded(end)) if end.as_slice() <= before => Bound::Excluded(end),
        (Some(before), _) => Bound::Excluded(before.to_vec()),
        (None, end) => end,
    };
    Some((Bound::Included(prefix.to_vec()), end))
}

/// An edge longer than any key can be, cut to where every key still lies on the same side of it.
fn clip(edge: &[u8]) -> &[u8] {
    edge.get(..=MAX_KEY_BYTES).unwrap_or(edge)
}

/// The first key past all that start with `prefix`: the last byte that can grow does, the rest goes.
fn end_of(prefix: &[u8]) -> Bound<Key> {
    after_all(prefix).map_or(Bound::Unbounded, Bound::Excluded)
}

/// As [`end_of`]; `None` when no key is past them.
pub(crate) fn after_all(prefix: &[u8]) -> Option<Key> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All keys of up to three bytes out of an alphabet with both edges.
    fn keys() -> BTreeSet<Key> {
        let mut keys = BTreeSet::from([vec![]]);
        for _ in 0..3 {
            for key in keys.clone() {
                for byte in [0, 1, 0xfe, 0xff] {
                    keys.insert([key.as_slice(), &[byte]].concat());
                }
            }
        }
        keys.retain(|key| key.len() <= 3);
        keys
    }

    #[test]
    fn spans_agree_with_a_filter_over_all_keys() {
        let keys = keys();
        for prefix in &keys {
            for edge in keys.iter().map(Some).chain([None]) {
                let edge = edge.map(Vec::as_slice);
                let wanted = keys
                    .iter()
                    .filter(|key| key.starts_with(prefix) && edge.is_none_or(|e| key.as_slice() > e));
                let got = forward(prefix, edge).map(|span| keys.range(span).collect::<Vec<_>>());
                assert_eq!(got.unwrap_or_default(), wanted.collect::<Vec<_>>(), "{prefix:?} after {edge:?}");

                let wanted = keys
                    .iter()
                    .filter(|key| key.starts_with(prefix) && edge.is_none_or(|e| key.as_slice() < e));
                let got = backward(prefix, edge).map(|span| keys.range(span).collect::<Vec<_>>());
                assert_eq!(got.unwrap_or_default(), wanted.collect::<Vec<_>>(), "{prefix:?} before {edge:?}");
            }
        }
    }
}
