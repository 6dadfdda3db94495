//! SIGKILL in the middle of work: what was acknowledged is there, and no commit is there by half. Of what was not flushed
//! some is thrown away before the store is opened again, as if the machine had lost power.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, thread::sleep, time::Duration};

use netstead_store::{Commit, Condition, LocalStore, Snapshot, Store, Version};
use tempfile::tempdir;

use crate::{
    child::{Process, Role, say},
    support::{Dice, open},
};

/// A few directories one after the other: without optimisation fjall is slow to open a long journal.
const DIRECTORIES: u64 = 6;
const KILLS_EACH: u64 = 5;
const CLIENTS: u64 = 16;
const PARTS: [&str; 3] = ["a", "b", "c"];

/// Commits for ever: each client counts up, three keys at a time and its last number with them.
pub(crate) async fn load(store: LocalStore, bytes: usize) {
    let store = Arc::new(store);
    let clients = (0..CLIENTS).map(|client| tokio::spawn(count_up(Arc::clone(&store), client, bytes)));
    futures::future::join_all(clients).await;
}

async fn count_up(store: Arc<LocalStore>, client: u64, bytes: usize) {
    let last = format!("last/{client:02}").into_bytes();
    let (mut number, mut version) = match store.get(&last).await.unwrap() {
        Some(entry) => (count(&entry.value), Some(entry.version)),
        None => (0, None),
    };
    loop {
        number += 1;
        let condition = match version {
            Some(version) => Condition::Version(last.clone(), version),
            None => Condition::Absent(last.clone()),
        };
        let commit = PARTS.iter().fold(Commit::new().when(condition), |commit, part| {
            commit.put(key(client, number, part), content(client, number, bytes))
        });
        let landed = store.commit(commit.put(last.clone(), number.to_string())).await.unwrap();
        version = Some(landed.version);
        say(&format!("{client} {number}"));
    }
}

fn key(client: u64, number: u64, part: &str) -> Vec<u8> {
    format!("n/{client:02}/{number:08}/{part}").into_bytes()
}

/// Now and then a large one, so that memtables and journals change under way.
fn content(client: u64, number: u64, bytes: usize) -> Vec<u8> {
    let length = if number.is_multiple_of(20) { 6000 } else { bytes };
    format!("{client}:{number};").into_bytes().into_iter().cycle().take(length).collect()
}

fn count(value: &[u8]) -> u64 {
    String::from_utf8_lossy(value).parse().unwrap()
}

/// Looks at every key above what was seen before: complete commits up to each client's last, nothing beyond.
async fn check(
    snapshot: &dyn Snapshot,
    bytes: usize,
    seen: &mut BTreeMap<u64, u64>,
    acked: &BTreeMap<u64, u64>,
) {
    for client in 0..CLIENTS {
        let last = snapshot.get(format!("last/{client:02}").as_bytes()).await.unwrap();
        let (last, version) = last.map_or((0, Version(0)), |entry| (count(&entry.value), entry.version));
        let acked = acked.get(&client).copied().unwrap_or(0);
        assert!(last >= acked, "client {client}: {acked} was acknowledged, {last} is there");

        let before = seen.insert(client, last).unwrap_or(0);
        let prefix = format!("n/{client:02}/");
        let after = key(client, before, "z");
        let entries = snapshot.range(prefix.as_bytes(), Some(&after), usize::MAX).await.unwrap();
        let wanted = (before + 1..=last).flat_map(|number| PARTS.map(|part| (number, part)));
        let found: Vec<_> = entries.iter().map(|entry| entry.key.clone()).collect();
        assert_eq!(found, wanted.clone().map(|(number, part)| key(client, number, part)).collect::<Vec<_>>());
        for (entry, (number, _)) in entries.iter().zip(wanted) {
            assert!(entry.value == content(client, number, bytes), "client {client}, number {number}");
        }
        if let Some(entry) = entries.last() {
            assert_eq!(entry.version, version, "the last three and their number came in one commit");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_sigkill() {
    let mut dice = Dice::new(7);
    let (mut acknowledged, mut there) = (0, 0);
    for _ in 0..DIRECTORIES {
        let (acked, seen) = kill_again_and_again(Role::Load, 60, KILLS_EACH, 150, &mut dice).await;
        acknowledged += acked.values().sum::<u64>();
        there += seen.values().sum::<u64>();
    }
    let kills = DIRECTORIES * KILLS_EACH;
    println!("{kills} kills, {acknowledged} commits acknowledged, {there} there");
    assert!(acknowledged > 1000, "the load should have been worth the name: {acknowledged} commits");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_sigkill_when_the_log_is_written_over() {
    let mut dice = Dice::new(13);
    let (kills, longest) = (8, 1500);
    let (acked, seen) = kill_again_and_again(Role::HeavyLoad, 40_000, kills, longest, &mut dice).await;
    let [acknowledged, there] = [acked, seen].map(|numbers| numbers.values().sum::<u64>());
    println!("{kills} kills, {acknowledged} large commits acknowledged, {there} there");
    assert!(acknowledged > 100, "the load should have been worth the name: {acknowledged} commits");
}

/// Damages files as a loss of power may, if they were not flushed. Only the journal of the database is such a file.
fn lose_power(dir: &Path, dice: &mut Dice) {
    for entry in fs::read_dir(dir.join("db")).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "jnl") {
            continue;
        }
        let length = entry.metadata().unwrap().len();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        match dice.below(4) {
            0 => {}
            1 => file.set_len(dice.below(length + 1)).unwrap(),
            2 => file.set_len(0).unwrap(),
            _ => {
                // A hole in the middle.
                let start = dice.below(length + 1);
                let tail = fs::read(&path).unwrap().split_off(usize::try_from(start).unwrap());
                file.set_len(start).unwrap();
                file.set_len(length).unwrap();
                if let Some(kept) = tail.get(4096..) {
                    use std::io::{Seek, SeekFrom, Write};
                    let mut file = file;
                    file.seek(SeekFrom::Start(start + 4096)).unwrap();
                    file.write_all(kept).unwrap();
                }
            }
        }
    }
}

/// The last number of each client: what was acknowledged, and what was there in the end.
async fn kill_again_and_again(
    role: Role,
    bytes: usize,
    kills: u64,
    longest: u64,
    dice: &mut Dice,
) -> (BTreeMap<u64, u64>, BTreeMap<u64, u64>) {
    let dir = tempdir().unwrap();
    let (mut acked, mut seen) = (BTreeMap::new(), BTreeMap::new());
    for kill in 0..kills {
        let mut process = Process::start(role, dir.path());
        assert_eq!(process.next().as_deref(), Some("begin"));
        assert_eq!(process.next().as_deref(), Some("open"), "after {kill} kills");
        sleep(Duration::from_millis(dice.below(longest)));
        for line in process.kill() {
            let (client, number) = line.split_once(' ').unwrap();
            acked.insert(client.parse().unwrap(), number.parse().unwrap());
        }
        lose_power(dir.path(), dice);
        if kill.is_multiple_of(3) {
            continue; // The next process finds it like this.
        }
        let store = open(dir.path()).await;
        check(&*store.snapshot().await.unwrap(), bytes, &mut seen, &acked).await;
        store.close().await;
    }
    let store = open(dir.path()).await;
    check(&*store.snapshot().await.unwrap(), bytes, &mut seen, &acked).await;
    check(&*store.snapshot().await.unwrap(), bytes, &mut BTreeMap::new(), &acked).await;
    store.close().await;
    (acked, seen)
}
