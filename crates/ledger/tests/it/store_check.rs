//! A store that is not as `docs/reference/store.md` says: what is wrong is told, and mended where that is safe.

use std::{collections::BTreeMap, sync::Arc};

use insta::assert_snapshot;
use netstead_ledger::{
    Command, Options, Randomness,
    check::{self, CheckReport, KEYS, RepairError},
    record::{self, Head},
};
use netstead_model::Span;
use netstead_store::{Commit, EPOCH_KEY, MemoryStore, Store, Write};
use serde_json::{Value, json};

use crate::{
    store_under_test,
    support::{House, any, claim, key, observe, prefixes, restless},
};

const WEB: &str = "ledger/addr/default/4/0000000000000000000000000a000332";
const OLD: &str = "ledger/addr/default/4/0000000000000000000000000a000333";
const SITE: &str = "ledger/addr/default/p4/0000000000000000000000000a040000-24";
const OLD_SITE: &str = "ledger/addr/default/p4/0000000000000000000000000a040100-24";

/// A store with something of every kind and without a leader.
async fn filled() -> Arc<dyn Store> {
    let options = Options { randomness: Randomness::seeded(7), ..Options::default() };
    let house = House::on(store_under_test::store().await, options).await;
    house.make("lan", "10.0.3.50-10.0.3.59").await;
    house.make_so("sites", "10.4.0.0/16", prefixes(24)).await;
    house.make_so("one", "10.0.9.1", restless).await;
    for (pool, name) in
        [("lan", "web"), ("lan", "old"), ("sites", "site"), ("sites", "old-site"), ("one", "x")]
    {
        house.claim("ann", pool, name).await;
    }
    house.release("ann", "lan", "old").await;
    house.release("ann", "sites", "old-site").await;
    let (pool, range) = ("lan".parse().unwrap(), "10.0.3.58-10.0.3.59".parse().unwrap());
    house.ask("ann", Command::Reserve { pool, key: key("spare"), range, description: None }).await.unwrap();
    let waits = claim("one", "y", |request| (request.wait, request.keep) = (Some(Span::ZERO), true));
    house.ask("bob", waits).await.unwrap();
    house.ask("pve", observe("pve", true, &["10.0.3.55", "172.16.0.1"])).await.unwrap();
    house.ledger.close().await;
    let others = KEYS.iter().filter(|form| !form.starts_with("ledger/") && !form.starts_with("meta/"));
    let commit = others.fold(Commit::new().put("meta/format", "1"), |commit, form| {
        commit.put(form.replace(['<', '>'], ""), "1{}")
    });
    house.store.commit(commit).await.unwrap();
    house.store
}

async fn put(store: &dyn Store, key: &str, value: impl Into<Vec<u8>>) {
    store.commit(Commit::new().put(key, value)).await.unwrap();
}

async fn remove(store: &dyn Store, key: &str) {
    store.commit(Commit::new().delete(key)).await.unwrap();
}

async fn json_at(store: &dyn Store, key: &str) -> Value {
    let value = store.get(key.as_bytes()).await.unwrap().unwrap().value;
    serde_json::from_slice(&value[1..]).unwrap()
}

/// Puts what stands under `from` under `to`, with some of it changed.
async fn bend(store: &dyn Store, from: &str, to: &str, change: impl FnOnce(&mut Value)) {
    let mut json = json_at(store, from).await;
    change(&mut json);
    put(store, to, record::encode(&json)).await;
}

/// An id of the same ledger that it has not given yet.
fn later(id: &Value) -> Value {
    let (ledger, _) = id.as_str().unwrap().split_once('-').unwrap();
    json!(format!("{ledger}-99"))
}

async fn content(store: &dyn Store) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let all = store.snapshot().await.unwrap().range(b"", None, usize::MAX).await.unwrap();
    all.into_iter().map(|entry| (entry.key, entry.value)).collect()
}

