//! Plain data that every room of Netstead shares, and the traits where rooms meet.
//!
//! Nothing here does I/O. What comes from outside is parsed into a type that cannot hold a wrong value, and a
//! [`ParseError`] says what is wrong and where.

mod address;
mod backend;
mod cidr;
mod claim;
mod clock;
mod count;
mod dns;
mod event;
mod ident;
mod key;
mod label;
pub mod mac;
mod name;
mod name_set;
mod overlap;
mod parse;
mod pool;
mod range;
mod record;
pub mod serde_arc;
mod source;
mod span;
mod workload;

pub use address::{Address, Kind};
pub use backend::{BackendError, PoolBackend, PoolStatus, Released, Usage};
pub use cidr::Cidr;
pub use claim::{Claim, ClaimId, ClaimNames, ClaimRef, ClaimRequest, Details, PoolChoice, Want};
pub use clock::{Clock, ManualClock, SystemClock};
pub use count::readable_count;
pub use dns::{
    Capabilities, DnsProvider, Fence, ProviderError, SetChange, Unit, UnitOutcome, WriteRequest, Zone,
    ZoneContent,
};
pub use event::{Event, EventKind, Observation, Reservation, Subject, Waiting};
pub use ident::Ident;
pub use key::Key;
pub use label::{Labels, Selector};
pub use name::{Name, is_host_label};
pub use name_set::NameSet;
pub use overlap::overlapping_pairs;
pub use parse::ParseError;
pub use pool::{
    DEFAULT_COOLDOWN, DEFAULT_COOLDOWN_MIN, Family, MOST_RANGES, Order, Origin, Pool, PoolError, PoolSpec,
    default_vrf,
};
pub use range::Range;
pub use record::{
    RecordData, RecordSet, RecordType, Service, Values, address_of_reverse, range_of_reverse, reverse_name,
};
pub use source::Source;
pub use span::Span;
pub use workload::{Content, Ended, Interface, Report, View, Wish, Workload};
