//! The adapter for servers with one record per call, over every capability that such servers lack.

use std::{collections::BTreeMap, num::NonZeroUsize, sync::Arc, time::Duration};

use netstead_model::{
    Capabilities, DnsProvider, Marks, ProviderError, RecordSet, RecordType, SetChange, TtlSupport, Unit,
    UnitOutcome, WriteOrder, ZoneSource,
};
use netstead_providers::{
    contract::{self, Subject},
    dns::per_record::PerRecord,
};
use proptest::prelude::*;

use crate::{
    per_record_server::{Fault, Server},
    support::{a, change, name, request, set, zone},
};

const FEW_TYPES: [RecordType; 3] = [RecordType::A, RecordType::Aaaa, RecordType::Cname];

fn one_by_one(order: WriteOrder) -> Capabilities {
    Capabilities { fenced: false, order, ..Capabilities::all(RecordType::ALL) }
}

/// Each with another thing that it cannot do.
fn weak_servers() -> Vec<(&'static str, Capabilities)> {
    let base = one_by_one(WriteOrder::InPlace);
    vec![
        ("changes records in place", base.clone()),
        ("adds and removes only", one_by_one(WriteOrder::AddFirst)),
        ("has no sign of change", Capabilities { signs_changes: false, ..base.clone() }),
        ("has no time to live", Capabilities { ttl: TtlSupport::None(0), ..base.clone() }),
        ("has few times to live", Capabilities { ttl: TtlSupport::Fixed(&[120, 600]), ..base.clone() }),
        ("knows no zones", Capabilities { zones: ZoneSource::Domains, ..base.clone() }),
        (
            "has no place for marks",
            Capabilities { marks: Marks::None, types: FEW_TYPES.into(), ..base.clone() },
        ),
        ("has one value per name", Capabilities { one_value: true, ..one_by_one(WriteOrder::RemoveFirst) }),
        (
            "can do almost nothing",
            Capabilities {
                types: FEW_TYPES.into(),
                marks: Marks::None,
                ttl: TtlSupport::None(10),
                one_value: true,
                zones: ZoneSource::Domains,
                most_units: NonZeroUsize::new(10),
                ..one_by_one(WriteOrder::RemoveFirst)
            },
        ),
    ]
}

#[tokio::test]
async fn servers_of_every_weakness_keep_the_contract() {
    for (what, can) in weak_servers() {
        for by_name in [false, true] {
            let server = Server { by_name, ..Server::new(can.clone()) };
            let stranger = Server { stranger: true, ..server.clone() };
            let held = Arc::clone(&server.held);
            let provider = Arc::new(PerRecord::new(server));
            let mut subject = Subject::new(provider, Arc::new(PerRecord::new(stranger)), zone());
            subject.requests = Some(Box::new(move || held.lock().unwrap().calls));
            println!("a server that {what}, asked by name: {by_name}");
            contract::all(&subject).await;
        }
    }
}

/// A server on which `names` stand, each with one address.
async fn server_with(can: Capabilities, names: std::ops::Range<u8>) -> (Server, PerRecord<Server>) {
    let server = Server::new(can);
    let provider = PerRecord::new(server.clone());
    let units =
        names.map(|n| change(None, Some(provider.adjust(host(n, 1), &provider.capabilities())))).collect();
    provider.write(&zone(), &request(1, units)).await.unwrap();
    server.held.lock().unwrap().changes = 0;
    (server, provider)
}

fn host(n: u8, value: u8) -> RecordSet {
    a(&format!("w{n}.example.test"), &[&format!("192.0.2.{value}")])
}

#[tokio::test]
async fn a_429_in_the_middle_leaves_the_rest_untried_with_the_pause_it_asks_for() {
    let (server, provider) = server_with(one_by_one(WriteOrder::InPlace), 0..0).await;
    server.held.lock().unwrap().faults = vec![(4, Fault::Busy)];
    let units: Vec<Unit> = (0..10).map(|n| change(None, Some(host(n, 1)))).collect();
    let reply = provider.write(&zone(), &request(2, units.clone())).await.unwrap();
    let mut wanted = vec![UnitOutcome::Applied; 3];
    wanted.resize(10, UnitOutcome::NotTried);
    assert_eq!(reply.outcomes, wanted);
    let retry_after = Some(Duration::from_secs(7));
    assert_eq!(reply.stopped, Some(ProviderError::Busy { server: "fake".into(), retry_after }));
    let again = provider.write(&zone(), &request(3, units)).await.unwrap();
    assert_eq!((again.outcomes, again.stopped), (vec![UnitOutcome::Applied; 10], None));
}

#[tokio::test]
async fn a_lost_answer_is_unknown_for_its_unit_alone() {
    for fault in [Fault::Lost, Fault::Dropped] {
        let (server, provider) = server_with(one_by_one(WriteOrder::InPlace), 0..0).await;
        server.held.lock().unwrap().faults = vec![(2, fault)];
        let units = (0..3).map(|n| change(None, Some(host(n, 1)))).collect();
        let reply = provider.write(&zone(), &request(2, units)).await.unwrap();
        let wanted = [UnitOutcome::Applied, UnitOutcome::Unknown, UnitOutcome::Applied];
        assert_eq!((reply.outcomes.as_slice(), reply.stopped), (&wanted[..], None));
    }
}

