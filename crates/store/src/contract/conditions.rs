//! All or nothing, and only when every condition holds.

use std::sync::Arc;

use super::{ok, put, refused, value};
use crate::{Commit, Condition, Store, Version};

fn absent(key: &str) -> Condition {
    Condition::Absent(key.into())
}

fn version(key: &str, version: Version) -> Condition {
    Condition::Version(key.into(), version)
}

pub async fn absent_holds_only_where_nothing_stands(store: Arc<dyn Store>) {
    let first = || Commit::new().when(absent("a")).put("a", "1");
    ok(store.commit(first()).await);
    assert_eq!(refused(store.commit(first()).await), b"a");
    ok(store.commit(Commit::new().delete("a")).await);
    ok(store.commit(first()).await);
}

pub async fn a_version_holds_only_until_the_next_write(store: Arc<dyn Store>) {
    let old = put(&*store, "a", "1").await;
    let new = ok(store.commit(Commit::new().when(version("a", old)).put("a", "2")).await).version;
    assert_eq!(refused(store.commit(Commit::new().when(version("a", old)).put("a", "3")).await), b"a");
    assert_eq!(value(&*store, "a").await.as_deref(), Some("2"));
    ok(store.commit(Commit::new().when(version("a", new)).delete("a")).await);
    assert_eq!(refused(store.commit(Commit::new().when(version("a", new)).put("a", "4")).await), b"a");
    assert_eq!(value(&*store, "a").await, None, "a key that is gone has no version");
    assert_eq!(refused(store.commit(Commit::new().when(version("never there", new))).await), b"never there");
}

pub async fn a_refused_commit_leaves_nothing(store: Arc<dyn Store>) {
    let standing = put(&*store, "a", "1").await;
    put(&*store, "b", "1").await;
    let commit =
        Commit::new().when(version("a", standing)).when(absent("b")).put("a", "2").put("c", "2").delete("b");
    assert_eq!(refused(store.commit(commit).await), b"b", "the key that was not as expected is named");
    assert_eq!(value(&*store, "a").await.as_deref(), Some("1"));
    assert_eq!(value(&*store, "b").await.as_deref(), Some("1"));
    assert_eq!(value(&*store, "c").await, None);
    let a = ok(store.get(b"a").await).map(|entry| entry.version);
    assert_eq!(a, Some(standing), "not even the version moved");
}

pub async fn any_key_may_be_a_condition(store: Arc<dyn Store>) {
    let head = put(&*store, "head", "1").await;
    ok(store.commit(Commit::new().when(version("head", head)).when(absent("x")).put("y", "1")).await);
    put(&*store, "head", "2").await;
    assert_eq!(refused(store.commit(Commit::new().when(version("head", head)).put("y", "2")).await), b"head");
    assert_eq!(value(&*store, "y").await.as_deref(), Some("1"));
}

pub async fn conditions_are_seen_before_writes(store: Arc<dyn Store>) {
    // The commit's own writes do not count: both conditions speak of the moment before it.
    let commit = Commit::new().when(absent("a")).when(absent("b")).put("a", "1").put("b", "1");
    ok(store.commit(commit).await);
    let a = ok(store.get(b"a").await).map_or(Version(0), |entry| entry.version);
    ok(store.commit(Commit::new().when(version("a", a)).delete("a").put("b", "2")).await);
    assert_eq!(value(&*store, "b").await.as_deref(), Some("2"));
}
