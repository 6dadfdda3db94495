//! Nodes that come and go.

use std::{path::Path, time::Duration};

use netstead_store::{
    Health, RaftStore, RaftTimings, Store, StoreError,
    raft::{Role, hex},
};
use tokio::time::timeout;

use super::cluster::{Cluster, free_address, put, until};
use crate::support::everything;

#[tokio::test(flavor = "multi_thread")]
async fn one_node_grows_to_three_and_shrinks_again() {
    let mut cluster = Cluster::start(1).await;
    for number in 0..20 {
        put(&*cluster.node(0), &format!("k/{number}"), "1").await.unwrap();
    }
    for _ in 0..2 {
        let join = cluster.options(0).listen.clone();
        let number = cluster.add(|options| options.join = Some(join));
        cluster.restart(number).await;
        until(async || cluster.node(0).own_status().voters() == number + 1).await;
        until(async || cluster.node(number).health() == Health::Ready).await;
        assert_eq!(everything(&*cluster.node(number)).await.len(), 20);
    }
    let status = cluster.node(2).status().await;
    assert_eq!(status.members.len(), 3);
    for member in &status.members {
        assert!(member.voter && member.lag.is_some_and(|lag| lag < 100), "{member:?}");
        assert!(member.last_contact_ms.is_some_and(|age| age < 2000), "{member:?}");
    }
    let names: std::collections::BTreeSet<_> =
        status.members.iter().map(|member| member.member.name.clone()).collect();
    assert_eq!(names, ["node0", "node1", "node2"].map(String::from).into());

    // The one that leads removes itself too, and the removed ones say what they are.
    for _ in 0..2 {
        let leader = cluster.leader().await;
        let id = cluster.node(leader).id();
        let asked =
            (0..3).find(|node| *node != leader && cluster.running().any(|(n, _)| n == *node)).unwrap();
        cluster.node(asked).remove(id).await.unwrap();
        let gone = cluster.node(leader);
        until(async || matches!(gone.health(), Health::Failed { reason } if reason.contains("removed from the cluster")))
            .await;
        assert_eq!(gone.own_status().role, Role::Removed);
        // It says so at once; its own copy is still there for who wants it.
        let refused = timeout(Duration::from_secs(1), gone.get(b"k/1")).await.unwrap().unwrap_err();
        assert!(refused.to_string().contains("was removed from the cluster"), "{refused}");
        let refused = timeout(Duration::from_secs(1), put(&*gone, "k/1", "2")).await.unwrap().unwrap_err();
        assert!(refused.to_string().contains("was removed from the cluster"), "{refused}");
        assert!(gone.own_snapshot().await.unwrap().get(b"k/1").await.unwrap().is_some());
        drop(gone);
        cluster.stop(leader).await;
        let left = cluster.leader().await;
        put(&*cluster.node(left), "still", "1").await.unwrap();
    }
    let left = cluster.leader().await;
    let refused = cluster.node(left).remove(cluster.node(left).id()).await.unwrap_err();
    assert!(refused.to_string().contains("the last one"), "{refused}");
    assert_eq!(everything(&*cluster.node(left)).await.len(), 21);
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_would_break_the_majority_is_refused() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let (dead, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let (dead_id, other_id) = (cluster.node(dead).id(), cluster.node(other).id());
    // It was heard of a moment ago.
    cluster.kill(dead).await;
    let refused = cluster.node(leader).remove(other_id).await.unwrap_err();
    assert!(matches!(refused, StoreError::Invalid { .. }), "{refused}");
    let silent = format!("2 nodes of which 1 answers, and that is no majority: node {} at", hex(dead_id));
    assert!(refused.to_string().contains(&silent), "{refused}");
    put(&*cluster.node(other), "unharmed", "1").await.unwrap();
    let unknown = cluster.node(leader).remove(7).await.unwrap_err();
    assert!(unknown.to_string().contains("not in the cluster"), "{unknown}");
    // The dead one may go.
    cluster.node(other).remove(dead_id).await.unwrap();
    until(async || cluster.node(leader).own_status().members.len() == 2).await;
    // When it comes back with its old disk it learns what happened to it.
    cluster.restart(dead).await;
    let gone = cluster.node(dead);
    until(async || matches!(gone.health(), Health::Failed { reason } if reason.contains("removed from the cluster")))
        .await;
    put(&*cluster.node(other), "a", "1").await.unwrap();
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_waits_is_added_and_one_with_a_cluster_of_its_own_is_not() {
    let mut cluster = Cluster::start(1).await;
    let own = cluster.add(|_| {});
    cluster.restart(own).await;
    let address = cluster.options(own).listen.clone();
    let refused = cluster.node(0).add(&address).await.unwrap_err();
    assert!(refused.to_string().contains("a cluster of its own"), "{refused}");
    cluster.stop(own).await;

    // It waits for a third one that never comes.
    let nobody = super::cluster::free_address();
    let waits = cluster.add(|options| options.peers = vec![nobody]);
    cluster.restart(waits).await;
    let Health::Failed { reason } = cluster.node(waits).health() else { panic!("it should wait") };
    assert!(!reason.is_empty());
    assert_eq!(cluster.node(waits).own_status().role, Role::Waiting);
    let address = cluster.options(waits).listen.clone();
    cluster.node(0).add(&address).await.unwrap();
    until(async || cluster.node(0).own_status().voters() == 2).await;
    until(async || cluster.node(waits).health() == Health::Ready).await;
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_says_of_itself_is_known_to_all() {
    let mut cluster = Cluster::start(3).await;
    let number = (cluster.leader().await + 1) % 3;
    cluster.options(number).api = "http://10.0.0.7:5301".into();
    cluster.options(number).format = 2;
    cluster.restart(number).await;
    let id = cluster.node(number).id();
    for node in 0..3 {
        until(async || {
            let status = cluster.node(node).own_status();
            let member = status.members.iter().find(|member| member.id == id);
            member.is_some_and(|member| {
                member.member.api == "http://10.0.0.7:5301" && member.member.format == 2
            })
        })
        .await;
    }
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_another_address_is_found_there() {
    // Who starts trusts the last one that led for a moment, and could tell it then: this one is too slow for that.
    let timings = RaftTimings::default();
    let mut cluster = Cluster::start_with(3, |options| options.timings = timings).await;
    let leader = cluster.leader().await;
    // One that follows, then the one that leads.
    for moves in [(leader + 1) % 3, leader] {
        cluster.stop(moves).await;
        let address = free_address();
        cluster.options(moves).listen.clone_from(&address);
        cluster.restart(moves).await;
        let id = cluster.node(moves).id();
        until(async || cluster.node(moves).health() == Health::Ready).await;
        for node in 0..3 {
            until(async || {
                let status = cluster.node(node).own_status();
                status.members.iter().any(|one| one.id == id && one.member.address == address)
            })
            .await;
        }
        put(&*cluster.node(moves), "moved", "1").await.unwrap();
        assert_eq!(cluster.node(moves).own_status().voters(), 3);
    }
    cluster.close().await;
}

/// All files of a directory, as a backup of the machine would bring them elsewhere.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (entry, to) = (entry.as_ref().unwrap(), to.join(entry.as_ref().unwrap().file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), &to).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_node_does_not_start_beside_it() {
    let mut cluster = Cluster::start(3).await;
    let copied = (cluster.leader().await + 1) % 3;
    cluster.stop(copied).await;
    let dir = tempfile::tempdir().unwrap();
    copy(&cluster.options(copied).path, dir.path());
    let mut options = cluster.options(copied).clone();
    cluster.restart(copied).await;
    let (id, original) = (cluster.node(copied).id(), options.listen.clone());
    until(async || cluster.node(copied).health() == Health::Ready).await;
    options.path = dir.path().to_owned();
    options.listen = free_address();
    let refused = RaftStore::open(options.clone()).await.unwrap_err().to_string();
    assert!(refused.contains(&format!("node {} runs already, at {original}", hex(id))), "{refused}");

    // While the original is away the copy is the node; then the original is the one too many.
    cluster.stop(copied).await;
    let copy = RaftStore::open(options.clone()).await.unwrap();
    let other = cluster.node((copied + 1) % 3);
    until(async || {
        let members = other.own_status().members;
        members.iter().any(|one| one.id == id && one.member.address == options.listen)
    })
    .await;
    let refused = RaftStore::open(cluster.options(copied).clone()).await.unwrap_err().to_string();
    assert!(refused.contains(&format!("node {} runs already, at {}", hex(id), options.listen)), "{refused}");
    put(&copy, "a", "1").await.unwrap();
    copy.close().await;
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_a_cluster_joins_no_other_and_says_so() {
    let mut cluster = Cluster::start(1).await;
    let join = cluster.options(0).listen.clone();
    let own = cluster.add(|_| {});
    cluster.restart(own).await;
    cluster.stop(own).await;
    cluster.options(own).join = Some(join.clone());
    let refused = RaftStore::open(cluster.options(own).clone()).await.unwrap_err().to_string();
    let told = format!("in a cluster of 1 already, and {join} is not in it");
    assert!(refused.contains(&told) && refused.contains("`--join`"), "{refused}");

    // Who joined is started the same way ever after.
    cluster.wipe(own);
    cluster.restart(own).await;
    until(async || cluster.node(0).own_status().voters() == 2).await;
    cluster.restart(own).await;
    until(async || cluster.node(own).health() == Health::Ready).await;

    // And one that names only itself makes none.
    let alone = cluster.add(|options| options.peers = vec![options.listen.clone()]);
    cluster.restart(alone).await;
    let store = cluster.node(alone);
    until(async || matches!(store.health(), Health::Failed { reason } if reason.contains("`peers` names no other node"))).await;
    drop(store);
    cluster.close().await;
}

/// A server that asks at once must not say that it is in no cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_knows_its_cluster_as_soon_as_it_is_open_again() {
    let mut cluster = Cluster::start(3).await;
    cluster.stop(1).await;
    cluster.stop(2).await;
    // Other work delays the core of the node, as on a busy machine.
    let busy = tokio::spawn(async {
        loop {
            std::thread::sleep(Duration::from_millis(5));
            tokio::task::yield_now().await;
        }
    });
    for round in 0..20 {
        cluster.restart(0).await;
        let status = cluster.node(0).own_status();
        assert!(status.is_in_a_cluster(), "round {round}: {status:?}");
        let health = cluster.node(0).health();
        assert!(!format!("{health:?}").contains("no cluster"), "round {round}: {health:?}");
    }
    busy.abort();
    cluster.close().await;
}
