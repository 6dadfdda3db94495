//! Pools of the networks and ranges of a VRF. Pools never overlap, so one has what the smaller ones in it leave over.

use std::collections::BTreeMap;

use netstead_model::{Address, Cidr, Family, Ident, Kind, PoolSpec, Range};
use netstead_providers::ipam_contents::{AddressUse, IpamRow};

use super::{
    ImportPlan, ImportedPool, LeftOut, Selection, claims, naming, networks::Networks, networks::Part,
};

/// The characters of a description.
const DESCRIPTION: usize = 1000;

/// Addresses by the number of the part that they belong to.
type Rows<'a> = BTreeMap<usize, Vec<&'a IpamRow>>;

impl Networks<'_> {
    /// Puts the pools of all parts into the plan.
    pub(super) fn pools(&self, vrf: &Ident, rows: &Rows<'_>, wanted: &Selection, plan: &mut ImportPlan) {
        for (number, part) in self.parts.iter().enumerate() {
            let own: &[&IpamRow] = rows.get(&number).map_or(&[], Vec::as_slice);
            let networks = part.inner.iter().filter_map(|inner| self.parts.get(*inner)?.network);
            let smallest = networks.map(|inner| inner.network).next();
            if let Some(inner) = smallest.filter(|_| own.is_empty()) {
                let why = format!("it holds {inner}, which is a pool of its own, and no address beside");
                plan.left_out.push(LeftOut::by_design(self.shown(part), why));
                continue;
            }
            let otherwise =
                format!("{}-{}", if part.network.is_some() { self.system.network } else { "range" }, part.id);
            let network = part.network.map(|one| one.network);
            let Some(name) = naming::pool(vrf, network, part.extent, &otherwise) else {
                plan.left_out.push(LeftOut::refused(self.shown(part), "no pool can be called after it"));
                continue;
            };
            let spec = self.spec(name, vrf, part, own, rows);
            if own.is_empty() && !part.inner.is_empty() && spec.usable().is_empty() {
                let why = "the ranges in it have all of it";
                plan.left_out.push(LeftOut::by_design(self.shown(part), why));
                continue;
            }
            if let Err(error) = spec.check() {
                plan.left_out.push(LeftOut::refused(self.shown(part), error.to_string()));
                let lost = own.iter().map(|row| LeftOut::refused(super::shown(row), "its pool is left out"));
                plan.left_out.extend(lost);
                continue;
            }
            let claims = claims::of_rows(&spec, own, self.system, wanted, &mut plan.left_out);
            plan.pools.push(ImportedPool { spec, from: self.shown(part), claims });
        }
    }

    fn spec(&self, name: Ident, vrf: &Ident, part: &Part<'_>, own: &[&IpamRow], rows: &Rows<'_>) -> PoolSpec {
        let v6 = part.extent.kind() == Kind::V6;
        let mut spec = PoolSpec::new(name, if v6 { Family::Ipv6 } else { Family::Ipv4 });
        spec.vrf = vrf.clone();
        let outer = part.parent.and_then(|parent| self.parts.get(parent)?.network);
        spec.network = match part.network {
            Some(own) => Some(own.network),
            None => outer.map(|outer| outer.network).or(part.mask),
        };
        let flag =
            |one: Option<&netstead_providers::ipam_contents::IpamNetwork>| one.is_some_and(|one| one.is_pool);
        spec.use_reserved = flag(part.network) || part.network.is_none() && flag(outer);
        let inner = part.inner.iter().filter_map(|inner| self.parts.get(*inner));
        let holes: Vec<Range> = inner.map(|inner| inner.extent).collect();
        if part.network.is_none() || !holes.is_empty() {
            spec.ranges = without(part.extent, &holes);
        }
        spec.gateway = self.gateway(part, own, rows, spec.network);
        let kept_back =
            own.iter().filter(|row| row.usage != AddressUse::Held && Some(row.address) != spec.gateway);
        let mut exclude: Vec<Range> = kept_back.map(|row| Range::single(row.address)).collect();
        exclude.extend(self.closed.iter().filter_map(|closed| closed.intersect(part.extent)));
        // What lies in a smaller pool is no concern of this one.
        exclude = exclude.into_iter().flat_map(|range| without(range, &holes)).collect();
        spec.exclude = Range::joined(exclude);
        let from = format!("{} of {}", self.shown(part), self.system.name);
        let said = part.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = if said.is_empty() { from } else { format!("{said} ({from})") };
        spec.description = Some(text.chars().take(DESCRIPTION).collect());
        spec
    }

    /// The gateway of a part: the lowest of its own, or that of the network around a range, or that in a range of a network.
    fn gateway(
        &self,
        part: &Part<'_>,
        own: &[&IpamRow],
        rows: &Rows<'_>,
        network: Option<Cidr>,
    ) -> Option<Address> {
        let lowest = |rows: &[&IpamRow]| {
            let gateways = rows.iter().filter(|row| row.usage == AddressUse::Gateway);
            gateways.map(|row| row.address).min()
        };
        let of = |number: &usize| rows.get(number).and_then(|rows| lowest(rows));
        let near = if part.network.is_none() {
            part.parent.as_ref().and_then(of)
        } else {
            let is_range =
                |inner: &&usize| self.parts.get(**inner).is_some_and(|part| part.network.is_none());
            part.inner.iter().filter(is_range).find_map(of)
        };
        lowest(own).or(near).filter(|gateway| network.is_none_or(|network| network.contains(*gateway)))
    }
}

/// A range without others.
fn without(range: Range, holes: &[Range]) -> Vec<Range> {
    holes.iter().fold(vec![range], |left, hole| left.into_iter().flat_map(|one| one.without(*hole)).collect())
}
