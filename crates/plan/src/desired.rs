//! [`desired`]: the record sets that should exist on one provider, each value with its reasons.

mod candidate;
mod companion;
mod conflict;
mod name_holder;
mod name_rules;
mod one_value;
mod removal_decision;
mod reverse;
mod sole_name;
mod wished_values;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use netstead_model::{Ident, Key, Name, RecordData, RecordSet, RecordType};
use serde::{Deserialize, Serialize};

use self::candidate::Candidate;
pub use self::wished_values::names_of_workload;
pub(crate) use self::{
    companion::is_companion,
    name_holder::BlockedClaim,
    removal_decision::{RemovalDecision, UndesiredValue},
    wished_values::names_of_addresses,
};
use crate::{Domains, Inventory, KeptReason, Now, Owned, Settings, inventory::GraceVerdict};

/// Everything that should exist on one provider, and what became of the rest.
#[derive(Debug, Clone, Default)]
pub struct Desired {
    /// Sorted by name and type, no two alike.
    pub sets: Vec<DesiredSet>,
    /// Requests that led to no record.
    pub why_not: Vec<WhyNot>,
    /// Values of ours that are no longer desired, by name and value.
    pub(crate) undesired: BTreeMap<Name, Vec<UndesiredValue>>,
    /// Claims that would join a name which something else has.
    pub(crate) blocked: Vec<BlockedClaim>,
}

/// A record set that should exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredSet {
    pub name: Name,
    pub kind: RecordType,
    pub ttl: u32,
    /// Sorted by value.
    pub values: Vec<DesiredValue>,
    /// Adopt equal values that are foreign.
    pub adopt: bool,
    /// Stand beside foreign values.
    pub share: bool,
    /// Whether the server shall stand in front of what it leads to; none leaves that as it is.
    pub proxied: Option<bool>,
}

impl DesiredSet {
    /// Whether this value is one of its own.
    pub fn has(&self, data: &RecordData) -> bool {
        self.values.binary_search_by(|value| value.data.cmp(data)).is_ok()
    }
}

/// A value that should exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredValue {
    pub data: RecordData,
    pub reasons: Vec<Reason>,
    /// Why it is kept although its workload is missing: the grace period is not over. Such a value is kept, never made.
    pub waiting: Option<KeptReason>,
    /// Only claims ask for it, and they join nothing that something else has.
    pub(crate) claim: bool,
    /// Why it would not be made today. It stays, and that is told.
    pub(crate) joined: Option<Box<KeptReason>>,
}

/// Why a value exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reason {
    pub source: Ident,
    pub workload: Key,
    /// `hostname of claim web-1`.
    pub why: Arc<str>,
    /// The value is the provider's target, not the workload's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub target: bool,
}

/// Why something gave no record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WhyNot {
    pub source: Ident,
    pub workload: Key,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// One sentence without its full stop.
    pub why: String,
    /// Whether a rule refuses it, or another party has the name: the workload shows the reason, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// Whether the server cannot hold it: the plan says so, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unheld: bool,
    /// Set where nothing is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absence: Option<MissingBecause>,
}

/// Why a record, or a part of it, is missing though nothing refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingBecause {
    /// Other providers are meant.
    Elsewhere,
    /// Neither the workload nor the provider says where the name points.
    NoAddress,
    /// The record is there; a detail of it gave way.
    Detail,
}

impl Desired {
    /// Leaves out the values that the server cannot hold, with the reason that `cannot` gives.
    ///
    /// A value that would take the place of one of ours stays: the server refuses it then, and the old one is not removed for it.
    pub fn refuse(
        &mut self,
        provider: &Ident,
        owned: &Owned,
        cannot: impl Fn(&Name, &RecordData) -> Option<String>,
    ) {
        let mut refused: BTreeMap<Name, BTreeMap<RecordData, String>> = BTreeMap::new();
        for set in &self.sets {
            for value in &set.values {
                if let Some(why) = cannot(&set.name, &value.data)
                    && !owned.of(&set.name).iter().any(|own| own.data.kind() == set.kind)
                {
                    refused.entry(set.name.clone()).or_default().insert(value.data.clone(), why);
                }
            }
        }
        refused.retain(|name, values| {
            let rest = self.of(name).iter().flat_map(|set| &set.values);
            owned.of(name).is_empty() || rest.into_iter().any(|value| !values.contains_key(&value.data))
        });
        if refused.is_empty() {
            return;
        }
        for set in &mut self.sets {
            let Some(values) = refused.get(&set.name) else { continue };
            let (name, why_not) = (&set.name, &mut self.why_not);
            set.values.retain(|value| {
                let Some(why) = values.get(&value.data) else { return true };
                why_not.extend(value.reasons.iter().map(|reason| WhyNot {
                    source: reason.source.clone(),
                    workload: reason.workload.clone(),
                    name: Some(name.clone()),
                    why: format!("`{provider}` cannot hold {} {}: {why}", set.kind, value.data),
                    refused: false,
                    unheld: true,
                    absence: None,
                }));
                false
            });
        }
        self.sets.retain(|set| !set.values.is_empty());
        self.why_not.sort();
    }

