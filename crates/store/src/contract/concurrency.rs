//! Many callers at once.

use std::{collections::BTreeSet, sync::Arc};

use tokio::task::JoinSet;

use super::{ok, put, text};
use crate::{Commit, Condition, Store, StoreError};

pub async fn no_increment_is_lost(store: Arc<dyn Store>) {
    const TASKS: u64 = 8;
    const EACH: u64 = 25;
    put(&*store, "counter", "0").await;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut done = 0;
            while done < EACH {
                let Some(entry) = ok(store.get(b"counter").await) else {
                    panic!("the counter is gone");
                };
                let next = text(&entry.value).parse::<u64>().unwrap_or_default() + 1;
                let swap = Commit::new()
                    .when(Condition::Version(entry.key, entry.version))
                    .put("counter", next.to_string());
                match store.commit(swap).await {
                    Ok(_) => done += 1,
                    Err(StoreError::Refused { .. }) => {}
                    Err(error) => panic!("the store should have worked, and said: {error}"),
                }
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(super::value(&*store, "counter").await, Some((TASKS * EACH).to_string()));
}

pub async fn only_one_of_many_wins(store: Arc<dyn Store>) {
    for round in 0..5 {
        let key = format!("seat/{round}");
        let mut tasks = JoinSet::new();
        for number in 0..32 {
            let (store, key) = (Arc::clone(&store), key.clone());
            tasks.spawn(async move {
                let absent = Condition::Absent(key.clone().into());
                match store.commit(Commit::new().when(absent).put(key, number.to_string())).await {
                    Ok(_) => Some(number.to_string()),
                    Err(StoreError::Refused { .. }) => None,
                    Err(error) => panic!("the store should have worked, and said: {error}"),
                }
            });
        }
        let winners: Vec<String> = tasks.join_all().await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1, "{winners:?} all believe to have `{key}`");
        assert_eq!(super::value(&*store, &key).await.as_ref(), winners.first());
    }
}

pub async fn many_commits_at_once_all_land(store: Arc<dyn Store>) {
    const TASKS: usize = 64;
    let mut tasks = JoinSet::new();
    for number in 0..TASKS {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let commit = Commit::new().put(format!("a/{number}"), "1").put(format!("b/{number}"), "1");
            ok(store.commit(commit).await).version
        });
    }
    let versions: BTreeSet<_> = tasks.join_all().await.into_iter().collect();
    assert_eq!(versions.len(), TASKS, "each commit has a version of its own");
    let all = ok(ok(store.snapshot().await).range(b"", None, usize::MAX).await);
    assert_eq!(all.len(), 2 * TASKS);
    assert_eq!(all.iter().map(|entry| entry.version).collect::<BTreeSet<_>>(), versions);
}

pub async fn a_read_sees_what_was_acknowledged(store: Arc<dyn Store>) {
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let key = format!("k/{task}");
            for number in 0..25 {
                let version = put(&*store, &key, &number.to_string()).await;
                let seen = ok(store.get(key.as_bytes()).await).map(|entry| entry.version);
                assert_eq!(seen, Some(version), "a read after the answer must see the commit");
            }
        });
    }
    tasks.join_all().await;
}
