//! From what runs to a plan for one DNS server: pure functions over plain data. No I/O, no clock, no randomness.
//!
//! ```text
//!  Report of a source                Settings, Domains         zones of the server   Owned, Guard
//!         │                                │                            │            (from the store)
//!         ▼                                ▼                            ▼                 │
//!  Inventory ─────────────────────────► desired() ──► Desired ──────► diff() ◄────────────┘
//!  workloads over time: present,        record sets, each value        │
//!  absent since, ended                  with its reasons               ▼
//!                                                                    Plan: steps, parked, blocked, kept
//! ```
//!
//! - [`Inventory`]: all workloads of all sources, and for how long one has been missing. Absence counts as an end only after
//!   a grace period and only if the source saw everything ([`Presence`], [`SourceState`]).
//! - [`Owned`]: the values on a server that are ours. Everything else there is foreign and is never changed.
//! - [`Desired`]: the record sets that should exist on one provider. [`WhyNot`] has the reason for names that gave none.
//! - [`Plan`]: the difference. Each [`Step`] is one change for the server.
//! - [`Guard`]: what holds changes back. Too many removals at once are *parked* until a person approves their hash.
//! - [`record_intent`], [`record_outcome`]: update [`Owned`] before and after the plan is applied.
//! - [`marks`]: TXT records that mirror ownership in the DNS itself, also those of other tools.
//!
//! Start with [`desired`] and [`diff`].

mod actual;
mod desired;
mod diff;
mod domains;
mod guard;
mod inventory;
pub mod ipam;
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
mod source_rules;

pub use actual::{Actual, ActualZone};
pub use desired::{
    Desired, DesiredSet, DesiredValue, MissingBecause, Reason, WhyNot, desired, names_of_workload,
};
pub use diff::{Input, diff};
pub use domains::{DomainRule, Domains, Network};
pub use guard::{Approval, ApproveError, Counted, Guard, Offer};
pub use inventory::{
    Absence, Alive, Clock, Entries, Entry, Grace, Inventory, Presence, ReportArrival, ReportOutcome,
    RetiredBy, ScopeState, SourceConfig, SourceState, Standing, Suspicion, WaitingForGrace,
    grace_passed_between,
};
pub use kept_reason::KeptReason;
pub use name_template::Template;
pub use netstead_model::{Digest, OwnerId};
pub use now::Now;
pub use owned::{Origin, Owned, OwnedValue};
pub use ownership::{Intent, record_intent, record_outcome};
pub use plan::{
    Blocked, Drift, DriftKind, Kept, Line, Parked, ParkedChange, Plan, Refused, ShownPlan, Sign, Step, wrap,
};
pub use removal_cause::Cause;
pub use rollback::{Past, rollback};
pub use saved_case::Case;
pub use settings::{DomainMatch, Limits, Mode, ProviderTarget, Settings};
pub use source_rules::{MOST_NAMES, SourceRules};
