//! `deploy/kubernetes`: the chart through the real Helm, and what it renders in the eyes of a real API server.
//!
//! Helm is one of the peers that are not built everywhere. Without it the committed manifests are tested, with a digest of the
//! chart that they were rendered from.

mod rights;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use netstead_testkit::{Helm, KubeApiServer, skip_without};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::sandbox::Sandbox;

/// The directories of plain manifests. Each has the values it is rendered with.
const VARIANTS: [&str; 4] = ["local", "raft", "etcd", "namespaced"];
const DEFINITIONS: &str = include_str!("../../../sources/tests/it/kubernetes/definitions.yaml");

fn kubernetes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes")
}

fn variant(name: &str) -> PathBuf {
    kubernetes().join("manifests").join(name)
}

/// The committed manifests of a variant.
fn manifests(name: &str) -> String {
    fs::read_to_string(variant(name).join("netstead.yaml")).unwrap()
}

fn helm() -> Option<Helm> {
    let helm = Helm::find();
    if helm.is_none() {
        skip_without("Helm is not here; `cargo xtask test --peers` builds it");
    }
    helm
}

fn render(helm: &Helm, files: &[PathBuf], values: &[&str]) -> Result<String, String> {
    let rendered = helm.render(&kubernetes().join("chart"), ("netstead", "netstead"), files, values);
    rendered.map_err(|error| error.to_string())
}

