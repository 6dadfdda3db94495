//! Everything that runs, with its names, or why it has none.

use std::fmt::Write as _;

use askama::Template;
use axum::response::Response;
use netstead_client::types::{Page, SourceOutput, WorkloadOutput};

use super::history::encoded;
use crate::{
    calls::Target,
    parts::Words,
    shell::{Section, Shell},
    visit::{Params, Visit},
};

const ROWS: &str = "100";

#[derive(Debug, Template)]
#[template(path = "workloads.html")]
struct WorkloadsPage {
    shell: Shell,
    source: String,
    sources: Vec<String>,
    workloads: Vec<Line>,
    next: String,
}

#[derive(Debug)]
struct Line {
    name: String,
    id: String,
    source: String,
    kind: String,
    state: String,
    is_present: bool,
    addresses: Vec<Link>,
    names: Vec<Link>,
    why_not: Vec<Words>,
    /// The label that gives it a name, where it has none.
    label: String,
}

#[derive(Debug)]
struct Link {
    text: String,
    href: String,
}

pub(crate) async fn list(visit: Visit, params: Params) -> Response {
    let source = params.text("source").to_owned();
    let target = Target::of(["workloads"])
        .with("source", &source)
        .with("limit", ROWS)
        .with("after", params.text("after"));
    let (workloads, sources) = tokio::join!(
        visit.calls.get::<Page<WorkloadOutput>>(target),
        visit.calls.get::<Page<SourceOutput>>(Target::of(["sources"]).with("limit", "1000"))
    );
    let workloads = match workloads {
        Ok(workloads) => workloads,
        Err(trouble) => return visit.trouble(&trouble),
    };
    let sources = sources.map(|page| page.items).unwrap_or_default();
    let base = visit.base();
    let line = |workload: &WorkloadOutput| {
        let link = |kind: &'static str| {
            move |text: &String| Link { href: format!("{base}/{kind}/{}", encoded(text)), text: text.clone() }
        };
        let of = sources.iter().find(|source| source.name == workload.source);
        let label = match of.map(|source| source.kind.as_str()) {
            Some("docker") if workload.names.is_empty() => {
                format!("netstead.hostname={}.home.example.com", workload.name)
            }
            _ => String::new(),
        };
        Line {
            name: workload.name.clone(),
            id: workload.id.clone(),
            source: workload.source.clone(),
            kind: workload.kind.to_string(),
            is_present: workload.state == "present",
            state: workload.state.clone(),
            addresses: workload.addresses.iter().map(link("addresses")).collect(),
            names: workload.names.iter().map(link("names")).collect(),
            why_not: Words::each(&workload.why_not),
            label,
        }
    };
    let mut next = String::new();
    if let Some(cursor) = &workloads.next {
        next = format!("?after={}", encoded(cursor));
        if !source.is_empty() {
            let _ = write!(next, "&source={}", encoded(&source));
        }
    }
    visit.page(&WorkloadsPage {
        shell: visit.shell(Section::Workloads, "Workloads"),
        source,
        workloads: workloads.items.iter().map(line).collect(),
        sources: sources.into_iter().map(|source| source.name).collect(),
        next,
    })
}
