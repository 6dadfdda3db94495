//! The checks of one source: its last report, and what it finds out about itself now.

use std::time::Duration;

use netstead_model::{Diagnosis, Grade, View};
use tokio::time::timeout;

use super::{Finding, many};
use crate::{SourceStatus, source_poller::SourceHandle};

/// How long a source may take to check itself.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) async fn diagnose_source(status: &SourceStatus, handle: Option<&SourceHandle>) -> Vec<Finding> {
    let reported = source_finding(status);
    let Some(handle) = handle else { return vec![reported] };
    let late = |_| {
        let text = format!("it does not answer within {} s", PATIENCE.as_secs());
        vec![Diagnosis::problem(text, format!("look at what `[source.{}]` points at", status.name))]
    };
    let found = timeout(PATIENCE, handle.setup.source.diagnose()).await.unwrap_or_else(late);
    merged(reported, found)
}

/// A problem that the last report has already told is shown once, with the more exact hint.
fn merged(mut reported: Finding, found: Vec<Diagnosis>) -> Vec<Finding> {
    let about = reported.about.clone();
    let mut findings = Vec::new();
    for Diagnosis { grade, text, hint } in found {
        if grade == Grade::Problem && reported.text.contains(&text) {
            reported.hint = hint.or(reported.hint);
        } else {
            findings.push(Finding { grade, about: about.clone(), text, hint });
        }
    }
    findings.insert(0, reported);
    findings
}

fn source_finding(source: &SourceStatus) -> Finding {
    let (name, about) = (&source.name, format!("source.{}", source.name));
    if source.detached {
        let text = format!(
            "it is no longer configured, and {} of it still known",
            many(source.workloads + source.absent, "workload")
        );
        let hint = format!(
            "its names stay, and are looked after again once it is configured; if it is gone for good, `netstead clean --source {name}` takes them away"
        );
        return Finding::note(&about, text, hint);
    }
    if source.begun.is_none() {
        let text = "it has not reported yet".to_owned();
        return Finding::note(&about, text, "look again in a moment".to_owned());
    }
    if let Some(suspect) = source.suspect {
        let text = format!("{} of {} workloads vanished at once", suspect.missing, suspect.of);
        let hint = format!(
            "`netstead get workloads --source {name}` shows them; if they are really gone, wait: it is believed once it says so again"
        );
        return Finding::problem(&about, text, hint);
    }
    match &source.view {
        View::Complete => {
            Finding::fine(&about, format!("it sees everything: {}", many(source.workloads, "workload")))
        }
        View::Partial { reason } => Finding::problem(
            &about,
            format!("it does not see everything: {reason}"),
            "until it does, none of its names is removed".to_owned(),
        ),
        View::Failed { reason } => Finding::problem(
            &about,
            format!("it sees nothing: {reason}"),
            format!(
                "correct what `[source.{name}]` says, or what it looks at; until then none of its names is removed"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_that_was_reported_is_shown_once_with_the_exact_hint() {
        let reported = || {
            Finding::problem("source.dock", "it sees nothing: there is no socket".into(), "correct it".into())
        };
        let found = vec![
            Diagnosis::problem("there is no socket", "start Docker"),
            Diagnosis::note("the clock is odd", "set it"),
        ];
        let told = reported().text;
        assert_eq!(
            merged(reported(), found),
            [
                Finding::problem("source.dock", told, "start Docker".into()),
                Finding::note("source.dock", "the clock is odd".into(), "set it".into()),
            ]
        );
        assert_eq!(merged(reported(), Vec::new()), [reported()]);
    }
}
