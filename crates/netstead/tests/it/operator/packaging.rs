//! `deploy/capi`: the files that clusterctl and the Cluster API operator install from.

use std::{fs, path::Path};

use netstead_operator::PoolKind;
use serde::Deserialize;
use serde_json::Value;

const TEMPLATE: &str = include_str!("components.yaml");
const UPDATE: &str = "UPDATE_DOCS=1 cargo test -p netstead --test it operator::packaging";

fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/capi").join(name)
}

/// The components: rights for every kind of pool, and the image of this version.
fn rendered() -> String {
    let list = |own: bool, part: &str| {
        let kinds = PoolKind::ALL.iter().filter(|kind| (kind.group() == "ipam.netstead.io") == own);
        kinds.fold(String::new(), |text, kind| text + "\n  - " + kind.plural() + part)
    };
    TEMPLATE
        .replace(" @pools@", &list(false, ""))
        .replace(" @pools/status@", &list(false, "/status"))
        .replace("\n  - @pools/finalizers@", &list(false, "/finalizers"))
        .replace(" @own-pools@", &list(true, ""))
        .replace(" @own-pools/status@", &list(true, "/status"))
        .replace(" @own-pools/finalizers@", &list(true, "/finalizers"))
        .replace("@version@", env!("CARGO_PKG_VERSION"))
}

#[test]
fn the_components_are_those_of_the_kinds_and_the_version() {
    let path = file("ipam-components.yaml");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, rendered()).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == rendered(), "it is not current: {UPDATE}");
}

/// Fields that clusterctl knows; it refuses others.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Metadata {
    api_version: String,
    kind: String,
    release_series: Vec<Series>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Series {
    major: u64,
    minor: u64,
    contract: String,
}

#[test]
fn clusterctl_finds_the_series_of_this_version_and_its_contract() {
    let text = fs::read_to_string(file("metadata.yaml")).unwrap();
    let metadata: Metadata = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(
        (metadata.api_version.as_str(), metadata.kind.as_str()),
        ("clusterctl.cluster.x-k8s.io/v1alpha3", "Metadata")
    );
    let number = |text: &str| text.parse::<u64>().unwrap();
    let own = (number(env!("CARGO_PKG_VERSION_MAJOR")), number(env!("CARGO_PKG_VERSION_MINOR")));
    let series: Vec<_> =
        metadata.release_series.iter().filter(|series| (series.major, series.minor) == own).collect();
    assert_eq!(series.len(), 1, "{metadata:?}");
    assert_eq!(series[0].contract, "v1beta2");
}

fn objects() -> Vec<Value> {
    super::components().split("\n---\n").map(|text| serde_saphyr::from_str(text).unwrap()).collect()
}

#[test]
fn there_is_one_namespace_and_everything_is_in_it_and_labelled() {
    let objects = objects();
    let of_kind = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).collect::<Vec<_>>();
    let namespaces = of_kind("Namespace");
    assert_eq!(namespaces.len(), 1);
    let namespace = &namespaces[0]["metadata"]["name"];
    for object in &objects {
        let metadata = &object["metadata"];
        let of_the_cluster = [
            "Namespace",
            "ClusterRole",
            "ClusterRoleBinding",
            "ValidatingWebhookConfiguration",
            "MutatingWebhookConfiguration",
        ];
        let is_of_cluster = of_the_cluster.iter().any(|kind| object["kind"] == *kind);
        assert_eq!(metadata.get("namespace"), (!is_of_cluster).then_some(namespace), "{object}");
        assert_eq!(metadata["labels"]["cluster.x-k8s.io/provider"], "ipam-netstead", "{object}");
    }
    // clusterctl looks for this container and this flag, and puts variables of this form in.
    let deployments = of_kind("Deployment");
    assert_eq!(deployments.len(), 1);
    let containers = deployments[0]["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.iter().map(|one| one["name"].clone()).collect::<Vec<_>>(), ["manager"]);
    let text = fs::read_to_string(file("ipam-components.yaml")).unwrap();
    assert_eq!(text.matches('$').count(), text.matches("${").count());
    let help = crate::sandbox::Sandbox::empty().does("operator --help");
    for flag in [
        "--namespace",
        "--watch-filter",
        "--leader-elect",
        "--diagnostics-address",
        "--health-probe-bind-address",
        "--metrics-bind-address",
        "--concurrency",
        "--webhook-port",
        "--webhook-cert-dir",
    ] {
        assert!(help.contains(flag), "{flag}");
    }
}
