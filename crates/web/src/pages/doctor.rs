//! Findings of the doctor, with the command that helps.

use askama::Template;
use axum::response::Response;
use netstead_client::types::{DoctorOutput, FindingOutput, FindingState};

use crate::{
    calls::Target,
    parts::Words,
    shell::{Section, Shell},
    visit::Visit,
};

#[derive(Debug, Template)]
#[template(path = "doctor.html")]
struct DoctorPage {
    shell: Shell,
    problems: usize,
    notes: usize,
    findings: Vec<Finding>,
}

#[derive(Debug)]
pub(super) struct Finding {
    pub(super) mood: &'static str,
    pub(super) state: String,
    pub(super) about: String,
    pub(super) text: Words,
    pub(super) hint: Option<Words>,
}

pub(super) fn finding(finding: FindingOutput) -> Finding {
    Finding {
        mood: match finding.state {
            FindingState::Problem => "bad",
            FindingState::Note => "wait",
            _ => "good",
        },
        state: finding.state.to_string(),
        about: finding.about,
        text: Words::new(&finding.text),
        hint: finding.hint.as_deref().map(Words::new),
    }
}

pub(crate) async fn show(visit: Visit) -> Response {
    let output: DoctorOutput = match visit.calls.get(Target::of(["doctor"])).await {
        Ok(output) => output,
        Err(trouble) => return visit.trouble(&trouble),
    };
    let count = |state: FindingState| output.findings.iter().filter(|finding| finding.state == state).count();
    let (problems, notes) = (count(FindingState::Problem), count(FindingState::Note));
    let mut findings = output.findings;
    findings.sort_by_key(|finding| match finding.state {
        FindingState::Problem => 0,
        FindingState::Note => 1,
        _ => 2,
    });
    visit.page(&DoctorPage {
        problems,
        notes,
        findings: findings.into_iter().map(finding).collect(),
        shell: visit.shell(Section::Doctor, "Doctor"),
    })
}
