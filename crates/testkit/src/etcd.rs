//! etcd on loopback: one member, or several that form a cluster.

use std::{io, net::Ipv4Addr, path::Path, process::Command, time::Duration};

use tempfile::TempDir;

use crate::{
    free_port,
    process::Process,
    skip::{has_command, skip},
};

const SOON: Duration = Duration::from_mins(1);

/// A running etcd. Its members can be stopped, killed and started again one by one.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<Member>,
    more: Vec<String>,
    _dir: TempDir,
}

#[derive(Debug)]
struct Member {
    process: Process,
    command: Launch,
}

/// All that starting a member needs, so that it can be started again with its data.
#[derive(Debug, Clone)]
struct Launch {
    name: String,
    data: std::path::PathBuf,
    client: u16,
    peer: u16,
    cluster: String,
    scheme: &'static str,
}

impl Etcd {
    /// Starts `members` of them; `None`, and the test is skipped, where etcd is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(members: usize) -> Option<Self> {
        Self::start_with(members, "http", &[])
    }

    /// As [`Etcd::start`], with flags of its own and `https` when clients are to use TLS.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn start_with(members: usize, scheme: &'static str, flags: &[&str]) -> Option<Self> {
        if !has_command("etcd") {
            skip("`etcd` is not installed");
            return None;
        }
        match Self::try_start(members, scheme, flags) {
            Ok(etcd) => Some(etcd),
            Err(error) => panic!("etcd does not start: {error}"),
        }
    }

    fn try_start(members: usize, scheme: &'static str, flags: &[&str]) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let ports = (0..members).map(|_| Ok((free_port()?, free_port()?))).collect::<io::Result<Vec<_>>>()?;
        let cluster: Vec<String> = ports
            .iter()
            .enumerate()
            .map(|(number, (_, peer))| format!("m{number}=http://127.0.0.1:{peer}"))
            .collect();
        let cluster = cluster.join(",");
        let more: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let mut started = Vec::new();
        for (number, (client, peer)) in ports.into_iter().enumerate() {
            let name = format!("m{number}");
            let data = dir.path().join(&name);
            let command = Launch { name, data, client, peer, cluster: cluster.clone(), scheme };
            // All are started before any is waited for: one alone has no quorum.
            started.push(Member { process: command.run(&more)?, command });
        }
        for member in &mut started {
            member.wait()?;
        }
        Ok(Self { members: started, more, _dir: dir })
    }

    /// The addresses for clients, one per member.
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| member.command.endpoint()).collect()
    }

    /// The process of member `number`, counted from 0.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    #[expect(clippy::indexing_slicing, reason = "this is how a test fails")]
    pub fn member(&mut self, number: usize) -> &mut Process {
        &mut self.members[number].process
    }

    /// Ends member `number` at once, if it has not ended, and starts it again with its data.
    pub fn restart(&mut self, number: usize) -> io::Result<()> {
        let Some(member) = self.members.get_mut(number) else { return Ok(()) };
        member.process.kill()?;
        member.process = member.command.run(&self.more)?;
        member.wait()
    }

    /// Runs `etcdctl` with these arguments against the first member.
    pub fn ctl(&self, arguments: &[&str]) -> io::Result<String> {
        let output = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints={}", self.endpoints().join(",")))
            .args(arguments)
            .output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

impl Member {
    fn wait(&mut self) -> io::Result<()> {
        self.process.wait_for_port((Ipv4Addr::LOCALHOST, self.command.client).into(), SOON)
    }
}

impl Launch {
    fn endpoint(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.client)
    }

    fn run(&self, more: &[String]) -> io::Result<Process> {
        let peer = format!("http://127.0.0.1:{}", self.peer);
        let data: &Path = &self.data;
        Process::start(
            &format!("etcd {}", self.name),
            Command::new("etcd")
                .arg("--name")
                .arg(&self.name)
                .arg("--data-dir")
                .arg(data)
                .args(["--listen-client-urls", &self.endpoint()])
                .args(["--advertise-client-urls", &self.endpoint()])
                .args(["--listen-peer-urls", &peer])
                .args(["--initial-advertise-peer-urls", &peer])
                .args(["--initial-cluster", &self.cluster])
                .args(["--logger", "zap", "--log-level", "warn"])
                .args(more),
        )
    }
}
