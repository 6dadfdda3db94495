//! Records of DNS servers while all of it goes wrong: newer plans only, and in the end everything.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    thread,
    time::Duration,
};

use netstead_client::{
    ClaimQuery,
    types::{ClaimInput, PoolInput},
};
use netstead_testkit::{AdGuardVersion, Bind, FakeAdGuard, PowerDns, TsigKey, history::History, wait_until};
use tokio::task::block_in_place;

use super::{
    Cluster,
    cluster::{PATIENCE, REQUEST},
    node::Node,
    observer::Observer,
    report::Gap,
};
use crate::{
    resolve::{self, Stopwatch},
    scenarios::dns_fixture::Server,
};

pub(crate) const DOMAIN: &str = "home.test";

/// In how much time a server that cannot refuse a late write holds what it should.
const BACK: Duration = Duration::from_secs(10);

/// How long the slow server takes for each record, one call after the other.
const SLOW: Duration = Duration::from_millis(40);

/// The pool of what is claimed beside what the clients claim.
const PROBES: &str = "probes";

/// Servers beside the nodes, which are reached also by a node that is cut off from its store and from the others.
pub(crate) struct DnsServers {
    bind: Bind,
    powerdns: PowerDns,
    /// Takes one record per call, slowly. It has no fence and no marks.
    slow: FakeAdGuard,
}

impl DnsServers {
    /// `None` where they are not installed.
    pub(crate) fn start(host: Ipv4Addr) -> Option<Self> {
        let (bind, powerdns) = (Bind::start_at(host, &[DOMAIN])?, PowerDns::start_at(host, &[DOMAIN])?);
        let slow = FakeAdGuard::start_at(host, AdGuardVersion::V0_107_79);
        slow.http().set_delay(SLOW);
        Some(Self { bind, powerdns, slow })
    }

    /// The configuration of each node about them, and about its own nameserver.
    pub(crate) fn configuration(&self) -> String {
        let TsigKey { name, algorithm, secret } = self.bind.key();
        format!(
            "[dns.own]\ntype = \"builtin\"\ndomains = [\"{DOMAIN}\"]\nreverse = false\n\
             [dns.bind]\ntype = \"rfc2136\"\nservers = [\"{}\"]\ntsig_name = \"{name}\"\n\
             tsig_algorithm = \"{algorithm}\"\ntsig_secret = \"{secret}\"\ndomains = [\"{DOMAIN}\"]\nreverse = false\n\
             [dns.pdns]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"{DOMAIN}\"]\n\
             reverse = false\n\
             [dns.slow]\ntype = \"adguard\"\nurl = \"{}\"\nuser = \"netstead\"\npassword = \"netstead-test\"\n\
             domains = [\"{DOMAIN}\"]\nreverse = false\ninterval = \"5s\"\n",
            self.bind.address(),
            self.powerdns.api_url(),
            self.powerdns.api_key(),
            self.slow.http().url(),
        )
    }

    /// Watches what is applied at BIND, and what each node answers: neither goes back, ever.
    pub(crate) async fn watch(&self, cluster: &Cluster, clock: &Arc<History>) -> DnsObservers {
        let client = cluster.clients(PATIENCE).swap_remove(cluster.leader().await);
        let pool = PoolInput {
            ranges: vec!["10.7.0.1-10.7.0.254".into()],
            domain: Some(DOMAIN.into()),
            ..PoolInput::default()
        };
        client.create_pool(PROBES, &pool).await.unwrap();
        let (address, key) = (self.bind.address(), self.bind.key().clone());
        let bind = Observer::of("BIND", Arc::clone(clock), move || {
            let server = Server::at(address, &key);
            move || server.fence(DOMAIN)
        });
        let nodes: Vec<SocketAddr> = cluster.nodes().iter().map(Node::dns).collect();
        let own = nodes.into_iter().map(|node| {
            Observer::of("a node's nameserver", Arc::clone(clock), move || {
                move || resolve::serial_at(node, DOMAIN).map(|serial| (0, serial.into()))
            })
        });
        DnsObservers { bind, own: own.collect() }
    }

    /// Claims something; how long it takes until PowerDNS has its name.
    pub(crate) async fn usual(&self, cluster: &Cluster) -> Duration {
        self.probe(cluster, "before", PATIENCE).await
    }

    /// The same when a fault is over: it must be there in time, or as much later as it `usually` takes.
    pub(crate) async fn afterwards(&self, cluster: &Cluster, round: usize, usually: Duration) -> Duration {
        self.probe(cluster, &format!("after-{round}"), BACK + usually).await
    }

