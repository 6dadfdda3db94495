//! Reports of adopt, recover, clean and rollback.

use jiff::Timestamp;
use netstead_client::types::{
    FailedOutput, LeftOutput, TakeOutput, TakenOutput, UndoOutput, UndoneObjectOutput, UndoneOutput,
};
use netstead_engine::{AdoptionReport, ProviderPlan, Undone};

use super::{dns, ipam, plan};

pub(crate) fn adopted(all: &[AdoptionReport], now: Timestamp) -> TakeOutput {
    let mut output = TakeOutput {
        taken: Vec::new(),
        objects: Vec::new(),
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
        output.objects.extend(one.objects.iter().map(|object| ipam::taken(&one.provider, object)));
        output.passes.extend(one.report.iter().map(|report| dns::pass(report, now)));
        let failed = one.error.clone().map(|reason| FailedOutput { provider: provider(), reason });
        output.failed.extend(failed);
        let plan = one.plan.as_ref().map(ToString::to_string);
        if let Some(plan) = plan.or_else(|| one.object_plan.as_ref().map(ToString::to_string)) {
            let text = output.text.get_or_insert_default();
            *text += &plan;
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
    let systems = undone.plans.iter().filter_map(ProviderPlan::as_ipam);
    let objects = systems.clone().flat_map(|plan| {
        let changes = plan.steps.iter().flat_map(ipam::changes);
        changes.map(|change| UndoneObjectOutput { provider: plan.provider.to_string(), change })
    });
    let texts = plans.clone().map(ToString::to_string).chain(systems.clone().map(ToString::to_string));
    UndoOutput {
        objects: objects.collect(),
        hash: undone.hash.clone(),
        changes: changes.collect(),
        passes: undone.reports.iter().map(|report| dns::pass(report, now)).collect(),
        paused: undone.paused.iter().map(ToString::to_string).collect(),
        forgotten: 0,
        notes: undone.notes.clone(),
        text: texts.flat_map(|text| [text, "\n".to_owned()]).collect(),
    }
}
