//! Everything that runs, with its names, or why it has none.

use askama::Template;
use axum::response::Response;
use netstead_client::types::{Page, SourceOutput, WorkloadOutput, ZoneOutput};

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
    text: String,
    problems: bool,
    csv: String,
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
    let problems = !params.text("problems").is_empty();
    let target = Target::of(["workloads"])
        .with("source", &source)
        .with("problems", if problems { "true" } else { "" })
        .with("text", params.text("text"))
        .with("limit", ROWS)
        .with("after", params.text("after"));
    let (workloads, sources, zones) = tokio::join!(
        visit.calls.get::<Page<WorkloadOutput>>(target),
        visit.calls.get::<Page<SourceOutput>>(Target::of(["sources"]).with("limit", "1000")),
        visit.calls.get::<Page<ZoneOutput>>(Target::of(["zones"]).with("limit", "1000"))
    );
    let workloads = match workloads {
        Ok(workloads) => workloads,
        Err(trouble) => return visit.trouble(&trouble),
    };
    let sources = sources.map(|page| page.items).unwrap_or_default();
    let zones = zones.map(|page| page.items).unwrap_or_default();
    let is_reverse = |zone: &str| zone.rsplit('.').next() == Some("arpa");
    let zone = zones.iter().map(|zone| zone.zone.as_str()).find(|zone| !is_reverse(zone));
    let base = visit.base();
    let line = |workload: &WorkloadOutput| {
        let link = |kind: &'static str| {
            move |text: &String| Link { href: format!("{base}/{kind}/{}", encoded(text)), text: text.clone() }
        };
        let of = sources.iter().find(|source| source.name == workload.source);
        let label = of.zip(zone).filter(|_| workload.names.is_empty());
        let label = label.map(|(of, zone)| suggestion(of.kind.as_str(), &workload.name, zone));
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
            label: label.unwrap_or_default(),
        }
    };
    let next = workloads.next.as_ref().map(|cursor| format!("?{}", params.query(&[("after", cursor)])));
    visit.page(&WorkloadsPage {
        shell: visit.shell(Section::Workloads, "Workloads"),
        source,
        text: params.text("text").to_owned(),
        problems,
        workloads: workloads.items.iter().map(line).collect(),
        sources: sources.into_iter().map(|source| source.name).collect(),
        next: next.unwrap_or_default(),
        csv: format!("{base}/csv/workloads?{}", params.query(&[("after", "")])),
    })
}

/// The line that gives a workload a name in a zone that a server has, in the form of its platform. Empty for
/// platforms where names come from a file, or from the addresses of a guest.
fn suggestion(kind: &str, workload: &str, zone: &str) -> String {
    let label = workload.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let label: String = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let label = label.trim_matches('-');
    if label.is_empty() || label.len() > 63 {
        return String::new();
    }
    match kind {
        "docker" | "swarm" => format!("netstead.hostname={label}.{zone}"),
        "kubernetes" => format!("netstead.io/hostname: {label}.{zone}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggestion_is_in_the_words_of_the_platform_and_in_a_zone_that_is_there() {
        assert_eq!(suggestion("docker", "my_app.1", "home.test"), "netstead.hostname=my-app-1.home.test");
        assert_eq!(suggestion("kubernetes", "web/shop", "k8s.test"), "netstead.io/hostname: shop.k8s.test");
        assert_eq!(suggestion("hosts", "nas", "home.test"), "", "its names stand in the file");
        assert_eq!(suggestion("docker", "///", "home.test"), "");
    }
}
