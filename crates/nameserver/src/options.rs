//! Options of the nameserver.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use netstead_model::{Cidr, Name};
use netstead_wire::{ConnectionLimits, Connections, QueryCounts};

/// TCP connections at one time, unless the number of files is smaller than such a number needs.
pub const CONNECTIONS: usize = 512;

/// Options that a person may set; the rest follows.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens, with UDP and TCP. Port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Its own name, for SOA and NS records; `ns.invalid` without one.
    pub hostname: Option<Name>,
    /// Clients that may copy whole zones (AXFR, IXFR); none unless named.
    pub transfer_to: Vec<Cidr>,
    /// Secondaries that are told of every change.
    pub notify: Vec<SocketAddr>,
    /// Threads that answer UDP, for each address it listens on.
    pub threads: usize,
    /// How many TCP connections there may be. Above half of them idle ones are closed sooner.
    pub connections: Connections,
    /// How long a TCP connection may be silent, or not take what it asked for.
    pub idle: Duration,
    /// Counts the answers.
    pub queries: QueryCounts,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: vec![(Ipv4Addr::LOCALHOST, 5300).into()],
            hostname: None,
            transfer_to: Vec::new(),
            notify: Vec::new(),
            threads: std::thread::available_parallelism().map_or(2, |cores| cores.get().min(8)),
            connections: Connections::new(ConnectionLimits::new(CONNECTIONS)),
            idle: Duration::from_secs(10),
            queries: QueryCounts::default(),
        }
    }
}
