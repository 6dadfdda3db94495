//! Random commands. They are drawn as small numbers and become real commands when their turn comes, so that they can
//! name ids that exist by then.

mod setting;

use proptest::prelude::*;

pub(crate) use self::setting::Setting;
use crate::random_pools::{self, Shape, shape};

#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Ledger time goes on by this many milliseconds.
    Pass(u64),
    Create(u8, Shape),
    Update {
        pool: u8,
        shape: Shape,
        stale: bool,
    },
    Delete {
        pool: u8,
        force: bool,
        stale: bool,
    },
    Claim(Who, Ask),
    Release(Who, Aim),
    Renew(Who, Aim, Option<u64>),
    Move(Who, Aim, u8, Option<u8>),
    /// Pool, key, offset, length, and words about it: those that say something ask for the same range each time.
    Reserve(Who, u8, u8, u8, u8, Option<&'static str>),
    Unreserve(Who, u8, u8),
    Observe {
        source: u8,
        pool: u8,
        complete: bool,
        seen: Vec<(u8, u8)>,
        grace: u64,
        ttl: Option<u64>,
    },
    Abandon(Who, u8, u8),
    Bulk(Who, Vec<Step>),
    Resume,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    owner: u8,
    manager: bool,
    behalf: bool,
}

#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "so has a request")]
pub(crate) struct Ask {
    pools: Vec<u8>,
    select: Option<&'static str>,
    key: u8,
    want: u8,
    offset: u8,
    length: Option<u8>,
    ttl: Option<u64>,
    label: Option<u8>,
    adopt: bool,
    force: bool,
    wait: bool,
    keep: bool,
}

/// Which claim is meant: by key, or by one of the ids there ever were.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim {
    pool: u8,
    key: u8,
    id: u8,
}

fn who() -> impl Strategy<Value = Who> {
    (0u8..3, prop::bool::weighted(0.2), prop::bool::weighted(0.1)).prop_map(|(owner, manager, behalf)| Who {
        owner,
        manager,
        behalf,
    })
}

fn aim() -> impl Strategy<Value = Aim> {
    (any::<u8>(), 0u8..KEYS, any::<u8>()).prop_map(|(pool, key, id)| Aim { pool, key, id })
}

fn time() -> impl Strategy<Value = Option<u64>> {
    prop::sample::select(vec![None, None, Some(0), Some(30), Some(90)])
}

const KEYS: u8 = 7;

fn ask() -> impl Strategy<Value = Ask> {
    let select =
        prop::sample::select(vec![None, None, None, None, None, Some("site=ams"), Some("site!=ams")]);
    let flags = (
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.35),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.3),
    );
    let want = prop::sample::select(vec![0u8, 0, 0, 0, 1, 1, 2]);
    let length = prop::option::weighted(0.4, any::<u8>());
    let label = prop::sample::select(vec![None, None, None, Some(0), Some(1)]);
    (prop::collection::vec(any::<u8>(), 1..3), select, 0u8..KEYS, want, 0u8..12, length, time(), label, flags)
        .prop_map(|(pools, select, key, want, offset, length, ttl, label, (adopt, force, wait, keep))| Ask {
            pools,
            select,
            key,
            want,
            offset,
            length,
            ttl,
            label,
            adopt,
            force,
            wait,
            keep,
        })
}

