use netstead_store::{FaultyStore, MemoryStore, faults::Fault};

use super::*;

const SLOW: Duration = Duration::from_secs(1);

async fn faulty() -> (Arc<FaultyStore>, FencedStore) {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let lead = Arc::new(LeaderEpoch::current(&*store, None).await.unwrap());
    let fenced = FencedStore::new(store.clone(), lead, "test");
    (store, fenced)
}

fn put(number: usize, value: &str) -> Write {
    Write::Put(format!("key/{number:05}").into_bytes(), value.into())
}

/// The paused clock of the test.
#[expect(clippy::disallowed_methods, reason = "the runtime's own time is what passes here")]
fn tokio_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

async fn values(store: &dyn Store) -> Vec<String> {
    let found = entries(store, "key/").await.unwrap();
    found.into_iter().map(|entry| String::from_utf8(entry.value).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_writes_wait_for_the_store_six_times() {
    let (store, fenced) = faulty().await;
    store.slow_down(SLOW);
    let (begun, before) = (tokio_now(), store.commits());
    fenced.put((0..10_000).map(|number| put(number, "new")).collect()).await.unwrap();
    assert_eq!(store.commits() - before, 102, "99 writes each, and the first has the head too");
    // The first, the last, and between them thirty-two at a time.
    assert_eq!((tokio_now() - begun), SLOW * 6);
    assert_eq!(values(&*store).await, vec!["new"; 10_000]);
}

#[tokio::test]
async fn of_two_writes_with_one_key_the_later_counts() {
    let (store, fenced) = faulty().await;
    let twice =
        (0..300).map(|number| put(number, "old")).chain((0..300).rev().map(|number| put(number, "new")));
    fenced.put(twice.collect()).await.unwrap();
    assert_eq!(values(&*store).await, vec!["new"; 300]);
}

#[tokio::test(start_paused = true)]
async fn no_commit_of_one_put_lands_after_the_next_put() {
    let (store, fenced) = faulty().await;
    let all = |value: &'static str| (0..1_000).map(move |number| put(number, value)).collect::<Vec<_>>();
    // The first try of every commit is still on its way when the next put has ended.
    let mut tried = HashSet::new();
    store.decide(move |_, commit| {
        let first = tried.insert(commit.writes.last().map(|write| write.key().clone()));
        if first { Fault::LandLater(SLOW * 60) } else { Fault::Pass }
    });
    fenced.put(all("old")).await.unwrap();
    store.decide(|_, _| Fault::Pass);
    fenced.put(all("new")).await.unwrap();
    sleep(SLOW * 120).await;
    assert_eq!(values(&*store).await, vec!["new"; 1_000]);
}

#[tokio::test]
async fn the_first_commit_lands_first_and_the_last_one_last() {
    let (store, fenced) = faulty().await;
    let writes: Vec<Write> = (0..1_000).map(|number| put(number, "new")).collect();
    store.decide(|number, _| if number == 5 { Fault::Fail } else { Fault::Pass });
    fenced.put(writes.clone()).await.unwrap_err();
    assert!(store.get(b"key/00000").await.unwrap().is_some());
    assert!(store.get(b"key/00999").await.unwrap().is_none(), "it says that all others are there");
    store.decide(|_, _| Fault::Pass);
    fenced.put(writes).await.unwrap();
    assert_eq!(values(&*store).await, vec!["new"; 1_000]);
}

#[tokio::test]
async fn a_deposed_leader_writes_nothing_more() {
    let (store, fenced) = faulty().await;
    store.lead().await.unwrap();
    let writes = (0..1_000).map(|number| put(number, "late")).collect();
    assert!(matches!(fenced.put(writes).await, Err(EngineError::Deposed)));
    assert_eq!(values(&*store).await, Vec::<String>::new());
}

/// The new leader has written as the same writer already: both conditions of the late commits fail.
#[tokio::test]
async fn a_leader_that_loses_the_lead_in_the_middle_of_a_put_learns_it() {
    let (store, fenced) = faulty().await;
    fenced.put(vec![put(0, "old")]).await.unwrap();
    let inner = store.clone();
    store.lead().await.unwrap();
    let lead = Arc::new(LeaderEpoch::current(&*inner, None).await.unwrap());
    FencedStore::new(inner, lead, "test").put(vec![put(0, "new")]).await.unwrap();
    let head = store.get(fenced.head.as_slice()).await.unwrap().unwrap().version;
    let outdated = Version(head.0 - 1);
    let late = fenced.commit_at_head(outdated, &[put(0, "late")]).await;
    assert!(matches!(late, Err(EngineError::Deposed)), "{late:?}");
    assert_eq!(values(&*store).await, ["new"]);
}
