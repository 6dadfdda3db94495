//! Any server that takes DNS UPDATE (RFC 2136): BIND, Knot, PowerDNS and others.
//!
//! Everything goes over TCP in exchanges of our own, because a lost part must never look like names that are gone: a
//! transfer ends with its second SOA or it is an error. Each update says what it expects to find, and names the old
//! value of a fence record that it also replaces, so a server refuses an update that comes too late.
//!
//! `read = "transfer"` reads by AXFR. Where no transfer is allowed, `read = "query"` asks for each name that matters,
//! one type after the other.

mod answer;
mod client;
mod query;
mod rdata;
mod transfer;
mod tsig;
mod update;
mod write;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, Clock, DnsProvider, Name, ProviderError, RecordSet, RecordType, SystemClock, UnitOutcome,
    WriteRequest, Zone, ZoneContent,
};
use netstead_wire::Redactor;
use serde::Deserialize;

use self::client::{Client, Server};
use super::{serial_steps::SerialSteps, tidy};
use crate::{CallObserver, NoopObserver, Secret, SettingsError};

pub use self::tsig::Algorithm;

const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(30);

/// `[dns.NAME]` with `type = "rfc2136"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `host`, `host:port` or `[address]:port`. Reads take the first that answers; writes go to the first that acts as
    /// the zone's primary.
    pub servers: Vec<String>,
    /// The name of the TSIG key, as the server knows it.
    #[serde(default)]
    pub tsig_name: Option<String>,
    /// `hmac-sha256`, `hmac-sha384` or `hmac-sha512`.
    #[serde(default = "sha256")]
    pub tsig_algorithm: String,
    /// The key itself, in base64.
    #[serde(default)]
    pub tsig_secret: Option<Secret>,
    #[serde(default)]
    pub read: Read,
    /// Zones that lie below a configured domain: DNS has no way to ask for them. Those at or above one are found.
    #[serde(default)]
    pub zones: Vec<Name>,
}

fn sha256() -> String {
    "hmac-sha256".to_owned()
}

/// How a zone is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Read {
    /// AXFR: the whole zone at one serial.
    #[default]
    Transfer,
    /// Each known name is asked for. What stands at other names stays unknown.
    Query,
}

impl Config {
    pub fn new(servers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            servers: servers.into_iter().map(Into::into).collect(),
            tsig_name: None,
            tsig_algorithm: sha256(),
            tsig_secret: None,
            read: Read::default(),
            zones: Vec::new(),
        }
    }
}

/// One primary with its secondaries.
#[derive(Debug)]
pub struct Rfc2136 {
    servers: Vec<Server>,
    client: Client,
    read: Read,
    zones: Vec<Name>,
    steps: SerialSteps,
}

impl Rfc2136 {
    pub fn new(config: Config) -> Result<Self, SettingsError> {
        Self::observed(config, Arc::new(NoopObserver), SystemClock::shared())
    }

    /// As [`Rfc2136::new`], telling `observer` of each exchange.
    pub fn observed(
        config: Config,
        observer: Arc<dyn CallObserver>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SettingsError> {
        Self::patient(config, observer, clock, CONNECT, ANSWER)
    }

    /// As [`Rfc2136::observed`], with other limits of time.
    pub fn patient(
        config: Config,
        observer: Arc<dyn CallObserver>,
        clock: Arc<dyn Clock>,
        connect: Duration,
        answer: Duration,
    ) -> Result<Self, SettingsError> {
        let servers: Vec<Server> =
            config.servers.iter().map(|text| Server::parse(text)).collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err(SettingsError::new("servers", "there must be at least one"));
        }
        let key = match (&config.tsig_name, &config.tsig_secret) {
            (None, None) => None,
            (Some(_), None) => {
                return Err(SettingsError::new("tsig_secret", "it is missing, and `tsig_name` is set"));
            }
            (None, Some(_)) => {
                return Err(SettingsError::new("tsig_name", "it is missing, and `tsig_secret` is set"));
            }
            (Some(name), Some(secret)) => Some(tsig::TsigKey::new(name, &config.tsig_algorithm, secret)?),
        };
        let redactor = Redactor::new(config.tsig_secret.as_ref().map(Secret::expose));
        let client = Client { key, redactor, observer, clock, connect, answer };
        let steps = SerialSteps::default();
        Ok(Self { servers, client, read: config.read, zones: config.zones, steps })
    }

