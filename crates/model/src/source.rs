//! [`Source`]: where workloads come from, as the engine sees it.

use std::time::Duration;

use async_trait::async_trait;

use crate::{Diagnosis, Ident, Key, Name, Report};

/// One configured place to look at what runs.
#[async_trait]
pub trait Source: Send + Sync + std::fmt::Debug {
    fn name(&self) -> &Ident;

    /// `docker`, `hosts`, …: for people. Behaviour depends on [`Source::flags`].
    fn kind(&self) -> &'static str;

    fn flags(&self) -> SourceFlags {
        SourceFlags::default()
    }

    /// Looks once. Never fails as a call: what goes wrong is in the views of the report. Bounded in time.
    async fn report(&self) -> Report;

    /// Called after failover, after a stale report, and after changes to a report that the engine does not have, with the ids
    /// the engine still believes exist. A source that knows for certain what became of an id says so in its next report, as
    /// if it had seen the end itself. A source that reports changes shows every scope in full in its next report.
    fn remember(&self, _reported: Vec<Key>) {}

    /// Called on the leader when what became of the names of its workloads changed, at most once a minute for each workload;
    /// only if [`SourceFlags::hears_names`] is set. A source that writes this to its platform must not take its own
    /// writing for a change of the workload: neither [`Source::changed`] nor a workload in a report may depend on it.
    /// While [`Source::has_unwritten`] it is called again, without news.
    async fn hear_names(&self, _names: Vec<WorkloadNames>) {}

    /// Whether something that it heard is not written to its platform yet, and the time to try again has come.
    fn has_unwritten(&self) -> bool {
        false
    }

    /// Workloads in its last report that it had seen and not read for the first time yet; its next reports show more of them. A
    /// workload that cannot be read is none of them.
    fn unread(&self) -> usize {
        0
    }

    /// How often it is looked at though nothing changed; `None` leaves that to the engine.
    fn poll_interval(&self) -> Option<Duration> {
        None
    }

    /// Checks for `netstead doctor`, asked now and beside the reports: can it be reached, which version is it, what is missing.
    /// Changes nothing.
    async fn diagnose(&self) -> Vec<Diagnosis> {
        Vec::new()
    }

    /// Returns when another look is likely to see something new; may return early, and may wait for ever.
    async fn changed(&self);
}

/// Properties of a source that decide how the engine treats it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceFlags {
    /// People say what is in it (claims, records): what it changes was asked for, and takes effect at once.
    pub commanded: bool,
    /// Workloads can move from one of its scopes to another: absence counts only while all of its scopes are Complete.
    pub movable: bool,
    /// It wants to hear what became of its workloads' names.
    pub hears_names: bool,
}

/// The names of one workload, each with its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadNames {
    pub id: Key,
    /// In the order of names and providers.
    pub names: Vec<NameState>,
    /// Why something of it asks for no name, one sentence each.
    pub why_not: Vec<String>,
}

/// The state of a name at one provider.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameState {
    pub name: Name,
    /// None for a name that no provider can have.
    pub provider: Option<Ident>,
    pub state: WrittenState,
    /// Why it is not written, for people.
    pub why: Option<String>,
}

/// Whether a server has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WrittenState {
    /// The server has it.
    Written,
    /// It will be written by itself.
    Pending,
    /// It is not written until a person or the workload changes something.
    Refused,
}
