//! From what runs to what shall change on one DNS server: pure functions over plain data.
//!
//! [`Inventory`] keeps what the sources said and what may be believed to be gone. [`desired`] makes record sets of it for
//! one provider, each value with its reasons. [`diff`] compares those with what the server holds and with what is ours,
//! and the guards decide what of it may happen by itself. Nothing here does I/O, reads a clock or draws a number.

mod actual;
mod after;
mod case;
mod cause;
mod desired;
mod diff;
mod digest;
mod domains;
mod guard;
mod inventory;
pub mod marks;
mod now;
mod owned;
mod plan;
mod rollback;
mod settings;
mod template;

pub use actual::{Actual, ActualZone};
pub use after::{after, intend};
pub use case::Case;
pub use cause::Cause;
pub use desired::{Desired, DesiredSet, DesiredValue, Reason, WhyNot, desired};
pub use diff::{Input, diff};
pub use digest::Digest;
pub use domains::{DomainRule, Domains, Network};
pub use guard::{Approval, ApproveError, Counted, Guard, Offer};
pub use inventory::{
    Absence, Alive, Entry, Grace, Inventory, Look, Presence, SourceConfig, SourceState, Suspicion, Taken,
};
pub use now::Now;
pub use owned::{Origin, Owned, OwnedValue};
pub use plan::{Blocked, Drift, DriftKind, Kept, Line, Parked, ParkedChange, Plan, Sign, Step, wrap};
pub use rollback::{Past, rollback};
pub use settings::{DomainMatch, Limits, Mode, OwnerId, ProviderTarget, Settings};
pub use template::Template;
