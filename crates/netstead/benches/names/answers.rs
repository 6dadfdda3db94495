//! The nameserver: queries per second beside Knot's with the same client, and how long one query takes while a plan is
//! carried out.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use netstead_engine::{Engine, ProviderSetup};
use netstead_model::{Clock as _, Content, DnsProvider as _, SystemClock};
use netstead_nameserver::{Builtin, NameServer, Options};
use netstead_plan::Digest;
use netstead_testkit::{Knot, TsigKey, has_command};
use tokio::{net::UdpSocket, time::timeout};

use crate::{
    engine_setup::{self, BenchSource, ZONE, workload},
    report::{Report, median},
};

const NAMES: u32 = 10_000;
const ROUNDS: usize = 3;

pub async fn measure(report: &mut Report, dir: &Path) {
    let store = engine_setup::open(&dir.join("answers")).await;
    let zone = ZONE.parse().expect("a name");
    let builtin = Builtin::new(store.clone(), SystemClock::shared(), vec![zone]);
    builtin.prepare().await.expect("a zone");
    let mut settings = engine_setup::settings();
    (settings.marks, settings.reverse) = (false, false);
    let source = BenchSource::new();
    let setup = ProviderSetup::new(settings, Arc::new(builtin), Digest::of(["bench"]));
    let engine = engine_setup::engine(&store, &source, setup).await;
    let options = Options { listen: vec!["127.0.0.1:0".parse().expect("an address")], ..Options::default() };
    let server =
        NameServer::start(store.clone(), SystemClock::shared(), options).await.expect("a nameserver");
    source.set_workloads((0..NAMES).map(workload).collect());
    engine_setup::apply(&engine).await;
    let at = server.local_addrs()[0];
    beside_knot(report, dir, at);
    while_applying(report, &engine, &source, at).await;
    engine.close().await;
    server.shutdown().await;
    store.close().await;
}

fn beside_knot(report: &mut Report, dir: &Path, at: SocketAddr) {
    if !has_command("dnsperf") {
        eprintln!("dnsperf is not installed: queries per second are not measured");
        return;
    }
    let (mut records, mut questions) = (String::new(), String::new());
    for number in 0..NAMES {
        let one = workload(number);
        let Content::Addresses(addresses) = &one.wishes[0].content else { continue };
        // Writing to a string cannot fail.
        let _ = writeln!(records, "{} 300 IN A {}", one.name, addresses[0]);
        let _ = writeln!(questions, "{}.{ZONE} A", one.name);
    }
    let file = dir.join("questions");
    std::fs::write(&file, questions).expect("room");
    let Some(knot) = Knot::with_records(&[ZONE], &TsigKey::default(), &records) else { return };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(queries_per_second(at, &file));
        theirs.push(queries_per_second(knot.address(), &file));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    report.note("Knot, 10 000 names", theirs, "queries/s");
    report.note("nameserver, 10 000 names", ours, "queries/s");
    report.note("  to Knot", ours / theirs, "x");
}

fn queries_per_second(at: SocketAddr, questions: &Path) -> f64 {
    let output = Command::new("dnsperf")
        .args(["-s", &at.ip().to_string(), "-p", &at.port().to_string(), "-l", "3", "-c", "8", "-q", "200"])
        .arg("-d")
        .arg(questions)
        .output()
        .expect("dnsperf");
    let text = String::from_utf8_lossy(&output.stdout);
    let value = |what: &str| text.lines().find_map(|line| line.trim().strip_prefix(what)).map(str::trim);
    assert!(value("Response codes:").is_some_and(|codes| codes.starts_with("NOERROR")), "{text}");
    value("Queries per second:").and_then(|rate| rate.parse().ok()).expect("dnsperf said how many")
}

async fn while_applying(report: &mut Report, engine: &Engine, source: &Arc<BenchSource>, at: SocketAddr) {
    let stop = Arc::new(AtomicBool::new(false));
    let asking = tokio::spawn(ask(at, stop.clone()));
    tokio::time::sleep(Duration::from_secs(2)).await;
    stop.store(true, Ordering::Relaxed);
    let idle = asking.await.expect("a client");
    stop.store(false, Ordering::Relaxed);
    let asking = tokio::spawn(ask(at, stop.clone()));
    source.set_workloads((0..2 * NAMES).map(workload).collect());
    let (_, took) = engine_setup::apply(engine).await;
    let owned: usize = engine.status().providers.iter().map(|provider| provider.owned).sum();
    assert_eq!(owned, usize::try_from(2 * NAMES).expect("small"));
    stop.store(true, Ordering::Relaxed);
    let busy = asking.await.expect("a client");
    report.note("10 000 new names into the nameserver", took.as_secs_f64(), "s");
    for (when, times) in [("quiet", &idle), ("while they are applied", &busy)] {
        report.note(format!("one query, {when}: half are within"), part(times, 50), "ms");
        report.note(format!("one query, {when}: 99 of 100 are within"), part(times, 99), "ms");
    }
    let late = busy.iter().filter(|time| **time >= TOO_LONG).count();
    report.judge(
        "queries without an answer meanwhile",
        f64::from(u32::try_from(late).unwrap_or(u32::MAX)),
        "",
        "0",
        late == 0,
    );
}

const TOO_LONG: Duration = Duration::from_secs(1);

/// Asks one question after the other, and says how long each took.
async fn ask(at: SocketAddr, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    socket.connect(at).await.expect("a socket");
    let mut times = Vec::new();
    for number in 0u16.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let question = question(number, &format!("host-{}.{ZONE}", u32::from(number) % NAMES));
        let start = SystemClock.monotonic();
        socket.send(&question).await.expect("a server");
        let answered = timeout(TOO_LONG, async {
            let mut answer = [0; 512];
            // Late answers to earlier questions are passed over.
            while socket.recv(&mut answer).await.is_ok() && answer[..2] != question[..2] {}
        });
        let took = if answered.await.is_ok() { SystemClock.monotonic() - start } else { TOO_LONG };
        times.push(took);
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    times.sort_unstable();
    times
}

/// A question for the A records of a name.
fn question(id: u16, name: &str) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        message.push(u8::try_from(label.len()).expect("a short label"));
        message.extend(label.bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    message
}

/// Milliseconds within which so many of a hundred are.
fn part(times: &[Duration], percent: usize) -> f64 {
    times.get(times.len() * percent / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}
