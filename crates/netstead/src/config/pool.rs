//! `[pool.NAME]`: a pool that is what the file says, and read-only elsewhere.

use std::collections::BTreeMap;

use netstead_model::{
    Address, Cidr, Family, Ident, Kind, Labels, MOST_RANGES, Name, Order, PoolSpec, Range, Span, Upstream,
    overlapping_pairs,
};
use netstead_settings::{
    Number, Parsed, Problems, Section, Settings as _, Table, ValueOrigin, choice, table,
};

use super::load_balancer::{KubernetesPool, LoadBalancerConfig};

table! {
    pub(super) struct PoolKeys {
        /// the network it lies in; all of it is handed out unless there are ranges
        network: Option<Cidr>, unset;
        /// what is handed out: `first-last`, a network or one address each
        ranges: Vec<Range>, unset "the network";
        /// what never is, in the same form
        exclude: Vec<Range>, unset "none";
        /// an address that never is either
        gateway: Option<Address>, unset;
        /// `ipv4`, `ipv6`, `mac`, `prefix`
        family: Option<FamilyWord>, unset "follows from the addresses; `prefix` must be said";
        /// length of a prefix when the claim names none (`prefix` only)
        length: Option<Number<0, 128>>, unset;
        /// hand out network and broadcast addresses too
        use_reserved: bool, default false;
        /// pools of one VRF never overlap
        vrf: Ident, default "default";
        /// of the names its claims get
        domain: Option<Name>, unset;
        /// which free address is handed out first: `lowest`, `next`, `random`, `freed-first`
        order: Parsed<Order>, default "lowest";
        /// how long a released address rests
        cooldown: Span, default "10m";
        /// how long at least, when nothing else is free
        cooldown_min: Span, default "1m";
        /// whether a key gets its address back while it rests
        sticky: bool, default true;
        /// the most one owner may hold
        max_per_owner: Option<Number<1, 4_294_967_295>>, unset "no limit";
        /// `{ site = "ams" }`
        labels: BTreeMap<String, String>, unset "none";
        /// what it is for
        description: Option<String>, unset;
        /// the table `[backend.NAME]` that its addresses come from; network, ranges and gateway follow from there
        backend: Option<Ident>, unset "the ledger hands them out itself";
        /// the pool as the backend calls it
        backend_pool: Option<String>, unset;
        /// Services of type `LoadBalancer` get their addresses from it:
        /// `{ load_balancer_class = "netstead.io/lan", grace = "5m" }`, of one cluster with `source = "NAME"`
        kubernetes: Option<KubernetesPool>, unset;
    }
}

choice! {
    /// The family of a pool.
    pub(super) enum FamilyWord {
        Ipv4 = "ipv4",
        Ipv6 = "ipv6",
        Mac = "mac",
        Prefix = "prefix",
    }
}

