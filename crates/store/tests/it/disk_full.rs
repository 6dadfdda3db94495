//! A disk that fills up, and has room again later.
//!
//! Needs a file system of its own, so it runs where `mount` is allowed (root) and says so where it is not.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use netstead_store::{Health, Snapshot, Store, StoreError, WatchItem};
use tempfile::{TempDir, tempdir};
use tokio::time::{sleep, timeout};

use crate::support::{open, put, until_failed, until_ready};

/// A small file system in memory, gone with this value.
pub(crate) struct SmallDisk {
    dir: TempDir,
}

impl SmallDisk {
    pub(crate) fn mount(megabytes: u32) -> Option<Self> {
        let dir = tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"])
            .arg(dir.path())
            .stderr(Stdio::null())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self { dir });
        }
        println!("skipped: mounting a small file system is not allowed here, so no disk can be filled");
        None
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file until nothing more fits.
    pub(crate) fn fill(&self) -> Ballast {
        let path = self.path().join("ballast");
        let mut file = File::create(&path).unwrap();
        for size in [1 << 20, 4096] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
        let error = file.write(&[1; 4096]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let stop = Arc::new(AtomicBool::new(false));
        let filling = thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                while !stop.load(Ordering::Relaxed) {
                    while file.write_all(&[1; 4096]).is_ok() {}
                    thread::sleep(Duration::from_millis(1));
                }
            }
        });
        Ballast { path, stop, filling }
    }
}

/// A file that takes all the room there is, also what the database gives back meanwhile.
pub(crate) struct Ballast {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    filling: JoinHandle<()>,
}

impl Ballast {
    pub(crate) fn free(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.filling.join().unwrap();
        fs::remove_file(self.path).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// Commits numbers until one does not land; says which were acknowledged and how the last ended.
async fn count_until_failure(store: &dyn Store, from: u32) -> (u32, StoreError) {
    for number in from.. {
        if let Err(error) = put(store, &format!("k/{number:06}"), vec![3; 3000]).await {
            return (number, error);
        }
    }
    unreachable!()
}

async fn numbers(snapshot: &dyn Snapshot) -> Vec<u32> {
    let entries = snapshot.range(b"k/", None, usize::MAX).await.unwrap();
    entries.iter().map(|entry| String::from_utf8_lossy(&entry.key[2..]).parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_named_and_the_store_heals_when_there_is_room() {
    let Some(disk) = SmallDisk::mount(160) else { return };
    let store = open(&disk.path().join("store")).await;
    for number in 0..100 {
        put(&store, &format!("k/{number:06}"), vec![3; 3000]).await.unwrap();
    }
    let mut next = 100;
    for round in 0..3 {
        let early = store.snapshot().await.unwrap();
        let mut watch = store.watch(b"k/").await.unwrap();
        let ballast = disk.fill();
        let (first_lost, error) = count_until_failure(&store, next).await;
        assert!(
            matches!(error, StoreError::Unknown { .. } | StoreError::Unavailable { .. }),
            "round {round}: {error:?}"
        );

        let reason = until_failed(&store).await;
        let full = format!("the disk of {} is full", disk.path().join("store").display());
        assert!(reason.starts_with(&full), "{reason}");
        let unavailable = |outcome: Result<(), StoreError>| match outcome {
            Err(StoreError::Unavailable { reason }) => assert!(reason.contains("is full"), "{reason}"),
            other => panic!("round {round}: {other:?}"),
        };
        unavailable(put(&store, "x", "1").await);
        unavailable(store.get(b"k/000000").await.map(drop));
        unavailable(store.snapshot().await.map(drop));
        unavailable(early.get(b"k/000000").await.map(drop));
        unavailable(store.watch(b"").await.map(drop));
        sleep(Duration::from_millis(700)).await;
        assert!(matches!(store.health(), Health::Failed { .. }), "nothing heals while the disk is full");

        ballast.free();
        until_ready(&store).await;
        let late = early.get(b"k/000000").await;
        assert!(
            matches!(late, Err(StoreError::Unavailable { .. })),
            "a snapshot does not outlive its database"
        );

        let there = numbers(&*store.snapshot().await.unwrap()).await;
        let acked: Vec<u32> = (0..first_lost).collect();
        let landed = there.len() > acked.len();
        assert_eq!(there[..acked.len()], acked, "round {round}: every acknowledged commit is there");
        assert!(there.len() <= acked.len() + 1, "round {round}: at most the one that was unknown besides");
        assert!(!landed || matches!(error, StoreError::Unknown { .. }), "what was unavailable did not land");
        assert_eq!(store.get(b"x").await.unwrap(), None);
        println!("round {round}: {error}; it {}", if landed { "landed" } else { "did not land" });

        next = first_lost + 1;
        put(&store, &format!("k/{first_lost:06}"), "again").await.unwrap();
        follow(&mut watch, landed, first_lost).await;
    }
    store.close().await;
    let store = open(&disk.path().join("store")).await;
    assert_eq!(numbers(&*store.snapshot().await.unwrap()).await, (0..next).collect::<Vec<_>>());
    store.close().await;
}

/// The watcher saw every commit up to the last; or it was told that the unknown one landed behind its back.
async fn follow(watch: &mut netstead_store::Watch, landed: bool, last: u32) {
    loop {
        match timeout(Duration::from_secs(5), watch.next()).await.unwrap() {
            Some(WatchItem::Changed { writes, .. }) => {
                if writes[0].key() == format!("k/{last:06}").as_bytes() {
                    assert!(!landed, "a commit landed unseen and the watcher was not told");
                    return;
                }
            }
            Some(WatchItem::Lost) => {
                assert!(landed, "the watcher was cut off without need");
                return;
            }
            None => panic!("the watch ended"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_said_how_much_room_is_needed() {
    let Some(disk) = SmallDisk::mount(160) else { return };
    let store = open(&disk.path().join("store")).await;
    for number in 0..20 {
        put(&store, &format!("large/{number}"), vec![number; 1_000_000]).await.unwrap();
    }
    let ballast = disk.fill();
    count_until_failure(&store, 0).await;
    let mut changes = store.health_changes();
    let told = changes.wait_for(|health| {
        matches!(health, Health::Failed { reason } if reason.ends_with("MiB must be free for the store to go on"))
    });
    let told = timeout(Duration::from_secs(10), told).await.is_ok();
    assert!(told, "health says {:?}", store.health());
    ballast.free();
    until_ready(&store).await;
    put(&store, "after", "1").await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_heal_can_be_closed_and_opened_later() {
    let Some(disk) = SmallDisk::mount(160) else { return };
    let path = disk.path().join("store");
    let store = open(&path).await;
    let ballast = disk.fill();
    let (first_lost, _) = count_until_failure(&store, 0).await;
    until_failed(&store).await;
    timeout(Duration::from_secs(10), store.close()).await.expect("closing must not wait for the disk");
    assert_eq!(store.health(), Health::Failed { reason: "the store is closed".into() });

    ballast.free();
    let store = open(&path).await;
    let there = numbers(&*store.snapshot().await.unwrap()).await;
    assert_eq!(there[..first_lost as usize], (0..first_lost).collect::<Vec<_>>());

    let ballast = disk.fill();
    count_until_failure(&store, 1_000_000).await;
    drop(store);
    ballast.free();
    let store = open(&path).await; // Works only if the one that was dropped has given up healing.
    store.close().await;
}
