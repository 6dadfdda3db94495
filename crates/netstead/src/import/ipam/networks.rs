//! [`Networks`]: the networks and ranges of one VRF, each in the smallest that holds it.

use std::{cmp::Reverse, collections::BTreeMap};

use netstead_model::{Address, Cidr, Kind, Range};
use netstead_providers::ipam_contents::{IpamContents, IpamNetwork, IpamRange, IpamRow, NetworkUse};

use super::{ImportPlan, LeftOut, System};

/// A network or a range that may become a pool.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) id: u64,
    pub(super) extent: Range,
    /// None for a range.
    pub(super) network: Option<&'a IpamNetwork>,
    /// The network that the mask of a range says.
    pub(super) mask: Option<Cidr>,
    pub(super) description: &'a str,
    /// The number of the smallest other part that holds it.
    pub(super) parent: Option<usize>,
    /// The numbers of the parts that are in no smaller one.
    pub(super) inner: Vec<usize>,
}

/// The parts of one VRF, in the order of their first addresses, an outer one before those in it.
#[derive(Debug)]
pub(super) struct Networks<'a> {
    pub(super) system: System,
    pub(super) parts: Vec<Part<'a>>,
    /// Addresses that are never handed out: of networks and ranges that are closed, or held as a whole.
    pub(super) closed: Vec<Range>,
    /// The numbers of networks by their id.
    by_id: BTreeMap<u64, usize>,
}

impl<'a> Networks<'a> {
    /// Sorts the networks and ranges of a VRF. What cannot be a pool goes to the plan with the reason.
    pub(super) fn sort(
        contents: &'a IpamContents,
        vrf: Option<u64>,
        system: System,
        plan: &mut ImportPlan,
    ) -> Self {
        let mut closed = Vec::new();
        let networks = contents.networks.iter().filter(|one| one.vrf.as_ref().map(|vrf| vrf.id) == vrf);
        let networks: Vec<&IpamNetwork> = networks
            .filter(|one| {
                let what = format!("{} {}", system.network, one.network);
                is_open(&what, one.usage, one.ours, one.network.into(), &mut closed, plan)
            })
            .collect();
        let ranges = contents.ranges.iter().filter(|one| one.vrf.as_ref().map(|vrf| vrf.id) == vrf);
        let ranges: Vec<&IpamRange> = ranges
            .filter(|one| {
                let what = format!("range {}", ends(one.range));
                is_open(&what, one.usage, one.ours, one.range, &mut closed, plan)
            })
            .collect();
        let networks = each_once(networks, system, plan);
        let ranges = apart(ranges, &networks, plan);
        let mut parts: Vec<Part<'a>> = Vec::with_capacity(networks.len() + ranges.len());
        parts.extend(networks.into_values().map(|one| Part {
            id: one.id,
            extent: one.network.into(),
            network: Some(one),
            mask: None,
            description: &one.description,
            parent: None,
            inner: Vec::new(),
        }));
        parts.extend(ranges.into_iter().map(|one| Part {
            id: one.id,
            extent: one.range,
            network: None,
            mask: one.network,
            description: &one.description,
            parent: None,
            inner: Vec::new(),
        }));
        // Of one extent the network is the outer one.
        parts.sort_by_key(|part| (part.extent.first(), Reverse(part.extent.last()), part.network.is_none()));
        let numbered = parts.iter().enumerate().filter(|(_, part)| part.network.is_some());
        let by_id = numbered.map(|(number, part)| (part.id, number)).collect();
        Self { system, parts: nested(parts), closed: Range::joined(closed), by_id }
    }

    /// The part that an address belongs to: the one that the system says, or the smallest that holds it.
    pub(super) fn holding(&self, row: &IpamRow) -> Option<usize> {
        if let Some(id) = row.network {
            return self.by_id.get(&id).copied();
        }
        let behind = self.parts.partition_point(|part| part.extent.first() <= row.address);
        let mut at = behind.checked_sub(1);
        while let Some(number) = at {
            let part = self.parts.get(number)?;
            if part.extent.contains(row.address) {
                return Some(number);
            }
            at = part.parent;
        }
        None
    }