/// The findings of a check, a line each.
fn problem_lines(report: &CheckReport) -> String {
    let line = |problem: &check::Problem| {
        let end = if problem.repair.is_some() { " (can be repaired)" } else { "" };
        format!("{}: {}{end}", problem.key, problem.problem)
    };
    report.problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

async fn checked_problem_lines(store: &dyn Store) -> String {
    problem_lines(&check::check(store).await.unwrap())
}

/// Stored data is sound after any commands.
pub(crate) fn problems_of(keys: &BTreeMap<Vec<u8>, Vec<u8>>, head: &Head) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = MemoryStore::new();
        let commit = Commit::new().put(EPOCH_KEY, head.epoch.to_string());
        store.commit(commit.put("ledger/head", record::encode(head))).await.unwrap();
        let writes: Vec<Write> =
            keys.iter().map(|(key, value)| Write::Put(key.clone(), value.clone())).collect();
        for group in writes.chunks(100) {
            store.commit(Commit { conditions: Vec::new(), writes: group.to_vec() }).await.unwrap();
        }
        checked_problem_lines(&store).await
    })
}

#[tokio::test]
pub(crate) async fn what_a_ledger_and_the_other_rooms_wrote_is_sound() {
    let store = filled().await;
    let report = check::check(&*store).await.unwrap();
    assert_eq!(problem_lines(&report), "");
    assert_eq!((report.keys, report.claims), (content(&*store).await.len() as u64, 3));
    assert_eq!(report.events, 12);
    assert_eq!(check::repair(&*store, &report).await.unwrap(), 0);
}

#[tokio::test]
pub(crate) async fn a_store_without_a_ledger_is_sound() {
    assert_eq!(checked_problem_lines(&*store_under_test::store().await).await, "");
}

/// The page lists what the check knows, and nothing else.
#[test]
fn the_check_knows_the_keys_of_the_page() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/store.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rooms = ["meta/", "ledger/", "access/", "cluster/", "dns/", "engine/", "usage/"];
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    let quoted = rows.flat_map(|first| first.split('`').skip(1).step_by(2));
    let keys = quoted.filter(|key| rooms.iter().any(|room| key.starts_with(room)) && !key.ends_with('…'));
    assert_eq!(keys.collect::<Vec<_>>(), KEYS);
}

