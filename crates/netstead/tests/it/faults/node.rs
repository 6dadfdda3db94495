//! One node: a home, a machine, and a process that is kept running.

use std::{net::SocketAddr, path::Path, time::Duration};

use netstead_client::{Client, Options};
use netstead_testkit::{Machine, Process};
use tempfile::TempDir;

const API: u16 = 5301;
const DNS: u16 = 5300;

/// A library that tells programs another time of day.
const FAKE_TIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

#[derive(Debug)]
pub(crate) struct Node {
    machine: Machine,
    home: TempDir,
    process: Option<Process>,
    /// Whether it is to be started again when it ends.
    wanted: bool,
    /// By how much its time of day is wrong, as faketime writes it.
    clock: Option<&'static str>,
    /// Where clients reach it, if not at its own address.
    through: Option<String>,
    more: Vec<String>,
}

impl Node {
    pub(crate) fn new(machine: Machine) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { machine, home, process: None, wanted: false, clock: None, through: None, more: Vec::new() }
    }

    /// Where its files are.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Writes its configuration.
    pub(crate) fn configure(&self, text: &str) {
        std::fs::write(self.home.path().join("netstead.toml"), text).unwrap();
    }

    pub(crate) fn clock(&self) -> Option<&'static str> {
        self.clock
    }

    /// From its next start on.
    pub(crate) fn set_clock(&mut self, offset: Option<&'static str>) {
        assert!(Path::new(FAKE_TIME).exists(), "the package faketime is not installed");
        self.clock = offset;
    }

    /// Its data directory is to be on this disk.
    pub(crate) fn put_data_on(&self, disk: &Path) {
        std::os::unix::fs::symlink(disk, self.home.path().join("data")).unwrap();
    }

    pub(crate) fn api(&self) -> SocketAddr {
        (self.machine.address(), API).into()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}:{API}", self.machine.address())
    }

    /// Clients are to reach it here.
    pub(crate) fn serve_through(&mut self, url: String) {
        self.through = Some(url);
    }

    pub(crate) fn dns(&self) -> SocketAddr {
        (self.machine.address(), DNS).into()
    }

    pub(crate) fn start(&mut self) {
        let home = self.home.path();
        let mut command = self.machine.command(env!("CARGO_BIN_EXE_netstead"));
        command
            .args(["run", "--listen", &self.api().to_string()])
            .args(["--dns-listen", &self.dns().to_string()])
            .args(&self.more)
            .current_dir(home)
            .env("HOME", home)
            .env("XDG_STATE_HOME", home.join("state"))
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("DOCKER_HOST", format!("unix://{}", home.join("docker.sock").display()));
        if let Some(offset) = self.clock {
            // Only the time of day: what only goes forward is left alone.
            command
                .env("LD_PRELOAD", FAKE_TIME)
                .env("FAKETIME", offset)
                .env("DONT_FAKE_MONOTONIC", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let name = format!("netstead on {}", self.machine.address());
        self.process = Some(Process::start(&name, &mut command).unwrap());
        self.wanted = true;
    }

    /// Starts it again if it has ended and should not have: what a service manager does.
    pub(crate) fn look_after(&mut self) {
        let ended = self.process.as_mut().is_some_and(|process| !process.running());
        if self.wanted && ended {
            self.start();
        }
    }

    pub(crate) fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("it was started")
    }

    /// SIGKILL; it stays away.
    pub(crate) fn kill(&mut self) {
        self.wanted = false;
        self.process().kill().unwrap();
    }

    /// SIGTERM; it stays away.
    pub(crate) fn stop(&mut self) {
        self.wanted = false;
        let process = self.process();
        if process.running() {
            process.terminate().unwrap();
            process.wait(Duration::from_mins(1)).unwrap();
        }
    }

    /// Everything it had on its disk is gone.
    pub(crate) fn lose_disk(&mut self) {
        for directory in ["data", "state"] {
            let _ = std::fs::remove_dir_all(self.home.path().join(directory));
        }
    }

    /// The token that it left for who works on its machine.
    pub(crate) fn token(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.home.path().join("state/netstead/credentials.json")).ok()?;
        let file: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(file["servers"][self.url()]["token"].as_str()?.to_owned())
    }

    pub(crate) fn client(&self, token: Option<&str>, timeout: Duration) -> Client {
        let options =
            Options { retries: 0, timeout, connect_timeout: Duration::from_secs(1), ..Options::default() };
        let url = self.through.clone().unwrap_or_else(|| self.url());
        Client::new(&url, token, options).unwrap()
    }
}
