//! Holders of the names that claims ask for.
//!
//! Workloads of sources may share a name, as they always could: several containers behind one name are common. A claim is
//! different. Every owner that may claim in a pool chooses its hostnames, so a claim joins no name that another owner's
//! claim, a record or another source has. The first holder keeps the name.

use netstead_model::{Name, RecordData, RecordType};

use super::{Desired, Reason, candidate::Candidate};
use crate::{Cause, KeptReason, OwnedValue, Settings, inventory::GraceVerdict};

/// A claim that does not get a name, and what has it.
#[derive(Debug, Clone)]
pub(crate) struct BlockedClaim {
    pub(crate) name: Name,
    /// Values that would be written.
    pub(crate) wanted: Vec<RecordData>,
    /// Values at the name instead.
    pub(crate) found: Vec<RecordData>,
    pub(crate) why: String,
    /// `source/workload` of the holder.
    pub(crate) holder: String,
    /// Way to make the holder give the name up.
    pub(crate) free_by: String,
}

/// Those whose values stand together without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Party<'a> {
    /// All workloads of one source, and the claims that are made for them.
    Source(&'a str),
    /// All claims of one owner.
    Owner(&'a str),
}

impl<'a> Candidate<'a> {
    /// Whether a claim asks for it.
    pub(super) fn is_claim(&self) -> bool {
        self.workload.kind == "claim"
    }

    fn party(&self) -> Party<'a> {
        match self.workload.owner.as_deref().filter(|_| self.is_claim()) {
            None => Party::Source(self.source.as_str()),
            Some(owner) => owner.strip_prefix("source/").map_or(Party::Owner(owner), Party::Source),
        }
    }

    /// Way to make this workload give up its name: a command, or a sentence.
    fn free_by(&self) -> String {
        let split = |text: &'a str| text.split_once('/');
        match (self.workload.kind.as_str(), split(self.id.as_str())) {
            ("claim", Some((pool, key))) => format!("netstead release {pool} {key}"),
            ("record", Some(_)) => format!("netstead record delete {} {}", self.name, self.data.kind()),
            _ => format!("take the name from {}/{}", self.source, self.id),
        }
    }
}

/// Takes out the claims of one name that would join what another party has there. One that stands there already stays,
/// and is told to.
pub(super) fn block_claims<'a>(
    live: Vec<Candidate<'a>>,
    ours: &[OwnedValue],
    settings: &Settings,
    gone: &mut Vec<Candidate<'a>>,
    desired: &mut Desired,
) -> Vec<Candidate<'a>> {
    let Some(first) = live.first() else { return live };
    let mixed = live.iter().any(|one| one.party() != first.party());
    if settings.share || !mixed || !live.iter().any(Candidate::is_claim) {
        return live;
    }
    let (mut stay, mut joining) = (Vec::with_capacity(live.len()), Vec::new());
    for one in in_order(live, ours) {
        match holder(&one, &stay, ours).cloned() {
            Some(holder) => joining.push((one, holder)),
            None => stay.push(one),
        }
    }
    let (equal, blocked): (Vec<_>, Vec<_>) =
        joining.into_iter().partition(|(one, _)| stay.iter().any(|other| other.data == one.data));
    // A value that stands there anyway has one more reason.
    stay.extend(equal.into_iter().map(|(one, _)| one));
    stay.sort_by(|one, other| one.sort_key().cmp(&other.sort_key()));
    tell_joined(&mut stay, ours);
    let mut found: Vec<RecordData> = stay.iter().map(|one| one.data.clone()).collect();
    found.dedup();
    for (mut candidate, holder) in blocked {
        if !candidate.waits() {
            let why = format!("{}/{} has the name, and a claim does not join it", holder.source, holder.id);
            desired.why_not.push(candidate.why_not(why.clone(), true));
            note(&candidate, &holder, &found, desired);
            candidate.verdict = GraceVerdict::Gone(Cause::Refused, why.into());
        }
        gone.push(candidate);
    }
    stay
}

impl Candidate<'_> {
    /// Whether its value is there already, or while it runs another one of its workload.
    pub(super) fn stands(&self, ours: &[OwnedValue]) -> bool {
        let of_it = |own: &OwnedValue| !self.waits() && own.reasons.iter().any(|one| self.is_of(one));
        ours.iter().any(|own| own.data == self.data || of_it(own))
    }

    /// The same for what is there because of this workload alone.
    fn stands_alone(&self, ours: &[OwnedValue]) -> bool {
        let alone =
            |own: &OwnedValue| !own.reasons.is_empty() && own.reasons.iter().all(|one| self.is_of(one));
        ours.iter().any(|own| own.data == self.data || alone(own))
    }

    fn is_of(&self, reason: &Reason) -> bool {
        reason.source == *self.source && reason.workload == *self.id
    }
}

/// The order in which they have the name: what stands there already, then what came first. Of two that came at once a
/// claim comes last.
fn in_order<'a>(mut live: Vec<Candidate<'a>>, ours: &[OwnedValue]) -> Vec<Candidate<'a>> {
    live.sort_by(|one, other| {
        let place = |one: &Candidate<'a>| (!one.stands(ours), one.first, one.is_claim());
        place(one).cmp(&place(other)).then_with(|| one.sort_key().cmp(&other.sort_key()))
    });
    live
}

/// The first of those `before` a claim that it would join. What is only waited for and does not stand there has nothing.
fn holder<'c, 'a>(
    claim: &Candidate<'a>,
    before: &'c [Candidate<'a>],
    ours: &[OwnedValue],
) -> Option<&'c Candidate<'a>> {
    if !claim.is_claim() || claim.stands_alone(ours) {
        return None;
    }
    let has = |one: &&Candidate<'a>| one.party() != claim.party() && (!one.waits() || one.stands(ours));
    before.iter().find(has)
}

/// Claims that joined before that was refused, with what was there before them.
fn tell_joined(stay: &mut [Candidate<'_>], ours: &[OwnedValue]) {
    let standing = |one: &&Candidate<'_>| one.stands(ours) && !one.waits();
    let first =
        stay.iter().filter(standing).min_by_key(|one| (one.first, one.is_claim(), one.source, one.id));
    let Some(first) = first.cloned() else { return };
    let why = Box::new(KeptReason::from(format!(
        "{}/{} asked for the name first, and claims no longer join it",
        first.source, first.id
    )));
    for one in stay.iter_mut().filter(|one| one.is_claim() && one.party() != first.party()) {
        one.joined = Some(why.clone());
    }
}

fn note(candidate: &Candidate<'_>, holder: &Candidate<'_>, found: &[RecordData], desired: &mut Desired) {
    let (name, data) = (candidate.name.clone(), candidate.data.clone());
    let at = format!("{}/{}", holder.source, holder.id);
    let why = format!("{at} has the name, and {}/{} came later", candidate.source, candidate.id);
    if let Some(last) = desired.blocked.last_mut().filter(|last| last.name == name && last.why == why) {
        last.wanted.push(data);
        return;
    }
    let (wanted, found, free_by) = (vec![data], found.to_vec(), holder.free_by());
    desired.blocked.push(BlockedClaim { name, wanted, found, why, holder: at, free_by });
}

impl BlockedClaim {
    /// Whether both could stand at the name together.
    pub(crate) fn can_share(&self) -> bool {
        let alias = |data: &RecordData| data.kind() == RecordType::Cname;
        !self.wanted.iter().chain(&self.found).any(alias)
    }
}