#[tokio::test]
pub(crate) async fn what_is_wrong_with_the_store_as_a_whole_is_told() {
    let mut told = Vec::new();
    for (key, value) in [
        ("meta/format", "two"),
        ("meta/format", "99999999999"),
        ("meta/restoring", "1"),
        ("meta/sealed", r#"1{"to":"elsewhere","at":"2026-01-02T03:04:05Z"}"#),
        ("meta/epoch", "many"),
        ("meta/epoch", "0"),
        ("meta/nonsense", "1"),
        ("ledger/head", "1{}"),
        ("ledger/nonsense", "1{}"),
        ("nonsense", "1{}"),
    ] {
        let store = filled().await;
        put(&*store, key, value).await;
        told.push(checked_problem_lines(&*store).await);
    }
    for key in ["meta/epoch", "ledger/head"] {
        let store = filled().await;
        remove(&*store, key).await;
        told.push(checked_problem_lines(&*store).await);
    }
    let store = filled().await;
    store.commit(Commit::new().put(vec![b'x', 0xff], "1{}")).await.unwrap();
    told.push(checked_problem_lines(&*store).await);
    assert_snapshot!(told.join("\n"), @r"
    meta/format: it is no number: restore from a backup
    meta/format: it is no number: restore from a backup
    meta/restoring: a restore into this store was interrupted: begin anew with `netstead store restore`
    meta/sealed: everything was moved to another store, and this one is sealed
    meta/epoch: it is no number, and the head is of epoch 1 (can be repaired)
    meta/epoch: it is at 0, and the head is of epoch 1 (can be repaired)
    meta/nonsense: no page of the manual knows this key
    ledger/head: missing field `ledger` at line 1 column 2
    ledger/nonsense: no page of the manual knows this key
    nonsense: no page of the manual knows this key
    meta/epoch: it is missing, and the head is of epoch 1 (can be repaired)
    ledger/head: the head is missing: restore from a backup
    x�: its key is not text
    ");
}

#[tokio::test]
pub(crate) async fn what_other_rooms_keep_has_a_known_key_its_version_and_json() {
    let mut told = Vec::new();
    for (key, value) in [
        ("access/nonsense/1", "1{}"),
        ("access/token/a1", "2{}"),
        ("cluster/member/a1", ""),
        ("cluster/roll/more", "17"),
        ("dns/set/home.test/A", "1{}"),
        ("dns/zone/home.test", "1{"),
        ("engine/nonsense", "1{}"),
        ("engine/time", r#"{"time":1}"#),
    ] {
        let store = filled().await;
        put(&*store, key, value).await;
        told.push(checked_problem_lines(&*store).await);
    }
    assert_snapshot!(told.join("\n"), @r"
    access/nonsense/1: no page of the manual knows this key
    access/token/a1: its format `2` is not known to this version of Netstead; use a newer one
    cluster/member/a1: its value is empty
    cluster/roll/more: no page of the manual knows this key
    dns/set/home.test/A: no page of the manual knows this key
    dns/zone/home.test: EOF while parsing an object at line 1 column 1
    engine/nonsense: no page of the manual knows this key
    engine/time: its format `{` is not known to this version of Netstead; use a newer one
    ");
}

#[tokio::test]
pub(crate) async fn what_is_wrong_with_pools_and_what_lies_in_them_is_told() {
    let mut told = Vec::new();
    let pool = "ledger/pool/lan";
    for change in [
        (|pool| pool["spec"]["ranges"] = json!([])) as fn(&mut Value),
        |pool| pool["spec"]["ranges"] = json!(["10.0.3.51-10.0.3.59"]),
        |pool| pool["spec"]["vrf"] = json!("red"),
        |pool| pool["spec"]["name"] = json!("wan"),
        |pool| pool["spec"] = json!("gone"),
    ] {
        let store = filled().await;
        bend(&*store, pool, pool, change).await;
        told.push(checked_problem_lines(&*store).await);
    }
    let store = filled().await;
    bend(&*store, pool, "ledger/pool/two", |pool| pool["spec"]["name"] = json!("two")).await;
    told.push(checked_problem_lines(&*store).await);
    let store = filled().await;
    remove(&*store, pool).await;
    told.push(checked_problem_lines(&*store).await);
    assert_snapshot!(told.join("\n"), @r#"
    ledger/addr/default/4/0000000000000000000000000a000332: 10.0.3.50 is not in pool `lan`
    ledger/pool/lan: ranges: the pool names no address: give `ranges`, or a `network`
    ledger/addr/default/4/0000000000000000000000000a000332: 10.0.3.50 is not in pool `lan`
    ledger/addr/default/4/0000000000000000000000000a000332: it does not lie in the VRF and family of pool `lan`
    ledger/pool/lan: its value belongs under another key
    ledger/pool/lan: invalid type: string "gone", expected struct PoolSpec at line 1 column 62
    ledger/pool/lan: it overlaps pool `two`
    ledger/addr/default/4/0000000000000000000000000a000332: pool `lan` does not exist
    ledger/reserved/lan/0000000000000000000000000a00033a: its pool does not exist (can be repaired)
    "#);
}

#[tokio::test]
pub(crate) async fn what_is_wrong_with_an_address_is_told() {
    let moved = |number: u8| format!("ledger/addr/default/4/0000000000000000000000000a0003{number:02x}");
    let mut told = Vec::new();
    for change in [
        (|claim| claim["id"] = later(&claim["id"])) as fn(&mut Value),
        |claim| claim["address"] = json!("10.0.3.57"),
        |claim| claim["length"] = json!(32),
        |claim| claim["key"] = json!(""),
    ] {
        let store = filled().await;
        bend(&*store, WEB, WEB, |slot| change(&mut slot["held"])).await;
        told.push(checked_problem_lines(&*store).await);
    }
    // The same claim under two addresses.
    let store = filled().await;
    bend(&*store, WEB, &moved(0x35), |slot| slot["held"]["address"] = json!("10.0.3.53")).await;
    told.push(checked_problem_lines(&*store).await);
    // Held outside of its pool.
    let store = filled().await;
    bend(&*store, WEB, &moved(0x60), |slot| slot["held"]["address"] = json!("10.0.3.96")).await;
    remove(&*store, WEB).await;
    told.push(checked_problem_lines(&*store).await);
    assert_snapshot!(told.join("\n"), @r"
    ledger/addr/default/4/0000000000000000000000000a000332: its id 12ae3023-99 is newer than the head, 14
    ledger/addr/default/4/0000000000000000000000000a000332: its value belongs under another key
    ledger/addr/default/4/0000000000000000000000000a000332: its value belongs under another key
    ledger/addr/default/4/0000000000000000000000000a000332: `` is not a key: it is empty at line 1 column 57
    ledger/addr/default/4/0000000000000000000000000a000335: `web` holds `ledger/addr/default/4/0000000000000000000000000a000332` too
    ledger/addr/default/4/0000000000000000000000000a000335: its id 12ae3023-5 is that of `ledger/addr/default/4/0000000000000000000000000a000332` too
    ledger/addr/default/4/0000000000000000000000000a000360: 10.0.3.96 is not in pool `lan`
    ");
}

#[tokio::test]
pub(crate) async fn what_is_wrong_with_a_prefix_is_told() {
    let at = |number: u32, length: &str| format!("ledger/addr/default/p4/{number:032x}{length}");
    let mut told = Vec::new();
    // Over another one, and beginning where another begins.
    for (number, address, length) in [(0x0a04_0000, "10.4.0.0", 23), (0x0a04_0080, "10.4.0.128", 25)] {
        let store = filled().await;
        bend(&*store, SITE, &at(number, &format!("-{length}")), |slot| {
            let held = &mut slot["held"];
            (held["address"], held["length"], held["key"]) = (json!(address), json!(length), json!("other"));
            held["id"] = json!("00000001-1");
        })
        .await;
        told.push(checked_problem_lines(&*store).await);
    }
    let store = filled().await;
    bend(&*store, SITE, &at(0x0a04_0000, ""), |slot| {
        drop(slot["held"].as_object_mut().unwrap().remove("length"));
    })
    .await;
    remove(&*store, SITE).await;
    told.push(checked_problem_lines(&*store).await);
    let store = filled().await;
    bend(&*store, SITE, &at(0x0a04_0001, "-24"), |slot| slot["held"]["address"] = json!("10.4.0.1")).await;
    remove(&*store, SITE).await;
    told.push(checked_problem_lines(&*store).await);
    assert_snapshot!(told.join("\n"), @r"
    ledger/addr/default/p4/0000000000000000000000000a040000-24: it begins where `ledger/addr/default/p4/0000000000000000000000000a040000-23` of the same pool does
    ledger/addr/default/p4/0000000000000000000000000a040000-24: it overlaps `ledger/addr/default/p4/0000000000000000000000000a040000-23`
    ledger/addr/default/p4/0000000000000000000000000a040080-25: it overlaps `ledger/addr/default/p4/0000000000000000000000000a040000-24`
    ledger/addr/default/p4/0000000000000000000000000a040000: it is a prefix without a length
    ledger/addr/default/p4/0000000000000000000000000a040001-24: `10.4.0.1/24` is not a network: `10.4.0.1` is an address inside of `10.4.0.0/24`; write that, or `10.4.0.1/32`
    ");
}

#[tokio::test]
pub(crate) async fn what_is_wrong_with_what_rests_is_told() {
    let mut told = Vec::new();
    let store = filled().await;
    bend(&*store, OLD, OLD, |slot| slot["rested"]["freed"] = json!(1_000_000)).await;
    bend(&*store, OLD_SITE, OLD_SITE, |slot| slot["rested"]["claim"] = later(&slot["rested"]["claim"])).await;
    told.push(checked_problem_lines(&*store).await);
    // It is held too: two prefixes of a pool never begin at one address.
    let store = filled().await;
    bend(&*store, OLD_SITE, "ledger/addr/default/p4/0000000000000000000000000a040000-25", |slot| {
        (slot["rested"]["address"], slot["rested"]["length"]) = (json!("10.4.0.0"), json!(25));
    })
    .await;
    told.push(checked_problem_lines(&*store).await);
    // Who had an address last is known also where no pool lies any more.
    let store = filled().await;
    bend(&*store, OLD, "ledger/addr/default/4/0000000000000000000000000a000a01", |slot| {
        (slot["rested"]["address"], slot["rested"]["pool"]) = (json!("10.0.10.1"), json!("gone"));
    })
    .await;
    told.push(checked_problem_lines(&*store).await);
    assert_snapshot!(told.join("\n").trim_end(), @r"
    ledger/addr/default/4/0000000000000000000000000a000333: it was freed at 1000000 ms, and ledger time is 0 ms
    ledger/addr/default/p4/0000000000000000000000000a040100-24: its id 12ae3023-99 is newer than the head, 14
    ledger/addr/default/p4/0000000000000000000000000a040000-25: it begins where `ledger/addr/default/p4/0000000000000000000000000a040000-24` of the same pool does
    ");
}

#[tokio::test]
pub(crate) async fn events_out_of_order_are_told() {
    let mut told = Vec::new();
    let events = |store: Arc<dyn Store>| async move {
        store.snapshot().await.unwrap().range(b"ledger/event/", None, 2).await.unwrap()
    };
    for (from, to) in [(0, 1), (1, 0)] {
        let store = filled().await;
        let found_there = events(store.clone()).await;
        let value = found_there[from].value.clone();
        store.commit(Commit::new().put(found_there[to].key.clone(), value)).await.unwrap();
        told.push(checked_problem_lines(&*store).await);
    }
    let store = filled().await;
    put(&*store, "ledger/event/none", r#"1{"events":[]}"#).await;
    told.push(checked_problem_lines(&*store).await);
    assert_snapshot!(told.join("\n"), @r"
    ledger/event/0000000000000003: event 2 is out of order
    ledger/event/0000000000000003: event 3 is out of order
    ledger/event/none: its key is not the number of an event
    ");
}

/// Everything that can be mended is wrong.
async fn broken() -> Arc<dyn Store> {
    let store = filled().await;
    for (number, pools) in [(0x7001, json!(["gone", "one"])), (0x7002, json!(["gone"]))] {
        let waits = store.snapshot().await.unwrap().range(b"ledger/wait/", None, 1).await.unwrap().remove(0);
        bend(
            &*store,
            std::str::from_utf8(&waits.key).unwrap(),
            &format!("ledger/wait/{number:016x}"),
            |waiting| {
                (waiting["seq"], waiting["pools"]) = (json!(number), pools);
            },
        )
        .await;
    }
    let reserved = json_at(&*store, "ledger/reserved/lan/0000000000000000000000000a00033a").await;
    for first in [0, 75] {
        let commit = (first..first + 75).fold(Commit::new(), |commit, number| {
            let mut gone = reserved.clone();
            gone["pool"] = json!("gone");
            gone["range"] = json!(format!("10.0.8.{number}"));
            commit.put(format!("ledger/reserved/gone/{:032x}", 0x0a00_0800 + number), record::encode(&gone))
        });
        store.commit(commit).await.unwrap();
    }
    bend(&*store, "ledger/head", "ledger/head", |head| head["seq"] = json!(10)).await;
    put(&*store, "meta/epoch", "0").await;
    // Where several may lead, who led is refused once, because the epoch is gone, and follows then.
    let _ = store.commit(Commit::new()).await;
    store
}

#[tokio::test]
pub(crate) async fn what_can_be_mended_is_mended_and_nobody_loses_an_address() {
    let store = broken().await;
    let report = check::check(&*store).await.unwrap();
    let lines = problem_lines(&report);
    let (lost, others): (Vec<&str>, Vec<&str>) =
        lines.lines().partition(|line| line.starts_with("ledger/reserved/gone/"));
    assert_eq!(lost.len(), 150);
    assert_snapshot!(others.join("\n"), @r"
    ledger/wait/0000000000007001: it waits for pool `gone`, which does not exist (can be repaired)
    ledger/wait/0000000000007002: it waits for pool `gone`, which does not exist (can be repaired)
    meta/epoch: it is at 0, and the head is of epoch 1 (can be repaired)
    ledger/head: it is at 10, and there is an event 13 (can be repaired)
    ");
    assert_eq!(
        check::repair(&*store, &report).await.unwrap(),
        report.problems.iter().filter(|p| p.repair.is_some()).count()
    );
    assert_eq!(checked_problem_lines(&*store).await, "");
    assert_eq!(json_at(&*store, "ledger/wait/0000000000007001").await["pools"], json!(["one"]));
    let house = House::on(store, Options::default()).await;
    assert_eq!(house.claim("ann", "lan", "web").await, "10.0.3.50");
    assert_eq!(house.say("ann", any("sites", "site")).await, "10.4.0.0/24 for site of ann, again");
    let usage = house.pool("lan").await.usage;
    assert_eq!((usage.held, usage.resting, usage.reserved), (1, 1, 2));
    assert_eq!(house.pool("one").await.usage.waiting, 2);
}

#[tokio::test]
pub(crate) async fn what_changed_since_the_check_is_not_mended() {
    let refused = "the store changed meanwhile, nothing was repaired";
    // A server that runs.
    let house = House::on(broken_but_open().await, Options::default()).await;
    let report = check::check(&*house.store).await.unwrap();
    assert_eq!(report.problems.len(), 1);
    house.claim("bob", "lan", "db").await;
    let before = content(&*house.store).await;
    let error = check::repair(&*house.store, &report).await.unwrap_err();
    assert_eq!(error.to_string(), refused);
    assert_eq!(content(&*house.store).await, before);
    // One that was silent goes on from what was mended.
    let report = check::check(&*house.store).await.unwrap();
    assert_eq!(check::repair(&*house.store, &report).await.unwrap(), 1);
    let mut answer = house.say("bob", any("lan", "late")).await;
    if answer.contains("nothing was changed") {
        answer = house.say("bob", any("lan", "late")).await;
    }
    assert_eq!(answer, "10.0.3.53 for late of bob, new");
    assert_eq!(checked_problem_lines(&*house.store).await, "");
    house.ledger.close().await;
    // Whatever is to be mended, and whatever would make it wrong.
    for (key, value) in [
        ("meta/epoch", "1"),
        ("ledger/wait/0000000000007002", "1{}"),
        ("meta/restoring", "1"),
        ("meta/sealed", "1{}"),
    ] {
        let store = broken().await;
        let report = check::check(&*store).await.unwrap();
        put(&*store, key, value).await;
        let before = content(&*store).await;
        let error = check::repair(&*store, &report).await.unwrap_err();
        assert!(matches!(error, RepairError::Changed { .. }), "{key}: {error}");
        let others = |all: BTreeMap<Vec<u8>, Vec<u8>>| -> Vec<_> {
            all.into_iter()
                .filter(|(key, _)| !key.starts_with(b"ledger/reserved/gone/") && key != b"ledger/head")
                .collect()
        };
        assert_eq!(others(content(&*store).await), others(before), "{key}");
    }
}

/// One reservation without a pool, which no server minds.
async fn broken_but_open() -> Arc<dyn Store> {
    let store = filled().await;
    let reserved = "ledger/reserved/lan/0000000000000000000000000a00033a";
    bend(&*store, reserved, "ledger/reserved/gone/0000000000000000000000000a00033a", |reservation| {
        reservation["pool"] = json!("gone");
    })
    .await;
    store
}

#[tokio::test]
pub(crate) async fn half_a_store_is_not_mended() {
    for (key, value) in
        [("meta/restoring", "1"), ("meta/sealed", r#"1{"to":"x","at":"2026-01-02T03:04:05Z"}"#)]
    {
        let store = broken().await;
        put(&*store, key, value).await;
        let report = check::check(&*store).await.unwrap();
        assert!(report.problems.len() > 150 && !problem_lines(&report).contains("repaired"), "{key}");
        assert_eq!(check::repair(&*store, &report).await.unwrap(), 0);
    }
    // Nor what lies in a pool that cannot be read: it may be there.
    let store = filled().await;
    put(&*store, "ledger/pool/lan", "2{}").await;
    assert_snapshot!(checked_problem_lines(&*store).await, @"ledger/pool/lan: its format `2` is not known to this version of Netstead; use a newer one");
}
