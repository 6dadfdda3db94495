//! Each kind with each annotation, in the words of each tool: every pair is an object of its own.

use std::{collections::BTreeMap, fmt::Write as _};

use netstead_model::Report;
use netstead_testkit::KubeApiServer;

use super::{DEFINITIONS, record_lines, source, until};

/// A kind: an object of it, and where its names point by themselves.
struct Kind {
    word: &'static str,
    /// `NAME`, `HOST` and `NOTES`, the annotations, are filled in.
    yaml: &'static str,
    points: &'static str,
    /// It has a name by its fields; another has one by an annotation only.
    named: bool,
}

const fn named(word: &'static str, points: &'static str, yaml: &'static str) -> Kind {
    Kind { word, yaml, points, named: true }
}

const fn nameless(word: &'static str, points: &'static str, yaml: &'static str) -> Kind {
    Kind { word, yaml, points, named: false }
}

/// A route that the Gateway of [`GATEWAY`] accepted.
macro_rules! route {
    ($version:literal, $kind:literal, $hosts:literal) => {
        concat!(
            "apiVersion: gateway.networking.k8s.io/",
            $version,
            "\nkind: ",
            $kind,
            "\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { ",
            $hosts,
            "parentRefs: [{ name: gw }] }\nstatus: { parents: [{ parentRef: { name: gw }, conditions: [{ type: Accepted, status: \"True\" }] }] }\n"
        )
    };
}

const NOWHERE: &str = "the provider's target";

const KINDS: [Kind; 19] = [
    named(
        "ingress",
        "A 192.0.2.10",
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { rules: [{ host: \
         HOST }] }\nstatus: { loadBalancer: { ingress: [{ ip: 192.0.2.10 }] } }\n",
    ),
    nameless(
        "balancer",
        "A 192.0.2.20",
        "apiVersion: v1\nkind: Service\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { type: LoadBalancer, ports: [{ port: 80 \
         }] }\nstatus: { loadBalancer: { ingress: [{ ip: 192.0.2.20 }] } }\n",
    ),
    nameless(
        "nodeport",
        "A 203.0.113.31",
        "apiVersion: v1\nkind: Service\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { type: NodePort, ports: [{ port: 80 }] \
         }\n",
    ),
    nameless(
        "headless",
        "A 10.244.0.10",
        "apiVersion: v1\nkind: Service\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { clusterIP: None, ports: [{ port: 80 }] \
         }\n---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: { name: NAME-1, labels: { \
         kubernetes.io/service-name: NAME } }\naddressType: IPv4\nports: []\nendpoints: [{ addresses: [10.244.0.10], conditions: { \
         ready: true } }]\n",
    ),
    nameless(
        "alias",
        "CNAME elsewhere.example.net.",
        "apiVersion: v1\nkind: Service\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { type: ExternalName, externalName: \
         elsewhere.example.net }\n",
    ),
    named("httproute", "A 192.0.2.40", route!("v1", "HTTPRoute", "hostnames: [HOST], ")),
    named("grpcroute", "A 192.0.2.40", route!("v1", "GRPCRoute", "hostnames: [HOST], ")),
    named("tlsroute", "A 192.0.2.40", route!("v1alpha3", "TLSRoute", "hostnames: [HOST], ")),
    nameless("tcproute", "A 192.0.2.40", route!("v1alpha2", "TCPRoute", "")),
    nameless("udproute", "A 192.0.2.40", route!("v1alpha2", "UDPRoute", "")),
    named(
        "ingressroute",
        NOWHERE,
        "apiVersion: traefik.io/v1alpha1\nkind: IngressRoute\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { routes: [{ kind: \
         Rule, match: \"Host(`HOST`)\" }] }\n",
    ),
    named(
        "ingressroutetcp",
        NOWHERE,
        "apiVersion: traefik.io/v1alpha1\nkind: IngressRouteTCP\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { routes: [{ \
         match: \"HostSNI(`HOST`)\" }] }\n",
    ),
    nameless(
        "node",
        "A 203.0.113.31",
        "apiVersion: v1\nkind: Node\nmetadata: { name: NAME, annotations: { NOTES } }\nstatus: { addresses: [{ type: ExternalIP, address: \
         203.0.113.31 }], conditions: [{ type: Ready, status: \"True\" }] }\n",
    ),
    nameless(
        "pod",
        "A 10.244.0.99",
        "apiVersion: v1\nkind: Pod\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { nodeName: node-1, containers: [{ name: a, \
         image: a }] }\nstatus: { phase: Running, podIP: 10.244.0.99, podIPs: [{ ip: 10.244.0.99 }] }\n",
    ),
    named(
        "istio-gateway",
        NOWHERE,
        "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { servers: [{ hosts: \
         [HOST] }] }\n",
    ),
    named(
        "istio-virtualservice",
        NOWHERE,
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { hosts: \
         [HOST], gateways: [front] }\n",
    ),
    named(
        "contour-httpproxy",
        "A 192.0.2.51",
        "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { virtualhost: { fqdn: \
         HOST } }\nstatus: { conditions: [{ type: Valid, status: \"True\" }], loadBalancer: { ingress: [{ ip: 192.0.2.51 }] } }\n",
    ),
    named(
        "openshift-route",
        "CNAME router.example.net.",
        "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { host: HOST }\nstatus: { \
         ingress: [{ routerCanonicalHostname: router.example.net, conditions: [{ type: Admitted, status: \"True\" }] }] }\n",
    ),
    named(
        "door",
        "A 192.0.2.60",
        "apiVersion: house.example.com/v2beta1\nkind: Door\nmetadata: { name: NAME, annotations: { NOTES } }\nspec: { url: HOST \
         }\nstatus: { addresses: [{ value: 192.0.2.60 }] }\n",
    ),
];

