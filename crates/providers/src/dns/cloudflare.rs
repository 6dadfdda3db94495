//! Cloudflare, over its HTTP API.
//!
//! Changes of many names go out in one batch, which the API carries out in one transaction: all of it or nothing. If the API
//! refuses a batch, the refused unit is found by halving it, and the rest is applied. The resolvers of Cloudflare learn of the
//! changes one by one, so a batch is no atomic change for those who ask.
//!
//! - `cloudflare/client.rs`: calls, pages, errors. `cloudflare/budget.rs`: requests that may still be made.
//! - `cloudflare/batch.rs`: turns units into batches. `cloudflare/wire.rs`: the JSON of records.
//! - `cloudflare/marked_zone.rs`: marks as comments on the records.

mod batch;
mod budget;
mod client;
mod marked_zone;
mod wire;

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, DnsProvider, Marks, Name, ProviderError, RecordSet, RecordType, RequestBudget, WriteOrder,
    WriteReply, WriteRequest, Zone, ZoneContent,
};
use netstead_settings::{Configured, Identity, Kind, Number, choice, table};
use netstead_wire::http::check_url;

use self::{
    client::Client,
    marked_zone::{MarkedZone, is_mark_set},
};
use super::{DnsKind, tidy};
use crate::{BuildContext, Secret, SettingsError, Tls};

/// The shortest and the longest time to live. Besides them there is 1, which is `automatic`.
const TTLS: (u32, u32) = (60, 86_400);
const AUTOMATIC: u32 = 1;
/// Units in one call of `write`: a few batches.
const MOST_UNITS: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

pub const KIND: DnsKind = Kind::new::<Config>("cloudflare", "Cloudflare, over its HTTP API", capabilities);

table! {
    /// `[dns.NAME]` with `type = "cloudflare"`.
    pub struct Config {
        /// an API token with the permissions Zone Read and DNS Write, a secret
        token: Secret, required "{ file = \"/run/secrets/cloudflare\" }";
        /// the one zone to use, by name
        zone: Option<Name>, unset "every zone of the token that the domains lie in";
        /// the one zone to use, by its id; together with `zone`, a token without Zone Read will do
        zone_id: Option<String>, unset;
        /// let Cloudflare stand in front of A, AAAA and CNAME, unless a workload says otherwise
        proxied: bool, default false;
        /// where records are marked as ours: `txt`, or `comment` on each record
        marks: MarkForm, default "txt";
        /// requests in five minutes; Cloudflare allows a user 1,200 in all, so leave some to other programs
        rate_limit: Number<10, 1_000_000>, default 1200;
        /// of its API
        url: String, default "https://api.cloudflare.com/client/v4";
        tls: Tls, all;
    }
}

choice! {
    /// Where marks stand.
    #[derive(Default)]
    pub enum MarkForm {
        #[default]
        Txt = "txt",
        Comment = "comment",
    }
}

impl Configured<dyn DnsProvider> for Config {
    fn identity(&self) -> Identity {
        let zone = self.zone_id.clone().or_else(|| self.zone.as_ref().map(ToString::to_string));
        Identity::default().and_url(&self.url, &zone.unwrap_or_default())
    }

    fn server(&self) -> String {
        self.url.clone()
    }

    fn check(&self) -> Result<(), SettingsError> {
        let is_id = |id: &String| id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit());
        if let Some(id) = self.zone_id.as_ref().filter(|id| !is_id(id)) {
            let problem = format!("`{id}` is no id of a zone");
            let hint = "copy the 32 characters under `Zone ID` on the zone's overview";
            return Err(SettingsError::new("zone_id", problem).hint(hint));
        }
        check_url(&self.url)?;
        self.tls.check()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn DnsProvider>, SettingsError> {
        Ok(Arc::new(Cloudflare::open(self, context)?))
    }
}

impl Config {
    pub fn new(token: Secret) -> Self {
        Self {
            token,
            zone: None,
            zone_id: None,
            proxied: false,
            marks: MarkForm::default(),
            rate_limit: Number::nearest(1_200),
            url: "https://api.cloudflare.com/client/v4".to_owned(),
            tls: Tls::default(),
        }
    }
}

fn capabilities() -> Capabilities {
    Capabilities {
        fenced: false,
        order: WriteOrder::InPlace,
        most_units: Some(MOST_UNITS),
        signs_changes: false,
        proxies: true,
        marks: Marks::TxtOrComment,
        ..Capabilities::all(RecordType::ALL)
    }
}

/// One account at Cloudflare.
#[derive(Debug)]
pub struct Cloudflare {
    client: Client,
    zone: Option<Name>,
    zone_id: Option<String>,
    proxied: bool,
    marks: MarkForm,
    /// The ids of zones that were found.
    ids: Mutex<BTreeMap<Name, String>>,
    /// The name of the table, for the comment on each record.
    name: String,
    writing: tokio::sync::Mutex<()>,
}

