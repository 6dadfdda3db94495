//! A store of which a part cannot be read: what needs that part says so at once, and everything else goes on.

use std::{sync::Arc, time::Duration};

use netstead_ledger::{
    EventQuery, Ledger, LedgerError, Options,
    backup::{self, BackupError, OnDamage},
    check,
    damage::{advice, describe},
    record::event_key,
};
use netstead_store::{Damage, FaultyStore, MemoryStore, Store};
use tokio::time::timeout;

use crate::support::{House, any, key, restless};

/// A ledger on a store that can be damaged, with `lan` and the claims `c0` to `c19` of ann, each made and released.
async fn house() -> (House, Arc<FaultyStore>) {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let house = House::on(store.clone(), Options::default()).await;
    house.make_so("lan", "10.0.3.0-10.0.3.255", restless).await;
    for number in 0..20 {
        house.claim("ann", "lan", &format!("c{number}")).await;
    }
    (house, store)
}

/// The number of the event with which `key_of` was claimed.
async fn seq_of(house: &House, key_of: &str) -> u64 {
    house.find(EventQuery { key: Some(key(key_of)), ..EventQuery::default() }).await[0].seq
}

/// Damages the events from that of claim `c8` to that of `c11`, and opens the ledger anew.
async fn with_damaged_events() -> (House, Arc<FaultyStore>) {
    let (house, store) = house().await;
    let (first, last) = (seq_of(&house, "c8").await, seq_of(&house, "c11").await);
    store.damage_keys(&event_key(first)..=&event_key(last));
    (house.restart().await, store)
}

async fn asked(house: &House, query: EventQuery) -> Result<Vec<String>, LedgerError> {
    let asked = house.ledger.events(&query);
    let page = timeout(Duration::from_secs(5), asked).await.expect("an answer must come at once")?;
    Ok(page
        .events
        .iter()
        .flat_map(|event| event.keys().map(ToString::to_string).collect::<Vec<_>>())
        .collect())
}

fn is_damaged(answer: &Result<Vec<String>, LedgerError>) -> bool {
    matches!(answer, Err(LedgerError::Damaged { reason }) if reason.starts_with("the test damaged `ledger/event/"))
}

#[tokio::test]
async fn what_needs_a_damaged_event_says_so_at_once_and_other_history_answers() {
    let (house, store) = with_damaged_events().await;
    let newest = |limit| EventQuery { newest_first: true, limit, ..EventQuery::default() };
    assert_eq!(asked(&house, newest(3)).await.unwrap(), ["c19", "c18", "c17"]);
    assert!(is_damaged(&asked(&house, newest(100)).await), "some of them cannot be read");

    let of_key = |name: &str, limit| EventQuery { key: Some(key(name)), ..newest(limit) };
    assert!(is_damaged(&asked(&house, of_key("c19", 100)).await), "an earlier event may be of the same key");
    assert_eq!(asked(&house, of_key("c19", 1)).await.unwrap(), ["c19"], "the newest is known");
    assert!(is_damaged(&asked(&house, of_key("c9", 100)).await));

    let oldest = |limit| EventQuery { limit, ..EventQuery::default() };
    assert_eq!(asked(&house, oldest(4)).await.unwrap(), ["c0", "c1", "c2"], "the first is of the pool");
    assert!(is_damaged(&asked(&house, oldest(100)).await));

    let [damage] = house.ledger.health().damage.try_into().unwrap();
    assert_eq!(damage.part(), "ledger/event");
    assert_eq!(describe(&damage), format!("events cannot be read in full: {}", damage.reason));
    assert!(house.ledger.health().ready, "the rest is served");
    assert_eq!(house.claim("bob", "lan", "new").await, "10.0.3.21");

    store.mend_keys();
    let report = house.ledger.check_store().await.unwrap();
    assert_eq!(
        (report.problems.len(), house.ledger.health().damage),
        (0, Vec::new()),
        "a clean check forgets it"
    );
}

#[tokio::test]
async fn events_since_a_moment_need_no_older_ones() {
    let (house, _store) = with_damaged_events().await;
    house.clock.advance(Duration::from_mins(10));
    let since = Some(netstead_model::Clock::wall(&house.clock));
    house.claim("bob", "lan", "late").await;
    let query = EventQuery { since, newest_first: true, limit: 100, ..EventQuery::default() };
    assert_eq!(asked(&house, query).await.unwrap(), ["late"]);
}

