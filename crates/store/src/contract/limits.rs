//! Checks that every store has the same limits, so that a move to another store breaks nothing.

use std::sync::Arc;

use super::{invalid, ok};
use crate::{Commit, Condition, MAX_BYTES, MAX_CONDITIONS, MAX_KEY_BYTES, MAX_WRITES, Store};

fn many_puts(count: usize) -> Commit {
    (0..count).fold(Commit::new(), |commit, number| commit.put(format!("k/{number:03}"), "v"))
}

fn many_conditions(count: usize) -> Commit {
    let absent = |number| Condition::Absent(format!("c/{number:03}").into());
    (0..count).fold(Commit::new(), |commit, number| commit.when(absent(number)))
}

pub async fn the_largest_commit_lands(store: Arc<dyn Store>) {
    ok(store.commit(many_puts(MAX_WRITES)).await);
    ok(store.commit(many_conditions(MAX_CONDITIONS)).await);
    ok(store.commit(Commit::new().put("k", vec![7; MAX_BYTES - 1])).await);
    ok(store.commit(Commit::new().put(vec![b'k'; MAX_KEY_BYTES], "v")).await);

    let snapshot = ok(store.snapshot().await);
    assert_eq!(ok(snapshot.range(b"k/", None, usize::MAX).await).len(), MAX_WRITES);
    let large = ok(store.get(b"k").await).map(|entry| entry.value);
    assert!(large == Some(vec![7; MAX_BYTES - 1]), "a large value comes back as it was");
    assert!(ok(store.get(&vec![b'k'; MAX_KEY_BYTES]).await).is_some(), "a long key is found again");
}

pub async fn more_than_the_limits_is_refused(store: Arc<dyn Store>) {
    for (what, commit) in [
        ("one write too many", many_puts(MAX_WRITES + 1)),
        ("one condition too many", many_conditions(MAX_CONDITIONS + 1).put("k/0", "v")),
        ("one byte too many", Commit::new().put("k/0", vec![7; MAX_BYTES - 2])),
        (
            "too many bytes in all",
            Commit::new().put("k/0", vec![7; MAX_BYTES / 2]).put("k/1", vec![7; MAX_BYTES / 2]),
        ),
        ("a key put twice", Commit::new().put("k/0", "1").put("k/0", "2")),
        ("a key put and deleted", Commit::new().put("k/0", "1").delete("k/0")),
        ("an empty key put", Commit::new().put("k/0", "1").put("", "2")),
        ("an empty key deleted", Commit::new().put("k/0", "1").delete("")),
        ("an empty key as condition", Commit::new().when(Condition::Absent(vec![])).put("k/0", "1")),
        ("a key that is too long", Commit::new().put("k/0", "1").put(vec![b'k'; MAX_KEY_BYTES + 1], "v")),
    ] {
        invalid(what, &store.commit(commit).await);
        let left = ok(ok(store.snapshot().await).range(b"", None, usize::MAX).await);
        assert_eq!(left, [], "{what} must leave nothing");
    }
}
