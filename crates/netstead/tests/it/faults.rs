//! Sixteen clients work on three nodes while something goes wrong. Afterwards all that they saw is judged: it must be
//! what one ledger would have said that never failed.
//!
//! `cargo xtask faults` runs every fault on every store at length and prints a table; here each runs for some seconds.

mod clients;
mod cluster;
mod names;
mod node;
mod observer;
mod report;
mod runs;
mod scripts;

use self::{
    cluster::{Backing, Cluster},
    runs::{run, run_with_names},
    scripts::Fault,
};

macro_rules! fault {
    (at length: $run:ident $backing:ident, $name:ident, $fault:ident) => {
        fault!($run $backing, $name, $fault, ignore = "`cargo xtask faults` runs it");
    };
    ($run:ident $backing:ident, $name:ident, $fault:ident $(, $meta:meta)?) => {
        $(#[$meta])?
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $run($backing, Fault::$fault).await;
        }
    };
}

mod etcd_of_three {
    use super::*;

    const ETCD: Backing = Backing::Etcd { members: 3 };

    fault!(run ETCD, leader_killed, LeaderKilled);
    fault!(run ETCD, leader_stopped, LeaderStopped);
    fault!(run ETCD, leader_cut_off, LeaderCutOff);
    fault!(run ETCD, follower_cut_off, FollowerCutOff);
    fault!(run ETCD, heard_one_way, HeardOneWay);
    fault!(run ETCD, answers_lost, AnswersLost);
    fault!(run ETCD, disk_full, DiskFull);
    fault!(run ETCD, all_restarted, AllRestarted);
    fault!(run ETCD, rolling_restart, RollingRestart);
    fault!(run ETCD, empty_disk, EmptyDisk);
    fault!(run ETCD, wrong_clock, WrongClock);
}

/// What differs with one member is tried always, the rest at length only.
mod etcd_of_one {
    use super::*;

    const ETCD: Backing = Backing::Etcd { members: 1 };

    fault!(run ETCD, leader_stopped, LeaderStopped);
    fault!(run ETCD, disk_full, DiskFull);
    fault!(at length: run ETCD, leader_killed, LeaderKilled);
    fault!(at length: run ETCD, leader_cut_off, LeaderCutOff);
    fault!(at length: run ETCD, follower_cut_off, FollowerCutOff);
    fault!(at length: run ETCD, heard_one_way, HeardOneWay);
    fault!(at length: run ETCD, answers_lost, AnswersLost);
    fault!(at length: run ETCD, all_restarted, AllRestarted);
    fault!(at length: run ETCD, rolling_restart, RollingRestart);
    fault!(at length: run ETCD, empty_disk, EmptyDisk);
    fault!(at length: run ETCD, wrong_clock, WrongClock);
}

mod raft {
    use super::*;

    const RAFT: Backing = Backing::Raft;

    fault!(run RAFT, leader_killed, LeaderKilled);
    fault!(run RAFT, leader_stopped, LeaderStopped);
    fault!(run RAFT, leader_cut_off, LeaderCutOff);
    fault!(run RAFT, follower_cut_off, FollowerCutOff);
    fault!(run RAFT, heard_one_way, HeardOneWay);
    fault!(run RAFT, answers_lost, AnswersLost);
    fault!(run RAFT, disk_full, DiskFull);
    fault!(run RAFT, all_restarted, AllRestarted);
    fault!(run RAFT, rolling_restart, RollingRestart);
    fault!(run RAFT, empty_disk, EmptyDisk);
    fault!(run RAFT, wrong_clock, WrongClock);
}

/// Some of them always, all of them at length.
mod names_on_etcd {
    use super::*;

    const ETCD: Backing = Backing::Etcd { members: 3 };

    fault!(at length: run_with_names ETCD, leader_killed, LeaderKilled);
    fault!(run_with_names ETCD, leader_stopped, LeaderStopped);
    fault!(run_with_names ETCD, leader_cut_off, LeaderCutOff);
    fault!(at length: run_with_names ETCD, follower_cut_off, FollowerCutOff);
    fault!(at length: run_with_names ETCD, heard_one_way, HeardOneWay);
    fault!(at length: run_with_names ETCD, answers_lost, AnswersLost);
    fault!(at length: run_with_names ETCD, disk_full, DiskFull);
    fault!(at length: run_with_names ETCD, all_restarted, AllRestarted);
    fault!(at length: run_with_names ETCD, rolling_restart, RollingRestart);
    fault!(at length: run_with_names ETCD, empty_disk, EmptyDisk);
    fault!(at length: run_with_names ETCD, wrong_clock, WrongClock);
}

mod names_on_raft {
    use super::*;

    const RAFT: Backing = Backing::Raft;

    fault!(run_with_names RAFT, leader_killed, LeaderKilled);
    fault!(at length: run_with_names RAFT, leader_stopped, LeaderStopped);
    fault!(at length: run_with_names RAFT, leader_cut_off, LeaderCutOff);
    fault!(at length: run_with_names RAFT, follower_cut_off, FollowerCutOff);
    fault!(at length: run_with_names RAFT, heard_one_way, HeardOneWay);
    fault!(at length: run_with_names RAFT, answers_lost, AnswersLost);
    fault!(at length: run_with_names RAFT, disk_full, DiskFull);
    fault!(run_with_names RAFT, all_restarted, AllRestarted);
    fault!(at length: run_with_names RAFT, rolling_restart, RollingRestart);
    fault!(at length: run_with_names RAFT, empty_disk, EmptyDisk);
    fault!(at length: run_with_names RAFT, wrong_clock, WrongClock);
}
