//! The API of Pi-hole 6.
//!
//! An alias only counts after a restart of the resolver, for which it is away for a moment. So changes ask for none, and one
//! restart follows at the end of a write ([`V6::restart_if_needed`]).

mod session;

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use netstead_model::{ProviderError, RecordData};
use netstead_settings::SecretValue;
use netstead_wire::http::{Effect, Http, HttpError, Method, Reply, StatusCode, path};
use serde::Deserialize;

use self::session::Session;
use super::entries::{Entries, data, host, host_without, may_have};
use crate::dns::{
    per_record::{Listing, NewRecord, Record, RecordError},
    refused_login::RefusedLogin,
};

/// How often, and how long apart, a resolver that restarts is asked whether it is back.
const ASKS: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct V6 {
    http: Http,
    session: Session,
    /// The newest listing with what was written since. A write begins with a listing.
    newest: Mutex<Entries>,
    /// The server derives more from its hosts, which also needs a restart.
    hosts_restart: AtomicBool,
    /// A change that does not count yet.
    restart: AtomicBool,
    /// The server lets us restart it. Otherwise it does so by itself, at every change.
    may_restart: AtomicBool,
}

#[derive(Deserialize)]
struct ConfigAnswer {
    config: ConfigTree,
}

#[derive(Deserialize)]
struct ConfigTree {
    dns: DnsTree,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DnsTree {
    hosts: Vec<String>,
    cname_records: Vec<String>,
    #[serde(default)]
    hosts_local: bool,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    message: String,
    hint: Option<String>,
}

impl V6 {
    /// `key` names the server and the password: tables with the same share one session.
    pub(super) fn new(http: Http, password: Option<SecretValue>, key: String, refused: RefusedLogin) -> Self {
        let http = match &password {
            Some(password) => http.redacting(password),
            None => http,
        };
        Self {
            session: Session::new(http.clone(), password, key, refused),
            http,
            newest: Mutex::default(),
            hosts_restart: AtomicBool::new(false),
            restart: AtomicBool::new(false),
            may_restart: AtomicBool::new(true),
        }
    }

    pub(super) async fn list(&self, ttl: u32) -> Result<Listing, ProviderError> {
        // One that was missed: the write was ended before, or the server was away.
        self.restart_if_needed().await?;
        let reply = self.session.send(|http| http.get("/api/config/dns")).await?;
        if !reply.is_success() {
            return Err(self.odd(&reply));
        }
        let answer: ConfigAnswer =
            reply.json().map_err(|error| self.malformed(&format!("not its JSON: {error}")))?;
        let DnsTree { hosts, cname_records: aliases, hosts_local } = answer.config.dns;
        self.hosts_restart.store(hosts_local, Ordering::SeqCst);
        let entries = Entries { hosts, aliases };
        let listing = entries.listing(ttl);
        *self.newest() = entries;
        Ok(listing)
    }

    pub(super) async fn create(&self, new: &NewRecord) -> Result<(), RecordError> {
        match &new.data {
            RecordData::Cname(target) => {
                let entry = format!("{},{target}", new.name);
                self.put("cnameRecords", &entry).await?;
                self.newest().aliases.push(entry);
            }
            address => {
                let entry = format!("{address} {}", new.name);
                self.put("hosts", &entry).await?;
                self.newest().hosts.push(entry);
            }
        }
        Ok(())
    }

    /// Deletes every entry with this record. Other names in it stay.
    pub(super) async fn delete(&self, old: &Record) -> Result<(), RecordError> {
        let entries = self.newest().clone();
        if let RecordData::Cname(target) = &old.data {
            let is_it = |entry: &&String| {
                may_have(entry, &old.name)
                    && super::entries::alias(entry)
                        .is_some_and(|(names, to)| names == [old.name.clone()] && to == *target)
            };
            for entry in entries.aliases.iter().filter(is_it) {
                self.remove("cnameRecords", entry).await?;
                self.newest().aliases.retain(|other| other != entry);
            }
            return Ok(());
        }
        let is_it = |entry: &&String| {
            may_have(entry, &old.name)
                && host(entry)
                    .is_some_and(|(address, names)| data(address) == old.data && names.contains(&old.name))
        };
        for entry in entries.hosts.iter().filter(is_it) {
            if let Some(rest) = host_without(entry, &old.name) {
                self.put("hosts", &rest).await?;
                self.newest().hosts.push(rest);
            }
            self.remove("hosts", entry).await?;
            self.newest().hosts.retain(|other| other != entry);
        }
        Ok(())
    }