    /// `prefix 10.0.3.0/24`.
    pub(super) fn shown(&self, part: &Part<'_>) -> String {
        match part.network {
            Some(one) => format!("{} {}", self.system.network, one.network),
            None => format!("range {}", ends(part.extent)),
        }
    }
}

/// A range as both of its ends, also where it is a network.
pub(super) fn ends(range: Range) -> String {
    format!("{}-{}", range.first(), range.last())
}

/// Whether something may be handed out of it. Otherwise it is noted, and its addresses are closed for what is around it.
fn is_open(
    what: &str,
    usage: NetworkUse,
    ours: bool,
    range: Range,
    closed: &mut Vec<Range>,
    plan: &mut ImportPlan,
) -> bool {
    if ours {
        plan.own += 1;
        closed.push(range);
        return false;
    }
    match usage {
        NetworkUse::Active => true,
        NetworkUse::Container => {
            plan.left_out.push(LeftOut::by_design(what, "it is a container"));
            false
        }
        NetworkUse::Closed(why) => {
            closed.push(range);
            plan.left_out.push(LeftOut::by_design(what, format!("it is {why}")));
            false
        }
    }
}

/// The networks, of two that are the same the older one.
fn each_once<'a>(
    mut networks: Vec<&'a IpamNetwork>,
    system: System,
    plan: &mut ImportPlan,
) -> BTreeMap<Cidr, &'a IpamNetwork> {
    networks.sort_by_key(|one| one.id);
    let mut kept: BTreeMap<Cidr, &IpamNetwork> = BTreeMap::new();
    for one in networks {
        if let Some(other) = kept.get(&one.network) {
            let what = format!("{} {} with the id {}", system.network, one.network, one.id);
            let why =
                format!("the one with the id {} is the same, and pools of one VRF never overlap", other.id);
            plan.left_out.push(LeftOut::refused(what, why));
        } else {
            kept.insert(one.network, one);
        }
    }
    kept
}

/// The ranges that overlap neither each other nor a part of a network.
fn apart<'a>(
    mut ranges: Vec<&'a IpamRange>,
    networks: &BTreeMap<Cidr, &IpamNetwork>,
    plan: &mut ImportPlan,
) -> Vec<&'a IpamRange> {
    let lengths: std::collections::BTreeSet<(Kind, u8)> =
        networks.keys().map(|network| (network.kind(), network.len())).collect();
    let around = |address: Address| {
        let of_kind = lengths.iter().filter(move |(kind, _)| *kind == address.kind());
        of_kind.filter_map(move |(_, length)| Cidr::containing(address, *length).ok())
    };
    ranges.sort_by_key(|one| (one.range, one.id));
    let mut kept: Vec<&IpamRange> = Vec::new();
    for one in ranges {
        let (range, what) = (one.range, format!("range {}", ends(one.range)));
        let is_cut = |network: &Cidr| {
            let inside = range.contains_range((*network).into());
            let outside = network.contains(range.first()) && network.contains(range.last());
            networks.contains_key(network) && !inside && !outside
        };
        let cut = around(range.first()).chain(around(range.last())).find(is_cut);
        let before = kept.last().filter(|before| before.range.overlaps(range));
        let other = cut.map(|network| network.to_string()).or_else(|| before.map(|one| ends(one.range)));
        match other {
            Some(other) => {
                let why = format!("it overlaps {other}, and pools of one VRF never do");
                plan.left_out.push(LeftOut::refused(what, why));
            }
            None => kept.push(one),
        }
    }
    kept
}

/// Gives each part its parent and its inner parts. They are in order, and either apart or one in the other.
fn nested(mut parts: Vec<Part<'_>>) -> Vec<Part<'_>> {
    let mut open: Vec<(usize, Range)> = Vec::new();
    let mut parents = Vec::with_capacity(parts.len());
    for (number, part) in parts.iter().enumerate() {
        while open.last().is_some_and(|(_, outer)| !outer.contains_range(part.extent)) {
            open.pop();
        }
        parents.push(open.last().map(|(number, _)| *number));
        open.push((number, part.extent));
    }
    for (number, parent) in parents.into_iter().enumerate() {
        if let Some(part) = parts.get_mut(number) {
            part.parent = parent;
        }
        if let Some(outer) = parent.and_then(|parent| parts.get_mut(parent)) {
            outer.inner.push(number);
        }
    }
    parts
}
