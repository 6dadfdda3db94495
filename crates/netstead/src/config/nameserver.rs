//! `[nameserver]`: where Netstead's own zones are answered for.

use std::net::SocketAddr;

use netstead_model::{Cidr, Name};
use serde::Serialize;

use super::Section;

pub(super) const KEYS: &[&str] =
    &["listen", "hostname", "transfer_to", "notify", "max_connections", "max_connections_per_peer"];

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
    let (max_connections, max_connections_per_peer) = section.connections();
    NameserverConfig {
        listen: sockets(&mut section, "listen"),
        hostname: section.parsed("hostname"),
        transfer_to: section.list("transfer_to"),
        notify: sockets(&mut section, "notify"),
        max_connections,
        max_connections_per_peer,
    }
}

fn sockets(section: &mut Section<'_, '_>, key: &str) -> Vec<SocketAddr> {
    let mut sockets = Vec::new();
    for text in section.one_or_more(key) {
        if let Ok(socket) = text.parse() {
            sockets.push(socket);
        } else {
            let told = format!("`{text}` is no address with a port");
            section.wrong(key, &told, Some("write `127.0.0.1:5300` or `[::1]:5300`"));
        }
    }
    sockets
}
