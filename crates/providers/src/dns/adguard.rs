//! AdGuard Home: DNS rewrites, over its HTTP API.
//!
//! A rewrite is a domain and an answer: an address, or the name that an alias leads to. The server knows neither zones nor
//! times to live nor TXT, takes the same rewrite twice without a word, and deletes all that are equal. So a rewrite is
//! never added beside an equal one: one that a person disabled stays as it is, and the unit is rejected with the reason.

mod rewrites;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, DnsProvider, Marks, Name, ProviderError, RecordType, TtlSupport, WriteOrder, ZoneSource,
};
use netstead_settings::{Configured, Identity, Kind, table};
use netstead_wire::http::{Effect, Http, HttpError, Reply, Request, StatusCode, check_url};

use self::rewrites::{Rewrite, Rewrites};
use super::{
    DnsKind,
    per_record::{Listing, NewRecord, PerRecord, Record, RecordApi, RecordError},
    refused_login::RefusedLogin,
};
use crate::{BuildContext, Secret, SettingsError, Tls};

pub const KIND: DnsKind =
    Kind::new::<Config>("adguard", "AdGuard Home: DNS rewrites, over its HTTP API", capabilities);

/// The answer that a rewrite gets unless `blocked_response_ttl` of the server says otherwise.
const TTL: u32 = 10;

table! {
    /// `[dns.NAME]` with `type = "adguard"`.
    pub struct Config {
        /// of its web interface: `http://adguard:3000`
        url: String, required "\"http://adguard:3000\"";
        /// a user of its web interface
        user: String, required "\"admin\"";
        /// of that user, a secret
        password: Secret, required "{ file = \"/run/secrets/adguard\" }";
        tls: Tls, all;
    }
}

impl Configured<dyn DnsProvider> for Config {
    fn identity(&self) -> Identity {
        Identity::default().and_url(self.root(), "")
    }

    fn server(&self) -> String {
        self.url.clone()
    }

    fn check(&self) -> Result<(), SettingsError> {
        if self.user.is_empty() || self.user.contains(':') {
            return Err(SettingsError::new("user", format!("`{}` is no user of a web interface", self.user)));
        }
        check_url(self.root())?;
        self.tls.check()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn DnsProvider>, SettingsError> {
        Ok(Arc::new(AdGuard::open(self, context)?))
    }
}

impl Config {
    pub fn new(url: impl Into<String>, user: impl Into<String>, password: Secret) -> Self {
        Self { url: url.into(), user: user.into(), password, tls: Tls::default() }
    }

    /// The address without the path of the API.
    fn root(&self) -> &str {
        let url = self.url.trim_end_matches('/');
        url.strip_suffix("/control").unwrap_or(url)
    }
}

fn capabilities() -> Capabilities {
    Capabilities {
        marks: Marks::None,
        fenced: false,
        order: WriteOrder::InPlace,
        ttl: TtlSupport::None(TTL),
        zones: ZoneSource::Domains,
        ..Capabilities::all([RecordType::A, RecordType::Aaaa, RecordType::Cname])
    }
}

/// One AdGuard Home.
pub type AdGuard = PerRecord<AdGuardApi>;

impl AdGuard {
    /// Opens files and secrets; the server itself is asked later.
    pub fn open(config: &Config, context: &BuildContext) -> Result<Self, SettingsError> {
        config.check()?;
        let password =
            config.password.reveal(context).map_err(|problem| SettingsError::new("password", problem))?;
        let http = Http::open(config.root(), &config.tls, context)?.basic_auth(&config.user, &password)?;
        let refused = RefusedLogin::new(Arc::clone(&context.clock));
        Ok(Self::new(AdGuardApi { http, refused, newest: Mutex::default() }))
    }
}

/// The rewrites of one AdGuard Home.
#[derive(Debug)]
pub struct AdGuardApi {
    http: Http,
    refused: RefusedLogin,
    /// The newest listing: what is disabled, and what is there twice. A write begins with a listing.
    newest: Mutex<Rewrites>,
}

impl AdGuardApi {
    fn newest(&self) -> MutexGuard<'_, Rewrites> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a change. The server answers 400 to what it does not want.
    async fn change(&self, request: Request<'_>) -> Result<Reply, ProviderError> {
        self.refused.check()?;
        self.refused.note(request.send().await)
    }

