//! PowerDNS Authoritative, over its HTTP API.
//!
//! The API replaces whole record sets and takes many per request, so the changes of a zone go out in one PATCH, and the server
//! applies all of them or none. If the server refuses the batch, the refused unit is found by halving it, and the rest is
//! applied. The API has no conditions: what is about to change is read again right before, and a unit that does not find what
//! it expects is left out.

mod apply;
mod wire;

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, ChangeSign, Clock, DnsProvider, Name, ProviderError, RecordSet, RecordType, Unit,
    WriteReply, WriteRequest, Zone, ZoneContent,
};
use netstead_settings::{Configured, Identity, Kind, table};
use netstead_wire::http::{Http, Reply, StatusCode, check_url};
use tokio::sync::{Mutex, OnceCell};

use self::wire::Changes;
use super::{DnsKind, preconditions::ServerRecords, serial_steps::SerialSteps, tidy};
use crate::{BuildContext, Secret, SettingsError, Tls};

/// Below this many units each name is asked for alone; above it the whole zone is read.
const FEW: usize = 8;
/// A search that finds this many may have left out more.
const MOST_HITS: &str = "200";

pub const KIND: DnsKind =
    Kind::new::<Config>("powerdns", "PowerDNS Authoritative, over its HTTP API", capabilities);

table! {
    /// `[dns.NAME]` with `type = "powerdns"`.
    pub struct Config {
        /// of its HTTP API: `http://ns1:8081`
        url: String, required "\"http://ns1:8081\"";
        /// the key of its HTTP API, a secret
        api_key: Secret, required "{ file = \"/run/secrets/pdns\" }";
        /// the server's id in its own API
        server_id: String, default "localhost";
        /// make the zone of a domain that has none
        create_zones: bool, default false;
        /// the name servers of new zones; the first one stands in the SOA
        nameservers: Vec<Name>, unset;
        /// the mailbox in the SOA of new zones, as a name
        hostmaster: Option<Name>, unset "`hostmaster` in the zone";
        tls: Tls, all;
    }
}

impl Configured<dyn DnsProvider> for Config {
    fn identity(&self) -> Identity {
        Identity::default().and_url(self.root(), &self.server_id)
    }

    fn server(&self) -> String {
        self.url.clone()
    }

