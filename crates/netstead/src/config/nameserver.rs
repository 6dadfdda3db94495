//! `[nameserver]`: where Netstead's own zones are answered for.

use std::net::SocketAddr;

use netstead_model::{Cidr, Name};
use netstead_settings::{Number, OneOrMore, Section, Settings as _, table};
use serde::Serialize;

table! {
    pub(super) struct NameserverKeys {
        /// an address and a port, or a list of them; `--dns-listen` goes before it
        listen: OneOrMore<SocketText>, unset "`127.0.0.1:5300` if it is free";
        /// its own name, for SOA and NS
        hostname: Option<Name>, unset "`ns.invalid`";
        /// networks whose hosts may copy whole zones (AXFR, IXFR)
        transfer_to: Vec<Cidr>, unset "none";
        /// secondaries that hear of every change, with their ports
        notify: OneOrMore<SocketText>, unset "none";
        /// TCP connections at one time; when there are more, the one that has been idle longest is closed. Lowered if the
        /// process may not open so many files
        max_connections: Option<Number<1, 1_000_000>>, unset "`512`";
        /// the same for one address
        max_connections_per_peer: Option<Number<1, 1_000_000>>, unset "a quarter of `max_connections`";
    }
}

/// An address with a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketText(SocketAddr);

impl netstead_settings::TextShape for SocketText {}

impl std::fmt::Display for SocketText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for SocketText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| format!("`{text}` is no address with a port; write `127.0.0.1:5300` or `[::1]:5300`");
        text.parse().map(Self).map_err(wrong)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct NameserverConfig {
    /// Empty means the usual place, if that is free.
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) hostname: Option<Name>,
    pub(crate) transfer_to: Vec<Cidr>,
    pub(crate) notify: Vec<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_connections: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_connections_per_peer: Option<usize>,
}

pub(super) fn read(mut section: Section<'_, '_>) -> NameserverConfig {
    let Some(keys) = NameserverKeys::read(&mut section) else { return NameserverConfig::default() };
    let sockets = |texts: OneOrMore<SocketText>| texts.0.into_iter().map(|text| text.0).collect();
    let (max_connections, max_connections_per_peer) =
        super::connection_limits(&mut section, keys.max_connections, keys.max_connections_per_peer);
    NameserverConfig {
        listen: sockets(keys.listen),
        hostname: keys.hostname,
        transfer_to: keys.transfer_to,
        notify: sockets(keys.notify),
        max_connections,
        max_connections_per_peer,
    }
}
