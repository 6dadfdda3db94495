//! A nameserver that answers from Netstead's own zones on every node, and the DNS provider `builtin` that writes them.
//!
//! ```text
//!  engine (leader) ──► Builtin ──► store: dns/zone/..., dns/set/...
//!                                    │ watch, on every node
//!                                    ▼
//!                      ZoneWatcher ──► Zones ──► answer ◄── udp, tcp ◄── resolvers
//!                           │                      └──────── transfer (AXFR, IXFR) ◄── secondaries
//!                           └──► Notifier ──► NOTIFY to secondaries
//! ```
//!
//! - [`Builtin`] (`builtin.rs`): writes changes of a zone as commits; `stored_zone.rs` has the format and how a large change
//!   becomes visible at once.
//! - `ZoneWatcher` (`zone_watch.rs`): keeps the zones in memory up to date with the store.
//! - `Zones` (`zones.rs`): all zones as one value that is replaced as a whole. A query sees one state of every zone.
//! - `answer.rs`: from a query to its answer, without I/O. `zone/lookup.rs` finds the name as the RFCs say.
//! - `wire`: DNS messages, read and written byte by byte. Record sets are kept in wire form, so that an answer is mostly a copy
//!   and allocates nothing.
//! - [`NameServer`] (`server.rs`): the sockets and tasks.
//!
//! Start with `answer.rs` for queries and `stored_zone.rs` for writes.

mod answer;
pub mod builtin;
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
