//! Technitium DNS Server, over its HTTP API.
//!
//! The API takes one record per call, so the adapter [`PerRecord`] does the comparing and ordering. It answers 200 to
//! everything and says in the body whether it worked.
//!
//! - `technitium/client.rs`: calls, the token in a header (since version 15) or in the query, the session.
//! - `technitium/rdata.rs` and `service.rs`: values as parameters of a call, and from the JSON of an answer.
//! - `technitium/wire.rs`: the JSON of answers.

mod client;
mod rdata;
mod service;
mod wire;

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, DnsProvider, Name, ProviderError, RecordData, RecordType, Service, WriteOrder, Zone,
};
use netstead_settings::{Configured, Identity, Kind, choice, table};
use netstead_wire::http::{Effect, check_url};

use self::{
    client::{Answer, Client},
    wire::{Found, Session, ZoneList},
};
use super::{
    DnsKind,
    per_record::{Listing, NewRecord, PerRecord, Record, RecordApi, RecordError},
};
use crate::{BuildContext, Secret, SettingsError, Tls};

/// Up to this many names are asked for one by one; above it the whole zone is read.
const FEW: usize = 8;
const MOST_UNITS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(200).unwrap();

pub const KIND: DnsKind =
    Kind::new::<Config>("technitium", "Technitium DNS Server, over its HTTP API", || capabilities(None));

table! {
    /// `[dns.NAME]` with `type = "technitium"`.
    pub struct Config {
        /// of its web console: `http://ns1:5380`
        url: String, required "\"http://ns1:5380\"";
        /// an API token of a user who may change the zones, a secret
        token: Secret, required "{ file = \"/run/secrets/technitium\" }";
        /// where the token is sent: `header` (since version 15), `query` (older ones), or `auto`, which tries both
        token_in: TokenIn, default "auto";
        /// make the zone of a domain that has none
        create_zones: bool, default false;
        /// an HTTPS record beside each A and AAAA, so that clients do not use the one of the public zone
        https_records: bool, default true;
        /// the protocols in those HTTPS records: `h2`, or `h2,h3`
        https_alpn: String, default "h2";
        tls: Tls, all;
    }
}

choice! {
    /// Where the token is sent.
    #[derive(Default)]
    pub enum TokenIn {
        /// In a header; if the server does not know it, in the query.
        #[default]
        Auto = "auto",
        /// `Authorization: Bearer`.
        Header = "header",
        /// `token=`.
        Query = "query",
    }
}

impl Configured<dyn DnsProvider> for Config {
    fn identity(&self) -> Identity {
        Identity::default().and_url(&self.url, "")
    }

    fn server(&self) -> String {
        self.url.clone()
    }

    fn check(&self) -> Result<(), SettingsError> {
        self.read_companion()?;
        check_url(&self.url)?;
        self.tls.check()
    }

    fn companion(&self) -> Option<Service> {
        self.read_companion().ok().flatten()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn DnsProvider>, SettingsError> {
        Ok(Arc::new(PerRecord::new(Technitium::open(self, context)?)))
    }
}

impl Config {
    pub fn new(url: impl Into<String>, token: Secret) -> Self {
        Self {
            url: url.into(),
            token,
            token_in: TokenIn::default(),
            create_zones: false,
            https_records: true,
            https_alpn: "h2".to_owned(),
            tls: Tls::default(),
        }
    }

    /// The HTTPS record beside each address.
    fn read_companion(&self) -> Result<Option<Service>, SettingsError> {
        if !self.https_records {
            return Ok(None);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._/,".contains(c);
        let text = format!("1 . alpn={}", self.https_alpn);
        match RecordData::parse(RecordType::Https, &text) {
            Ok(RecordData::Https(service)) if self.https_alpn.chars().all(plain) => Ok(Some(service)),
            _ => {
                let problem = format!("`{}` is no list of protocols", self.https_alpn);
                Err(SettingsError::new("https_alpn", problem).hint("write `h2` or `h2,h3`"))
            }
        }
    }
}

fn capabilities(companion: Option<Service>) -> Capabilities {
    Capabilities {
        fenced: false,
        order: WriteOrder::InPlace,
        most_units: Some(MOST_UNITS),
        companion,
        ..Capabilities::all(RecordType::ALL)
    }
}

/// One Technitium server.
#[derive(Debug)]
pub struct Technitium {
    client: Client,
    create_zones: bool,
    companion: Option<Service>,
}

impl Technitium {
    /// Opens files and secrets; the server itself is asked later.
    pub fn open(config: &Config, context: &BuildContext) -> Result<Self, SettingsError> {
        config.check()?;
        let client = Client::open(config, context)?;
        Ok(Self { client, create_zones: config.create_zones, companion: config.read_companion()? })
    }

    /// The session of the token. A secondary node of a cluster is an error: only the primary takes changes.
    async fn session(&self) -> Result<Session, ProviderError> {
        let session = self.client.session().await?;
        match session.primary_elsewhere() {
            None => Ok(session),
            Some(primary) => Err(self.client.malformed(format!(
                "it is a secondary node of the cluster `{}`, which takes no changes; set `url` to its primary, {primary}",
                session.cluster_domain(),
            ))),
        }
    }

