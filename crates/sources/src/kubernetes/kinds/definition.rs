//! [`Definition`]: how the API server calls a kind, and how its objects are read.

use super::{
    super::object::Object,
    Body, ObjectKind,
    custom::{self, Row},
    dns_endpoint, dns_record, endpoint_slice, gateway, ingress, ingress_route, node, pod, route, service,
};

const GATEWAY: &str = "gateway.networking.k8s.io";
const ISTIO: &str = "networking.istio.io";

/// A kind that is read: one of ours, or one that the settings describe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) struct Definition {
    pub(in crate::kubernetes) kind: ObjectKind,
    /// The word in ids, scopes and workloads.
    pub(in crate::kubernetes) word: String,
    /// Empty for the core group.
    pub(in crate::kubernetes) group: String,
    /// The preferred one first. Without any, the server's preferred ones are taken.
    pub(in crate::kubernetes) versions: Vec<String>,
    pub(in crate::kubernetes) plural: String,
    /// Empty for a kind that the settings describe: the server says it.
    pub(in crate::kubernetes) name: String,
    pub(in crate::kubernetes) namespaced: bool,
    /// The fields with its names, for kinds that are read by their fields.
    row: Option<Row>,
}

impl Definition {
    /// One of our own kinds.
    pub(in crate::kubernetes) fn of(kind: ObjectKind) -> Self {
        let (group, versions, plural, name): (&str, &[&str], &str, &str) = match kind {
            ObjectKind::Ingress => ("networking.k8s.io", &["v1"], "ingresses", "Ingress"),
            ObjectKind::Service => ("", &["v1"], "services", "Service"),
            ObjectKind::HttpRoute => (GATEWAY, &["v1", "v1beta1"], "httproutes", "HTTPRoute"),
            ObjectKind::GrpcRoute => (GATEWAY, &["v1", "v1alpha2"], "grpcroutes", "GRPCRoute"),
            ObjectKind::TlsRoute => (GATEWAY, &["v1", "v1alpha3", "v1alpha2"], "tlsroutes", "TLSRoute"),
            ObjectKind::TcpRoute => (GATEWAY, &["v1", "v1alpha2"], "tcproutes", "TCPRoute"),
            ObjectKind::UdpRoute => (GATEWAY, &["v1", "v1alpha2"], "udproutes", "UDPRoute"),
            ObjectKind::Gateway => (GATEWAY, &["v1", "v1beta1"], "gateways", "Gateway"),
            ObjectKind::IngressRoute => ("traefik.io", &["v1alpha1"], "ingressroutes", "IngressRoute"),
            ObjectKind::IngressRouteTcp => {
                ("traefik.io", &["v1alpha1"], "ingressroutetcps", "IngressRouteTCP")
            }
            ObjectKind::DnsEndpoint => ("externaldns.k8s.io", &["v1alpha1"], "dnsendpoints", "DNSEndpoint"),
            ObjectKind::DnsRecord => ("netstead.io", &["v1alpha1"], "dnsrecords", "DNSRecord"),
            ObjectKind::Node => ("", &["v1"], "nodes", "Node"),
            ObjectKind::Pod => ("", &["v1"], "pods", "Pod"),
            ObjectKind::EndpointSlice => ("discovery.k8s.io", &["v1"], "endpointslices", "EndpointSlice"),
            ObjectKind::IstioGateway => (ISTIO, &["v1", "v1beta1", "v1alpha3"], "gateways", "Gateway"),
            ObjectKind::IstioVirtualService => {
                (ISTIO, &["v1", "v1beta1", "v1alpha3"], "virtualservices", "VirtualService")
            }
            ObjectKind::ContourHttpProxy => ("projectcontour.io", &["v1"], "httpproxies", "HTTPProxy"),
            ObjectKind::OpenshiftRoute => ("route.openshift.io", &["v1"], "routes", "Route"),
            ObjectKind::Custom => ("", &[], "", ""),
        };
        Self {
            kind,
            word: kind.as_str().to_owned(),
            group: group.to_owned(),
            versions: versions.iter().map(|version| (*version).to_owned()).collect(),
            plural: plural.to_owned(),
            name: name.to_owned(),
            namespaced: kind != ObjectKind::Node,
            row: custom::ready_row(kind),
        }
    }

    /// A kind that the settings describe.
    pub(in crate::kubernetes) fn custom(settings: &custom::CustomKind) -> Self {
        let name = &settings.kind.0;
        Self {
            kind: ObjectKind::Custom,
            word: name.word(),
            group: name.group().to_owned(),
            versions: name.versions(),
            plural: name.plural().to_owned(),
            name: String::new(),
            namespaced: true,
            row: Some(settings.row()),
        }
    }

    /// Whether it is part of every cluster. Others are defined in the cluster, and can vanish.
    pub(in crate::kubernetes) fn is_built_in(&self) -> bool {
        self.kind.is_built_in()
    }

    /// The part of an object that names can come from.
    pub(in crate::kubernetes) fn read(&self, object: &Object) -> Body {
        let read = match self.kind {
            ObjectKind::Ingress => ingress::read(object).map(Body::Ingress),
            ObjectKind::Service => service::read(object).map(Body::Service),
            ObjectKind::HttpRoute
            | ObjectKind::GrpcRoute
            | ObjectKind::TlsRoute
            | ObjectKind::TcpRoute
            | ObjectKind::UdpRoute => route::read(object).map(Body::Route),
            ObjectKind::Gateway => gateway::read(object).map(Body::Gateway),
            ObjectKind::IngressRoute | ObjectKind::IngressRouteTcp => {
                ingress_route::read(object).map(Body::IngressRoute)
            }
            ObjectKind::DnsEndpoint => dns_endpoint::read(object).map(Body::DnsEndpoint),
            ObjectKind::DnsRecord => dns_record::read(object).map(Body::DnsRecord),
            ObjectKind::Node => node::read(object).map(Body::Node),
            ObjectKind::Pod => pod::read(object).map(Body::Pod),
            ObjectKind::EndpointSlice => endpoint_slice::read(object).map(Body::EndpointSlice),
            ObjectKind::IstioGateway
            | ObjectKind::IstioVirtualService
            | ObjectKind::ContourHttpProxy
            | ObjectKind::OpenshiftRoute
            | ObjectKind::Custom => {
                let row = self.row.as_ref().ok_or_else(|| "its kind has no field paths".to_owned());
                row.map(|row| Body::Custom(row.read(object)))
            }
        };
        read.unwrap_or_else(Body::Unreadable)
    }
}
