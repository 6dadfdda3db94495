//! Objects say in their status and in Events what became of their names.

use std::time::Duration;

use netstead_model::{NameState, Source, WorkloadNames, WrittenState};
use netstead_testkit::KubeApiServer;
use serde_json::{Value, json};

use super::{DEFINITIONS, source, source_of, until};

const RECORDS: &str = "/apis/netstead.io/v1alpha1/namespaces";
const ENDPOINTS: &str = "/apis/externaldns.k8s.io/v1alpha1/namespaces";

const BOTH: &str = "
apiVersion: netstead.io/v1alpha1
kind: DNSRecord
metadata: { name: web }
spec: { name: web.safe.test, type: A, values: [192.0.2.7] }
---
apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: { name: old }
spec: { endpoints: [{ dnsName: old.safe.test, recordType: A, targets: [192.0.2.9] }] }
";

fn name(name: &str, state: WrittenState, why: Option<&str>) -> NameState {
    let provider = Some("lan".parse().unwrap());
    NameState { name: name.parse().unwrap(), provider, state, why: why.map(str::to_owned) }
}

fn news(id: &str, names: Vec<NameState>, why_not: &[&str]) -> WorkloadNames {
    let why_not = why_not.iter().map(|why| (*why).to_owned()).collect();
    WorkloadNames { id: id.parse().unwrap(), names, why_not }
}

