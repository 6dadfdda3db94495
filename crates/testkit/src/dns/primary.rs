//! The common part of BIND and Knot: files in a directory, one port, one key.

use std::{
    fs, io,
    marker::PhantomData,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::Command,
};

use tempfile::TempDir;

use super::{SOON, TsigKey, started, zone_file};
use crate::{free_port, process::Process, skip::has_commands};

/// One make of server: how it is configured and started.
pub trait PrimaryKind {
    const NAME: &'static str;
    const PROGRAM: &'static str;
    /// The file that [`PrimaryKind::configuration`] is written to.
    const FILE: &'static str;
    /// It says this once it serves.
    const READY: &'static str;

    /// Its configuration: everything in `dir`, each zone in the file `<zone>.db` there, updates and transfers with `key`
    /// only.
    fn configuration(dir: &Path, address: SocketAddr, key: &TsigKey, zones: &[&str]) -> String;

    /// Arguments of the server. The configuration's path follows them.
    fn arguments() -> &'static [&'static str];
}

/// A running server whose zones take updates and give transfers with its key only.
#[derive(Debug)]
pub struct Primary<M> {
    process: Process,
    address: SocketAddr,
    key: TsigKey,
    zones: Vec<String>,
    dir: TempDir,
    make: PhantomData<M>,
}

impl<M: PrimaryKind> Primary<M> {
    /// Starts it with these zones; `None`, and the test is skipped, where it is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(zones: &[&str]) -> Option<Self> {
        Self::with_records(zones, &TsigKey::default(), "")
    }

    /// As [`Primary::start`], at another address of this machine.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_at(host: Ipv4Addr, zones: &[&str]) -> Option<Self> {
        Self::make(host, zones, &TsigKey::default(), "")
    }

    /// As [`Primary::start`], with another key, and lines of a zone file in every zone.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn with_records(zones: &[&str], key: &TsigKey, records: &str) -> Option<Self> {
        Self::make(Ipv4Addr::LOCALHOST, zones, key, records)
    }

    fn make(host: Ipv4Addr, zones: &[&str], key: &TsigKey, records: &str) -> Option<Self> {
        has_commands(&[M::PROGRAM]).then(|| started(M::NAME, Self::try_start(host, zones, key, records)))
    }

    fn try_start(host: Ipv4Addr, zones: &[&str], key: &TsigKey, records: &str) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let address = SocketAddr::from((host, free_port()?));
        for zone in zones {
            zone_file(&dir.path().join(format!("{zone}.db")), zone, records)?;
        }
        fs::write(dir.path().join(M::FILE), M::configuration(dir.path(), address, key, zones))?;
        let process = launch::<M>(&dir, address)?;
        let zones = zones.iter().map(ToString::to_string).collect();
        Ok(Self { process, address, key: key.clone(), zones, dir, make: PhantomData })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn key(&self) -> &TsigKey {
        &self.key
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Ends it at once and starts it again: it knows the key by this secret from now on.
    pub fn restart_with_secret(&mut self, secret: &str) -> io::Result<()> {
        let key = TsigKey { secret: secret.to_owned(), ..self.key.clone() };
        let zones: Vec<&str> = self.zones.iter().map(String::as_str).collect();
        let text = M::configuration(self.dir.path(), self.address, &key, &zones);
        fs::write(self.dir.path().join(M::FILE), text)?;
        self.restart()
    }

    /// Ends it at once and starts it again, on the same port with the same data.
    pub fn restart(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process = launch::<M>(&self.dir, self.address)?;
        Ok(())
    }
}

fn launch<M: PrimaryKind>(dir: &TempDir, address: SocketAddr) -> io::Result<Process> {
    let mut command = Command::new(M::PROGRAM);
    command.args(M::arguments()).arg(dir.path().join(M::FILE));
    let mut process = Process::start(M::NAME, &mut command)?;
    process.wait_for_port(address, SOON)?;
    process.wait_for_line(M::READY, SOON)?;
    Ok(process)
}
