//! Webhook providers of external-dns: any of them is a DNS server of Netstead.
//!
//! The protocol lists everything the provider holds, and takes creations, changes and removals in one call. It knows no zones,
//! no conditions and no reason but the text beside a 500. What is about to change is read again right before, and after a
//! refusal the records are read once more: they say which units stand, and the refused one is found by halving.
//!
//! - `external_dns/listed.rs`: all endpoints of a provider. `external_dns/domain_filter.rs`: names that the provider takes.
//! - `external_dns/client.rs`: the four calls. `external_dns/apply.rs`: turns units into calls.
//! - `external_dns/adjustments.rs`: remembers what the provider makes of a set.

mod adjustments;
mod apply;
mod client;
mod domain_filter;
mod listed;

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, DnsProvider, Marks, Name, ProviderError, RecordSet, RecordType, Span, WriteOrder,
    WriteReply, WriteRequest, Zone, ZoneContent, ZoneSource,
};
use netstead_settings::{Configured, Identity, Kind, table};
use netstead_wire::{external_dns::TYPES, http::check_url};

pub use self::domain_filter::DomainFilter;
use self::{adjustments::Adjustments, client::Client};
use super::{DnsKind, per_record::SharedListing, tidy};
use crate::{BuildContext, Secret, SettingsError, Tls};

/// Units in one call of `write`: a few requests.
const MOST_UNITS: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

pub const KIND: DnsKind =
    Kind::new::<Config>("external-dns", "any webhook provider of external-dns, over HTTP", general);

table! {
    /// `[dns.NAME]` with `type = "external-dns"`.
    pub struct Config {
        /// the address of the webhook provider
        url: String, required "\"http://localhost:8888\"";
        /// types that the provider can hold, of `A`, `AAAA`, `CNAME`, `TXT`, `SRV`, `MX`, `NS`, `PTR`; without `TXT` it gets no marks
        record_types: Vec<RecordType>, default ["A", "AAAA", "CNAME", "TXT"];
        /// sent with `password`, where a proxy in front of the provider asks for it
        user: Option<String>, unset;
        /// of that user, a secret
        password: Option<Secret>, unset;
        /// how long one request may take
        timeout: Span, default "30s";
        tls: Tls, all;
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
        let wrong = |key, problem: &str| Err(SettingsError::new(key, problem));
        if self.record_types.is_empty() {
            return wrong("record_types", "it is empty: the provider could hold nothing");
        }
        if let Some(kind) = self.record_types.iter().find(|kind| !TYPES.contains(kind)) {
            return wrong("record_types", &format!("external-dns has no records of type {kind}"));
        }
        if self.user.is_some() != self.password.is_some() {
            let key = if self.user.is_some() { "password" } else { "user" };
            return wrong(key, "`user` and `password` are set together");
        }
        if self.user.as_ref().is_some_and(|user| user.contains(':')) {
            return wrong("user", "a user has no `:`");
        }
        if self.timeout.is_zero() {
            return wrong("timeout", "no request can be answered in no time");
        }
        check_url(&self.url)?;
        self.tls.check()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn DnsProvider>, SettingsError> {
        Ok(Arc::new(ExternalDns::open(self, context)?))
    }
}

impl Config {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            record_types: vec![RecordType::A, RecordType::Aaaa, RecordType::Cname, RecordType::Txt],
            user: None,
            password: None,
            timeout: Span::from_secs(30),
            tls: Tls::default(),
        }
    }
}

/// Of a provider that holds all that the protocol can say.
fn general() -> Capabilities {
    capabilities(&TYPES)
}

fn capabilities(types: &[RecordType]) -> Capabilities {
    let marks = if types.contains(&RecordType::Txt) { Marks::Txt } else { Marks::None };
    Capabilities {
        marks,
        fenced: false,
        // Many providers carry out a change as a removal and a creation.
        order: WriteOrder::RemoveFirst,
        most_units: Some(MOST_UNITS),
        zones: ZoneSource::Domains,
        keeps_foreign: false,
        ..Capabilities::all(types)
    }
}

/// One webhook provider.
#[derive(Debug)]
pub struct ExternalDns {
    client: Client,
    types: Vec<RecordType>,
    adjustments: Mutex<Adjustments>,
    shared: Mutex<Option<SharedListing>>,
    writing: tokio::sync::Mutex<()>,
}

impl ExternalDns {
    /// Opens files and secrets; the provider itself is asked later.
    pub fn open(config: &Config, context: &BuildContext) -> Result<Self, SettingsError> {
        config.check()?;
        Ok(Self {
            client: Client::open(config, context)?,
            types: config.record_types.clone(),
            adjustments: Mutex::default(),
            shared: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        })
    }

    fn adjustments(&self) -> std::sync::MutexGuard<'_, Adjustments> {
        self.adjustments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missing(&self, zone: &Name) -> ProviderError {
        ProviderError::NoSuchZone { server: self.server(), zone: zone.clone() }
    }

    /// Lists everything, once for all `domains`.
    async fn list(&self, domains: &[Name]) -> Result<SharedListing, ProviderError> {
        let listed = self.client.records().await?;
        let listing = listed.listing();
        self.adjustments().learn(&listing.found());
        Ok(SharedListing::new(domains, listing))
    }
}

#[async_trait]
impl DnsProvider for ExternalDns {
    fn kind(&self) -> &'static str {
        "external-dns"
    }

    fn server(&self) -> String {
        self.client.server()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(&self.types)
    }

    /// The domains that the provider's filter leaves something of.
    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        let filter = self.client.filter().await?;
        let domains: Vec<Name> = domains.iter().filter(|domain| filter.reaches(domain)).cloned().collect();
        if domains.is_empty() {
            return Ok(Vec::new());
        }
        let held = self.list(&domains).await?;
        let zones = held.zones();
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(zones)
    }

    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        let unread = self
            .shared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()
            .and_then(|held| held.unread(zone));
        let held = match unread {
            Some(held) => held,
            None => self.list(std::slice::from_ref(zone)).await?,
        };
        Ok(held.content(zone))
    }

    /// Whether the provider's filter leaves something of the zone. The protocol has no other way to ask.
    async fn may_write(&self, zone: &Name) -> Result<(), ProviderError> {
        if self.client.filter().await?.reaches(zone) { Ok(()) } else { Err(self.missing(zone)) }
    }

    fn adjust(&self, set: RecordSet, _: &Capabilities) -> RecordSet {
        self.adjustments().adjusted(tidy(set))
    }

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError> {
        let _alone = self.writing.lock().await;
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.apply(zone, request).await
    }
}
