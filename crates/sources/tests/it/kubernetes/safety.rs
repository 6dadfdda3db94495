//! Faults of a cluster remove nothing.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::StreamExt as _;
use netstead_model::{
    Call, CallObserver, ManualClock, NoopObserver, Roster, ScopeReport, Seen, Source, SystemClock,
};
use netstead_settings::{BuildContext, Configured as _};
use netstead_sources::contract;
use netstead_testkit::{KubeApiServer, Link};
use netstead_wire::kubernetes::{Cluster, KubernetesAccess, KubernetesError, Resource, Selection};
use serde_json::json;

use super::{DEFINITIONS, all, names, source, source_of, until, view};

const INGRESS: &str = "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: NAME }
spec: { rules: [{ host: NAME.safe.test }] }
status: { loadBalancer: { ingress: [{ ip: 192.0.2.1 }] } }
";

const ENDPOINT: &str = "
apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: { name: NAME }
spec: { endpoints: [{ dnsName: NAME.safe.test, recordType: A, targets: [192.0.2.9] }] }
";

fn ingress(name: &str) -> String {
    INGRESS.replace("NAME", name)
}

fn endpoint(name: &str) -> String {
    ENDPOINT.replace("NAME", name)
}

fn namespaces(namespace: &str, kinds: &str) -> String {
    format!("namespaces = [\"{namespace}\"]\nkinds = [{kinds}]")
}

/// Rights in one namespace, bound to one user.
fn allow(server: &KubeApiServer, namespace: &str, user: &str, resource: &str, verbs: &str) {
    server.apply_in(
        namespace,
        &format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{ name: {user}-{resource} }}\nrules:\n- apiGroups: \
             [networking.k8s.io, \"\"]\n  resources: [{resource}]\n  verbs: [{verbs}]\n---\napiVersion: \
             rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{ name: {user}-{resource} }}\nroleRef: {{ apiGroup: \
             rbac.authorization.k8s.io, kind: Role, name: {user}-{resource} }}\nsubjects: [{{ apiGroup: \
             rbac.authorization.k8s.io, kind: User, name: {user} }}]\n"
        ),
    );
}

