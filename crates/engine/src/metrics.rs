//! Numbers for metrics: each pass is reported once, when it has ended.

use std::fmt::Debug;

use netstead_model::{Ident, Name, UnitOutcome};
use netstead_plan::{DomainMatch, Line, Sign};

use crate::{PassReport, ProviderSetup};

/// Told of every pass. It must return at once.
pub trait Observer: Send + Sync + Debug {
    fn passed(&self, report: &PassReport);

    /// Something was written, or was about to be, after another process had taken the lead.
    fn late(&self, _provider: &Ident) {}
}

/// Changes of one zone of one kind that ended alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// The zone, or `other` for one that holds a single name only: those are without number.
    pub zone: String,
    /// `applied`, `changed`, `rejected` or `unknown`.
    pub outcome: &'static str,
    /// `create`, `update` or `delete`.
    pub action: &'static str,
    pub changes: u64,
}

/// Action of a step on its name: `create` only adds values, `delete` only removes values, all else is `update`.
fn action(lines: &[Line]) -> &'static str {
    let all = |sign| lines.iter().all(|line| line.sign == sign);
    match () {
        () if all(Sign::Add) => "create",
        () if all(Sign::Remove) => "delete",
        () => "update",
    }
}

/// Adds one change of `zone`.
pub(crate) fn count_outcome(tallies: &mut Vec<Tally>, zone: String, lines: &[Line], outcome: &UnitOutcome) {
    let action = action(lines);
    let outcome = match outcome {
        UnitOutcome::Applied => "applied",
        UnitOutcome::Changed => "changed",
        UnitOutcome::Rejected { .. } => "rejected",
        UnitOutcome::Unknown => "unknown",
        // It is counted when it is tried.
        UnitOutcome::NotTried => return,
    };
    let same = |tally: &&mut Tally| tally.zone == zone && tally.outcome == outcome && tally.action == action;
    match tallies.iter_mut().find(same) {
        Some(tally) => tally.changes += 1,
        None => tallies.push(Tally { zone, outcome, action, changes: 1 }),
    }
}

/// The label of a zone in metrics. A server that makes a zone of every name would make a label of every host.
pub(crate) fn zone_label(setup: &ProviderSetup, named: impl Fn(&Name) -> bool, zone: &Name) -> String {
    let domain = |one: &DomainMatch| matches!(one, DomainMatch::Domain(domain) if domain == zone);
    if !setup.provider.makes_zones() || named(zone) || setup.settings.domains.iter().any(domain) {
        return zone.to_string();
    }
    "other".to_owned()
}
