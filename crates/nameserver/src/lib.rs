//! Answers DNS from Netstead's own zones, on every node, and is itself the DNS provider `builtin`.
//!
//! [`Builtin`] writes zones into the store; [`NameServer`] follows the store and answers from memory. A query sees one
//! generation of every zone: what changes is prepared beside the old and takes its place in one step.
//!
//! Messages are read and written here byte by byte. A query is a header, a question and perhaps an OPT record, and an
//! answer is mostly bytes a zone already holds in wire form, so there is little to parse and nothing to allocate.

mod answer;
mod builtin;
mod notify;
mod options;
mod server;
mod sharded;
mod stored_zone;
mod tcp;
mod transfer;
mod udp;
mod wire;
mod zone;
mod zone_choice;
mod zone_watch;
mod zones;

pub use self::{
    builtin::Builtin,
    options::{CONNECTIONS, Options},
    server::{NameServer, StartError},
    zone_choice::zone_of,
};
