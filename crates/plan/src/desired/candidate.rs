//! Candidates: the values that all versions of all workloads ask for.

use std::{borrow::Borrow, collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use netstead_model::{Ident, Key, Name, RecordData, Workload};

use super::{Reason, WhyNot, name_rules::NameRules, wished_values};
use crate::{
    Cause, Domains, Inventory, KeptReason, Now, Owned, OwnedValue, Settings, inventory::GraceVerdict,
};

/// One value one version of a workload asks for.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent things that workloads say")]
pub(super) struct Candidate<'a> {
    pub(super) name: Name,
    pub(super) data: RecordData,
    pub(super) ttl: Option<u32>,
    pub(super) source: &'a Ident,
    pub(super) id: &'a Key,
    pub(super) why: Arc<str>,
    pub(super) verdict: GraceVerdict,
    /// How it stood before its own workload replaced it: the address it was for is only absent.
    pub(super) replaced: Option<Box<GraceVerdict>>,
    /// Which version of the workload asks: 0 is the newest.
    pub(super) version: usize,
    /// Engine time since which the workload asks for the name.
    pub(super) first: u64,
    pub(super) workload: &'a Workload,
    /// A claim that joined a name before that was refused: the end of a sentence.
    pub(super) joined: Option<Box<KeptReason>>,
    pub(super) adopt: bool,
    pub(super) share: bool,
    pub(super) proxied: Option<bool>,
    /// It is the workload's own name, which no other workload with a name of its own shares.
    pub(super) is_sole: bool,
    /// The value is the provider's target.
    pub(super) target: bool,
    /// The value is of a place that moves, by the workload's own word or its source's.
    pub(super) moves: bool,
    /// How much the name is the address's own; none for names that get no PTR.
    pub(super) rank: Option<u8>,
}

impl Candidate<'_> {
    pub(super) fn reason(&self) -> Reason {
        Reason {
            source: self.source.clone(),
            workload: self.id.clone(),
            why: self.why.clone(),
            target: self.target,
        }
    }

    /// Where it stands among all, without regard to the order anything was read in.
    pub(super) fn sort_key(&self) -> (&Name, &RecordData, usize, u64, &Ident, &Key, &str) {
        (&self.name, &self.data, self.version, self.first, self.source, self.id, &self.why)
    }

    pub(super) fn same_workload(&self, other: &Self) -> bool {
        self.source == other.source && self.id == other.id
    }

    /// A key by which the oldest comes first.
    pub(super) fn seniority(&self, by_creation: bool) -> (Option<Timestamp>, u64) {
        (self.workload.created.filter(|_| by_creation), self.first)
    }

    pub(super) fn waits(&self) -> bool {
        self.verdict != GraceVerdict::Present
    }

    pub(super) fn why_not(&self, why: String, refused: bool) -> WhyNot {
        let (source, workload, name) = (self.source.clone(), self.id.clone(), Some(self.name.clone()));
        WhyNot { source, workload, name, why, refused, unheld: false, absence: None }
    }
}

/// Whether the time at which platforms made these workloads decides which is the oldest: all of them tell it, and none of
/// them has the name yet. Otherwise the one that asked first is the oldest.
pub(super) fn creation_decides<'a>(group: &[impl Borrow<Candidate<'a>>], ours: &[OwnedValue]) -> bool {
    let mut all = group.iter().map(Borrow::borrow);
    let held = |one: &Candidate<'a>| ours.iter().any(|own| own.data == one.data);
    all.all(|one: &Candidate<'a>| one.workload.created.is_some() && !held(one))
}

/// The candidates by their places. The first bytes of the names decide nearly always, so those are compared side by
/// side in memory, and a candidate moves once.
pub(super) fn in_order(candidates: Vec<Candidate<'_>>) -> impl Iterator<Item = Candidate<'_>> {
    let numbered = candidates.iter().enumerate();
    let mut order: Vec<(u128, usize)> =
        numbered.map(|(index, candidate)| (start_of(&candidate.name), index)).collect();
    let place = |index: usize| candidates.get(index).map(Candidate::sort_key);
    order.sort_unstable_by(|one, other| {
        one.0.cmp(&other.0).then_with(|| place(one.1).cmp(&place(other.1))).then(one.1.cmp(&other.1))
    });
    let mut candidates: Vec<Option<Candidate<'_>>> = candidates.into_iter().map(Some).collect();
    order.into_iter().filter_map(move |(_, index)| candidates.get_mut(index)?.take())
}

/// The first 16 bytes of a name, as a number with the same order.
fn start_of(name: &Name) -> u128 {
    let mut start = [0; 16];
    start.iter_mut().zip(name.as_str().bytes()).for_each(|(to, from)| *to = from);
    u128::from_be_bytes(start)
}

/// Collects the values that all versions of all workloads ask of this provider. A value that a rule refuses is included
/// only where we own something at the name; if its workload is present, the value counts as gone.
pub(super) fn collect_candidates<'a>(
    inventory: &'a Inventory,
    settings: &Settings,
    domains: &Domains,
    zones: &BTreeSet<Name>,
    owned: &Owned,
    now: Now,
    why_not: &mut Vec<WhyNot>,
) -> Vec<Candidate<'a>> {
    let mut candidates = Vec::new();
    let mut ignored = Vec::new();
    for (source, state) in inventory.sources() {
        let rules = NameRules { settings, domains, zones, source: &state.rules };
        for (id, entry) in &state.entries {
            let newest = GraceVerdict::of(source, state, entry, settings.graces(), now);
            let mut add =
                |workload: &'a Workload, standing: &GraceVerdict, version, why_not: &mut Vec<WhyNot>| {
                    wished_values::for_each_wished_value(workload, &rules, why_not, |wished, asked| {
                        let verdict = match (standing, wished.refused) {
                            (_, Some(_)) if owned.of(&wished.name).is_empty() => return,
                            (GraceVerdict::Present, Some(why)) => GraceVerdict::Gone(Cause::Refused, why),
                            (_, Some(_)) if owned.get(&wished.name, &wished.data).is_none() => return,
                            (standing, _) => standing.clone(),
                        };
                        candidates.push(Candidate {
                            name: wished.name,
                            data: wished.data,
                            ttl: wished.ttl,
                            source,
                            id,
                            why: wished.why,
                            verdict,
                            replaced: None,
                            version,
                            first: entry.asks_since(asked),
                            workload,
                            joined: None,
                            adopt: wished.adopt,
                            share: wished.share,
                            proxied: wished.proxied,
                            is_sole: wished.is_sole,
                            target: wished.target,
                            moves: wished.moves,
                            rank: wished.rank,
                        });
                    });
                };
            let heard = if newest == GraceVerdict::Present { &mut *why_not } else { &mut ignored };
            add(&entry.workload, &newest, 0, heard);
            for (index, former) in entry.former.iter().rev().enumerate() {
                let standing =
                    GraceVerdict::of_former(source, state, entry, former, &newest, settings.graces());
                add(&former.workload, &standing, index + 1, &mut ignored);
            }
            ignored.clear();
        }
    }
    candidates
}
