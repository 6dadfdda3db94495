//! From what runs and what is claimed to a plan for one IPAM system: pure functions, as for DNS.
//!
//! - [`IpamDesired`]: the objects that should exist, of inventory and claims at one moment.
//! - [`OwnedObjects`]: per object and field the value that we wrote last. A field is ours while it has that value.
//! - [`ipam_diff`]: the [`IpamPlan`]. Its guards count workloads, not objects.
//! - [`ipam_rollback`]: a plan that brings back what an earlier generation had.
//! - [`record_object_intent`], [`record_object_outcome`]: update [`OwnedObjects`] before and after the plan is applied.

mod breaker;
mod desired;
mod diff;
mod display;
mod owned;
mod ownership;
mod plan;
mod rollback;
mod settings;
mod subjects;

pub use self::{
    desired::{IpamDesired, IpamWorld, WantedObject, ipam_desired},
    diff::{IpamInput, ipam_diff},
    owned::{FormerField, LATE, OwnedField, OwnedObject, OwnedObjects},
    ownership::{ObjectIntent, record_object_intent, record_object_outcome},
    plan::{IpamBlocked, IpamDrift, IpamKept, IpamParked, IpamParkedChange, IpamPlan, IpamStep},
    rollback::{IpamPast, ipam_rollback},
    settings::{IpamScope, IpamSettings},
    subjects::IpamClaim,
};
