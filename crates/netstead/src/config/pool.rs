//! `[pool.NAME]`: a pool that is what the file says, and read-only elsewhere.

use std::collections::BTreeMap;

use netstead_model::{
    Address, Cidr, Family, Ident, Kind, Labels, MOST_RANGES, Order, PoolSpec, Range, Span, default_vrf,
    overlapping_pairs,
};

use super::{Problems, Section, ValueOrigin, tree::Table};

pub(super) const KEYS: &[&str] = &[
    "family",
    "vrf",
    "network",
    "ranges",
    "exclude",
    "gateway",
    "use_reserved",
    "length",
    "domain",
    "order",
    "cooldown",
    "cooldown_min",
    "sticky",
    "max_per_owner",
    "labels",
    "description",
];

/// The pool, unless what is written cannot be one.
pub(super) fn read(
    name: &str,
    place: &ValueOrigin,
    table: &Table,
    problems: &mut Problems,
) -> Option<PoolSpec> {
    let ident: Ident = problems.name(place, name, None)?;
    let path = format!("pool.{name}");
    let mut section = Section::new(&path, Some(table), KEYS, problems);
    let network: Option<Cidr> = section.parsed("network");
    let ranges: Vec<Range> = section.list("ranges");
    let asked = section.choice("family", &["ipv4", "ipv6", "mac", "prefix"]);
    let first = network.map(|network| network.kind()).or_else(|| ranges.first().map(Range::kind));
    let family = match (asked.map(str::parse), first) {
        (Some(Ok(family)), _) => family,
        (_, Some(Kind::V4)) => Family::Ipv4,
        (_, Some(Kind::V6)) => Family::Ipv6,
        (_, Some(Kind::Mac)) => Family::Mac,
        (_, None) => {
            if !table.entries.contains_key("network") && !table.entries.contains_key("ranges") {
                let hint = Some("give `ranges`, or a `network`".to_owned());
                problems.add(place, format!("{path} names no address"), hint);
            }
            return None;
        }
    };
    let mut spec = PoolSpec::new(ident, family);
    spec.network = network;
    spec.ranges = ranges;
    spec.exclude = section.list("exclude");
    spec.vrf = section.parsed("vrf").unwrap_or_else(default_vrf);
    spec.gateway = section.parsed::<Address>("gateway");
    spec.use_reserved = section.flag("use_reserved").unwrap_or(spec.use_reserved);
    spec.length = section.number("length", 0..=128);
    spec.domain = section.parsed("domain");
    spec.order = section.parsed::<Order>("order").unwrap_or(spec.order);
    spec.cooldown = section.parsed::<Span>("cooldown").unwrap_or(spec.cooldown);
    spec.cooldown_min = section.parsed::<Span>("cooldown_min").unwrap_or(spec.cooldown_min);
    spec.sticky = section.flag("sticky").unwrap_or(spec.sticky);
    spec.max_per_owner = section.number("max_per_owner", 1..=i64::from(u32::MAX));
    spec.description = section.text("description").map(str::to_owned);
    match Labels::new(section.pairs("labels")) {
        Ok(labels) => spec.labels = labels,
        Err(error) => section.wrong("labels", &error.to_string(), None),
    }
    if let Err(error) = spec.check() {
        section.wrong(error.field, &error.reason, None);
    }
    Some(spec)
}

/// So many overlaps are looked for in each VRF; one more than is told, so that it shows that there are more.
const MOST_OVERLAPS: usize = 1001;

/// What only shows when pools are seen side by side. A pool may lie inside a prefix pool, if that has a claim there.
pub(super) fn check_together(pools: &[(&ValueOrigin, PoolSpec)], problems: &mut Problems) {
    let mut groups: BTreeMap<(&Ident, bool), Vec<(usize, Vec<Range>)>> = BTreeMap::new();
    for (number, (_, spec)) in pools.iter().enumerate() {
        let extent = spec.extent();
        // More ranges than a pool may have are a problem of that pool alone.
        if extent.len() <= MOST_RANGES {
            let group = groups.entry((&spec.vrf, spec.family == Family::Prefix)).or_default();
            group.push((number, extent));
        }
    }
    let mut overlaps = Vec::new();
    for group in groups.values() {
        for (one, other) in
            overlapping_pairs(group.iter().map(|(_, extent)| extent.as_slice()), MOST_OVERLAPS)
        {
            // The later one is told to be in the way.
            let (Some((other, theirs)), Some((one, ours))) = (group.get(one), group.get(other)) else {
                continue;
            };
            let common = ours.iter().find_map(|one| theirs.iter().find_map(|two| one.intersect(*two)));
            overlaps.extend(common.map(|common| (*one, *other, common)));
        }
    }
    overlaps.sort_unstable();
    for (one, other, common) in overlaps {
        let (Some((place, spec)), Some((_, other))) = (pools.get(one), pools.get(other)) else { continue };
        let message = format!("pool.{} and pool.{} overlap at `{common}`", spec.name, other.name);
        problems.add(place, message, Some("give one of them another `vrf`, or other ranges".into()));
    }
}
