//! One scenario per row: YAML in, records out.

use std::{collections::BTreeMap, fmt::Write as _};

use netstead_model::Report;
use netstead_testkit::KubeApiServer;

use super::{DEFINITIONS, record_lines, source, until};

const FILES: [(&str, &str); 7] = [
    ("ingress", include_str!("scenarios/ingress.yaml")),
    ("service", include_str!("scenarios/service.yaml")),
    ("gateway", include_str!("scenarios/gateway.yaml")),
    ("traefik", include_str!("scenarios/traefik.yaml")),
    ("records", include_str!("scenarios/records.yaml")),
    ("machines", include_str!("scenarios/machines.yaml")),
    ("custom", include_str!("scenarios/custom.yaml")),
];

struct Scenario {
    title: String,
    namespace: String,
    expected: Vec<String>,
    yaml: String,
}

fn scenarios() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (file, text) in FILES {
        for (number, part) in text.split("### ").skip(1).enumerate() {
            let (title, rest) = part.split_once('\n').unwrap();
            let lines = |expected: bool| rest.lines().filter(move |line| line.starts_with("#= ") == expected);
            let expected = lines(true).map(|line| line.trim_start_matches("#= ").to_owned()).collect();
            let yaml = lines(false).collect::<Vec<_>>().join("\n");
            let (title, namespace) = (title.to_owned(), format!("t-{file}-{number}"));
            all.push(Scenario { title, namespace, expected, yaml });
        }
    }
    all
}

fn by_namespace(report: &Report) -> BTreeMap<String, Vec<String>> {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for workload in report.workloads() {
        let namespace = workload.namespace.clone().unwrap_or_default();
        lines.entry(namespace).or_default().extend(record_lines(workload));
    }
    for lines in lines.values_mut() {
        lines.sort();
    }
    lines
}

/// `…` at the end of an expected line is any text.
fn agrees(found: &[String], expected: &[String]) -> bool {
    let same = |(found, expected): (&String, &String)| match expected.strip_suffix('…') {
        Some(start) => found.starts_with(start),
        None => found == expected,
    };
    found.len() == expected.len() && found.iter().zip(expected).all(same)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_with_each_annotation_gives_the_records_that_its_user_expects() {
    let server = KubeApiServer::start(&[]);
    server.apply(DEFINITIONS);
    server.apply(netstead_sources::kubernetes::DEFINITIONS);
    server.apply(include_str!("nodes.yaml"));
    let scenarios = scenarios();
    for scenario in &scenarios {
        server.apply_in(&scenario.namespace, &scenario.yaml);
    }
    let kinds = "kinds = [\"ingress\", \"service\", \"httproute\", \"grpcroute\", \"tlsroute\", \"tcproute\", \
                 \"udproute\", \"ingressroute\", \"ingressroutetcp\", \"dnsendpoint\", \"dnsrecord\", \"node\", \"pod\", \
                 \"istio-gateway\", \"istio-virtualservice\", \"contour-httpproxy\", \"openshift-route\"]\n[[custom]]\nkind = \
                 \"doors.house.example.com\"\nhosts = [\"spec.url\", \"spec.aliases[]\"]\ntargets = \"status.addresses[].value\"";
    let source = source(&server, kinds);
    let nodes = [
        "! its own address is not known: it has no such address",
        "node-1.nodes.test A 203.0.113.31",
        "node-2.nodes.test A 10.10.0.32",
        "node-4.nodes.test A 10.10.0.34",
        "node-5.nodes.test the provider's target",
    ]
    .map(str::to_owned);
    let wrong = |report: &Report| {
        let found = by_namespace(report);
        let none = Vec::new();
        let mut wrong = String::new();
        for scenario in &scenarios {
            let mut expected = scenario.expected.clone();
            expected.sort();
            let found = found.get(&scenario.namespace).unwrap_or(&none);
            if !agrees(found, &expected) {
                let _ = write!(wrong, "{}\n expected {expected:#?}\n found {found:#?}\n", scenario.title);
            }
        }
        let found = found.get("").unwrap_or(&none);
        if !agrees(found, &nodes) {
            let _ = write!(wrong, "nodes\n expected {nodes:#?}\n found {found:#?}\n");
        }
        wrong
    };
    let seen = until(source.as_ref(), |report| wrong(report).is_empty().then_some(())).await;
    if let Err(report) = seen {
        panic!(
            "{}\n{:?}",
            wrong(&report),
            report.scopes.iter().map(|(scope, of)| (scope, &of.view)).collect::<Vec<_>>()
        );
    }
}
