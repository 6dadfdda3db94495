//! Findings about an etcd that needs care.

use futures::future::join_all;
use netstead_store::{Commit, EtcdOptions, EtcdStore, Store, StoreFinding, StoreFindingGrade};
use netstead_testkit::Etcd;

async fn open(etcd: &Etcd) -> EtcdStore {
    EtcdStore::open(&EtcdOptions::new(etcd.endpoints())).await.unwrap()
}

/// The remark that has `part` in it.
async fn remark(store: &EtcdStore, part: &str) -> Option<StoreFinding> {
    store.examine().await.into_iter().find(|remark| remark.text.contains(part))
}

async fn fill(store: &EtcdStore, keys: std::ops::Range<u32>) -> bool {
    for key in keys {
        let commit = Commit::new().put(format!("fill/{key}"), vec![7; 1 << 19]);
        if store.commit(commit).await.is_err() {
            return false;
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_fills_up_and_its_alarm_are_told() {
    let Some(etcd) = Etcd::start_with(1, "http", &["--quota-backend-bytes", "33554432"]) else { return };
    let store = open(&etcd).await;
    let first = remark(&store, " of 32.0 MiB").await.expect("its own quota, not the default");
    assert_eq!(first.grade, StoreFindingGrade::Fine);
    assert!(fill(&store, 0..34).await);
    // etcd writes to its file a moment after it has answered.
    let mut half = None;
    for _ in 0..100 {
        half = remark(&store, "more than half of its quota").await;
        if half.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let half = half.unwrap();
    assert_eq!(half.grade, StoreFindingGrade::Problem);
    assert!(!fill(&store, 34..100).await, "it should be full");
    let alarm = remark(&store, "NOSPACE").await.unwrap();
    assert!(alarm.hint.unwrap().contains("alarm disarm"));

    // As the hints say: what is deleted and compacted is given back, and it goes on.
    etcd.ctl(&["del", "--prefix", "/netstead/kv/fill/"]).unwrap();
    let status = etcd.ctl(&["endpoint", "status", "-w", "json"]).unwrap();
    let revision = status.split("\"revision\":").nth(1).unwrap();
    let revision: String = revision.chars().take_while(char::is_ascii_digit).collect();
    etcd.ctl(&["compact", "--physical", &revision]).unwrap();
    let loose = remark(&store, "more than half of its quota").await.unwrap();
    assert!(loose.hint.unwrap().contains("defrag"), "what is free inside the file is told");
    etcd.ctl(&["defrag"]).unwrap();
    etcd.ctl(&["alarm", "disarm"]).unwrap();
    assert!(fill(&store, 0..1).await);
    assert!(store.examine().await.iter().all(|remark| remark.grade == StoreFindingGrade::Fine));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_past_that_nobody_throws_away_is_told() {
    let Some(mut etcd) = Etcd::start(1) else { return };
    let store = open(&etcd).await;
    assert_eq!(remark(&store, "compacted").await, None, "nothing can be said of one so young");
    for _ in 0..160 {
        let commits = (0..64).map(|key| store.commit(Commit::new().put(format!("k/{key}"), "1")));
        assert!(join_all(commits).await.iter().all(Result::is_ok));
    }
    let never = remark(&store, "never been compacted").await.unwrap();
    assert_eq!(never.grade, StoreFindingGrade::Problem);
    assert!(never.hint.unwrap().contains("--auto-compaction-retention"));
    etcd.ctl(&["compact", "9000"]).unwrap();
    let now = remark(&store, "is compacted").await.unwrap();
    assert_eq!(now.grade, StoreFindingGrade::Fine);
    let kept: u32 = now.text.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
    assert!((1000..3000).contains(&kept), "{now:?}");
    etcd.member(0).kill().unwrap();
    assert!(remark(&store, "does not answer").await.is_some());
    store.close().await;
}