    fn missing(&self, zone: &Name) -> ProviderError {
        ProviderError::NoSuchZone { server: self.client.server(), zone: zone.clone() }
    }

    /// The records at `domain`, or of all of `zone`; none if the server does not hold the zone.
    async fn fetch(&self, zone: &Name, domain: &Name, all: bool) -> Result<Option<Listing>, ProviderError> {
        let parameters = [
            ("domain", domain.as_str()),
            ("zone", zone.as_str()),
            ("listZone", if all { "true" } else { "false" }),
        ];
        match self.client.call("/api/zones/records/get", &parameters, Effect::Read).await? {
            Answer::Done(body) => {
                let found: Found = self.client.read(&body)?;
                // The server takes the zone above for one that it does not hold.
                if !found.is_of(zone) {
                    return Ok(None);
                }
                Ok(Some(found.into_listing()))
            }
            Answer::Refused(message) if message.contains("No such zone") => Ok(None),
            Answer::Refused(message) => Err(self.refused(zone, message)),
        }
    }

    /// The meaning of a refused call about `zone`.
    fn refused(&self, zone: &Name, message: String) -> ProviderError {
        let server = self.client.server();
        if message.contains("No such zone") {
            self.missing(zone)
        } else if message.contains("Access was denied") {
            let reason = format!("{message} Its user needs View, Modify and Delete of `{zone}`");
            ProviderError::Denied { server, reason }
        } else {
            self.client.malformed(message)
        }
    }

    fn record_error(&self, zone: &Name, message: String) -> RecordError {
        if message.contains("No such zone") || message.contains("Access was denied") {
            self.refused(zone, message).into()
        } else if message.contains("no such record") || message.contains("does not exist") {
            RecordError::Gone
        } else {
            RecordError::Rejected { reason: message }
        }
    }

    /// Makes the zone, as a member of the cluster's catalog if there is a cluster: the secondaries learn of it from there.
    async fn create_zone(&self, zone: &Name) -> Result<(), ProviderError> {
        let session = self.session().await?;
        let catalog = session.cluster_catalog();
        let mut parameters = vec![("zone", zone.as_str()), ("type", "Primary")];
        parameters.extend(catalog.as_deref().map(|catalog| ("catalog", catalog)));
        match self.client.call("/api/zones/create", &parameters, Effect::Once).await? {
            Answer::Done(_) => {
                tracing::info!(server = self.client.server(), %zone, "Zone is made.");
                Ok(())
            }
            // Another client was faster, which is as good.
            Answer::Refused(message) if message.contains("already exists") => Ok(()),
            Answer::Refused(message) if message.contains("Access was denied") => {
                let reason = format!("{message} `create_zones` needs a user who may modify Zones");
                Err(ProviderError::Denied { server: self.client.server(), reason })
            }
            Answer::Refused(message) => Err(self.client.malformed(message)),
        }
    }

    async fn remove(&self, zone: &Name, name: &Name, data: &RecordData) -> Result<(), RecordError> {
        let mut parameters = target(zone, name, data);
        let own = rdata::parameters(data).map_err(|reason| RecordError::Rejected { reason })?;
        parameters.extend(own.iter().map(|(key, value)| (*key, value.as_str())));
        match self.client.call("/api/zones/records/delete", &parameters, Effect::Once).await? {
            Answer::Done(_) => Ok(()),
            Answer::Refused(message) => Err(self.record_error(zone, message)),
        }
    }
}

fn target<'a>(zone: &'a Name, name: &'a Name, data: &RecordData) -> Vec<(&'a str, &'a str)> {
    vec![("zone", zone.as_str()), ("domain", name.as_str()), ("type", data.kind().as_str())]
}

/// Compares what was made with what was asked for: an old version joins the strings of a text, for example.
fn verify(body: &serde_json::Value, new: &NewRecord) -> Result<(), RecordData> {
    match wire::answered(body).filter(|made| *made != new.data) {
        Some(made) => Err(made),
        None => Ok(()),
    }
}

#[async_trait]
impl RecordApi for Technitium {
    fn kind(&self) -> &'static str {
        "technitium"
    }

    fn server(&self) -> String {
        self.client.server()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(self.companion.clone())
    }

