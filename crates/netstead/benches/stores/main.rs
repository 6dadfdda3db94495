#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unchecked_time_subtraction,
    reason = "a bench may end badly"
)]
//! `cargo xtask bench stores`: durable claims on each store, beside what the engine below does by itself.
//!
//! Of each engine three figures are taken in turns, so that a busy moment hits all of them: its own commits one after
//! the other, claims of one client, claims of 64. What a change is measured by is the last to the first.

mod engines;
#[path = "../shared/report.rs"]
mod report;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use engines::{ENGINES, Engine};
use netstead_ledger::{Caller, Command, Ledger, Options};
use netstead_model::{ClaimRequest, Clock as _, Family, Ident, Key, PoolSpec, SystemClock};
use netstead_store::{Commit, Condition, Store};
use report::{Report, median};

const SLICE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(30);
const ROUNDS: usize = 3;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let mut json: Option<PathBuf> = None;
    let mut dir = std::env::temp_dir();
    let mut only: Option<String> = None;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = arguments.next().map(PathBuf::from),
            "--dir" => dir = arguments.next().map_or(dir, PathBuf::from),
            "--only" => only = arguments.next(),
            other => {
                eprintln!(
                    "error: `{other}` is not known\nhint: --json FILE writes the figures, --dir DIR says on which disk, \
                     --only PART measures that alone"
                );
                return ExitCode::FAILURE;
            }
        }
    }
    let names: Vec<&str> = ENGINES.iter().map(|engine| engine.name()).collect();
    if let Some(name) = only.as_ref().filter(|name| !names.contains(&name.as_str())) {
        eprintln!("error: `{name}` is no store\nhint: `--only` takes one of {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    let dir = match tempfile::Builder::new().prefix("netstead-bench").tempdir_in(&dir) {
        Ok(dir) => dir,
        Err(error) => {
            eprintln!("error: no directory can be made in {}: {error}", dir.display());
            return ExitCode::FAILURE;
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let mut report = Report::default();
    for engine in ENGINES {
        if only.as_deref().is_none_or(|name| name == engine.name()) {
            runtime.block_on(measure(&mut report, dir.path(), *engine));
        }
    }
    report.finish(json.as_deref())
}

async fn measure(report: &mut Report, dir: &Path, engine: Engine) {
    let name = engine.name();
    let (mut raw, mut one, mut many) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let below = engine.start(&dir.join(format!("{name}-{round}")));
        raw.push(commits_per_second(&*below.open("raw").await).await);
        one.push(claims_per_second(below.open("one").await, 1).await);
        many.push(claims_per_second(below.open("many").await, 64).await);
        below.end().await;
    }
    let (raw, one, many) = (median(raw), median(one), median(many));
    report.note(format!("{name}, its own commits, one after the other"), raw, "/s");
    report.note(format!("{name}, 1 client"), one, "claims/s");
    report.note(format!("{name}, 64 clients"), many, "claims/s");
    let ratio = many / raw;
    report.judge(format!("{name}, 64 clients to its own commits"), ratio, "x", "at least 10", ratio >= 10.0);
}

/// As a claim writes: a few keys under a condition, one commit after the other.
async fn commits_per_second(store: &dyn Store) -> f64 {
    store.lead().await.expect("the lead");
    let clock = SystemClock;
    let (start, mut count, mut head) = (clock.monotonic(), 0_u32, None);
    while clock.monotonic() - start < SLICE {
        let condition = match head {
            None => Condition::Absent(b"head".to_vec()),
            Some(version) => Condition::Version(b"head".to_vec(), version),
        };
        let mut commit = Commit::new().when(condition).put("head", count.to_string());
        for part in ["claim", "address", "event"] {
            commit = commit.put(format!("{part}/{count}"), vec![7; 100]);
        }
        head = Some(store.commit(commit).await.expect("a commit").version);
        count += 1;
    }
    let rate = f64::from(count) / (clock.monotonic() - start).as_secs_f64();
    store.close().await;
    rate
}

async fn claims_per_second(store: Arc<dyn Store>, clients: u32) -> f64 {
    let ledger =
        Ledger::open(store.clone(), SystemClock::shared(), Options::default()).await.expect("a ledger");
    let pool: Ident = "big".parse().expect("a name");
    let mut spec = PoolSpec::new(pool.clone(), Family::Ipv4);
    spec.ranges = vec!["10.0.0.0/8".parse().expect("a range")];
    submit(&ledger, Command::CreatePool(Box::new(spec))).await;
    let clock = SystemClock;
    let start = clock.monotonic();
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let (ledger, pool) = (ledger.clone(), pool.clone());
            tokio::spawn(async move {
                let mut count = 0_u32;
                while SystemClock.monotonic() - start < SLICE {
                    let key: Key = format!("client-{client}-{count}").parse().expect("a key");
                    submit(&ledger, Command::Claim(Box::new(ClaimRequest::any(pool.clone(), key)))).await;
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut count = 0;
    for task in tasks {
        count += task.await.expect("a client");
    }
    let rate = f64::from(count) / (clock.monotonic() - start).as_secs_f64();
    ledger.close().await;
    store.close().await;
    rate
}

async fn submit(ledger: &Ledger, command: Command) {
    ledger.submit(Caller::new("bench"), command, PATIENCE).await.expect("an answer");
}