    async fn zones_of(&self, server: &Server, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        let mut connection = self.client.connect(server).await?;
        let listed = self.zones.iter().filter(|zone| {
            domains.iter().any(|domain| zone.is_subdomain_of(domain) || domain.is_subdomain_of(zone))
        });
        let mut found = BTreeMap::new();
        for name in domains.iter().chain(listed) {
            if let Some(zone) = connection.zone_of(name).await? {
                found.insert(zone.name.clone(), zone);
            }
        }
        Ok(found.into_values().collect())
    }

    async fn read_from(
        &self,
        server: &Server,
        zone: &Name,
        names: Option<&BTreeSet<Name>>,
    ) -> Result<ZoneContent, ProviderError> {
        let mut connection = self.client.connect(server).await?;
        let (serial, found) = match (self.read, names) {
            (Read::Transfer, _) => connection.transfer(zone).await?,
            (Read::Query, Some(names)) => connection.query_names(zone, names).await?,
            // A short list would read as names gone.
            (Read::Query, None) => {
                let reason = format!("no names of `{zone}` are known to ask it for");
                return Err(ProviderError::Malformed { server: server.to_string(), reason });
            }
        };
        let mut sets = found.into_sets();
        sets.retain(|set| !update::is_fence(set, zone));
        Ok(ZoneContent { serial: Some(serial), sets })
    }
}

#[async_trait]
impl DnsProvider for Rfc2136 {
    fn kind(&self) -> &'static str {
        "rfc2136"
    }

    fn server(&self) -> String {
        self.servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            types: RecordType::ALL.to_vec(),
            marks: true,
            fenced: true,
            atomic: true,
            keeps_foreign: true,
            proxies: false,
        }
    }

    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        let mut first = None;
        for server in &self.servers {
            match self.zones_of(server, domains).await {
                Ok(zones) => return Ok(zones),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| self.no_server_error()))
    }

    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        self.read_anywhere(zone, None).await
    }

    fn reads_by_name(&self) -> bool {
        self.read == Read::Query
    }

    async fn read_names(&self, zone: &Name, names: &BTreeSet<Name>) -> Result<ZoneContent, ProviderError> {
        self.read_anywhere(zone, Some(names)).await
    }

    async fn may_write(&self, zone: &Name) -> Result<(), ProviderError> {
        let mut first = None;
        for server in &self.servers {
            let asked = async { self.client.connect(server).await?.may_update(zone).await };
            match asked.await {
                Ok(()) => return Ok(()),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| self.no_server_error()))
    }

    fn adjust(&self, set: RecordSet) -> RecordSet {
        tidy(set)
    }

    async fn fence(&self, zone: &Name, owner: &str) -> Result<Option<(u64, u64)>, ProviderError> {
        let mut first = None;
        for server in &self.servers {
            match self.fence_at(server, zone, owner).await {
                Ok(fence) => return Ok(fence),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| self.no_server_error()))
    }

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<Vec<UnitOutcome>, ProviderError> {
        self.steps.forget(zone);
        let mut first = None;
        for server in &self.servers {
            match self.write_to(server, zone, request).await {
                Ok(outcomes) => return Ok(outcomes),
                // Whoever comes next may be the primary, as long as this one surely changed nothing.
                Err(write::Stop { error, harmless: true }) => first = first.or(Some(error)),
                Err(write::Stop { error, harmless: false }) => return Err(error),
            }
        }
        Err(first.unwrap_or_else(|| self.no_server_error()))
    }

    /// With several servers the serial may be that of one which has not heard of the change.
    fn moved_alone(&self, zone: &Name, before: u32, after: u32) -> bool {
        self.servers.len() == 1 && self.steps.explain(zone, before, after)
    }
}

impl Rfc2136 {
    async fn read_anywhere(
        &self,
        zone: &Name,
        names: Option<&BTreeSet<Name>>,
    ) -> Result<ZoneContent, ProviderError> {
        let mut first = None;
        for server in &self.servers {
            match self.read_from(server, zone, names).await {
                Ok(content) => return Ok(content),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| self.no_server_error()))
    }

    fn no_server_error(&self) -> ProviderError {
        ProviderError::Unreachable { server: self.server(), reason: "there is no server to ask".into() }
    }
}
