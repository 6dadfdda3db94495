//! etcd on loopback: one member, or several that form a cluster.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    free_port,
    process::Process,
    skip::{has_command, skip},
    virtual_network::Machine,
    wait::wait_until,
};

const SOON: Duration = Duration::from_mins(1);

/// A running etcd. Its members can be stopped, killed and started again one by one.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<Member>,
    more: Vec<String>,
    dir: TempDir,
}

/// Where one member runs and keeps its data.
#[derive(Debug, Clone, Default)]
pub struct EtcdHost {
    /// This machine, at this address; loopback without.
    pub address: Option<IpAddr>,
    /// A machine of a network for tests.
    pub machine: Option<Machine>,
    /// Its disk; a directory of its own without.
    pub disk: Option<PathBuf>,
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
    data: PathBuf,
    machine: Option<Machine>,
    client: SocketAddr,
    peer: SocketAddr,
    cluster: String,
    /// `new`, or `existing` for one that joins.
    state: &'static str,
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
    pub fn start_with(members: usize, scheme: &'static str, flags: &[&str]) -> Option<Self> {
        Self::start_at(&vec![EtcdHost::default(); members], scheme, flags)
    }

    /// As [`Etcd::start_with`], with one member at each of these places.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn start_at(places: &[EtcdHost], scheme: &'static str, flags: &[&str]) -> Option<Self> {
        if !has_command("etcd") {
            skip("`etcd` is not installed");
            return None;
        }
        match Self::try_start(places, scheme, flags) {
            Ok(etcd) => Some(etcd),
            Err(error) => panic!("etcd does not start: {error}"),
        }
    }

    fn try_start(places: &[EtcdHost], scheme: &'static str, flags: &[&str]) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let ports = places.iter().map(EtcdHost::sockets).collect::<io::Result<Vec<_>>>()?;
        let cluster: Vec<String> =
            ports.iter().enumerate().map(|(number, (_, peer))| format!("m{number}=http://{peer}")).collect();
        let cluster = cluster.join(",");
        let more: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let mut started = Vec::new();
        for (number, (place, (client, peer))) in places.iter().zip(ports).enumerate() {
            let name = format!("m{number}");
            let data = place.disk.as_deref().unwrap_or(dir.path()).join(&name);
            let (machine, cluster) = (place.machine.clone(), cluster.clone());
            let command = Launch { name, data, machine, client, peer, cluster, state: "new", scheme };
            // All are started before any is waited for: one alone has no quorum.
            started.push(Member { process: command.run(&more)?, command });
        }
        for member in &mut started {
            member.wait()?;
        }
        Ok(Self { members: started, more, dir })
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

    /// All members are ended at once and started again together with their data: one alone waits for the others.
    pub fn restart_all(&mut self) -> io::Result<()> {
        for member in &mut self.members {
            member.process.kill()?;
        }
        for member in &mut self.members {
            member.process = member.command.run(&self.more)?;
        }
        self.members.iter_mut().try_for_each(Member::wait)
    }

    /// Member `number` has lost its disk: it is taken out of the cluster and comes back as a new one, with nothing.
    pub fn replace(&mut self, number: usize) -> io::Result<()> {
        let Some(member) = self.members.get_mut(number) else { return Ok(()) };
        member.process.kill()?;
        std::fs::remove_dir_all(&member.command.data)?;
        let Launch { name, peer, .. } = member.command.clone();
        let mut others = self.endpoints();
        others.remove(number.min(others.len().saturating_sub(1)));
        // The rest may have to elect a leader first, and etcd changes nothing while it thinks itself unwell.
        let ctl = |arguments: &[&str]| {
            let mut last = ctl(&others, arguments);
            wait_until(SOON, || {
                if last.is_err() {
                    thread::sleep(Duration::from_millis(500));
                    last = ctl(&others, arguments);
                }
                last.is_ok().then_some(())
            });
            last
        };
        let list = ctl(&["member", "list"])?;
        let of_it = |line: &&str| line.split(", ").nth(2) == Some(&name);
        let id = list.lines().find(of_it).and_then(|line| line.split(',').next());
        let id = id.ok_or_else(|| io::Error::other(format!("{name} is not in\n{list}")))?;
        ctl(&["member", "remove", id])?;
        ctl(&["member", "add", &name, &format!("--peer-urls=http://{peer}")])?;
        let Some(member) = self.members.get_mut(number) else { return Ok(()) };
        // A directory that no member ever had: what is new has a new name on the disk too.
        member.command.data = self.dir.path().join(format!("{name}-again"));
        member.command.state = "existing";
        member.process = member.command.run(&self.more)?;
        member.wait()
    }

    /// The term of the last election, as the leader reports it.
    pub fn election(&self) -> Option<u64> {
        let of = |endpoint: &String| {
            let status = ctl(std::slice::from_ref(endpoint), &["endpoint", "status"]).ok()?;
            // Endpoint, id, version, size, whether it leads, whether it only learns, the number of the election, …
            let fields: Vec<&str> = status.split(", ").collect();
            let leads = fields.get(4) == Some(&"true");
            fields.get(6).filter(|_| leads)?.parse().ok()
        };
        self.endpoints().iter().filter_map(of).max()
    }

    /// Runs `etcdctl` with these arguments against the first member.
    pub fn ctl(&self, arguments: &[&str]) -> io::Result<String> {
        ctl(&self.endpoints(), arguments)
    }
}

fn ctl(endpoints: &[String], arguments: &[&str]) -> io::Result<String> {
    let output = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .arg(format!("--endpoints={}", endpoints.join(",")))
        .args(arguments)
        .output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
}

impl EtcdHost {
    /// For clients and for the other members.
    fn sockets(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        if let Some(machine) = &self.machine {
            // No other server runs on that machine.
            let address = machine.address().into();
            return Ok((SocketAddr::new(address, 2379), SocketAddr::new(address, 2380)));
        }
        let address = self.address.unwrap_or(Ipv4Addr::LOCALHOST.into());
        Ok((SocketAddr::new(address, free_port()?), SocketAddr::new(address, free_port()?)))
    }
}

impl Member {
    fn wait(&mut self) -> io::Result<()> {
        self.process.wait_for_port(self.command.client, SOON)
    }
}

impl Launch {
    fn endpoint(&self) -> String {
        format!("{}://{}", self.scheme, self.client)
    }

    fn run(&self, more: &[String]) -> io::Result<Process> {
        let peer = format!("http://{}", self.peer);
        let data: &Path = &self.data;
        let mut command = match &self.machine {
            Some(machine) => machine.command("etcd"),
            None => Command::new("etcd"),
        };
        Process::start(
            &format!("etcd {}", self.name),
            command
                .arg("--name")
                .arg(&self.name)
                .arg("--data-dir")
                .arg(data)
                .args(["--listen-client-urls", &self.endpoint()])
                .args(["--advertise-client-urls", &self.endpoint()])
                .args(["--listen-peer-urls", &peer])
                .args(["--initial-advertise-peer-urls", &peer])
                .args(["--initial-cluster", &self.cluster, "--initial-cluster-state", self.state])
                .args(["--logger", "zap", "--log-level", "warn"])
                .args(more),
        )
    }
}
