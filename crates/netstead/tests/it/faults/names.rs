//! What DNS servers are told while all of it goes wrong: newer plans only, and in the end everything.

use std::{
    net::{Ipv4Addr, SocketAddr},
    thread,
    time::Duration,
};

use netstead_client::ClaimQuery;
use netstead_testkit::{Bind, PowerDns, TsigKey, until};

use super::{
    Cluster,
    cluster::{NODES, PATIENCE},
    node::Node,
    observer::Observer,
};
use crate::{
    resolve::{self, Stopwatch},
    scenarios::lab::Server,
};

pub(crate) const DOMAIN: &str = "home.test";

/// In how much time a server that cannot refuse a late write holds what it should.
const BACK: Duration = Duration::from_secs(10);

/// Servers beside the nodes, which are reached also by a node that is cut off from its store and from the others.
pub(crate) struct Names {
    bind: Bind,
    powerdns: PowerDns,
}

impl Names {
    /// `None` where they are not installed.
    pub(crate) fn start(host: Ipv4Addr) -> Option<Self> {
        Some(Self { bind: Bind::start_at(host, &[DOMAIN])?, powerdns: PowerDns::start_at(host, &[DOMAIN])? })
    }

    /// What each node is told of them, and of its own nameserver.
    pub(crate) fn configuration(&self) -> String {
        let TsigKey { name, algorithm, secret } = self.bind.key();
        format!(
            "[dns.own]\ntype = \"builtin\"\ndomains = [\"{DOMAIN}\"]\nreverse = false\n\
             [dns.bind]\ntype = \"rfc2136\"\nservers = [\"{}\"]\ntsig_name = \"{name}\"\n\
             tsig_algorithm = \"{algorithm}\"\ntsig_secret = \"{secret}\"\ndomains = [\"{DOMAIN}\"]\nreverse = false\n\
             [dns.pdns]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"{DOMAIN}\"]\n\
             reverse = false\n",
            self.bind.address(),
            self.powerdns.api_url(),
            self.powerdns.api_key(),
        )
    }

    /// Watches what is applied at BIND, and what each node answers: neither goes back, ever.
    pub(crate) fn watch(&self, cluster: &Cluster) -> Watched {
        let watch = Stopwatch::start();
        let (address, key) = (self.bind.address(), self.bind.key().clone());
        let bind = Observer::of("BIND", watch, move || {
            let server = Server::at(address, &key);
            move || server.fence(DOMAIN)
        });
        let nodes: Vec<SocketAddr> = cluster.nodes().iter().map(Node::dns).collect();
        let own = nodes.into_iter().map(|node| {
            Observer::of("a node's nameserver", watch, move || {
                move || resolve::serial_at(node, DOMAIN).map(|serial| (0, serial.into()))
            })
        });
        Watched { bind, own: own.collect() }
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
        let nodes: Vec<SocketAddr> = cluster.nodes().iter().map(Node::dns).collect();
        // On a thread of its own: what looks at zones blocks.
        let looked = thread::spawn(move || {
            for (name, address, key) in servers {
                let server = Server::at(address, &key);
                let same = until(BACK, || (server.zone(DOMAIN).plain() == wanted).then_some(()));
                assert!(same.is_some(), "{name} wanted {wanted:#?}, got {:#?}", server.zone(DOMAIN).plain());
            }
            for (node, claim) in nodes.iter().flat_map(|node| claims.iter().map(move |claim| (node, claim))) {
                let name = format!("{}.{DOMAIN}", claim.key);
                let right = |answer: &resolve::Answer| answer.values.first() == claim.address.as_ref();
                let same = until(BACK, || resolve::a_at(*node, &name).filter(right));
                assert!(same.is_some(), "{name} is not {:?} at {node}", claim.address);
            }
        });
        let looked = tokio::task::spawn_blocking(move || looked.join()).await.unwrap();
        looked.expect("no record is missing");
    }
}

/// Who looks while the rest happens.
pub(crate) struct Watched {
    bind: Observer,
    own: Vec<Observer>,
}

impl Watched {
    /// What they saw, as a sentence.
    pub(crate) fn end(self) -> String {
        let pause = self.bind.longest_pause();
        let at_bind = self.bind.end();
        let own: usize = self.own.into_iter().map(Observer::end).sum();
        assert!(
            at_bind > 5 && own > 5 * usize::from(NODES),
            "{at_bind} and {own} were seen: this tests nothing"
        );
        format!(
            "{at_bind} generations at BIND and {own} serials on the nodes, never back; DNS stood still for {pause:.1?} at most"
        )
    }
}
