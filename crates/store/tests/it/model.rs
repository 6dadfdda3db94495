//! Random commits against a map: whatever is asked, the store answers as the map does.

use std::{collections::BTreeMap, sync::Arc};

use netstead_store::{
    Commit, Condition, Entry, Key, LocalStore, MemoryStore, Store, StoreError, Version, Write,
};
use proptest::{prelude::*, test_runner::TestRunner};
use tempfile::tempdir;

/// One step; keys are numbers below [`KEYS`], so that steps meet.
#[derive(Debug, Clone)]
enum Step {
    Commit { conditions: Vec<(u8, Expect)>, writes: BTreeMap<u8, Option<Vec<u8>>> },
    Together(Vec<(u8, Vec<u8>)>),
    Reopen,
}

#[derive(Debug, Clone, Copy)]
enum Expect {
    Absent,
    /// The version the key has now, if it has one.
    Current,
    Stale,
}

const KEYS: u8 = 12;

fn key(number: u8) -> Key {
    match number {
        0 => vec![0],
        1 => vec![0xff],
        2 => vec![0xff, 0xff],
        3 => b"d".to_vec(),
        4 => b"r".to_vec(),
        number => format!("k/{number}").into_bytes(),
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let expect = prop_oneof![3 => Just(Expect::Current), 2 => Just(Expect::Absent), 1 => Just(Expect::Stale)];
    let value = proptest::collection::vec(any::<u8>(), 0..20);
    let conditions = proptest::collection::vec((0..KEYS, expect), 0..3);
    let writes =
        proptest::collection::btree_map(0..KEYS, proptest::option::weighted(0.7, value.clone()), 0..5);
    let commit = (conditions, writes).prop_map(|(conditions, writes)| Step::Commit { conditions, writes });
    let together = proptest::collection::vec((0..KEYS, value), 1..8).prop_map(Step::Together);
    let step = prop_oneof![20 => commit, 3 => together, 1 => Just(Step::Reopen)];
    proptest::collection::vec(step, 1..40)
}

#[derive(Default)]
struct Model {
    keys: BTreeMap<Key, (Version, Vec<u8>)>,
    versions: Vec<Version>,
}

impl Model {
    fn standing(&self, key: &Key) -> Option<Version> {
        self.keys.get(key).map(|(version, _)| *version)
    }

    fn condition(&self, key: Key, expect: Expect) -> Condition {
        match (expect, self.standing(&key)) {
            (Expect::Absent, _) | (Expect::Current, None) => Condition::Absent(key),
            (Expect::Current, Some(version)) => Condition::Version(key, version),
            (Expect::Stale, _) => Condition::Version(key, Version(u64::MAX)),
        }
    }

    fn holds(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Absent(key) => self.standing(key).is_none(),
            Condition::Version(key, version) => self.standing(key) == Some(*version),
        }
    }

    fn land(&mut self, version: Version, writes: Vec<Write>) {
        assert!(!self.versions.contains(&version), "{version:?} was given before");
        self.versions.push(version);
        for write in writes {
            match write {
                Write::Put(key, value) => self.keys.insert(key, (version, value)),
                Write::Delete(key) => self.keys.remove(&key),
            };
        }
    }

    async fn commit(&mut self, store: &dyn Store, commit: Commit) {
        let wrong = commit.conditions.iter().find(|condition| !self.holds(condition));
        match (store.commit(commit.clone()).await, wrong) {
            (Ok(committed), None) => {
                if !commit.writes.is_empty() {
                    self.land(committed.version, commit.writes);
                }
            }
            (Err(StoreError::Refused { key }), Some(condition)) => assert_eq!(&key, condition.key()),
            (outcome, wrong) => panic!("{commit:?} with {wrong:?} wrong ended as {outcome:?}"),
        }
    }

    /// Unconditional commits at the same time: their versions say in which order they landed.
    async fn together(&mut self, store: &dyn Store, puts: Vec<(u8, Vec<u8>)>) {
        let commits = puts.iter().map(|(number, value)| {
            store.commit(Commit::new().put(key(*number), value.clone()).put("both", value.clone()))
        });
        let outcomes = futures::future::join_all(commits).await;
        let mut landed: Vec<_> = outcomes.into_iter().map(Result::unwrap).zip(puts).collect();
        landed.sort_by_key(|(committed, _)| committed.version);
        for (committed, (number, value)) in landed {
            let writes = vec![Write::Put(key(number), value.clone()), Write::Put(b"both".to_vec(), value)];
            self.land(committed.version, writes);
        }
    }

    async fn compare(&self, store: &dyn Store) {
        let wanted: Vec<Entry> = self
            .keys
            .iter()
            .map(|(key, (version, value))| Entry {
                key: key.clone(),
                value: value.clone(),
                version: *version,
            })
            .collect();
        let snapshot = store.snapshot().await.unwrap();
        assert_eq!(snapshot.range(b"", None, usize::MAX).await.unwrap(), wanted);
        let mut back = snapshot.range_back(b"", None, usize::MAX).await.unwrap();
        back.reverse();
        assert_eq!(back, wanted);
        for number in 0..KEYS {
            let key = key(number);
            let wanted = wanted.iter().find(|entry| entry.key == key);
            assert_eq!(store.get(&key).await.unwrap().as_ref(), wanted);
            assert_eq!(snapshot.get(&key).await.unwrap().as_ref(), wanted);
        }
    }
}

/// Runs `steps` on a store that `open` gives. If it is durable, opening again gives the same store.
async fn run(steps: Vec<Step>, durable: bool, open: impl AsyncFn() -> Arc<dyn Store>) {
    let mut store = open().await;
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Commit { conditions, writes } => {
                let mut commit = Commit::new();
                for (number, expect) in conditions {
                    commit = commit.when(model.condition(key(number), expect));
                }
                for (number, value) in writes {
                    commit = match value {
                        Some(value) => commit.put(key(number), value),
                        None => commit.delete(key(number)),
                    };
                }
                model.commit(&*store, commit).await;
            }
            Step::Together(puts) => model.together(&*store, puts).await,
            Step::Reopen => {
                model.compare(&*store).await;
                if durable {
                    store.close().await;
                    store = open().await;
                }
            }
        }
    }
    model.compare(&*store).await;
    store.close().await;
}

fn check(cases: u32, case: impl AsyncFn(Vec<Step>)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
        .run(&steps(), |steps| {
            runtime.block_on(case(steps));
            Ok(())
        })
        .unwrap();
}

#[test]
fn memory_does_what_the_map_does() {
    check(200, async |steps| {
        run(steps, false, async || Arc::new(MemoryStore::new()) as Arc<dyn Store>).await;
    });
}

#[test]
fn local_does_what_the_map_does_also_when_opened_again() {
    check(24, async |steps| {
        let dir = tempdir().unwrap();
        run(steps, true, async || Arc::new(LocalStore::open(dir.path()).await.unwrap()) as Arc<dyn Store>)
            .await;
    });
}
