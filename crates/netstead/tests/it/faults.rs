//! Sixteen clients work on three nodes, or on one with a store of its own, while something goes wrong. Afterwards all that they saw is judged: it must be
//! what one ledger would have said that never failed.
//!
//! `cargo xtask faults` runs every fault on every store at length and prints a table; here each runs for some seconds.

mod clients;
mod cluster;
mod dns_servers;
mod fault_effects;
mod injection;
mod node;
mod observer;
mod report;
mod runs;

use self::{
    cluster::{Backing, Cluster},
    injection::Fault,
    runs::{run, run_with_names},
};

/// All faults on one store, as tests of a module: some of them always, the others only at length.
macro_rules! faults {
    ($module:ident: $run:ident on $backing:expr; always: $($always:ident)*; at length: $($seldom:ident)*) => {
        mod $module {
            use super::*;

            $(faults!(@test $run, $backing, $always);)*
            $(faults!(@test $run, $backing, $seldom, ignore = "`cargo xtask faults` runs it");)*
        }
    };
    (@test $run:ident, $backing:expr, $name:ident $(, $meta:meta)?) => {
        $(#[$meta])?
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $run($backing, faults!(@fault $name)).await;
        }
    };
    (@fault leader_killed) => { Fault::LeaderKilled };
    (@fault leader_stopped) => { Fault::LeaderStopped };
    (@fault leader_cut_off) => { Fault::LeaderCutOff };
    (@fault follower_cut_off) => { Fault::FollowerCutOff };
    (@fault heard_one_way) => { Fault::HeardOneWay };
    (@fault answers_lost) => { Fault::AnswersLost };
    (@fault disk_full) => { Fault::DiskFull };
    (@fault all_restarted) => { Fault::AllRestarted };
    (@fault rolling_restart) => { Fault::RollingRestart };
    (@fault empty_disk) => { Fault::EmptyDisk };
    (@fault wrong_clock) => { Fault::WrongClock };
}

faults! {
    etcd_of_three: run on Backing::Etcd { members: 3 };
    always: leader_killed leader_stopped leader_cut_off follower_cut_off heard_one_way answers_lost disk_full
        all_restarted rolling_restart empty_disk wrong_clock;
    at length:
}

// What differs with one member is tried always.
faults! {
    etcd_of_one: run on Backing::Etcd { members: 1 };
    always: leader_stopped disk_full;
    at length: leader_killed leader_cut_off follower_cut_off heard_one_way answers_lost all_restarted
        rolling_restart empty_disk wrong_clock
}

faults! {
    raft: run on Backing::Raft { certificates: false };
    always: leader_killed leader_stopped leader_cut_off follower_cut_off heard_one_way answers_lost disk_full
        all_restarted rolling_restart empty_disk wrong_clock;
    at length:
}

// What nodes say to each other is as good over TLS: tried where connections break.
faults! {
    raft_with_certificates: run on Backing::Raft { certificates: true };
    always: leader_cut_off follower_cut_off heard_one_way;
    at length: leader_killed leader_stopped answers_lost disk_full all_restarted rolling_restart empty_disk wrong_clock
}

faults! {
    names_on_etcd: run_with_names on Backing::Etcd { members: 3 };
    always: leader_stopped leader_cut_off;
    at length: leader_killed follower_cut_off heard_one_way answers_lost disk_full all_restarted rolling_restart
        empty_disk wrong_clock
}

faults! {
    names_on_raft: run_with_names on Backing::Raft { certificates: false };
    always: leader_killed all_restarted;
    at length: leader_stopped leader_cut_off follower_cut_off heard_one_way answers_lost disk_full rolling_restart
        empty_disk wrong_clock
}

// What one node can suffer.
faults! {
    names_on_local: run_with_names on Backing::Local;
    always: leader_killed disk_full;
    at length: leader_stopped answers_lost all_restarted wrong_clock
}
