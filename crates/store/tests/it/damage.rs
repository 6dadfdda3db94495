//! Files that are not as they were left: refused, never served.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use netstead_store::{Entry, Health, LocalReader, LocalStore, Store, StoreError, each_readable};
use tempfile::{TempDir, tempdir};
use tokio::time::{sleep, timeout};

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

/// A copy of a store as if its process had been killed right now.
async fn killed(store: &LocalStore, dir: &Path) -> TempDir {
    let copy = tempdir().unwrap();
    everything(store).await; // Nothing is on its way into the database any more.
    copy_all(dir, copy.path());
    copy
}

/// An open store with 200 small commits that are nowhere but in the log, and what is in it.
async fn in_use() -> (TempDir, LocalStore, Vec<Entry>) {
    let dir = tempdir().unwrap();
    let store = open(dir.path()).await;
    for number in 0..200 {
        put(&store, &format!("k/{number:03}"), vec![number; 100]).await.unwrap();
    }
    let all = everything(&store).await;
    (dir, store, all)
}

#[tokio::test]
async fn no_state_of_the_journal_matters() {
    let (dir, store, all) = in_use().await;
    let mut dice = Dice::new(5);
    for round in 0..12 {
        let copy = killed(&store, dir.path()).await;
        let journal = journal(copy.path());
        let length = fs::metadata(&journal).unwrap().len();
        match round % 4 {
            0 => fs::OpenOptions::new()
                .write(true)
                .open(&journal)
                .unwrap()
                .set_len(dice.below(length))
                .unwrap(),
            1 => fs::write(&journal, vec![0; 4096]).unwrap(),
            2 => fs::remove_file(&journal).unwrap(),
            _ => {
                let mut bytes = fs::read(&journal).unwrap();
                let start = usize::try_from(dice.below(8000)).unwrap();
                bytes[start..start + 500].fill(7);
                fs::write(&journal, bytes).unwrap();
            }
        }
        let opened = open(copy.path()).await;
        assert_eq!(everything(&opened).await, all, "round {round}");
        opened.close().await;
    }
    store.close().await;
    fs::remove_file(journal(dir.path())).unwrap();
    let store = open(dir.path()).await;
    assert_eq!(everything(&store).await, all, "closed in order");
    store.close().await;
}

#[tokio::test]
async fn a_log_that_was_cut_is_noticed() {
    let (dir, store, all) = in_use().await;
    sleep(Duration::from_millis(2200)).await; // The mark is at most a second behind.
    let copy = killed(&store, dir.path()).await;
    store.close().await;
    let log = copy.path().join("log/0");
    let bytes = fs::read(&log).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    fs::write(&log, &bytes[..used / 2]).unwrap();

    let reason = damage(copy.path()).await;
    let (mark, logs) = (copy.path().join("highwater"), copy.path().join("log"));
    assert!(reason.contains("commit 200 was once there"), "{reason}");
    assert!(reason.contains(&format!("delete {} and {}", mark.display(), logs.display())), "{reason}");
    assert!(reason.contains("; restore a backup. If there is none, delete "), "{reason}");
    assert_eq!(damage(copy.path()).await, reason, "and it stays noticed");

    fs::remove_file(mark).unwrap();
    let opened = open(copy.path()).await;
    let left = everything(&opened).await;
    assert!(!left.is_empty() && left.len() < all.len(), "{} of {}", left.len(), all.len());
    assert_eq!(left, all[..left.len()], "what is left is the beginning");
    opened.close().await;
}

#[tokio::test]
async fn a_log_that_is_gone_is_noticed() {
    let (dir, store, all) = in_use().await;
    let copy = killed(&store, dir.path()).await;
    fs::remove_dir_all(copy.path().join("log")).unwrap();
    let reason = damage(copy.path()).await;
    assert!(reason.contains("log is missing or empty"), "{reason}");

    store.close().await;
    fs::remove_dir_all(dir.path().join("log")).unwrap();
    let store = open(dir.path()).await;
    assert_eq!(everything(&store).await, all, "a store that was closed in order needs none");
    store.close().await;
}