    async fn add(&self, rewrite: &Rewrite) -> Result<(), RecordError> {
        let reply = self.change(self.http.post("/control/rewrite/add").json(rewrite)).await?;
        self.done(&reply)
    }

    /// Deletes all rewrites that are equal to this one. It is no error if there is none.
    async fn remove(&self, rewrite: &Rewrite) -> Result<(), RecordError> {
        let request = self.http.post("/control/rewrite/delete").json(rewrite).effect(Effect::Idempotent);
        let reply = self.change(request).await?;
        self.done(&reply)
    }

    fn done(&self, reply: &Reply) -> Result<(), RecordError> {
        match reply.status {
            status if status.is_success() => Ok(()),
            StatusCode::BAD_REQUEST => Err(RecordError::Rejected { reason: reply.text() }),
            _ => Err(self.odd(reply).into()),
        }
    }

    /// An answer that AdGuard Home never gives: another program is there, and nothing was changed.
    fn odd(&self, reply: &Reply) -> ProviderError {
        let (server, status, reason) = (self.http.server().to_owned(), reply.status.as_u16(), reply.text());
        HttpError::Refused { server, status, reason }.into()
    }
}

#[async_trait]
impl RecordApi for AdGuardApi {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn server(&self) -> String {
        self.http.server().to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    async fn list(&self, _zone: &Name) -> Result<Listing, ProviderError> {
        self.refused.check()?;
        let listed = self.http.get("/control/rewrite/list").read::<Vec<Rewrite>>().await;
        let rewrites = Rewrites::from(self.refused.note(listed)?);
        let listing = rewrites.listing(TTL);
        *self.newest() = rewrites;
        Ok(listing)
    }

    async fn create(&self, _zone: &Name, new: &NewRecord) -> Result<Record, RecordError> {
        let rewrite = self.newest().rewrite(new);
        self.newest().may_add(&rewrite)?;
        self.add(&rewrite).await?;
        self.newest().added(&rewrite);
        Ok(new.made(rewrite.answer))
    }

    /// In place; where the server is too old for that (before 0.107.33) or has the rewrite twice, the new one is added before
    /// the old one is deleted.
    async fn update(&self, _zone: &Name, old: &Record, new: &NewRecord) -> Result<Record, RecordError> {
        let (target, update) = (Rewrite::of(old), self.newest().rewrite(new));
        self.newest().may_add(&update)?;
        let made = new.made(update.answer.clone());
        if !self.newest().is_twice(&target) {
            let body = serde_json::json!({ "target": target, "update": update });
            let reply = self.change(self.http.put("/control/rewrite/update").json(&body)).await?;
            match reply.status {
                StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {}
                StatusCode::BAD_REQUEST if reply.text() == "target rule not found" => {
                    return Err(RecordError::Gone);
                }
                _ => {
                    self.done(&reply)?;
                    self.newest().removed(&target);
                    self.newest().added(&update);
                    return Ok(made);
                }
            }
        }
        self.newest().may_remove(&target)?;
        self.add(&update).await?;
        self.newest().added(&update);
        self.remove(&target).await.map_err(|error| self.halfway(&error))?;
        self.newest().removed(&target);
        Ok(made)
    }

    async fn delete(&self, _zone: &Name, old: &Record) -> Result<(), RecordError> {
        let rewrite = Rewrite::of(old);
        self.newest().may_remove(&rewrite)?;
        self.remove(&rewrite).await?;
        self.newest().removed(&rewrite);
        Ok(())
    }
}

impl AdGuardApi {
    /// An error after the new rewrite was added: both may be there, so what stands must be read again.
    fn halfway(&self, error: &RecordError) -> RecordError {
        let server = self.http.server().to_owned();
        ProviderError::Unknown { server, reason: error.to_string() }.into()
    }
}
