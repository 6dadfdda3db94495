#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a bench may end badly")]
//! `cargo xtask bench proxmox`: what a cluster of 5,000 guests on 20 nodes costs: calls, CPU and memory of looks without and with a
//! change, and whether agents that hang delay the others.
//!
//! The real binary looks at a cluster that only pretends, in a process of its own. A time begins before the change and ends with the
//! answer of the built-in nameserver.

mod cluster;
#[allow(dead_code, reason = "other benches need more of it")]
#[path = "../shared/process_figures.rs"]
mod process_figures;
#[allow(dead_code, reason = "other benches need more of it")]
#[path = "../shared/report.rs"]
mod report;
mod resolver;

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    path::PathBuf,
    process::{Command, ExitCode},
    time::Duration,
};

use netstead_testkit::{FakePve, Process, free_port};

use self::{
    cluster::{Cluster, FIRST, NODES, address, name},
    process_figures::{cpu, settled_memory},
    report::Report,
    resolver::Resolver,
};

const SOON: Duration = Duration::from_mins(3);
const GUESTS: u32 = 5000;
/// One in twenty.
const HUNG: u32 = GUESTS / 20;
/// Looks that are measured.
const LOOKS: u32 = 20;
/// Changes, one after another.
const CHANGES: u32 = 15;
/// Guests whose address changes without any other sign.
const SILENT: u32 = 200;
/// The most CPU of a look without a change, in milliseconds.
const MOST_CPU: f64 = 500.0;
/// The most memory of a guest, in kilobytes.
const MOST_MEMORY: f64 = 20.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let json = match &arguments[..] {
        [flag, rest @ ..] if flag == cluster::FLAG => return cluster::serve(rest),
        [flag, file] if flag == "--json" => Some(PathBuf::from(file)),
        [] => None,
        other => {
            eprintln!("error: {other:?} is not known\nhint: --json FILE writes the figures");
            return ExitCode::FAILURE;
        }
    };
    let mut report = Report::default();
    let small = Cluster::start(1, 0);
    let mut one = Server::start(&small, "1h");
    one.has_all(FIRST..=FIRST);
    let idle = settled_memory(&mut one.process);
    report.note("memory with one guest", idle, "MB");
    drop((one, small));
    quiet(&mut report, idle);
    let without = busy(&mut report, 0);
    let with = busy(&mut report, HUNG);
    // A look comes once a second, so that much is chance.
    let judge = |report: &mut Report, what: &str, with: f64, without: f64| {
        let text = format!("at most {:.0}", without * 1.1 + 1000.0);
        report.judge(what, with, "ms", &text, with <= without * 1.1 + 1000.0);
    };
    judge(&mut report, "with 5 % hung: until all others have their names", with.start, without.start);
    judge(&mut report, "with 5 % hung: an address that changed silently, p99", with.silent, without.silent);
    report.finish(json.as_deref())
}

/// Looks without a change, and with one.
fn quiet(report: &mut Report, idle: f64) {
    let mut cluster = Cluster::start(GUESTS, 0);
    // So that addresses are not read again meanwhile.
    let mut server = Server::start(&cluster, "1h");
    server.has_all(FIRST..(FIRST + GUESTS));
    let memory = settled_memory(&mut server.process);
    let each = (memory - idle) * 1000.0 / f64::from(GUESTS);
    report.judge("memory of a guest", each, "KB", "at most 20", each <= MOST_MEMORY);

    cluster.calls();
    let (mut looks, mut calls, mut most, begun) = (0, 0, 0, cpu(&server.process));
    while looks < LOOKS {
        std::thread::sleep(Duration::from_millis(500));
        let some = cluster.calls();
        (looks, calls, most) = (looks + some.looks, calls + some.all, most.max(some.most));
    }
    let each = (cpu(&server.process) - begun) / f64::from(looks);
    let of_each = f64::from(calls) / f64::from(looks);
    let text = format!("at most {}", 1 + NODES);
    report.judge("a look without a change: calls", of_each, "", &text, of_each <= f64::from(1 + NODES));
    report.judge("a look without a change: CPU", each, "ms", "at most 500", each <= MOST_CPU);

    let (mut times, mut after) = (Vec::new(), 0);
    for number in 0..CHANGES {
        let vmid = FIRST + 7 + number * 331;
        let new = Ipv4Addr::from(u32::from(address(vmid)) + (1 << 21));
        cluster.calls();
        cluster.restart(vmid, new);
        times.extend(server.resolver.wait([(full(vmid), new)].into(), SOON));
        after = after.max(cluster.calls().most);
    }
    let more = f64::from(after.saturating_sub(most));
    report.judge("a look with one change: calls more", more, "", "at most 4", more <= 4.0);
    times.sort_by(f64::total_cmp);
    report.note("a guest that restarted: its new address, p50", times[times.len() / 2], "ms");
    report.note("a guest that restarted: its new address, slowest", times[times.len() - 1], "ms");
}

