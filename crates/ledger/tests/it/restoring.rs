//! An old backup knows nothing of what was given out after it: what comes out of it gives out nothing by itself.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use insta::assert_snapshot;
use netstead_ledger::{
    Command, Ledger, LedgerError, Options, Reply,
    backup::{self, BackupError},
    record::HEAD_KEY,
};
use netstead_model::{ManualClock, Span, Want};
use netstead_store::{Commit, Store, Write, faults::Fault};
use tempfile::TempDir;

use crate::{
    between_stores::content,
    lying_store::{LyingStore, twists},
    store_under_test,
    support::{House, any, claim, exact, key, living, observe, prefixes, restless, target},
};

/// A file with all that is there now.
async fn saved(house: &House) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("backup");
    let mut file = tokio::fs::File::create(&path).await.unwrap();
    backup::write(&*house.store, &house.clock, &mut file).await.unwrap();
    (dir, path)
}

async fn restored((_dir, path): (TempDir, PathBuf), house: &House) -> House {
    let store = store_under_test::store().await;
    backup::restore(&*store, &house.clock, &path, 1, |_, _| true).await.unwrap();
    House::on(store, Options::default()).await
}

fn waits(pool: &str, name: &str) -> Command {
    claim(pool, name, |request| (request.wait, request.keep) = (Some(Span::ZERO), true))
}

/// Two pools, a queue, and one who came back for what it had.
async fn before() -> House {
    let house = House::new().await;
    house.make_so("lan", "10.0.3.50-10.0.3.59", |spec| spec.cooldown = Span::from_secs(3600)).await;
    house.make_so("sites", "10.1.0.0/24", prefixes(26)).await;
    house.make_so("one", "10.2.0.1", restless).await;
    house.claim("ann", "lan", "web").await;
    house.claim("ann", "lan", "old").await;
    house.release("ann", "lan", "old").await;
    house.claim("ann", "sites", "home").await;
    house.ask("ann", claim("one", "leased", living(60))).await.unwrap();
    assert_eq!(house.say("bob", waits("one", "queued")).await, "queued waits");
    house
}

