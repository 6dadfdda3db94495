//! Sets of names: some domains, and the reverse names of some addresses.

use crate::{Name, Range, record::range_of_reverse};

/// Domains with everything below them, and the reverse names of addresses.
///
/// A domain that lies within one of them may be left out. `10.0.3.0/24` brings `7.3.0.10.in-addr.arpa` and the name of the
/// whole network, `3.0.10.in-addr.arpa`, and nothing that is merely below one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameSet {
    domains: Vec<Name>,
    left_out: Vec<Name>,
    /// Disjoint and in order; ranges that touch are one.
    addresses: Vec<Range>,
}

impl NameSet {
    pub fn new(mut domains: Vec<Name>, addresses: Vec<Range>) -> Self {
        domains.sort_unstable();
        domains.dedup();
        Self { domains, left_out: Vec::new(), addresses: Range::joined(addresses) }
    }

    /// The set without the names in these domains. Of two domains around a name the longer one decides, and between equals
    /// the name stays.
    #[must_use]
    pub fn without(self, mut left_out: Vec<Name>) -> Self {
        left_out.sort_unstable();
        left_out.dedup();
        Self { left_out, ..self }
    }

    /// The domains, in order.
    pub fn domains(&self) -> &[Name] {
        &self.domains
    }

    pub fn contains(&self, name: &Name) -> bool {
        let of_addresses = |range: Range| self.addresses.iter().any(|own| own.contains_range(range));
        self.is_in_a_domain(name) || range_of_reverse(name).is_some_and(of_addresses)
    }

    /// Whether a name is in the set because of its domains.
    pub fn is_in_a_domain(&self, name: &Name) -> bool {
        let longest = |domains: &[Name]| {
            let around = domains.iter().filter(|domain| name.is_subdomain_of(domain));
            around.map(|domain| domain.as_str().len()).max()
        };
        longest(&self.domains).is_some_and(|own| longest(&self.left_out).is_none_or(|other| own >= other))
    }

    /// Whether every name at `zone` or below it is in the set.
    pub fn contains_all_below(&self, zone: &Name) -> bool {
        let hole = |domain: &Name| domain.is_subdomain_of(zone) && !self.is_in_a_domain(domain);
        self.contains(zone) && !self.left_out.iter().any(hole)
    }

    /// Whether a name of the set may be at `zone` or below it.
    pub fn meets(&self, zone: &Name) -> bool {
        let of_addresses = |range: Range| self.addresses.iter().any(|own| own.overlaps(range));
        self.is_in_a_domain(zone)
            || self.domains.iter().any(|domain| domain.is_subdomain_of(zone))
            || range_of_reverse(zone).is_some_and(of_addresses)
    }
}
