//! [`VirtualNetwork`]: machines in network namespaces, joined by a bridge, whose links can be cut.

use std::{
    ffi::OsStr,
    fs, io,
    net::Ipv4Addr,
    path::Path,
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
};

use crate::skip::{has_command, skip};

/// Networks are of 198.18.0.0/15, which is set aside for tests of devices.
const NETWORK: [u8; 2] = [198, 18];

/// Of a route that is taken when there is no other to the same place.
const LAST_WAY: u32 = 4096;

/// So many networks were made by this process: tests run at the same time.
static MADE: Mutex<u8> = Mutex::new(0);

/// Machines that reach each other and this process. All of it goes away with the value.
#[derive(Debug)]
pub struct VirtualNetwork {
    bridge: String,
    host: Ipv4Addr,
    machines: Vec<Machine>,
}

/// A place where processes run with a network of their own.
#[derive(Debug, Clone)]
pub struct Machine {
    namespace: String,
    address: Ipv4Addr,
}

impl Machine {
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// `program`, to be run there. Its process is the program itself, so signals reach it.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace]).arg(program);
        command
    }

    fn iptables(&self, rule: &[&str]) -> io::Result<()> {
        run(self.command("iptables").args(["-w", "10"]).args(rule))
    }

    /// Drops what comes from `address` and what goes there, or only one of them.
    fn drop_packets(&self, comes: bool, goes: bool, address: Ipv4Addr) -> io::Result<()> {
        let address = address.to_string();
        if comes {
            self.iptables(&["-A", "INPUT", "-s", &address, "-j", "DROP"])?;
        }
        if goes {
            self.iptables(&["-A", "OUTPUT", "-d", &address, "-j", "DROP"])?;
        }
        Ok(())
    }
}

impl VirtualNetwork {
    /// So many machines; `None`, and the test is skipped, where that is not permitted.
    ///
    /// # Panics
    ///
    /// In the full run, where it is not permitted.
    pub fn start(machines: u8) -> Option<Self> {
        for program in ["ip", "iptables"] {
            if !has_command(program) {
                skip(&format!("`{program}` is not installed"));
                return None;
            }
        }
        sweep();
        match Self::try_start(machines) {
            Ok(lan) => Some(lan),
            Err(error) => {
                skip(&format!("network namespaces cannot be made: {error}"));
                None
            }
        }
    }

