//! A cluster that only pretends, in a process of its own: what it costs to pretend is not what is measured.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::Ipv4Addr,
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    time::Duration,
};

use netstead_testkit::{FakePve, PveAgent, PveGuest, PveVersion};

/// The argument with which this program is the cluster.
pub const FLAG: &str = "--cluster";
pub const NODES: u32 = 20;
/// The number of the first guest.
pub const FIRST: u32 = 1000;

/// A guest's name without its domain.
pub fn name(vmid: u32) -> String {
    format!("m{vmid}")
}

/// The address a guest has before anything changes.
pub fn address(vmid: u32) -> Ipv4Addr {
    let [.., high, middle, low] = vmid.to_be_bytes();
    Ipv4Addr::new(10, 64 + high, middle, low)
}

/// The cluster as the bench sees it. It ends with its value.
pub struct Cluster {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    pub url: String,
}

/// Calls since they were last counted.
#[derive(Debug, Default)]
pub struct Calls {
    /// Looks: lists of all guests.
    pub looks: u32,
    pub all: u32,
    /// The most between one list and the next.
    pub most: u32,
}

impl Cluster {
    /// A cluster of so many guests, of which `hung` have an agent that hangs.
    pub fn start(guests: u32, hung: u32) -> Self {
        let own = std::env::current_exe().expect("the path of this program");
        let mut command = Command::new(own);
        command.args([FLAG, &guests.to_string(), &hung.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let orders = child.stdin.take().expect("its input");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        let mut cluster = Self { child, orders, answers, url: String::new() };
        cluster.url = cluster.answer();
        cluster
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        line.trim().to_owned()
    }

    fn order(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").expect("a running cluster");
        self.answer()
    }

    /// The calls since this was last called.
    pub fn calls(&mut self) -> Calls {
        let told = self.order("calls");
        let mut numbers = told.split(' ').filter_map(|number| number.parse().ok());
        let mut next = || numbers.next().expect("a number");
        Calls { looks: next(), all: next(), most: next() }
    }

    /// Starts a guest anew with another address.
    pub fn restart(&mut self, vmid: u32, address: Ipv4Addr) {
        self.order(&format!("restart {vmid} {address}"));
    }

    /// Gives a guest another address without any other sign.
    pub fn readdress(&mut self, vmid: u32, address: Ipv4Addr) {
        self.order(&format!("readdress {vmid} {address}"));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Is the cluster, until its input ends.
pub fn serve(arguments: &[String]) -> ExitCode {
    let number = |place: usize| arguments.get(place).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    let (guests, hung) = (number(0), number(1));
    let nodes: Vec<String> = (0..NODES).map(|number| format!("pve{number:02}")).collect();
    let fake = FakePve::start(PveVersion::Nine, &nodes.iter().map(String::as_str).collect::<Vec<_>>());
    fake.cluster().hang = Duration::from_secs(8);
    for vmid in FIRST..FIRST + guests {
        let node = &nodes[(vmid % NODES) as usize];
        let agent = if hangs(vmid, guests, hung) { PveAgent::Hung } else { PveAgent::Answers };
        let guest = PveGuest::machine(vmid, node, &name(vmid), &format!("{}/10", address(vmid)));
        fake.add(guest.with("tags", "bench;linux").with_agent(agent));
    }
    println!("{}", fake.url());
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["restart", vmid, address] => fake.change(vmid.parse().expect("a number"), |guest| {
                guest.uptime = guest.uptime.saturating_sub(1);
                guest.interfaces[0].addresses = vec![format!("{address}/10")];
            }),
            ["readdress", vmid, address] => fake.change(vmid.parse().expect("a number"), |guest| {
                guest.interfaces[0].addresses = vec![format!("{address}/10")];
            }),
            _ => {
                println!("{}", counted(&fake.calls()));
                continue;
            }
        }
        println!("done");
    }
    ExitCode::SUCCESS
}

/// Whether the agent of this guest hangs, if so many of all do: as many on every node.
pub fn hangs(vmid: u32, guests: u32, hung: u32) -> bool {
    hung > 0 && (vmid - FIRST) / NODES % (guests / hung) == 1
}

/// Looks, calls in all, and the most calls between two lists.
fn counted(calls: &[String]) -> String {
    let is_list = |call: &&String| call.ends_with("/cluster/resources");
    let looks = calls.iter().filter(is_list).count();
    let (mut most, mut some) = (0, 0);
    for call in calls {
        some = if is_list(&call) { 1 } else { some + 1 };
        most = most.max(some);
    }
    format!("{looks} {} {most}", calls.len())
}