    fn check(&self) -> Result<(), SettingsError> {
        if self.create_zones && self.nameservers.is_empty() {
            let problem = "`create_zones` needs them: a new zone has at least one name server";
            return Err(SettingsError::new("nameservers", problem));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if self.server_id.is_empty() || !self.server_id.chars().all(plain) {
            return Err(SettingsError::new("server_id", format!("`{}` is no id", self.server_id)));
        }
        check_url(self.root())?;
        self.tls.check()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn DnsProvider>, SettingsError> {
        Ok(Arc::new(PowerDns::open(self.clone(), context)?))
    }
}

impl Config {
    pub fn new(url: impl Into<String>, api_key: Secret) -> Self {
        Self {
            url: url.into(),
            api_key,
            server_id: "localhost".to_owned(),
            create_zones: false,
            nameservers: Vec::new(),
            hostmaster: None,
            tls: Tls::default(),
        }
    }

    /// The address without the path of the API.
    fn root(&self) -> &str {
        let url = self.url.trim_end_matches('/');
        url.strip_suffix("/api/v1").unwrap_or(url)
    }
}

fn capabilities() -> Capabilities {
    Capabilities { fenced: false, keeps_foreign: false, ..Capabilities::all(RecordType::ALL) }
}

/// One PowerDNS server.
#[derive(Debug)]
pub struct PowerDns {
    http: Http,
    root: String,
    creation: Option<Creation>,
    version: OnceCell<Version>,
    /// SQLite answers 500 to two changes at once.
    writing: Mutex<()>,
    steps: SerialSteps,
    clock: Arc<dyn Clock>,
}

/// How new zones are made.
#[derive(Debug)]
struct Creation {
    nameservers: Vec<Name>,
    hostmaster: Option<Name>,
}

/// Ordered by age.
type Version = (u32, u32, u32);

/// From here on single values can be added and removed.
const SINGLE_VALUES: Version = (5, 0, 2);

impl PowerDns {
    /// As [`PowerDns::open`], with this machine's clock and environment.
    pub fn new(config: Config) -> Result<Self, SettingsError> {
        Self::open(config, &super::plain_context(KIND.name))
    }

    /// Opens files and secrets; the server itself is asked later.
    pub fn open(config: Config, context: &BuildContext) -> Result<Self, SettingsError> {
        config.check()?;
        let api_key =
            config.api_key.reveal(context).map_err(|problem| SettingsError::new("api_key", problem))?;
        let http = Http::open(config.root(), &config.tls, context)?;
        let http = http.secret_header("x-api-key", "api_key", &api_key)?;
        let creation = config
            .create_zones
            .then_some(Creation { nameservers: config.nameservers, hostmaster: config.hostmaster });
        Ok(Self {
            http,
            root: format!("/api/v1/servers/{}", config.server_id),
            creation,
            version: OnceCell::new(),
            writing: Mutex::new(()),
            steps: SerialSteps::default(),
            clock: Arc::clone(&context.clock),
        })
    }

    fn zone_path(&self, zone: &Name) -> String {
        format!("{}/zones/{}", self.root, zone.absolute())
    }

    /// The zone, or only `name` of it; none if the server does not hold it.
    async fn fetch(&self, zone: &Name, name: Option<&Name>) -> Result<Option<wire::Zone>, ProviderError> {
        let absolute = name.map(Name::absolute);
        let mut query: Vec<(&str, &str)> =
            absolute.iter().map(|name| ("rrset_name", name.as_str())).collect();
        if name.is_some() {
            // Known to newer versions only; what older ones leave out is looked for in `has_disabled`.
            query.push(("include_disabled", "true"));
        }
        match self.http.get(&self.zone_path(zone)).query(&query).try_read().await? {
            Ok(zone) => Ok(Some(zone)),
            Err(reply) if no_such_zone(&reply) => Ok(None),
            Err(reply) => Err(self.odd(&reply)),
        }
    }

    /// Reads the records at the names of `request`; none if the zone does not exist yet.
    async fn current(&self, zone: &Name, request: &WriteRequest) -> Result<Option<Changes>, ProviderError> {
        if request.units.len() <= FEW {
            let mut rrsets = Vec::new();
            let mut disabled = false;
            let names: BTreeSet<&Name> = request.units.iter().flat_map(Unit::names).collect();
            for name in names {
                let Some(found) = self.fetch(zone, Some(name)).await? else { return Ok(None) };
                rrsets.extend(found.rrsets.into_iter().filter(|set| set.is_at(name)));
                disabled |= self.has_disabled(name).await?;
            }
            if !disabled {
                return Ok(Some(Changes::from(rrsets)));
            }
        }
        Ok(self.fetch(zone, None).await?.map(|zone| Changes::from(zone.rrsets)))
    }

    /// Whether a disabled record may stand at `name`. Up to 4.9 only the whole zone and the search show those, and a
    /// REPLACE that does not repeat them would lose them.
    async fn has_disabled(&self, name: &Name) -> Result<bool, ProviderError> {
        let path = format!("{}/search-data", self.root);
        let query = [("q", name.as_str()), ("max", MOST_HITS), ("object_type", "record")];
        match self.http.get(&path).query(&query).try_read::<Vec<wire::Hit>>().await? {
            Ok(hits) => {
                Ok(hits.len().to_string() == MOST_HITS || hits.iter().any(|hit| hit.is_disabled_at(name)))
            }
            // Not every backend can search; the whole zone it is.
            Err(_) => Ok(true),
        }
    }

    async fn version(&self) -> Result<Version, ProviderError> {
        let known = self.version.get_or_try_init(async || {
            match self.http.get(&self.root).try_read::<wire::Server>().await? {
                Ok(server) => Ok(server.version()),
                Err(reply) => Err(self.odd(&reply)),
            }
        });
        known.await.copied()
    }

    fn odd(&self, reply: &Reply) -> ProviderError {
        self.malformed(format!("it answers {}: {}", reply.status, wire::reason(reply)))
    }

    fn malformed(&self, reason: String) -> ProviderError {
        self.http.malformed(reason).into()
    }

    fn missing(&self, zone: &Name) -> ProviderError {
        ProviderError::NoSuchZone { server: self.http.server().to_owned(), zone: zone.clone() }
    }
}

#[async_trait]
impl DnsProvider for PowerDns {
    fn kind(&self) -> &'static str {
        "powerdns"
    }

    fn server(&self) -> String {
        self.http.server().to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    /// With `create_zones`, a domain without a zone counts as an empty one; the first write makes it.
    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        let path = format!("{}/zones", self.root);
        let begun = self.clock.wall();
        let listing = self.http.get(&path).query(&[("dnssec", "false")]);
        let listed: Vec<wire::ZoneInfo> = match listing.try_read().await? {
            Ok(listed) => listed,
            Err(reply) => return Err(self.odd(&reply)),
        };
        let mut zones: Vec<Zone> = listed.iter().filter_map(wire::ZoneInfo::writable).collect();
        zones.retain(|zone| domains.iter().any(|domain| related(&zone.name, domain)));
        for zone in &zones {
            self.steps.ask(&zone.name, begun);
        }
        if self.creation.is_some() {
            for domain in domains.iter().filter(|domain| !domain.is_wildcard()) {
                if !zones.iter().any(|zone| domain.is_subdomain_of(&zone.name)) {
                    zones.push(Zone { name: domain.clone(), sign: None });
                }
            }
        }
        zones.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(zones)
    }

    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        self.steps.forget(zone);
        match self.fetch(zone, None).await? {
            Some(found) => {
                let sign = found.serial.map(ChangeSign::from);
                let found: ServerRecords = Changes::from(found.rrsets).into();
                Ok(ZoneContent { sign, sets: found.into_sets() })
            }
            None if self.creation.is_some() => Ok(ZoneContent { sign: None, sets: Vec::new() }),
            None => Err(self.missing(zone)),
        }
    }

    fn adjust(&self, set: RecordSet, _: &Capabilities) -> RecordSet {
        tidy(set)
    }

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError> {
        let _alone = self.writing.lock().await;
        let current = match (self.current(zone, request).await?, &self.creation) {
            (Some(current), _) => current,
            (None, None) => return Err(self.missing(zone)),
            (None, Some(creation)) => {
                request.guard.permit().await?;
                self.create(zone, creation).await?;
                Changes::default()
            }
        };
        self.apply(zone, request, &current).await
    }

    fn moved_alone(&self, zone: &Name, before: &ChangeSign, after: &ChangeSign) -> bool {
        self.steps.explain_date(zone, before, after)
    }
}

/// Whether one lies at, above or below the other.
fn related(zone: &Name, domain: &Name) -> bool {
    zone.is_subdomain_of(domain) || domain.is_subdomain_of(zone)
}

/// Old versions answer 422.
fn no_such_zone(reply: &Reply) -> bool {
    reply.status == StatusCode::NOT_FOUND
        || (reply.status == StatusCode::UNPROCESSABLE_ENTITY
            && reply.text().contains("Could not find domain"))
}
