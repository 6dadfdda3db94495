//! A real API server, from its objects to the answers of the built-in nameserver and back to their status.

use std::time::Duration;

use netstead_testkit::{FakePiHole, KubeApiServer, skip, wait_until};

use crate::{resolve, sandbox::Sandbox};

const OBJECTS: &str = "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: web }
spec: { rules: [{ host: web.kube.test }] }
status: { loadBalancer: { ingress: [{ ip: 192.0.2.10 }] } }
---
apiVersion: netstead.io/v1alpha1
kind: DNSRecord
metadata: { name: api }
spec: { name: api.kube.test, type: A, values: [192.0.2.11] }
";

const REFUSED: &str = "
apiVersion: netstead.io/v1alpha1
kind: DNSRecord
metadata: { name: theirs }
spec: { name: api.kube.test, type: A, values: [192.0.2.99] }
";

/// `status reason` of the condition `Ready` of a record, and its message, once it has one.
fn ready(server: &KubeApiServer, namespace: &str, name: &str) -> Option<(String, String)> {
    let path = format!("/apis/netstead.io/v1alpha1/namespaces/{namespace}/dnsrecords/{name}");
    let (_, object) = server.call("GET", &path, None);
    let ready = object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == "Ready")?.clone();
    let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
    Some((format!("{} {}", text("status"), text("reason")), text("message")))
}

/// Of Traefik, which writes no address into its objects.
const ROUTE: &str = "
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: { name: behind }
spec: { routes: [{ kind: Rule, match: Host(`behind.proxy.test`) }] }
";
const DEFINITIONS: &str = include_str!("../../../sources/tests/it/kubernetes/definitions.yaml");