#[tokio::test]
async fn a_flipped_bit_is_refused_or_harmless() {
    let (dir, store, all) = in_use().await;
    sleep(Duration::from_millis(2200)).await;
    let copy = killed(&store, dir.path()).await;
    store.close().await;
    let log = Path::new("log/0");
    let intact = fs::read(copy.path().join(log)).unwrap();
    let used = intact.iter().rposition(|byte| *byte != 0).unwrap() as u64;
    let mut dice = Dice::new(3);
    let (mut refused, mut harmless) = (0, 0);
    for _ in 0..25 {
        let flipped = tempdir().unwrap();
        copy_all(copy.path(), flipped.path());
        let (place, bit) = (usize::try_from(dice.below(used)).unwrap(), dice.below(8));
        let mut broken = intact.clone();
        broken[place] ^= 1 << bit;
        fs::write(flipped.path().join(log), broken).unwrap();
        match LocalStore::open(flipped.path()).await {
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
    assert!(refused > 0);
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
    let (dir, all) = written().await;
    let old = tempdir().unwrap();
    copy_all(&dir.path().join("db"), old.path());
    let put_back = || {
        fs::remove_dir_all(dir.path().join("db")).unwrap();
        fs::create_dir(dir.path().join("db")).unwrap();
        copy_all(old.path(), &dir.path().join("db"));
    };
    let store = open(dir.path()).await;
    put(&store, "new", "1").await.unwrap();
    store.close().await;
    put_back();
    let store = open(dir.path()).await;
    assert_eq!(everything(&store).await.len(), all.len() + 1, "the log has what these lack");
    store.close().await;

    let store = open(dir.path()).await;
    put(&store, "newer", "1").await.unwrap();
    store.close().await;
    put_back();
    let reason = damage(dir.path()).await;
    assert!(reason.contains("ends at commit 200, and commit 201 was once there"), "{reason}");
}

/// Makes the directory of a version without a log: everything in the journal of the database, and a mark of another number.
fn from_before_the_log(dir: &Path) {
    let db = fjall::Database::builder(dir.join("db")).open().unwrap();
    let keys = db.keyspace("netstead", fjall::KeyspaceCreateOptions::default).unwrap();
    for number in 1..=200_u64 {
        let mut batch = db.batch().durability(Some(fjall::PersistMode::SyncData));
        let version = number.to_be_bytes();
        batch.insert(&keys, format!("dk/{number:03}"), [version.as_slice(), b"value"].concat());
        batch.insert(&keys, "r", version);
        batch.commit().unwrap();
    }
    let mark = "netstead store 1, revision 00000000000000000200, in use, 4b324c0d\n";
    fs::write(dir.join("highwater"), mark).unwrap();
}

#[tokio::test]
async fn a_store_from_before_there_was_a_log_gets_one() {
    let dir = tempdir().unwrap();
    from_before_the_log(dir.path());
    for round in 0..3 {
        let store = open(dir.path()).await;
        let there = everything(&store).await;
        assert_eq!(
            (there.len(), &*there[0].value, there[0].version.0),
            (200 + round, b"value".as_slice(), 1)
        );
        assert!(dir.path().join("log/0").exists());
        put(&store, &format!("new/{round}"), "1").await.unwrap();
        store.close().await;
    }

    let dir = tempdir().unwrap();
    from_before_the_log(dir.path());
    let journal = journal(dir.path());
    let bytes = fs::read(&journal).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    fs::write(&journal, &bytes[..used / 2]).unwrap();
    let reason = damage(dir.path()).await;
    assert!(reason.contains("commit 200 was once there"), "{reason}");
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

/// A closed store with `t/k/000` to `t/k/399`, in which one block of a table was changed.
async fn with_a_bad_block() -> TempDir {
    let dir = tempdir().unwrap();
    let store = open(dir.path()).await;
    let mut dice = Dice::new(9);
    for number in 0..400 {
        let noise: Vec<u8> = (0..10_000).map(|_| dice.below(256).to_le_bytes()[0]).collect();
        put(&store, &format!("t/k/{number:03}"), noise).await.unwrap();
    }
    store.close().await;
    flip_a_bit(dir.path());
    dir
}

/// Changes one bit in the middle of the largest table.
fn flip_a_bit(dir: &Path) {
    let tables = fs::read_dir(dir.join("db/keyspaces/1/tables")).unwrap();
    let tables = tables.map(|entry| entry.unwrap().path());
    let largest = tables.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&largest, bytes).unwrap();
}

#[tokio::test]
async fn a_read_that_meets_damage_says_where_and_the_store_remembers_it() {
    let dir = with_a_bad_block().await;
    let store = open(dir.path()).await;
    let known = || store.damage().unwrap().all();
    assert_eq!(known(), [], "nothing was read yet");
    let snapshot = store.snapshot().await.unwrap();
    let Err(StoreError::Damaged { reason }) = snapshot.range(b"t/k/", None, usize::MAX).await else {
        panic!("the damage should be met");
    };
    let [damage] = known().try_into().unwrap();
    assert_eq!((damage.part(), damage.reason.as_str()), ("t/k", reason.as_str()));
    let files = dir.path().display();
    let expected = format!(
        "near `{}` the files in {files} are not as they were written (a checksum does not match)",
        damage.key
    );
    assert_eq!(reason, expected);

    // Keys before and behind it can be read.
    let number = |key: &[u8]| std::str::from_utf8(&key[4..]).unwrap().parse::<usize>().unwrap();
    let last = number(damage.key.as_bytes());
    let before = snapshot.range(b"t/k/", None, last + 1).await.unwrap();
    assert_eq!((before.len(), before[last].key.as_slice()), (last + 1, damage.key.as_bytes()));
    let behind = snapshot.range_back(b"t/k/", None, 100).await.unwrap();
    assert_eq!((behind.len(), behind[99].key.as_slice()), (100, b"t/k/300".as_slice()));
    assert!(snapshot.range_back(b"t/k/", None, 400).await.is_err());
    assert_eq!(known(), [damage], "the same damage is remembered once");
    put(&store, "t/k/400", "1").await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn all_but_the_damaged_place_can_be_read_in_order() {
    let dir = with_a_bad_block().await;
    let store = open(dir.path()).await;
    put(&store, "t/other", "1").await.unwrap();
    let snapshot = store.snapshot().await.unwrap();
    let mut seen = Vec::new();
    let gap = each_readable(&*snapshot, b"t/k/", |entry| {
        seen.push(String::from_utf8(entry.key.clone()).unwrap());
        Ok::<(), StoreError>(())
    });
    let gap = gap.await.unwrap().unwrap();
    let name = |key: &Option<Vec<u8>>| String::from_utf8(key.clone().unwrap()).unwrap();
    let (after, before) = (name(&gap.after), name(&gap.before));
    let all = (0..400).map(|number| format!("t/k/{number:03}"));
    let (left, lost): (Vec<_>, Vec<_>) = all.partition(|key| *key <= after || *key >= before);
    assert_eq!(seen, left);
    assert!((1..10).contains(&lost.len()), "one block: {lost:?}");
    assert_eq!((gap.damage().key, gap.prefix), (after, b"t/k/".to_vec()));
    let whole = each_readable(&*snapshot, b"t/o", |_| Ok::<(), StoreError>(())).await;
    assert_eq!(whole.unwrap(), None);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_that_merging_meets_is_named_and_all_else_can_still_be_read() {
    let dir = with_a_bad_block().await;
    let store = open(dir.path()).await;
    // So much that tables are merged, the damaged one too.
    let mut written = 0;
    while store.health() == Health::Ready && written < 150 {
        if put(&store, &format!("u/k/{written:03}"), vec![1; 900_000]).await.is_ok() {
            written += 1;
        }
    }
    let reason = async || {
        let mut health = store.health_changes();
        let told = health
            .wait_for(|health| matches!(health, Health::Failed { reason } if reason.contains("damaged")));
        let told = timeout(Duration::from_secs(20), told).await.expect("the cause should be found").unwrap();
        let Health::Failed { reason } = told.clone() else { panic!("{told:?}") };
        reason
    };
    let reason = reason().await;
    let [damage] = store.damage().unwrap().all().try_into().unwrap();
    assert_eq!(damage.part(), "t/k");
    assert_eq!(
        reason,
        format!("it is damaged, so that its files cannot be merged any more: {}", damage.reason)
    );
    store.close().await;

    match LocalStore::open(dir.path()).await {
        Ok(store) => store.close().await,
        Err(StoreError::Damaged { reason }) => {
            assert!(reason.contains("a checksum does not match"), "{reason}");
        }
        Err(error) => panic!("{error:?}"),
    }
    let reader = LocalReader::open(dir.path()).await.unwrap();
    let mut seen = 0;
    let gap = each_readable(reader.snapshot(), b"", |_| {
        seen += 1;
        Ok::<(), StoreError>(())
    });
    let gap = gap.await.unwrap().unwrap();
    assert!(gap.damage().part() == "t/k" && seen > 390 + written, "{gap:?}, {seen} of {}", 400 + written);
}

/// The tables of a store.
fn tables(dir: &Path) -> Vec<PathBuf> {
    let of = |keyspace: &str| fs::read_dir(dir.join("db/keyspaces").join(keyspace).join("tables")).unwrap();
    ["0", "1"].into_iter().flat_map(of).map(|entry| entry.unwrap().path()).collect()
}

/// Crashes leave files empty on some file systems.
#[tokio::test]
async fn a_table_that_is_empty_or_cut_is_damage() {
    let (dir, _) = written().await;
    for table in tables(dir.path()) {
        for length in [0, 1, 40] {
            let copy = tempdir().unwrap();
            copy_all(dir.path(), copy.path());
            let table = copy.path().join(table.strip_prefix(dir.path()).unwrap());
            fs::OpenOptions::new().write(true).open(&table).unwrap().set_len(length).unwrap();
            let reason = damage(copy.path()).await;
            assert!(reason.ends_with("; restore a backup"), "{reason}");
            if length == 0 {
                assert_eq!(reason, format!("{} is empty; restore a backup", table.display()));
            }
        }
    }
}

/// A node of a cluster is not restored from a backup: that would be another cluster.
#[cfg(feature = "raft")]
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_node_of_a_cluster_is_told_to_join_anew() {
    use netstead_store::{RaftOptions, RaftSecurity, RaftStore};

    let node = |dir: &Path| {
        let security = RaftSecurity::Secret("sixteen characters".into());
        RaftOptions::new(dir, "127.0.0.1:0", security)
    };
    let dir = tempdir().unwrap();
    let store = RaftStore::open(node(dir.path())).await.unwrap();
    put(&store, "k", vec![1; 100]).await.unwrap();
    store.close().await;
    drop(store);
    let refused = async |dir: &Path| match RaftStore::open(node(dir)).await {
        Err(StoreError::Damaged { reason }) => reason,
        other => panic!("the node should be refused as damaged, and was {other:?}"),
    };
    let advice = |dir: &Path| {
        format!(
            "; the other nodes have the same data: move {} away and start this node again to join as a new one",
            dir.display()
        )
    };

    let empty = tempdir().unwrap();
    copy_all(dir.path(), empty.path());
    let table = tables(empty.path()).pop().unwrap();
    fs::write(&table, "").unwrap();
    let reason = refused(empty.path()).await;
    assert_eq!(reason, format!("{} is empty{}", table.display(), advice(empty.path())));

    // A mark of a later commit than there is: the journal was cut.
    let cut = tempdir().unwrap();
    copy_all(dir.path(), cut.path());
    fs::write(journal(cut.path()), "").unwrap();
    let reason = refused(cut.path()).await;
    assert!(reason.contains(" ends at commit ") && reason.ends_with(&advice(cut.path())), "{reason}");
    assert!(!reason.contains("delete"), "{reason}");
}

#[tokio::test]
async fn what_can_be_read_without_opening_a_store_is_all_that_was_acknowledged() {
    let (dir, store, all) = in_use().await;
    let copy = killed(&store, dir.path()).await;
    store.close().await;
    for dir in [copy.path(), dir.path()] {
        for _ in 0..2 {
            let reader = LocalReader::open(dir).await.unwrap();
            assert_eq!(reader.snapshot().range(b"", None, usize::MAX).await.unwrap(), all);
        }
        let store = open(dir).await;
        assert_eq!(everything(&store).await, all, "looking has harmed nothing");
        store.close().await;
    }

    let early = tempdir().unwrap();
    from_before_the_log(early.path());
    let refused = LocalReader::open(early.path()).await.unwrap_err();
    assert!(refused.to_string().contains("has no log"), "{refused}");
    let store = open(early.path()).await;
    assert_eq!(everything(&store).await.len(), 200, "and nothing is lost by it");
    store.close().await;
}
