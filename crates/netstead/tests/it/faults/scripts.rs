//! What goes wrong, and when.

use std::{fmt, time::Duration};

use tokio::time::sleep;

use super::{Backing, Cluster, clients::Load, cluster::NODES, report::Gap};

/// Longer than the lease of a leader, and than its successor needs.
const LONG: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL; it comes back.
    LeaderKilled,
    /// SIGSTOP for longer than its lease; as it wakes, it is asked for what it may still believe.
    LeaderStopped,
    /// It reaches nobody but its clients.
    LeaderCutOff,
    FollowerCutOff,
    /// First the leader is not heard, then one does not hear.
    HeardOneWay,
    /// Commits land and their answers are lost.
    AnswersLost,
    /// On one machine, or the store's own quota.
    DiskFull,
    AllRestarted,
    /// One after the other.
    RollingRestart,
    /// A machine comes back with nothing.
    EmptyDisk,
    /// The next leader's time of day is an hour ahead, and that of the one after it is right.
    WrongClock,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LeaderKilled => "leader killed",
            Self::LeaderStopped => "leader stopped, asked as it wakes",
            Self::LeaderCutOff => "leader cut off",
            Self::FollowerCutOff => "follower cut off",
            Self::HeardOneWay => "packets one way only",
            Self::AnswersLost => "answers of commits lost",
            Self::DiskFull => "disk full",
            Self::AllRestarted => "all restarted",
            Self::RollingRestart => "restarted one by one",
            Self::EmptyDisk => "empty disk",
            Self::WrongClock => "clock an hour off",
        })
    }
}

impl Fault {
    /// Makes it happen at about the same share of the operations however many there are; how long no change was
    /// accepted each time.
    pub(crate) async fn happen(
        self,
        backing: Backing,
        cluster: &mut Cluster,
        load: &Load,
        total: usize,
    ) -> Vec<Gap> {
        load.reach(total / 5).await;
        // A run at length sees it three times.
        let rounds = if total > 5000 { 3 } else { 1 };
        let mut failovers: Vec<Gap> = Vec::new();
        for round in 1..=rounds {
            let members = backing.members();
            match self {
                Self::LeaderKilled | Self::WrongClock => {
                    failovers.push(Gap::plain(leader_killed(cluster, load).await));
                }
                Self::LeaderStopped => failovers.push(Gap::plain(leader_stopped(cluster, load).await)),
                Self::LeaderCutOff => {
                    let leader = cluster.leader().await;
                    failovers.push(cut_off(cluster, load, leader).await);
                }
                Self::FollowerCutOff => {
                    let follower = cluster.follower().await;
                    failovers.push(cut_off(cluster, load, follower).await);
                }
                Self::HeardOneWay => failovers.extend(heard_one_way(cluster, load).await),
                Self::AnswersLost if backing == Backing::Raft => {
                    answers_between_nodes_lost(cluster, load).await;
                }
                Self::AnswersLost => answers_lost(cluster, load, total).await,
                Self::DiskFull if members == 1 => quota_used_up(cluster, load).await,
                Self::DiskFull => disk_full(cluster).await,
                Self::AllRestarted => failovers.push(all_restarted(cluster, load, members).await),
                Self::RollingRestart => failovers.extend(rolling_restart(cluster, load, members).await),
                Self::EmptyDisk => empty_disk(cluster, members).await,
            }
            load.reach(total / 5 + round * total / 5).await;
        }
        failovers
    }
}

pub(crate) async fn leader_killed(cluster: &Cluster, load: &Load) -> Duration {
    let leader = cluster.leader().await;
    let moment = load.history.now();
    cluster.nodes()[leader].kill();
    let took = load.next_change_after(moment).await;
    sleep(Duration::from_secs(1)).await;
    cluster.nodes()[leader].start();
    took
}

async fn leader_stopped(cluster: &Cluster, load: &Load) -> Duration {
    let leader = cluster.leader().await;
    let moment = load.history.now();
    cluster.nodes()[leader].process().signal("STOP").unwrap();
    let took = load.next_change_after(moment).await;
    // Meanwhile what it knows goes to others.
    sleep(LONG.saturating_sub(took).max(Duration::from_secs(1))).await;
    let node = cluster.clients(Duration::from_secs(10)).swap_remove(leader);
    let queued = load.repeat_at(&node);
    let wake = async {
        sleep(Duration::from_millis(200)).await;
        cluster.nodes()[leader].process().signal("CONT").unwrap();
        // These begin after it woke, so they may not be answered from before.
        load.repeat_at(&node).await;
        load.repeat_at(&node).await;
    };
    tokio::join!(queued, wake);
    took
}

