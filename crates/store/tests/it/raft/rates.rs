//! How many commits a second three nodes on one disk make; told, and only the sharing of entries is demanded.

#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]

use std::{sync::Arc, time::Instant};

use super::cluster::{Cluster, put};

async fn rate(store: &Arc<netstead_store::RaftStore>, committers: usize, each: usize) -> f64 {
    let start = Instant::now();
    let tasks = (0..committers).map(|task| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            for number in 0..each {
                put(&*store, &format!("k/{task}"), &number.to_string()).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
    let count = (committers * each) as f64;
    count / seconds
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_at_once_share_entries_of_the_log() {
    let cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let store = cluster.node(leader);
    let follower = cluster.node((leader + 1) % 3);
    let alone = rate(&store, 1, 200).await;
    let before = store.own_status().last_log;
    let many = rate(&store, 64, 50).await;
    let entries = store.own_status().last_log - before;
    let forwarded = rate(&follower, 64, 50).await;
    println!(
        "commits per second, 3 nodes on one disk: {alone:.0} with one committer, {many:.0} with 64 ({entries} entries for \
         3200 commits), {forwarded:.0} with 64 through a follower"
    );
    assert!(entries < 1600, "{entries} entries for 3200 commits of 64 committers");
    drop((store, follower));
    cluster.close().await;
}
