//! Faults, and their times.

mod answers;
mod disks;
mod leaders;
mod restarts;

use std::{fmt, time::Duration};

use super::{
    Backing, Cluster,
    clients::Load,
    dns_servers::DnsServers,
    report::{Figures, Gap},
};

/// Longer than the lease of a leader, and than its successor needs.
const LONG: Duration = Duration::from_secs(5);

/// A time of day that is wrong, as faketime writes it.
pub(crate) const AHEAD: Option<&str> = Some("+3600s");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL; it comes back.
    LeaderKilled,
    /// SIGSTOP for longer than its lease; as it wakes, it is asked for what it may still believe.
    LeaderStopped,
    /// It reaches only its clients.
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
    /// Makes it happen at about the same share of the operations however many there are, and sees that it did; what was
    /// measured each time.
    pub(crate) async fn happen(
        self,
        backing: Backing,
        cluster: &mut Cluster,
        load: &Load,
        names: Option<&DnsServers>,
        total: usize,
    ) -> Figures {
        load.reach(total / 5).await;
        let usually = match names {
            Some(names) => names.usual(cluster).await,
            None => Duration::ZERO,
        };
        // A run at length sees it three times.
        let rounds = if total > 5000 { 3 } else { 1 };
        let mut figures = Figures::default();
        for round in 1..=rounds {
            figures.gaps.extend(self.happen_once(backing, cluster, load, total).await);
            if let Some(names) = names {
                figures.powerdns.push(names.afterwards(cluster, round, usually).await);
            }
            load.reach(total / 5 + round * total / 5).await;
        }
        if self == Self::WrongClock {
            // No DNS server takes what is signed an hour off, so the clock is set right before names are judged.
            cluster.nodes().iter_mut().for_each(|node| node.set_clock(None));
            restarts::one_by_one(cluster, load, 0).await;
        }
        figures
    }

    async fn happen_once(
        self,
        backing: Backing,
        cluster: &mut Cluster,
        load: &Load,
        total: usize,
    ) -> Vec<Gap> {
        let members = backing.members();
        if backing == Backing::Local {
            return self.happen_to_one(cluster, load, total).await;
        }
        match self {
            Self::LeaderKilled => vec![leaders::killed(cluster, load).await],
            Self::LeaderStopped => vec![leaders::stopped(cluster, load).await],
            Self::LeaderCutOff => vec![leaders::cut_off(cluster, load).await],
            Self::FollowerCutOff => vec![leaders::follower_cut_off(cluster, load).await],
            Self::HeardOneWay => leaders::heard_one_way(cluster, load).await,
            Self::WrongClock => vec![leaders::followed_by_another_clock(cluster, load).await],
            Self::AllRestarted => vec![restarts::all(cluster, load, members).await],
            Self::RollingRestart => restarts::one_by_one(cluster, load, members).await,
            Self::AnswersLost => {
                match backing {
                    Backing::Etcd { .. } => answers::on_the_way_lost(cluster, load, total).await,
                    _ => answers::between_nodes_lost(cluster, load).await,
                }
                Vec::new()
            }
            Self::DiskFull => {
                match backing {
                    Backing::Etcd { members: 1 } => disks::quota_used_up(cluster, load).await,
                    Backing::Etcd { .. } => disks::full_below_a_member(cluster).await,
                    _ => disks::full_below_a_node(cluster).await,
                }
                Vec::new()
            }
            Self::EmptyDisk => {
                disks::lost(cluster, backing).await;
                Vec::new()
            }
        }
    }

    /// On the only node, which has no other that could go on.
    async fn happen_to_one(self, cluster: &mut Cluster, load: &Load, total: usize) -> Vec<Gap> {
        match self {
            Self::LeaderKilled => vec![leaders::only_one_killed(cluster, load, None).await],
            Self::LeaderStopped => vec![leaders::only_one_stopped(cluster, load).await],
            Self::WrongClock => {
                let ahead = cluster.nodes()[0].clock().is_some();
                let other = if ahead { None } else { AHEAD };
                vec![leaders::only_one_killed(cluster, load, other).await]
            }
            Self::AllRestarted => vec![restarts::all(cluster, load, 0).await],
            Self::AnswersLost => {
                answers::on_the_way_lost(cluster, load, total).await;
                Vec::new()
            }
            Self::DiskFull => {
                disks::full_below_a_node(cluster).await;
                Vec::new()
            }
            _ => panic!("{self} does not happen to one node alone"),
        }
    }
}