    async fn probe(&self, cluster: &Cluster, key: &str, patience: Duration) -> Duration {
        let clients = cluster.clients(REQUEST);
        let claimed = cluster.wait_for("something can be claimed", async || {
            for client in &clients {
                if let Ok((claim, _)) = client.claim(PROBES, key, &ClaimInput::default()).await {
                    return Some(claim);
                }
            }
            None
        });
        let address = claimed.await.address.unwrap();
        let (name, begun) = (format!("{key}.{DOMAIN}"), Stopwatch::start());
        let right = |answer: &resolve::Answer| answer.values.first() == Some(&address);
        let look = || resolve::a_at(self.powerdns.address(), &name).filter(right);
        let there = block_in_place(|| wait_until(patience, look));
        assert!(there.is_some(), "{name} is not at PowerDNS {patience:?} after it was claimed");
        begun.elapsed()
    }

    /// Every server and every node holds the names of all claims and nothing else.
    pub(crate) async fn judge(&self, cluster: &Cluster) {
        let client = cluster.clients(PATIENCE).swap_remove(cluster.leader().await);
        let claims = client.all(ClaimQuery::default()).await.unwrap();
        let mut wanted: Vec<String> = claims
            .iter()
            .map(|claim| format!("{}.{DOMAIN} A {}", claim.key, claim.address.as_deref().unwrap()))
            .collect();
        wanted.sort();
        assert!(!wanted.is_empty());
        let servers = [
            ("BIND", self.bind.address(), self.bind.key().clone()),
            ("PowerDNS", self.powerdns.address(), self.powerdns.key().clone()),
        ];
        let rewrites = || {
            let all = self.slow.rewrites().into_iter();
            let mut all: Vec<String> = all.map(|(name, answer, _)| format!("{name} A {answer}")).collect();
            all.sort();
            all
        };
        // At most everything is to be removed and everything to be added.
        let calls = u32::try_from(rewrites().len() + wanted.len()).unwrap();
        let same =
            block_in_place(|| wait_until(BACK + 2 * SLOW * calls, || (rewrites() == wanted).then_some(())));
        assert!(same.is_some(), "the slow server wanted {wanted:#?}, got {:#?}", rewrites());
        let nodes: Vec<SocketAddr> = cluster.nodes().iter().map(Node::dns).collect();
        // On a thread of its own: what looks at zones blocks.
        let looked = thread::spawn(move || {
            for (name, address, key) in servers {
                let server = Server::at(address, &key);
                let same = wait_until(BACK, || (server.zone(DOMAIN).plain() == wanted).then_some(()));
                assert!(same.is_some(), "{name} wanted {wanted:#?}, got {:#?}", server.zone(DOMAIN).plain());
            }
            for (node, claim) in nodes.iter().flat_map(|node| claims.iter().map(move |claim| (node, claim))) {
                let name = format!("{}.{DOMAIN}", claim.key);
                let right = |answer: &resolve::Answer| answer.values.first() == claim.address.as_ref();
                let same = wait_until(BACK, || resolve::a_at(*node, &name).filter(right));
                assert!(same.is_some(), "{name} is not {:?} at {node}", claim.address);
            }
        });
        let looked = tokio::task::spawn_blocking(move || looked.join()).await.unwrap();
        looked.expect("no record is missing");
    }
}

/// Observers of DNS servers while the rest happens.
pub(crate) struct DnsObservers {
    bind: Observer,
    own: Vec<Observer>,
}

impl DnsObservers {
    /// How long after each fault something new was applied at BIND. What the old leader had on its way does not count.
    pub(crate) fn measure(&self, gaps: &mut [Gap]) {
        for gap in gaps {
            let seen = block_in_place(|| wait_until(BACK, || self.bind.first_after(gap.at, gap.epoch)));
            let seen = seen.unwrap_or_else(|| panic!("nothing new was applied at BIND after {gap:?}"));
            gap.dns = Some(seen.saturating_sub(gap.at));
        }
    }

    /// Ends them and returns what they saw, as a sentence.
    pub(crate) fn end(self) -> String {
        let pause = self.bind.longest_pause();
        let at_bind = self.bind.end();
        let nodes = self.own.len();
        let own: usize = self.own.into_iter().map(Observer::end).sum();
        assert!(at_bind > 5 && own > 5 * nodes, "{at_bind} and {own} were seen: this tests nothing");
        format!(
            "{at_bind} generations at BIND and {own} serials on the nodes, never back; DNS stood still for {pause:.1?} at most"
        )
    }
}