/// `type reason: note` of the Events on one object.
fn events(server: &KubeApiServer, namespace: &str, kind: &str, name: &str) -> Vec<String> {
    let (_, list) =
        server.call("GET", &format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"), None);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let all = list["items"].as_array().into_iter().flatten();
    let own = all.filter(|one| one["regarding"]["kind"] == kind && one["regarding"]["name"] == name);
    own.map(|one| format!("{} {}: {}", text(&one["type"]), text(&one["reason"]), text(&one["note"])))
        .collect()
}

#[test]
fn objects_have_names_and_records_say_what_became_of_them() {
    let server = KubeApiServer::start(&[]);
    let (mut sandbox, proxy) = (Sandbox::empty(), FakePiHole::start(6));
    server.apply(DEFINITIONS);
    server.apply(&sandbox.does("crds"));
    server.apply_in("shop", OBJECTS);
    // A second source, and a second provider with a target of its own.
    let config = format!(
        "[source.k8s]\ntype = \"kubernetes\"\nkubeconfig = \"{0}\"\nclaims = {{ shop = \"*.kube.test, *.proxy.test\" }}\n\
         [source.blog]\ntype = \"kubernetes\"\nkubeconfig = \"{0}\"\nnamespaces = \"blog\"\nkinds = \"ingress\"\n\
         [dns.lan]\ntype = \"builtin\"\ndomains = [\"kube.test\"]\nended_grace = \"1s\"\n\
         [dns.proxy]\ntype = \"pihole\"\nurl = \"{1}\"\npassword = \"{2}\"\ndomains = [\"proxy.test\"]\n\
         target = \"192.0.2.80\"\n",
        server.kubeconfig().display(),
        proxy.http().url(),
        proxy.password()
    );
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    let port = sandbox.dns();
    resolve::until(&["192.0.2.10"], || resolve::a(port, "web.kube.test"));
    resolve::until(&["192.0.2.11"], || resolve::a(port, "api.kube.test"));
    // Another namespace may not claim the name: its record asks for nothing, and says so all the same.
    server.apply_in("elsewhere", REFUSED);
    let soon = Duration::from_secs(30);
    let (good, _) = wait_until(soon, || ready(&server, "shop", "api")).unwrap();
    assert_eq!(good, "True Published");
    let (bad, why) = wait_until(soon, || ready(&server, "elsewhere", "theirs")).unwrap();
    assert_eq!(
        (bad.as_str(), why.as_str()),
        (
            "False Invalid",
            "api.kube.test: the namespace `elsewhere` may not claim it (`claims` of the source)"
        )
    );
    resolve::until(&["192.0.2.11"], || resolve::a(port, "api.kube.test"));
    let explained: Vec<String> =
        sandbox.does("explain api.kube.test").split_whitespace().map(str::to_owned).collect();
    let explained = explained.join(" ");
    assert!(
        explained.contains("192.0.2.11")
            && explained.contains(
                "k8s/dnsrecord/elsewhere/theirs: api.kube.test: the namespace `elsewhere` may not claim it"
            ),
        "{explained}"
    );

    // A name that the provider leads somewhere is published, and that the other provider does not answer for it is no matter.
    server.apply_in("shop", ROUTE);
    let behind =
        || proxy.state().hosts.iter().any(|line| line == "192.0.2.80 behind.proxy.test").then_some(());
    assert!(wait_until(soon, behind).is_some(), "{:?}", proxy.state().hosts);
    let told = || Some(events(&server, "shop", "IngressRoute", "behind")).filter(|told| !told.is_empty());
    let told = wait_until(soon, told).unwrap_or_default();
    assert!(
        matches!(&told[..], [one] if one.starts_with("Normal Published: behind.proxy.test at proxy; note: ")),
        "{told:?}"
    );
    // Another source reads another namespace of the same cluster.
    server.apply_in("blog", &OBJECTS.split("---").next().unwrap().replace("web", "blog"));
    resolve::until(&["192.0.2.10"], || resolve::a(port, "blog.kube.test"));
    let workloads = sandbox.does("get workloads -o wide");
    assert!(workloads.contains("blog") && workloads.contains("ingress/shop/web"), "{workloads}");

    // The load balancer moves, and the name with it; an object that is deleted loses its name after its short grace.
    let path = "/apis/networking.k8s.io/v1/namespaces/shop/ingresses/web";
    let moved = serde_json::json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.12" }] } } });
    server.patch(&format!("{path}/status"), &moved);
    resolve::until(&["192.0.2.12"], || resolve::a(port, "web.kube.test"));
    server.delete(path);
    resolve::until(&[], || resolve::a(port, "web.kube.test"));
    sandbox.stop();
}

#[test]
fn a_pod_reads_its_cluster_with_its_service_account() {
    let probe = std::process::Command::new("unshare").args(["--mount", "true"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return skip("it needs the right to mount: the files of a service account are at a fixed place");
    }
    let server = KubeApiServer::shared();
    let mut sandbox = Sandbox::empty();
    server.apply_in(
        "pod",
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: { name: reader }\n---\napiVersion: \
         rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: { name: reader }\nrules:\n- { apiGroups: [networking.k8s.io], \
         resources: [ingresses], verbs: [list, watch] }\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: \
         RoleBinding\nmetadata: { name: reader }\nroleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader \
         }\nsubjects: [{ kind: ServiceAccount, name: reader, namespace: pod }]\n",
    );
    server.apply_in("pod", &OBJECTS.split("---").next().unwrap().replace("web", "inside"));
    let account = sandbox.path().join("account");
    std::fs::create_dir(&account).unwrap();
    std::fs::write(account.join("token"), server.service_account_token("pod", "reader")).unwrap();
    std::fs::write(account.join("namespace"), "pod").unwrap();
    std::fs::copy(server.ca(), account.join("ca.crt")).unwrap();
    let config =
        "[source.k8s]\ntype = \"kubernetes\"\nkinds = \"ingress\"\nnamespaces = \"pod\"\nevents = false\n";
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.set("KUBERNETES_SERVICE_HOST", &server.address().ip().to_string());
    sandbox.set("KUBERNETES_SERVICE_PORT", &server.address().port().to_string());
    sandbox.set("ACCOUNT", &account.display().to_string());
    // As the kubelet mounts them, seen by this server alone.
    let inside = "mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io && ln -sfn \"$ACCOUNT\" \
                  /run/secrets/kubernetes.io/serviceaccount && [ -e /var/run/secrets/kubernetes.io/serviceaccount/token ] && \
                  exec \"$0\" \"$@\"";
    sandbox.start_after(&format!("exec unshare --mount sh -c '{inside}' \"$0\" \"$@\""), &[]);
    resolve::until(&["192.0.2.10"], || resolve::a(sandbox.dns(), "inside.kube.test"));
    sandbox.stop();
}

/// A Service of type `LoadBalancer` with our class.
pub(crate) fn service(name: &str, policy: &str, annotations: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{ name: {name}, annotations: {{ netstead.io/hostname: {name}.lb.test{annotations} }} \
         }}\nspec: {{ type: LoadBalancer, loadBalancerClass: netstead.io/lan, ipFamilyPolicy: {policy}, ports: [{{ port: 80 }}] }}\n"
    )
}

