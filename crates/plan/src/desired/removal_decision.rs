//! Decides whether a value of ours that is no longer desired may be removed.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use netstead_model::{Name, RecordData, RecordType};

use super::{Desired, DesiredSet, Reason, candidate::Candidate};
use crate::{
    Cause, Inventory, Now, Origin, Owned, OwnedValue, Settings, inventory::GraceVerdict, marks::is_mark,
};

/// A value of ours that is not desired.
#[derive(Debug, Clone)]
pub(crate) struct UndesiredValue {
    pub(crate) data: RecordData,
    pub(crate) decision: RemovalDecision,
}

/// Whether it may leave, and the end of the sentence that says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RemovalDecision {
    Keep(Arc<str>),
    Remove(Cause, Arc<str>),
}

type Evidence<'a> = HashMap<(&'a Name, &'a RecordData), Vec<&'a Candidate<'a>>>;

/// Judges every value of ours that is not desired. Only what is known about the world lets one go by itself: if no
/// version of a running workload asks for it, then it was the configuration that changed.
pub(super) fn decide_removals(
    desired: &Desired,
    inventory: &Inventory,
    settings: &Settings,
    owned: &Owned,
    gone: &[Candidate<'_>],
    now: Now,
) -> BTreeMap<Name, Vec<UndesiredValue>> {
    let mut evidence: Evidence<'_> = HashMap::with_capacity(gone.len());
    for candidate in gone {
        evidence.entry((&candidate.name, &candidate.data)).or_default().push(candidate);
    }
    let judge = RemovalJudge { desired, inventory, settings, evidence, now };
    let mut leaving = BTreeMap::new();
    let mut sets = desired.sets.iter().peekable();
    for (name, values) in owned.iter() {
        while sets.next_if(|set| set.name < *name).is_some() {}
        let mut wanted =
            sets.clone().take_while(|set| set.name == *name).flat_map(|set| &set.values).peekable();
        let mut gone = Vec::new();
        for value in values {
            while wanted.next_if(|wanted| wanted.data < value.data).is_some() {}
            if wanted.peek().is_none_or(|wanted| wanted.data != value.data) {
                gone.push(UndesiredValue {
                    data: value.data.clone(),
                    decision: judge.decide_value(name, value),
                });
            }
        }
        if !gone.is_empty() {
            leaving.insert(name.clone(), gone);
        }
    }
    leaving
}

struct RemovalJudge<'a> {
    desired: &'a Desired,
    inventory: &'a Inventory,
    settings: &'a Settings,
    evidence: Evidence<'a>,
    now: Now,
}

impl RemovalJudge<'_> {
    /// The most careful of what its reasons say.
    fn decide_value(&self, name: &Name, value: &OwnedValue) -> RemovalDecision {
        let fates = value.reasons.iter().map(|reason| self.decide_reason(name, &value.data, reason));
        let worst = fates.max_by_key(|fate| match fate {
            RemovalDecision::Keep(_) => (1, Cause::Unknown),
            RemovalDecision::Remove(cause, _) => (0, *cause),
        });
        match (worst, value.origin) {
            (Some(fate), _) => fate,
            (None, Origin::Adopted) if self.takes_place(name, value.data.kind()) => {
                RemovalDecision::Remove(Cause::Adopted, "adopted".into())
            }
            (None, Origin::Late) => {
                RemovalDecision::Remove(Cause::Asked, "a late write brought it back".into())
            }
            (None, Origin::Adopted) => RemovalDecision::Keep("adopted, and nothing asks for it".into()),
            (None, Origin::Discarded) if is_mark(name.as_str()).is_some() => {
                RemovalDecision::Remove(Cause::Asked, "the mark of a former id".into())
            }
            (None, Origin::Discarded) => RemovalDecision::Remove(Cause::Asked, "another tool's mark".into()),
            (None, Origin::Returned) => RemovalDecision::Remove(
                Cause::Unknown,
                "a rollback brought it back, and nothing asks for it".into(),
            ),
            (None, Origin::Recovered) => {
                RemovalDecision::Remove(Cause::Unknown, "recovered, and nothing asks for it".into())
            }
            (None, Origin::Written) => {
                RemovalDecision::Remove(Cause::Unknown, "nothing is known about it".into())
            }
        }
    }

    /// Whether something asked for cannot stand beside a value of this type: it is of the same type, or one of the two
    /// is an alias.
    fn takes_place(&self, name: &Name, kind: RecordType) -> bool {
        let clashes = |other: RecordType| other == kind || [kind, other].contains(&RecordType::Cname);
        let comes = |set: &DesiredSet| set.values.iter().any(|value| value.waiting.is_none());
        self.desired.of(name).iter().any(|set| clashes(set.kind) && comes(set))
    }

    fn decide_reason(&self, name: &Name, data: &RecordData, reason: &Reason) -> RemovalDecision {
        let Reason { source, workload, .. } = reason;
        let said = self.evidence.get(&(name, data)).into_iter().flatten();
        let said = said.filter(|one| one.source == source && one.id == workload);
        let causes = said.filter_map(|one| match &one.verdict {
            GraceVerdict::Gone(cause, why) => Some((*cause, why.clone())),
            _ => None,
        });
        // What is refused is asked for by the newest version, whatever became of earlier ones.
        let careful = |(cause, _): &(Cause, Arc<str>)| (*cause != Cause::Refused, !cause.may_empty(), *cause);
        if let Some((cause, why)) = causes.min_by_key(careful) {
            return RemovalDecision::Remove(cause, why);
        }
        let Some(state) = self.inventory.source(source) else {
            return RemovalDecision::Keep(format!("source {source} is detached").into());
        };
        if state.cleaned {
            return RemovalDecision::Remove(Cause::Asked, "cleaned by a person".into());
        }
        let Some(entry) = state.entries.get(workload) else {
            if !state.settled() {
                return RemovalDecision::Keep(format!("source {source} has not said all").into());
            }
            return RemovalDecision::Remove(
                Cause::Unknown,
                format!("{source}/{workload} is not known").into(),
            );
        };
        match GraceVerdict::of(source, state, entry, self.settings.graces(), self.now) {
            GraceVerdict::Gone(cause, why) => RemovalDecision::Remove(cause, why),
            GraceVerdict::Waiting(why) => RemovalDecision::Keep(why),
            GraceVerdict::Present if reason.target && self.settings.target_moves => {
                RemovalDecision::Remove(Cause::Target, "the target moved".into())
            }
            GraceVerdict::Present => {
                RemovalDecision::Remove(Cause::Config, "the configuration changed".into())
            }
        }
    }
}
