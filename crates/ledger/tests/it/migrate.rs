//! Everything goes to another store, whatever breaks on the way, and never are both stores open.

use std::sync::Arc;

use netstead_ledger::{
    Ledger, LedgerError, Options,
    check::check,
    migrate::{MigrateError, migrate},
};
use netstead_model::ManualClock;
use netstead_store::{Commit, Entry, FaultyStore, Store, faults::Fault};

use crate::{ground, support::House};

/// A store with more than one commit's worth of keys that nobody leads.
async fn filled() -> Arc<FaultyStore> {
    let store = ground::faulty().await;
    let house = House::on(store.clone(), Options::default()).await;
    house.make("lan", "10.0.0.0/16").await;
    for number in 0..150 {
        house.claim("ann", "lan", &format!("machine-{number}")).await;
    }
    house.ledger.close().await;
    store
}

async fn empty() -> Arc<FaultyStore> {
    ground::faulty().await
}

async fn content(store: &FaultyStore) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = store.snapshot().await.unwrap().range(b"", None, usize::MAX).await.unwrap();
    all.into_iter().map(|Entry { key, value, .. }| (key, value)).collect()
}

async fn opens(store: &Arc<FaultyStore>) -> bool {
    // A store without a ledger would get a new one.
    if store.get(b"ledger/head").await.unwrap().is_none() {
        return false;
    }
    match Ledger::open(store.clone(), ManualClock::default().shared(), Options::default()).await {
        Ok(ledger) => {
            ledger.close().await;
            true
        }
        Err(LedgerError::Moved { .. } | LedgerError::Damaged { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
pub(crate) async fn a_moved_ledger_is_the_same_ledger() {
    let (from, to, clock) = (filled().await, empty().await, ManualClock::default());
    let before = content(&from).await;
    let moved = migrate(&*from, &*to, &clock, "elsewhere").await.unwrap();
    assert_eq!(content(&to).await, before);
    assert_eq!(moved.entries, before.len() as u64);
    assert_eq!(check(&*to).await.unwrap().problems, []);

    let refused = Ledger::open(from.clone(), clock.shared(), Options::default()).await.unwrap_err();
    assert!(refused.to_string().contains("moved to elsewhere"), "{refused}");
    let house = House::on(to.clone(), Options::default()).await;
    assert_eq!(house.claim("ann", "lan", "machine-0").await, "10.0.0.1", "again");
    assert_eq!(house.claim("ann", "lan", "new").await, "10.0.0.151", "it does not pause");
    house.ledger.close().await;

    let again = migrate(&*from, &*to, &clock, "elsewhere").await.unwrap_err();
    assert!(matches!(again, MigrateError::MovedAlready(_)), "{again}");
    let third = migrate(&*from, &*empty().await, &clock, "a third").await.unwrap_err();
    assert!(matches!(third, MigrateError::MovedAlready(_)), "{third}");
}

#[tokio::test]
pub(crate) async fn whatever_commit_breaks_one_store_opens_at_most_and_moving_again_ends_it() {
    for fault in [Fault::Fail, Fault::LandUnknown, Fault::LoseUnknown] {
        for (at_old, number) in (0..8).map(|number| (false, number)).chain([(true, 0)]) {
            let (from, to, clock) = (filled().await, empty().await, ManualClock::default());
            let broken = if at_old { &from } else { &to };
            let mut faults = vec![Fault::Pass; number];
            faults.push(fault);
            broken.script(faults);
            let first = migrate(&*from, &*to, &clock, "elsewhere").await;
            broken.script([]);
            let (old, new) = (opens(&from).await, opens(&to).await);
            assert!(!(old && new), "{fault:?} {at_old} {number}: both are open");
            assert!(first.is_err() || new, "{fault:?} {at_old} {number}: it was said to be done");
            match migrate(&*from, &*to, &clock, "elsewhere").await {
                Ok(_) | Err(MigrateError::MovedAlready(_)) => {}
                Err(error) => panic!("{fault:?} {at_old} {number}: {error}"),
            }
            assert!(!opens(&from).await && opens(&to).await, "{fault:?} {at_old} {number}");
            assert_eq!(check(&*to).await.unwrap().claims, 150);
        }
    }
}

#[tokio::test]
pub(crate) async fn what_is_not_empty_or_not_sound_is_left_alone() {
    let (from, clock) = (filled().await, ManualClock::default());
    let other = filled().await;
    let before = content(&other).await;
    let refused = migrate(&*from, &*other, &clock, "other").await.unwrap_err();
    assert!(matches!(refused, MigrateError::NotEmpty), "{refused}");
    assert_eq!(content(&other).await, before);
    let nothing = migrate(&*empty().await, &*empty().await, &clock, "other").await.unwrap_err();
    assert!(matches!(nothing, MigrateError::NothingThere), "{nothing}");
    from.commit(Commit::new().put("ledger/nonsense", "1")).await.unwrap();
    let unsound = migrate(&*from, &*empty().await, &clock, "other").await.unwrap_err();
    assert!(matches!(unsound, MigrateError::Unsound { .. }), "{unsound}");
    assert!(opens(&from).await);
}