#[tokio::test]
async fn a_server_that_loses_every_answer_is_left_alone_soon() {
    let (server, provider) = server_with(one_by_one(WriteOrder::InPlace), 0..0).await;
    server.held.lock().unwrap().faults = (1..=50).map(|at| (at, Fault::Dropped)).collect();
    let units = (0..50).map(|n| change(None, Some(host(n, 1)))).collect();
    let reply = provider.write(&zone(), &request(2, units)).await.unwrap();
    assert!(matches!(reply.stopped, Some(ProviderError::Unknown { .. })), "{:?}", reply.stopped);
    assert_eq!(server.held.lock().unwrap().changes, 3);
    assert_eq!(reply.outcomes.iter().filter(|one| **one == UnitOutcome::NotTried).count(), 47);
}

/// An alias takes the place of an address, and is refused: the address is put back.
#[tokio::test]
async fn what_was_removed_first_is_put_back_if_the_new_value_is_refused() {
    let (server, provider) = server_with(one_by_one(WriteOrder::InPlace), 0..1).await;
    server.held.lock().unwrap().faults = vec![(2, Fault::Refused)];
    let alias = set("w0.example.test", RecordType::Cname, &["other.example.net."]);
    let changes = vec![
        SetChange { before: None, after: Some(alias) },
        SetChange { before: Some(host(0, 1)), after: None },
    ];
    let unit = Unit { name: name("w0.example.test"), changes };
    let reply = provider.write(&zone(), &request(2, vec![unit])).await.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::Rejected { reason: "not today".into() }]);
    assert_eq!(provider.read(&zone()).await.unwrap().sets, [host(0, 1)]);
}

#[tokio::test]
async fn half_a_unit_that_cannot_be_taken_back_is_unknown() {
    let (server, provider) = server_with(one_by_one(WriteOrder::RemoveFirst), 0..1).await;
    server.held.lock().unwrap().faults = vec![(2, Fault::Refused), (3, Fault::Busy)];
    let reply = provider.write(&zone(), &request(2, vec![change(Some(host(0, 1)), Some(host(0, 2)))])).await;
    let reply = reply.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::Unknown]);
    assert!(matches!(reply.stopped, Some(ProviderError::Busy { .. })), "{:?}", reply.stopped);
}

#[tokio::test]
async fn a_listing_that_loses_a_page_is_an_error_and_nothing_is_written() {
    let (server, provider) = server_with(one_by_one(WriteOrder::InPlace), 0..3).await;
    server.held.lock().unwrap().loses_page = true;
    assert!(matches!(provider.read(&zone()).await, Err(ProviderError::Malformed { .. })));
    let wrote = provider.write(&zone(), &request(2, vec![change(Some(host(0, 1)), None)])).await;
    assert!(matches!(wrote, Err(ProviderError::Malformed { .. })), "{wrote:?}");
    assert_eq!(server.held.lock().unwrap().changes, 0);
}

#[tokio::test]
async fn one_listing_serves_all_domains_of_a_server_without_zones() {
    let can = Capabilities { zones: ZoneSource::Domains, ..one_by_one(WriteOrder::InPlace) };
    let (server, provider) = server_with(can, 0..3).await;
    let below = name("w1.example.test");
    let before = server.held.lock().unwrap().calls;
    let zones = provider.zones(&[zone(), below.clone()]).await.unwrap();
    assert_eq!(zones.iter().map(|zone| &zone.name).collect::<Vec<_>>(), [&zone(), &below]);
    let (all, one) = (provider.read(&zone()).await.unwrap(), provider.read(&below).await.unwrap());
    assert_eq!((all.sets, one.sets), (vec![host(0, 1), host(2, 1)], vec![host(1, 1)]));
    assert_eq!(server.held.lock().unwrap().calls, before + 1);
    assert_eq!((all.sign, one.sign), (zones[0].sign.clone(), zones[1].sign.clone()));
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![Just(Fault::Busy), Just(Fault::Lost), Just(Fault::Dropped), Just(Fault::Refused)]
}

/// One of a few things that a name can have.
fn content() -> impl Strategy<Value = Option<u8>> {
    proptest::option::of(0_u8..6)
}

/// An alias, or one or two addresses.
fn sets_of(n: u8, content: Option<u8>, two: bool) -> Vec<RecordSet> {
    let at = format!("w{n}.example.test");
    match content {
        None => Vec::new(),
        Some(0) => vec![set(&at, RecordType::Cname, &["other.example.net."])],
        Some(1) => vec![set(&at, RecordType::Aaaa, &["2001:db8::1"]), a(&at, &["192.0.2.7"])],
        Some(value) if two => vec![a(&at, &[&format!("192.0.2.{value}"), "192.0.2.99"])],
        Some(value) => vec![a(&at, &[&format!("192.0.2.{value}")])],
    }
}

