//! Commits that land, while who made them does not learn of it.

use std::time::Duration;

use netstead_testkit::LossyProxy;
use tokio::time::sleep;

use crate::faults::{Cluster, clients::Load};

/// Longer than a node waits for what it has proposed.
const GIVES_UP: Duration = Duration::from_secs(6);

/// Answers of the store to a node, or of the only node to its callers.
pub(super) async fn on_the_way_lost(cluster: &Cluster, load: &Load, total: usize) {
    cluster.ways.iter().for_each(|way| way.lose_one_in(10));
    load.reach(load.done() + total / 5).await;
    cluster.ways.iter().for_each(|way| way.lose_one_in(0));
    let lost: usize = cluster.ways.iter().map(LossyProxy::lost).sum();
    assert!(lost > 0, "no answer was lost, so this tests nothing");
    eprintln!("{lost} answers were lost");
}

/// The leader is heard and hears nothing: what it sends gets into the logs of the others, of whom the next leader makes it
/// certain. Until the old one gives up, what it has on its way is unknown to it.
pub(super) async fn between_nodes_lost(cluster: &Cluster, load: &Load) {
    let before = cluster.unknown_commits().await;
    let mut now = before;
    // Whether the ledger has something on its way at that very moment is luck.
    for _ in 0..6 {
        let lead = cluster.lead().await;
        cluster.lan.deafen(lead.node, &cluster.beside()).unwrap();
        cluster.another_leads(lead).await;
        sleep(GIVES_UP).await;
        cluster.lan.heal().unwrap();
        load.next_change_after(load.history.now()).await;
        now = cluster.unknown_commits().await;
        if now > before {
            break;
        }
    }
    assert!(now > before, "no commit was unknown to who made it, so this tests nothing");
    eprintln!("{} commits were unknown to who made them", now - before);
    // Shorter than what makes anybody give up: answers come late, and nothing else.
    for _ in 0..4 {
        let leader = cluster.leader().await;
        cluster.lan.mute(leader, &[]).unwrap();
        sleep(Duration::from_millis(400)).await;
        cluster.lan.heal().unwrap();
        load.next_change_after(load.history.now()).await;
        sleep(Duration::from_millis(300)).await;
    }
}
