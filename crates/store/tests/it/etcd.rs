//! The store in a real etcd: the contract, leadership, and what becomes of it all when members stop.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use netstead_store::{
    Commit, Condition, EPOCH_KEY, Epoch, EtcdOptions, EtcdStore, Health, Store, StoreError, Version,
    WatchItem, contract,
};
use netstead_testkit::{DelayingProxy, Etcd};
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(30);

fn options(etcd: &Etcd, prefix: &str) -> EtcdOptions {
    EtcdOptions { prefix: prefix.into(), ..EtcdOptions::new(etcd.endpoints()) }
}

async fn open(etcd: &Etcd, prefix: &str) -> Arc<EtcdStore> {
    Arc::new(EtcdStore::open(&options(etcd, prefix)).await.unwrap())
}

async fn put(store: &dyn Store, key: &str, value: &str) -> Result<Version, StoreError> {
    Ok(store.commit(Commit::new().put(key, value)).await?.version)
}

/// Opens a store that has little patience, of members that may still be busy with themselves.
async fn opened(options: &EtcdOptions) -> EtcdStore {
    let work = async {
        loop {
            match EtcdStore::open(options).await {
                Ok(store) => return store,
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    };
    timeout(SOON, work).await.unwrap()
}

/// Waits until a commit has landed.
async fn landed(store: &dyn Store, key: &str, value: &str) {
    let work = async {
        while put(store, key, value).await.is_err() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(SOON, work).await.unwrap();
}

/// Waits until the store answers a read.
async fn healed(store: &dyn Store) {
    let work = async {
        while store.get(b"a").await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(SOON, work).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_keeps_the_contract() {
    let Some(etcd) = Etcd::start(1) else { return };
    let count = AtomicU32::new(0);
    let make = async || {
        let prefix = format!("/test/{}/", count.fetch_add(1, Ordering::Relaxed));
        open(&etcd, &prefix).await as Arc<dyn Store>
    };
    contract::all(make).await;
    contract::durable(async || open(&etcd, "/durable").await as Arc<dyn Store>).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_members_keep_the_contract() {
    let Some(etcd) = Etcd::start(3) else { return };
    let count = AtomicU32::new(0);
    let make = async || {
        let prefix = format!("/test/{}/", count.fetch_add(1, Ordering::Relaxed));
        open(&etcd, &prefix).await as Arc<dyn Store>
    };
    contract::all(make).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outside_of_the_prefix_is_seen_or_touched() {
    let Some(etcd) = Etcd::start(1) else { return };
    etcd.ctl(&["put", "/netstead", "theirs"]).unwrap();
    etcd.ctl(&["put", "/netstead0", "theirs"]).unwrap();
    let store = open(&etcd, "/netstead").await;
    put(&*store, "a", "ours").await.unwrap();
    assert_eq!(store.lead().await.unwrap(), Epoch(1));
    let all = store.snapshot().await.unwrap().range(b"", None, usize::MAX).await.unwrap();
    let keys: Vec<_> = all.iter().map(|entry| String::from_utf8_lossy(&entry.key).into_owned()).collect();
    assert_eq!(keys, ["a", "meta/epoch"]);
    store.close().await;
    let keys = etcd.ctl(&["get", "", "--from-key", "--keys-only"]).unwrap();
    let keys: Vec<_> = keys.split_whitespace().collect();
    assert_eq!(keys, ["/netstead", "/netstead/kv/a", "/netstead/kv/meta/epoch", "/netstead0"]);
}

/// The first renewal of a lease comes as soon as it was taken: one that meets the end of it must not lead again.
#[tokio::test(flavor = "multi_thread")]
async fn who_closes_as_soon_as_it_leads_leaves_the_lead_free() {
    let Some(etcd) = Etcd::start(1) else { return };
    for round in 0..40_u64 {
        let store = open(&etcd, "/n").await;
        assert_eq!(store.lead().await.unwrap(), Epoch(round + 1));
        // The renewal is under way, or not sent yet, or answered.
        sleep(Duration::from_micros(round * 50)).await;
        store.close().await;
        drop(store);
        let keys = etcd.ctl(&["get", "/n/leader", "--keys-only"]).unwrap();
        assert_eq!(keys.trim(), "", "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_waits_until_the_first_resigns() {
    let Some(etcd) = Etcd::start(1) else { return };
    let (first, second) = (open(&etcd, "/n").await, open(&etcd, "/n").await);
    assert_eq!(first.lead().await.unwrap(), Epoch(1));
    let waiting = tokio::spawn({
        let second = Arc::clone(&second);
        async move { second.lead().await }
    });
    // Longer than the lease: it is being renewed.
    sleep(Duration::from_secs(4)).await;
    assert!(!waiting.is_finished());
    assert_eq!(first.health(), Health::Ready);
    put(&*first, "a", "1").await.unwrap();
    first.close().await;
    assert_eq!(timeout(SOON, waiting).await.unwrap().unwrap().unwrap(), Epoch(2));
    put(&*second, "a", "2").await.unwrap();
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_deposed_leader_had_begun_is_refused_and_it_waits_for_its_turn_again() {
    let Some(etcd) = Etcd::start(1) else { return };
    let (first, second) = (open(&etcd, "/n").await, open(&etcd, "/n").await);
    first.lead().await.unwrap();
    put(&*first, "a", "1").await.unwrap();
    // As if its lease had run out while the process stood still.
    etcd.ctl(&["del", "/n/leader"]).unwrap();
    assert_eq!(second.lead().await.unwrap(), Epoch(2));

    let late = first.commit(Commit::new().put("a", "late")).await;
    assert!(matches!(&late, Err(StoreError::Refused { key }) if key == EPOCH_KEY), "{late:?}");
    assert_eq!(second.get(b"a").await.unwrap().unwrap().value, b"1");
    // From here on it is one who follows: it may say something, as that it was late…
    assert_eq!(first.health(), Health::Ready);
    put(&*first, "doubt", "1").await.unwrap();
    // …and leads again once the other ends.
    let again = tokio::spawn({
        let first = Arc::clone(&first);
        async move { first.lead().await }
    });
    sleep(Duration::from_secs(1)).await;
    assert!(!again.is_finished());
    second.close().await;
    assert_eq!(timeout(SOON, again).await.unwrap().unwrap().unwrap(), Epoch(3));
    put(&*first, "a", "2").await.unwrap();
    // Longer than the lease: the new one is being renewed.
    sleep(Duration::from_secs(3)).await;
    put(&*first, "a", "3").await.unwrap();
    first.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_ran_out_unnoticed_is_taken_again_with_the_same_epoch() {
    let Some(mut etcd) = Etcd::start(1) else { return };
    let store = open(&etcd, "/n").await;
    store.lead().await.unwrap();
    put(&*store, "a", "1").await.unwrap();
    etcd.member(0).signal("STOP").unwrap();
    sleep(Duration::from_secs(4)).await;
    assert!(matches!(store.health(), Health::Failed { .. }), "silence is noticed without a commit");
    etcd.member(0).signal("CONT").unwrap();
    healed(&*store).await;
    put(&*store, "a", "2").await.unwrap();
    // Its key is there again, so no other node may lead.
    let back = async {
        while etcd.ctl(&["get", "/n/leader"]).unwrap().is_empty() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(SOON, back).await.unwrap();
    put(&*store, "a", "3").await.unwrap();
    assert_eq!(store.get(EPOCH_KEY).await.unwrap().unwrap().value, b"1");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_over_a_restart_without_gap_or_repeat() {
    let Some(mut etcd) = Etcd::start(1) else { return };
    let store = open(&etcd, "/n").await;
    let mut watch = store.watch(b"").await.unwrap();
    for number in 0..60 {
        if number == 20 || number == 40 {
            etcd.restart(0).unwrap();
            healed(&*store).await;
        }
        put(&*store, &format!("k/{number:02}"), "1").await.unwrap();
    }
    for number in 0..60 {
        let item = timeout(SOON, watch.next()).await.unwrap();
        let Some(WatchItem::Changed { writes, .. }) = item else { panic!("{number}: {item:?}") };
        assert_eq!(writes[0].key(), format!("k/{number:02}").as_bytes());
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_whose_past_was_compacted_is_lost_and_a_snapshot_says_begin_anew() {
    let Some(mut etcd) = Etcd::start(1) else { return };
    let address = etcd.endpoints()[0].strip_prefix("http://").unwrap().parse().unwrap();
    let gate = DelayingProxy::before(address, |_| true).unwrap();
    let behind_gate =
        EtcdOptions { endpoints: vec![format!("http://{}", gate.address())], ..options(&etcd, "/n") };
    let (store, other) = (opened(&behind_gate).await, open(&etcd, "/n").await);
    put(&store, "a", "1").await.unwrap();
    let snapshot = other.snapshot().await.unwrap();
    let mut watch = store.watch(b"").await.unwrap();
    put(&store, "a", "2").await.unwrap();
    assert!(matches!(watch.next().await, Some(WatchItem::Changed { .. })));

    // The connection breaks; the watch tries to come back, and does not get through before its past is gone.
    gate.shut();
    etcd.restart(0).unwrap();
    healed(&*other).await;
    let waits = tokio::task::spawn_blocking(move || (gate.holds_one(SOON), gate));
    let (held, gate) = waits.await.unwrap();
    assert!(held, "the watch does not try to come back");
    let mut last = Version(0);
    for number in 0..20 {
        last = put(&*other, "a", &number.to_string()).await.unwrap();
    }
    etcd.ctl(&["compact", &last.0.to_string()]).unwrap();
    let gone = snapshot.get(b"a").await.unwrap_err();
    assert!(gone.to_string().contains("begin anew"), "{gone}");
    gate.open();
    assert_eq!(timeout(SOON, watch.next()).await.unwrap(), Some(WatchItem::Lost));

    // What begins anew has everything from there on.
    healed(&store).await;
    let mut anew = store.watch(b"").await.unwrap();
    let next = put(&*other, "a", "next").await.unwrap();
    let item = timeout(SOON, anew.next()).await.unwrap();
    assert!(matches!(item, Some(WatchItem::Changed { version, .. }) if version == next), "{item:?}");
    for store in [&store, &*other] {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_member_of_three_may_die_or_hang() {
    let Some(mut etcd) = Etcd::start(3) else { return };
    let options = EtcdOptions { timeout: Duration::from_secs(2), ..options(&etcd, "/n") };
    let store = opened(&options).await;
    landed(&store, "a", "").await;
    store.lead().await.unwrap();
    for member in 0..3 {
        let signal = if member == 1 { "STOP" } else { "KILL" };
        etcd.member(member).signal(signal).unwrap();
        healed(&store).await;
        // A commit may be lost on the way while a new leader is elected; the next ones land.
        landed(&store, "a", &member.to_string()).await;
        etcd.member(member).signal("CONT").ok();
        if signal == "KILL" {
            etcd.restart(member).unwrap();
        }
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_quorum_reads_and_commits_are_errors_and_it_heals() {
    let Some(mut etcd) = Etcd::start(3) else { return };
    let options = EtcdOptions { timeout: Duration::from_secs(1), ..options(&etcd, "/n") };
    let store = opened(&options).await;
    landed(&store, "a", "1").await;
    etcd.member(0).kill().unwrap();
    etcd.member(1).kill().unwrap();
    let read = store.get(b"a").await;
    assert!(matches!(read, Err(StoreError::Unavailable { .. })), "{read:?}");
    let commit = store.commit(Commit::new().put("b", "1")).await;
    assert!(matches!(commit, Err(StoreError::Unknown { .. } | StoreError::Unavailable { .. })), "{commit:?}");
    assert!(matches!(store.health(), Health::Failed { .. }));
    let own = store.own_snapshot().await.unwrap();
    assert_eq!(own.get(b"a").await.unwrap().unwrap().value, b"1", "the member that is left has its copy");
    assert_eq!(own.range(b"", None, 9).await.unwrap().len(), 1);
    assert!(matches!(store.health(), Health::Failed { .. }), "and that says nothing about a majority");
    etcd.restart(0).unwrap();
    healed(&store).await;
    assert_eq!(store.get(b"a").await.unwrap().unwrap().value, b"1");
    assert_eq!(store.health(), Health::Ready);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_needed_where_one_is_asked_for_and_a_new_token_comes_by_itself() {
    let Some(etcd) = Etcd::start_with(1, "http", &["--auth-token-ttl", "1"]) else { return };
    for command in [
        "user add root:root",
        "user grant-role root root",
        "role add netstead",
        "role grant-permission --prefix netstead readwrite /n/",
        "user add ned:secret",
        "user grant-role ned netstead",
        "auth enable",
    ] {
        // Debian's etcd has no role `root` to begin with.
        let run = |command: &str| etcd.ctl(&command.split(' ').collect::<Vec<_>>());
        if run(command).is_err() {
            run("role add root").unwrap();
            run(command).unwrap();
        }
    }
    let refused = EtcdStore::open(&options(&etcd, "/n")).await.unwrap_err().to_string();
    assert!(refused.contains("set `user` and `password`"), "{refused}");

    let with = |name: &str, password: &str, prefix: &str| EtcdOptions {
        user: Some((name.into(), password.into())),
        ..options(&etcd, prefix)
    };
    let wrong = EtcdStore::open(&with("ned", "wrong", "/n")).await.unwrap_err().to_string();
    assert!(wrong.contains("the user `ned` is refused"), "{wrong}");
    let outside = EtcdStore::open(&with("ned", "secret", "/other")).await.unwrap_err().to_string();
    assert!(outside.contains("needs read and write on the whole prefix"), "{outside}");

    let store = EtcdStore::open(&with("ned", "secret", "/n")).await.unwrap();
    store.lead().await.unwrap();
    let first = put(&store, "a", "1").await.unwrap();
    sleep(Duration::from_secs(3)).await;
    let swap = Commit::new().when(Condition::Version(b"a".to_vec(), first)).put("a", "2");
    store.commit(swap).await.unwrap();
    store.close().await;
}
