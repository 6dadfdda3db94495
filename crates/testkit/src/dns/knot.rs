//! Knot DNS.

use std::{fmt::Write, fs, io, net::SocketAddr, process::Command};

use tempfile::TempDir;

use super::{SOON, TsigKey, all_here, loopback, started, zone_file};
use crate::{free_port, process::Process};

/// A running `knotd` whose zones take updates and give transfers with its key only.
#[derive(Debug)]
pub struct Knot {
    process: Process,
    port: u16,
    key: TsigKey,
    dir: TempDir,
}

impl Knot {
    /// Starts it with these zones; `None`, and the test is skipped, where it is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(zones: &[&str]) -> Option<Self> {
        all_here(&["knotd"]).then(|| started("Knot", Self::try_start(zones, &TsigKey::default())))
    }

    fn try_start(zones: &[&str], key: &TsigKey) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let port = free_port()?;
        let path = dir.path().display();
        let TsigKey { name, algorithm, secret } = key;
        let mut text = format!(
            "server:\n  rundir: \"{path}\"\n  user: root:root\n  listen: 127.0.0.1@{port}\n\
             log:\n  - target: stdout\n    any: info\n\
             database:\n  storage: \"{path}\"\n\
             key:\n  - id: {name}\n    algorithm: {algorithm}\n    secret: {secret}\n\
             acl:\n  - id: ours\n    key: {name}\n    action: [update, transfer]\n\
             template:\n  - id: default\n    storage: \"{path}\"\n    acl: ours\nzone:\n"
        );
        for zone in zones {
            zone_file(&dir.path().join(format!("{zone}.db")), zone, "")?;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  - domain: {zone}\n    file: \"{zone}.db\"");
        }
        fs::write(dir.path().join("knot.conf"), text)?;
        let process = launch(&dir, port)?;
        Ok(Self { process, port, key: key.clone(), dir })
    }

    pub fn address(&self) -> SocketAddr {
        loopback(self.port)
    }

    pub fn key(&self) -> &TsigKey {
        &self.key
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Ends it at once and starts it again, on the same port with the same data.
    pub fn restart(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process = launch(&self.dir, self.port)?;
        Ok(())
    }
}

fn launch(dir: &TempDir, port: u16) -> io::Result<Process> {
    let mut knotd = Command::new("knotd");
    knotd.arg("-c").arg(dir.path().join("knot.conf"));
    let mut process = Process::start("Knot", &mut knotd)?;
    process.wait_for_port(loopback(port), SOON)?;
    process.wait_for_line("loaded, serial", SOON)?;
    Ok(process)
}
