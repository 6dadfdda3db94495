//! Files that are not as they were left: refused, never served.

use std::{
    fs,
    path::{Path, PathBuf},
};

use netstead_store::{Entry, LocalStore, Store, StoreError};
use tempfile::{TempDir, tempdir};

use crate::support::{Dice, everything, open, put};

/// A store with 200 small commits, closed, and what is in it.
async fn written() -> (TempDir, Vec<Entry>) {
    let dir = tempdir().unwrap();
    let store = open(dir.path()).await;
    for number in 0..200 {
        put(&store, &format!("k/{number:03}"), vec![number; 100]).await.unwrap();
    }
    let all = everything(&store).await;
    store.close().await;
    (dir, all)
}

fn journal(dir: &Path) -> PathBuf {
    let mut journals = fs::read_dir(dir.join("db")).unwrap().map(|entry| entry.unwrap().path());
    journals.find(|path| path.extension().is_some_and(|extension| extension == "jnl")).unwrap()
}

async fn damage(dir: &Path) -> String {
    match LocalStore::open(dir).await {
        Err(StoreError::Damaged { reason }) => reason,
        other => panic!("the store should be refused as damaged, and was {other:?}"),
    }
}

#[tokio::test]
async fn a_journal_that_was_cut_is_noticed() {
    let (dir, all) = written().await;
    let journal = journal(dir.path());
    let length = fs::metadata(&journal).unwrap().len();
    fs::OpenOptions::new().write(true).open(&journal).unwrap().set_len(length / 2).unwrap();

    let reason = damage(dir.path()).await;
    let mark = dir.path().join("highwater");
    assert!(reason.contains("commit 200 was once there"), "{reason}");
    assert!(reason.contains(&format!("delete {}", mark.display())), "{reason}");
    assert!(reason.ends_with("restore a backup"), "{reason}");
    assert_eq!(damage(dir.path()).await, reason, "and it stays noticed");

    fs::remove_file(mark).unwrap();
    let store = open(dir.path()).await;
    let left = everything(&store).await;
    assert!(!left.is_empty() && left.len() < all.len(), "{} of {}", left.len(), all.len());
    assert_eq!(left, all[..left.len()], "what is left is the beginning");
    store.close().await;
}

#[tokio::test]
async fn a_flipped_bit_is_refused_or_harmless() {
    let (dir, all) = written().await;
    let intact = fs::read(journal(dir.path())).unwrap();
    let used = intact.iter().rposition(|byte| *byte != 0).unwrap() as u64;
    let mut dice = Dice::new(3);
    let (mut refused, mut harmless) = (0, 0);
    for _ in 0..25 {
        let copy = tempdir().unwrap();
        copy_all(dir.path(), copy.path());
        let (place, bit) = (usize::try_from(dice.below(used)).unwrap(), dice.below(8));
        let mut broken = intact.clone();
        broken[place] ^= 1 << bit;
        fs::write(journal(copy.path()), broken).unwrap();
        match LocalStore::open(copy.path()).await {
            Ok(store) => {
                assert_eq!(everything(&store).await, all, "byte {place}, bit {bit}");
                harmless += 1;
                store.close().await;
            }
            Err(StoreError::Damaged { .. }) => refused += 1,
            Err(error) => panic!("byte {place}, bit {bit}: {error:?}"),
        }
    }
    println!("{refused} flips refused, {harmless} harmless");
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy_all(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn a_database_that_is_gone_is_not_replaced_by_an_empty_one() {
    let (dir, _) = written().await;
    fs::remove_dir_all(dir.path().join("db")).unwrap();
    let reason = damage(dir.path()).await;
    assert!(reason.contains("once had 200 commits and has no database"), "{reason}");
    assert!(!dir.path().join("db").exists());

    for file in ["version", "keyspaces/0/current", "keyspaces/1/current"] {
        let (dir, all) = written().await;
        let file = dir.path().join("db").join(file);
        let content = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let reason = damage(dir.path()).await;
        assert_eq!(reason, format!("{} is missing; restore a backup", file.display()));

        fs::write(&file, content).unwrap();
        let store = open(dir.path()).await;
        assert_eq!(everything(&store).await, all, "looking has harmed nothing");
        store.close().await;
    }
}

#[tokio::test]
async fn older_files_put_in_place_of_newer_ones_are_noticed() {
    let (dir, _) = written().await;
    let old = tempdir().unwrap();
    copy_all(&dir.path().join("db"), old.path());
    let store = open(dir.path()).await;
    put(&store, "new", "1").await.unwrap();
    store.close().await;

    fs::remove_dir_all(dir.path().join("db")).unwrap();
    fs::create_dir(dir.path().join("db")).unwrap();
    copy_all(old.path(), &dir.path().join("db"));
    let reason = damage(dir.path()).await;
    assert!(reason.contains("ends at commit 200, and commit 201 was once there"), "{reason}");
}

#[tokio::test]
async fn what_a_crash_may_leave_beside_the_database_does_not_matter() {
    let (dir, all) = written().await;
    fs::write(dir.path().join("db/5.jnl-copy"), "half a copy").unwrap();
    fs::write(dir.path().join("highwater"), "half a mark").unwrap();
    fs::write(dir.path().join("probe"), "").unwrap();
    let store = open(dir.path()).await;
    assert_eq!(everything(&store).await, all);
    store.close().await;

    let fresh = tempdir().unwrap();
    fs::create_dir_all(fresh.path().join("db.new/keyspaces")).unwrap();
    fs::write(fresh.path().join("db.new/0.jnl"), "half a database").unwrap();
    let store = open(fresh.path()).await;
    assert_eq!(everything(&store).await, []);
    store.close().await;
    assert!(!fresh.path().join("db.new").exists());
}

#[tokio::test]
async fn a_table_that_cannot_be_read_is_damage_and_not_an_absent_key() {
    let dir = tempdir().unwrap();
    let store = open(dir.path()).await;
    for number in 0..12 {
        put(&store, &format!("k/{number:02}"), vec![number; 900_000]).await.unwrap();
    }
    store.close().await;
    let store = open(dir.path()).await; // Whatever was still in memory at the end becomes tables now.
    store.close().await;
    let tables = fs::read_dir(dir.path().join("db/keyspaces/1/tables")).unwrap();
    let tables: Vec<PathBuf> = tables.map(|entry| entry.unwrap().path()).collect();
    assert!(!tables.is_empty(), "4 MiB of memtable should have become a table");
    for table in tables {
        let mut bytes = fs::read(&table).unwrap();
        let half = bytes.len() / 3;
        bytes[half] ^= 0x10;
        fs::write(&table, bytes).unwrap();
    }
    let outcome = match LocalStore::open(dir.path()).await {
        Ok(store) => {
            let snapshot = store.snapshot().await.unwrap();
            let outcome = snapshot.range(b"", None, usize::MAX).await.map(|entries| entries.len());
            store.close().await;
            outcome
        }
        Err(error) => Err(error),
    };
    assert!(matches!(outcome, Err(StoreError::Damaged { .. })), "{outcome:?}");
}