/// All files of a directory, sorted.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Of the chart and the values of a variant.
fn digest(name: &str) -> String {
    let mut digest = Sha256::new();
    let values = variant(name).join("values.yaml");
    for path in files_below(&kubernetes().join("chart")).into_iter().chain([values]) {
        digest.update(path.strip_prefix(kubernetes()).unwrap().to_str().unwrap());
        digest.update(fs::read(path).unwrap());
    }
    digest.finalize().iter().take(16).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

const RENDER: &str = "UPDATE_DOCS=1 cargo test -p netstead --test it kubernetes_manifests";

/// The committed part of a rendered chart: without the lines that only Helm needs.
fn plain(name: &str, rendered: &str) -> String {
    let of_helm = ["# Source: ", "app.kubernetes.io/managed-by: ", "helm.sh/chart: "];
    let ours = |line: &&str| !of_helm.iter().any(|start| line.trim_start().starts_with(start));
    let head = format!("# Rendered from ../../chart with values.yaml, digest {}: {RENDER}\n", digest(name));
    rendered.lines().filter(ours).fold(head, |text, line| text + line.trim_end() + "\n")
}

fn objects(yaml: &str) -> Vec<Value> {
    let parts = format!("\n{yaml}");
    let parts =
        parts.split("\n---").map(str::trim).filter(|part| part.lines().any(|line| !line.starts_with('#')));
    parts.map(|part| serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{error}\n{part}"))).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// The `netstead.toml` in the `ConfigMap`.
fn configuration(objects: &[Value]) -> String {
    of_kind(objects, "ConfigMap")[0]["data"]["netstead.toml"].as_str().unwrap().to_owned()
}

#[test]
fn the_plain_manifests_are_what_the_chart_renders() {
    let Some(helm) = helm() else { return };
    for name in VARIANTS {
        let made = plain(name, &render(&helm, &[variant(name).join("values.yaml")], &[]).unwrap());
        let path = variant(name).join("netstead.yaml");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == made, "{} is old: {RENDER}", path.display());
    }
}

#[test]
fn the_plain_manifests_are_of_this_chart_and_complete() {
    for name in VARIANTS {
        if std::env::var_os("UPDATE_DOCS").is_none() {
            let rendered_from = format!(", digest {}: ", digest(name));
            assert!(manifests(name).contains(&rendered_from), "{name} is old, and Helm is needed: {RENDER}");
        }
        let kustomization = fs::read_to_string(variant(name).join("kustomization.yaml")).unwrap();
        let kustomization: Value = serde_saphyr::from_str(&kustomization).unwrap();
        for resource in kustomization["resources"].as_array().unwrap() {
            assert!(variant(name).join(resource.as_str().unwrap()).exists(), "{resource} of {name}");
        }
    }
}

/// A pod as the `StatefulSet` makes it, without what its controllers add.
fn pod(objects: &[Value]) -> String {
    let set = of_kind(objects, "StatefulSet")[0];
    let mut pod = set["spec"]["template"].clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = "netstead-0".into();
    let claim = serde_json::json!({ "name": "state", "persistentVolumeClaim": { "claimName": "state" } });
    let volumes = pod["spec"]["volumes"].as_array_mut().unwrap();
    if volumes.iter().all(|volume| volume["name"] != "state") {
        volumes.push(claim);
    }
    pod.to_string()
}

#[test]
fn a_real_api_server_takes_the_manifests_and_calls_the_pods_restricted() {
    let server = KubeApiServer::shared();
    server.apply(&fs::read_to_string(variant("namespace").join("namespace.yaml")).unwrap());
    for name in VARIANTS {
        let text = manifests(name);
        assert_eq!(server.dry_run(&text, "netstead"), Vec::<String>::new(), "{name}");
        // The namespace enforces the strictest of the standards for pods.
        let pod = pod(&objects(&text));
        assert_eq!(server.dry_run(&pod, "netstead"), Vec::<String>::new(), "{name}");
        let open = pod.replace("\"allowPrivilegeEscalation\":false", "\"allowPrivilegeEscalation\":true");
        assert_eq!(server.dry_run(&open, "netstead").len(), 1, "{name}");
    }
}

#[test]
fn a_real_api_server_takes_what_the_chart_renders_of_every_value() {
    let Some(helm) = helm() else { return };
    let server = KubeApiServer::shared();
    server.apply(&fs::read_to_string(variant("namespace").join("namespace.yaml")).unwrap());
    let all = [
        "source.namespaces=[\"default\"]",
        "source.gatewayNamespaces=[\"kube-system\"]",
        "source.nodes=true",
        "networkPolicy.apiFrom=[{\"namespaceSelector\":{}}]",
        "networkPolicy.dnsFrom=[{\"ipBlock\":{\"cidr\":\"10.0.0.0/8\"}}]",
        "dns.service.type=\"LoadBalancer\"",
        "dns.service.loadBalancerClass=\"example.com/lb\"",
        "api.tlsSecretName=\"tls\"",
        "secrets=[\"keys\"]",
        "env=[{\"name\":\"TZ\",\"value\":\"UTC\"}]",
        "persistence.storageClass=\"fast\"",
        "tolerations=[{\"operator\":\"Exists\"}]",
        "nodeSelector={\"a\":\"b\"}",
        "priorityClassName=\"high\"",
        "podLabels={\"a\":\"b\"}",
        "podAnnotations={\"a\":\"b\"}",
        "imagePullSecrets=[{\"name\":\"pull\"}]",
        "serviceAccount.annotations={\"a\":\"b\"}",
        "persistence.annotations={\"a\":\"b\"}",
        "source.extraRules=[{\"apiGroups\":[\"example.com\"],\"resources\":[\"hosts\"],\"verbs\":[\"list\",\"watch\"]}]",
        "topologySpreadConstraints=[{\"maxSkew\":1,\"topologyKey\":\"zone\",\"whenUnsatisfiable\":\"ScheduleAnyway\"}]",
    ];
    let rendered = render(&helm, &[variant("raft").join("values.yaml")], &all).unwrap();
    assert_eq!(server.dry_run(&rendered, "netstead"), Vec::<String>::new());
}

#[test]
fn netstead_takes_the_configuration_that_the_chart_writes() {
    for name in VARIANTS {
        takes_configuration(name, &manifests(name));
    }
    let Some(helm) = helm() else { return };
    let some = [
        "source.kinds=[\"ingress\",\"httproute\"]",
        "source.namespaces=[\"shop\",\"blog\"]",
        "source.gatewayNamespaces=[\"infra\"]",
        "source.settings={\"default_targets\":[\"192.0.2.10\"],\"publish_cluster_ips\":true,\"claims\":{\"team-*\":\"*.t.example.com\"}}",
        "config=\"[dns.lan]\\ntype = \\\"builtin\\\"\\ndomains = [\\\"example.com\\\"]\\n\"",
        "api.hosts=[\"netstead.example.com\"]",
    ];
    let user = ["store.etcd.user=\"netstead\"", "store.etcd.passwordSecretName=\"p\"", "bind=\"[::]\""];
    for (name, files, values) in [
        ("some", vec![], &some[..]),
        ("user", vec![variant("etcd").join("values.yaml")], &user[..]),
        ("no source", vec![], &["source.enabled=false"][..]),
    ] {
        takes_configuration(name, &render(&helm, &files, values).unwrap());
    }
}

/// Asks the binary, with the variables of the pod and the files that secrets mount.
fn takes_configuration(name: &str, text: &str) {
    let sandbox = Sandbox::empty();
    let objects = objects(text);
    let written = configuration(&objects);
    let secrets = sandbox.path().join("secrets");
    for path in written.split('"').filter(|text| text.starts_with("/run/secrets/")) {
        let file = secrets.join(path.trim_start_matches("/run/secrets/"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "a secret of sixteen characters").unwrap();
    }
    let config = written.replace("/run/secrets", &secrets.display().to_string());
    fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    let mut command = sandbox.command();
    let container = &of_kind(&objects, "StatefulSet")[0]["spec"]["template"]["spec"]["containers"][0];
    for variable in container["env"].as_array().unwrap() {
        if let (Some(name), Some(value)) = (variable["name"].as_str(), variable["value"].as_str()) {
            command.env(name, value.replace("$(POD_NAME)", "netstead-0"));
        }
    }
    let said = command.args(["config", "check"]).output().unwrap();
    let told = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success() && !told.contains("warning"), "{name}: {told}\n{written}");
}

#[test]
fn values_that_cannot_work_are_refused_with_what_to_do() {
    let Some(helm) = helm() else { return };
    for (values, part) in [
        (&["replicas=3"][..], "Set `store.type` to `raft` or `etcd`, or `replicas` to 1"),
        (&["store.type=\"raft\"", "replicas=3"][..], "Name a Secret with a text of 16 characters or more"),
        (&["store.type=\"etcd\""][..], "store.etcd.endpoints: name the members of your etcd"),
        (&["persistence.enabled=false"][..], "a store of type `local` without a volume is lost with its pod"),
        (&["source.gatewayNamespaces=[\"infra\"]"][..], "Leave it out, or set `source.namespaces`"),
        (
            &["source.settings={\"kinds\":[\"pod\"]}"][..],
            "source.settings.kinds: the chart writes this key itself",
        ),
        (&["store.type=\"postgres\""][..], "/store/type"),
        (&["replica=3"][..], "additional properties 'replica' not allowed"),
        (&["source.kinds=[\"deployment\"]"][..], "/source/kinds/0"),
        (&["replicas=2"][..], "/replicas"),
    ] {
        let refused = render(&helm, &[], values).unwrap_err();
        assert!(refused.contains(part), "{values:?}: {refused}");
    }
}

/// The words at a place of the JSON Schema of `netstead.toml`, or of that of the chart.
fn words(schema: &Value, key: &str) -> BTreeSet<String> {
    match schema {
        Value::Object(map) => {
            let own = map.get(key).into_iter().flat_map(enumerated);
            own.chain(map.values().flat_map(|value| words(value, key))).collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| words(item, key)).collect(),
        _ => BTreeSet::new(),
    }
}

fn enumerated(schema: &Value) -> BTreeSet<String> {
    match schema {
        Value::Object(map) => {
            let own = map.get("enum").and_then(Value::as_array).into_iter().flatten();
            let own = own.filter_map(|word| word.as_str().map(str::to_owned));
            own.chain(map.values().flat_map(enumerated)).collect()
        }
        Value::Array(items) => items.iter().flat_map(enumerated).collect(),
        _ => BTreeSet::new(),
    }
}

#[test]
fn the_chart_knows_every_kind_that_netstead_reads() {
    let schema: Value = serde_json::from_str(&Sandbox::empty().does("config schema")).unwrap();
    let read = words(&schema, "kinds");
    assert!(read.contains("httproute"), "{read:?}");
    let values = fs::read_to_string(kubernetes().join("chart/values.schema.json")).unwrap();
    assert_eq!(words(&serde_json::from_str(&values).unwrap(), "kinds"), read);
    let rights = fs::read_to_string(kubernetes().join("chart/templates/_rights.tpl")).unwrap();
    for kind in read {
        assert!(rights.contains(&format!("\n{kind}: {{ group: ")), "{kind} has no line in _rights.tpl");
    }
}

#[test]
fn every_value_is_explained_and_checked() {
    let text = fs::read_to_string(kubernetes().join("chart/values.yaml")).unwrap();
    let values: Value = serde_saphyr::from_str(&text).unwrap();
    let schema = fs::read_to_string(kubernetes().join("chart/values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&values), "{:?}", validator.iter_errors(&values).collect::<Vec<_>>());
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let mut checked = keys(&schema["properties"]);
    assert!(checked.remove("global"), "Helm adds it by itself");
    assert_eq!(keys(&values), checked);
}
