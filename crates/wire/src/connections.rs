//! How many connections a listener has, in all and of one peer.
//!
//! A connection is *idle* from its start to its first request, and between requests. When there is no room for a new
//! one, the connection that has been idle longest is closed for it: of the peer that has too many, or of all. So a peer
//! that opens connections and says nothing takes no place from one that asks. A connection with a request in progress is
//! never closed for another; when all are like that, the new one is refused.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// The most connections of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub in_all: usize,
    /// Of one address. A reverse proxy is one address with the connections of many clients.
    pub per_peer: usize,
}

impl ConnectionLimits {
    /// So many in all, and a quarter of them for one peer: it takes more than one address to keep all places.
    pub fn new(in_all: usize) -> Self {
        let in_all = in_all.max(1);
        Self { in_all, per_peer: in_all.div_ceil(4) }
    }
}

/// Why a new connection is closed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("its peer has as many connections as one may have, and each has a request in progress")]
    OfThisPeer,
    #[error("there are as many connections as there may be, and each has a request in progress")]
    InAll,
}

/// How many connections are open, and how many were ended before their time since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    pub open: usize,
    /// Closed while idle, for a new one.
    pub displaced: u64,
    /// Closed at once: all others had requests in progress.
    pub refused: u64,
    /// Closed because the first request took too long.
    pub silent: u64,
}

/// The connections of a listener. Clones count the same ones.
#[derive(Debug, Clone)]
pub struct Connections {
    limits: ConnectionLimits,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    open: BTreeMap<u64, Entry>,
    /// By the moment since when, then by number: the first has been idle longest.
    idle: BTreeSet<(u64, u64)>,
    per_peer: HashMap<IpAddr, usize>,
    /// Counts moments: it goes up whenever a connection becomes idle.
    moment: u64,
    last_number: u64,
    displaced: u64,
    refused: u64,
    silent: u64,
}

#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    requests: usize,
    idle_since: u64,
    close: CancellationToken,
}

/// A connection that was admitted. It gives its place back when it is dropped.
#[derive(Debug)]
pub struct ActiveConnection {
    number: u64,
    peer: IpAddr,
    close: CancellationToken,
    connections: Connections,
}

/// A request in progress: while this lives its connection is not idle.
#[derive(Debug)]
pub struct RequestInProgress {
    number: u64,
    connections: Connections,
}

impl Connections {
    pub fn new(limits: ConnectionLimits) -> Self {
        Self { limits, state: Arc::default() }
    }

    pub fn limits(&self) -> ConnectionLimits {
        self.limits
    }

    pub fn counts(&self) -> ConnectionCounts {
        let state = self.lock();
        let State { displaced, refused, silent, .. } = *state;
        ConnectionCounts { open: state.open.len(), displaced, refused, silent }
    }

    /// Takes a new connection in, if need be in the place of the one that has been idle longest.
    pub fn admit(&self, peer: IpAddr) -> Result<ActiveConnection, Refused> {
        let peer = peer.to_canonical();
        let mut state = self.lock();
        if let Err(refused) = state.make_room(peer, self.limits) {
            state.refused += 1;
            return Err(refused);
        }
        let number = state.last_number + 1;
        state.last_number = number;
        let close = CancellationToken::new();
        let entry = Entry { peer, requests: 0, idle_since: 0, close: close.clone() };
        state.open.insert(number, entry);
        *state.per_peer.entry(peer).or_default() += 1;
        state.becomes_idle(number);
        drop(state);
        Ok(ActiveConnection { number, peer, close, connections: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn make_room(&mut self, peer: IpAddr, limits: ConnectionLimits) -> Result<(), Refused> {
        if self.per_peer.get(&peer).is_some_and(|open| *open >= limits.per_peer) {
            self.close_longest_idle(|other| other == peer).ok_or(Refused::OfThisPeer)?;
        }
        if self.open.len() >= limits.in_all {
            self.close_longest_idle(|_| true).ok_or(Refused::InAll)?;
        }
        Ok(())
    }

    fn becomes_idle(&mut self, number: u64) {
        self.moment += 1;
        if let Some(entry) = self.open.get_mut(&number) {
            entry.idle_since = self.moment;
            self.idle.insert((self.moment, number));
        }
    }

    /// Its place is free at once, though its task may take a moment to end.
    fn close_longest_idle(&mut self, may_close: impl Fn(IpAddr) -> bool) -> Option<()> {
        let numbers = self.idle.iter().map(|(_, number)| *number);
        let number = numbers
            .into_iter()
            .find(|number| self.open.get(number).is_some_and(|entry| may_close(entry.peer)))?;
        self.remove(number)?.close.cancel();
        self.displaced += 1;
        Some(())
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.open.remove(&number)?;
        self.idle.remove(&(entry.idle_since, number));
        if let Some(open) = self.per_peer.get_mut(&entry.peer) {
            *open -= 1;
            if *open == 0 {
                self.per_peer.remove(&entry.peer);
            }
        }
        Some(entry)
    }
}

impl ActiveConnection {
    /// The address of the other end.
    pub fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Comes when the place is given to another connection; this one has to end then.
    pub async fn displaced(&self) {
        self.close.cancelled().await;
    }

    /// Counts it among those whose first request took too long.
    pub fn note_silent(&self) {
        self.connections.lock().silent += 1;
    }

    /// A request begins.
    pub fn begin_request(&self) -> RequestInProgress {
        let mut state = self.connections.lock();
        if let Some(entry) = state.open.get_mut(&self.number) {
            entry.requests += 1;
            let idle = (entry.idle_since, self.number);
            state.idle.remove(&idle);
        }
        drop(state);
        RequestInProgress { number: self.number, connections: self.connections.clone() }
    }
}

impl Drop for ActiveConnection {
    fn drop(&mut self) {
        self.connections.lock().remove(self.number);
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        let mut state = self.connections.lock();
        let Some(entry) = state.open.get_mut(&self.number) else { return };
        entry.requests = entry.requests.saturating_sub(1);
        if entry.requests == 0 {
            state.becomes_idle(self.number);
        }
    }
}
