//! [`Api`]: requests with a token, and answers in their envelope.

use std::{fmt, sync::Arc, time::Duration};

use netstead_model::ProviderError;
use netstead_settings::BuildContext;
use netstead_wire::http::{Effect, Http, HttpError, Method, Reply, path};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::{AddressRow, ApiError, KeyField, Subnet, Way, envelope::Envelope};
use crate::dns::refused_login::RefusedLogin;

/// The header of a token, and of an app's code.
const HEADER: &str = "token";
/// How long an address is blocked after too many refused logins.
const BLOCK: Duration = Duration::from_mins(5);
/// Lists of addresses that are asked for at a time.
const AT_ONCE: usize = 4;

/// One phpIPAM, through one app. It never logs out: a user has one token, which other programs may have, too.
pub(crate) struct Api {
    http: Http,
    app: String,
    way: Way,
    refused: RefusedLogin,
    /// The token, once there is one. The lock is held while one logs in.
    token: Mutex<Option<String>>,
}

impl Api {
    pub(super) fn new(http: Http, app: &str, way: Way, context: &BuildContext) -> Self {
        let secret = match &way {
            Way::Code(secret) | Way::Login(_, secret) => secret,
        };
        let http = http.redacting(secret);
        let refused = RefusedLogin::new(Arc::clone(&context.clock));
        Self { http, app: app.to_owned(), way, refused, token: Mutex::default() }
    }

