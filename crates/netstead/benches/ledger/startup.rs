//! Start-up time and memory with a million claims.

use std::{path::Path, process::ExitCode};

use netstead_ledger::{Caller, Command};
use netstead_model::{ClaimRequest, Clock as _, SystemClock};

use crate::{durable, report::Report};

const CLAIMS: u64 = 1_000_000;

pub fn measure(report: &mut Report, dir: &Path) {
    let dir = dir.join("million");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let clock = SystemClock;
    let start = clock.monotonic();
    runtime.block_on(fill(&dir));
    report.note("a million claims in bulks of 64, 8 clients", (clock.monotonic() - start).as_secs_f64(), "s");
    let itself = std::env::current_exe().expect("a path");
    let output = std::process::Command::new(itself).arg("--open").arg(&dir).output().expect("a child");
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [seconds, settled, megabytes] = figures.as_slice() else {
        eprintln!("error: the child said {text:?} {}", String::from_utf8_lossy(&output.stderr));
        return;
    };
    report.judge("start-up with a million claims", *seconds, "s", "under 5", *seconds < 5.0);
    report.note("  until history answers too", *settled, "s");
    report.judge("memory with a million claims", *megabytes, "MB", "under 400", *megabytes < 400.0);
}

async fn fill(dir: &Path) {
    let (ledger, store) = durable::open(dir).await;
    let pool = durable::make_pool(&ledger, "million", "10.0.0.0/8").await;
    let tasks: Vec<_> = (0..8u64)
        .map(|client| {
            let (ledger, pool) = (ledger.clone(), pool.clone());
            tokio::spawn(async move {
                for bulk in 0..CLAIMS / 8 / 64 {
                    let entry = |number| {
                        let key = format!("machine-{client}-{}", bulk * 64 + number).parse().expect("a key");
                        Command::Claim(Box::new(ClaimRequest::any(pool.clone(), key)))
                    };
                    let command = Command::Bulk((0..64).map(entry).collect());
                    let patience = std::time::Duration::from_mins(1);
                    ledger.submit(Caller::new("bench"), command, patience).await.expect("addresses");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a client");
    }
    ledger.close().await;
    store.close().await;
}

/// What the child does: opens the ledger as `run` would, and says how long it took and what it weighs.
pub fn open(dir: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let clock = SystemClock;
        let start = clock.monotonic();
        let (ledger, store) = durable::open(Path::new(dir)).await;
        let opened = clock.monotonic() - start;
        let query = netstead_ledger::EventQuery { limit: 1, ..Default::default() };
        ledger.events(&query).await.expect("history");
        let settled = clock.monotonic() - start;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kilobytes: f64 = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.split_whitespace().next())
            .and_then(|number| number.parse().ok())
            .unwrap_or_default();
        println!("{} {} {}", opened.as_secs_f64(), settled.as_secs_f64(), kilobytes / 1024.0);
        ledger.close().await;
        store.close().await;
    });
    ExitCode::SUCCESS
}
