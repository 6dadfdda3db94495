//! dnsmasq, with a directory for hosts files and one for configuration.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::{SOON, run, started};
use crate::{free_port, skip::has_commands, wait::wait_until};

/// A running `dnsmasq` that forwards nothing. It is a daemon of its own, which [`Dnsmasq::restart_command`] replaces.
#[derive(Debug)]
pub struct Dnsmasq {
    dir: TempDir,
    address: SocketAddr,
}

impl Dnsmasq {
    /// Starts it; `None`, and the test is skipped, where it is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start() -> Option<Self> {
        Self::with_options("")
    }

    /// As [`Dnsmasq::start`], with more lines in its main configuration.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn with_options(lines: &str) -> Option<Self> {
        has_commands(&["dnsmasq", "dig"]).then(|| started("dnsmasq", Self::try_start(lines)))
    }

    fn try_start(lines: &str) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let (path, port) = (dir.path().display(), address.port());
        for name in ["hosts", "conf"] {
            fs::create_dir(dir.path().join(name))?;
        }
        let user = String::from_utf8_lossy(&Command::new("id").arg("-un").output()?.stdout).trim().to_owned();
        let text = format!(
            "port={port}\nlisten-address=127.0.0.1\nbind-interfaces\nno-resolv\nno-hosts\nuser={user}\n\
             hostsdir={path}/hosts\nconf-dir={path}/conf,*.conf\npid-file={path}/pid\nlog-facility={path}/log\n{lines}\n"
        );
        fs::write(dir.path().join("dnsmasq.conf"), text)?;
        // A daemon that was killed may be a zombie for long.
        let script = format!(
            "#!/bin/sh\necho restart >> {path}/restarts\np=$(cat {path}/pid 2>/dev/null) && kill \"$p\" 2>/dev/null\n\
             while [ -n \"$p\" ] && [ -d /proc/$p ] && ! grep -q '^State:.Z' /proc/$p/status 2>/dev/null; do sleep 0.01; done\n\
             rm -f {path}/pid\nexec dnsmasq -C {path}/dnsmasq.conf\n"
        );
        fs::write(dir.path().join("restart"), script)?;
        // From here on dropping it stops the daemon.
        let server = Self { dir, address };
        run(Command::new("sh").arg(server.dir.path().join("restart")))?;
        Ok(server)
    }

    /// Where it answers DNS.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The directory whose files it takes up by itself.
    pub fn hostsdir(&self) -> PathBuf {
        self.dir.path().join("hosts")
    }

    /// The directory that it reads when it starts: files that end in `.conf`.
    pub fn conf_dir(&self) -> PathBuf {
        self.dir.path().join("conf")
    }

    /// A command that restarts it, and fails if it does not come back.
    pub fn restart_command(&self) -> Vec<String> {
        vec!["sh".into(), self.dir.path().join("restart").display().to_string()]
    }

    /// How often it was started.
    pub fn starts(&self) -> usize {
        fs::read_to_string(self.dir.path().join("restarts")).unwrap_or_default().lines().count()
    }

    /// The answers to a question, one per line of `dig +short`, in order.
    pub fn ask(&self, name: &str, kind: &str) -> Vec<String> {
        let port = self.address.port().to_string();
        let output = Command::new("dig")
            .args(["+short", "+tries=1", "+time=2", "@127.0.0.1", "-p", &port, name, kind])
            .output();
        let text =
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let mut answers: Vec<String> =
            text.lines().filter(|line| !line.starts_with(';')).map(str::to_owned).collect();
        answers.sort();
        answers
    }

    /// Asks until the answers are these, for as long as anything may take. Gives the last answers.
    pub fn ask_until(&self, name: &str, kind: &str, wanted: &[&str]) -> Vec<String> {
        let same = || Some(self.ask(name, kind)).filter(|answers| answers == wanted);
        wait_until(SOON, same).unwrap_or_else(|| self.ask(name, kind))
    }

    fn pid_file(&self) -> PathBuf {
        Path::new(self.dir.path()).join("pid")
    }
}

impl Drop for Dnsmasq {
    fn drop(&mut self) {
        if let Ok(pid) = fs::read_to_string(self.pid_file()) {
            let _ = Command::new("sh").args(["-c", r#"kill "$1""#, "sh", pid.trim()]).status();
        }
    }
}
