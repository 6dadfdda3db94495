//! A real API server, from its objects to the answers of the built-in nameserver and back to their status.

use std::time::Duration;

use netstead_testkit::{KubeApiServer, wait_until};

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
metadata: { name: api }
spec: { name: api.kube.test, type: A, values: [192.0.2.99] }
";

/// `status reason` of the condition `Ready` of the record `api` in this namespace, once it has one.
fn ready(server: &KubeApiServer, namespace: &str) -> Option<(String, String)> {
    let path = format!("/apis/netstead.io/v1alpha1/namespaces/{namespace}/dnsrecords/api");
    let (_, object) = server.call("GET", &path, None);
    let ready = object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == "Ready")?.clone();
    let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
    Some((format!("{} {}", text("status"), text("reason")), text("message")))
}

#[test]
fn objects_have_names_and_records_say_what_became_of_them() {
    let server = KubeApiServer::start(&[]);
    let mut sandbox = Sandbox::empty();
    server.apply(&sandbox.does("crds"));
    server.apply_in("shop", OBJECTS);
    let config = format!(
        "[source.k8s]\ntype = \"kubernetes\"\nkubeconfig = \"{}\"\nclaims = {{ shop = \"*.kube.test\" }}\n",
        server.kubeconfig().display()
    );
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    let port = sandbox.dns();
    resolve::until(&["192.0.2.10"], || resolve::a(port, "web.kube.test"));
    resolve::until(&["192.0.2.11"], || resolve::a(port, "api.kube.test"));
    // Another namespace may not claim the name: its record asks for nothing, and says so all the same.
    server.apply_in("elsewhere", REFUSED);
    let soon = Duration::from_secs(30);
    let (good, _) = wait_until(soon, || ready(&server, "shop")).unwrap();
    assert_eq!(good, "True Published");
    let (bad, why) = wait_until(soon, || ready(&server, "elsewhere")).unwrap();
    assert_eq!(
        (bad.as_str(), why.as_str()),
        (
            "False Invalid",
            "api.kube.test: the namespace `elsewhere` may not claim it (`claims` of the source)"
        )
    );
    resolve::until(&["192.0.2.11"], || resolve::a(port, "api.kube.test"));
    sandbox.stop();
}

/// A Service of type `LoadBalancer` with our class.
fn service(name: &str, policy: &str, annotations: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{ name: {name}, annotations: {{ netstead.io/hostname: {name}.lb.test{annotations} }} \
         }}\nspec: {{ type: LoadBalancer, loadBalancerClass: netstead.io/lan, ipFamilyPolicy: {policy}, ports: [{{ port: 80 }}] }}\n"
    )
}

/// The addresses in the status of a Service, and the reason of its condition.
fn balancer(server: &KubeApiServer, name: &str) -> (Vec<String>, String) {
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
