//! Applies of 100 and 1,000 addresses, beside Terraform's own floor and a provider without a store.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use netstead_model::{Clock as _, SystemClock};
use netstead_testkit::{Process, Terraform, free_port};

use crate::report::{Report, median};

const SOON: Duration = Duration::from_mins(1);
/// So much longer than the provider without a store an apply may take.
const MOST: f64 = 1.2;

/// Resources of one kind, so many of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Terraform's own, without any provider.
    Data,
    /// The example `storeless`.
    Bare,
    Singular,
    Plural,
}

impl Work {
    const ALL: [Self; 4] = [Self::Data, Self::Bare, Self::Singular, Self::Plural];

    fn words(self) -> &'static str {
        match self {
            Self::Data => "terraform_data",
            Self::Bare => "a provider without a store",
            Self::Singular => "netstead_address",
            Self::Plural => "one netstead_addresses",
        }
    }

    fn configuration(self, count: usize, key: &str) -> String {
        let counted = |kind: &str, attributes: &str| {
            format!("resource \"{kind}\" \"all\" {{\n  count = {count}\n  {attributes}\n}}\n")
        };
        match self {
            Self::Data => counted("terraform_data", &format!("input = \"{key}-${{count.index}}\"")),
            Self::Bare => counted("netstead_bare", &format!("key = \"{key}-${{count.index}}\"")),
            Self::Singular => {
                counted("netstead_address", &format!("pool = \"wide\"\n  key = \"{key}-${{count.index}}\""))
            }
            Self::Plural => format!(
                "resource \"netstead_addresses\" \"all\" {{\n  pool = \"wide\"\n  keys = [for number in range({count}) : \"{key}-${{number}}\"]\n}}\n"
            ),
        }
    }
}

/// A server with a wide pool.
struct Server {
    home: tempfile::TempDir,
    url: String,
    program: PathBuf,
    _process: Process,
}

impl Server {
    fn start(program: PathBuf) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let (port, dns) = (free_port().expect("a port"), free_port().expect("a port"));
        let url = format!("http://127.0.0.1:{port}");
        let mut command = Self::command(&program, home.path(), &url);
        command
            .args(["run", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"])
            .arg(home.path().join("data"));
        command.args(["--dns-listen", &format!("127.0.0.1:{dns}")]);
        let mut process = Process::start("netstead", &mut command).expect("a server");
        process.wait_for_line("is ready", SOON).expect("a server that is ready");
        let server = Self { home, url, program, _process: process };
        let mut pool = Self::command(&server.program, server.home.path(), &server.url);
        let made = pool.args(["pool", "create", "wide", "--network", "10.0.0.0/8"]).output().expect("a pool");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        server
    }

    fn command(program: &Path, home: &Path, url: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(home).env("HOME", home).env("NETSTEAD_URL", url);
        command.env("XDG_STATE_HOME", home.join("state")).env("XDG_CONFIG_HOME", home.join("config"));
        command.env("DOCKER_HOST", format!("unix://{}", home.join("docker.sock").display()));
        command
    }

    fn token(&self) -> String {
        let file = self.home.path().join("state/netstead/credentials.json");
        let text = fs::read_to_string(file).expect("credentials");
        let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        file["servers"][self.url.as_str()]["token"].as_str().expect("a token").to_owned()
    }
}

/// False: something is missing, and it was said what.
pub(crate) fn measure(report: &mut Report) -> bool {
    let ours = PathBuf::from(env!("CARGO_BIN_EXE_terraform-provider-netstead"));
    let (netstead, bare) = (ours.with_file_name("netstead"), ours.with_file_name("examples/storeless"));
    for program in [&netstead, &bare] {
        if !program.is_file() {
            eprintln!(
                "error: {} is not built\nhint: `cargo xtask bench terraform` builds it",
                program.display()
            );
            return false;
        }
    }
    // Terraform looks for a provider by the name of its file.
    let place = tempfile::tempdir().expect("a directory");
    let storeless = place.path().join("terraform-provider-netstead");
    std::os::unix::fs::symlink(&bare, &storeless).expect("a link");
    let server = Server::start(netstead);
    for (count, rounds) in [(100, 5), (1000, 3)] {
        let mut times = [const { Vec::new() }; 4];
        for round in 0..rounds {
            for (work, times) in Work::ALL.into_iter().zip(&mut times) {
                let provider = if work == Work::Bare { &storeless } else { &ours };
                let Some(mut terraform) = Terraform::new(provider) else { return false };
                terraform.set("NETSTEAD_URL", &server.url);
                terraform.set("NETSTEAD_TOKEN", &server.token());
                times.push(apply(&terraform, &work.configuration(count, &format!("r{count}-{round}"))));
            }
        }
        let medians = times.map(median);
        for (work, seconds) in Work::ALL.into_iter().zip(medians) {
            report.note(format!("apply of {count}: {}", work.words()), seconds, "s");
        }
        let ratio = medians[2] / medians[1];
        let what = format!("apply of {count}: netstead_address beside no store");
        report.judge(what, ratio, "times", &format!("at most {MOST}"), ratio <= MOST);
    }
    true
}

/// Seconds of one apply.
fn apply(terraform: &Terraform, configuration: &str) -> f64 {
    terraform.write(configuration).expect("a configuration");
    let begin = SystemClock.monotonic();
    let run = terraform.run(&["apply", "-auto-approve", "-no-color", "-parallelism=10"]).expect("a run");
    assert_eq!(run.code, 0, "{}\n{}", run.out, run.err);
    SystemClock.monotonic().saturating_sub(begin).as_secs_f64()
}
