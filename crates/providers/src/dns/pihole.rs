//! Pi-hole: its local DNS records (hosts and CNAME entries), over the HTTP API of version 6 or 5, or by the files of version 5.
//!
//! The version is found out by asking. Both take one entry per call; version 6 keeps sessions, of which it has 16 for everyone,
//! so all tables of one server share one, and the last of them gives it back at the end.

mod config;
mod custom_list;
mod entries;
mod files;
mod v5;
mod v6;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, Marks, Name, ProviderError, RecordType, TtlSupport, WriteOrder, ZoneSource,
};
use netstead_settings::{Configured as _, Kind};
use netstead_wire::http::{Http, StatusCode};
use serde::Deserialize;
use tokio::sync::Mutex as AsyncMutex;

pub use self::{config::Config, files::PiHoleFiles};
use self::{v5::V5, v6::V6};
use super::{
    DnsKind,
    per_record::{Listing, NewRecord, PerRecord, Record, RecordApi, RecordError},
    refused_login::RefusedLogin,
};
use crate::{BuildContext, SettingsError};

pub const KIND: DnsKind = Kind::new::<Config>(
    "pihole",
    "Pi-hole: local DNS records, over its HTTP API or by its files",
    capabilities,
);

/// The time to live of local answers, unless `dns.blockTTL` of the server says otherwise.
const TTL: u32 = 2;

/// Those of version 6.
fn capabilities() -> Capabilities {
    Capabilities {
        marks: Marks::None,
        fenced: false,
        order: WriteOrder::AddFirst,
        ttl: TtlSupport::None(TTL),
        zones: ZoneSource::Domains,
        wildcards: false,
        ..Capabilities::all([RecordType::A, RecordType::Aaaa, RecordType::Cname])
    }
}

/// One Pi-hole.
pub type PiHole = PerRecord<PiHoleApi>;

impl PiHole {
    /// Opens files and secrets; the server itself is asked later.
    pub fn open(config: &Config, context: &BuildContext) -> Result<Self, SettingsError> {
        config.check()?;
        let password = match &config.password {
            Some(secret) => {
                Some(secret.reveal(context).map_err(|problem| SettingsError::new("password", problem))?)
            }
            None => None,
        };
        let key = format!("{} {}", config.root(), context.revealed());
        let http = Http::open(config.root(), &config.tls, context)?;
        let refused = || RefusedLogin::new(Arc::clone(&context.clock));
        let v5 = V5::new(http.clone(), password.as_ref(), refused());
        let v6 = V6::new(http.clone(), password, key, refused());
        Ok(Self::new(PiHoleApi { http, v5, v6, version: Mutex::default(), asking: AsyncMutex::default() }))
    }
}

/// The version of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V5,
    V6,
}

/// The local records of one Pi-hole.
#[derive(Debug)]
pub struct PiHoleApi {
    http: Http,
    v5: V5,
    v6: V6,
    version: Mutex<Option<Version>>,
    /// One caller at a time finds out the version.
    asking: AsyncMutex<()>,
}

impl PiHoleApi {
    fn known_version(&self) -> MutexGuard<'_, Option<Version>> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version, asked for once. No credentials are needed for that.
    async fn version(&self) -> Result<Version, ProviderError> {
        #[derive(Deserialize)]
        struct Login {
            #[serde(rename = "https_port")]
            _https_port: serde_json::Value,
        }
        #[derive(Deserialize)]
        struct Five {
            #[serde(rename = "version")]
            _version: serde_json::Value,
        }
        let _alone = self.asking.lock().await;
        if let Some(known) = *self.known_version() {
            return Ok(known);
        }
        let reply = self.http.get("/api/info/login").send().await?;
        let found = if reply.is_success() && reply.json::<Login>().is_ok() {
            Version::V6
        } else {
            let reply = self.http.get("/admin/api.php").query(&[("version", "")]).send().await?;
            if !reply.is_success() || reply.json::<Five>().is_err() {
                let problem =
                    "it has the API of neither Pi-hole 5 nor 6; is the address that of its web interface?";
                return Err(self.http.malformed(problem).into());
            }
            Version::V5
        };
        *self.known_version() = Some(found);
        Ok(found)
    }

    /// Passes an outcome on. A Pi-hole that was updated to version 6 answers 404: then the version is asked for again.
    fn checked<T>(&self, outcome: Result<T, v5::V5Error>) -> Result<T, RecordError> {
        outcome.map_err(|error| match error {
            v5::V5Error::Record(error) => error,
            v5::V5Error::NoApi(reply) => {
                *self.known_version() = None;
                let status: StatusCode = reply.status;
                ProviderError::from(self.http.malformed(format!("it answers {status}: {}", reply.text())))
                    .into()
            }
        })
    }
}

#[async_trait]
impl RecordApi for PiHoleApi {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn server(&self) -> String {
        self.http.server().to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        if *self.known_version() == Some(Version::V5) {
            // It takes one address of each family for a name.
            return Capabilities { one_value: true, order: WriteOrder::RemoveFirst, ..capabilities() };
        }
        capabilities()
    }

    async fn list(&self, _zone: &Name) -> Result<Listing, ProviderError> {
        match self.version().await? {
            Version::V5 => self.checked(self.v5.list(TTL).await).map_err(|error| match error {
                RecordError::Failed(error) => error,
                other => self.http.malformed(other.to_string()).into(),
            }),
            Version::V6 => self.v6.list(TTL).await,
        }
    }

    /// An app password of version 6 may only read, unless the server is told otherwise.
    async fn may_write(&self, _zone: &Name) -> Result<(), ProviderError> {
        match self.version().await? {
            Version::V5 => Ok(()),
            Version::V6 => self.v6.may_write().await,
        }
    }

    async fn create(&self, _zone: &Name, new: &NewRecord) -> Result<Record, RecordError> {
        match self.version().await? {
            Version::V5 => self.checked(self.v5.create(new).await)?,
            Version::V6 => self.v6.create(new).await?,
        }
        Ok(new.made(""))
    }

    async fn delete(&self, _zone: &Name, old: &Record) -> Result<(), RecordError> {
        match self.version().await? {
            Version::V5 => self.checked(self.v5.delete(old).await),
            Version::V6 => self.v6.delete(old).await,
        }
    }

    async fn finish(&self) -> Result<(), ProviderError> {
        self.v6.restart_if_needed().await
    }

    async fn close(&self) {
        self.v6.log_out().await;
    }
}