/// The pool, unless what is written cannot be one.
pub(super) fn read(
    name: &str,
    place: &ValueOrigin,
    table: &Table,
    problems: &mut Problems,
) -> Option<(PoolSpec, Option<LoadBalancerConfig>)> {
    let ident: Ident = problems.name(place, name, None)?;
    let path = format!("pool.{name}");
    let keys = PoolKeys::keys();
    let known: Vec<_> = keys.iter().map(|key| key.name).collect();
    let mut section = Section::new(&path, Some(table), &known, problems);
    let keys = PoolKeys::read(&mut section)?;
    if keys.backend.is_some() || keys.backend_pool.is_some() {
        if keys.kubernetes.is_some() {
            let hint = Some("leave out one of them");
            section.wrong("kubernetes", "a pool with a backend gives load balancers no addresses", hint);
        }
        return with_backend(&ident, &keys, &mut section).map(|spec| (spec, None));
    }
    let first = keys.network.map(|network| network.kind()).or_else(|| keys.ranges.first().map(Range::kind));
    let family = match (keys.family, first) {
        (Some(FamilyWord::Ipv4), _) | (None, Some(Kind::V4)) => Family::Ipv4,
        (Some(FamilyWord::Ipv6), _) | (None, Some(Kind::V6)) => Family::Ipv6,
        (Some(FamilyWord::Mac), _) | (None, Some(Kind::Mac)) => Family::Mac,
        (Some(FamilyWord::Prefix), _) => Family::Prefix,
        (None, None) => {
            if !table.entries.contains_key("network") && !table.entries.contains_key("ranges") {
                let hint = Some("give `ranges`, or a `network`".to_owned());
                problems.add(place, format!("{path} names no address"), hint);
            }
            return None;
        }
    };
    let mut spec = common(ident, family, &keys, &mut section);
    spec.network = keys.network;
    spec.ranges = keys.ranges;
    spec.exclude = keys.exclude;
    spec.gateway = keys.gateway;
    spec.use_reserved = keys.use_reserved;
    spec.order = keys.order.0;
    if let Err(error) = spec.check() {
        section.wrong(error.field, &error.reason, None);
    }
    if keys.kubernetes.is_some() && !matches!(family, Family::Ipv4 | Family::Ipv6) {
        section.wrong("kubernetes", "load balancers have IPv4 and IPv6 addresses", Some("leave it out"));
        return None;
    }
    let balancer = keys.kubernetes.map(|kubernetes| kubernetes.of_pool(spec.name.clone(), family));
    Some((spec, balancer))
}

/// The keys that pools with and without a backend have.
fn common(name: Ident, family: Family, keys: &PoolKeys, section: &mut Section<'_, '_>) -> PoolSpec {
    let mut spec = PoolSpec::new(name, family);
    spec.vrf = keys.vrf.clone();
    spec.length = keys.length.map(Number::get);
    spec.domain.clone_from(&keys.domain);
    spec.cooldown = keys.cooldown;
    spec.cooldown_min = keys.cooldown_min;
    spec.sticky = keys.sticky;
    spec.max_per_owner = keys.max_per_owner.map(Number::get);
    spec.description.clone_from(&keys.description);
    match Labels::new(keys.labels.clone()) {
        Ok(labels) => spec.labels = labels,
        Err(error) => section.wrong("labels", &error.to_string(), None),
    }
    spec
}

/// A pool with a backend. The backend says its family, network and ranges when the pool is made.
fn with_backend(name: &Ident, keys: &PoolKeys, section: &mut Section<'_, '_>) -> Option<PoolSpec> {
    let (backend, pool) = match (&keys.backend, &keys.backend_pool) {
        (Some(backend), Some(pool)) => (backend.clone(), pool.clone()),
        (Some(_), None) => {
            section.wrong("backend", "it says not which pool", Some("add `backend_pool`"));
            return None;
        }
        (None, _) => {
            section.wrong("backend_pool", "it says not whose", Some("add `backend`"));
            return None;
        }
    };
    for key in ["family", "network", "ranges", "exclude", "gateway", "use_reserved", "order"] {
        if section.origin_of(key).is_some() {
            section.wrong(key, "the backend decides it", Some("leave it out"));
        }
    }
    let mut spec = common(name.clone(), Family::Ipv4, keys, section);
    let (owner, installations) = (String::new(), Vec::new());
    spec.upstream = Some(Box::new(Upstream { backend, pool, owner, installations }));
    Some(spec)
}

/// The place of a pool in the file, and the ranges that it covers.
type NumberedExtent = (usize, Vec<Range>);

/// So many overlaps are looked for in each VRF; one more than is told, so that it shows that there are more.
const MOST_OVERLAPS: usize = 1001;

/// Finds pools that overlap. A pool may lie inside a prefix pool, if that has a claim there.
pub(super) fn check_together(pools: &[(&ValueOrigin, PoolSpec)], problems: &mut Problems) {
    let mut groups: BTreeMap<(&Ident, bool), Vec<NumberedExtent>> = BTreeMap::new();
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
