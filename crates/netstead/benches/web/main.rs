#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a bench may end badly")]
//! `cargo xtask bench web`: how long each page of the web page takes on a server with many claims and records, and how
//! large it is.

#[path = "../shared/report.rs"]
mod report;

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use netstead_model::{Clock as _, SystemClock};
use netstead_testkit::{Process, free_port};
use report::{Report, median};
use reqwest::{Client, header::HeaderMap, redirect::Policy};
use serde_json::{Value, json};

/// How often each page is asked for.
const ROUNDS: usize = 100;
/// Claims of one request.
const AT_ONCE: usize = 4096;
/// Targets of each page.
const MOST_MILLISECONDS: f64 = 300.0;
const MOST_KILOBYTES: f64 = 200.0;
const PATIENCE: Duration = Duration::from_mins(10);

const PAGES: [&str; 24] = [
    "/",
    "/addresses",
    "/addresses?find=%2F27",
    "/pools/full",
    "/pools/full?pick=10.16.99.7",
    "/pools/huge",
    "/pools/huge?at=10.64.0.0%2F10",
    "/addresses/10.16.7.9",
    "/names",
    "/names?text=host-77777",
    "/names?text=no-such-name",
    "/names/host-500.bench.test",
    "/workloads",
    "/workloads?text=host-4242",
    "/plan",
    "/drift",
    "/servers",
    "/history",
    "/history?of=names",
    "/history?by=nobody",
    "/search?q=host-4242",
    "/access",
    "/doctor",
    "/cluster",
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (mut json, mut claims, mut records) = (None, 1_000_000, 100_000);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match argument.as_str() {
            "--json" => json = Some(PathBuf::from(value)),
            "--claims" => claims = value.parse().unwrap_or(claims),
            "--records" => records = value.parse().unwrap_or(records),
            other => {
                eprintln!(
                    "error: `{other}` is not known\nhint: --json FILE writes the figures, --claims and --records say how many"
                );
                return ExitCode::FAILURE;
            }
        }
    }
    let mut report = Report::default();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure(&mut report, claims, records));
    report.finish(json.as_deref())
}

/// A server on a directory of its own.
struct Server {
    _home: tempfile::TempDir,
    _process: Process,
    url: String,
    token: String,
    http: Client,
}

impl Server {
    fn start(records: usize) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let mut hosts = String::new();
        for number in 0..records {
            let [_, a, b, c] = u32::try_from(number).unwrap_or_default().to_be_bytes();
            let _ = writeln!(hosts, "172.{}.{b}.{c} host-{number}.bench.test", 16 + u16::from(a));
        }
        std::fs::write(home.path().join("hosts"), hosts).expect("a hosts file");
        let config = "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n\
                      [dns.own]\ntype = \"builtin\"\ndomains = [\"bench.test\"]\n";
        std::fs::write(home.path().join("netstead.toml"), config).expect("a configuration");
        let (port, dns) = (free_port().expect("a port"), free_port().expect("a port"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_netstead"));
        command
            .current_dir(home.path())
            .env("HOME", home.path())
            .env("XDG_STATE_HOME", home.path().join("state"))
            .env("DOCKER_HOST", "unix:///nonexistent/docker.sock")
            .args(["run", "--config", "netstead.toml", "--data-dir", "data"])
            .args(["--listen", &format!("127.0.0.1:{port}"), "--dns-listen", &format!("127.0.0.1:{dns}")]);
        let mut process = Process::start("netstead", &mut command).expect("a server");
        process.wait_for_line("is ready", PATIENCE).expect("a server that is ready");
        let url = format!("http://127.0.0.1:{port}");
        let http = Client::builder().tls_certs_only([]).redirect(Policy::none()).timeout(PATIENCE);
        let http = http.build().expect("a client");
        Self { token: token(home.path(), &url), _home: home, _process: process, url, http }
    }

    async fn put(&self, path: &str, body: &Value) {
        let request = self.http.put(format!("{}/api/v1{path}", self.url)).bearer_auth(&self.token).json(body);
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap_or_default());
    }

    async fn claim(&self, pool: &str, count: usize) {
        for from in (0..count).step_by(AT_ONCE) {
            let entry = |number: usize| json!({"claim": {"key": format!("{pool}-{number}"), "any": [pool]}});
            let entries: Vec<Value> = (from..(from + AT_ONCE).min(count)).map(entry).collect();
            let request = self.http.post(format!("{}/api/v1/bulk", self.url)).bearer_auth(&self.token);
            let answer = request.json(&json!({ "entries": entries })).send().await.expect("an answer");
            assert!(answer.status().is_success(), "{}", answer.text().await.unwrap_or_default());
        }
    }

    /// The cookie of a session.
    async fn log_in(&self) -> String {
        let request = self.http.post(format!("{}/login", self.url)).header("origin", &self.url);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let answer = request.body(format!("token={}", self.token)).send().await.expect("an answer");
        session(answer.headers()).expect("a session")
    }
}

fn session(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all("set-cookie").iter().filter_map(|cookie| cookie.to_str().ok());
    let session =
        cookies.filter_map(|cookie| cookie.split(';').next()).find(|cookie| cookie.contains("session"));
    session.map(str::to_owned)
}

/// The token that the server left for the command line.
fn token(home: &Path, url: &str) -> String {
    let text = std::fs::read_to_string(home.join("state/netstead/credentials.json")).expect("credentials");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    file["servers"][url]["token"].as_str().expect("a token").to_owned()
}

async fn measure(report: &mut Report, claims: usize, records: usize) {
    let server = Server::start(records);
    let full = claims.min(65_534);
    server.put("/pools/full", &json!({"network": "10.16.0.0/16"})).await;
    server.put("/pools/huge", &json!({"network": "10.64.0.0/10", "domain": "huge.test"})).await;
    server.claim("full", full).await;
    server.claim("huge", claims - full).await;
    let cookie = server.log_in().await;
    let page = async |path: &str| {
        let begin = SystemClock.monotonic();
        let request = server.http.get(format!("{}{path}", server.url)).header("cookie", &cookie);
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let size = answer.bytes().await.expect("a page").len();
        (status, size, SystemClock.monotonic().saturating_sub(begin).as_secs_f64() * 1000.0)
    };
    // All records have to be there.
    let last = format!("/names?text=host-{}", records.saturating_sub(1));
    let mut there = false;
    for _ in 0..600 {
        let request = server.http.get(format!("{}{last}", server.url)).header("cookie", &cookie);
        let text = request.send().await.expect("an answer").text().await.unwrap_or_default();
        there = text.contains("as wanted");
        if there {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(there, "the records never came");
    for path in PAGES {
        let (mut times, mut largest) = (Vec::with_capacity(ROUNDS), 0);
        for _ in 0..ROUNDS {
            let (status, size, time) = page(path).await;
            assert_eq!(status, 200, "{path}");
            times.push(time);
            largest = largest.max(size);
        }
        times.sort_by(f64::total_cmp);
        let p99 = times[(times.len() * 99 / 100).min(times.len() - 1)];
        let p50 = median(times);
        #[expect(clippy::cast_precision_loss, reason = "some hundred kilobytes")]
        let size = largest as f64 / 1000.0;
        report.note(format!("{path} p50"), p50, "ms");
        report.judge(format!("{path} p99"), p99, "ms", "at most 300 ms", p99 <= MOST_MILLISECONDS);
        report.judge(format!("{path} size"), size, "kB", "at most 200 kB", size <= MOST_KILOBYTES);
    }
}
