//! A Netstead server of its own for each test, and a Terraform that uses it.

use std::{path::PathBuf, process::Command, time::Duration};

use netstead_testkit::{Process, Terraform, TerraformRun, free_port, skip, skip_without};
use tempfile::TempDir;

const SOON: Duration = Duration::from_mins(1);

/// A server, its data, and a directory of Terraform that knows both.
pub(crate) struct Bench {
    home: TempDir,
    port: u16,
    dns: u16,
    server: Option<Process>,
    pub(crate) terraform: Terraform,
}

impl Bench {
    /// `None`, and the test is skipped, without a Terraform or a built server.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// As [`Bench::start`], with a server that has this configuration file.
    pub(crate) fn start_with(configuration: &str) -> Option<Self> {
        let provider = PathBuf::from(env!("CARGO_BIN_EXE_terraform-provider-netstead"));
        let terraform = Terraform::new(&provider)?;
        if !netstead().is_file() {
            skip("the server is not built: `cargo build -p netstead`");
            return None;
        }
        let (home, port, dns) = (tempfile::tempdir().unwrap(), free_port().unwrap(), free_port().unwrap());
        if !configuration.is_empty() {
            std::fs::write(home.path().join("netstead.toml"), configuration).unwrap();
        }
        let mut bench = Self { home, port, dns, server: None, terraform };
        bench.serve();
        bench.terraform.set("NETSTEAD_URL", &bench.url());
        let token = bench.token();
        bench.terraform.set("NETSTEAD_TOKEN", &token);
        Some(bench)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(netstead());
        command
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env("XDG_STATE_HOME", self.home.path().join("state"))
            .env("XDG_CONFIG_HOME", self.home.path().join("config"))
            .env("DOCKER_HOST", format!("unix://{}", self.home.path().join("docker.sock").display()))
            .env("NETSTEAD_URL", self.url());
        command
    }

    /// Starts the server on its data.
    pub(crate) fn serve(&mut self) {
        let mut command = self.command();
        command
            .args(["run", "--listen", &format!("127.0.0.1:{}", self.port), "--data-dir"])
            .arg(self.home.path().join("data"))
            .args(["--dns-listen", &format!("127.0.0.1:{}", self.dns)]);
        let mut server = Process::start("netstead", &mut command).unwrap();
        server.wait_for_line("is ready", SOON).unwrap();
        self.server = Some(server);
    }

    /// SIGKILL.
    pub(crate) fn kill_server(&mut self) {
        self.server.take().unwrap().kill().unwrap();
    }

    pub(crate) fn token(&self) -> String {
        let text = std::fs::read_to_string(self.home.path().join("state/netstead/credentials.json")).unwrap();
        let file: serde_json::Value = serde_json::from_str(&text).unwrap();
        file["servers"][self.url()]["token"].as_str().unwrap().to_owned()
    }

    /// Types `netstead` and these words; it must end well.
    pub(crate) fn does(&self, line: &str) -> String {
        let output = self.command().args(line.split_whitespace()).output().unwrap();
        assert!(output.status.success(), "`netstead {line}`: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Answers of the server's own nameserver, sorted.
    pub(crate) fn resolves(&self, question: &[&str]) -> Vec<String> {
        let port = self.dns.to_string();
        let mut dig = Command::new("dig");
        dig.args(["@127.0.0.1", "-p", &port, "+short", "+time=2", "+tries=2"]).args(question);
        let answer = String::from_utf8(dig.output().unwrap().stdout).unwrap();
        let mut lines: Vec<String> = answer.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// Whether this Terraform has what version 1.`terraform` has, and `OpenTofu` 1.`tofu`. If not, the test is skipped.
    pub(crate) fn has_minor(&self, terraform: u32, tofu: Option<u32>, what: &str) -> bool {
        let version = self.terraform.run(&["version", "-json"]).unwrap().out;
        let version: serde_json::Value = serde_json::from_str(&version).unwrap();
        let version = version["terraform_version"].as_str().unwrap_or_default().to_owned();
        let found: u32 = version.split('.').nth(1).unwrap_or_default().parse().unwrap_or_default();
        let (name, needed) =
            if self.terraform.is_opentofu() { ("OpenTofu", tofu) } else { ("Terraform", Some(terraform)) };
        let has = needed.is_some_and(|needed| found >= needed);
        if !has {
            skip_without(&format!("{name} {version} has no {what}"));
        }
        has
    }

    /// How many claims there are.
    pub(crate) fn held(&self) -> usize {
        self.claims().matches("\"key\"").count()
    }

    /// All claims as JSON without spaces.
    pub(crate) fn claims(&self) -> String {
        self.does("get claims --output json").split_whitespace().collect()
    }

    /// `terraform apply`, which must end well.
    pub(crate) fn apply(&self, configuration: &str) -> String {
        self.terraform.write(configuration).unwrap();
        self.ran(&["apply", "-auto-approve", "-no-color", "-parallelism=10"], 0)
    }

    /// `terraform plan`, with its exit code: 0 says that nothing changes, 2 that something does.
    pub(crate) fn plan(&self, code: i32) -> String {
        self.ran(&["plan", "-no-color", "-detailed-exitcode"], code)
    }

    pub(crate) fn ran(&self, arguments: &[&str], code: i32) -> String {
        let TerraformRun { code: ended, out, err } = self.terraform.run(arguments).unwrap();
        assert_eq!(ended, code, "terraform {arguments:?}:\n{out}\n{err}");
        // Terraform wraps its messages at the width of a terminal, with a bar in front.
        let words = format!("{out}\n{err}");
        words.replace(['│', '╷', '╵'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn output(&self, name: &str) -> String {
        self.ran(&["output", "-no-color", "-raw", name], 0)
    }
}

/// The server's binary, beside that of the provider.
fn netstead() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_terraform-provider-netstead")).with_file_name("netstead")
}
