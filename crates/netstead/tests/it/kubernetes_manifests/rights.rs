//! Each right of the service account is needed, and no other one is.

use std::{fs, path::Path};

use netstead_testkit::{KubeApiServer, wait_until};
use serde_json::{Value, json};

use super::{DEFINITIONS, configuration, helm, kubernetes, manifests, objects, of_kind, variant};
use crate::sandbox::{SOON, Sandbox};

const RIGHTS: [&str; 5] = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
/// Services that point at what other kinds know.
const SERVICES: &str = "\
apiVersion: v1
kind: Service
metadata:
  name: headless
  annotations: { netstead.io/hostname: headless.example.com }
spec: { clusterIP: None, selector: { app: db }, ports: [{ port: 5432 }] }
---
apiVersion: v1
kind: Service
metadata:
  name: port
  annotations: { netstead.io/hostname: port.example.com }
spec: { type: NodePort, selector: { app: db }, ports: [{ port: 5432 }] }
";

/// Gives the service account in a text its rights, and nothing else of the text.
fn give_rights(server: &KubeApiServer, objects: &[Value]) {
    for object in objects.iter().filter(|object| RIGHTS.iter().any(|kind| object["kind"] == *kind)) {
        server.apply(&object.to_string());
    }
}

/// A server with the source as the chart writes it, and the token of its service account.
fn started(written: &str, kubeconfig: &Path) -> Sandbox {
    let (_, source) = written.split_once("[source.k8s]\n").unwrap();
    let kubeconfig = kubeconfig.display();
    let text = format!(
        "[source.k8s]\nkubeconfig = \"{kubeconfig}\"\n{source}\n[dns.own]\ntype = \"builtin\"\ndomains = [\"example.com\"]\n"
    );
    let mut sandbox = Sandbox::empty();
    fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    sandbox.start(&[]);
    sandbox
}

/// Waits until each part of the source is complete, and the doctor finds no right missing.
fn is_enough(sandbox: &Sandbox) {
    let scopes = || {
        let text = sandbox.does("get sources");
        let waits = ["partial", "failed", "unclear", "waiting"].iter().any(|word| text.contains(word));
        (!waits && text.contains("complete")).then_some(())
    };
    assert!(wait_until(SOON, scopes).is_some(), "{}", sandbox.does("get sources"));
    let said = sandbox.netstead(["doctor"]).out;
    assert!(said.contains("is Kubernetes v") && said.contains("it has "), "{said}");
    assert!(!said.contains("may not") && !said.contains("forbidden"), "{said}");
}

/// The role without one resource of one rule.
fn without(role: &Value, group: &str, plural: &str) -> Value {
    let mut role = role.clone();
    for rule in role["rules"].as_array_mut().unwrap() {
        if rule["apiGroups"] == json!([group]) {
            rule["resources"].as_array_mut().unwrap().retain(|resource| resource != plural);
        }
    }
    role["rules"].as_array_mut().unwrap().retain(|rule| rule["resources"] != json!([]));
    role
}

#[test]
fn the_doctor_misses_no_right_and_each_one_that_is_taken_away() {
    let server = KubeApiServer::shared();
    server.apply(DEFINITIONS);
    server.apply(&Sandbox::empty().does("crds"));
    server.apply(&fs::read_to_string(variant("namespace").join("namespace.yaml")).unwrap());
    server.apply_in("rights", SERVICES);
    let objects = objects(&manifests("local"));
    give_rights(server, &objects);
    let kubeconfig = server.service_account("netstead", "netstead");
    let written = configuration(&objects);
    let sandbox = started(&written, &kubeconfig);
    is_enough(&sandbox);

    let role = of_kind(&objects, "ClusterRole")[0];
    let mut needed_by_some = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        let group = rule["apiGroups"][0].as_str().unwrap();
        let verbs: Vec<&str> = rule["verbs"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for plural in rule["resources"].as_array().unwrap().iter().filter_map(Value::as_str) {
            // The doctor does not know whether an object needs these.
            if ["endpointslices", "nodes"].contains(&plural) {
                needed_by_some.push((group, plural));
                continue;
            }
            server.apply(&without(role, group, plural).to_string());
            let missed = format!("its role may not {} {plural}\n", verbs.join(" and "));
            let mut said = String::new();
            let told = wait_until(SOON, || {
                said = sandbox.netstead(["doctor"]).out;
                (said.contains(&missed) && said.matches("its role may not").count() == 1).then_some(())
            });
            assert!(told.is_some(), "{missed}{said}");
        }
    }
    assert_eq!(needed_by_some, [("", "nodes"), ("discovery.k8s.io", "endpointslices")]);
    drop(sandbox);

    let narrow =
        needed_by_some.iter().fold(role.clone(), |role, (group, plural)| without(&role, group, plural));
    server.apply(&narrow.to_string());
    let sandbox = started(&written, &kubeconfig);
    let mut said = String::new();
    let told = wait_until(SOON, || {
        said = sandbox.does("get workloads -o wide");
        let reasons = ["its endpoints cannot be read now", "nodes cannot be read now"];
        reasons.iter().all(|reason| said.contains(reason)).then_some(())
    });
    assert!(told.is_some(), "{said}");
    server.apply(&role.to_string());
}

#[test]
fn rights_in_one_namespace_are_enough_to_read_it() {
    let Some(helm) = helm() else { return };
    let server = KubeApiServer::shared();
    server.apply(DEFINITIONS);
    server.apply(&Sandbox::empty().does("crds"));
    server.apply_in("narrow", "");
    let values = [variant("namespaced").join("values.yaml")];
    let rendered = helm.render(&kubernetes().join("chart"), ("narrow", "narrow"), &values, &[]).unwrap();
    let objects = objects(&rendered);
    assert_eq!(of_kind(&objects, "ClusterRole"), Vec::<&Value>::new());
    server.apply_in("default", "");
    give_rights(server, &objects);
    let sandbox = started(&configuration(&objects), &server.service_account("narrow", "narrow"));
    is_enough(&sandbox);
}
