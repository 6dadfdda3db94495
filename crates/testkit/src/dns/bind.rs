//! BIND.

use std::{fmt::Write, fs, io, net::SocketAddr, process::Command};

use tempfile::TempDir;

use super::{SOON, TsigKey, all_here, loopback, started, zone_file};
use crate::{free_port, process::Process};

/// A running `named` whose zones take updates and give transfers with its key only.
#[derive(Debug)]
pub struct Bind {
    process: Process,
    port: u16,
    key: TsigKey,
    dir: TempDir,
}

impl Bind {
    /// Starts it with these zones; `None`, and the test is skipped, where it is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(zones: &[&str]) -> Option<Self> {
        Self::with_records(zones, &TsigKey::default(), "")
    }

    /// As [`Bind::start`], with another key, and lines of a zone file in every zone.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn with_records(zones: &[&str], key: &TsigKey, records: &str) -> Option<Self> {
        all_here(&["named"]).then(|| started("BIND", Self::try_start(zones, key, records)))
    }

    fn try_start(zones: &[&str], key: &TsigKey, records: &str) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let port = free_port()?;
        let path = dir.path().display();
        let TsigKey { name, algorithm, secret } = key;
        let mut text = format!(
            "key \"{name}\" {{ algorithm {algorithm}; secret \"{secret}\"; }};\n\
             options {{ directory \"{path}\"; pid-file \"{path}/named.pid\"; session-keyfile \"{path}/session.key\";\n\
             lock-file none; managed-keys-directory \"{path}\"; listen-on port {port} {{ 127.0.0.1; }};\n\
             listen-on-v6 {{ none; }}; recursion no; dnssec-validation no; notify no; }};\ncontrols {{ }};\n"
        );
        for zone in zones {
            zone_file(&dir.path().join(format!("{zone}.db")), zone, records)?;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "zone \"{zone}\" {{ type primary; file \"{zone}.db\"; allow-transfer {{ key \"{name}\"; }}; \
                 update-policy {{ grant {name} zonesub ANY; }}; }};"
            );
        }
        fs::write(dir.path().join("named.conf"), text)?;
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
    let mut named = Command::new("named");
    named.args(["-g", "-n", "1", "-c"]).arg(dir.path().join("named.conf"));
    let mut process = Process::start("BIND", &mut named)?;
    process.wait_for_line("running", SOON)?;
    process.wait_for_port(loopback(port), SOON)?;
    Ok(process)
}
