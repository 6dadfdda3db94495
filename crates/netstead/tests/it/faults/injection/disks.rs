//! Disks that are full, or empty.

use std::time::Duration;

use netstead_testkit::wait_until;
use tokio::{task::block_in_place, time::sleep};

use crate::faults::{Backing, Cluster, clients::Load, cluster::PATIENCE};

/// How long a disk stays full once a client has met that.
const FULL: Duration = Duration::from_secs(3);

/// etcd takes no more writes until a person makes room.
pub(super) async fn quota_used_up(cluster: &mut Cluster, load: &Load) {
    let etcd = cluster.etcd();
    let value = "x".repeat(100_000);
    let full = (0..1000).any(|number| etcd.ctl(&["put", &format!("/fill/{number}"), &value]).is_err());
    assert!(full, "the quota cannot be used up");
    let alarm = etcd.ctl(&["alarm", "list"]).unwrap();
    assert!(alarm.contains("NOSPACE"), "{alarm}");
    sleep(Duration::from_secs(2)).await;
    etcd.ctl(&["del", "--prefix", "/fill/"]).unwrap();
    let status = etcd.ctl(&["endpoint", "status", "-w", "json"]).unwrap();
    let revision = status.split("\"revision\":").nth(1).unwrap();
    let revision: String = revision.chars().take_while(char::is_ascii_digit).collect();
    // It may have been compacted further meanwhile.
    let _ = etcd.ctl(&["compact", "--physical", &revision]);
    etcd.ctl(&["defrag"]).unwrap();
    etcd.ctl(&["alarm", "disarm"]).unwrap();
    load.next_change_after(load.history.now()).await;
}

/// One member of three has no room; etcd ends there.
pub(super) async fn full_below_a_member(cluster: &mut Cluster) {
    cluster.disk.as_ref().expect("a small disk").fill().unwrap();
    let etcd = cluster.etcd();
    // Its log is allocated ahead, so a client writes until that is used up.
    let value = "x".repeat(100_000);
    let mut numbers = 0_u32..;
    let ended = block_in_place(|| {
        wait_until(PATIENCE, || {
            let _ = etcd.ctl(&["put", &format!("/fill/{}", numbers.next()?), &value]);
            (!etcd.member(0).running()).then_some(())
        })
    });
    let log = etcd.member(0).log();
    assert!(ended.is_some() && log.contains("no space left"), "the member never met the full disk: {log}");
    sleep(FULL).await;
    cluster.disk.as_ref().expect("a small disk").free().unwrap();
    block_in_place(|| {
        let etcd = cluster.etcd();
        etcd.restart(0).unwrap();
        etcd.ctl(&["del", "--prefix", "/fill/"]).unwrap();
    });
}

/// A node that keeps the store has no room, and says so itself.
pub(super) async fn full_below_a_node(cluster: &Cluster) {
    let disk = cluster.disk.as_ref().expect("a small disk");
    let full = async || {
        // Again and again: files that are cut give room back.
        disk.fill().unwrap();
        let said = cluster.readiness(0).await?;
        (said.starts_with("HTTP/1.1 503") && said.contains("is full")).then_some(())
    };
    cluster.wait_for("the node says that its disk is full", full).await;
    sleep(FULL).await;
    disk.free().unwrap();
    cluster.serves(0).await;
}

/// The leader's machine comes back with nothing, as another node.
pub(super) async fn lost(cluster: &mut Cluster, backing: Backing) {
    let before = cluster.lead().await;
    let number = before.node;
    let id = cluster.wait_for("it says who it is", async || cluster.seen_by(number).await).await.node;
    cluster.nodes()[number].kill();
    cluster.nodes()[number].lose_disk();
    if backing.members() > 1 {
        block_in_place(|| cluster.etcd().replace(number)).unwrap();
    }
    cluster.led_anew(before).await;
    cluster.nodes()[number].start();
    if matches!(backing, Backing::Raft { .. }) {
        cluster.voters_without(&id).await;
    }
    let other = async || cluster.seen_by(number).await.filter(|seen| seen.node != id);
    cluster.wait_for("it is another node than it was", other).await;
    cluster.serves(number).await;
}
