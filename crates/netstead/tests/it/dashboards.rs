//! The metrics of a running server, their reference page, the alerts and the dashboard speak of the same names.

use std::{collections::BTreeSet, fs, path::Path};

use crate::sandbox::Sandbox;

/// Metrics of clusters, of daily backups, of calls and queries, and of the operator, none of which this test has.
const NOT_ALWAYS: &[&str] = &[
    "netstead_backup_age_seconds",
    "netstead_backup_failing",
    "netstead_call_duration_seconds",
    "netstead_dns_queries_total",
    "netstead_members_silent",
    "netstead_operator_allocation_seconds",
    "netstead_operator_allocations_total",
    "netstead_operator_claims_waiting",
    "netstead_operator_pool_addresses",
    "netstead_provider_calls_total",
    "netstead_source_call_duration_seconds",
    "netstead_source_calls_total",
];

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// Every word of the text that begins like a metric.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names = words.filter(|word| word.starts_with("netstead_"));
    names.map(|name| name.strip_suffix("_bucket").unwrap_or(name).to_owned()).collect()
}

fn documented() -> BTreeSet<String> {
    metrics(&file("docs/reference/metrics.md"))
}

#[test]
fn alerts_and_dashboard_use_metrics_that_exist() {
    let documented = documented();
    for path in ["deploy/prometheus/alerts.yaml", "deploy/grafana/netstead.json"] {
        let used = metrics(&file(path));
        assert!(!used.is_empty(), "{path} should use metrics");
        let unknown: Vec<&String> = used.difference(&documented).collect();
        assert!(unknown.is_empty(), "{path} uses {unknown:?}, which no page knows");
    }
}

#[test]
fn the_page_of_metrics_is_what_a_server_says() {
    let mut sandbox = Sandbox::empty();
    let hosts = sandbox.path().join("hosts");
    fs::write(&hosts, "10.0.3.9 printer\n").unwrap();
    let config = format!(
        "[source.file]\ntype = \"hosts\"\npath = \"{}\"\n\n[dns.own]\ntype = \"builtin\"\ndomains = [\"home.test\"]\n",
        hosts.display()
    );
    fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    sandbox.does("pool create lan --range 10.0.3.1-10.0.3.9");
    sandbox.does("claim lan web --hostname web.home.test");
    sandbox.does("apply");
    let said = String::from_utf8(
        std::process::Command::new("curl")
            .args(["--silent", "--fail", &format!("{}/metrics", sandbox.url())])
            .output()
            .unwrap()
            .stdout,
    )
    .unwrap();
    let types = said.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let sample = |(name, kind): (&str, &str)| match kind {
        "counter" => format!("{name}_total"),
        "info" => format!("{name}_info"),
        _ => name.to_owned(),
    };
    let there: BTreeSet<String> = types.map(sample).collect();
    let documented = documented();
    let not_told: Vec<&String> = there.difference(&documented).collect();
    assert!(not_told.is_empty(), "not in docs/reference/metrics.md: {not_told:?}");
    let gone: Vec<&String> =
        documented.difference(&there).filter(|name| !NOT_ALWAYS.contains(&name.as_str())).collect();
    assert!(gone.is_empty(), "docs/reference/metrics.md tells of {gone:?}, which the server does not have");
}
