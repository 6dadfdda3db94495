//! Sets of names: some domains, and the reverse names of some addresses.

use crate::{Name, Range, record::range_of_reverse};

/// Domains with everything below them, and the reverse names of addresses.
///
/// `10.0.3.0/24` brings `7.3.0.10.in-addr.arpa` and the name of the whole network, `3.0.10.in-addr.arpa`, and nothing that
/// is merely below one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameSet {
    domains: Vec<Name>,
    /// Disjoint and in order; ranges that touch are one.
    addresses: Vec<Range>,
}

impl NameSet {
    pub fn new(mut domains: Vec<Name>, addresses: Vec<Range>) -> Self {
        domains.sort_unstable();
        domains.dedup();
        Self { domains, addresses: Range::joined(addresses) }
    }

    /// The domains, in order.
    pub fn domains(&self) -> &[Name] {
        &self.domains
    }

    pub fn contains(&self, name: &Name) -> bool {
        let of_addresses = |range: Range| self.addresses.iter().any(|own| own.contains_range(range));
        self.domains.iter().any(|domain| name.is_subdomain_of(domain))
            || range_of_reverse(name).is_some_and(of_addresses)
    }

    /// Whether a name of the set may be at `zone` or below it.
    pub fn meets(&self, zone: &Name) -> bool {
        let of_addresses = |range: Range| self.addresses.iter().any(|own| own.overlaps(range));
        self.domains.iter().any(|domain| domain.is_subdomain_of(zone) || zone.is_subdomain_of(domain))
            || range_of_reverse(zone).is_some_and(of_addresses)
    }
}
