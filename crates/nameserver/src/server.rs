//! [`NameServer`]: the running nameserver, with its sockets and tasks.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    thread,
    time::Duration,
};

use netstead_model::{Address, Cidr, Clock, Name};
use netstead_store::{Store, StoreError};
use netstead_wire::{Connections, QueryCounts};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::{notify::Notifier, options::Options, tcp, udp, zone_watch::ZoneWatcher, zones::Zones};

/// How often a free port is looked for that UDP and TCP can both have.
const TRIES: usize = 16;

/// Why the nameserver did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    #[error("the nameserver cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the zones cannot be read")]
    Store(#[from] StoreError),
}

/// State that all sockets share.
#[derive(Debug)]
pub(crate) struct SocketContext {
    pub(crate) zones: Arc<Zones>,
    pub(crate) connections: Connections,
    pub(crate) idle: Duration,
    pub(crate) queries: QueryCounts,
    transfer_to: Vec<Cidr>,
}

impl SocketContext {
    pub(crate) fn may_transfer(&self, peer: IpAddr) -> bool {
        let peer = Address::from(peer.to_canonical());
        self.transfer_to.iter().any(|network| network.contains(peer))
    }
}

/// Answers from the zones in the store until [`NameServer::shutdown`], or until it is dropped.
#[derive(Debug)]
pub struct NameServer {
    addresses: Vec<SocketAddr>,
    zones: Arc<Zones>,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl NameServer {
    /// Loads all zones and starts to answer. From here on the zones follow the store by themselves.
    pub async fn start(
        store: Arc<dyn Store>,
        _clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, StartError> {
        let stop = CancellationToken::new();
        let zones = Arc::new(Zones::new());
        let host = options.hostname.clone().unwrap_or_else(default_host);
        let notifier = Notifier::start(&options.notify, &stop);
        let mut follower = ZoneWatcher::new(store, Arc::clone(&zones), host, notifier);
        let watch = follower.begin().await?;
        let shared = Arc::new(SocketContext {
            zones: Arc::clone(&zones),
            connections: options.connections.clone(),
            idle: options.idle,
            queries: options.queries.clone(),
            transfer_to: options.transfer_to.clone(),
        });
        let mut server = Self { addresses: Vec::new(), zones, stop, tasks: Vec::new(), threads: Vec::new() };
        for address in &options.listen {
            server
                .listen(*address, &shared, options.threads.max(1))
                .map_err(|source| StartError::Listen { address: *address, source })?;
        }
        server.tasks.push(tokio::spawn(follower.run(watch, server.stop.clone())));
        info!(addresses = ?server.addresses, "Nameserver listens.");
        Ok(server)
    }

    fn listen(&mut self, address: SocketAddr, shared: &Arc<SocketContext>, threads: usize) -> io::Result<()> {
        let (listener, first) = bind_both(address)?;
        let address = first.local_addr()?;
        let mut sockets = vec![first];
        for _ in 1..threads {
            sockets.push(udp::bind(address)?);
        }
        for socket in sockets {
            let (shared, stop) = (Arc::clone(shared), self.stop.clone());
            let serve = move || {
                if let Err(error) = udp::serve(socket, &shared, &stop) {
                    error!(%address, %error, "A thread of the nameserver cannot run.");
                }
            };
            self.threads.push(thread::Builder::new().name("dns".into()).spawn(serve)?);
        }
        let serve = tcp::serve(listener, Arc::clone(shared), self.stop.clone());
        self.tasks.push(tokio::spawn(serve));
        self.addresses.push(address);
        Ok(())
    }

    /// The first address it listens on, with the port it got.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.addresses.first().copied()
    }

    /// All addresses it listens on.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The serial of a zone as it is answered now; none if it is not answered for.
    pub fn serial(&self, zone: &Name) -> Option<u32> {
        self.zones.load().get(&zone.to_wire()).map(|zone| zone.serial)
    }

    /// How many zones it answers for.
    pub fn zone_count(&self) -> usize {
        self.zones.load().values().count()
    }

    /// Stops answering and waits until all sockets are closed.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        for task in std::mem::take(&mut self.tasks) {
            let _ = task.await;
        }
        let threads = std::mem::take(&mut self.threads);
        let _ =
            tokio::task::spawn_blocking(move || threads.into_iter().for_each(|thread| drop(thread.join())))
                .await;
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn default_host() -> Name {
    // A text that always parses; the name of the root's servers would be the only alternative.
    "ns.invalid"
        .parse()
        .unwrap_or_else(|_| netstead_model::reverse_name(std::net::Ipv4Addr::LOCALHOST.into()))
}

/// A UDP socket and a TCP listener on one port.
fn bind_both(address: SocketAddr) -> io::Result<(tokio::net::TcpListener, std::net::UdpSocket)> {
    let mut tries = 0;
    loop {
        let listener = tcp::bind(address)?;
        match udp::bind(listener.local_addr()?) {
            Ok(socket) => return Ok((listener, socket)),
            Err(error) if address.port() != 0 || tries >= TRIES => return Err(error),
            Err(_) => tries += 1,
        }
    }
}
