//! An old backup knows nothing of what was given out after it: what comes out of it gives out nothing by itself.

use std::{path::PathBuf, time::Duration};

use insta::assert_snapshot;
use netstead_ledger::{Command, Options, Reply, backup};
use netstead_model::{Span, Want};
use tempfile::TempDir;

use crate::{
    ground,
    support::{House, any, claim, exact, key, living, prefixes, restless, seen, target},
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
    let store = ground::store().await;
    backup::restore(&*store, &house.clock, &path, |_, _| true).await.unwrap();
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
    house.ask("docker", seen("docker", true, &["10.0.3.53"])).await.unwrap();
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
