//! The kinds of object that are read. Each is one file: its fields, and the names it asks for.

pub(super) mod asked;
pub(super) mod balancer;
pub(super) mod custom;
pub(super) mod definition;
pub(super) mod dns_endpoint;
pub(super) mod dns_record;
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
    DnsRecord,
    Node,
    Pod,
    IstioGateway,
    IstioVirtualService,
    ContourHttpProxy,
    OpenshiftRoute,
    /// A kind that the settings describe. Its words are in its definition.
    Custom,
    /// Asks for no name itself: routes need its listeners and addresses.
    Gateway,
    /// Asks for no name itself: headless services need the addresses in it.
    EndpointSlice,
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
    DnsRecord(dns_record::DnsRecord),
    Node(node::Node),
    Pod(pod::Pod),
    EndpointSlice(endpoint_slice::EndpointSlice),
    Custom(custom::Custom),
    /// It cannot be read, and why: the names it had stay.
    Unreadable(String),
}

impl ObjectKind {
    /// Those that can be asked for.
    pub const ALL: [Self; 17] = [
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
        Self::DnsRecord,
        Self::Node,
        Self::Pod,
        Self::IstioGateway,
        Self::IstioVirtualService,
        Self::ContourHttpProxy,
        Self::OpenshiftRoute,
    ];

    /// Those that are read when nothing is said: nodes and pods are many, and few ask for names; the kinds of Istio, Contour and
    /// OpenShift are in few clusters.
    pub(super) const DEFAULT: [Self; 11] = [
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
        Self::DnsRecord,
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
            Self::DnsRecord => "dnsrecord",
            Self::Node => "node",
            Self::Pod => "pod",
            Self::IstioGateway => "istio-gateway",
            Self::IstioVirtualService => "istio-virtualservice",
            Self::ContourHttpProxy => "contour-httpproxy",
            Self::OpenshiftRoute => "openshift-route",
            Self::Custom => "custom",
            Self::Gateway => "gateway",
            Self::EndpointSlice => "endpointslice",
        }
    }

    /// Whether it is part of every cluster. Others are defined in the cluster, and can vanish.
    pub(super) fn is_built_in(self) -> bool {
        matches!(self, Self::Ingress | Self::Service | Self::Node | Self::Pod | Self::EndpointSlice)
    }

    /// Whether its objects are nothing but records: no template makes names for them, and their status says what became of them.
    pub(super) fn is_record(self) -> bool {
        matches!(self, Self::DnsEndpoint | Self::DnsRecord)
    }

    pub(super) fn is_route(self) -> bool {
        matches!(self, Self::HttpRoute | Self::GrpcRoute | Self::TlsRoute | Self::TcpRoute | Self::UdpRoute)
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