    /// Whether the session may change the configuration.
    pub(super) async fn may_write(&self) -> Result<(), ProviderError> {
        let sessions = self.session.send(|http| http.get("/api/auth/sessions")).await?;
        let sessions: serde_json::Value = sessions.json().unwrap_or_default();
        let is = |one: &serde_json::Value, key: &str| {
            one.get(key).and_then(serde_json::Value::as_bool) == Some(true)
        };
        let all = sessions.get("sessions").and_then(serde_json::Value::as_array);
        let app = all.is_some_and(|all| all.iter().any(|one| is(one, "current_session") && is(one, "app")));
        if !app {
            return Ok(());
        }
        let allowed = self.session.send(|http| http.get("/api/config/webserver/api/app_sudo")).await?;
        let allowed: serde_json::Value = allowed.json().unwrap_or_default();
        if allowed.pointer("/config/webserver/api/app_sudo").and_then(serde_json::Value::as_bool)
            == Some(false)
        {
            let reason =
                "an app password may only read; set `webserver.api.app_sudo` on the server".to_owned();
            return Err(ProviderError::Denied { server: self.http.server().to_owned(), reason });
        }
        Ok(())
    }

    /// Restarts the resolver if a change does not count yet, and waits until it is back.
    pub(super) async fn restart_if_needed(&self) -> Result<(), ProviderError> {
        if !self.restart.load(Ordering::SeqCst) {
            return Ok(());
        }
        // A restart that is lost is asked for again.
        let asked =
            self.session.send(|http| http.post("/api/action/restartdns").effect(Effect::Idempotent)).await;
        if let Err(ProviderError::Denied { server, reason }) = asked {
            // From now on the server restarts by itself, at every change.
            self.may_restart.store(false, Ordering::SeqCst);
            self.restart.store(false, Ordering::SeqCst);
            let reason =
                format!("{reason}: set `webserver.api.allow_destructive`, and restart it by hand this time");
            return Err(ProviderError::Denied { server, reason });
        }
        let reply = asked?;
        if !reply.is_success() {
            return Err(self.odd(&reply));
        }
        self.restart.store(false, Ordering::SeqCst);
        for _ in 0..ASKS {
            tokio::time::sleep(BETWEEN).await;
            if self.http.get("/api/info/login").send().await.is_ok() {
                break;
            }
        }
        Ok(())
    }

    pub(super) async fn log_out(&self) {
        self.session.log_out().await;
    }

    async fn put(&self, list: &str, entry: &str) -> Result<(), RecordError> {
        let reply = self.change(Method::PUT, list, entry).await?;
        if reply.is_success()
            || (reply.status == StatusCode::BAD_REQUEST && reason(&reply).contains("already present"))
        {
            return Ok(());
        }
        Err(self.refusal(&reply))
    }

    async fn remove(&self, list: &str, entry: &str) -> Result<(), RecordError> {
        let reply = self.change(Method::DELETE, list, entry).await?;
        if reply.is_success() || reply.status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(self.refusal(&reply))
    }

    /// An entry is there or not, however often that is asked for: a change whose answer is lost is sent again.
    async fn change(&self, method: Method, list: &str, entry: &str) -> Result<Reply, ProviderError> {
        let path = path(&["api", "config", "dns", list, entry]);
        let later = self.may_restart.load(Ordering::SeqCst);
        if later && (list != "hosts" || self.hosts_restart.load(Ordering::SeqCst)) {
            self.restart.store(true, Ordering::SeqCst);
        }
        let query: &[(&str, &str)] = if later { &[("restart", "false")] } else { &[] };
        self.session
            .send(|http| http.request(method.clone(), &path).query(query).effect(Effect::Idempotent))
            .await
    }

    fn refusal(&self, reply: &Reply) -> RecordError {
        if reply.status == StatusCode::BAD_REQUEST {
            return RecordError::Rejected { reason: reason(reply) };
        }
        self.odd(reply).into()
    }

    fn odd(&self, reply: &Reply) -> ProviderError {
        let (server, status) = (self.http.server().to_owned(), reply.status.as_u16());
        HttpError::Refused { server, status, reason: reason(reply) }.into()
    }

    fn malformed(&self, reason: &str) -> ProviderError {
        self.http.malformed(reason).into()
    }

    fn newest(&self) -> MutexGuard<'_, Entries> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sentence in an answer that is no success.
fn reason(reply: &Reply) -> String {
    match reply.json::<ErrorAnswer>() {
        Ok(ErrorAnswer { error: ErrorBody { message, hint: Some(hint) } }) => format!("{message}: {hint}"),
        Ok(ErrorAnswer { error: ErrorBody { message, hint: None } }) => message,
        Err(_) => reply.text(),
    }
}
