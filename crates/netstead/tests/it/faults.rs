//! Sixteen clients work on three nodes while something goes wrong. Afterwards all that they saw is judged: it must be
//! what one ledger would have said that never failed.
//!
//! `cargo xtask faults` runs every fault on every store at length and prints a table; here each runs for some seconds.

mod clients;
mod cluster;
mod names;
mod node;
mod report;
mod runs;
mod scripts;

use self::{
    cluster::{Backing, Cluster},
    runs::run,
    scripts::Fault,
};

macro_rules! fault {
    (at length: $backing:ident, $name:ident, $fault:ident) => {
        fault!($backing, $name, $fault, ignore = "`cargo xtask faults` runs it");
    };
    ($backing:ident, $name:ident, $fault:ident $(, $meta:meta)?) => {
        $(#[$meta])?
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            run($backing, Fault::$fault).await;
        }
    };
}

mod etcd_of_three {
    use super::*;

    const ETCD: Backing = Backing::Etcd { members: 3 };

    fault!(ETCD, leader_killed, LeaderKilled);
    fault!(ETCD, leader_stopped, LeaderStopped);
    fault!(ETCD, leader_cut_off, LeaderCutOff);
    fault!(ETCD, follower_cut_off, FollowerCutOff);
    fault!(ETCD, heard_one_way, HeardOneWay);
    fault!(ETCD, answers_lost, AnswersLost);
    fault!(ETCD, disk_full, DiskFull);
    fault!(ETCD, all_restarted, AllRestarted);
    fault!(ETCD, rolling_restart, RollingRestart);
    fault!(ETCD, empty_disk, EmptyDisk);
    fault!(ETCD, wrong_clock, WrongClock);
}

/// What differs with one member is tried always, the rest at length only.
mod etcd_of_one {
    use super::*;

    const ETCD: Backing = Backing::Etcd { members: 1 };

    fault!(ETCD, leader_stopped, LeaderStopped);
    fault!(ETCD, disk_full, DiskFull);
    fault!(at length: ETCD, leader_killed, LeaderKilled);
    fault!(at length: ETCD, leader_cut_off, LeaderCutOff);
    fault!(at length: ETCD, follower_cut_off, FollowerCutOff);
    fault!(at length: ETCD, heard_one_way, HeardOneWay);
    fault!(at length: ETCD, answers_lost, AnswersLost);
    fault!(at length: ETCD, all_restarted, AllRestarted);
    fault!(at length: ETCD, rolling_restart, RollingRestart);
    fault!(at length: ETCD, empty_disk, EmptyDisk);
    fault!(at length: ETCD, wrong_clock, WrongClock);
}

mod raft {
    use super::*;

    const RAFT: Backing = Backing::Raft;

    fault!(RAFT, leader_killed, LeaderKilled);
    fault!(RAFT, leader_stopped, LeaderStopped);
    fault!(RAFT, leader_cut_off, LeaderCutOff);
    fault!(RAFT, follower_cut_off, FollowerCutOff);
    fault!(RAFT, heard_one_way, HeardOneWay);
    fault!(RAFT, answers_lost, AnswersLost);
    fault!(RAFT, disk_full, DiskFull);
    fault!(RAFT, all_restarted, AllRestarted);
    fault!(RAFT, rolling_restart, RollingRestart);
    fault!(RAFT, empty_disk, EmptyDisk);
    fault!(RAFT, wrong_clock, WrongClock);
}