impl Cloudflare {
    /// Opens files and secrets; the server itself is asked later.
    pub fn open(config: &Config, context: &BuildContext) -> Result<Self, SettingsError> {
        config.check()?;
        let ids = config.zone.clone().zip(config.zone_id.clone());
        Ok(Self {
            client: Client::open(config, context)?,
            zone: config.zone.clone(),
            zone_id: config.zone_id.clone(),
            proxied: config.proxied,
            marks: config.marks,
            ids: Mutex::new(ids.into_iter().collect()),
            name: context.name.to_string(),
            writing: tokio::sync::Mutex::default(),
        })
    }

    /// The zones that may be used, with their ids. With `zone` and `zone_id` the server is not asked.
    async fn find_zones(&self, name: Option<&Name>) -> Result<BTreeMap<Name, String>, ProviderError> {
        let found = match (&self.zone, &self.zone_id) {
            (Some(zone), Some(id)) => vec![(zone.clone(), id.clone())],
            (None, Some(id)) => self.client.zone(id).await?.into_iter().collect(),
            (zone, None) => self.client.zones(zone.as_ref().or(name)).await?,
        };
        let found: BTreeMap<Name, String> = found.into_iter().collect();
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.extend(found.clone());
        Ok(found)
    }

    async fn id_of(&self, zone: &Name) -> Result<String, ProviderError> {
        let known = self.ids.lock().unwrap_or_else(PoisonError::into_inner).get(zone).cloned();
        if let Some(id) = known {
            return Ok(id);
        }
        let found = self.find_zones(Some(zone)).await?.remove(zone);
        found.ok_or_else(|| self.missing(zone))
    }

    /// The records of a zone, with marks in the form that the engine knows.
    async fn marked_zone(&self, zone: &Name, id: &str) -> Result<MarkedZone, ProviderError> {
        let (listing, comments) = self.client.records(zone, id).await?;
        Ok(MarkedZone::new(zone, self.marks, listing, comments))
    }

    fn missing(&self, zone: &Name) -> ProviderError {
        ProviderError::NoSuchZone { server: self.client.server(), zone: zone.clone() }
    }

    /// A zone that is gone may come back with another id.
    fn forget(&self, zone: &Name, error: ProviderError) -> ProviderError {
        if matches!(error, ProviderError::NoSuchZone { .. }) && self.zone_id.is_none() {
            self.ids.lock().unwrap_or_else(PoisonError::into_inner).remove(zone);
        }
        error
    }
}

#[async_trait]
impl DnsProvider for Cloudflare {
    fn kind(&self) -> &'static str {
        "cloudflare"
    }

    fn server(&self) -> String {
        self.client.server()
    }

    fn capabilities(&self) -> Capabilities {
        let marks = match self.marks {
            MarkForm::Txt => Marks::Txt,
            MarkForm::Comment => Marks::Comment,
        };
        Capabilities { marks, ..capabilities() }
    }

    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        let found = self.find_zones(None).await?;
        let near = |zone: &Name| {
            domains.iter().any(|domain| domain.is_subdomain_of(zone) || zone.is_subdomain_of(domain))
        };
        Ok(found.into_keys().filter(near).map(|name| Zone { name, sign: None }).collect())
    }

    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        let id = self.id_of(zone).await?;
        let found = self.marked_zone(zone, &id).await.map_err(|error| self.forget(zone, error))?;
        Ok(ZoneContent { sign: None, sets: found.into_sets() })
    }

    /// The permissions that the API shows with the zone. A zone that it shows none of counts as writable.
    async fn may_write(&self, zone: &Name) -> Result<(), ProviderError> {
        let id = self.id_of(zone).await?;
        // Without Zone Read the zone cannot be asked for, and its records must do.
        let shown = match self.client.permissions(zone, &id).await {
            Err(ProviderError::Denied { .. }) if self.zone.is_some() && self.zone_id.is_some() => Vec::new(),
            shown => shown?,
        };
        if shown.is_empty() || shown.iter().any(|permission| permission == "#dns_records:edit") {
            return Ok(());
        }
        let reason = format!("the token may read `{zone}`; it needs the permission DNS Write");
        Err(ProviderError::Denied { server: self.client.server(), reason })
    }

    fn adjust(&self, set: RecordSet, _: &Capabilities) -> RecordSet {
        let mut set = tidy(set);
        let can_be = matches!(set.kind, RecordType::A | RecordType::Aaaa | RecordType::Cname);
        set.proxied = can_be.then(|| set.proxied.unwrap_or(self.proxied));
        set.ttl = match set.ttl {
            _ if set.proxied == Some(true) => AUTOMATIC,
            _ if self.marks == MarkForm::Comment && is_mark_set(&set) => AUTOMATIC,
            AUTOMATIC => AUTOMATIC,
            ttl => ttl.clamp(TTLS.0, TTLS.1),
        };
        set
    }

    fn budget(&self) -> Option<RequestBudget> {
        Some(self.client.budget())
    }

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError> {
        let _alone = self.writing.lock().await;
        let id = self.id_of(zone).await?;
        self.apply(zone, &id, request).await.map_err(|error| self.forget(zone, error))
    }
}
