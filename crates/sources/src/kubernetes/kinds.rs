//! The kinds of object that are read. Each is one file: its fields, and the names it asks for.

pub(super) mod asked;
pub(super) mod balancer;
pub(super) mod dns_endpoint;
pub(super) mod endpoint_slice;
pub(super) mod gateway;
pub(super) mod ingress;
pub(super) mod ingress_route;
pub(super) mod node;
pub(super) mod pod;
pub(super) mod route;
pub(super) mod service;

use std::{fmt, str::FromStr};

use netstead_model::ParseError;
use netstead_settings::{Shape, TextShape};

use super::object::Object;

const GATEWAY: &str = "gateway.networking.k8s.io";

/// A kind that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    Ingress,
    Service,
    HttpRoute,
    GrpcRoute,
    TlsRoute,
    TcpRoute,
    UdpRoute,
    IngressRoute,
    IngressRouteTcp,
    DnsEndpoint,
    Node,
    Pod,
    /// Asks for no name itself: routes need its listeners and addresses.
    Gateway,
    /// Asks for no name itself: headless services need the addresses in it.
    EndpointSlice,
}

/// How the API server calls a kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Served {
    pub(super) group: &'static str,
    /// The preferred one first.
    pub(super) versions: &'static [&'static str],
    pub(super) plural: &'static str,
    pub(super) kind: &'static str,
    pub(super) namespaced: bool,
}

/// The part of an object that its kind reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    Ingress(ingress::Ingress),
    Service(service::Service),
    Route(route::Route),
    Gateway(gateway::Gateway),
    IngressRoute(ingress_route::IngressRoute),
    DnsEndpoint(dns_endpoint::DnsEndpoint),
    Node(node::Node),
    Pod(pod::Pod),
    EndpointSlice(endpoint_slice::EndpointSlice),
    /// It cannot be read, and why: the names it had stay.
    Unreadable(String),
}

impl ObjectKind {
    /// Those that can be asked for.
    pub const ALL: [Self; 12] = [
        Self::Ingress,
        Self::Service,
        Self::HttpRoute,
        Self::GrpcRoute,
        Self::TlsRoute,
        Self::TcpRoute,
        Self::UdpRoute,
        Self::IngressRoute,
        Self::IngressRouteTcp,
        Self::DnsEndpoint,
        Self::Node,
        Self::Pod,
    ];

    /// Those that are read when nothing is said: nodes and pods are many, and few ask for names.
    pub(super) const DEFAULT: [Self; 10] = [
        Self::Ingress,
        Self::Service,
        Self::HttpRoute,
        Self::GrpcRoute,
        Self::TlsRoute,
        Self::TcpRoute,
        Self::UdpRoute,
        Self::IngressRoute,
        Self::IngressRouteTcp,
        Self::DnsEndpoint,
    ];

    /// The word in the configuration, in ids and in scopes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Service => "service",
            Self::HttpRoute => "httproute",
            Self::GrpcRoute => "grpcroute",
            Self::TlsRoute => "tlsroute",
            Self::TcpRoute => "tcproute",
            Self::UdpRoute => "udproute",
            Self::IngressRoute => "ingressroute",
            Self::IngressRouteTcp => "ingressroutetcp",
            Self::DnsEndpoint => "dnsendpoint",
            Self::Node => "node",
            Self::Pod => "pod",
            Self::Gateway => "gateway",
            Self::EndpointSlice => "endpointslice",
        }
    }

    /// Whether it is part of every cluster. Others are defined in the cluster, and can vanish.
    pub(super) fn is_built_in(self) -> bool {
        matches!(self, Self::Ingress | Self::Service | Self::Node | Self::Pod | Self::EndpointSlice)
    }

    pub(super) fn is_route(self) -> bool {
        matches!(self, Self::HttpRoute | Self::GrpcRoute | Self::TlsRoute | Self::TcpRoute | Self::UdpRoute)
    }

    pub(super) fn served(self) -> Served {
        let of = |group, versions, plural, kind| Served { group, versions, plural, kind, namespaced: true };
        match self {
            Self::Ingress => of("networking.k8s.io", &["v1"], "ingresses", "Ingress"),
            Self::Service => of("", &["v1"], "services", "Service"),
            Self::HttpRoute => of(GATEWAY, &["v1", "v1beta1"], "httproutes", "HTTPRoute"),
            Self::GrpcRoute => of(GATEWAY, &["v1", "v1alpha2"], "grpcroutes", "GRPCRoute"),
            Self::TlsRoute => of(GATEWAY, &["v1", "v1alpha3", "v1alpha2"], "tlsroutes", "TLSRoute"),
            Self::TcpRoute => of(GATEWAY, &["v1", "v1alpha2"], "tcproutes", "TCPRoute"),
            Self::UdpRoute => of(GATEWAY, &["v1", "v1alpha2"], "udproutes", "UDPRoute"),
            Self::Gateway => of(GATEWAY, &["v1", "v1beta1"], "gateways", "Gateway"),
            Self::IngressRoute => of("traefik.io", &["v1alpha1"], "ingressroutes", "IngressRoute"),
            Self::IngressRouteTcp => of("traefik.io", &["v1alpha1"], "ingressroutetcps", "IngressRouteTCP"),
            Self::DnsEndpoint => of("externaldns.k8s.io", &["v1alpha1"], "dnsendpoints", "DNSEndpoint"),
            Self::Node => Served { namespaced: false, ..of("", &["v1"], "nodes", "Node") },
            Self::Pod => of("", &["v1"], "pods", "Pod"),
            Self::EndpointSlice => of("discovery.k8s.io", &["v1"], "endpointslices", "EndpointSlice"),
        }
    }

    /// The part of an object that names can come from.
    pub(super) fn read(self, object: &Object) -> Body {
        let read = match self {
            Self::Ingress => ingress::read(object).map(Body::Ingress),
            Self::Service => service::read(object).map(Body::Service),
            Self::HttpRoute | Self::GrpcRoute | Self::TlsRoute | Self::TcpRoute | Self::UdpRoute => {
                route::read(object).map(Body::Route)
            }
            Self::Gateway => gateway::read(object).map(Body::Gateway),
            Self::IngressRoute | Self::IngressRouteTcp => ingress_route::read(object).map(Body::IngressRoute),
            Self::DnsEndpoint => dns_endpoint::read(object).map(Body::DnsEndpoint),
            Self::Node => node::read(object).map(Body::Node),
            Self::Pod => pod::read(object).map(Body::Pod),
            Self::EndpointSlice => endpoint_slice::read(object).map(Body::EndpointSlice),
        };
        read.unwrap_or_else(Body::Unreadable)
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ObjectKind {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let words: Vec<&str> = Self::ALL.iter().map(|kind| kind.as_str()).collect();
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| ParseError::new("kind", text, None, format!("it is none of {}", words.join(", "))))
    }
}

impl TextShape for ObjectKind {
    fn text_shape() -> Shape {
        Shape::Choice(Self::ALL.iter().map(|kind| kind.as_str()).collect())
    }
}
