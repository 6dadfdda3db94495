//! Start-up time and memory with a million claims.

use std::{path::Path, process::ExitCode, time::Duration};

use netstead_client::{Client, Options as ClientOptions};
use netstead_ledger::{Caller, Command};
use netstead_model::{ClaimRequest, Clock as _, SystemClock};

use crate::{durable, report::Report};

const CLAIMS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_mins(3);

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
        report.judge("start-up with a million claims", f64::NAN, "s", "under 5", false);
        return;
    };
    report.judge("start-up with a million claims", *seconds, "s", "under 5", *seconds < 5.0);
    report.note("  until history answers too", *settled, "s");
    report.judge("memory with a million claims", *megabytes, "MB", "under 400", *megabytes < 400.0);
    runtime.block_on(serve(report, &dir));
}

/// The whole server on the same claims: it also looks at each of them as something that may have a name.
async fn serve(report: &mut Report, dir: &Path) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let listen = port.expect("a free port").to_string();
    let clock = SystemClock;
    let start = clock.monotonic();
    let mut server = std::process::Command::new(env!("CARGO_BIN_EXE_netstead"))
        .args(["run", "--listen", &listen, "--dns-listen", "127.0.0.1:0", "--data-dir"])
        .arg(dir)
        .env("XDG_STATE_HOME", dir.join("state"))
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("a server");
    let client = Client::new(&format!("http://{listen}"), None, ClientOptions::default()).expect("a client");
    while client.ready().await.is_err() && clock.monotonic() - start < PATIENCE {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    report.note(
        "netstead run with a million claims, until it is ready",
        seconds(clock.monotonic() - start),
        "s",
    );
    // Busy until it used less than a twentieth of a processor for two seconds.
    let mut used = ticks(server.id());
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = ticks(server.id());
        if now < used + 10 || clock.monotonic() - start > PATIENCE {
            break;
        }
        used = now;
    }
    let busy = seconds(clock.monotonic() - start) - 2.0;
    report.note("  until it has nothing left to do", busy, "s");
    report.note("  memory then", megabytes(server.id(), "VmRSS:"), "MB");
    report.note("  memory at most", megabytes(server.id(), "VmHWM:"), "MB");
    server.kill().expect("an end");
    server.wait().expect("an end");
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

/// Hundredths of a second of processor that a process has used.
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn megabytes(process: u32, what: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    let kilobytes: f64 = line
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or_default();
    kilobytes / 1024.0
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
                    let patience = Duration::from_mins(1);
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

/// The work of the child: opens the ledger as `run` would, and prints how long it took and how much memory it needs.
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
        println!("{} {} {}", seconds(opened), seconds(settled), megabytes(std::process::id(), "VmRSS:"));
        ledger.close().await;
        store.close().await;
    });
    ExitCode::SUCCESS
}