/// The addresses in the status of a Service, and the reason of its condition.
pub(crate) fn balancer(server: &KubeApiServer, name: &str) -> (Vec<String>, String) {
    let (_, object) = server.call("GET", &format!("/api/v1/namespaces/lb/services/{name}"), None);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let none = Vec::new();
    let ingress = object["status"]["loadBalancer"]["ingress"].as_array().unwrap_or(&none);
    let conditions = object["status"]["conditions"].as_array().unwrap_or(&none);
    let own = conditions.iter().find(|one| one["type"] == "netstead.io/Address");
    (
        ingress.iter().map(|one| text(&one["ip"])).collect(),
        own.map(|one| text(&one["reason"])).unwrap_or_default(),
    )
}

#[test]
fn services_of_a_class_get_addresses_from_pools_and_give_them_back() {
    let server = KubeApiServer::start(&["--service-cluster-ip-range=10.0.0.0/16,fd00:10::/108"]);
    let mut sandbox = Sandbox::empty();
    let class = "kubernetes = { load_balancer_class = \"netstead.io/lan\", grace = \"1s\" }";
    let config = format!(
        "[source.k8s]\ntype = \"kubernetes\"\nkubeconfig = \"{}\"\n[pool.lan]\nnetwork = \"10.9.0.0/24\"\ncooldown = \
         \"0s\"\n{class}\n[pool.lan6]\nnetwork = \"fd00:9::/64\"\n{class}\n",
        server.kubeconfig().display()
    );
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    server.apply_in("lb", &service("web", "RequireDualStack", ""));
    sandbox.start(&[]);
    let port = sandbox.dns();
    let soon = Duration::from_secs(30);
    let becomes = |name: &str, wanted: (&[&str], &str)| {
        let wanted = (wanted.0.iter().map(|ip| (*ip).to_owned()).collect::<Vec<_>>(), wanted.1.to_owned());
        let found = wait_until(soon, || (balancer(&server, name) == wanted).then_some(()));
        assert!(found.is_some(), "{name}: {:?}, not {wanted:?}", balancer(&server, name));
    };
    becomes("web", (&["10.9.0.1", "fd00:9::1"], "Assigned"));
    resolve::until(&["10.9.0.1"], || resolve::a(port, "web.lb.test"));
    // A wanted address, the same one for another Service, and one outside of the pool.
    let wanted = |ip: &str| format!(", netstead.io/load-balancer-ip: {ip}");
    server.apply_in("lb", &service("fixed", "SingleStack", &wanted("10.9.0.50")));
    becomes("fixed", (&["10.9.0.50"], "Assigned"));
    server.apply_in("lb", &service("taken", "SingleStack", &wanted("10.9.0.50")));
    server.apply_in("lb", &service("outside", "SingleStack", &wanted("10.8.0.1")));
    becomes("taken", (&[], "AddressTaken"));
    becomes("outside", (&[], "AddressOutside"));
    // A Service of two families that wants another address keeps both that it has, and says why.
    let web = "/api/v1/namespaces/lb/services/web";
    server.patch(
        web,
        &serde_json::json!({ "metadata": { "annotations": { "netstead.io/load-balancer-ip": "10.9.0.77" } } }),
    );
    becomes("web", (&["10.9.0.1", "fd00:9::1"], "AddressRefused"));
    server.patch(
        web,
        &serde_json::json!({ "metadata": { "annotations": { "netstead.io/load-balancer-ip": null } } }),
    );
    becomes("web", (&["10.9.0.1", "fd00:9::1"], "Assigned"));
    let events = wait_until(soon, || {
        let (_, list) = server.call("GET", "/apis/events.k8s.io/v1/namespaces/lb/events", None);
        let of = |reason: &str| list["items"].as_array().unwrap().iter().any(|one| one["reason"] == reason);
        (of("AddressTaken") && of("AddressOutside")).then_some(())
    });
    assert!(events.is_some());
    // The same after a restart, and the next one gets the next address.
    sandbox.stop();
    sandbox.start(&[]);
    server.apply_in("lb", &service("next", "SingleStack", ""));
    becomes("next", (&["10.9.0.2"], "Assigned"));
    becomes("web", (&["10.9.0.1", "fd00:9::1"], "Assigned"));
    let claims = sandbox.does("get claims -o json");
    assert!(claims.contains("k8s/lb/web/ipv6") && claims.contains("k8s/lb/web/ipv4"), "{claims}");
    // A Service that is gone gives its address back after the grace, and its name ends.
    server.delete("/api/v1/namespaces/lb/services/web");
    let released =
        wait_until(soon, || (!sandbox.does("get claims -o json").contains("k8s/lb/web/")).then_some(()));
    assert!(released.is_some(), "{}", sandbox.does("get claims -o json"));
    becomes("fixed", (&["10.9.0.50"], "Assigned"));
    sandbox.stop();
}
