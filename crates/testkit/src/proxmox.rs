//! [`FakePve`]: a Proxmox VE cluster that only pretends, as its API shows it in 8.x and 9.x.
//!
//! It refuses, delays and drifts as the real one does: 401 after a delay and without a body, error texts in the status line,
//! 500 for a silent agent, an error inside of a 200, 595 for a dead node, 501 for a chunked body, `data: null` for a stopped
//! container, numbers that are text.

mod answers;
mod guest;
mod lists;
mod rights;
mod shapes;
mod task;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use self::{
    guest::{PveAgent, PveGuest, PveGuestKind, PveInterface},
    rights::PveRights,
    task::PveTask,
};
use crate::{FakeHttp, HttpRequest, HttpResponse};

/// A release of Proxmox VE, as far as its API differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PveVersion {
    /// 8.4: agent reads need `VM.Monitor`, and there is no list of the ports of a bridge.
    Eight,
    /// 9.1: agent reads need `VM.GuestAgent.Audit`.
    Nine,
}

/// The cluster behind the API. A test changes it as an operator would.
#[derive(Debug)]
pub struct PveCluster {
    pub version: PveVersion,
    /// None for a machine that is in no cluster.
    pub name: Option<String>,
    pub quorate: bool,
    /// Each node, and whether it is online.
    pub nodes: BTreeMap<String, bool>,
    pub guests: BTreeMap<u32, PveGuest>,
    /// `USER@REALM!ID=UUID`, and what the token may do.
    pub tokens: BTreeMap<String, PveRights>,
    /// User and password, for tickets.
    pub users: BTreeMap<String, (String, PveRights)>,
    /// Tickets that count.
    pub tickets: BTreeMap<String, PveRights>,
    /// Vnets of the SDN: zone and VLAN tag.
    pub vnets: BTreeMap<String, (String, Option<u16>)>,
    /// Zones of the SDN and their type.
    pub zones: BTreeMap<String, String>,
    /// The network interfaces of every node, as `/nodes/NODE/network` shows them.
    pub network: Vec<serde_json::Value>,
    /// Addresses that EVPN learned: vnet, MAC, address.
    pub mac_vrf: Vec<(String, String, String)>,
    pub tasks: Vec<PveTask>,
    /// Pools without a guest; the others follow from the guests.
    pub empty_pools: BTreeSet<String>,
    /// How long a refused login takes.
    pub refusal_delay: Duration,
    /// How long a hung agent takes.
    pub hang: Duration,
    /// Nodes that are online and answer only after so long.
    pub stalled: BTreeMap<String, Duration>,
    /// Every call, as `GET /path`, since [`PveCluster::calls`] was last called.
    calls: Vec<String>,
    logins: u32,
}

/// A running fake. Each entry is the API of one node, and all show the same cluster.
pub struct FakePve {
    cluster: Arc<Mutex<PveCluster>>,
    entries: Vec<FakeHttp>,
}

impl FakePve {
    /// The token that [`FakePve::start`] knows, with the role `PVEAuditor` and, in 8.x, `VM.Monitor`.
    pub const TOKEN: &'static str = "netstead@pve!dns=11111111-2222-4333-8444-555555555555";

    /// Starts a cluster `lab` of these nodes, without guests.
    pub fn start(version: PveVersion, nodes: &[&str]) -> Self {
        let mut tokens = BTreeMap::new();
        tokens.insert(Self::TOKEN.to_owned(), PveRights::reader(version));
        let cluster = PveCluster {
            version,
            name: Some("lab".into()),
            quorate: true,
            nodes: nodes.iter().map(|node| ((*node).to_owned(), true)).collect(),
            guests: BTreeMap::new(),
            tokens,
            users: BTreeMap::new(),
            tickets: BTreeMap::new(),
            vnets: BTreeMap::new(),
            zones: BTreeMap::new(),
            network: lists::plain_network(),
            mac_vrf: Vec::new(),
            tasks: Vec::new(),
            empty_pools: BTreeSet::new(),
            refusal_delay: Duration::from_secs(3),
            hang: Duration::from_secs(8),
            stalled: BTreeMap::new(),
            calls: Vec::new(),
            logins: 0,
        };
        let mut fake = Self { cluster: Arc::new(Mutex::new(cluster)), entries: Vec::new() };
        fake.add_entry();
        fake
    }

    /// Another node whose API can be asked. Returns its number.
    pub fn add_entry(&mut self) -> usize {
        let cluster = Arc::clone(&self.cluster);
        self.entries.push(FakeHttp::start(move |request| answer(&cluster, request)));
        self.entries.len() - 1
    }

    /// The same over TLS, with a certificate that it signed itself.
    pub fn add_tls_entry(&mut self) -> usize {
        let cluster = Arc::clone(&self.cluster);
        self.entries.push(FakeHttp::start_tls(move |request| answer(&cluster, request)));
        self.entries.len() - 1
    }

    /// The address of an entry.
    ///
    /// # Panics
    ///
    /// If there is no such entry.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn entry(&self, number: usize) -> &FakeHttp {
        self.entries.get(number).unwrap_or_else(|| panic!("the fake has no entry {number}"))
    }

    pub fn url(&self) -> String {
        self.entry(0).url()
    }

    /// The cluster, to look at and to change.
    pub fn cluster(&self) -> MutexGuard<'_, PveCluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a guest.
    pub fn add(&self, guest: PveGuest) {
        self.cluster().guests.insert(guest.vmid, guest);
    }

    /// Changes a guest.
    ///
    /// # Panics
    ///
    /// If there is no such guest.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn change(&self, vmid: u32, change: impl FnOnce(&mut PveGuest)) {
        let mut cluster = self.cluster();
        let guest = cluster.guests.get_mut(&vmid).unwrap_or_else(|| panic!("there is no guest {vmid}"));
        change(guest);
    }

    /// Deletes a guest. As in Proxmox VE, its privileges and its place in a pool end with it.
    pub fn destroy(&self, vmid: u32) {
        let mut cluster = self.cluster();
        cluster.guests.remove(&vmid);
        let path = format!("/vms/{vmid}");
        cluster.tokens.values_mut().for_each(|rights| rights.remove(&path));
    }

    /// All calls since this was last called, as `GET /path`.
    pub fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.cluster().calls)
    }
}

impl fmt::Debug for FakePve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakePve").field("entries", &self.entries).finish_non_exhaustive()
    }
}

/// Answers one request. The lock is not held while an answer is delayed.
fn answer(cluster: &Mutex<PveCluster>, request: &HttpRequest) -> HttpResponse {
    let (response, delay) = {
        let mut cluster = cluster.lock().unwrap_or_else(PoisonError::into_inner);
        cluster.calls.push(format!("{} {}", request.method, request.path));
        cluster.answer(request)
    };
    std::thread::sleep(delay);
    response
}
