//! The pools the random commands are about: small, so that they fill, and side by side or inside each other, so that
//! they get in each other's way.

use netstead_model::{Address, Family, Ident, Labels, Order, PoolSpec, Span};
use proptest::prelude::*;

/// The choices for a random pool: each number picks one of a few.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    form: usize,
    order: Order,
    cooldown: u64,
    cooldown_min: u64,
    sticky: bool,
    max_per_owner: Option<u32>,
    site: u8,
}

pub(crate) fn shape() -> impl Strategy<Value = Shape> {
    let order = prop_oneof![
        3 => Just(Order::Lowest),
        2 => Just(Order::Next),
        1 => Just(Order::Random),
        2 => Just(Order::FreedFirst)
    ];
    let times =
        prop::sample::select(vec![(0, 60), (0, 60), (600, 60), (600, 60), (60, 0), (30, 60), (120, 120)]);
    let most = prop::sample::select(vec![None, None, None, Some(2), Some(4)]);
    (0usize..5, order, times, prop::bool::weighted(0.7), most, 0u8..3).prop_map(
        |(form, order, (cooldown, cooldown_min), sticky, max_per_owner, site)| Shape {
            form,
            order,
            cooldown,
            cooldown_min,
            sticky,
            max_per_owner,
            site,
        },
    )
}

/// A pool in which what is released rests, and comes back.
pub(crate) fn resting_shape() -> impl Strategy<Value = Shape> {
    shape().prop_map(|shape| Shape {
        order: Order::Lowest,
        cooldown: 600,
        cooldown_min: 60,
        sticky: true,
        max_per_owner: None,
        ..shape
    })
}

struct PoolTemplate {
    name: &'static str,
    family: Family,
    vrf: &'static str,
    /// Where exact claims, reservations and sightings count from.
    base: &'static str,
    /// Network, ranges, exclusions, gateway, length.
    forms: [PoolForm; 5],
}

type PoolForm = (&'static str, &'static [&'static str], &'static [&'static str], &'static str, Option<u8>);

const POOL_TEMPLATES: [PoolTemplate; 10] = [
    PoolTemplate {
        name: "lan",
        family: Family::Ipv4,
        vrf: "default",
        base: "10.0.0.0",
        forms: [
            ("10.0.0.0/28", &["10.0.0.4-10.0.0.9"], &[], "10.0.0.1", None),
            ("10.0.0.0/29", &[], &[], "10.0.0.1", None),
            ("10.0.0.0/28", &[], &["10.0.0.3-10.0.0.8"], "10.0.0.9", None),
            ("", &["10.0.0.2-10.0.0.5", "10.0.0.6-10.0.0.7", "10.0.0.10"], &["10.0.0.3"], "", None),
            ("10.0.0.0/27", &["10.0.0.0/30", "10.0.0.14-10.0.0.18"], &[], "", None),
        ],
    },
    PoolTemplate {
        name: "dmz",
        family: Family::Ipv4,
        vrf: "default",
        base: "10.0.0.8",
        forms: [
            ("", &["10.0.0.16-10.0.0.20"], &[], "", None),
            ("", &["10.0.0.16-10.0.0.20"], &["10.0.0.17"], "10.0.0.18", None),
            ("", &["10.0.0.8-10.0.0.13"], &[], "", None),
            ("", &["10.0.0.16/29"], &[], "", None),
            ("10.0.0.16/30", &[], &[], "", None),
        ],
    },
    PoolTemplate {
        name: "far",
        family: Family::Ipv4,
        vrf: "red",
        base: "10.0.0.0",
        forms: [
            ("10.0.0.0/29", &[], &[], "", None),
            ("10.0.0.0/28", &["10.0.0.2-10.0.0.6"], &[], "10.0.0.3", None),
            ("", &["10.0.0.0-10.0.0.4"], &[], "", None),
            ("10.0.0.0/30", &[], &[], "", None),
            ("", &["10.0.0.4-10.0.0.9"], &["10.0.0.6-10.0.0.7"], "", None),
        ],
    },
    PoolTemplate {
        name: "six",
        family: Family::Ipv6,
        vrf: "default",
        base: "fd00::",
        forms: [
            ("fd00::/125", &[], &[], "fd00::1", None),
            ("fd00::/124", &["fd00::3-fd00::9"], &["fd00::5"], "", None),
            ("", &["fd00::/126", "fd00::8-fd00::b"], &[], "", None),
            ("fd00::/64", &["fd00::1-fd00::6"], &[], "fd00::4", None),
            ("", &["fd00::2-fd00::8"], &[], "", None),
        ],
    },
    PoolTemplate {
        name: "macs",
        family: Family::Mac,
        vrf: "default",
        base: "52:54:00:00:00:00",
        forms: [
            ("", &["52:54:00:00:00:00-52:54:00:00:00:06"], &[], "", None),
            ("52:54:00:00:00:00/45", &[], &["52:54:00:00:00:02"], "", None),
            ("", &["52:54:00:00:00:03-52:54:00:00:00:08", "52:54:00:00:00:09"], &[], "", None),
            ("", &["52:54:00:00:00:00/46", "52:54:00:00:00:0a"], &[], "", None),
            ("", &["52:54:00:00:00:01-52:54:00:00:00:05"], &[], "", None),
        ],
    },
    PoolTemplate {
        name: "sites",
        family: Family::Prefix,
        vrf: "default",
        base: "10.1.0.0",
        forms: [
            ("10.1.0.0/25", &[], &[], "", Some(28)),
            ("10.1.0.0/24", &["10.1.0.0-10.1.0.43", "10.1.0.44-10.1.0.95"], &[], "", Some(27)),
            ("10.1.0.0/25", &[], &["10.1.0.32/28"], "10.1.0.1", Some(28)),
            ("10.1.0.0/24", &["10.1.0.0/26", "10.1.0.128/27"], &[], "", None),
            ("10.1.0.0/25", &[], &["10.1.0.127"], "", Some(27)),
        ],
    },
    PoolTemplate {
        name: "nest",
        family: Family::Ipv4,
        vrf: "default",
        base: "10.1.0.0",
        forms: [
            ("10.1.0.0/28", &["10.1.0.4-10.1.0.7"], &[], "", None),
            ("10.1.0.16/28", &["10.1.0.17-10.1.0.20"], &[], "", None),
            ("10.1.0.0/29", &[], &[], "", None),
            ("", &["10.1.0.8-10.1.0.11"], &[], "", None),
            ("", &["10.1.0.60-10.1.0.66"], &[], "", None),
        ],
    },
    PoolTemplate {
        name: "inner",
        family: Family::Prefix,
        vrf: "default",
        base: "10.1.0.0",
        forms: [
            ("10.1.0.0/28", &[], &[], "", Some(30)),
            ("10.1.0.0/27", &[], &[], "", Some(29)),
            ("10.1.0.0/27", &["10.1.0.0/29", "10.1.0.16/28"], &[], "", Some(30)),
            ("10.1.0.16/28", &[], &[], "", Some(31)),
            ("10.1.0.32/28", &[], &["10.1.0.32"], "", Some(30)),
        ],
    },
    PoolTemplate {
        name: "deep",
        family: Family::Ipv4,
        vrf: "default",
        base: "10.1.0.0",
        forms: [
            ("", &["10.1.0.0/30"], &[], "", None),
            ("", &["10.1.0.1-10.1.0.3"], &[], "", None),
            ("", &["10.1.0.16-10.1.0.17"], &[], "", None),
            ("10.1.0.8/29", &[], &[], "", None),
            ("", &["10.1.0.4-10.1.0.6"], &[], "", None),
        ],
    },
    PoolTemplate {
        name: "sixes",
        family: Family::Prefix,
        vrf: "red",
        base: "fd00:1::",
        forms: [
            ("fd00:1::/61", &[], &[], "", Some(64)),
            ("fd00:1::/60", &[], &["fd00:1:0:4::/62"], "", Some(63)),
            ("fd00:1::/61", &[], &["fd00:1:0:2::7"], "", None),
            ("fd00:1::/60", &["fd00:1::/62", "fd00:1:0:4::/64"], &[], "", Some(64)),
            ("fd00:1::/62", &[], &[], "", Some(63)),
        ],
    },
];

/// The pools one run is about.
pub(crate) fn theme() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        3 => Just(vec![0]),
        3 => Just(vec![0, 1, 2]),
        1 => Just(vec![3]),
        1 => Just(vec![4]),
        3 => Just(vec![5]),
        4 => Just(vec![5, 6, 7, 8]),
        3 => Just(vec![5, 7]),
        2 => Just(vec![9]),
        1 => Just(vec![2, 9]),
        2 => Just((0..POOL_TEMPLATES.len()).collect()),
    ]
}