#[tokio::test]
async fn a_check_says_what_cannot_be_read() {
    let (house, store) = house().await;
    let (first, last) = (seq_of(&house, "c8").await, seq_of(&house, "c11").await);
    store.damage_keys(&event_key(first)..=&event_key(last));
    let report = house.ledger.check_store().await.unwrap();
    let [problem] = report.problems.try_into().unwrap();
    let check::Problem { key, problem, repair, damage } = problem;
    let expected = format!(
        "what lies behind it up to `{}` cannot be read: the test damaged `{}`",
        event_key(last + 1),
        event_key(first)
    );
    assert_eq!((key, problem, repair, damage), (event_key(first - 1), expected.clone(), None, true));
    assert_eq!(house.ledger.health().damage, [Damage { key: event_key(first - 1), reason: expected }]);
}

async fn backed_up(house: &House, on_damage: OnDamage) -> Result<(Vec<u8>, backup::Summary), BackupError> {
    let mut file = Vec::new();
    let snapshot = house.store.snapshot().await.unwrap();
    let summary = backup::write_snapshot(&*snapshot, &house.clock, &mut file, on_damage).await?;
    Ok((file, summary))
}

#[tokio::test]
async fn a_backup_names_the_damage_and_one_without_the_damaged_history_can_be_restored() {
    let (house, store) = with_damaged_events().await;
    let error = backed_up(&house, OnDamage::Fail).await.unwrap_err();
    let (first, last) = (seq_of_damage(&error), house.ledger.health().damage);
    assert_eq!(
        error.to_string(),
        format!(
            "the store is damaged: events cannot be read in full: the test damaged `{first}`; a whole backup cannot be made"
        )
    );
    assert_eq!(
        advice(&*house.store, &last),
        "stop the server, write all that can be read with `netstead store backup --local --leave-out-damaged FILE`, \
         and restore FILE into an empty directory with `netstead store restore`"
    );

    let (file, summary) = backed_up(&house, OnDamage::LeaveOutHistory).await.unwrap();
    let [left_out] = summary.left_out.clone().try_into().unwrap();
    assert!(left_out.starts_with("events between `ledger/event/"), "{left_out}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("backup");
    std::fs::write(&path, file).unwrap();
    assert_eq!(backup::verify(&path).await.unwrap(), summary, "the file itself says what it lacks");
    let fresh: Arc<dyn Store> = Arc::new(MemoryStore::new());
    backup::restore(&*fresh, &house.clock, &path, 1, |_, _| true).await.unwrap();
    let restored = House::on(fresh, Options::default()).await;
    for number in 0..20 {
        let name = format!("c{number}");
        assert_eq!(restored.holder("lan", &name).await, house.holder("lan", &name).await);
    }
    let events = asked(&restored, EventQuery { limit: 1000, ..EventQuery::default() }).await.unwrap();
    assert_eq!(events.len(), 16, "all but the four: {events:?}");
    let reason = restored.events().await.last().unwrap().reason.clone().unwrap();
    assert!(reason.ends_with(&format!("without what could not be read: {left_out}")), "{reason}");
    drop(store);
}

fn seq_of_damage(error: &BackupError) -> String {
    let BackupError::Damaged { damage, .. } = error else { panic!("{error:?}") };
    let quoted = damage[0].reason.split('`').nth(1);
    quoted.unwrap().to_owned()
}

#[tokio::test]
async fn what_holds_an_address_is_never_left_out_of_a_backup() {
    let (house, store) = house().await;
    store.damage_keys("ledger/addr/"..="ledger/addr/~");
    let error = backed_up(&house, OnDamage::LeaveOutHistory).await.unwrap_err();
    assert!(matches!(&error, BackupError::Damaged { left_out: true, .. }), "{error:?}");
    assert!(error.to_string().ends_with("a backup without it must not be restored"), "{error}");
    assert_eq!(house.say("ann", any("lan", "c3")).await, "10.0.3.4 for c3 of ann, again", "the Book has it");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_was_away_while_the_index_was_built_is_asked_again() {
    let (house, store) = house().await;
    house.ledger.close().await;
    let inner: Arc<dyn Store> = store.clone();
    let follower = Ledger::follow(inner, house.clock.shared(), Options::default()).await.unwrap();
    // The task that builds the index has not run yet, and its snapshot comes to nothing.
    store.lose_snapshots();
    let query = EventQuery { key: Some(key("c3")), limit: 10, ..EventQuery::default() };
    let page = timeout(Duration::from_mins(1), follower.events(&query)).await.expect("history must not hang");
    assert_eq!(page.unwrap().events.len(), 1);
    follower.close().await;
}