fn unit_of(n: u8, before: &[RecordSet], after: &[RecordSet]) -> Unit {
    let kinds = [RecordType::A, RecordType::Aaaa, RecordType::Cname];
    let of = |sets: &[RecordSet], kind| sets.iter().find(|set| set.kind == kind).cloned();
    let changes = kinds.map(|kind| SetChange { before: of(before, kind), after: of(after, kind) });
    let changes = changes.into_iter().filter(|change| change.before != change.after).collect();
    Unit { name: name(&format!("w{n}.example.test")), changes }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Each outcome is true, whatever fails on the way, a further write finishes the work, and one more changes nothing.
    #[test]
    fn outcomes_are_true_whatever_fails(
        weakness in 0_usize..9,
        wishes in proptest::collection::vec((content(), content(), any::<bool>()), 1..6),
        faults in proptest::collection::vec((1_usize..12, fault()), 0..4),
    ) {
        let can = weak_servers().swap_remove(weakness).1;
        let two = !can.one_value;
        let server = Server::new(can);
        let provider = PerRecord::new(server.clone());
        let adjusted = |sets: Vec<RecordSet>| -> Vec<RecordSet> {
            sets.into_iter().map(|set| provider.adjust(set, &provider.capabilities())).collect()
        };
        let wishes: Vec<(Vec<RecordSet>, Vec<RecordSet>)> = (0_u8..)
            .zip(&wishes)
            .map(|(n, (before, after, both))| {
                (adjusted(sets_of(n, *before, two)), adjusted(sets_of(n, *after, two && *both)))
            })
            .collect();
        let run = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        run.block_on(async {
            let units = |from: &dyn Fn(u8) -> Vec<RecordSet>, to: &dyn Fn(u8) -> Vec<RecordSet>| -> Vec<Unit> {
                let all = (0_u8..).zip(&wishes).map(|(n, _)| unit_of(n, &from(n), &to(n)));
                all.filter(|unit| !unit.changes.is_empty()).collect()
            };
            let before = |n: u8| wishes[usize::from(n)].0.clone();
            let after = |n: u8| wishes[usize::from(n)].1.clone();
            let first = units(&|_| Vec::new(), &before);
            let reply = provider.write(&zone(), &request(1, first)).await.unwrap();
            assert!(reply.outcomes.iter().all(|one| *one == UnitOutcome::Applied), "{reply:?}");
            {
                let mut held = server.held.lock().unwrap();
                (held.changes, held.faults) = (0, faults.clone());
            }
            let standing = async || {
                let mut found: BTreeMap<_, Vec<RecordSet>> = BTreeMap::new();
                for set in provider.read(&zone()).await.unwrap().sets {
                    found.entry(set.name.clone()).or_default().push(set);
                }
                for sets in found.values_mut() {
                    sets.sort_by_key(|set| set.kind);
                }
                found
            };
            let sorted = |mut sets: Vec<RecordSet>| {
                sets.sort_by_key(|set| set.kind);
                sets
            };
            let second = units(&before, &after);
            let reply = provider.write(&zone(), &request(2, second.clone())).await.unwrap();
            let found = standing().await;
            for (unit, outcome) in second.iter().zip(&reply.outcomes) {
                let n: u8 = unit.name.labels().next().unwrap()[1..].parse().unwrap();
                let stands = found.get(&unit.name).cloned().unwrap_or_default();
                match outcome {
                    UnitOutcome::Applied => assert_eq!(stands, sorted(after(n))),
                    UnitOutcome::Unknown => {}
                    UnitOutcome::Changed | UnitOutcome::NotTried | UnitOutcome::Rejected { .. } => {
                        assert_eq!(stands, sorted(before(n)), "{outcome:?} leaves nothing behind");
                    }
                }
            }
            server.held.lock().unwrap().faults.clear();
            let at = |n: u8| found.get(&name(&format!("w{n}.example.test"))).cloned().unwrap_or_default();
            let reply = provider.write(&zone(), &request(3, units(&at, &after))).await.unwrap();
            assert!(reply.outcomes.iter().all(|one| *one == UnitOutcome::Applied), "{reply:?}");
            let found = standing().await;
            for (n, _) in (0_u8..).zip(&wishes) {
                let stands = found.get(&name(&format!("w{n}.example.test"))).cloned().unwrap_or_default();
                assert_eq!(stands, sorted(after(n)));
            }
            let changes = server.held.lock().unwrap().changes;
            let reply = provider.write(&zone(), &request(4, units(&at, &after))).await.unwrap();
            assert!(reply.outcomes.iter().all(|one| *one == UnitOutcome::Applied), "{reply:?}");
            assert_eq!(server.held.lock().unwrap().changes, changes, "a second write changes nothing");
        });
    }
}
