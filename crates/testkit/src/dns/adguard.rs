//! AdGuard Home itself, built by `cargo xtask test` where there is a Go.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::Command,
};

use tempfile::TempDir;

use super::{SOON, started};
use crate::{fake_http::status_of, free_port, process::Process, skip::skip, tools::tool, wait::wait_until};

/// The version that `cargo xtask test` builds.
const VERSION: &str = "0.107.79";
const USER: &str = "netstead";
const PASSWORD: &str = "netstead-test";
/// The password with bcrypt at its lowest cost: every request pays for it.
const HASH: &str = "$2a$04$RuFlqFaWeiNbXNZ41rmjE.pin8LcmmwY/3rZ7P6woud.kEq/t6U2.";

/// A running AdGuard Home without filters.
#[derive(Debug)]
pub struct AdGuardHome {
    process: Process,
    program: PathBuf,
    address: SocketAddr,
    api: SocketAddr,
    dir: TempDir,
}

impl AdGuardHome {
    /// Starts it; `None`, and the test is left out, where it was not built.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start() -> Option<Self> {
        let Some(program) = tool(&format!("adguardhome-{VERSION}"), "AdGuardHome") else {
            skip("AdGuard Home was not built: `cargo xtask test` does that where there is a recent Go");
            return None;
        };
        Some(started("AdGuard Home", Self::try_start(program)))
    }

    fn try_start(program: PathBuf) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let [address, api] =
            [free_port()?, free_port()?].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        // No upstream: what is not rewritten is not answered.
        let text = format!(
            "http:\n  address: {api}\nusers:\n  - name: {USER}\n    password: {HASH}\nauth_attempts: 5\n\
             block_auth_min: 15\ndns:\n  bind_hosts: [127.0.0.1]\n  port: {}\n  upstream_dns: ['127.0.0.1:9']\n  \
             bootstrap_dns: ['127.0.0.1:9']\n  ratelimit: 0\nquerylog:\n  enabled: false\nstatistics:\n  \
             enabled: false\nschema_version: 31\n",
            address.port()
        );
        fs::write(dir.path().join("AdGuardHome.yaml"), text)?;
        let process = launch(&program, &dir, address, api)?;
        Ok(Self { process, program, address, api, dir })
    }

    /// Where it answers DNS.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.api)
    }

    pub fn user(&self) -> &'static str {
        USER
    }

    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Ends it at once and starts it again, on the same ports with the same data.
    pub fn restart(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process = launch(&self.program, &self.dir, self.address, self.api)?;
        Ok(())
    }
}

fn launch(program: &PathBuf, dir: &TempDir, address: SocketAddr, api: SocketAddr) -> io::Result<Process> {
    let mut server = Command::new(program);
    server.arg("-c").arg(dir.path().join("AdGuardHome.yaml")).arg("-w").arg(dir.path());
    server.args(["--no-check-update", "--no-permcheck"]);
    let mut process = Process::start("AdGuard Home", &mut server)?;
    process.wait_for_port(api, SOON)?;
    process.wait_for_port(address, SOON)?;
    // It listens before its API is there.
    let ready = || status_of(api, "/control/status").is_ok_and(|status| status != 404).then_some(());
    wait_until(SOON, ready).ok_or_else(|| io::Error::other("its API does not come"))?;
    Ok(process)
}
