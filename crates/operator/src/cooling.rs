//! [`Cooling`]: released addresses that rest before they are given out again.
//!
//! They are kept in an annotation of the pool: a status does not survive `clusterctl move`, and the definitions of the in-cluster
//! provider would drop a field that they do not know.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use netstead_model::Address;

/// More would not fit: annotations of an object have 256 KiB together. Those that have rested longest give way.
const MOST: usize = 4000;

/// Addresses with the second at which their rest ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cooling {
    until: BTreeMap<Address, i64>,
    order: BTreeSet<(i64, Address)>,
}

impl Cooling {
    /// Reads `10.0.0.5=1790000000,10.0.0.9=1790000007`. What cannot be read is left out: the rest of one address is no reason to
    /// stop a pool.
    pub(crate) fn parse(text: &str) -> Self {
        let mut cooling = Self::default();
        for (address, until) in text.split(',').filter_map(|part| part.trim().split_once('=')) {
            if let (Ok(address), Ok(until)) = (address.parse(), until.parse()) {
                cooling.insert(address, until);
            }
        }
        cooling
    }

    pub(crate) fn text(&self) -> String {
        let parts: Vec<String> =
            self.until.iter().map(|(address, until)| format!("{address}={until}")).collect();
        parts.join(",")
    }

    /// Lets an address rest. Returns one whose rest ends early for lack of room.
    pub(crate) fn insert(&mut self, address: Address, until: i64) -> Option<Address> {
        self.remove(address);
        self.until.insert(address, until);
        self.order.insert((until, address));
        if self.until.len() <= MOST {
            return None;
        }
        let (_, first) = self.order.pop_first()?;
        self.until.remove(&first);
        Some(first)
    }

    pub(crate) fn remove(&mut self, address: Address) {
        if let Some(until) = self.until.remove(&address) {
            self.order.remove(&(until, address));
        }
    }

    pub(crate) fn until(&self, address: Address) -> Option<i64> {
        self.until.get(&address).copied()
    }

    /// The addresses whose rest is over; they are removed.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<Address> {
        let mut over = Vec::new();
        while let Some((until, address)) = self.order.first().copied()
            && until <= now.as_second()
        {
            self.remove(address);
            over.push(address);
        }
        over
    }

    /// When the next rest ends.
    pub(crate) fn next(&self) -> Option<i64> {
        self.order.first().map(|(until, _)| *until)
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = Address> + '_ {
        self.until.keys().copied()
    }

    /// Whether all of these are among them, with the same end.
    pub(crate) fn has_all_of(&self, others: &Self) -> bool {
        others.until.iter().all(|(address, until)| self.until.get(address) == Some(until))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.until.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn it_reads_what_it_writes_and_leaves_out_what_it_cannot_read() {
        let cooling = Cooling::parse("10.0.0.9=107, 10.0.0.5=100,x=3,10.0.0.7=soon,fd00::1=105");
        assert_eq!(cooling.text(), "10.0.0.5=100,10.0.0.9=107,fd00::1=105");
        assert_eq!(Cooling::parse(&cooling.text()), cooling);
    }

    #[test]
    fn a_rest_ends_with_its_second() {
        let mut cooling = Cooling::parse("10.0.0.9=107,10.0.0.5=100");
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(cooling.expire(at(99)), []);
        assert_eq!((cooling.next(), cooling.until(ip("10.0.0.5"))), (Some(100), Some(100)));
        assert_eq!(cooling.expire(at(100)), [ip("10.0.0.5")]);
        assert_eq!(cooling.text(), "10.0.0.9=107");
    }

    #[test]
    fn it_fits_into_an_annotation() {
        let mut cooling = Cooling::default();
        for number in 0..=u32::try_from(MOST).unwrap() {
            let address = Address::from(std::net::IpAddr::from(std::net::Ipv6Addr::from(
                u128::MAX - u128::from(number),
            )));
            let early = cooling.insert(address, 1_790_000_000 + i64::from(number));
            assert_eq!(early.is_some(), number as usize == MOST);
        }
        assert!(cooling.text().len() < 240 * 1024);
    }
}