    /// With `create_zones`, a domain without a zone counts as an empty one; the first write makes it.
    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        self.session().await?;
        let listed: ZoneList = match self.client.call("/api/zones/list", &[], Effect::Read).await? {
            Answer::Done(body) => self.client.read(&body)?,
            Answer::Refused(message) => return Err(self.client.malformed(message)),
        };
        let mut zones = listed.writable();
        let near = |zone: &Zone, domain: &Name| {
            zone.name.is_subdomain_of(domain) || domain.is_subdomain_of(&zone.name)
        };
        zones.retain(|zone| domains.iter().any(|domain| near(zone, domain)));
        if self.create_zones {
            for domain in domains.iter().filter(|domain| !domain.is_wildcard()) {
                if !zones.iter().any(|zone| domain.is_subdomain_of(&zone.name)) {
                    zones.push(Zone { name: domain.clone(), sign: None });
                }
            }
        }
        zones.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(zones)
    }

    async fn list(&self, zone: &Name) -> Result<Listing, ProviderError> {
        match self.fetch(zone, zone, true).await? {
            Some(listing) => Ok(listing),
            None if self.create_zones => Ok(Listing::default()),
            None => Err(self.missing(zone)),
        }
    }

    async fn list_names(&self, zone: &Name, names: &BTreeSet<Name>) -> Result<Listing, ProviderError> {
        let inside: Vec<&Name> = names.iter().filter(|name| name.is_subdomain_of(zone)).collect();
        if inside.is_empty() || inside.len() > FEW {
            return self.list(zone).await;
        }
        let mut all = Listing::default();
        for name in inside {
            let Some(one) = self.fetch(zone, name, false).await? else { return self.list(zone).await };
            all.records.extend(one.records);
            all.opaque.extend(one.opaque);
            all.others.extend(one.others);
        }
        Ok(all)
    }

    /// The server looks at the rights before it looks at the rest of a call: one without a type changes nothing.
    async fn may_write(&self, zone: &Name) -> Result<(), ProviderError> {
        self.session().await?;
        let parameters = [("zone", zone.as_str()), ("domain", zone.as_str())];
        for path in ["/api/zones/records/add", "/api/zones/records/delete"] {
            match self.client.call(path, &parameters, Effect::Read).await? {
                Answer::Refused(message) if message.contains("'type'") => {}
                // The first write makes the zone.
                Answer::Refused(message) if message.contains("No such zone") && self.create_zones => {}
                Answer::Refused(message) => return Err(self.refused(zone, message)),
                Answer::Done(_) => {
                    return Err(self.client.malformed("it takes a record without a type".into()));
                }
            }
        }
        Ok(())
    }

    fn cannot_hold(&self, _name: &Name, data: &RecordData) -> Option<String> {
        rdata::parameters(data).err()
    }

    async fn create(&self, zone: &Name, new: &NewRecord) -> Result<Record, RecordError> {
        let own = rdata::parameters(&new.data).map_err(|reason| RecordError::Rejected { reason })?;
        let ttl = new.ttl.to_string();
        let mut parameters = target(zone, &new.name, &new.data);
        parameters.push(("ttl", &ttl));
        parameters.extend(own.iter().map(|(key, value)| (*key, value.as_str())));
        let mut answer = self.client.call("/api/zones/records/add", &parameters, Effect::Once).await?;
        if self.create_zones
            && matches!(&answer, Answer::Refused(message) if message.contains("No such zone"))
        {
            self.create_zone(zone).await?;
            answer = self.client.call("/api/zones/records/add", &parameters, Effect::Once).await?;
        }
        match answer {
            Answer::Done(body) => match verify(&body, new) {
                Ok(()) => Ok(new.made("")),
                Err(made) => {
                    self.remove(zone, &new.name, &made).await?;
                    Err(RecordError::Rejected { reason: format!("this version makes `{made}` of it") })
                }
            },
            Answer::Refused(message) if message.to_lowercase().contains("already exists") => {
                let there = self.fetch(zone, &new.name, false).await?.unwrap_or_default();
                let same = |record: &&Record| record.data == new.data && record.ttl == new.ttl;
                match there.records.iter().find(same) {
                    Some(record) => Ok(record.clone()),
                    None => {
                        Err(RecordError::Rejected { reason: format!("{message} It may be disabled there") })
                    }
                }
            }
            Answer::Refused(message) => Err(self.record_error(zone, message)),
        }
    }

    async fn update(&self, zone: &Name, old: &Record, new: &NewRecord) -> Result<Record, RecordError> {
        let rejected = |reason: String| RecordError::Rejected { reason };
        let pairs = rdata::update_parameters(&old.data, &new.data).map_err(rejected)?;
        let ttl = new.ttl.to_string();
        let mut parameters = target(zone, &old.name, &new.data);
        parameters.push(("ttl", &ttl));
        parameters.extend(pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        // An update drops what it does not repeat.
        let kept = wire::Kept::of(&old.id).parameters();
        parameters.extend(kept.iter().map(|(key, value)| (*key, value.as_str())));
        match self.client.call("/api/zones/records/update", &parameters, Effect::Once).await? {
            Answer::Done(body) => match verify(&body, new) {
                Ok(()) => Ok(new.made(old.id.clone())),
                Err(made) => {
                    self.remove(zone, &new.name, &made).await?;
                    self.create(zone, &old.again()).await?;
                    Err(RecordError::Rejected { reason: format!("this version makes `{made}` of it") })
                }
            },
            Answer::Refused(message) => Err(self.record_error(zone, message)),
        }
    }

    async fn delete(&self, zone: &Name, old: &Record) -> Result<(), RecordError> {
        self.remove(zone, &old.name, &old.data).await
    }
}