/// How long no change was accepted at all.
async fn cut_off(cluster: &Cluster, load: &Load, one: usize) -> Gap {
    let lan = &cluster.lan;
    let gap = silenced(cluster, load, || lan.cut_off(one, &cluster.beside()).unwrap()).await;
    sleep(LONG.saturating_sub(gap.took).max(Duration::from_secs(2))).await;
    lan.heal().unwrap();
    gap
}

async fn heard_one_way(cluster: &Cluster, load: &Load) -> Vec<Gap> {
    let (mut failovers, lan) = (Vec::new(), &cluster.lan);
    for mute in [true, false] {
        let leader = cluster.leader().await;
        let gap = silenced(cluster, load, || {
            if mute {
                lan.mute(leader, &cluster.beside()).unwrap();
            } else {
                lan.deafen(leader, &cluster.beside()).unwrap();
            }
        });
        let gap = gap.await;
        sleep(LONG.saturating_sub(gap.took)).await;
        lan.heal().unwrap();
        failovers.push(gap);
        load.next_change_after(load.history.now()).await;
    }
    failovers
}

/// Cuts ways; how long it was until the first change that was asked for when all of them were cut.
async fn silenced(cluster: &Cluster, load: &Load, cut: impl FnOnce()) -> Gap {
    let before = cluster.election();
    let begun = load.history.now();
    cut();
    let done = load.history.now();
    let took = load.next_change_after(done).await + done.saturating_sub(begun);
    Gap { took, election: cluster.election() != before }
}

async fn answers_lost(cluster: &Cluster, load: &Load, total: usize) {
    cluster.ways.iter().for_each(|way| way.lose_one_in(10));
    load.reach(load.done() + total / 5).await;
    cluster.ways.iter().for_each(|way| way.lose_one_in(0));
    let lost: usize = cluster.ways.iter().map(netstead_testkit::Lossy::lost).sum();
    assert!(lost > 0, "no answer was lost, so this tests nothing");
    eprintln!("{lost} answers were lost");
}

/// Again and again for a moment, what the leader says is not heard: it has done what it was asked by another node.
async fn answers_between_nodes_lost(cluster: &Cluster, load: &Load) {
    for _ in 0..8 {
        let leader = cluster.leader().await;
        cluster.lan.mute(leader, &[]).unwrap();
        sleep(Duration::from_millis(400)).await;
        cluster.lan.heal().unwrap();
        load.next_change_after(load.history.now()).await;
        sleep(Duration::from_millis(300)).await;
    }
}

/// etcd takes no more writes until somebody makes room.
async fn quota_used_up(cluster: &mut Cluster, load: &Load) {
    let etcd = cluster.etcd();
    let value = "x".repeat(100_000);
    let full = (0..1000).any(|number| etcd.ctl(&["put", &format!("/fill/{number}"), &value]).is_err());
    assert!(full, "the quota cannot be used up");
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
async fn disk_full(cluster: &mut Cluster) {
    cluster.disk.as_ref().expect("a small disk").fill().unwrap();
    sleep(LONG).await;
    cluster.disk.as_ref().expect("a small disk").free().unwrap();
    if let Some(etcd) = &mut cluster.etcd
        && !etcd.member(0).running()
    {
        etcd.restart(0).unwrap();
    }
}

async fn all_restarted(cluster: &mut Cluster, load: &Load, members: usize) -> Gap {
    let moment = load.history.now();
    cluster.nodes().iter_mut().for_each(super::node::Node::kill);
    for member in 0..members {
        cluster.etcd().member(member).kill().unwrap();
    }
    // Together, as after a power cut: one alone waits for the others.
    if let Some(etcd) = &mut cluster.etcd {
        etcd.restart_all().unwrap();
    }
    cluster.nodes().iter_mut().for_each(super::node::Node::start);
    Gap { took: load.next_change_after(moment).await, election: members > 0 }
}

async fn rolling_restart(cluster: &mut Cluster, load: &Load, members: usize) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for number in 0..usize::from(NODES) {
        let before = cluster.election();
        let moment = load.history.now();
        tokio::task::block_in_place(|| {
            let mut nodes = cluster.nodes();
            nodes[number].stop();
            nodes[number].start();
        });
        if number < members {
            cluster.etcd().restart(number).unwrap();
        }
        let took = load.next_change_after(moment).await;
        gaps.push(Gap { took, election: cluster.election() != before });
        sleep(Duration::from_secs(1)).await;
        cluster.leader().await;
    }
    gaps
}

async fn empty_disk(cluster: &mut Cluster, members: usize) {
    let number = cluster.leader().await;
    cluster.nodes()[number].kill();
    cluster.nodes()[number].lose_disk();
    if members > 1 {
        cluster.etcd().replace(number).unwrap();
    }
    cluster.nodes()[number].start();
    sleep(Duration::from_secs(2)).await;
}
