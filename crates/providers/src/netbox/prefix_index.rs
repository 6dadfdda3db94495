//! [`PrefixIndex`]: the longest prefix that holds an address.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use netstead_model::{Address, Cidr, Kind};

use super::{Row, id_of, rows::text_of};

/// A prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) id: u64,
    pub(crate) cidr: Cidr,
    /// The id of the VLAN that it is on.
    pub(crate) vlan: Option<u64>,
    /// Network and broadcast address are handed out, too.
    pub(crate) is_pool: bool,
    /// It holds prefixes, no addresses.
    pub(crate) is_container: bool,
    /// The id of its VRF.
    pub(crate) vrf: Option<u64>,
    pub(crate) description: String,
}

impl Prefix {
    pub(crate) fn read(row: &Row) -> Option<Self> {
        Some(Self {
            id: id_of(row, "id")?,
            cidr: text_of(row, "prefix").parse().ok()?,
            vlan: id_of(row, "vlan"),
            is_pool: row.get("is_pool").and_then(serde_json::Value::as_bool).unwrap_or_default(),
            is_container: super::choice(row, "status") == "container",
            vrf: id_of(row, "vrf"),
            description: text_of(row, "description"),
        })
    }
}

/// Prefixes by length and network, so that a look costs one step for each length.
#[derive(Debug, Default)]
pub(crate) struct PrefixIndex(BTreeMap<(Kind, Reverse<u8>), HashMap<Address, Prefix>>);

impl PrefixIndex {
    /// Of two prefixes with one network the older counts.
    pub(crate) fn new(prefixes: impl IntoIterator<Item = Prefix>) -> Self {
        let mut index = Self::default();
        for prefix in prefixes {
            let at = (prefix.cidr.kind(), Reverse(prefix.cidr.len()));
            let same =
                index.0.entry(at).or_default().entry(prefix.cidr.network()).or_insert_with(|| prefix.clone());
            if prefix.id < same.id {
                *same = prefix;
            }
        }
        index
    }

    pub(crate) fn longest(&self, address: Address) -> Option<&Prefix> {
        let kind = address.kind();
        let lengths = self.0.range((kind, Reverse(u8::MAX))..=(kind, Reverse(0)));
        lengths
            .map(|((_, Reverse(length)), all)| (length, all))
            .find_map(|(length, all)| all.get(&Cidr::containing(address, *length).ok()?.network()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_counts_and_of_two_the_older() {
        let prefix = |id: u64, cidr: &str| Prefix {
            id,
            cidr: cidr.parse().unwrap(),
            vlan: None,
            is_pool: false,
            is_container: false,
            vrf: None,
            description: String::new(),
        };
        let all = [
            prefix(1, "10.0.0.0/8"),
            prefix(9, "10.0.3.0/24"),
            prefix(2, "10.0.3.0/24"),
            prefix(3, "10.0.3.64/26"),
            prefix(4, "fd00::/64"),
            prefix(5, "::/0"),
        ];
        let index = PrefixIndex::new(all);
        let longest = |text: &str| index.longest(text.parse().unwrap()).map(|prefix| prefix.id);
        assert_eq!(longest("10.0.3.70"), Some(3));
        assert_eq!(longest("10.0.3.7"), Some(2));
        assert_eq!(longest("10.9.9.9"), Some(1));
        assert_eq!(longest("192.0.2.1"), None);
        assert_eq!((longest("fd00::1"), longest("2001:db8::1")), (Some(4), Some(5)));
    }
}