struct Busy {
    /// Until every guest whose agent answers has its name.
    start: f64,
    /// The 99th of a hundred addresses that changed.
    silent: f64,
}

/// A start, and addresses that change without any other sign while all of them are read every ten seconds.
fn busy(report: &mut Report, hung: u32) -> Busy {
    let mut cluster = Cluster::start(GUESTS, hung);
    let mut server = Server::start(&cluster, "10s");
    let answers = |vmid: &u32| !cluster::hangs(*vmid, GUESTS, hung);
    let times = server.has_all((FIRST..FIRST + GUESTS).filter(answers));
    let start = times[times.len() - 1];
    let said = if hung == 0 { "without hung agents" } else { "with 5 % hung" };
    report.note(format!("{said}: a start, until the names are there"), start, "ms");
    let mut wanted = BTreeMap::new();
    for vmid in (FIRST..FIRST + GUESTS).step_by((GUESTS / SILENT) as usize).filter(answers) {
        let new = Ipv4Addr::from(u32::from(address(vmid)) + (1 << 21));
        cluster.readdress(vmid, new);
        wanted.insert(full(vmid), new);
    }
    let begun = cpu(&server.process);
    let times = server.resolver.wait(wanted, SOON);
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    report.note(format!("{said}: an address that changed silently, p50"), at(50), "ms");
    report.note(
        format!("{said}: CPU meanwhile, of one core"),
        (cpu(&server.process) - begun) / at(100) * 100.0,
        "%",
    );
    server.process.terminate().expect("a signal");
    Busy { start, silent: at(99) }
}

fn full(vmid: u32) -> String {
    format!("{}.bench.test", name(vmid))
}

/// A running server that looks once a second.
struct Server {
    process: Process,
    resolver: Resolver,
    _dir: tempfile::TempDir,
}

impl Server {
    fn start(cluster: &Cluster, address_interval: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let (config, dns) = (dir.path().join("netstead.toml"), free_port().expect("a port"));
        let (id, secret) = FakePve::TOKEN.rsplit_once('=').expect("a token");
        let text = format!(
            "[source.pve]\ntype = \"proxmox\"\nurl = \"{}\"\ntoken_id = \"{id}\"\ntoken_secret = \"{secret}\"\ninterval = \
             \"1s\"\naddress_interval = \"{address_interval}\"\n[domain.\"bench.test\"]\nnetworks = [\"10.64.0.0/10\"]\n",
            cluster.url
        );
        std::fs::write(&config, text).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_netstead"));
        command.env("STATE_DIRECTORY", dir.path().join("state")).arg("run").arg("--config").arg(config);
        command.args(["--listen", "127.0.0.1:0", "--dns-listen", &format!("127.0.0.1:{dns}")]);
        let mut process = Process::start("netstead", &mut command).expect("a server");
        process.wait_for_line("is ready", SOON).expect("a server that is ready");
        Self { process, resolver: Resolver::new(dns), _dir: dir }
    }

    /// Waits until all of these guests have their first address.
    fn has_all(&mut self, guests: impl Iterator<Item = u32>) -> Vec<f64> {
        self.resolver.wait(guests.map(|vmid| (full(vmid), address(vmid))).collect(), SOON)
    }
}
