//! `cargo xtask faults`: sixteen clients, three nodes or one, and everything that can go wrong, at length.

use std::{fmt::Write as _, path::PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::{
    needs,
    shell::{cargo, root, run},
};

/// Run every fault on every store at length, and judge what the clients saw. Needs root.
///
/// Example: cargo xtask faults --store etcd --only killed --operations 50000
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only on this store.
    #[arg(long)]
    store: Option<Store>,
    /// Only the faults whose name has this in it, as the tests call them.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Only those where DNS servers are kept in line meanwhile.
    #[arg(long)]
    names: bool,
    /// How many operations each run has at least.
    #[arg(long, default_value_t = 20_000)]
    operations: usize,
    /// Where the figures go, one line of JSON per run [default: target/faults.jsonl].
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Install what is missing without asking.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Store {
    /// An etcd of one member, and one of three.
    Etcd,
    /// Three nodes with nothing else.
    Raft,
    /// One node with its store on its own disk, always with DNS servers.
    Local,
}

impl Options {
    /// The modules of the tests to be run.
    fn modules(&self) -> Vec<&'static str> {
        let etcd = (Some("faults::etcd_"), "faults::names_on_etcd");
        let raft = (Some("faults::raft"), "faults::names_on_raft");
        let local = (None, "faults::names_on_local");
        let backend = "cluster::branch_office";
        let stores = match self.store {
            Some(Store::Etcd) => vec![etcd],
            Some(Store::Raft) => vec![raft],
            Some(Store::Local) => vec![local],
            None => vec![etcd, raft, local],
        };
        let plain = |plain: Option<&'static str>| plain.filter(|_| !self.names);
        let mut modules: Vec<_> =
            stores.into_iter().flat_map(|(alone, names)| plain(alone).into_iter().chain([names])).collect();
        // It has faults of its own, on nodes that keep their store themselves.
        if !self.names && self.only.is_none() && !matches!(self.store, Some(Store::Etcd | Store::Local)) {
            modules.push(backend);
        }
        modules
    }
}

pub(crate) fn faults(options: &Options) -> Result<bool> {
    needs::provide(needs::FAULTS, options.yes)?;
    let file = match &options.json {
        Some(file) => std::path::absolute(file)?,
        None => root().join("target/faults.jsonl"),
    };
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    }
    let _ = std::fs::remove_file(&file);
    // One after the other: each of them has the machine to itself, so that what takes long is the fault.
    let mut tests = cargo(
        "test --release --package netstead --test it -- --include-ignored --test-threads 1 --nocapture",
    );
    tests.args(options.modules());
    // The harness takes several filters as "any of", so these leave out.
    for other in
        options.only.iter().flat_map(|only| FAULTS.iter().filter(move |fault| !fault.contains(&**only)))
    {
        tests.args(["--skip", other]);
    }
    tests
        .env("NETSTEAD_TEST_FULL", "1")
        .env("NETSTEAD_FAULT_OPERATIONS", options.operations.to_string())
        .env("NETSTEAD_FAULT_REPORT", &file);
    let passed = run(&mut tests)?;
    let lines = std::fs::read_to_string(&file).unwrap_or_default();
    print!("{}", table(&lines));
    Ok(passed)
}

/// As the tests are called.
const FAULTS: &[&str] = &[
    "leader_killed",
    "leader_stopped",
    "leader_cut_off",
    "follower_cut_off",
    "heard_one_way",
    "answers_lost",
    "disk_full",
    "all_restarted",
    "rolling_restart",
    "empty_disk",
    "wrong_clock",
];

/// In so many seconds another node should lead, where etcd's members need no election for it.
const TARGET: f64 = 3.0;

/// The lines of the file are of runs that were judged and found possible; a run that failed has no line and has said why.
fn table(lines: &str) -> String {
    let mut text = format!(
        "\n{:<22} {:<34} {:>10} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}\n",
        "store",
        "fault",
        "operations",
        "unknown",
        "not done",
        "failover",
        "& etcd's",
        "DNS",
        "& etcd's",
        "PowerDNS",
        "verdict"
    );
    for line in lines.lines() {
        let Ok(row) = serde_json::from_str::<Value>(line) else { continue };
        let word = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let count = |name: &str| row.get(name).and_then(Value::as_u64).unwrap_or_default();
        let seconds = |name: &str| row.get(name).and_then(Value::as_f64);
        let plain = |name: &str| seconds(name).map_or_else(|| "-".to_owned(), |took| format!("{took:.2} s"));
        let marked = |name: &str| {
            let mark = if seconds(name).is_some_and(|took| took > TARGET) { "*" } else { "" };
            format!("{mark}{}", plain(name))
        };
        let _ = writeln!(
            text,
            "{:<22} {:<34} {:>10} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7}",
            word("store"),
            word("fault"),
            count("operations"),
            count("unknown"),
            count("not_done"),
            marked("failover_seconds"),
            plain("failover_with_election_seconds"),
            marked("dns_seconds"),
            plain("dns_with_election_seconds"),
            plain("powerdns_seconds"),
            "holds"
        );
    }
    let _ = writeln!(
        text,
        "\nfailover: from the fault to the next change that is accepted. DNS: to the next one that BIND has. PowerDNS: from a\n\
         claim after the fault until its name is there. & etcd's: where etcd's members elected a leader meanwhile.\n\
         The longest of each is shown, with a * where it is over the target of {TARGET} s."
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Vec<String> {
        let row = text.lines().find(|line| line.starts_with("etcd of 3"));
        row.unwrap_or_default()
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn each_run_is_a_row() {
        let line = r#"{"store":"etcd of 3","fault":"leader killed","operations":20001,"unknown":12,"not_done":3,"failover_seconds":2.476}"#;
        let wanted =
            ["etcd of 3", "leader killed", "20001", "12", "3", "2.48 s", "-", "-", "-", "-", "holds"];
        assert_eq!(row(&table(line)), wanted);
    }

    #[test]
    fn what_dns_servers_had_to_wait_for_stands_beside_it_and_a_missed_target_shows() {
        let line = r#"{"store":"etcd of 3, with names","fault":"restarted one by one","operations":20001,"unknown":12,"not_done":3,"failover_seconds":3.2,"failover_with_election_seconds":4.5,"dns_seconds":2.9,"dns_with_election_seconds":5.0,"powerdns_seconds":0.31}"#;
        let wanted = [
            "etcd of 3, with names",
            "restarted one by one",
            "20001",
            "12",
            "3",
            "*3.20 s",
            "4.50 s",
            "2.90 s",
            "5.00 s",
            "0.31 s",
            "holds",
        ];
        assert_eq!(row(&table(line)), wanted);
    }
}
