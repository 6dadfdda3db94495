//! Everything goes from every store to every other, by a backup and by moving, and is the same there byte for byte.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use netstead_ledger::{
    Command, Ledger, Options, backup,
    check::check,
    migrate::migrate,
    record::{self, HEAD_KEY, Head, event_key},
};
use netstead_model::{ManualClock, Span};
use netstead_store::{Commit, Store};

use crate::{
    store_under_test::StoreFactory,
    support::{House, any, claim, exact, key, living, observe, prefixes},
};

/// More than one commit holds.
const MACHINES: u64 = 240;

pub(crate) async fn content(store: &dyn Store) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let all = store.snapshot().await.unwrap().range(b"", None, usize::MAX).await.unwrap();
    all.into_iter().map(|entry| (entry.key, entry.value)).collect()
}

/// Fills it with something of every kind; it has no leader.
async fn fill(store: &Arc<dyn Store>) {
    let house = House::on(store.clone(), Options::default()).await;
    house.make("lan", "10.0.0.0/16").await;
    house.make("six", "fd00::/64").await;
    house.make("macs", "02:00:00:00:00:00-02:00:00:00:00:ff").await;
    house.make_so("sites", "10.1.0.0/24", prefixes(26)).await;
    house.make("one", "10.2.0.1").await;
    for first in (0..MACHINES).step_by(60) {
        let bulk = (first..first + 60).map(|number| any("lan", &format!("machine-{number}"))).collect();
        house.ask("ann", Command::Bulk(bulk)).await.unwrap();
    }
    house.release("ann", "lan", "machine-7").await;
    for pool in ["six", "macs", "sites", "one"] {
        house.claim("ann", pool, "home").await;
    }
    house.ask("ann", claim("lan", "leased", living(60))).await.unwrap();
    let (pool, range) = ("lan".parse().unwrap(), "10.0.9.1-10.0.9.4".parse().unwrap());
    let reserve =
        Command::Reserve { pool, key: key("spare"), range, description: Some("für später".into()) };
    house.ask("ann", reserve).await.unwrap();
    house.ask("docker", observe("docker", true, &["10.0.8.8"])).await.unwrap();
    let waits = claim("one", "queued", |request| (request.wait, request.keep) = (Some(Span::ZERO), true));
    assert_eq!(house.say("bob", waits).await, "queued waits");
    house.ledger.close().await;
    // What other rooms keep: a version and JSON.
    let others = Commit::new()
        .put("access/token/ann", "1{\"secret\":\"a\"}")
        .put("access/token/local", "1{\"secret\":\"b\"}")
        .put("cluster/member/n1", "1{}")
        .put("dns/zone/example.net", "1{\"serial\":7}")
        .put("engine/owned/lan/example.net", format!("1\"{}\"", "x".repeat(100_000)))
        .put("meta/format", "1");
    store.commit(others).await.unwrap();
}

/// Keys that a backup restores, as the command line has it: no token but one, and no nodes.
fn comes_along(key: &[u8]) -> bool {
    key == b"access/token/local" || !(key.starts_with(b"access/token/") || key.starts_with(b"cluster/"))
}

async fn goes_by_backup(from: &dyn Store, to: Arc<dyn Store>, path: &Path) {
    let (clock, mut expected) = (ManualClock::default(), content(from).await);
    let mut file = tokio::fs::File::create(path).await.unwrap();
    let written = backup::write(from, &clock, &mut file).await.unwrap();
    assert_eq!(written.entries, expected.len() as u64);
    let restored = backup::restore(&*to, &clock, path, 1, |key, _| comes_along(key)).await.unwrap();
    assert_eq!(restored, written);

    let mut there = content(&*to).await;
    expected.retain(|key, _| comes_along(key));
    // Another id, a pause, and an event that says so; all else is the same.
    let take_head = |all: &mut BTreeMap<Vec<u8>, Vec<u8>>| -> Head {
        record::decode(HEAD_KEY.as_bytes(), &all.remove(HEAD_KEY.as_bytes()).unwrap()).unwrap()
    };
    let (old, new) = (take_head(&mut expected), take_head(&mut there));
    assert!(there.remove(event_key(old.seq + 1).as_bytes()).is_some());
    assert_eq!(there, expected);
    assert!(new.ledger != old.ledger && new.batch != old.batch);
    let begun = Head { ledger: new.ledger, batch: new.batch, seq: old.seq + 1, paused: true, ..old };
    assert_eq!(new, begun);
    assert_eq!(check(&*to).await.unwrap().problems, []);
    let house = House::on(to, Options::default()).await;
    assert_eq!(house.claim("ann", "lan", "machine-0").await, "10.0.0.1");
    assert!(house.say("ann", any("lan", "new")).await.contains("restored from a backup"));
    house.ledger.close().await;
}

async fn moves(from: Arc<dyn Store>, to: Arc<dyn Store>) {
    let clock = ManualClock::default();
    from.lead().await.unwrap();
    let expected = content(&*from).await;
    let moved = migrate(&*from, &*to, &clock, "elsewhere").await.unwrap();
    assert_eq!(content(&*to).await, expected);
    assert_eq!(moved.entries, expected.len() as u64);
    assert_eq!(check(&*to).await.unwrap().problems, []);
    let refused = Ledger::open(from, clock.shared(), Options::default()).await.unwrap_err();
    assert!(refused.to_string().contains("moved to elsewhere"), "{refused}");
    let house = House::on(to, Options::default()).await;
    assert_eq!(house.claim("ann", "lan", "machine-0").await, "10.0.0.1");
    assert_eq!(
        house.say("bob", claim("lan", "new", exact("10.0.7.7"))).await,
        "10.0.7.7 for new of bob, new"
    );
    house.ledger.close().await;
}

#[test]
fn everything_goes_from_every_store_to_every_other() {
    let dir = tempfile::tempdir().unwrap();
    let grounds = [
        ("local", Some(StoreFactory::local())),
        ("etcd", StoreFactory::etcd(1)),
        ("raft", Some(StoreFactory::raft())),
    ];
    let grounds: Vec<_> =
        grounds.iter().filter_map(|(name, ground)| Some((name, ground.as_ref()?))).collect();
    for (old, from) in &grounds {
        for (new, to) in &grounds {
            println!("from {old} to {new}");
            let path = dir.path().join(format!("{old}-{new}"));
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let from = from.store().await;
                fill(&from).await;
                goes_by_backup(&*from, to.store().await, &path).await;
                moves(from, to.store().await).await;
            });
        }
    }
}
