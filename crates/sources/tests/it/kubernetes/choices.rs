//! Settings that choose Gateways, entry points, certificates and targets.

use netstead_testkit::KubeApiServer;

use super::{DEFINITIONS, all, record_lines, source};

const OBJECTS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: own }
spec: { listeners: [{ name: web, protocol: HTTP, port: 80 }] }
status: { addresses: [{ value: 192.0.2.40 }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: near }
spec: { hostnames: [near.c.test], parentRefs: [{ name: own }] }
status: { parents: [{ parentRef: { name: own }, conditions: [{ type: Accepted, status: \"True\" }] }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: far }
spec: { hostnames: [far.c.test], parentRefs: [{ name: edge, namespace: infra }] }
status: { parents: [{ parentRef: { name: edge, namespace: infra }, conditions: [{ type: Accepted, status: \"True\" }] }] }
---
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: { name: open, annotations: { netstead.io/target: 192.0.2.50 } }
spec: { entryPoints: [websecure], routes: [{ kind: Rule, match: Host(`open.c.test`) }] }
---
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: { name: inner }
spec: { entryPoints: [internal], routes: [{ kind: Rule, match: Host(`inner.c.test`) }] }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: shop }
spec: { rules: [{ host: shop.c.test }], tls: [{ hosts: [cert.c.test] }] }
status: { loadBalancer: { ingress: [{ ip: 192.0.2.60 }] } }
---
apiVersion: v1
kind: Service
metadata: { name: inside, annotations: { netstead.io/hostname: inside.c.test } }
spec: { clusterIP: 10.0.99.9, ports: [{ port: 80 }] }
---
apiVersion: v1
kind: Service
metadata: { name: quiet }
spec: { type: LoadBalancer, ports: [{ port: 80 }] }
status: { loadBalancer: { ingress: [{ ip: 192.0.2.70 }] } }
";

const EDGE: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: edge }
spec: { listeners: [{ name: web, protocol: HTTP, port: 80, allowedRoutes: { namespaces: { from: All } } }] }
status: { addresses: [{ value: 192.0.2.41 }] }
";

#[tokio::test(flavor = "multi_thread")]
async fn settings_choose_gateways_entry_points_certificates_and_targets() {
    let server = KubeApiServer::start(&[]);
    server.apply(DEFINITIONS);
    server.apply_in("infra", EDGE);
    server.apply_in("chosen", OBJECTS);
    let server = &server;
    let shown = |kinds: &'static str, more: &'static str| async move {
        let more = format!("namespaces = \"chosen\"\nkinds = [{kinds}]\n{more}");
        let report = all(source(server, &more).as_ref()).await;
        let mut lines: Vec<String> = report.workloads().into_iter().flat_map(record_lines).collect();
        lines.sort();
        lines
    };
    let (near, far) = ("near.c.test A 192.0.2.40", "far.c.test A 192.0.2.41");
    // A Gateway elsewhere is read where its namespace is named.
    assert_eq!(shown("\"httproute\"", "").await, ["! there is no Gateway infra/edge", near]);
    assert_eq!(shown("\"httproute\"", "gateway_namespaces = \"infra\"").await, [far, near]);
    let only = |pattern: &'static str| shown("\"httproute\"", pattern);
    let left_out = "! the Gateway chosen/own is not among `gateways`";
    assert_eq!(only("gateway_namespaces = \"infra\"\ngateways = \"infra/*\"").await, [left_out, far]);
    assert_eq!(only("gateway_namespaces = \"infra\"\ngateways = \"edge\"").await, [left_out, far]);
    // Entry points of Traefik, and where a name points whose object does not say it.
    let open = "open.c.test A 192.0.2.50";
    let elsewhere = "! routes[0].match: it is on none of the wanted entrypoints";
    assert_eq!(shown("\"ingressroute\"", "entrypoints = \"websecure\"").await, [elsewhere, open]);
    assert_eq!(
        shown("\"ingressroute\"", "default_targets = [\"192.0.2.9\", \"2001:db8::9\"]").await,
        ["inner.c.test A 192.0.2.9", "inner.c.test AAAA 2001:db8::9", open]
    );
    assert_eq!(
        shown("\"ingressroute\"", "default_targets = \"proxy.c.test\"").await,
        ["inner.c.test CNAME proxy.c.test.", open]
    );
    // Hosts of certificates are names unless they are left out.
    let (cert, shop) = ("cert.c.test A 192.0.2.60", "shop.c.test A 192.0.2.60");
    assert_eq!(shown("\"ingress\"", "").await, [cert, shop]);
    assert_eq!(shown("\"ingress\"", "ingress_tls_hosts = false").await, [shop]);
    // Addresses inside of the cluster, and names of objects that ask for none.
    let inside = shown("\"service\"", "").await;
    assert!(inside.contains(&"inside.c.test the provider's target".to_owned()), "{inside:?}");
    assert_eq!(shown("\"service\"", "publish_cluster_ips = true").await, ["inside.c.test A 10.0.99.9"]);
    assert_eq!(
        shown(
            "\"service\"",
            "publish_cluster_ips = true\ntemplate = \"{{ .Name }}.{{ .Namespace }}.t.test\""
        )
        .await,
        ["inside.c.test A 10.0.99.9", "quiet.chosen.t.test A 192.0.2.70"]
    );
}