fn small_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (who(), ask()).prop_map(|(who, ask)| Step::Claim(who, Ask { wait: false, ..ask })),
        3 => (who(), aim()).prop_map(|(who, aim)| Step::Release(who, aim)),
        1 => (who(), aim(), time()).prop_map(|(who, aim, ttl)| Step::Renew(who, aim, ttl)),
        1 => (who(), aim(), 0u8..KEYS, prop::option::of(0u8..3)).prop_map(|(w, a, key, to)| Step::Move(w, a, key, to)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let passing = prop::sample::select(vec![1, 10_000, 29_999, 30_000, 60_000, 61_000, 300_000, 600_000]);
    let seen = prop::collection::vec((0u8..12, 0u8..3), 0..5);
    let observe = (0u8..2, any::<u8>(), any::<bool>(), seen, prop::sample::select(vec![0, 60]), time());
    prop_oneof![
        14 => passing.prop_map(Step::Pass),
        4 => (any::<u8>(), shape()).prop_map(|(pool, shape)| Step::Create(pool, shape)),
        4 => (any::<u8>(), shape(), prop::bool::weighted(0.1))
            .prop_map(|(pool, shape, stale)| Step::Update { pool, shape, stale }),
        2 => (any::<u8>(), any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(pool, force, stale)| Step::Delete { pool, force, stale }),
        45 => (who(), ask()).prop_map(|(who, ask)| Step::Claim(who, ask)),
        18 => (who(), aim()).prop_map(|(who, aim)| Step::Release(who, aim)),
        3 => (who(), aim(), time()).prop_map(|(who, aim, ttl)| Step::Renew(who, aim, ttl)),
        3 => (who(), aim(), 0u8..KEYS, prop::option::of(0u8..3)).prop_map(|(w, a, key, to)| Step::Move(w, a, key, to)),
        2 => (who(), any::<u8>(), 0u8..3, 0u8..12, 0u8..4).prop_map(|(w, p, k, o, l)| Step::Reserve(w, p, k, o, l, None)),
        2 => (who(), any::<u8>(), 0u8..3, prop::sample::select(vec!["", "for ann", "for all"]))
            .prop_map(|(who, pool, key, words)| Step::Reserve(who, pool, key, 2 + 2 * key, 1, Some(words))),
        2 => (who(), any::<u8>(), 0u8..3).prop_map(|(who, pool, key)| Step::Unreserve(who, pool, key)),
        4 => observe.prop_map(|(source, pool, complete, seen, grace, ttl)| {
            Step::Observe { source, pool, complete, seen, grace, ttl }
        }),
        2 => (who(), any::<u8>(), 0u8..KEYS).prop_map(|(who, pool, key)| Step::Abandon(who, pool, key)),
        5 => (who(), prop::collection::vec(small_step(), 1..5)).prop_map(|(who, steps)| Step::Bulk(who, steps)),
        1 => Just(Step::Resume),
    ]
}

/// A whole run: the pools it is about, how they begin, and what is asked.
#[derive(Clone)]
pub(crate) struct Run {
    pub theme: Vec<usize>,
    pub shapes: Vec<Shape>,
    pub paused: bool,
    /// How many keys there are: with few, the same ones meet again and again.
    pub keys: u8,
    pub steps: Vec<Step>,
}

impl std::fmt::Debug for Run {
    /// The test that fails tells what was asked and answered, which says more.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} steps about pools {:?}", self.steps.len(), self.theme)
    }
}

pub(crate) fn run() -> impl Strategy<Value = Run> {
    let steps = prop::collection::vec(step(), 1..110);
    let start = prop::collection::vec((who(), ask(), shape()), 3);
    let keys = prop::sample::select(vec![3, 3, 5, KEYS, KEYS]);
    let shapes = prop::collection::vec(shape(), 10);
    (random_pools::theme(), shapes, prop::bool::weighted(0.05), keys, start, steps).prop_map(
        |(theme, shapes, paused, keys, start, steps)| {
            let nested = if random_pools::is_nested(&theme) { nest(start, theme.len()) } else { Vec::new() };
            let steps = nested.into_iter().chain(steps).collect();
            Run { theme, shapes, paused, keys, steps }
        },
    )
}

/// A run in which a few people who may do anything take prefixes from each other by force.
pub(crate) fn tussle() -> impl Strategy<Value = Run> {
    let manager = || (0u8..2).prop_map(|owner| Who { owner, manager: true, behalf: false });
    let ask = || (ask(), 0u8..5, prop::sample::select(vec![None, Some(1), Some(2), Some(3)]));
    let step = prop_oneof![
        6 => (manager(), ask()).prop_map(|(who, (ask, offset, length))| {
            Step::Claim(who, Ask { select: None, offset, length, adopt: false, wait: false, force: true, ..ask })
        }),
        4 => (manager(), aim()).prop_map(|(who, aim)| Step::Release(who, Aim { id: 0, ..aim })),
        1 => Just(Step::Pass(60_000)),
        1 => (manager(), 0u8..3, 0u8..12, 0u8..4).prop_map(|(who, k, o, l)| Step::Reserve(who, 0, k, o * 8, l * 8, None)),
    ];
    let theme = prop::sample::select(vec![vec![5], vec![9], vec![5, 7]]);
    let shapes = prop::collection::vec(random_pools::resting_shape(), 10);
    (theme, shapes, prop::collection::vec(step, 1..80)).prop_map(|(theme, shapes, steps)| Run {
        theme,
        shapes,
        paused: false,
        keys: 3,
        steps,
    })
}

/// Prefixes of the first pool at its start, and then the pools that may lie inside them.
fn nest(start: Vec<(Who, Ask, Shape)>, pools: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for (number, (who, ask, shape)) in start.into_iter().enumerate() {
        let (offset, length) = (u8::try_from(number).unwrap(), Some(ask.offset % 3));
        steps.push(Step::Claim(
            who,
            Ask { pools: vec![0], select: None, want: 1, offset, length, wait: false, ..ask },
        ));
        steps.extend((1..pools).map(|pool| Step::Create(u8::try_from(pool).unwrap(), shape)));
    }
    steps
}
