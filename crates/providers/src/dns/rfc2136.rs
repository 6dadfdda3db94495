//! Any server that takes DNS UPDATE (RFC 2136): BIND, Knot, PowerDNS and others.
//!
//! Everything goes over TCP in exchanges of our own, because a lost part must never look like names that are gone: a
//! transfer ends with its second SOA or it is an error. Each update says what it expects to find, and names the old
//! value of a fence record that it also replaces, so a server refuses an update that comes too late.
//!
//! A zone is read by AXFR. Where no transfer is allowed, each name that matters is asked for, one type after the other.
//! `read` chooses one of the two; without it a transfer is tried first, and again every hour.

mod answer;
mod client;
mod query;
mod rdata;
mod reading;
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
    Capabilities, ChangeSign, DnsProvider, Name, ProviderError, RecordSet, RecordType, WriteReply,
    WriteRequest, Zone, ZoneContent,
};
use netstead_settings::{Configured, Identity, Kind, SecretValue, choice, table};
use netstead_wire::Redactor;

use self::{
    client::{Client, Server},
    reading::KnownWays,
};
use super::{DnsKind, serial_steps::SerialSteps, tidy};
use crate::{BuildContext, Secret, SettingsError};

pub use self::tsig::Algorithm;

const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(30);

/// A key of the right form, for checking the rest of a table whose own key is not opened: 64 bytes in base64.
const ANY_KEY: &str =
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==";

pub const KIND: DnsKind =
    Kind::new::<Config>("rfc2136", "DNS UPDATE as BIND, Knot and PowerDNS take it", capabilities);

table! {
    /// `[dns.NAME]` with `type = "rfc2136"`.
    pub struct Config {
        /// `host`, `host:port` or `[address]:port`; the next one is asked when one fails, and writes go to the first that
        /// acts as the zone's primary
        servers: Vec<String>, required "[\"ns1.example.com\"]";
        /// the name of the TSIG key, as the server knows it
        tsig_name: Option<String>, unset "no key";
        /// `hmac-sha256`, `hmac-sha384`, `hmac-sha512`
        tsig_algorithm: String, default "hmac-sha256";
        /// the key itself in base64, a secret
        tsig_secret: Option<Secret>, unset;
        /// `transfer`: by AXFR. `query`: each name that is wanted or ours is asked for alone, and other names stay unseen.
        /// `auto`: by AXFR, and by query where the server refuses a transfer
        read: Read, default "auto";
        /// zones below a domain, which DNS has no way to ask for
        zones: Vec<Name>, unset;
    }
}

choice! {
    /// How a zone is read.
    #[derive(Default)]
    pub enum Read {
        /// By AXFR where the server allows it, else by query.
        #[default]
        Auto = "auto",
        /// AXFR: the whole zone at one serial.
        Transfer = "transfer",
        /// Each known name is asked for. Values at other names stay unknown.
        Query = "query",
    }
}

impl Configured<dyn DnsProvider> for Config {
    fn identity(&self) -> Identity {
        self.servers
            .iter()
            .fold(Identity::default(), |identity, server| identity.and_host(server, client::PORT))
    }

    fn server(&self) -> String {
        self.servers.join(" ")
    }

    fn check(&self) -> Result<(), SettingsError> {
        self.parsed_servers()?;
        self.tsig_key(|secret| match secret {
            Secret::Value(value) => Ok(SecretValue::new(value)),
            Secret::Variable(_) | Secret::File(_) | Secret::Credential(_) => Ok(SecretValue::new(ANY_KEY)),
        })
        .map(drop)
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn DnsProvider>, SettingsError> {
        Ok(Arc::new(Rfc2136::open(self.clone(), context)?))
    }
}

impl Config {
    fn parsed_servers(&self) -> Result<Vec<Server>, SettingsError> {
        if self.servers.is_empty() {
            return Err(SettingsError::new("servers", "there must be at least one"));
        }
        self.servers.iter().map(|text| Server::parse(text)).collect()
    }

    fn tsig_key(
        &self,
        reveal: impl FnOnce(&Secret) -> Result<SecretValue, SettingsError>,
    ) -> Result<Option<tsig::TsigKey>, SettingsError> {
        match (&self.tsig_name, &self.tsig_secret) {
            (None, None) => Ok(None),
            (Some(_), None) => {
                Err(SettingsError::new("tsig_secret", "it is missing, and `tsig_name` is set"))
            }
            (None, Some(_)) => {
                Err(SettingsError::new("tsig_name", "it is missing, and `tsig_secret` is set"))
            }
            (Some(name), Some(secret)) => {
                tsig::TsigKey::new(name, &self.tsig_algorithm, &reveal(secret)?).map(Some)
            }
        }
    }

    pub fn new(servers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            servers: servers.into_iter().map(Into::into).collect(),
            tsig_name: None,
            tsig_algorithm: "hmac-sha256".to_owned(),
            tsig_secret: None,
            read: Read::default(),
            zones: Vec::new(),
        }
    }
}

fn capabilities() -> Capabilities {
    Capabilities::all(RecordType::ALL)
}

/// One primary with its secondaries.
#[derive(Debug)]
pub struct Rfc2136 {
    servers: Vec<Server>,
    client: Client,
    read: Read,
    zones: Vec<Name>,
    steps: SerialSteps,
    ways: KnownWays,
}

impl Rfc2136 {
    /// As [`Rfc2136::open`], with this machine's clock and environment.
    pub fn new(config: Config) -> Result<Self, SettingsError> {
        Self::open(config, &super::plain_context(KIND.name))
    }

    /// Opens secrets; the servers themselves are asked later.
    pub fn open(config: Config, context: &BuildContext) -> Result<Self, SettingsError> {
        Self::with_timeouts(config, context, CONNECT, ANSWER)
    }

    /// As [`Rfc2136::open`], with other limits of time.
    pub fn with_timeouts(
        config: Config,
        context: &BuildContext,
        connect: Duration,
        answer: Duration,
    ) -> Result<Self, SettingsError> {
        let servers = config.parsed_servers()?;
        let mut revealed = None;
        let key = config.tsig_key(|secret| {
            let value = secret.reveal(context);
            let value = value.map_err(|problem| SettingsError::new("tsig_secret", problem))?;
            revealed = Some(value.clone());
            Ok(value)
        })?;
        let redactor = Redactor::new(revealed.as_ref().map(SecretValue::expose));
        let (observer, clock) = (Arc::clone(&context.calls), Arc::clone(&context.clock));
        let client = Client { key, redactor, observer, clock, connect, answer };
        let steps = SerialSteps::default();
        let ways = KnownWays::default();
        Ok(Self { servers, client, read: config.read, zones: config.zones, steps, ways })
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
        capabilities()
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
        self.may_read_by_name()
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

    fn adjust(&self, set: RecordSet, _: &Capabilities) -> RecordSet {
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

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError> {
        let mut first = None;
        for server in &self.servers {
            match self.write_to(server, zone, request).await {
                Ok(reply) => return Ok(reply),
                // The next server may be the primary, as long as this one certainly changed nothing.
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| self.no_server_error()))
    }

    /// With several servers the serial may be that of one which has not heard of the change.
    fn moved_alone(&self, zone: &Name, before: &ChangeSign, after: &ChangeSign) -> bool {
        self.servers.len() == 1 && self.steps.explain(zone, before, after)
    }
}

impl Rfc2136 {
    fn no_server_error(&self) -> ProviderError {
        ProviderError::Unreachable { server: self.server(), reason: "there is no server to ask".into() }
    }
}
