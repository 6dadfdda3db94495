#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a bench may end badly")]
//! `cargo xtask bench kubernetes`: how long after an Ingress is made its name is answered for, and what 5,000 of them cost.
//!
//! The real binary with its usual settings looks at a real API server. The time begins before the call that makes the object, and
//! ends with the first answer of the built-in nameserver. With `--peers` the real external-dns does the same work beside it.

#[allow(dead_code, reason = "other benches need more of it")]
#[path = "../docker/answer.rs"]
mod answer;
mod peers;
#[allow(dead_code, reason = "other benches need more of it")]
#[path = "../shared/process_figures.rs"]
mod process_figures;
#[allow(dead_code, reason = "other benches need more of it")]
#[path = "../shared/report.rs"]
mod report;

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use netstead_model::{Clock as _, SystemClock};
use netstead_testkit::{KubeApiServer, Process, free_port};

use self::{answer::Waiter, process_figures::settled_memory, report::Report};

const SOON: Duration = Duration::from_mins(1);
/// Ingresses that are there before anything is measured.
const PRESENT: usize = 5000;
/// Ingresses that are made one after another.
const ALONE: usize = 60;
const NAMESPACE: &str = "bench";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/bench/ingresses";
/// The most that a name may take at the median, in milliseconds.
const TARGET: f64 = 300.0;
/// The most that all objects may cost above an idle server, in megabytes.
const MOST_MEMORY: f64 = 60.0;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (mut json, mut with_peers): (Option<PathBuf>, bool) = (None, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = arguments.next().map(PathBuf::from),
            "--peers" => with_peers = true,
            _ => {
                eprintln!(
                    "error: `{argument}` is not known\nhint: --json FILE writes the figures, --peers measures external-dns too"
                );
                return ExitCode::FAILURE;
            }
        }
    }
    let cluster = KubeApiServer::start(&[]);
    cluster.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {NAMESPACE} }}\n"));
    let dir = tempfile::tempdir().expect("a directory");
    let dns = free_port().expect("a port");
    let mut report = Report::default();
    let mut server = serve(dir.path(), &cluster, dns, "");
    // The first object shows that the cluster is watched; what the server takes then is what it takes when idle.
    make(&cluster, dns, "first");
    let idle = settled_memory(&mut server);
    report.note("memory with one Ingress", idle, "MB");

    let many: Vec<_> =
        (0..PRESENT).map(|number| (format!("n{number}"), format!("n{number}.bench.test"))).collect();
    let last = Waiter::begin(dns, &format!("n{}.bench.test", PRESENT - 1));
    let begun = now();
    cluster.put_ingresses(NAMESPACE, &many, "198.51.100.7");
    let put = now();
    report.note(
        format!("{PRESENT} Ingresses at once: until the last has its name"),
        last.answered() - begun,
        "ms",
    );
    report.note("of that, making them", put - begun, "ms");
    let full = settled_memory(&mut server);
    judge(&mut report, format!("memory of {PRESENT} Ingresses, by the watch"), full - idle);

    let mut times: Vec<f64> =
        (0..ALONE).map(|number| make(&cluster, dns, &format!("alone{number}"))).collect();
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    let p50 = at(50);
    report.judge("an Ingress among them, from its making: p50", p50, "ms", "at most 300", p50 <= TARGET);
    report.note("an Ingress among them, from its making: p99", at(99), "ms");
    report.note("an Ingress among them, from its making: slowest", at(100), "ms");

    server.terminate().expect("a signal");
    server.wait(SOON).expect("an end");
    let again = Waiter::begin(dns, "alone0.bench.test");
    let begun = now();
    let mut server = serve(dir.path(), &cluster, dns, "");
    report.note("a start with all of them, until a name is answered", again.answered() - begun, "ms");
    let listed = settled_memory(&mut server);
    judge(&mut report, format!("memory of {PRESENT} Ingresses, by lists in pages"), listed - idle);
    if with_peers {
        drop(server);
        peers::measure(&mut report, &cluster);
    }
    report.finish(json.as_deref())
}

fn judge(report: &mut Report, what: String, megabytes: f64) {
    report.judge(what, megabytes, "MB", "at most 60", megabytes <= MOST_MEMORY);
}

/// A server with its usual settings, and `more` in its file.
fn serve(dir: &Path, cluster: &KubeApiServer, dns: u16, more: &str) -> Process {
    let config = dir.join("netstead.toml");
    let text = format!(
        "[source.k8s]\ntype = \"kubernetes\"\nkubeconfig = \"{}\"\n{more}",
        cluster.kubeconfig().display()
    );
    std::fs::write(&config, text).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_netstead"));
    command.env("STATE_DIRECTORY", dir.join("state")).arg("run").arg("--config").arg(config);
    command.args(["--listen", "127.0.0.1:0", "--dns-listen", &format!("127.0.0.1:{dns}")]);
    let mut server = Process::start("netstead", &mut command).expect("a server");
    server.wait_for_line("is ready", SOON).expect("a server that is ready");
    server
}

/// Makes an Ingress and says how long after that it had its name, in milliseconds.
fn make(cluster: &KubeApiServer, dns: u16, name: &str) -> f64 {
    let host = format!("{name}.bench.test");
    let waiter = Waiter::begin(dns, &host);
    let body = serde_json::json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": name, "annotations": { "external-dns.alpha.kubernetes.io/target": "198.51.100.7" } },
        "spec": { "rules": [{ "host": host }] },
    });
    let begun = now();
    let (status, answer) = cluster.call("POST", INGRESSES, Some(&body));
    assert_eq!(status, 201, "{answer}");
    waiter.answered() - begun
}

#[expect(clippy::cast_precision_loss, reason = "a quarter of a microsecond is lost")]
fn now() -> f64 {
    SystemClock.wall().as_nanosecond() as f64 / 1e6
}
