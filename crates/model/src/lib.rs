//! Plain data that all crates share, and the traits through which they meet. No I/O.
//!
//! ```text
//!  addresses               names                      workloads
//!  ─────────               ─────                      ─────────
//!  Address, Range, Cidr    Name                       Workload: something that runs,
//!  Pool, PoolSpec          RecordData: one value        with addresses and Wishes
//!  Claim, ClaimRequest     RecordSet: all values of   Report: all workloads of a source,
//!  Reservation, Waiting      one type at one name       by Scope, each with a View
//!  Event: what happened    Unit, SetChange, Fence:
//!    to them                 a change for a server
//!
//!  traits:  Source        sources and the ledger implement it, the engine asks it for a Report
//!           DnsProvider   one per kind of DNS server; the engine reads and writes zones through it
//!           IpamProvider  one per kind of IPAM system; the engine reads and writes objects through it
//!           PoolBackend   another system that the addresses of a pool come from
//!           Clock         the only place that reads the time
//! ```
//!
//! Text from outside is parsed into a type that cannot hold a wrong value: [`Ident`] for names that people give to pools and
//! tokens, [`Key`] for claims, [`Name`] for the DNS, [`Span`] for durations. A [`ParseError`] says what is wrong and where.
//!
//! Start with [`Claim`] and [`Pool`] for addresses, and with [`Workload`], [`RecordSet`] and [`DnsProvider`] for names.

mod address;
mod backend;
mod call;
mod cidr;
mod claim;
mod clock;
mod count;
mod diagnosis;
mod digest;
mod dns;
mod draw;
mod event;
mod ident;
mod ipam;
mod key;
mod label;
pub mod mac;
pub mod mark;
mod name;
mod name_set;
mod overlap;
mod owner;
mod parse;
mod pool;
mod range;
mod record;
mod report;
mod scope;
pub mod serde_arc;
mod source;
mod span;
mod why_not;
mod workload;

pub use address::{Address, Kind};
pub use backend::{
    BackendClaim, BackendError, BackendErrorKind, BackendObject, BackendPoolInfo, GivenBack, ObjectPage,
    PoolBackend, PoolStatus, Usage,
};
pub use call::{Call, CallObserver, NoopObserver, Outcome};
pub use cidr::Cidr;
pub use claim::{Claim, ClaimId, ClaimNames, ClaimRef, ClaimRequest, Details, PoolChoice, Released, Want};
pub use clock::{Clock, ManualClock, SystemClock};
pub use count::readable_count;
pub use diagnosis::{Diagnosis, Grade};
pub use digest::Digest;
pub use dns::{
    Capabilities, ChangeSign, DnsProvider, Fence, Marks, ProviderError, RequestBudget, SetChange, TtlSupport,
    Unit, UnitOutcome, WriteGuard, WriteOrder, WriteReply, WriteRequest, Zone, ZoneContent, ZoneSource,
};
pub use draw::{Draw, DrawFailure, DrawState, Drawn, Upstream};
pub use event::{Event, EventKind, Observation, Reservation, Subject, Waiting};
pub use ident::Ident;
pub use ipam::{
    FieldValue, Fields, IpamAddress, IpamCapabilities, IpamInterface, IpamObject, IpamProvider, IpamSubject,
    ObjectChange, ObjectDraft, ObjectKey, ObjectKind, ObjectMark, ObjectRole, ObjectType, ObjectUnit,
    ObjectWrite, standard_kinds, standard_objects,
};
pub use key::Key;
pub use label::{Labels, Selector};
pub use name::{Name, is_host_label};
pub use name_set::NameSet;
pub use overlap::overlapping_pairs;
pub use owner::OwnerId;
pub use parse::ParseError;
pub use pool::{
    DEFAULT_COOLDOWN, DEFAULT_COOLDOWN_MIN, Family, MOST_RANGES, Order, Origin, Pool, PoolError, PoolSpec,
    default_vrf,
};
pub use range::Range;
pub use record::{
    RecordData, RecordSet, RecordType, Service, Values, address_of_reverse, range_of_reverse, reverse_name,
};
pub use report::{Ended, Report, Roster, ScopeReport, Seen, View, unlooked};
pub use scope::Scope;
pub use source::{NameState, Source, SourceFlags, WorkloadNames, WrittenState};
pub use span::Span;
pub use why_not::is_on_purpose;
pub use workload::{Content, Facts, Interface, Wish, Workload};
