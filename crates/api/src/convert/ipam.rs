//! Plans and objects of IPAM systems.

use netstead_client::types::{
    BlockedObjectOutput, ChangeAction, KeptObjectOutput, ObjectChangeOutput, ObjectDriftOutput,
    ObjectPlanOutput, ParkedOutput, PlanOutput, RejectedObjectOutput, TakenObjectOutput,
};
use netstead_engine::{AdoptedObject, ProviderStatus};
use netstead_model::{Ident, ObjectKey};
use netstead_plan::{
    Line, Now, Sign,
    ipam::{IpamDrift, IpamPlan, IpamStep},
};

use super::dns::{count, mode};

/// So many rejections are listed.
const MOST_REJECTIONS: usize = 10;

/// The plan of an IPAM system as it stands. Changes that were carried out are left out.
pub(crate) fn output(
    mut plan: IpamPlan,
    status: Option<&ProviderStatus>,
    now: Now,
    full: bool,
) -> PlanOutput {
    if status.is_some_and(|status| status.pending == 0) {
        plan.steps.clear();
    }
    for (key, reason) in status.iter().flat_map(|status| &status.rejected_objects) {
        let of_it = |step: &&mut IpamStep| step.unit.key == *key;
        let lines = plan.steps.iter_mut().filter(of_it).flat_map(|step| &mut step.lines);
        lines.for_each(|line| line.why = format!("the system rejects it: {reason}").into());
    }
    let age = status.and_then(|status| status.parked.as_ref()).map(|parked| parked.age);
    let parked = plan.parked.iter().flat_map(|parked| &parked.changes);
    let parked_changes = parked
        .flat_map(|parked| parked.lines.iter().map(|line| change(&parked.key, line, Some(&parked.guard))));
    let blocked = plan.blocked.iter().map(|blocked| BlockedObjectOutput {
        object: blocked.key.to_string(),
        why: blocked.why.clone(),
        adopt: blocked.adopt.clone(),
    });
    let kept =
        plan.kept.iter().map(|kept| KeptObjectOutput { object: kept.key.to_string(), why: kept.why.at(now) });
    let objects = ObjectPlanOutput {
        changes: plan.steps.iter().flat_map(changes).collect(),
        parked_changes: parked_changes.collect(),
        blocked: blocked.collect(),
        kept: kept.collect(),
        drift: plan.drift.iter().map(|one| drift(&plan.provider, one)).collect(),
    };
    PlanOutput {
        provider: plan.provider.to_string(),
        mode: mode(plan.mode),
        hash: plan.hash.to_string(),
        generation: plan.generation,
        changes: Vec::new(),
        parked: plan.parked.as_ref().map(|parked| ParkedOutput {
            changes: count(parked.changes.len()),
            hash: parked.hash.to_string(),
            since: age.and_then(|age| now.at.checked_sub(age).ok()),
        }),
        parked_changes: Vec::new(),
        blocked: Vec::new(),
        refused: Vec::new(),
        kept: Vec::new(),
        drift: Vec::new(),
        objects: Some(objects),
        error: None,
        paused: None,
        text: if full { plan.in_full_at(now) } else { plan.at(now) },
    }
}

/// The changes of one step.
pub(crate) fn changes(step: &IpamStep) -> impl Iterator<Item = ObjectChangeOutput> {
    step.lines.iter().map(|line| change(&step.unit.key, line, None))
}

fn change(key: &ObjectKey, line: &Line, guard: Option<&str>) -> ObjectChangeOutput {
    let action = match line.sign {
        Sign::Add => ChangeAction::Add,
        Sign::Change => ChangeAction::Change,
        Sign::Remove => ChangeAction::Remove,
    };
    ObjectChangeOutput {
        object: key.to_string(),
        action,
        text: line.text.clone(),
        why: line.why.to_string(),
        guard: guard.map(str::to_owned),
    }
}

fn drift(provider: &Ident, one: &IpamDrift) -> ObjectDriftOutput {
    ObjectDriftOutput {
        provider: provider.to_string(),
        object: one.key.to_string(),
        field: one.field.clone(),
        found: one.found.as_ref().map(ToString::to_string),
        wanted: one.wanted.as_ref().map(ToString::to_string),
    }
}

pub(crate) fn rejected(status: &ProviderStatus) -> Vec<RejectedObjectOutput> {
    let rejected = |(key, reason): &(ObjectKey, String)| RejectedObjectOutput {
        object: key.to_string(),
        reason: reason.clone(),
    };
    status.rejected_objects.iter().take(MOST_REJECTIONS).map(rejected).collect()
}

pub(crate) fn taken(provider: &Ident, one: &AdoptedObject) -> TakenObjectOutput {
    TakenObjectOutput {
        provider: provider.to_string(),
        object: one.key.to_string(),
        id: one.id.clone(),
        fields: one.fields.iter().map(|(name, value)| (name.clone(), value.to_string())).collect(),
        kept: one.kept,
    }
}