    /// With another limit for one request.
    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.http = self.http.timeout(timeout);
        if let Way::Login(login, password) = self.way {
            self.way = Way::Login(Box::new(login.timeout(timeout)), password);
        }
        self
    }

    pub(crate) fn server(&self) -> &str {
        self.http.server()
    }

    pub(crate) async fn get(&self, parts: &[&str], query: &[(&str, &str)]) -> Result<Envelope, ApiError> {
        self.call(&Call { method: Method::GET, parts, query, body: None, effect: Effect::Read }).await
    }

    /// A change that may be sent again: a second one changes nothing more.
    pub(crate) async fn change(
        &self,
        method: Method,
        parts: &[&str],
        body: Option<&Map<String, Value>>,
    ) -> Result<Envelope, ApiError> {
        self.call(&Call { method, parts, query: &[], body, effect: Effect::Idempotent }).await
    }

    /// A change that is sent once.
    pub(crate) async fn post_once(
        &self,
        parts: &[&str],
        body: &Map<String, Value>,
    ) -> Result<Envelope, ApiError> {
        let body = Some(body);
        self.call(&Call { method: Method::POST, parts, query: &[], body, effect: Effect::Once }).await
    }

    async fn call(&self, call: &Call<'_>) -> Result<Envelope, ApiError> {
        let mut renewed = false;
        loop {
            let token = self.token().await?;
            match self.send(call, &token).await {
                Err(Denial::Token(_)) if !renewed && matches!(self.way, Way::Login(..)) => {
                    self.forget(&token).await;
                    renewed = true;
                }
                Err(Denial::Token(reason)) => {
                    let reads = call.effect == Effect::Read;
                    let reason = if reads {
                        reason
                    } else {
                        format!("{reason}; does the app `{}` have the permission Read / Write?", self.app)
                    };
                    let error = self.denied(reason);
                    // A wrong code is sent no more for a while; an app that may only read goes on reading.
                    if reads {
                        self.refused.pause(error.clone());
                    }
                    return Err(error.into());
                }
                Err(Denial::Error(error)) => return Err(error),
                Ok(envelope) => return Ok(envelope),
            }
        }
    }

    async fn send(&self, call: &Call<'_>, token: &str) -> Result<Envelope, Denial> {
        self.refused.check().map_err(ApiError::from)?;
        let mut parts = vec!["api", self.app.as_str()];
        parts.extend(call.parts);
        // phpIPAM's own paths end in `/`; without it some web servers redirect.
        let request = self.http.request(call.method.clone(), &format!("{}/", path(&parts))).query(call.query);
        let mut request = request.any_status().effect(call.effect).secret_header(HEADER, token);
        if let Some(body) = call.body {
            request = request.json(body);
        }
        let reply = request.send().await.map_err(|error| ApiError::from(ProviderError::from(error)))?;
        self.judge(&reply, call.effect)
    }

    fn judge(&self, reply: &Reply, effect: Effect) -> Result<Envelope, Denial> {
        let envelope = reply.json::<Envelope>().ok();
        let said = envelope.and_then(|envelope| Some((envelope.status(reply)?, envelope)));
        let Some((status, envelope)) = said else {
            return Err(Denial::Error(self.strange(reply, effect).into()));
        };
        let message = envelope.text();
        let server = || self.server().to_owned();
        match status {
            200..300 => Ok(envelope),
            401 | 403 => Err(Denial::Token(message)),
            500 if message.contains("blocked") => {
                self.refused.pause(self.denied(message));
                let (server, retry_after) = (server(), Some(BLOCK));
                Err(ApiError::from(ProviderError::Busy { server, retry_after }).into())
            }
            // Switched off, without TLS, or waiting too long for a lock: nothing was done.
            503 => {
                let reason = format!("{message}{}", self.advice(&message));
                Err(ApiError::from(ProviderError::Unreachable { server: server(), reason }).into())
            }
            code => Err(ApiError::Refused { code, message }.into()),
        }
    }

    fn advice(&self, message: &str) -> String {
        if message.starts_with("SSL connection") {
            return "; give an address with `https`, or allow `api_allow_unsafe` in its config.php"
                .to_owned();
        }
        if message.contains("disabled") {
            return format!(
                "; switch on the API in phpIPAM's settings, and give the app `{}` a permission",
                self.app
            );
        }
        if message.contains("enc_request") {
            return format!(
                "; the app `{}` has the security `crypt`: give it `SSL with User token`",
                self.app
            );
        }
        String::new()
    }

    /// An answer without an envelope: of a proxy, of PHP itself, or of another program.
    fn strange(&self, reply: &Reply, effect: Effect) -> ProviderError {
        let server = self.server().to_owned();
        let reason = format!("it answers {}: {}", reply.status, reply.text());
        match reply.status.as_u16() {
            429 | 503 => ProviderError::Busy { server, retry_after: None },
            500.. if effect == Effect::Read => ProviderError::Unreachable { server, reason },
            200..300 | 500.. if effect != Effect::Read => ProviderError::Unknown { server, reason },
            _ => ProviderError::from(HttpError::Refused {
                server,
                status: reply.status.as_u16(),
                reason: reply.text(),
            }),
        }
    }

    fn denied(&self, reason: String) -> ProviderError {
        ProviderError::Denied { server: self.server().to_owned(), reason }
    }

    pub(crate) fn malformed(&self, reason: &str) -> ProviderError {
        self.http.malformed(reason).into()
    }

    async fn forget(&self, token: &str) {
        let mut held = self.token.lock().await;
        // Another caller may have a new one already.
        if held.as_deref() == Some(token) {
            *held = None;
        }
    }

    async fn token(&self) -> Result<String, ApiError> {
        let login = match &self.way {
            Way::Code(code) => return Ok(code.expose().trim().to_owned()),
            Way::Login(login, _) => login,
        };
        let mut held = self.token.lock().await;
        if let Some(token) = &*held {
            return Ok(token.clone());
        }
        self.refused.check()?;
        let token = self.log_in(login).await?;
        *held = Some(token.clone());
        Ok(token)
    }

    /// A refusal by the wrong password is a status 500 like any other, so every refusal stops logins for a minute.
    async fn log_in(&self, login: &Http) -> Result<String, ApiError> {
        let at = format!("{}/", path(&["api", &self.app, "user"]));
        let request = login.post(&at).operation("login").any_status().effect(Effect::Once);
        // A login changes nothing that anyone would have to look for.
        let lost = |error: HttpError| match error {
            HttpError::Unknown { server, reason } => ProviderError::Unreachable { server, reason },
            other => other.into(),
        };
        let reply = request.send().await.map_err(lost)?;
        let envelope = match self.judge(&reply, Effect::Read) {
            Ok(envelope) => envelope,
            Err(Denial::Error(ApiError::Refused { code, message })) => {
                return Err(self
                    .refused
                    .remember(self.denied(format!("the login failed ({code}): {message}")))
                    .into());
            }
            Err(Denial::Token(message)) => return Err(self.refused.remember(self.denied(message)).into()),
            Err(Denial::Error(error)) => return Err(error),
        };
        let token = envelope.data.as_ref().and_then(|data| data.get("token")).and_then(Value::as_str);
        token
            .map(ToOwned::to_owned)
            .ok_or_else(|| self.malformed("no token in the answer to the login").into())
    }

    /// The rows of a list. phpIPAM answers an empty one with 404, or with a success that has no data.
    pub(crate) async fn list(
        &self,
        parts: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Vec<Map<String, Value>>, ApiError> {
        let none = |message: &str| message.starts_with("No ") || message.ends_with("not found");
        match self.get(parts, query).await {
            Ok(envelope) => {
                let nothing = envelope.data.is_none() && none(&envelope.text());
                if nothing {
                    return Ok(Vec::new());
                }
                let rows = envelope.rows();
                rows.ok_or_else(|| self.malformed(&format!("no list at {}", parts.join("/"))).into())
            }
            Err(ApiError::Refused { code: 404, message }) if none(&message) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The sections: id and name.
    pub(crate) async fn sections(&self) -> Result<Vec<(String, String)>, ApiError> {
        let rows = self.list(&["sections"], &[]).await?;
        let section = |row: Map<String, Value>| {
            let text = |name: &str| match row.get(name) {
                Some(Value::String(text)) => Some(super::text::clean(text)),
                Some(Value::Number(number)) => Some(number.to_string()),
                _ => None,
            };
            Some((text("id")?, text("name")?))
        };
        let sections: Option<Vec<_>> = rows.into_iter().map(section).collect();
        sections.ok_or_else(|| self.malformed("a section without id or name").into())
    }

    /// The subnets of a section, without folders.
    pub(crate) async fn subnets(&self, section: &str) -> Result<Vec<Subnet>, ApiError> {
        let rows = self.list(&["sections", section, "subnets"], &[]).await?;
        self.read_subnets(&rows)
    }

    /// Every subnet that is exactly this network.
    pub(crate) async fn subnets_of(&self, cidr: netstead_model::Cidr) -> Result<Vec<Subnet>, ApiError> {
        let (base, mask) = (cidr.network().to_string(), cidr.len().to_string());
        let rows = self.list(&["subnets", "cidr", &base, &mask], &[]).await?;
        let found = self.read_subnets(&rows)?;
        Ok(found.into_iter().filter(|subnet| subnet.cidr == cidr).collect())
    }

    /// A subnet with its gateway.
    pub(crate) async fn subnet(&self, id: &str) -> Result<Option<Subnet>, ApiError> {
        match self.get(&["subnets", id], &[]).await {
            Ok(envelope) => {
                let rows = envelope.rows().ok_or_else(|| self.malformed("no subnet in the answer"))?;
                Ok(self.read_subnets(&rows)?.into_iter().find(|subnet| subnet.id == id))
            }
            Err(ApiError::Refused { code: 400 | 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How full a subnet is.
    pub(crate) async fn usage(&self, subnet: &str) -> Result<Usage, ApiError> {
        let answer = self.get(&["subnets", subnet, "usage"], &[]).await?;
        let number = |name: &str| match answer.data.as_ref()?.get(name)? {
            Value::Number(number) => number.as_u64().map(u128::from),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        let used = number("used").ok_or_else(|| self.malformed("no `used` in the usage of a subnet"))?;
        Ok(Usage { used, most: number("maxhosts"), free: number("freehosts") })
    }

    fn read_subnets(&self, rows: &[Map<String, Value>]) -> Result<Vec<Subnet>, ApiError> {
        let read = rows.iter().filter_map(|row| Subnet::read(row).transpose());
        read.collect::<Result<_, _>>().map_err(|reason| self.malformed(&reason).into())
    }

    /// The addresses of a subnet.
    pub(crate) async fn addresses(
        &self,
        subnet: &str,
        query: &[(&str, &str)],
        key_field: &KeyField,
    ) -> Result<Vec<AddressRow>, ApiError> {
        let rows = self.list(&["subnets", subnet, "addresses"], query).await?;
        let rows = self.read_addresses(&rows, key_field)?;
        // Filters are hints: each row says which subnet it is of.
        Ok(rows.into_iter().filter(|row| row.subnet == subnet).collect())
    }

    async fn addresses_of(
        &self,
        subnet: Option<&Subnet>,
        key_field: &KeyField,
    ) -> Result<Vec<AddressRow>, ApiError> {
        match subnet {
            Some(subnet) => self.addresses(&subnet.id, &[], key_field).await,
            None => Ok(Vec::new()),
        }
    }

    /// The addresses of many subnets, a few requests at a time.
    pub(crate) async fn addresses_of_all(
        &self,
        subnets: &[Subnet],
        key_field: &KeyField,
    ) -> Result<Vec<AddressRow>, ApiError> {
        let mut all = Vec::new();
        for some in subnets.chunks(AT_ONCE) {
            let list = |number: usize| self.addresses_of(some.get(number), key_field);
            let (one, two, three, four) = tokio::join!(list(0), list(1), list(2), list(3));
            for rows in [one, two, three, four] {
                all.extend(rows?);
            }
        }
        Ok(all)
    }

    /// The objects of an address, one for each subnet that has it.
    pub(crate) async fn search(
        &self,
        address: netstead_model::Address,
        key_field: &KeyField,
    ) -> Result<Vec<AddressRow>, ApiError> {
        let rows = self.list(&["addresses", "search", &address.to_string()], &[]).await?;
        let rows = self.read_addresses(&rows, key_field)?;
        Ok(rows.into_iter().filter(|row| row.address == address).collect())
    }

    fn read_addresses(
        &self,
        rows: &[Map<String, Value>],
        key_field: &KeyField,
    ) -> Result<Vec<AddressRow>, ApiError> {
        let read = rows.iter().map(|row| AddressRow::read(row, key_field));
        read.collect::<Result<_, _>>().map_err(|reason| self.malformed(&reason).into())
    }
}

/// Shows neither token nor secret.
impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("server", &self.server()).field("app", &self.app).finish_non_exhaustive()
    }
}

/// How many addresses of a subnet are taken, there at all, and free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) used: u128,
    pub(crate) most: Option<u128>,
    pub(crate) free: Option<u128>,
}

/// One request.
struct Call<'a> {
    method: Method,
    parts: &'a [&'a str],
    query: &'a [(&'a str, &'a str)],
    body: Option<&'a Map<String, Value>>,
    effect: Effect,
}

/// Why a request was not carried out.
enum Denial {
    /// The token, the code or the permission of the app is not enough.
    Token(String),
    Error(ApiError),
}

impl From<ApiError> for Denial {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}
