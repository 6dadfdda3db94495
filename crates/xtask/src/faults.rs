//! `cargo xtask faults`: sixteen clients, three nodes, and everything that can go wrong, at length.

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
}

impl Options {
    /// The modules of the tests to be run.
    fn modules(&self) -> Vec<&'static str> {
        let etcd = ["faults::etcd_", "faults::names_on_etcd"];
        let raft = ["faults::raft", "faults::names_on_raft"];
        let stores = match self.store {
            Some(Store::Etcd) => vec![etcd],
            Some(Store::Raft) => vec![raft],
            None => vec![etcd, raft],
        };
        stores.into_iter().flat_map(|both| both.into_iter().skip(usize::from(self.names))).collect()
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

/// What is in the file was judged and found possible; a run that failed has no line and has said why.
fn table(lines: &str) -> String {
    let mut text = format!(
        "\n{:<22} {:<36} {:>10} {:>8} {:>8} {:>9} {:>9} {:>7}\n",
        "store", "fault", "operations", "unknown", "not done", "failover", "& etcd's", "verdict"
    );
    for line in lines.lines() {
        let Ok(row) = serde_json::from_str::<Value>(line) else { continue };
        let word = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let count = |name: &str| row.get(name).and_then(Value::as_u64).unwrap_or_default();
        let seconds = |name: &str| {
            let seconds = row.get(name).and_then(Value::as_f64);
            seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.2} s"))
        };
        let _ = writeln!(
            text,
            "{:<22} {:<36} {:>10} {:>8} {:>8} {:>9} {:>9} {:>7}",
            word("store"),
            word("fault"),
            count("operations"),
            count("unknown"),
            count("not_done"),
            seconds("failover_seconds"),
            seconds("failover_with_election_seconds"),
            "holds"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_is_a_row() {
        let line = r#"{"store":"etcd of 3","fault":"leader killed","operations":20001,"unknown":12,"not_done":3,"failover_seconds":2.476}"#;
        let text = table(line);
        let row: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(
            row,
            ["etcd", "of", "3", "leader", "killed", "20001", "12", "3", "2.48", "s", "-", "holds"]
        );
    }
}