#[tokio::test]
pub(crate) async fn what_was_given_out_after_the_backup_is_given_to_nobody_else() {
    let house = before().await;
    let file = saved(&house).await;
    // All of this is lost with the disk, and goes on being used.
    let lost = house.claimed("cid", "lan", "db").await;
    assert_eq!(lost.held(), "10.0.3.52");
    house.claim("cid", "lan", "cache").await;
    house.claim("cid", "sites", "lab").await;
    let force = claim("lan", "new", |request| {
        (request.want, request.force) = (Want::Exact("10.0.3.51".parse().unwrap()), true);
    });
    assert_eq!(house.say("dan", force).await, "10.0.3.51 for new of dan, new");
    let house = restored(file, &house).await;
    assert_ne!(house.ledger.id(), lost.id.ledger);

    let prefer = claim("lan", "p", |request| request.want = Want::Prefer("10.0.3.50".parse().unwrap()));
    let mut shown = Vec::new();
    for (who, command) in [
        ("eve", any("lan", "fresh")),
        ("ann", any("lan", "old")),
        ("eve", prefer),
        ("eve", any("sites", "office")),
        ("eve", Command::Bulk(vec![claim("lan", "x", exact("10.0.3.59")), any("lan", "y")])),
        ("eve", waits("lan", "patient")),
    ] {
        shown.push(house.say(who, command).await);
    }
    let paused = "this ledger was restored from a backup and hands out no address by itself until \
                  `netstead resume`; exact claims work";
    assert_snapshot!(shown.join("\n").replace(paused, "paused"), @r"
    refused: paused
    refused: paused
    refused: paused
    refused: paused
    refused: entry 1, `y`: paused
    refused: paused
    ");
    // Neither time nor the end of a lease nor another leader changes that.
    house.clock.advance(Duration::from_hours(24));
    for _ in 0..3 {
        assert!(house.say("eve", any("lan", "fresh")).await.contains("restored from a backup"));
    }
    let house = house.restart().await;
    assert!(house.ledger.health().paused);
    assert_eq!(house.pool("one").await.usage.waiting, 1, "who waits is not served");
    assert_eq!(house.pool("lan").await.usage.held, 1);
    assert_eq!(house.say("ann", any("lan", "web")).await, "10.0.3.50 for web of ann, again");
}

#[tokio::test]
pub(crate) async fn who_lost_something_gets_it_back_by_name_and_an_old_id_touches_nothing() {
    let house = before().await;
    let file = saved(&house).await;
    let lost = house.claimed("cid", "lan", "db").await;
    house.claim("cid", "lan", "cache").await;
    let house = restored(file, &house).await;
    // A source still sees what runs; the owner of another says which was its own.
    house.ask("docker", observe("docker", true, &["10.0.3.53"])).await.unwrap();
    assert_eq!(
        house.say("cid", claim("lan", "db", exact("10.0.3.52"))).await,
        "10.0.3.52 for db of cid, new"
    );
    let late = Command::Release(target("lan", "db", Some(lost.id)));
    assert_eq!(house.say("cid", late).await, "already gone");
    let now = house.holder("lan", "db").await.unwrap();
    assert_eq!(now.held(), "10.0.3.52");
    assert_ne!(now.id, lost.id);
    assert_eq!(house.ask("admin", Command::Resume).await, Ok(Reply::Resumed));
    // 50 is held, 51 rests, 52 was named, 53 is seen.
    assert_eq!(house.claim("eve", "lan", "fresh").await, "10.0.3.54");
    assert_eq!(house.pool("one").await.usage.waiting, 1);
    house.ask("bob", Command::Abandon { pool: "one".parse().unwrap(), key: key("queued") }).await.unwrap();
    let log = house.log().await;
    assert!(log.contains(&"restored") && log.contains(&"resumed"), "{log:?}");
}

async fn restore(store: &dyn Store, file: &(TempDir, PathBuf)) -> Result<backup::Summary, BackupError> {
    backup::restore(store, &ManualClock::default(), &file.1, 1, |_, _| true).await
}

/// Half a ledger is none: no node can use it, and none begins a new one in its place.
async fn is_refused(store: Arc<dyn Store>) -> bool {
    let opened = Ledger::open(store, ManualClock::default().shared(), Options::default()).await;
    match opened {
        Ok(ledger) => ledger.close().await,
        Err(LedgerError::Unfinished { .. }) => return true,
        Err(error) => panic!("{error}"),
    }
    false
}

#[tokio::test]
async fn a_store_that_holds_something_else_than_was_restored_is_caught_and_not_opened() {
    let file = saved(&before().await).await;
    let whole = store_under_test::store().await;
    let event = restore(&*whole, &file).await.unwrap().seq + 1;
    let keys: Vec<_> = content(&*whole).await.into_keys().collect();
    let event = netstead_ledger::record::event_key(event).into_bytes();
    assert!(keys.contains(&event) && keys.contains(&HEAD_KEY.into()) && keys.len() > 15, "{}", keys.len());
    for key in &keys {
        for (name, twist) in twists(key) {
            let store = Arc::new(LyingStore::new(store_under_test::store().await, twist));
            let told = restore(&*store, &file).await;
            let of = String::from_utf8_lossy(key);
            assert!(matches!(told, Err(BackupError::Differs)), "{name} {of}: {told:?}");
            assert!(is_refused(store).await, "{name} {of}");
        }
    }
}

#[tokio::test]
async fn a_store_that_does_not_open_is_not_said_to_be_restored() {
    let file = saved(&before().await).await;
    let store = Arc::new(LyingStore::new(store_under_test::store().await, |writes| {
        writes.retain(|write| !matches!(write, Write::Delete(key) if key == b"meta/restoring"));
    }));
    let told = restore(&*store, &file).await;
    assert!(matches!(told, Err(BackupError::Differs)), "{told:?}");
    assert!(is_refused(store).await);
}

#[tokio::test]
pub(crate) async fn whatever_commit_breaks_half_a_ledger_is_not_opened() {
    let house = House::new().await;
    house.make("lan", "10.0.0.0/16").await;
    for first in [0, 60] {
        let bulk = (first..first + 60).map(|number| any("lan", &format!("machine-{number}"))).collect();
        house.ask("ann", Command::Bulk(bulk)).await.unwrap();
    }
    let file = saved(&house).await;
    for fault in [Fault::Fail, Fault::LandUnknown, Fault::LoseUnknown] {
        let mut number = 0;
        loop {
            let store = store_under_test::faulty().await;
            let mut faults = vec![Fault::Pass; number];
            faults.push(fault);
            store.script(faults);
            let told = restore(&*store, &file).await;
            let broken = store.commits() > number as u64;
            assert_eq!(told.is_err(), broken, "{fault:?} {number}: {told:?}");
            if !broken {
                break;
            }
            let there = content(&*store).await;
            if number == 0 && fault != Fault::LandUnknown {
                assert!(there.is_empty(), "{fault:?}");
            } else if there.contains_key(&b"meta/restoring"[..]) {
                assert!(is_refused(store).await, "{fault:?} {number}");
            } else {
                // All of it is there, and only the last answer was lost.
                assert_eq!(
                    (fault, there.len()),
                    (Fault::LandUnknown, content(&*house.store).await.len() + 1)
                );
            }
            number += 1;
        }
        assert_eq!(number, 4, "it begins, fills in two, and ends");
    }
}

#[tokio::test]
pub(crate) async fn what_was_not_sound_is_restored_and_said_to_be_so() {
    let house = before().await;
    house.store.commit(Commit::new().put("ledger/nonsense", "1")).await.unwrap();
    let file = saved(&house).await;
    let store = store_under_test::store().await;
    let told = restore(&*store, &file).await.unwrap_err();
    assert_snapshot!(told, @"everything is restored as it was, and that was not sound: `ledger/nonsense`: no page of the manual knows this key");
    let house = House::on(store, Options::default()).await;
    assert_eq!(house.say("ann", any("lan", "web")).await, "10.0.3.50 for web of ann, again");
}

#[tokio::test]
pub(crate) async fn the_backup_of_a_newer_store_touches_no_store_of_an_older_program() {
    let house = before().await;
    house.store.commit(Commit::new().put("meta/format", "2")).await.unwrap();
    let file = saved(&house).await;
    let store = store_under_test::store().await;
    let told = restore(&*store, &file).await.unwrap_err();
    assert_snapshot!(told, @"the backup is of a store of format 2, and this version of Netstead understands formats up to 1; nothing was restored");
    assert!(content(&*store).await.is_empty());
    backup::restore(&*store, &house.clock, &file.1, 2, |_, _| true).await.unwrap();
    assert_eq!(content(&*store).await[&b"meta/format"[..]], b"2");
}

#[tokio::test]
async fn a_line_without_end_is_not_read_to_it() {
    let store = store_under_test::store().await;
    let clock = ManualClock::default();
    let restored = backup::restore(&*store, &clock, Path::new("/dev/zero"), 1, |_, _| true).await;
    assert_snapshot!(
        restored.unwrap_err(),
        @"line 1 of the backup is not valid: it has more than 16777216 bytes; nothing was restored"
    );
}

#[tokio::test]
async fn a_file_whose_keys_are_in_disorder_touches_no_store() {
    let file = saved(&before().await).await;
    let text = std::fs::read_to_string(&file.1).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.swap(1, 2);
    std::fs::write(&file.1, lines.join("\n")).unwrap();
    let store = store_under_test::store().await;
    let told = restore(&*store, &file).await.unwrap_err();
    assert_snapshot!(told, @"line 3 of the backup is not valid: its key does not come after the one before; nothing was restored");
    assert!(content(&*store).await.is_empty());
}
