//! Nodes that stop, disks that are lost or full, and a cluster without a majority.

use std::{sync::Arc, time::Duration};

use netstead_store::{Commit, Health, RaftOptions, RaftStore, Store, StoreError, WatchItem, raft::Role};

use tokio::time::{sleep, timeout};

use super::cluster::{Cluster, SOON, alone, free_address, put, secret, until};
use crate::{disk_full::SmallDisk, support::everything};

#[tokio::test(flavor = "multi_thread")]
async fn when_the_leader_dies_another_one_leads_soon_and_nothing_is_lost() {
    let mut cluster = Cluster::start(3).await;
    let first = cluster.leader().await;
    for number in 0..50 {
        put(&*cluster.node(first), &format!("k/{number}"), "1").await.unwrap();
    }
    let other = cluster.node((first + 1) % 3);
    cluster.kill(first).await;
    // A commit that waits for the new one needs no second try.
    let landed = async {
        while put(&*other, "after", "1").await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, landed).await.expect("another one should lead");
    assert_eq!(everything(&*other).await.len(), 51);
    cluster.restart(first).await;
    until(async || everything(&*cluster.node(first)).await.len() == 51).await;
    cluster.close().await;
}

/// Makes elections take longer than the test, so that there is none.
fn be_endlessly_patient(options: &mut RaftOptions) {
    options.timings.election = (Duration::from_mins(2), Duration::from_mins(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_told_to_stop_hands_over_and_commits_go_on() {
    let mut cluster = Cluster::start_with(3, be_endlessly_patient).await;
    for round in 0..3 {
        let first = cluster.leader().await;
        let (other, third) = (cluster.node((first + 1) % 3), cluster.node((first + 2) % 3));
        let writers: Vec<_> = [other, third]
            .into_iter()
            .enumerate()
            .map(|(number, store)| {
                tokio::spawn(async move {
                    for commit in 0..50 {
                        put(&*store, &format!("k/{round}/{number}/{commit}"), "1").await.unwrap();
                    }
                })
            })
            .collect();
        cluster.stop(first).await;
        for writer in writers {
            timeout(SOON, writer).await.expect("no node leads").unwrap();
        }
        cluster.restart(first).await;
    }
    let leader = cluster.leader().await;
    assert_eq!(everything(&*cluster.node(leader)).await.len(), 300);
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_are_restarted_one_after_the_other_and_somebody_always_leads() {
    let mut cluster = Cluster::start_with(3, be_endlessly_patient).await;
    for number in 0..3 {
        put(&*cluster.node(number), "a", &number.to_string()).await.unwrap();
        cluster.restart(number).await;
        cluster.leader().await;
    }
    for number in 0..3 {
        assert_eq!(cluster.node(number).get(b"a").await.unwrap().unwrap().value, b"2");
    }
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_nodes_the_one_that_led_hands_over_too_and_one_alone_stops_at_once() {
    let mut cluster = Cluster::start_with(2, be_endlessly_patient).await;
    let first = cluster.leader().await;
    put(&*cluster.node(first), "a", "1").await.unwrap();
    cluster.restart(first).await;
    assert_eq!(cluster.leader().await, 1 - first, "the other one was to lead");
    put(&*cluster.node(first), "a", "2").await.unwrap();
    cluster.close().await;

    let dir = tempfile::tempdir().unwrap();
    let store = alone(dir.path()).await;
    timeout(Duration::from_secs(1), store.close()).await.expect("it waits for nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_all_were_restarted_everything_is_there() {
    let mut cluster = Cluster::start(3).await;
    let mut last = None;
    for number in 0..30 {
        last = Some(put(&*cluster.node(number % 3), "a", &number.to_string()).await.unwrap());
    }
    for number in 0..3 {
        cluster.stop(number).await;
    }
    for number in 0..3 {
        cluster.restart(number).await;
    }
    cluster.leader().await;
    for number in 0..3 {
        let entry = cluster.node(number).get(b"a").await.unwrap().unwrap();
        assert_eq!((entry.value, Some(entry.version)), (b"29".to_vec(), last));
    }
    assert!(put(&*cluster.node(0), "a", "30").await.unwrap() > last.unwrap());
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_own_copies_are_read_and_commits_say_why_not() {
    let mut cluster = Cluster::start_with(3, |options| options.timeout = Duration::from_secs(2)).await;
    let leader = cluster.leader().await;
    put(&*cluster.node(leader), "a", "1").await.unwrap();
    let follower = (leader + 1) % 3;
    until(async || {
        let own = cluster.node(follower).own_snapshot().await.unwrap();
        own.get(b"a").await.unwrap().is_some()
    })
    .await;
    for stays in [leader, follower] {
        for other in (0..3).filter(|other| *other != stays) {
            cluster.stop(other).await;
        }
        let store = cluster.node(stays);
        let failed = async || matches!(store.health(), Health::Failed { .. });
        until(failed).await;
        let Health::Failed { reason } = store.health() else { panic!() };
        assert!(reason.contains("majority"), "{reason}");
        let own = store.own_snapshot().await.unwrap();
        assert_eq!(own.get(b"a").await.unwrap().unwrap().value, b"1");
        let read = timeout(SOON, store.get(b"a")).await.unwrap();
        assert!(matches!(read, Err(StoreError::Unavailable { .. })), "{read:?}");
        let commit = timeout(SOON, store.commit(Commit::new().put("b", "1"))).await.unwrap();
        let clear = matches!(commit, Err(StoreError::Unknown { .. } | StoreError::Unavailable { .. }));
        assert!(clear, "{commit:?}");
        for other in (0..3).filter(|other| *other != stays) {
            cluster.restart(other).await;
        }
        cluster.leader().await;
        put(&*cluster.node(stays), "c", "1").await.unwrap();
        drop(store);
    }
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_while_leaders_change_without_gap_or_repeat() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let watcher = (leader + 1) % 3;
    let mut watch = cluster.node(watcher).watch(b"k/").await.unwrap();
    let mut sent = 0;
    for round in 0..3 {
        for _ in 0..20 {
            put(&*cluster.node(watcher), &format!("k/{sent:03}"), "1").await.unwrap();
            sent += 1;
        }
        if round < 2 {
            let leader = cluster.leader().await;
            let other = if leader == watcher { (watcher + 1) % 3 } else { leader };
            cluster.restart(other).await;
            cluster.leader().await;
        }
    }
    for number in 0..sent {
        let item = timeout(SOON, watch.next()).await.unwrap();
        let Some(WatchItem::Changed { writes, .. }) = item else { panic!("{number}: {item:?}") };
        assert_eq!(writes[0].key(), format!("k/{number:03}").as_bytes());
    }
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_lost_its_disk_comes_back_as_a_new_one() {
    let mut cluster = Cluster::start(3).await;
    let lost = (cluster.leader().await + 1) % 3;
    for number in 0..40 {
        put(&*cluster.node(0), &format!("k/{number}"), "1").await.unwrap();
    }
    let old = cluster.node(lost).id();
    cluster.stop(lost).await;
    cluster.wipe(lost);
    cluster.restart(lost).await;
    until(async || {
        let status = cluster.node((lost + 1) % 3).own_status();
        status.voters() == 3 && status.members.len() == 3 && status.members.iter().all(|m| m.id != old)
    })
    .await;
    let new = cluster.node(lost);
    assert_ne!(new.id(), old, "an id is never used again");
    assert_eq!(everything(&*new).await.len(), 40);
    // It counts: with it and one other there is a majority.
    let third = (lost + 1) % 3;
    cluster.stop(third).await;
    until(async || put(&*new, "after", "1").await.is_ok()).await;
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_far_behind_gets_a_copy_of_everything() {
    let mut cluster = Cluster::start_with(3, |options| options.timings.keep = 50).await;
    let behind = (cluster.leader().await + 1) % 3;
    put(&*cluster.node(0), "goes", "1").await.unwrap();
    put(&*cluster.node(0), "stays", "1").await.unwrap();
    let mut watch = cluster.node(behind).watch(b"").await.unwrap();
    cluster.stop(behind).await;
    assert_eq!(watch.next().await, None);
    let writer = cluster.node(cluster.leader().await);
    writer.commit(Commit::new().delete("goes")).await.unwrap();
    for number in 0..700 {
        put(&*writer, &format!("k/{:03}", number % 300), &"x".repeat(number * 3)).await.unwrap();
    }
    cluster.restart(behind).await;
    let store = cluster.node(behind);
    until(async || store.health() == Health::Ready && store.get(b"a").await.is_ok()).await;
    let (one, other) = (everything(&*store).await, everything(&*writer).await);
    assert_eq!(one.len(), 301);
    assert!(one == other, "the copy should be the same, versions too");
    // Its own log goes on from there, over a restart too.
    put(&*writer, "after", "1").await.unwrap();
    cluster.restart(behind).await;
    let store = cluster.node(behind);
    until(async || store.get(b"after").await.is_ok_and(|entry| entry.is_some())).await;
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_of_one_node_stops_only_that_node_and_it_heals() {
    let Some(disk) = SmallDisk::mount(200) else { return };
    let mut cluster = Cluster::start(3).await;
    let number = cluster.add(|options| {
        options.path = disk.path().join("node");
        options.timeout = Duration::from_secs(3);
    });
    let join = cluster.options(0).listen.clone();
    cluster.options(number).join = Some(join);
    cluster.restart(number).await;
    until(async || cluster.node(0).own_status().voters() == 4).await;
    put(&*cluster.node(number), "a", "1").await.unwrap();

    let ballast = disk.fill();
    let value = "x".repeat(200 << 10);
    let victim = cluster.node(number);
    // The others go on, though this one may have led.
    let mut landed = 0;
    let failed = async {
        while !matches!(victim.health(), Health::Failed { reason } if reason.contains("full")) {
            if put(&*cluster.node(landed % 3), &format!("k/{}", landed % 20), &value).await.is_ok() {
                landed += 1;
            }
        }
    };
    timeout(Duration::from_mins(1), failed).await.expect("health should say that the disk is full");
    until(async || put(&*cluster.node(0), "b", "1").await.is_ok()).await;
    let own = victim.own_snapshot().await;
    assert!(own.is_ok() || matches!(own, Err(StoreError::Unavailable { .. })));

    ballast.free();
    until(async || victim.health() == Health::Ready).await;
    until(async || victim.get(b"b").await.is_ok_and(|entry| entry.is_some())).await;
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_cannot_be_the_same_node() {
    let dir = tempfile::tempdir().unwrap();
    let store = alone(dir.path()).await;
    let again = RaftStore::open(RaftOptions::new(dir.path(), free_address(), secret())).await.unwrap_err();
    assert!(matches!(again, StoreError::Locked { .. }), "{again}");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_another_kind_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(alone(dir.path()).await);
    put(&*store, "a", "1").await.unwrap();
    assert_eq!(store.own_status().role, Role::Leader);
    store.close().await;
    let error = netstead_store::LocalStore::open(dir.path()).await.unwrap_err().to_string();
    assert!(error.contains("holds a node of a cluster"), "{error}");

    let dir = tempfile::tempdir().unwrap();
    let local = crate::support::open(dir.path()).await;
    put(&local, "a", "1").await.unwrap();
    local.close().await;
    let error = RaftStore::open(RaftOptions::new(dir.path(), free_address(), secret())).await.unwrap_err();
    assert!(error.to_string().contains("holds a local store"), "{error}");
}
