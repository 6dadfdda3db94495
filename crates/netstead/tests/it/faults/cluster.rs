//! The nodes and what their store stands on: three of them, or one that has its store on its own disk.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use netstead_client::{Client, types::TokenInput};
use netstead_testkit::{Etcd, EtcdHost, LossyProxy, Machine, RequestFilter, Tmpfs, VirtualNetwork};
use tokio::time::{sleep, timeout};

use super::{Fault, fault_effects::get, injection::AHEAD, node::Node};
use crate::authority::Authority;

const NODES: u8 = 3;

/// How long anything may take that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The time that a request of the tests themselves may take.
pub(crate) const REQUEST: Duration = Duration::from_secs(5);

/// The store below the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backing {
    /// An etcd; with three members, one on the machine of each node.
    Etcd { members: usize },
    /// The nodes keep it themselves, and know each other by certificates or by a secret.
    Raft { certificates: bool },
    /// The only node keeps it on its disk.
    Local,
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Etcd { members } => write!(f, "etcd of {members}"),
            Self::Raft { certificates: false } => f.write_str("raft"),
            Self::Raft { certificates: true } => f.write_str("raft with certificates"),
            Self::Local => f.write_str("local"),
        }
    }
}

impl Backing {
    /// Of an etcd below the nodes.
    pub(crate) fn members(self) -> usize {
        match self {
            Self::Etcd { members } => members,
            Self::Raft { .. } | Self::Local => 0,
        }
    }

    pub(crate) fn nodes(self) -> u8 {
        match self {
            Self::Etcd { .. } | Self::Raft { .. } => NODES,
            Self::Local => 1,
        }
    }
}

/// Everything that runs. Nodes that end are started again until the fault says otherwise.
#[derive(Debug)]
pub(crate) struct Cluster {
    nodes: Arc<Mutex<Vec<Node>>>,
    watching: Option<JoinHandle<()>>,
    over: Arc<AtomicBool>,
    token: Option<String>,
    pub(crate) etcd: Option<Etcd>,
    pub(crate) ways: Vec<LossyProxy>,
    pub(crate) disk: Option<Tmpfs>,
    /// Last: processes end before their network.
    pub(crate) lan: VirtualNetwork,
}

impl Cluster {
    /// Starts everything on this network, with more in the configuration of all nodes; `None` where this machine cannot.
    pub(crate) fn start(lan: VirtualNetwork, backing: Backing, fault: Fault, more: &str) -> Option<Self> {
        let disk = match (backing, fault) {
            (Backing::Etcd { members: 3 } | Backing::Raft { .. } | Backing::Local, Fault::DiskFull) => {
                Some(Tmpfs::mount(400 << 20)?)
            }
            _ => None,
        };
        let etcd = match backing {
            Backing::Etcd { members } => Some(start_etcd(&lan, members, fault, disk.as_ref())?),
            Backing::Raft { .. } | Backing::Local => None,
        };
        let mut ways = Vec::new();
        let machines = || lan.machines().iter().take(backing.nodes().into());
        let mut nodes: Vec<Node> = machines().cloned().map(Node::new).collect();
        let addresses: Vec<Ipv4Addr> = machines().map(Machine::address).collect();
        let authority = Authority::new();
        for (number, node) in nodes.iter_mut().enumerate() {
            let store = match (&etcd, backing) {
                (Some(etcd), _) => in_etcd(etcd.endpoints(), number, |url| match fault {
                    Fault::AnswersLost => lossy(&mut ways, lan.host(), &url, is_commit),
                    _ => url,
                }),
                (None, Backing::Local) => {
                    if fault == Fault::AnswersLost {
                        // Between the store and its node nothing can be lost, so it is lost between the node and its callers.
                        node.serve_through(lossy(&mut ways, lan.host(), &node.url(), is_change));
                    }
                    "[store]\ntype = \"local\"\npath = \"data\"\n".to_owned()
                }
                (None, _) => by_raft(&addresses, number) + &security(node, backing, &authority),
            };
            node.configure(&format!("{store}{more}"));
            if let (Backing::Raft { .. } | Backing::Local, 0, Some(disk)) = (backing, number, &disk) {
                node.put_data_on(disk.path());
            }
        }
        if fault == Fault::WrongClock {
            nodes.iter_mut().skip(1).for_each(|node| node.set_clock(AHEAD));
        }
        let nodes = Arc::new(Mutex::new(nodes));
        let over = Arc::new(AtomicBool::new(false));
        let watching = thread::spawn({
            let (nodes, over) = (Arc::clone(&nodes), Arc::clone(&over));
            move || {
                while !over.load(Ordering::Relaxed) {
                    nodes.lock().unwrap().iter_mut().for_each(Node::look_after);
                    thread::sleep(Duration::from_millis(100));
                }
            }
        });
        Some(Self { nodes, watching: Some(watching), over, token: None, etcd, ways, disk, lan })
    }

