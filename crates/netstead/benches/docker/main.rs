#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a bench may end badly")]
//! `cargo xtask bench docker`: how long after Docker tells of a container's start its name is answered for.
//!
//! The real binary with its usual settings looks at a real Docker. Docker's own time of the event and the time of the
//! first answer are of one clock.

mod answer;
mod events;
#[allow(dead_code, reason = "other benches need more of it")]
#[path = "../shared/report.rs"]
mod report;

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use netstead_testkit::{Dockerd, Process, free_port};

use self::{answer::Waiter, events::Events, report::Report};

const SOON: Duration = Duration::from_mins(1);
const ALONE: usize = 40;
const TOGETHER: usize = 20;
/// The time that a name may take at the median.
const TARGET: f64 = 250.0;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (mut json, mut only): (Option<PathBuf>, Option<String>) = (None, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = arguments.next().map(PathBuf::from),
            "--only" => only = arguments.next(),
            other => {
                eprintln!(
                    "error: `{other}` is not known\nhint: --json FILE writes the figures, --only alone|together"
                );
                return ExitCode::FAILURE;
            }
        }
    }
    let Some(docker) = Dockerd::start() else { return ExitCode::FAILURE };
    let dir = tempfile::tempdir().expect("a directory");
    let dns = free_port().expect("a port");
    let _server = serve(dir.path(), &docker, dns);
    let events = Events::follow(&docker);
    let wanted = |part: &str| only.as_ref().is_none_or(|only| only == part);
    let mut report = Report::default();
    if wanted("alone") {
        let times = (0..ALONE).flat_map(|number| start(&docker, &events, dns, &[format!("alone{number}")]));
        judge(&mut report, "one container", times.collect());
    }
    if wanted("together") {
        let names: Vec<String> = (0..TOGETHER).map(|number| format!("together{number}")).collect();
        judge(&mut report, "each of 20 started together", start(&docker, &events, dns, &names));
    }
    report.finish(json.as_deref())
}

/// A server with its usual settings; only where names point is said, since there is no network around.
fn serve(dir: &Path, docker: &Dockerd, dns: u16) -> Process {
    let config = dir.join("netstead.toml");
    let text = format!("[source.docker]\nhost = \"{}\"\ntarget = \"198.51.100.7\"\n", docker.host());
    std::fs::write(&config, text).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_netstead"));
    command.env("STATE_DIRECTORY", dir.join("state")).arg("run").arg("--config").arg(config);
    command.args(["--listen", "127.0.0.1:0", "--dns-listen", &format!("127.0.0.1:{dns}")]);
    let mut server = Process::start("netstead", &mut command).expect("a server");
    server.wait_for_line("is ready", SOON).expect("a server that is ready");
    server
}

/// Starts these containers and says how long after its start each had its name, in milliseconds.
fn start(docker: &Dockerd, events: &Events, dns: u16, names: &[String]) -> Vec<f64> {
    let host = |name: &str| format!("{name}.bench.test");
    let waiters: Vec<Waiter> = names.iter().map(|name| Waiter::begin(dns, &host(name))).collect();
    for name in names {
        let label = format!("netstead.hostname={}", host(name));
        docker.docker(&["create", "--name", name, "--label", &label, "tiny:1"]);
    }
    let words: Vec<&str> = ["start"].into_iter().chain(names.iter().map(String::as_str)).collect();
    docker.docker(&words);
    let times = waiters.into_iter().zip(names).map(|(waiter, name)| waiter.answered() - events.started(name));
    let times = times.collect();
    let words: Vec<&str> = ["rm", "-f"].into_iter().chain(names.iter().map(String::as_str)).collect();
    docker.docker(&words);
    times
}

fn judge(report: &mut Report, what: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at =
        |part: usize| times.get((times.len() * part / 100).min(times.len() - 1)).copied().unwrap_or_default();
    let p50 = at(50);
    report.judge(format!("{what}, start to answer: p50"), p50, "ms", "under 250", p50 < TARGET);
    report.note(format!("{what}, start to answer: p95"), at(95), "ms");
    report.note(format!("{what}, start to answer: slowest"), at(100), "ms");
}