/// Goes on as the engine does until nothing is left to write.
async fn write_all(source: &dyn Source, news: Vec<WorkloadNames>) {
    source.hear_names(news).await;
    for _ in 0..100 {
        if source.has_unwritten() {
            source.hear_names(Vec::new()).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// `generation status reason message` of the condition `Ready`.
fn ready(server: &KubeApiServer, path: &str) -> String {
    let (_, object) = server.call("GET", path, None);
    let status = &object["status"];
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|one| one["type"] == "Ready").cloned().unwrap_or(Value::Null);
    let text = |key: &str| ready[key].as_str().unwrap_or("-").to_owned();
    format!("{} {} {} {}", status["observedGeneration"], text("status"), text("reason"), text("message"))
}

/// `type reason object: note`, of all Events of a namespace.
fn events(server: &KubeApiServer, namespace: &str) -> Vec<String> {
    let (_, list) =
        server.call("GET", &format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"), None);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut lines: Vec<String> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let (regarding, reason) = (&one["regarding"], text(&one["reason"]));
            assert!(
                !text(&regarding["uid"]).is_empty() && one["reportingController"] == "netstead.io/netstead"
            );
            let object = format!("{}/{}", text(&regarding["kind"]), text(&regarding["name"]));
            format!("{} {reason} {object}: {}", text(&one["type"]), text(&one["note"]))
        })
        .collect();
    lines.sort();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_records_follows_what_became_of_them_and_events_are_few() {
    let server = KubeApiServer::start(&[]);
    server.apply(DEFINITIONS);
    server.apply(netstead_sources::kubernetes::DEFINITIONS);
    let kinds = "kinds = [\"dnsrecord\", \"dnsendpoint\"]";
    let own = source(&server, kinds);
    own.report().await;
    // Events are said of objects that are newer than the source, and the server counts in seconds.
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.apply_in("status", BOTH);
    until(own.as_ref(), |report| (report.workloads().len() == 2).then_some(())).await.unwrap();
    assert!(own.flags().hears_names);
    let (web, old) =
        (format!("{RECORDS}/status/dnsrecords/web"), format!("{ENDPOINTS}/status/dnsendpoints/old"));
    assert_eq!(ready(&server, &web), "null - - -");

    let written = |at: &str| vec![name(at, WrittenState::Written, None)];
    let pending = vec![name("old.safe.test", WrittenState::Pending, None)];
    let first = vec![
        news("dnsrecord/status/web", written("web.safe.test"), &[]),
        news("dnsendpoint/status/old", pending, &[]),
    ];
    write_all(own.as_ref(), first).await;
    assert_eq!(ready(&server, &web), "1 True Published web.safe.test at lan");
    assert_eq!(ready(&server, &old), "1 False Pending old.safe.test at lan is not written yet");
    let told = "Normal Published DNSRecord/web: web.safe.test at lan";
    assert_eq!(events(&server, "status"), [told]);

    // A new leader is told everything once. Nothing that is so already is written, and nothing is said of it.
    let version = || server.call("GET", &web, None).1["metadata"]["resourceVersion"].clone();
    let before = version();
    let other = source(&server, kinds);
    other.report().await;
    write_all(other.as_ref(), vec![news("dnsrecord/status/web", written("web.safe.test"), &[])]).await;
    assert_eq!((version(), events(&server, "status")), (before, vec![told.to_owned()]));

    // Writing a status is no change of the object.
    own.remember(Vec::new());
    own.report().await;
    assert!(own.report().await.workloads().is_empty());

    // The record changes, and is refused.
    server.patch(&web, &json!({ "spec": { "values": ["192.0.2.8"] } }));
    until(own.as_ref(), |report| {
        report
            .workloads()
            .iter()
            .flat_map(|one| super::record_lines(one))
            .any(|line| line.contains("192.0.2.8"))
            .then_some(())
    })
    .await
    .unwrap();
    let taken = vec![name("web.safe.test", WrittenState::Refused, Some("host/nas has it"))];
    let refused = vec![
        news("dnsrecord/status/web", taken, &[]),
        news(
            "dnsendpoint/status/old",
            Vec::new(),
            &["endpoints[0]: the namespace `status` may not claim it"],
        ),
    ];
    write_all(own.as_ref(), refused).await;
    assert_eq!(ready(&server, &web), "2 False Refused web.safe.test at lan: host/nas has it");
    let why = "endpoints[0]: the namespace `status` may not claim it";
    assert_eq!(ready(&server, &old), format!("1 False Invalid {why}"));
    let warned = [
        format!("Warning Invalid DNSEndpoint/old: {why}"),
        "Warning Refused DNSRecord/web: web.safe.test at lan: host/nas has it".to_owned(),
    ];
    assert_eq!(events(&server, "status"), [told, &warned[0], &warned[1]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_only_reads_is_told_of_and_names_go_on() {
    let server = KubeApiServer::start(&[]);
    server.apply(netstead_sources::kubernetes::DEFINITIONS);
    server.apply_in("readonly", BOTH.split("---").next().unwrap());
    let user = server.user("onlooker", &[]);
    server.apply(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: { name: onlooker }\nrules:\n- { apiGroups: \
         [netstead.io], resources: [dnsrecords], verbs: [get, list, watch] }\n---\napiVersion: \
         rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: { name: onlooker }\nroleRef: { apiGroup: \
         rbac.authorization.k8s.io, kind: ClusterRole, name: onlooker }\nsubjects: [{ apiGroup: rbac.authorization.k8s.io, \
         kind: User, name: onlooker }]\n",
    );
    let own = source_of(&user.kubeconfig, "kinds = [\"dnsrecord\"]");
    let report = until(own.as_ref(), |report| (!report.workloads().is_empty()).then(|| report.clone())).await;
    assert_eq!(super::view(&report.unwrap(), "dnsrecord"), "complete");
    let taken = vec![name("web.safe.test", WrittenState::Refused, Some("taken"))];
    write_all(own.as_ref(), vec![news("dnsrecord/readonly/web", taken, &[])]).await;
    assert!(!own.has_unwritten(), "it is not tried again and again");
    assert_eq!(ready(&server, &format!("{RECORDS}/readonly/dnsrecords/web")), "null - - -");
    let found = own.diagnose().await;
    let told: Vec<(&str, &str)> =
        found.iter().map(|one| (one.text.as_str(), one.hint.as_deref().unwrap_or_default())).collect();
    for (text, rule, key) in [
        (
            "its role may not patch dnsrecords/status",
            "apiGroups [netstead.io], resources [dnsrecords/status], verbs [patch]",
            "status",
        ),
        (
            "its role may not create events",
            "apiGroups [events.k8s.io], resources [events], verbs [create]",
            "events",
        ),
    ] {
        let hint = format!("add a rule to its role: {rule}; or set `{key} = false`");
        assert!(told.contains(&(text, hint.as_str())), "{told:?}");
    }
    // A source that shall not write does not listen.
    let silent = source_of(&user.kubeconfig, "kinds = [\"dnsrecord\"]\nstatus = false\nevents = false");
    assert!(!silent.flags().hears_names);
}
