//! A real API server, and what is made of its objects.

mod choices;
mod load_balancers;
mod matrix;
mod reporting;
mod safety;
mod scenarios;

use std::{fmt::Write as _, sync::Arc, time::Duration};

use netstead_model::{Content, Report, Source, View, Wish, Workload};
use netstead_settings::{BuildContext, Configured as _, Problems, Section, Settings as _};
use netstead_sources::kubernetes::KubernetesSettings;
use netstead_testkit::KubeApiServer;

const DEFINITIONS: &str = include_str!("kubernetes/definitions.yaml");

fn read(text: &str) -> KubernetesSettings {
    let mut problems = Problems::new(std::path::Path::new("x.toml"), text);
    let table = netstead_settings::parse(text, &mut problems);
    let settings = KubernetesSettings::read(&mut Section::open("source.k", &table, &mut problems));
    settings.unwrap_or_else(|| panic!("{problems:?}"))
}

/// A source that reads the cluster with this kubeconfig, with `more` in its table.
fn source_of(kubeconfig: &std::path::Path, more: &str) -> Arc<dyn Source> {
    let settings = read(&format!("kubeconfig = \"{}\"\n{more}\n", kubeconfig.display()));
    settings.check().unwrap();
    settings.build(&BuildContext::new("k".parse().unwrap())).unwrap()
}

fn source(server: &KubeApiServer, more: &str) -> Arc<dyn Source> {
    source_of(&server.kubeconfig(), more)
}

/// The view of one scope, or `-`.
fn view(report: &Report, scope: &str) -> String {
    match report.scopes.get(scope).map(|scope| &scope.view) {
        None => "-".to_owned(),
        Some(View::Complete) => "complete".to_owned(),
        Some(View::Partial { reason }) => format!("partial: {reason}"),
        Some(View::Failed { reason }) => format!("failed: {reason}"),
    }
}

/// All workloads of a source now, whatever it reported before.
async fn all(source: &dyn Source) -> Report {
    source.remember(Vec::new());
    source.report().await
}

/// Looks again and again until `found` finds something; the last report if it does not.
async fn until<T>(source: &dyn Source, found: impl Fn(&Report) -> Option<T>) -> Result<T, Box<Report>> {
    let mut last = None;
    for _ in 0..300 {
        let report = all(source).await;
        if let Some(found) = found(&report) {
            return Ok(found);
        }
        last = Some(report);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(Box::new(last.unwrap()))
}

/// `name TYPE values`, one line for each set.
fn record_lines(workload: &Workload) -> Vec<String> {
    let mut lines: Vec<String> = workload.wishes.iter().flat_map(wish_lines).collect();
    let mark = if workload.unclear { '?' } else { '!' };
    lines.extend(workload.why_not.iter().map(|why| format!("{mark} {why}")));
    lines.sort();
    lines
}

fn wish_lines(wish: &Wish) -> Vec<String> {
    let mut end = String::new();
    if let Some(ttl) = wish.ttl {
        let _ = write!(end, " ttl {ttl}");
    }
    if wish.proxied == Some(true) {
        end.push_str(" proxied");
    }
    for provider in &wish.providers {
        let _ = write!(end, " at {provider}");
    }
    let line = |kind: &str, values: Vec<String>| format!("{} {kind} {}{end}", wish.name, values.join(" "));
    match &wish.content {
        Content::Addresses(addresses) if addresses.is_empty() => {
            vec![format!("{} the provider's target{end}", wish.name)]
        }
        Content::Addresses(addresses) => {
            let of = |v6: bool| -> Vec<String> {
                let ips = addresses.iter().filter_map(|address| address.to_ip());
                ips.filter(|ip| ip.is_ipv6() == v6).map(|ip| ip.to_string()).collect()
            };
            let sets = [("A", of(false)), ("AAAA", of(true))].into_iter();
            sets.filter(|(_, values)| !values.is_empty()).map(|(kind, values)| line(kind, values)).collect()
        }
        Content::Records { kind, values } => {
            vec![line(&kind.to_string(), values.iter().map(ToString::to_string).collect())]
        }
    }
}

/// The names that workloads ask for.
fn names(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = report
        .workloads()
        .into_iter()
        .flat_map(|workload| workload.wishes.iter().map(|wish| wish.name.to_string()))
        .collect();
    names.sort();
    names
}