    pub(crate) fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap()
    }

    /// How many nodes there are.
    pub(crate) fn count(&self) -> usize {
        self.nodes().len()
    }

    /// Starts the nodes, the first one first, so that it leads; returns when all serve.
    pub(crate) async fn begin(&mut self) {
        self.nodes()[0].start();
        // Nodes that keep their store themselves wait for each other.
        if self.etcd.is_some() {
            self.leader().await;
        }
        self.nodes().iter_mut().skip(1).for_each(Node::start);
        let leader = self.leader().await;
        let first = self.nodes()[leader].token();
        let admin = self.nodes()[leader].client(first.as_deref(), REQUEST);
        let token = TokenInput { subject: "load".into(), role: "admin".into(), ..TokenInput::default() };
        self.token = admin.create_token(&token).await.unwrap().secret;
        // All nodes serve and know the token before a client uses it: a client that gets no answer goes to another node, and stays there.
        let clients = self.clients(REQUEST);
        let known = async {
            for client in clients {
                while client.status().await.is_err() {
                    sleep(Duration::from_millis(50)).await;
                }
            }
        };
        timeout(PATIENCE, known).await.expect("all serve, and know the token");
    }

    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().expect("the cluster has begun")
    }

    /// A client for each node.
    pub(crate) fn clients(&self, patience: Duration) -> Vec<Client> {
        self.nodes().iter().map(|node| node.client(Some(self.token()), patience)).collect()
    }

    /// Waits until one leads; which it is.
    pub(crate) async fn leader(&self) -> usize {
        self.wait_for("somebody leads", async || self.leader_now().await).await
    }

    /// The one that says so itself. Two may for a moment; then it is not known.
    pub(crate) async fn leader_now(&self) -> Option<usize> {
        let nodes: Vec<SocketAddr> = self.nodes().iter().map(Node::api).collect();
        let said = futures::future::join_all(nodes.into_iter().map(|node| get(node, "/readyz", ""))).await;
        let leads = |answer: &str| answer.starts_with("HTTP/1.1 200") && !answer.contains("following");
        let leading: Vec<usize> = said
            .iter()
            .enumerate()
            .filter(|(_, answer)| answer.as_deref().is_some_and(leads))
            .map(|(number, _)| number)
            .collect();
        match leading[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    /// One that does not lead.
    pub(crate) async fn follower(&self) -> usize {
        (self.leader().await + 1) % self.count()
    }

    /// Where the store is beside the machines of the nodes.
    pub(crate) fn beside(&self) -> Vec<Ipv4Addr> {
        self.lan.machines().iter().skip(self.count()).map(Machine::address).collect()
    }

    /// Which election of etcd's was the last one.
    pub(crate) fn election(&self) -> Option<u64> {
        self.etcd.as_ref().and_then(Etcd::election)
    }

    pub(crate) fn etcd(&mut self) -> &mut Etcd {
        self.etcd.as_mut().expect("the store is an etcd")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(watching) = self.watching.take() {
            let _ = watching.join();
        }
        // A node that stands still does not end by itself.
        if let Ok(mut nodes) = self.nodes.lock() {
            nodes.clear();
        }
        self.etcd = None;
    }
}

fn start_etcd(lan: &VirtualNetwork, members: usize, fault: Fault, disk: Option<&Tmpfs>) -> Option<Etcd> {
    // One alone is on a machine of its own, so that a node can be cut off from it.
    let first = if members == 1 { NODES.into() } else { 0 };
    let mut places: Vec<EtcdHost> = lan
        .machines()
        .iter()
        .skip(first)
        .take(members)
        .map(|machine| EtcdHost { machine: Some(machine.clone()), ..EtcdHost::default() })
        .collect();
    if let (Some(disk), Some(place)) = (disk, places.first_mut()) {
        place.disk = Some(disk.path().to_owned());
    }
    let mut flags = vec!["--pre-vote", "--auto-compaction-mode=revision", "--auto-compaction-retention=1000"];
    if members == 1 && fault == Fault::DiskFull {
        flags.push("--quota-backend-bytes=33554432");
    }
    Etcd::start_at(&places, "http", &flags)
}

fn in_etcd(endpoints: Vec<String>, number: usize, way: impl FnMut(String) -> String) -> String {
    let mut endpoints: Vec<String> = endpoints.into_iter().map(way).collect();
    // Each asks its own machine first.
    let own = number % endpoints.len();
    endpoints.rotate_left(own);
    format!("[store]\ntype = \"etcd\"\nendpoints = {endpoints:?}\n")
}

fn by_raft(addresses: &[Ipv4Addr], number: usize) -> String {
    let place = |address: &Ipv4Addr| format!("{address}:5302");
    let own = place(&addresses[number]);
    let peers: Vec<String> = addresses.iter().map(place).filter(|peer| *peer != own).collect();
    format!("[store]\ntype = \"raft\"\npath = \"data\"\nlisten = \"{own}\"\npeers = {peers:?}\n")
}

/// By what the other nodes know this one.
fn security(node: &Node, backing: Backing, authority: &Authority) -> String {
    if backing == (Backing::Raft { certificates: true }) {
        return authority.equip(&node.api().ip().to_string(), node.home(), authority);
    }
    "secret = \"0123456789abcdef0123456789abcdef\"\n".to_owned()
}

fn lossy(ways: &mut Vec<LossyProxy>, host: Ipv4Addr, url: &str, loses: RequestFilter) -> String {
    let server = url.strip_prefix("http://").unwrap().parse().unwrap();
    let way = LossyProxy::before(host.into(), server, loses).unwrap();
    let url = format!("http://{}", way.address());
    ways.push(way);
    url
}

/// A leader's commit to etcd: it names the head and the epoch.
fn is_commit(bytes: &[u8]) -> bool {
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    has(b"ledger/head") && has(b"meta/epoch")
}

/// A request to the API that changes a claim.
fn is_change(bytes: &[u8]) -> bool {
    let of_pool =
        |method: &[u8]| bytes.strip_prefix(method).is_some_and(|rest| rest.starts_with(b"/api/v1/pools/"));
    of_pool(b"PUT ") || of_pool(b"DELETE ")
}
