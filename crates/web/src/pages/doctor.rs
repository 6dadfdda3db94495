//! Findings of the doctor, with the command that helps.

use askama::Template;
use axum::response::Response;
use netstead_client::types::{DoctorOutput, FindingState};

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
struct Finding {
    mood: &'static str,
    state: String,
    about: String,
    text: Words,
    hint: Option<Words>,
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
    let findings = findings.into_iter().map(|finding| Finding {
        mood: match finding.state {
            FindingState::Problem => "bad",
            FindingState::Note => "wait",
            _ => "good",
        },
        state: finding.state.to_string(),
        about: finding.about,
        text: Words::new(&finding.text),
        hint: finding.hint.as_deref().map(Words::new),
    });
    visit.page(&DoctorPage {
        problems,
        notes,
        findings: findings.collect(),
        shell: visit.shell(Section::Doctor, "Doctor"),
    })
}
