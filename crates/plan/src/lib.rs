//! From what runs to what shall change on one DNS server: pure functions over plain data.
//!
//! [`Inventory`] keeps what the sources said and what may be believed to be gone. [`desired`] makes record sets of it for
//! one provider, each value with its reasons. [`diff`] compares those with what the server holds and with what is ours,
//! and the guards decide what of it may happen by itself. Nothing here does I/O, reads a clock or draws a number.

mod actual;
mod desired;
mod diff;
mod digest;
mod domains;
mod guard;
mod inventory;
mod kept_reason;
pub mod marks;
mod name_template;
mod now;
mod owned;
mod ownership;
mod plan;
mod removal_cause;
mod rollback;
mod saved_case;
mod settings;

pub use actual::{Actual, ActualZone};
pub use desired::{Desired, DesiredSet, DesiredValue, Reason, WhyNot, desired};
pub use diff::{Input, diff};
pub use digest::Digest;
pub use domains::{DomainRule, Domains, Network};
pub use guard::{Approval, ApproveError, Counted, Guard, Offer};
pub use inventory::{
    Absence, Alive, Entry, Grace, Inventory, Presence, ReportArrival, ReportOutcome, SourceConfig,
    SourceState, Suspicion, WaitingForGrace, grace_passed_between,
};
pub use kept_reason::KeptReason;
pub use name_template::Template;
pub use now::Now;
pub use owned::{Origin, Owned, OwnedValue};
pub use ownership::{record_intent, record_outcome};
pub use plan::{
    Blocked, Drift, DriftKind, Kept, Line, Parked, ParkedChange, Plan, ShownPlan, Sign, Step, wrap,
};
pub use removal_cause::Cause;
pub use rollback::{Past, rollback};
pub use saved_case::Case;
pub use settings::{DomainMatch, Limits, Mode, OwnerId, ProviderTarget, Settings};