const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: gw }
spec:
  listeners:
  - { name: web, protocol: HTTPS, port: 443 }
  - { name: tls, protocol: TLS, port: 444 }
  - { name: tcp, protocol: TCP, port: 5432 }
  - { name: udp, protocol: UDP, port: 53 }
status: { addresses: [{ value: 192.0.2.40 }] }
";

/// The meaning of an annotation.
#[derive(Debug, Clone, Copy)]
enum Effect {
    /// One more name, or the only one.
    Name,
    /// All names point there.
    Target,
    /// This stands behind every record.
    Behind(&'static str),
    /// Only addresses of the other family are wanted, and there is none.
    OtherType,
    Nothing,
    /// No name, and the reason begins so.
    Refused(&'static str),
}

/// Each annotation in the words of each tool, with a value, and its meaning.
fn annotations() -> Vec<(String, &'static str, Effect)> {
    const OWN: &str = "netstead.io";
    const WEAVER: &str = "dnsweaver.dev";
    const NEW: &str = "external-dns.kubernetes.io";
    const OLD: &str = "external-dns.alpha.kubernetes.io";
    let mut all: Vec<(String, &'static str, Effect)> = Vec::new();
    let mut add = |tools: &[&str], field: &str, value: &'static str, effect: Effect| {
        all.extend(tools.iter().map(|tool| (format!("{tool}/{field}"), value, effect)));
    };
    add(&[OWN, WEAVER, NEW, OLD], "hostname", "", Effect::Name);
    add(&[OWN, WEAVER], "hostnames", "", Effect::Name);
    add(&[OWN, WEAVER, NEW, OLD], "target", "198.51.100.9", Effect::Target);
    add(&[OWN, WEAVER, NEW, OLD], "ttl", "60", Effect::Behind(" ttl 60"));
    add(&[NEW, OLD], "ttl", "5m", Effect::Behind(" ttl 300"));
    add(&[OWN, WEAVER], "proxied", "true", Effect::Behind(" proxied"));
    add(&[NEW, OLD], "cloudflare-proxied", "true", Effect::Behind(" proxied"));
    add(&[OWN], "type", "AAAA", Effect::OtherType);
    add(&[WEAVER, NEW, OLD], "record-type", "AAAA", Effect::OtherType);
    add(&[WEAVER, NEW, OLD], "record-type", "A", Effect::Nothing);
    add(&[OWN, WEAVER], "provider", "lan", Effect::Behind(" at lan"));
    add(&[WEAVER], "instances", "lan", Effect::Behind(" at lan"));
    add(&[OWN], "enabled", "false", Effect::Refused("! netstead.enabled is false"));
    add(&[WEAVER], "enabled", "false", Effect::Refused("! dnsweaver.enabled is false"));
    add(&[NEW, OLD], "controller", "other", Effect::Refused("! its annotation `controller` is `other`"));
    add(&[NEW, OLD], "controller", "dns-controller", Effect::Nothing);
    add(&[NEW, OLD], "set-identifier", "blue", Effect::Refused("! its annotation `set-identifier`"));
    // Words of other tools, and of providers that Netstead does not have.
    add(&[NEW, OLD], "alias", "true", Effect::Nothing);
    add(&[NEW, OLD], "aws-weight", "10", Effect::Nothing);
    add(&["example.com"], "hostname", "not-a-name.example.com", Effect::Nothing);
    all
}

/// Kinds with every annotation. The others have one of each meaning and tool: the rest is read in one place for all.
const WHOLE: [&str; 2] = ["ingress", "balancer"];

/// Whether this annotation is one that every kind is tried with.
fn is_for_all(key: &str, value: &str, effect: Effect) -> bool {
    let older = key.starts_with("external-dns.alpha.");
    match effect {
        Effect::Nothing | Effect::OtherType => false,
        Effect::Behind(" ttl 300") => !older,
        Effect::Behind(_) if key.starts_with("external-dns.") => !older && value != "60",
        _ => {
            !older
                && !matches!(
                    key,
                    "dnsweaver.dev/instances" | "dnsweaver.dev/hostnames" | "netstead.io/hostnames"
                )
        }
    }
}

struct Pair {
    id: String,
    yaml: String,
    expected: Vec<String>,
    title: String,
}

fn pair(kind: &Kind, number: usize, (key, value, effect): &(String, &'static str, Effect)) -> Pair {
    let name = format!("{}-{number}", kind.word);
    let (host, more) = (format!("{name}.m.test"), format!("more-{name}.m.test"));
    let (mut notes, mut names) = (Vec::new(), vec![host.clone()]);
    let value = if matches!(effect, Effect::Name) { &more } else { &(*value).to_owned() };
    match (kind.named, effect) {
        (false, Effect::Name) => names = vec![more.clone()],
        (true, Effect::Name) => names.push(more.clone()),
        // The name is asked for in our own words, beside the annotation.
        (false, _) => notes.push(format!("netstead.io/hostname: {host}")),
        (true, _) => {}
    }
    notes.push(format!("{key}: \"{value}\""));
    // external-dns reads the target of a route on its Gateway.
    let is_route = kind.yaml.contains("gateway.networking.k8s.io/");
    let left_out = is_route && matches!(effect, Effect::Target) && key.starts_with("external-dns");
    let (points, behind) = match effect {
        Effect::Target if !left_out => ("A 198.51.100.9", ""),
        Effect::Behind(behind) => (kind.points, *behind),
        Effect::OtherType => (NOWHERE, ""),
        _ => (kind.points, ""),
    };
    let mut expected: Vec<String> = names.iter().map(|name| format!("{name} {points}{behind}")).collect();
    if points == NOWHERE && !matches!(effect, Effect::OtherType) {
        expected.push("! its own address is not known: ".into());
    }
    if left_out {
        expected.push("! target: external-dns reads this annotation on the Gateway of a route".into());
    }
    if let Effect::Refused(why) = effect {
        expected = vec![(*why).to_owned()];
    }
    expected.sort();
    let yaml = kind.yaml.replace("NAME", &name).replace("HOST", &host).replace("NOTES", &notes.join(", "));
    Pair { id: name, yaml, expected, title: format!("{} with {key}: {value}", kind.word) }
}

fn by_name(report: &Report) -> BTreeMap<String, Vec<String>> {
    let lines = |workload: &netstead_model::Workload| (workload.name.clone(), record_lines(workload));
    report.workloads().into_iter().map(lines).collect()
}

/// Reasons are compared by their beginning.
fn agrees(found: &[String], expected: &[String]) -> bool {
    let same = |(found, expected): (&String, &String)| {
        found == expected || expected.starts_with('!') && found.starts_with(expected.as_str())
    };
    found.len() == expected.len() && found.iter().zip(expected).all(same)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_annotation_means_the_same_on_every_kind() {
    let server = KubeApiServer::start(&[]);
    server.apply(DEFINITIONS);
    server.apply_in("matrix", GATEWAY);
    let annotations = annotations();
    let pairs: Vec<Pair> = KINDS
        .iter()
        .flat_map(|kind| {
            let wanted = |(_, (key, value, effect)): &(usize, &(String, &str, Effect))| {
                WHOLE.contains(&kind.word) || is_for_all(key, value, *effect)
            };
            annotations.iter().enumerate().filter(wanted).map(move |(number, one)| pair(kind, number, one))
        })
        .collect();
    for pairs in pairs.chunks(20) {
        let documents: Vec<&str> = pairs.iter().map(|pair| pair.yaml.as_str()).collect();
        server.apply_in("matrix", &documents.join("---\n"));
    }
    let source = source(
        &server,
        "kinds = [\"ingress\", \"service\", \"httproute\", \"grpcroute\", \"tlsroute\", \"tcproute\", \"udproute\", \
         \"ingressroute\", \"ingressroutetcp\", \"node\", \"pod\", \"istio-gateway\", \"istio-virtualservice\", \
         \"contour-httpproxy\", \"openshift-route\"]\n[[custom]]\nkind = \"doors.house.example.com\"\nhosts = \
         \"spec.url\"\ntargets = \"status.addresses[].value\"",
    );
    let wrong = |report: &Report| {
        let (found, none) = (by_name(report), Vec::new());
        let mut wrong = String::new();
        for pair in &pairs {
            let found = found.get(&pair.id).unwrap_or(&none);
            if !agrees(found, &pair.expected) {
                let _ = write!(wrong, "{}\n expected {:?}\n found    {found:?}\n", pair.title, pair.expected);
            }
        }
        wrong
    };
    let seen = until(source.as_ref(), |report| wrong(report).is_empty().then_some(())).await;
    if let Err(report) = seen {
        panic!("{}", wrong(&report));
    }
    assert!(pairs.len() > 300, "{} pairs", pairs.len());
}
