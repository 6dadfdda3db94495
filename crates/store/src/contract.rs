//! The promises of every store, as checks that end the test with a sentence when one is broken.
//!
//! ```no_run
//! # async fn example() {
//! use std::sync::Arc;
//! use netstead_store::{MemoryStore, Store, contract};
//!
//! contract::all(|| async { Arc::new(MemoryStore::new()) as Arc<dyn Store> }).await;
//! # }
//! ```
//!
//! Each check may also be run alone, on an empty store.

#![allow(clippy::panic, clippy::missing_panics_doc, reason = "a promise that is broken ends the test")]

pub mod basics;
pub mod concurrency;
pub mod conditions;
pub mod durability;
pub mod limits;
pub mod ranges;
pub mod snapshots;
pub mod watches;

use std::{fmt::Debug, sync::Arc, time::Duration};

use crate::{Entry, Store, StoreError, Version};

/// How long anything may take that should happen at once.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs every check, each on an empty store that `make` gives.
pub async fn all<F>(make: F)
where
    F: AsyncFn() -> Arc<dyn Store>,
{
    macro_rules! run {
        ($($module:ident: $($check:ident)*;)*) => {$($(
            let store = make().await;
            let name = concat!(stringify!($module), "::", stringify!($check));
            // Spawned, so that the runtime may move it: callers of a store do the same.
            let check = tokio::spawn($module::$check(Arc::clone(&store)));
            match tokio::time::timeout(PATIENCE * 10, check).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => panic!("{name} failed: {error}"),
                Err(_) => panic!("{name} does not end"),
            }
            store.close().await;
        )*)*};
    }
    run! {
        basics: an_empty_store_has_nothing what_is_put_is_read_back what_is_deleted_is_gone
            versions_are_never_reused one_commit_gives_one_version a_commit_without_writes_changes_nothing
            the_epoch_grows_with_each_lead;
        conditions: absent_holds_only_where_nothing_stands a_version_holds_only_until_the_next_write
            a_refused_commit_leaves_nothing any_key_may_be_a_condition conditions_are_seen_before_writes;
        limits: the_largest_commit_lands more_than_the_limits_is_refused;
        ranges: ranges_are_in_order_of_keys pages_join_without_gap_or_overlap prefixes_end_where_they_should
            edges_outside_of_the_prefix_are_understood;
        snapshots: a_snapshot_stays_as_it_was a_snapshot_has_what_was_acknowledged
            an_own_snapshot_is_whole_and_stays_as_it_was a_snapshot_is_whole_under_load;
        concurrency: no_increment_is_lost only_one_of_many_wins many_commits_at_once_all_land
            a_read_sees_what_was_acknowledged;
        watches: commits_come_in_order_and_once only_the_prefix_is_seen only_what_comes_after_is_seen
            a_watch_and_a_snapshot_leave_no_gap who_is_too_slow_is_told a_watch_ends_with_the_store;
    }
}

/// Runs the checks of a store that outlives its process. `open` opens the same store each time, which is
/// empty at first.
pub async fn durable<F>(open: F)
where
    F: AsyncFn() -> Arc<dyn Store>,
{
    durability::everything_is_there_after_opening_again(&open).await;
    durability::versions_go_on_after_opening_again(&open).await;
}

/// The value, or the end of the test.
#[track_caller]
fn ok<T>(outcome: Result<T, StoreError>) -> T {
    match outcome {
        Ok(value) => value,
        Err(error) => panic!("the store should have worked, and said: {error}"),
    }
}

#[track_caller]
fn refused<T: Debug>(outcome: Result<T, StoreError>) -> Vec<u8> {
    match outcome {
        Err(StoreError::Refused { key }) => key,
        other => panic!("the commit should have been refused, and the store said: {other:?}"),
    }
}

#[track_caller]
fn invalid<T: Debug>(what: &str, outcome: &Result<T, StoreError>) {
    assert!(matches!(outcome, Err(StoreError::Invalid { .. })), "{what} should not be valid: {outcome:?}");
}

async fn put(store: &dyn Store, key: &str, value: &str) -> Version {
    ok(store.commit(crate::Commit::new().put(key, value)).await).version
}

async fn value(store: &dyn Store, key: &str) -> Option<String> {
    ok(store.get(key.as_bytes()).await).map(|entry| text(&entry.value))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn keys(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| text(&entry.key)).collect()
}
