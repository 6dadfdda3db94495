//! Everything goes to another store, whatever breaks on the way, and never are both stores open.

use std::{sync::Arc, time::Duration};

use netstead_ledger::{
    Command, Ledger, LedgerError, Options,
    check::check,
    migrate::{MigrateError, migrate},
};
use netstead_model::ManualClock;
use netstead_store::{Commit, FaultyStore, Store, faults::Fault};
use tokio::time::sleep;

use crate::{
    between_stores::content,
    lying_store::{LyingStore, twists},
    store_under_test::{self, let_time_pass},
    support::{House, any},
};

const CLAIMS: u64 = 120;

/// A store without a leader that has more keys than fit into one commit.
async fn filled() -> Arc<FaultyStore> {
    let store = store_under_test::faulty().await;
    let house = House::on(store.clone(), Options::default()).await;
    house.make("lan", "10.0.0.0/16").await;
    for first in (0..CLAIMS).step_by(60) {
        let bulk = (first..first + 60).map(|number| any("lan", &format!("machine-{number}"))).collect();
        house.ask("ann", Command::Bulk(bulk)).await.unwrap();
    }
    house.ledger.close().await;
    store
}

async fn empty() -> Arc<FaultyStore> {
    store_under_test::faulty().await
}

async fn opens(store: &Arc<impl Store + 'static>) -> bool {
    // A store without a ledger would get a new one.
    if store.get(b"ledger/head").await.unwrap().is_none() {
        return false;
    }
    match Ledger::open(store.clone(), ManualClock::default().shared(), Options::default()).await {
        Ok(ledger) => {
            ledger.close().await;
            true
        }
        Err(LedgerError::Moved { .. } | LedgerError::Unfinished { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
pub(crate) async fn a_moved_ledger_is_the_same_ledger() {
    let (from, to, clock) = (filled().await, empty().await, ManualClock::default());
    let before = content(&*from).await;
    let moved = migrate(&*from, &*to, &clock, "elsewhere").await.unwrap();
    assert_eq!(content(&*to).await, before);
    assert_eq!(moved.entries, before.len() as u64);
    assert_eq!(check(&*to).await.unwrap().problems, []);

    let refused = Ledger::open(from.clone(), clock.shared(), Options::default()).await.unwrap_err();
    assert!(refused.to_string().contains("moved to elsewhere"), "{refused}");
    let house = House::on(to.clone(), Options::default()).await;
    assert_eq!(house.claim("ann", "lan", "machine-0").await, "10.0.0.1", "again");
    assert_eq!(house.claim("ann", "lan", "new").await, "10.0.0.121", "it does not pause");
    house.ledger.close().await;

    let again = migrate(&*from, &*to, &clock, "elsewhere").await.unwrap_err();
    assert!(matches!(again, MigrateError::MovedAlready(_)), "{again}");
    let third = migrate(&*from, &*empty().await, &clock, "a third").await.unwrap_err();
    assert!(matches!(third, MigrateError::MovedAlready(_)), "{third}");
}

#[tokio::test]
pub(crate) async fn whatever_commit_breaks_one_store_opens_at_most_and_moving_again_ends_it() {
    let (from, clock) = (filled().await, ManualClock::default());
    for fault in [Fault::Fail, Fault::LandUnknown, Fault::LoseUnknown] {
        for (at_old, number) in [(true, 0), (false, 0), (false, 1), (false, 2), (false, 3)] {
            let to = empty().await;
            let broken = if at_old { &from } else { &to };
            let (mut faults, before) = (vec![Fault::Pass; number], broken.commits());
            faults.push(fault);
            broken.script(faults);
            let first = migrate(&*from, &*to, &clock, "elsewhere").await;
            assert!(broken.commits() > before + number as u64, "nothing broke: {first:?}");
            broken.script([]);
            let (old, new) = (opens(&from).await, opens(&to).await);
            assert!(!(old && new), "{fault:?} {at_old} {number}: both are open");
            assert!(first.is_err() || new, "{fault:?} {at_old} {number}: it was said to be done");
            match migrate(&*from, &*to, &clock, "elsewhere").await {
                Ok(_) | Err(MigrateError::MovedAlready(_)) => {}
                Err(error) => panic!("{fault:?} {at_old} {number}: {error}"),
            }
            assert!(!opens(&from).await && opens(&to).await, "{fault:?} {at_old} {number}");
            assert_eq!(check(&*to).await.unwrap().claims, CLAIMS);
            // For the next time it is as if it had not been moved.
            from.commit(Commit::new().delete("meta/sealed")).await.unwrap();
        }
    }
}

#[tokio::test]
pub(crate) async fn what_is_not_empty_or_not_sound_is_left_alone() {
    let (from, clock) = (filled().await, ManualClock::default());
    let other = filled().await;
    let before = content(&*other).await;
    let refused = migrate(&*from, &*other, &clock, "other").await.unwrap_err();
    assert!(matches!(refused, MigrateError::NotEmpty), "{refused}");
    assert_eq!(content(&*other).await, before);
    let nothing = migrate(&*empty().await, &*empty().await, &clock, "other").await.unwrap_err();
    assert!(matches!(nothing, MigrateError::NothingThere), "{nothing}");
    from.commit(Commit::new().put("ledger/nonsense", "1")).await.unwrap();
    let unsound = migrate(&*from, &*empty().await, &clock, "other").await.unwrap_err();
    assert!(matches!(unsound, MigrateError::Unsound { .. }), "{unsound}");
    assert!(opens(&from).await);
}

#[tokio::test(start_paused = true)]
pub(crate) async fn what_changes_while_it_is_copied_is_not_moved() {
    let_time_pass();
    let (from, to, clock) = (filled().await, empty().await, ManualClock::default());
    let house = House::on(from.clone(), Options::default()).await;
    // So long that a claim is faster, on any store.
    to.script([Fault::Delay(Duration::from_secs(3))]);
    let late = async {
        while to.commits() == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        let address = house.claim("ann", "lan", "late").await;
        house.ledger.close().await;
        address
    };
    let (moved, address) = tokio::join!(migrate(&*from, &*to, &clock, "elsewhere"), late);
    assert!(matches!(moved, Err(MigrateError::Changed)), "{moved:?}");
    assert!(opens(&from).await && !opens(&to).await);
    migrate(&*from, &*to, &clock, "elsewhere").await.unwrap();
    let house = House::on(to, Options::default()).await;
    assert_eq!(house.holder("lan", "late").await.unwrap().held(), address);
}

#[tokio::test]
async fn a_new_store_that_holds_something_else_is_not_opened_and_the_old_one_is() {
    let (from, clock) = (filled().await, ManualClock::default());
    let before = content(&*from).await;
    let mut caught = 0;
    // Of each commit some.
    for (key, _) in before.iter().step_by(30).chain(before.last_key_value()) {
        for (name, twist) in twists(key) {
            let to = Arc::new(LyingStore::new(store_under_test::store().await, twist));
            let told = migrate(&*from, &*to, &clock, "elsewhere").await;
            let of = String::from_utf8_lossy(key);
            assert!(matches!(told, Err(MigrateError::Differs)), "{name} {of}: {told:?}");
            assert!(!opens(&to).await, "{name} {of}");
            assert_eq!(content(&*from).await, before, "{name} {of}");
            caught += 1;
        }
    }
    assert!(caught >= 15, "{caught}");
    assert!(opens(&from).await);
}

#[tokio::test]
async fn a_seal_that_was_lost_leaves_the_new_store_closed() {
    let (filled, to, clock) = (filled().await, empty().await, ManualClock::default());
    let from =
        Arc::new(LyingStore::new(filled, |writes| writes.retain(|write| write.key() != b"meta/sealed")));
    let told = migrate(&*from, &*to, &clock, "elsewhere").await;
    assert!(matches!(told, Err(MigrateError::NotSealed)), "{told:?}");
    assert!(opens(&from).await && !opens(&to).await);
}

#[tokio::test]
async fn a_new_store_that_does_not_open_is_not_said_to_be_in_use() {
    let (from, clock) = (filled().await, ManualClock::default());
    let to = Arc::new(LyingStore::new(store_under_test::store().await, |writes| {
        writes
            .retain(|write| !matches!(write, netstead_store::Write::Delete(key) if key == b"meta/restoring"));
    }));
    let told = migrate(&*from, &*to, &clock, "elsewhere").await;
    assert!(matches!(told, Err(MigrateError::Differs)), "{told:?}");
    assert!(!opens(&from).await && !opens(&to).await);
    to.stop_lying();
    migrate(&*from, &*to, &clock, "elsewhere").await.unwrap();
    assert!(opens(&to).await);
}
