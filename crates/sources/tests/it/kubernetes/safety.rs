//! Faults of a cluster remove nothing.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use netstead_model::{Call, CallObserver, Roster, ScopeReport, Seen, Source};
use netstead_settings::{BuildContext, Configured as _};
use netstead_sources::contract;
use netstead_testkit::KubeApiServer;
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
            && services.ends_with("give its role `get`, `list` and `watch` on services"),
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
    let path = "/apis/networking.k8s.io/v1/namespaces/many/ingresses";
    std::thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || {
                for number in 0..250 {
                    let name = format!("n{worker}-{number}");
                    let rules = json!([{ "host": format!("{name}.safe.test") }]);
                    let body = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
                        "metadata": { "name": name }, "spec": { "rules": rules } });
                    let (status, answer) = server.call("POST", path, Some(&body));
                    assert_eq!(status, 201, "{answer}");
                }
            });
        }
    });
    let settings = super::read(&format!(
        "kubeconfig = \"{}\"\n{}",
        server.kubeconfig().display(),
        namespaces("many", "\"ingress\"")
    ));
    let counter = Arc::new(Counter::default());
    let context = BuildContext::new("k".parse().unwrap()).with_calls(counter.clone());
    let source = settings.build(&context).unwrap();
    assert_eq!(source.report().await.workloads().len(), 1001);
    // Three pages of at most 500, and the question whether the server answers.
    assert_eq!(std::mem::take(&mut *counter.0.lock().unwrap()), BTreeMap::from([("GET", 4), ("watch", 1)]));
    let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.7" }] } } });
    server.patch(&format!("{path}/first/status"), &status);
    let changed = next_change(source.as_ref()).await.seen.workloads().to_vec();
    assert_eq!(changed.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["ingress/many/first"]);
    let calls = counter.0.lock().unwrap().clone();
    assert!(!calls.contains_key("watch") && calls.get("GET").is_none_or(|count| *count <= 1), "{calls:?}");
}
