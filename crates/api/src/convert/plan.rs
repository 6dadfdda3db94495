//! Plans.

use netstead_client::types::{
    self, BlockedOutput, ChangeAction, ChangeOutput, DriftOutput, KeptOutput, ParkedOutput, PlanOutput,
    RefusedOutput,
};
use netstead_engine::ProviderStatus;
use netstead_model::{Name, RecordData};
use netstead_plan::{DriftKind, Line, Now, Plan, Sign, Step};

use super::dns::{count, mode};

/// The plan of a provider as it stands, its text in full or with long lists cut. What was carried out is no longer to be done.
pub(crate) fn output(mut plan: Plan, status: Option<&ProviderStatus>, now: Now, full: bool) -> PlanOutput {
    if status.is_some_and(|status| status.pending == 0) {
        plan.steps.clear();
    }
    for (zone, name, reason) in status.iter().flat_map(|status| &status.rejected) {
        let of_it = |step: &&mut Step| step.zone == *zone && step.unit.name == *name;
        let lines = plan.steps.iter_mut().filter(of_it).flat_map(|step| &mut step.lines);
        lines.for_each(|line| line.why = format!("the server rejects it: {reason}").into());
    }
    let age = status.and_then(|status| status.parked.as_ref()).map(|parked| parked.age);
    let changes = plan
        .steps
        .iter()
        .flat_map(|step| step.lines.iter().map(|line| change(&step.zone, &step.unit.name, line, None)));
    let parked = plan.parked.iter().flat_map(|parked| &parked.changes);
    let parked_changes = parked.flat_map(|parked| {
        parked.lines.iter().map(|line| change(&parked.zone, &parked.name, line, Some(&parked.guard)))
    });
    PlanOutput {
        provider: plan.provider.to_string(),
        mode: mode(plan.mode),
        hash: plan.hash.to_string(),
        generation: plan.generation,
        changes: changes.collect(),
        parked: plan.parked.as_ref().map(|parked| ParkedOutput {
            changes: count(parked.changes.len()),
            hash: parked.hash.to_string(),
            since: age.and_then(|age| now.at.checked_sub(age).ok()),
        }),
        parked_changes: parked_changes.collect(),
        blocked: blocked(&plan),
        refused: refused(&plan),
        kept: kept(&plan, now),
        drift: drift(&plan),
        objects: None,
        error: None,
        paused: None,
        text: if full { plan.at(now).in_full().to_string() } else { plan.at(now).to_string() },
    }
}

/// The entry of a provider that has no plan, because its server was never read.
pub(crate) fn never_read(status: &ProviderStatus, observed: bool) -> PlanOutput {
    PlanOutput {
        provider: status.name.to_string(),
        mode: if observed { types::Mode::Observe } else { mode(status.mode) },
        hash: String::new(),
        generation: status.generation,
        changes: Vec::new(),
        parked: None,
        parked_changes: Vec::new(),
        blocked: Vec::new(),
        refused: Vec::new(),
        kept: Vec::new(),
        drift: Vec::new(),
        objects: None,
        error: Some("it is being read for the first time".to_owned()),
        paused: None,
        text: String::new(),
    }
}

/// Puts before a plan what a person must know to read it: that the server cannot be read, or that a pause holds it back.
pub(crate) fn with_state(mut plan: PlanOutput, status: &ProviderStatus) -> PlanOutput {
    let mut lines = Vec::new();
    if status.unread {
        plan.error = status.error.clone().or(plan.error);
    }
    if let Some(error) = &plan.error {
        let since = if plan.text.is_empty() { "" } else { "; what follows was planned before" };
        lines.push(format!("{} cannot be read: {error}{since}", plan.provider));
    }
    if let Some(pause) = &status.paused {
        let paused = format!("{pause}; `{}` ends that", pause.resume_command());
        lines.push(format!("{} is {paused}", plan.provider));
        plan.paused = Some(paused);
    }
    if !lines.is_empty() {
        plan.text = lines.into_iter().map(|line| line + "\n").chain([plan.text]).collect();
    }
    plan
}

pub(crate) fn change(zone: &Name, name: &Name, line: &Line, guard: Option<&str>) -> ChangeOutput {
    let action = match line.sign {
        Sign::Add => ChangeAction::Add,
        Sign::Change => ChangeAction::Change,
        Sign::Remove => ChangeAction::Remove,
    };
    ChangeOutput {
        zone: zone.to_string(),
        name: name.to_string(),
        action,
        kind: line.kind.map(Into::into),
        value: line.text.clone(),
        why: line.why.to_string(),
        guard: guard.map(str::to_owned),
    }
}

fn blocked(plan: &Plan) -> Vec<BlockedOutput> {
    let values = |values: &[RecordData]| values.iter().map(|one| format!("{} {one}", one.kind())).collect();
    let output = |blocked: &netstead_plan::Blocked| BlockedOutput {
        name: blocked.name.to_string(),
        wanted: values(&blocked.wanted),
        found: values(&blocked.found),
        why: blocked.why.clone(),
        owner: blocked.owner.clone(),
        adopt: blocked.adopt,
        share: blocked.share,
        holder: blocked.holder.clone(),
        free_by: blocked.free_by.clone(),
    };
    plan.blocked.iter().map(output).collect()
}

fn refused(plan: &Plan) -> Vec<RefusedOutput> {
    let output = |refused: &netstead_plan::Refused| RefusedOutput {
        name: refused.name.to_string(),
        why: refused.why.clone(),
    };
    plan.refused.iter().map(output).collect()
}

fn kept(plan: &Plan, now: Now) -> Vec<KeptOutput> {
    let output = |kept: &netstead_plan::Kept| KeptOutput {
        name: kept.name.to_string(),
        kind: kept.value.as_ref().map(|value| value.kind().into()),
        value: kept.value.as_ref().map(ToString::to_string),
        why: kept.why.at(now),
    };
    plan.kept.iter().map(output).collect()
}

fn drift(plan: &Plan) -> Vec<DriftOutput> {
    let output = |drift: &netstead_plan::Drift| DriftOutput {
        provider: plan.provider.to_string(),
        name: drift.name.to_string(),
        kind: drift.value.kind().into(),
        value: drift.value.to_string(),
        drift: drift_kind(drift.kind),
    };
    plan.drift.iter().map(output).collect()
}

pub(crate) fn drift_kind(kind: DriftKind) -> types::DriftKind {
    match kind {
        DriftKind::Missing => types::DriftKind::Missing,
        DriftKind::Foreign => types::DriftKind::Foreign,
        DriftKind::Mark => types::DriftKind::Mark,
    }
}
