//! Everything ends and comes back, at once or one by one.

use std::time::Duration;

use tokio::{task::block_in_place, time::sleep};

use crate::faults::{clients::Load, cluster::Cluster, node::Node, report::Gap};

pub(super) async fn all(cluster: &mut Cluster, load: &Load, members: usize) -> Gap {
    let before = cluster.lead().await;
    let at = load.history.now();
    cluster.nodes().iter_mut().for_each(Node::kill);
    for member in 0..members {
        cluster.etcd().member(member).kill().unwrap();
    }
    // Together, as after a power cut: one alone waits for the others.
    if let Some(etcd) = &mut cluster.etcd {
        etcd.restart_all().unwrap();
    }
    cluster.nodes().iter_mut().for_each(Node::start);
    let took = load.next_change_after(at).await;
    cluster.led_anew(before).await;
    Gap { election: members > 0, ..Gap::led_by_another(at, took, before) }
}

pub(super) async fn one_by_one(cluster: &mut Cluster, load: &Load, members: usize) -> Vec<Gap> {
    let first = cluster.lead().await;
    let mut gaps = Vec::new();
    for number in 0..cluster.count() {
        let election = cluster.election();
        let before = cluster.lead().await;
        let at = load.history.now();
        block_in_place(|| {
            let mut nodes = cluster.nodes();
            nodes[number].stop();
            nodes[number].start();
        });
        if number < members {
            cluster.etcd().restart(number).unwrap();
        }
        let took = load.next_change_after(at).await;
        let election = cluster.election() != election;
        let gap =
            if number == before.node { Gap::led_by_another(at, took, before) } else { Gap::plain(at, took) };
        gaps.push(Gap { election, ..gap });
        sleep(Duration::from_secs(1)).await;
        cluster.leader().await;
    }
    cluster.led_anew(first).await;
    gaps
}