/// Whether it is about a pool of prefixes and those that may lie inside them.
pub(crate) fn is_nested(theme: &[usize]) -> bool {
    theme.first() == Some(&5) && theme.len() > 1
}

pub(crate) fn name(pool: usize) -> Ident {
    POOL_TEMPLATES[pool].name.parse().unwrap()
}

pub(crate) fn vrf(pool: usize) -> Ident {
    POOL_TEMPLATES[pool].vrf.parse().unwrap()
}

pub(crate) fn is_prefix(pool: usize) -> bool {
    POOL_TEMPLATES[pool].family == Family::Prefix
}

/// A length a claim in this pool may ask for; some do not fit.
pub(crate) fn length(pool: usize, choice: u8) -> u8 {
    let shortest = if POOL_TEMPLATES[pool].name == "sixes" { 61 } else { 26 };
    shortest + choice % 6
}

/// An address in or near the pool. In prefix pools, `step` addresses lie between one and the next.
pub(crate) fn address(pool: usize, offset: u8, length: Option<u8>) -> Address {
    let base: Address = POOL_TEMPLATES[pool].base.parse().unwrap();
    let step = length.map_or(1, |length| 1u128 << (base.kind().bits() - length));
    base.checked_add(u128::from(offset) * step).unwrap()
}

pub(crate) fn spec(pool: usize, shape: Shape) -> PoolSpec {
    let place = &POOL_TEMPLATES[pool];
    let (network, ranges, exclude, gateway, length) = place.forms[shape.form];
    let mut spec = PoolSpec::new(name(pool), place.family);
    spec.vrf = vrf(pool);
    spec.network = (!network.is_empty()).then(|| network.parse().unwrap());
    spec.ranges = ranges.iter().map(|range| range.parse().unwrap()).collect();
    spec.exclude = exclude.iter().map(|range| range.parse().unwrap()).collect();
    spec.gateway = (!gateway.is_empty()).then(|| gateway.parse().unwrap());
    spec.use_reserved = shape.site == 2;
    spec.length = length;
    spec.order = shape.order;
    spec.cooldown = Span::from_secs(shape.cooldown);
    spec.cooldown_min = Span::from_secs(shape.cooldown_min);
    spec.sticky = shape.sticky;
    spec.max_per_owner = shape.max_per_owner;
    let site = ["ams", "ber", "ams"][usize::from(shape.site)];
    spec.labels = Labels::new([("site".to_owned(), site.to_owned())]).unwrap();
    spec
}
