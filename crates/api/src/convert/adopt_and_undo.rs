//! Reports of adopt, recover, clean and rollback.

use jiff::Timestamp;
use netstead_client::types::{FailedOutput, LeftOutput, TakeOutput, TakenOutput, UndoOutput, UndoneOutput};
use netstead_engine::{AdoptionReport, ProviderPlan, Undone};

use super::{dns, plan};

pub(crate) fn adopted(all: &[AdoptionReport], now: Timestamp) -> TakeOutput {
    let mut output = TakeOutput {
        taken: Vec::new(),
        left: Vec::new(),
        passes: Vec::new(),
        text: None,
        failed: Vec::new(),
    };
    for one in all {
        let provider = || one.provider.to_string();
        output.taken.extend(one.values.iter().map(|value| TakenOutput {
            provider: provider(),
            name: value.name.to_string(),
            kind: value.data.kind().into(),
            value: value.data.to_string(),
            by: value.by.clone(),
        }));
        output.left.extend(one.left.iter().map(|left| LeftOutput {
            provider: provider(),
            name: left.name.to_string(),
            kind: left.data.as_ref().map(|data| data.kind().into()),
            value: left.data.as_ref().map(ToString::to_string),
            why: left.why.clone(),
        }));
        output.passes.extend(one.report.iter().map(|report| dns::pass(report, now)));
        let failed = one.error.clone().map(|reason| FailedOutput { provider: provider(), reason });
        output.failed.extend(failed);
        if let Some(plan) = &one.plan {
            let text = output.text.get_or_insert_default();
            *text += &plan.to_string();
            text.push('\n');
        }
    }
    output
}

pub(crate) fn undone(undone: &Undone, now: Timestamp) -> UndoOutput {
    let plans = undone.plans.iter().filter_map(ProviderPlan::as_dns);
    let steps = plans.clone().flat_map(|plan| plan.steps.iter().map(move |step| (plan, step)));
    let changes = steps.flat_map(|(of, step)| {
        step.lines.iter().map(|line| UndoneOutput {
            provider: of.provider.to_string(),
            change: plan::change(&step.zone, &step.unit.name, line, None),
        })
    });
    UndoOutput {
        hash: undone.hash.clone(),
        changes: changes.collect(),
        passes: undone.reports.iter().map(|report| dns::pass(report, now)).collect(),
        paused: undone.paused.iter().map(ToString::to_string).collect(),
        forgotten: 0,
        notes: undone.notes.clone(),
        text: plans.flat_map(|plan| [plan.to_string(), "\n".to_owned()]).collect(),
    }
}
