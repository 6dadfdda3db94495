//! Nodes as processes that are killed under load: what any of them acknowledged is there in the end.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use netstead_store::{RaftOptions, RaftStore, Store};
use tokio::time::sleep;

use super::cluster::{be_patient, free_address, put, secret, until};
use crate::{child::say, support::Dice};

const NODE: &str = "NETSTEAD_STORE_TEST_NODE";
const KILLS: u64 = 12;
const CLIENTS: usize = 4;

/// Number, own address, then the others'; beside the directory of all nodes.
fn options(dir: &Path, number: usize, addresses: &[String]) -> RaftOptions {
    let mut options = RaftOptions::new(dir.join(number.to_string()), &addresses[number], secret());
    options.peers = addresses.iter().filter(|other| **other != addresses[number]).cloned().collect();
    be_patient(&mut options);
    options
}

/// Not a test unless [`Process::start`] runs it.
#[test]
fn child() {
    let Ok(given) = env::var(NODE) else { return };
    thread::spawn(|| {
        // The parent holds the other end: when it is gone, so are we.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let given: Vec<String> = given.split(' ').map(String::from).collect();
    let (number, round): (usize, u64) = (given[1].parse().unwrap(), given[2].parse().unwrap());
    let options = options(Path::new(&given[0]), number, &given[3..]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Arc::new(RaftStore::open(options).await.unwrap());
        say("open");
        let clients =
            (0..CLIENTS).map(|client| tokio::spawn(load(Arc::clone(&store), number, round, client)));
        futures::future::join_all(clients).await;
    });
}

/// Commits for ever. A commit whose outcome is unknown is not said, and its key is not used again.
async fn load(store: Arc<RaftStore>, node: usize, round: u64, client: usize) {
    for number in 0_u64.. {
        let key = format!("k/{node}/{client}/{round:03}/{number:06}");
        if put(&*store, &key, &key).await.is_ok() {
            say(&key);
        }
    }
}

struct Process {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
    reader: thread::JoinHandle<()>,
}

impl Process {
    fn start(dir: &Path, number: usize, round: u64, addresses: &[String]) -> Self {
        let mut given = format!("{} {number} {round}", dir.display());
        for address in addresses {
            let _ = write!(given, " {address}");
        }
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "raft::kill::child", "--nocapture"])
            .env(NODE, given)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let heard = Arc::clone(&said);
        let reader = thread::spawn(move || {
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
                // A line cut in half by the kill was not said.
                if let Some((_, words)) = line.strip_suffix('\n').and_then(|line| line.split_once('@')) {
                    heard.lock().unwrap().push(words.to_owned());
                }
                line.clear();
            }
        });
        Self { child, said, reader }
    }

    fn acknowledged(&self) -> usize {
        self.said.lock().unwrap().len()
    }

    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.reader.join().unwrap();
        std::mem::take(&mut self.said.lock().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_kills_of_nodes_under_load() {
    let dir = tempfile::tempdir().unwrap();
    let addresses: Vec<String> = (0..3).map(|_| free_address()).collect();
    let mut dice = Dice::new(11);
    let mut nodes: BTreeMap<usize, Process> =
        (0..3).map(|number| (number, Process::start(dir.path(), number, 0, &addresses))).collect();
    let mut acknowledged = Vec::new();
    for round in 1..=KILLS {
        let victim = usize::try_from(dice.below(3)).unwrap();
        // The others go on, so the next one is killed only when there was something to lose.
        let before: usize = nodes.values().map(Process::acknowledged).sum();
        until(async || nodes.values().map(Process::acknowledged).sum::<usize>() > before + 20).await;
        sleep(Duration::from_millis(dice.below(500))).await;
        let process = nodes.remove(&victim).unwrap();
        acknowledged.extend(tokio::task::spawn_blocking(move || process.kill()).await.unwrap());
        // Every fourth time all of them.
        if round % 4 == 0 {
            for (_, process) in std::mem::take(&mut nodes) {
                acknowledged.extend(tokio::task::spawn_blocking(move || process.kill()).await.unwrap());
            }
        }
        for number in 0..3 {
            nodes.entry(number).or_insert_with(|| Process::start(dir.path(), number, round, &addresses));
        }
    }
    for (_, process) in nodes {
        acknowledged.extend(tokio::task::spawn_blocking(move || process.kill()).await.unwrap());
    }
    acknowledged.retain(|line| line.starts_with("k/"));

    let mut stores = Vec::new();
    for number in 0..3 {
        stores.push(RaftStore::open(options(dir.path(), number, &addresses)).await.unwrap());
    }
    until(async || stores[0].get(b"k").await.is_ok()).await;
    let snapshot = stores[0].snapshot().await.unwrap();
    for key in &acknowledged {
        let entry = snapshot.get(key.as_bytes()).await.unwrap();
        assert!(
            entry.is_some_and(|entry| entry.value == key.as_bytes()),
            "{key} was acknowledged and is lost"
        );
    }
    println!("{KILLS} kills, {} commits acknowledged, all there", acknowledged.len());
    assert!(acknowledged.len() > 200, "the load should have been worth the name: {}", acknowledged.len());
    // All three hold the same.
    let all = snapshot.range(b"", None, usize::MAX).await.unwrap();
    for store in &stores {
        let same = store.snapshot().await.unwrap().range(b"", None, usize::MAX).await.unwrap() == all;
        assert!(same, "two nodes hold different data");
    }
    for store in stores {
        store.close().await;
    }
}