/// The next report of the only scope that says something new. The first lists wake a source too.
async fn next_change(source: &dyn Source) -> ScopeReport {
    loop {
        tokio::time::timeout(Duration::from_secs(10), source.changed()).await.unwrap();
        let report = source.report().await;
        let scope = report.scopes.into_values().next().unwrap();
        match &scope.seen {
            Seen::Changes { changed, removed, .. } if changed.is_empty() && removed.is_empty() => {}
            _ => return scope,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_source_keeps_the_contract_and_reports_changes_alone() {
    let server = KubeApiServer::shared();
    server.apply_in("contract", &ingress("a"));
    server.apply_in("contract", &ingress("b"));
    let own = || source(server, &namespaces("contract", "\"ingress\""));
    let source = own();
    let first = source.report().await;
    assert_eq!(names(&first), ["a.safe.test", "b.safe.test"]);
    let scope = "ingress in contract".parse().unwrap();
    assert_eq!(first.roster, Roster::Complete([scope].into()));
    contract::admits_what_it_cannot_see(source_of(std::path::Path::new("/nowhere"), "").as_ref()).await;

    let path = "/apis/networking.k8s.io/v1/namespaces/contract/ingresses/b";
    let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.2" }] } } });
    server.patch(&format!("{path}/status"), &status);
    let second = next_change(source.as_ref()).await;
    let Seen::Changes { changed, removed, .. } = &second.seen else { panic!("{:?}", second.seen) };
    assert_eq!(changed.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["ingress/contract/b"]);
    assert!(removed.is_empty());
    // Something that no name depends on is no change.
    server.patch(path, &json!({ "metadata": { "annotations": { "unrelated": "x" } } }));
    server.delete(path);
    let scope = next_change(source.as_ref()).await;
    let Seen::Changes { changed, removed, .. } = &scope.seen else { panic!("{:?}", scope.seen) };
    assert!(changed.is_empty(), "{changed:?}");
    assert_eq!(removed.iter().map(netstead_model::Key::as_str).collect::<Vec<_>>(), ["ingress/contract/b"]);
    assert_eq!(scope.ended.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["ingress/contract/b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_kind_freezes_only_itself() {
    let server = KubeApiServer::shared();
    server.apply_in("rights", &ingress("a"));
    let user = server.user("reader", &[]);
    allow(server, "rights", "reader", "ingresses", "get, list, watch");
    let source = source_of(&user.kubeconfig, &namespaces("rights", "\"ingress\", \"service\""));
    let report = source.report().await;
    assert_eq!(view(&report, "ingress in rights"), "complete");
    let services = view(&report, "service in rights");
    assert!(
        services.starts_with("failed: ")
            && services.ends_with("give its role `list` and `watch` on services"),
        "{services}"
    );
    assert_eq!(names(&report), ["a.safe.test"]);
    let found = source.diagnose().await;
    let told: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
    assert!(told.contains(&"its role may not list and watch services in the namespace rights"), "{told:?}");
    // The right is given later, and nothing is started again.
    allow(server, "rights", "reader", "services", "get, list, watch");
    until(source.as_ref(), |report| (view(report, "service in rights") == "complete").then_some(()))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_lists_and_does_not_watch_shows_a_part() {
    let server = KubeApiServer::shared();
    server.apply_in("listonly", &ingress("a"));
    let user = server.user("lister", &[]);
    allow(server, "listonly", "lister", "ingresses", "get, list");
    let source = source_of(&user.kubeconfig, &namespaces("listonly", "\"ingress\""));
    let report = until(source.as_ref(), |report| (names(report) == ["a.safe.test"]).then(|| report.clone()));
    let told = view(&report.await.unwrap(), "ingress in listonly");
    assert!(told.starts_with("partial: ") && told.contains("cannot watch"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_server_and_a_revoked_right_remove_nothing() {
    let mut server = KubeApiServer::start(&[]);
    server.apply_in("restart", &ingress("a"));
    let user = server.user("reader", &[]);
    allow(&server, "restart", "reader", "ingresses", "get, list, watch");
    let source = source_of(&user.kubeconfig, &namespaces("restart", "\"ingress\""));
    let scope = "ingress in restart";
    assert_eq!(view(&source.report().await, scope), "complete");
    server.stop().unwrap();
    let broken =
        until(source.as_ref(), |report| view(report, scope).starts_with("partial: ").then(|| report.clone()));
    assert_eq!(names(&broken.await.unwrap()), ["a.safe.test"]);
    server.restart().unwrap();
    let back =
        until(source.as_ref(), |report| (view(report, scope) == "complete").then(|| report.clone())).await;
    let back = back.unwrap();
    assert_eq!(names(&back), ["a.safe.test"]);
    assert!(back.scopes[scope].session > 0, "every grace starts again");
    // Without its role the next list or watch is refused. The server is started anew, because an open watch goes on.
    server.delete("/apis/rbac.authorization.k8s.io/v1/namespaces/restart/rolebindings/reader-ingresses");
    server.restart().unwrap();
    let refused =
        until(source.as_ref(), |report| view(report, scope).contains("forbidden").then(|| report.clone()));
    let refused = refused.await.unwrap();
    assert!(view(&refused, scope).starts_with("partial: "), "{}", view(&refused, scope));
    assert_eq!(names(&refused), ["a.safe.test"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_comes_later_is_read_and_one_that_vanishes_keeps_its_names() {
    let server = KubeApiServer::start(&[]);
    let source = source(&server, "kinds = [\"ingress\", \"dnsendpoint\"]");
    let report = source.report().await;
    assert_eq!((view(&report, "ingress"), view(&report, "dnsendpoint")), ("complete".into(), "-".into()));
    server.apply(DEFINITIONS);
    server.apply_in("later", &endpoint("a"));
    server.apply_in("later", &endpoint("b"));
    let both = ["a.safe.test", "b.safe.test"];
    until(source.as_ref(), |report| (names(report) == both).then_some(())).await.unwrap();
    // One that is deleted is gone.
    server.delete("/apis/externaldns.k8s.io/v1alpha1/namespaces/later/dnsendpoints/b");
    let gone =
        until(source.as_ref(), |report| (names(report) == ["a.safe.test"]).then(|| report.clone())).await;
    assert_eq!(view(&gone.unwrap(), "dnsendpoint"), "complete");
    // The server deletes all objects of a definition before the definition itself.
    server.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/dnsendpoints.externaldns.k8s.io");
    let vanished = until(source.as_ref(), |report| {
        view(report, "dnsendpoint").starts_with("partial: ").then(|| report.clone())
    });
    let vanished = vanished.await.unwrap();
    assert_eq!(names(&vanished), ["a.safe.test"]);
    assert!(vanished.ended().is_empty(), "{:?}", vanished.ended());
    assert_eq!(view(&vanished, "ingress"), "complete");
    // A source that is started anew keeps the scope, because the engine knows workloads of it.
    let fresh = super::source(&server, "kinds = [\"ingress\", \"dnsendpoint\"]");
    fresh.remember(vec!["dnsendpoint/later/a".parse().unwrap()]);
    let report = fresh.report().await;
    assert!(
        view(&report, "dnsendpoint").starts_with("partial: the cluster has no dnsendpoints any more"),
        "{}",
        view(&report, "dnsendpoint")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_choose_objects_names_and_targets() {
    let server = KubeApiServer::shared();
    let service = |name: &str, address: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{ name: {name}, labels: {{ app: {name} }}, annotations: {{ \
             netstead.io/hostname: {name}.safe.test, team: {name} }} }}\nspec: {{ type: LoadBalancer, ports: [{{ port: 80 \
             }}] }}\nstatus: {{ loadBalancer: {{ ingress: [{{ ip: {address} }}, {{ ip: 10.1.2.3 }}] }} }}\n"
        )
    };
    server.apply_in("choice", &service("a", "192.0.2.1"));
    server.apply_in("choice", &service("b", "198.51.100.1"));
    server.apply_in("choice", &ingress("c"));
    let shown = |more: &'static str| async move {
        let more = format!("{}\n{more}", namespaces("choice", "\"ingress\", \"service\""));
        let report = all(source(server, &more).as_ref()).await;
        report.workloads().into_iter().flat_map(super::record_lines).collect::<Vec<_>>()
    };
    let a = "a.safe.test A 10.1.2.3 192.0.2.1";
    let b = "b.safe.test A 10.1.2.3 198.51.100.1";
    let c = "c.safe.test A 192.0.2.1";
    assert_eq!(shown("").await, [c, a, b]);
    assert_eq!(shown("label_selector = \"app=a\"").await, [a]);
    assert_eq!(shown("annotation_filter = \"team in (b)\"").await, [b]);
    assert_eq!(shown("ingress_classes = \"nginx\"").await, [a, b]);
    assert_eq!(shown("service_types = \"NodePort\"").await, [c]);
    assert_eq!(
        shown("exclude_target_networks = \"10.0.0.0/8\"").await,
        [c, "a.safe.test A 192.0.2.1", "b.safe.test A 198.51.100.1"]
    );
    assert_eq!(
        shown("target_networks = \"192.0.2.0/24\"").await,
        [c, "a.safe.test A 192.0.2.1", "! b.safe.test: none of its addresses is in `target_networks`"]
    );
    assert_eq!(
        shown("claims = { choice = \"a.safe.test, c.*\", other = \"*\" }").await,
        [c, a, "! b.safe.test: the namespace `choice` may not claim it (`claims` of the source)"]
    );
}

/// Counts calls by their operation.
#[derive(Debug, Default)]
struct Counter(Mutex<BTreeMap<&'static str, u32>>);

impl CallObserver for Counter {
    fn called(&self, call: Call) {
        *self.0.lock().unwrap().entry(call.operation).or_default() += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_objects_are_listed_in_pages_and_one_change_costs_one_event() {
    let server = KubeApiServer::shared();
    server.apply_in("many", &ingress("first"));
    let many: Vec<_> =
        (1..5000).map(|number| (format!("n{number}"), format!("n{number}.safe.test"))).collect();
    server.put_ingresses("many", &many, "192.0.2.1");
    let settings = super::read(&format!(
        "kubeconfig = \"{}\"\n{}",
        server.kubeconfig().display(),
        namespaces("many", "\"ingress\"")
    ));
    let counter = Arc::new(Counter::default());
    let context = BuildContext::new("k".parse().unwrap()).with_calls(counter.clone());
    let source = settings.build(&context).unwrap();
    assert_eq!(source.report().await.workloads().len(), 5000);
    // Ten pages of at most 500, and the question whether the server answers.
    assert_eq!(std::mem::take(&mut *counter.0.lock().unwrap()), BTreeMap::from([("GET", 11), ("watch", 1)]));
    let path = "/apis/networking.k8s.io/v1/namespaces/many/ingresses";
    let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.7" }] } } });
    server.patch(&format!("{path}/n77/status"), &status);
    let changed = next_change(source.as_ref()).await.seen.workloads().to_vec();
    assert_eq!(changed.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["ingress/many/n77"]);
    let calls = counter.0.lock().unwrap().clone();
    assert!(!calls.contains_key("watch") && calls.get("GET").is_none_or(|count| *count <= 1), "{calls:?}");
}

/// A kubeconfig of an admin whose connections go through a link.
fn through(link: &Link, server: &KubeApiServer) -> std::path::PathBuf {
    server.kubeconfig_at(&server.user("distant", &["system:masters"]), link.address())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_the_server_has_forgotten_leads_to_a_new_list_and_removes_nothing_at_once() {
    let mut server = KubeApiServer::start(&[]);
    server.apply_in("expired", &ingress("a"));
    server.apply_in("expired", &ingress("b"));
    let link = Link::before(std::net::Ipv4Addr::LOCALHOST.into(), server.address()).unwrap();
    let kubeconfig = through(&link, &server);
    let source = source_of(&kubeconfig, &namespaces("expired", "\"ingress\""));
    let scope = "ingress in expired";
    let report = source.report().await;
    assert_eq!(
        (view(&report, scope), names(&report)),
        ("complete".into(), vec!["a.safe.test".into(), "b.safe.test".into()])
    );
    let session = report.scopes[scope].session;
    let path = "/apis/networking.k8s.io/v1/namespaces/expired/ingresses";
    let version =
        server.call("GET", path, None).1["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    // 1. The connection breaks. 2. Objects come and go. 3. The server starts anew and knows no version before its start.
    link.cut();
    until(source.as_ref(), |report| view(report, scope).starts_with("partial: ").then_some(()))
        .await
        .unwrap();
    server.delete(&format!("{path}/b"));
    server.apply_in("expired", &ingress("c"));
    server.restart().unwrap();
    let cluster = Cluster::new(
        KubernetesAccess { kubeconfig: Some(server.kubeconfig()), context: None },
        Arc::new(NoopObserver),
        SystemClock::shared(),
    );
    let ingresses = Resource {
        group: "networking.k8s.io".into(),
        version: "v1".into(),
        plural: "ingresses".into(),
        kind: "Ingress".into(),
        namespaced: true,
    };
    let all = Selection { namespace: Some("expired".into()), labels: None };
    let answer = match cluster.watch::<serde_json::Value>(&ingresses, &all, &version).await {
        Ok(mut events) => events.next().await.unwrap().map(drop),
        Err(error) => Err(error),
    };
    assert_eq!(answer, Err(KubernetesError::Expired));
    link.mend();
    // The watch opens before it says that the version is too old, so the old objects may be seen once more.
    let listed = ["a.safe.test", "c.safe.test"];
    let back = until(source.as_ref(), |report| {
        (view(report, scope) == "complete" && names(report) == listed).then(|| report.clone())
    });
    let back = back.await.unwrap();
    // What is merely missing from a list was not seen to end: its names stay for the long grace, which starts anew.
    assert!(back.ended().is_empty() && back.scopes[scope].session > session, "{:?}", back.ended());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_silent_makes_every_scope_partial_until_it_answers() {
    let server = KubeApiServer::shared();
    server.apply_in("silent", &ingress("a"));
    let link = Link::before(std::net::Ipv4Addr::LOCALHOST.into(), server.address()).unwrap();
    let clock = ManualClock::default();
    let more = namespaces("silent", "\"ingress\"");
    let settings = super::read(&format!("kubeconfig = \"{}\"\n{more}", through(&link, server).display()));
    let context = BuildContext::new("k".parse().unwrap()).with_clock(clock.shared());
    let source = settings.build(&context).unwrap();
    let scope = "ingress in silent";
    assert_eq!(view(&source.report().await, scope), "complete");
    link.hold();
    clock.advance(Duration::from_secs(30));
    let report = all(source.as_ref()).await;
    assert_eq!(view(&report, scope), "partial: the API server does not answer within 10 s");
    assert_eq!(names(&report), ["a.safe.test"]);
    link.release();
    until(source.as_ref(), |report| (view(report, scope) == "complete").then_some(())).await.unwrap();
}