    /// Gives every value the form the server will give it, so that this never shows as drift.
    pub fn adjust(&mut self, adjust: impl Fn(RecordSet) -> RecordSet) {
        for set in &mut self.sets {
            for value in &mut set.values {
                let mut one = RecordSet::new(set.name.clone(), set.kind, set.ttl, [value.data.clone()]);
                one.proxied = set.proxied;
                let mut one = adjust(one);
                (set.ttl, set.proxied) = (one.ttl, one.proxied);
                if let Some(data) = one.values.pop_first() {
                    value.data = data;
                }
            }
            set.values.sort_by(|one, other| one.data.cmp(&other.data));
        }
    }

    /// The engine time at which the next value may go because its workload ended, without another report of its source.
    /// None if no value waits for that.
    pub fn next_end(&self) -> Option<u64> {
        let waiting = self.sets.iter().flat_map(|set| &set.values).filter_map(|value| value.waiting.as_ref());
        let kept = self.undesired.values().flatten().filter_map(|value| match &value.decision {
            RemovalDecision::Keep(why) => Some(why),
            RemovalDecision::Remove(..) => None,
        });
        let ends = waiting.chain(kept).filter_map(|why| match why {
            KeptReason::Ended { ended, grace } => Some(ended.saturating_add(grace.as_millis())),
            KeptReason::Absent { .. } | KeptReason::Text(_) => None,
        });
        ends.min()
    }

    /// The sets at `name`.
    pub fn of(&self, name: &Name) -> &[DesiredSet] {
        let start = self.sets.partition_point(|set| set.name < *name);
        let rest = self.sets.get(start..).unwrap_or_default();
        let end = rest.partition_point(|set| set.name == *name);
        rest.get(..end).unwrap_or_default()
    }
}

/// The record sets that should exist on one provider.
///
/// `owned` makes it stay as it is where there is a choice: a PTR keeps its name, and of two workloads that cannot both
/// have a name the one that has it keeps it. `zones` are those of the server ([`Actual::zone_tops`](crate::Actual)): not
/// everything may stand at their top.
pub fn desired(
    inventory: &Inventory,
    settings: &Settings,
    domains: &Domains,
    zones: &BTreeSet<Name>,
    owned: &Owned,
    now: Now,
) -> Desired {
    let mut desired = Desired::default();
    let why_not = &mut desired.why_not;
    let candidates = candidate::collect_candidates(inventory, settings, domains, zones, owned, now, why_not);
    let mut gone: Vec<Candidate<'_>> = Vec::new();
    let mut pointers: Vec<Candidate<'_>> = Vec::new();
    let mut rest = candidate::in_order(candidates).peekable();
    while let Some(first) = rest.next() {
        let name = first.name.clone();
        let mut group = vec![first];
        while let Some(next) = rest.next_if(|next| next.name == name) {
            group.push(next);
        }
        let live = conflict::resolve_conflicts(group, owned.of(&name), settings, &mut gone, &mut desired);
        let mut live = if settings.one_value {
            one_value::keep_one_value(live, owned.of(&name), &mut gone, &mut desired.why_not)
        } else {
            live
        };
        pointers.extend(live.iter().filter_map(|candidate| reverse::pointer(candidate, settings)));
        companion::add_companions(&mut live, &mut gone, settings);
        conflict::group_into_sets(live, settings, &mut desired);
    }
    let companions: Vec<_> =
        gone.iter().filter_map(|candidate| companion::companion(candidate, settings)).collect();
    let lost = gone.iter().filter_map(|candidate| reverse::pointer(candidate, settings));
    let (lost, waiting): (Vec<_>, Vec<_>) =
        lost.partition(|pointer| matches!(pointer.verdict, GraceVerdict::Gone(..)));
    gone.extend(lost);
    gone.extend(companions);
    pointers.extend(waiting);
    reverse::choose_pointers(pointers, owned, settings, &mut gone, &mut desired);
    desired.sets.sort_by(|one, other| (&one.name, one.kind).cmp(&(&other.name, other.kind)));
    desired.why_not.sort();
    desired.why_not.dedup();
    desired.undesired = removal_decision::decide_removals(&desired, inventory, settings, owned, &gone, now);
    desired
}
