//! PowerDNS Authoritative on SQLite.

use std::{
    fs::{self, File},
    io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::Command,
};

use tempfile::TempDir;

use super::{SOON, TsigKey, run, started};
use crate::{
    free_port,
    process::Process,
    skip::{has_commands, skip},
};

const SCHEMA: &str = "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql";
const API_KEY: &str = "netstead-test";

/// A running `pdns_server` with its HTTP API, whose zones take updates and give transfers with its key only.
#[derive(Debug)]
pub struct PowerDns {
    process: Process,
    address: SocketAddr,
    api: SocketAddr,
    key: TsigKey,
    dir: TempDir,
}

impl PowerDns {
    /// Starts it with these zones; `None`, and the test is skipped, where it is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(zones: &[&str]) -> Option<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST, zones)
    }

    /// As [`PowerDns::start`], at another address of this machine.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_at(host: Ipv4Addr, zones: &[&str]) -> Option<Self> {
        if !has_commands(&["pdns_server", "pdnsutil", "sqlite3"]) {
            return None;
        }
        if !Path::new(SCHEMA).exists() {
            skip("the package pdns-backend-sqlite3 is not installed");
            return None;
        }
        // Another process may take a port between the moment it was free and the start.
        let taken = |outcome: &io::Result<Self>| matches!(outcome, Err(error) if error.to_string().contains("Address already in use"));
        let mut outcome = Self::try_start(host, zones, &TsigKey::default());
        for _ in 0..4 {
            if !taken(&outcome) {
                break;
            }
            outcome = Self::try_start(host, zones, &TsigKey::default());
        }
        Some(started("PowerDNS", outcome))
    }

    fn try_start(host: Ipv4Addr, zones: &[&str], key: &TsigKey) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let (port, api_port) = (free_port()?, free_port()?);
        // Who is beside it on a network of the tests may ask as well.
        let near = format!("127.0.0.0/8,{host}/24");
        let path = dir.path().display();
        run(Command::new("sqlite3").arg(dir.path().join("p.db")).stdin(File::open(SCHEMA)?))?;
        let text = format!(
            "launch=gsqlite3\ngsqlite3-database={path}/p.db\ngsqlite3-dnssec=yes\ngsqlite3-pragma-synchronous=0\n\
             daemon=no\nguardian=no\nlocal-address={host}\nlocal-port={port}\nsocket-dir={path}\n\
             api=yes\napi-key={API_KEY}\nwebserver=yes\nwebserver-address={host}\nwebserver-port={api_port}\n\
             webserver-allow-from={near}\ndnsupdate=yes\nallow-dnsupdate-from={near}\nallow-axfr-ips=\n\
             cache-ttl=0\nquery-cache-ttl=0\nnegquery-cache-ttl=0\nzone-cache-refresh-interval=0\n\
             default-soa-content=ns1.@ hostmaster.@ 1 10800 3600 604800 300\n"
        );
        fs::write(dir.path().join("pdns.conf"), text)?;
        let util =
            |words: &[&str]| run(Command::new("pdnsutil").arg(format!("--config-dir={path}")).args(words));
        util(&["import-tsig-key", &key.name, &key.algorithm, &key.secret])?;
        for zone in zones {
            util(&["create-zone", zone, &format!("ns1.{zone}")])?;
            for meta in ["TSIG-ALLOW-DNSUPDATE", "TSIG-ALLOW-AXFR"] {
                util(&["set-meta", zone, meta, &key.name])?;
            }
            util(&["set-meta", zone, "SOA-EDIT-API", "DEFAULT"])?;
            util(&["set-meta", zone, "SOA-EDIT-DNSUPDATE", "INCREASE"])?;
        }
        let (address, api) = (SocketAddr::from((host, port)), SocketAddr::from((host, api_port)));
        let process = launch(&dir, address, api)?;
        Ok(Self { process, address, api, key: key.clone(), dir })
    }

    /// Where it answers DNS.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn api_url(&self) -> String {
        format!("http://{}", self.api)
    }

    pub fn api_key(&self) -> &'static str {
        API_KEY
    }

    pub fn key(&self) -> &TsigKey {
        &self.key
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Ends it at once and starts it again, on the same ports with the same data.
    pub fn restart(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process = launch(&self.dir, self.address, self.api)?;
        Ok(())
    }

    /// Ends it at once and starts it again: its API takes this key from now on.
    pub fn restart_with_api_key(&mut self, key: &str) -> io::Result<()> {
        let file = self.dir.path().join("pdns.conf");
        let text = fs::read_to_string(&file)?;
        let lines = text.lines().map(|line| match line.strip_prefix("api-key=") {
            Some(_) => format!("api-key={key}\n"),
            None => format!("{line}\n"),
        });
        fs::write(&file, lines.collect::<String>())?;
        self.restart()
    }

    /// Runs SQL in its database: what the API does not do.
    pub fn sql(&self, statement: &str) -> io::Result<()> {
        run(Command::new("sqlite3").arg(self.dir.path().join("p.db")).arg(statement))
    }
}

fn launch(dir: &TempDir, address: SocketAddr, api: SocketAddr) -> io::Result<Process> {
    let mut server = Command::new("pdns_server");
    server.arg(format!("--config-dir={}", dir.path().display()));
    let mut process = Process::start("PowerDNS", &mut server)?;
    process.wait_for_port(address, SOON)?;
    process.wait_for_port(api, SOON)?;
    Ok(process)
}