    fn try_start(machines: u8) -> io::Result<Self> {
        // One at a time: what is free when one looks must be so when it is taken.
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        *made = made.wrapping_add(1);
        let owner = std::process::id();
        // A process may have several: the third byte of the addresses tells them apart, on the whole machine.
        let (third, bridge) = (0..=255_u8)
            .find_map(|third| {
                let third = third.wrapping_add(owner.to_le_bytes()[0]).wrapping_add(*made);
                let bridge = format!("nst{third:02x}-{owner}");
                let bridge = bridge.get(..bridge.len().min(15))?.to_owned();
                let host = Ipv4Addr::new(NETWORK[0], NETWORK[1], third, 254);
                free(host).then_some((third, bridge))
            })
            .ok_or_else(|| io::Error::other("all networks for tests are in use"))?;
        let address = |last: u8| Ipv4Addr::new(NETWORK[0], NETWORK[1], third, last);
        let mut lan = Self { bridge: bridge.clone(), host: address(254), machines: Vec::new() };
        // It stays: what still calls a machine of ours when the network is gone must not go out by the way to everywhere.
        ip(&format!("route replace unreachable {}/24 metric {LAST_WAY}", address(0)))?;
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("addr add {}/24 dev {bridge}", lan.host))?;
        ip(&format!("link set {bridge} up"))?;
        for number in 1..=machines {
            let namespace = format!("netstead-{owner}-{third}-{number}");
            let (here, there) = (format!("nst{third:02x}p{number}"), format!("nst{third:02x}q{number}"));
            ip(&format!("netns add {namespace}"))?;
            lan.machines.push(Machine { namespace: namespace.clone(), address: address(number) });
            ip(&format!("link add {here} type veth peer name {there}"))?;
            ip(&format!("link set {there} netns {namespace}"))?;
            ip(&format!("link set {here} master {bridge} up"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
            ip(&format!("-n {namespace} addr add {}/24 dev {there}", address(number)))?;
            ip(&format!("-n {namespace} link set {there} up"))?;
        }
        // What is bridged may be sent through the host's own rules, which are not made for us.
        let _ = fs::write(format!("/sys/class/net/{bridge}/bridge/nf_call_iptables"), "0");
        Ok(lan)
    }

    /// The address of this process on that network.
    pub fn host(&self) -> Ipv4Addr {
        self.host
    }

    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// Machine `number`, counted from 0.
    ///
    /// # Panics
    ///
    /// If there is no such machine.
    #[expect(clippy::indexing_slicing, reason = "this is how a test fails")]
    pub fn machine(&self, number: usize) -> &Machine {
        &self.machines[number]
    }

    /// Nothing goes between `one` and the other machines any more, nor to `more`. This process reaches all of them.
    pub fn cut_off(&self, one: usize, more: &[Ipv4Addr]) -> io::Result<()> {
        self.cut(one, more, true, true)
    }

    /// Drops packets from `one` to all other machines and to `more`. Packets to `one` still arrive.
    pub fn mute(&self, one: usize, more: &[Ipv4Addr]) -> io::Result<()> {
        self.cut(one, more, false, true)
    }

    /// `one` hears nothing of the other machines and of `more`; they hear it.
    pub fn deafen(&self, one: usize, more: &[Ipv4Addr]) -> io::Result<()> {
        self.cut(one, more, true, false)
    }

    fn cut(&self, one: usize, more: &[Ipv4Addr], comes: bool, goes: bool) -> io::Result<()> {
        let machine = self.machine(one);
        let others = self.machines.iter().map(|machine| machine.address);
        for address in others.filter(|address| *address != machine.address).chain(more.iter().copied()) {
            machine.drop_packets(comes, goes, address)?;
        }
        Ok(())
    }

    /// All ways are open again.
    pub fn heal(&self) -> io::Result<()> {
        self.machines.iter().try_for_each(|machine| machine.iptables(&["-F"]))
    }
}

impl Drop for VirtualNetwork {
    fn drop(&mut self) {
        for machine in &self.machines {
            // With its namespace a pair of interfaces goes too, once no process is left in it.
            let _ = ip(&format!("netns del {}", machine.namespace));
        }
        let _ = ip(&format!("link del {}", self.bridge));
    }
}

/// Removes what a test left that was killed.
fn sweep() {
    let output = Command::new("ip").args(["netns", "list"]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    for line in text.lines() {
        let namespace = line.split_whitespace().next().unwrap_or_default();
        let owner = namespace.strip_prefix("netstead-").and_then(|rest| rest.split('-').next());
        let Some(owner) = owner.filter(|owner| owner.parse::<u32>().is_ok()) else { continue };
        if Path::new("/proc").join(owner).exists() {
            continue;
        }
        let _ = ip(&format!("netns del {namespace}"));
        let third = namespace.split('-').nth(2).and_then(|third| third.parse::<u8>().ok());
        if let Some(third) = third {
            let bridge = format!("nst{third:02x}-{owner}");
            let _ = ip(&format!("link del {}", bridge.get(..bridge.len().min(15)).unwrap_or(&bridge)));
        }
    }
}

/// Whether no interface has an address of this network.
fn free(host: Ipv4Addr) -> bool {
    let output = Command::new("ip").args(["-4", "-o", "addr", "show"]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    !text.contains(&format!(" {host}/"))
}

fn ip(words: &str) -> io::Result<()> {
    run(Command::new("ip").args(words.split(' ')))
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaches(from: &Machine, to: Ipv4Addr) -> bool {
        // A connection that is refused has arrived.
        let script = format!("exec 3<>/dev/tcp/{to}/9");
        let output = from.command("timeout").args(["0.5", "bash", "-c", &script]).output().unwrap();
        String::from_utf8_lossy(&output.stderr).contains("refused")
    }

    #[test]
    fn networks_of_one_process_are_different() {
        let made: Vec<_> = (0..3)
            .map(|_| std::thread::spawn(|| VirtualNetwork::start(1).map(|lan| (lan.host(), lan))))
            .collect();
        let mut hosts: Vec<_> = made.into_iter().filter_map(|lan| lan.join().unwrap()).collect();
        hosts.sort_by_key(|(host, _)| *host);
        assert!(hosts.windows(2).all(|pair| pair[0].0 != pair[1].0));
    }

    #[test]
    fn machines_reach_each_other_until_they_are_cut_off() {
        let Some(lan) = VirtualNetwork::start(3) else { return };
        let [a, b, c] = [0, 1, 2].map(|number| lan.machine(number).clone());
        assert!(reaches(&a, b.address()) && reaches(&b, a.address()) && reaches(&a, lan.host()));
        lan.cut_off(0, &[]).unwrap();
        assert!(!reaches(&a, b.address()) && !reaches(&c, a.address()));
        assert!(reaches(&b, c.address()) && reaches(&a, lan.host()));
        lan.heal().unwrap();
        assert!(reaches(&a, c.address()));
        let namespaces = || {
            let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let name = a.namespace;
        assert!(namespaces().contains(&name));
        drop(lan);
        assert!(!namespaces().contains(&name));
        let way = Command::new("ip").args(["route", "get", &a.address.to_string()]).output().unwrap();
        assert!(!way.status.success(), "it goes elsewhere: {}", String::from_utf8_lossy(&way.stdout));
    }
}
