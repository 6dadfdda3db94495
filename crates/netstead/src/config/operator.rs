//! `[operator]`: the pools of Cluster API that are served.

use std::{fmt, net::SocketAddr, path::PathBuf};

use netstead_operator::{PoolKind, UnknownKind};
use netstead_settings::{Number, Section, Setting, Settings as _, Shape, table};
use netstead_wire::kubernetes::KubernetesAccess;
use serde::{Serialize, Serializer};

table! {
    pub(super) struct OperatorKeys {
        /// the kinds of pools whose claims are served: `InClusterIPPool`, `GlobalInClusterIPPool`, `InClusterPrefixPool`,
        /// `GlobalInClusterPrefixPool`, `PHPIPAMIPPool`, `NetBoxIPPool`, `GlobalNetBoxIPPool`, `NetsteadIPPool`, `GlobalNetsteadIPPool`
        kinds: Vec<KindName>, unset "none: nothing is served";
        access: KubernetesAccess, all;
        /// only objects of this namespace are looked at
        namespace: Option<String>, unset "all namespaces";
        /// only objects whose label `cluster.x-k8s.io/watch-filter` has this value are touched
        watch_filter: Option<String>, unset "all objects";
        /// where the metrics of the operator are answered, over plain HTTP at `/metrics`: address and port
        metrics: Option<ListenText>, unset "nowhere";
        /// the port of the webhooks, over HTTPS: admission of pools and the conversion of old ones
        webhook_port: Option<Number<1, 65_535>>, unset "no webhooks";
        /// the certificate of the webhooks: `tls.crt`, `tls.key` and `ca.crt` of this directory
        webhook_cert_dir: Option<PathBuf>, unset "one of its own, kept in the Secret `netstead-operator-webhook`";
        /// where the API server reaches the webhooks: `https://192.0.2.7:9443`
        webhook_url: Option<WebhookUrl>, unset "the Service `netstead-operator-webhook`";
        /// how many objects are worked on at once
        concurrency: Number<1, 1000>, default 20;
    }
}

/// The name of a kind of pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KindName(PoolKind);

impl netstead_settings::TextShape for KindName {}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for KindName {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        text.parse().map(Self)
    }
}

/// An address and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListenText(SocketAddr);

impl Setting for ListenText {
    fn shape() -> Shape {
        Shape::Text
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        section.parsed_or(key, "write `127.0.0.1:8080` or `[::1]:8080`").map(Self)
    }

    fn shown(&self) -> serde_json::Value {
        self.0.to_string().into()
    }
}

/// The address of the webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WebhookUrl(String);

impl Setting for WebhookUrl {
    fn shape() -> Shape {
        Shape::Text
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        section.parsed(key)
    }

    fn shown(&self) -> serde_json::Value {
        self.0.clone().into()
    }
}

impl std::str::FromStr for WebhookUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        netstead_operator::check_webhook_url(text).map(|()| Self(text.to_owned()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct OperatorConfig {
    #[serde(serialize_with = "names")]
    pub(crate) kinds: Vec<PoolKind>,
    #[serde(serialize_with = "place")]
    pub(crate) access: KubernetesAccess,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) watch_filter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) webhook_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) webhook_cert_dir: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) webhook_url: Option<String>,
    pub(crate) concurrency: usize,
}

fn names<S: Serializer>(kinds: &[PoolKind], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(kinds.iter().map(|kind| kind.as_str()))
}

fn place<S: Serializer>(access: &KubernetesAccess, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&access.describe())
}

/// None without kinds: then there is nothing to serve.
pub(super) fn read(mut section: Section<'_, '_>) -> Option<OperatorConfig> {
    let keys = OperatorKeys::read(&mut section)?;
    if let Err(error) = keys.access.check() {
        section.wrong(error.key, &error.problem, error.hint.as_deref());
    }
    if keys.webhook_port.is_none() && (keys.webhook_cert_dir.is_some() || keys.webhook_url.is_some()) {
        section.wrong("webhook_port", "the webhooks have no port", Some("write `webhook_port = 9443`"));
    }
    if keys.kinds.is_empty() {
        return None;
    }
    let mut kinds: Vec<PoolKind> = keys.kinds.iter().map(|kind| kind.0).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let (namespace, watch_filter) = (keys.namespace, keys.watch_filter);
    let metrics = keys.metrics.map(|listen| listen.0);
    let concurrency = keys.concurrency.get();
    Some(OperatorConfig {
        kinds,
        access: keys.access,
        namespace,
        watch_filter,
        metrics,
        webhook_port: keys.webhook_port.map(Number::get),
        webhook_cert_dir: keys.webhook_cert_dir,
        webhook_url: keys.webhook_url.map(|url| url.0),
        concurrency,
    })
}
