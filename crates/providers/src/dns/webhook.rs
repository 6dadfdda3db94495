//! A webhook: a program of your own behind HTTP, which keeps records wherever it likes.
//!
//! The key `protocol` chooses the language:
//!
//! - `netstead`: batches with conditions, signed with a shared secret, safe to repeat (`webhook/signed.rs`,
//!   `webhook/batches.rs`). `docs/reference/webhook.md` describes it.
//! - `dnsweaver`: one record per call, as receivers made for dnsweaver expect it (`webhook/dnsweaver.rs`).

mod batches;
mod dnsweaver;
pub(crate) mod signed;

use std::sync::Arc;

use netstead_model::{Capabilities, DnsProvider, RecordType, Span};
use netstead_settings::{Configured, Identity, Kind, choice, table};
use netstead_wire::http::{Http, check_url};

pub use self::batches::Webhook;
use self::{dnsweaver::Dnsweaver, signed::SignedHttp};
use super::{DnsKind, per_record::PerRecord};
use crate::{BuildContext, Secret, SettingsError, Tls};

/// Shorter secrets can be guessed.
pub(crate) const SHORTEST_SECRET: usize = 16;

pub const KIND: DnsKind = Kind::new::<Config>("webhook", "a program of your own, over HTTP", capabilities);

choice! {
    /// The language of the receiver.
    pub enum Protocol {
        /// Netstead's own: signed batches.
        Netstead = "netstead",
        /// dnsweaver's: one record per call.
        Dnsweaver = "dnsweaver",
    }
}

table! {
    /// `[dns.NAME]` with `type = "webhook"`.
    pub struct Config {
        /// the address that the receiver's paths lie below
        url: String, required "\"https://hook.example.com/dns\"";
        /// `netstead`: signed batches; `dnsweaver`: one record per call, for receivers made for dnsweaver
        protocol: Protocol, default "netstead";
        /// signs every request of the protocol `netstead`, which needs it; a secret of at least 16 characters
        secret: Option<Secret>, unset;
        /// the name of a header that `auth_token` is sent in
        auth_header: Option<String>, unset;
        /// sent in the header `auth_header`, a secret
        auth_token: Option<Secret>, unset;
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
        match (self.protocol, &self.secret) {
            (Protocol::Netstead, None) => {
                let hint =
                    "write `secret = { file = \"/run/secrets/hook\" }`, and give the receiver the same";
                return Err(SettingsError::new("secret", "it is missing").hint(hint));
            }
            (Protocol::Dnsweaver, Some(_)) => {
                return wrong(
                    "secret",
                    "the protocol `dnsweaver` signs nothing; use `auth_header` and `auth_token`",
                );
            }
            _ => {}
        }
        if self.auth_header.is_some() != self.auth_token.is_some() {
            let key = if self.auth_header.is_some() { "auth_token" } else { "auth_header" };
            return wrong(key, "`auth_header` and `auth_token` are set together");
        }
        if self.timeout.is_zero() {
            return wrong("timeout", "no request can be answered in no time");
        }
        check_url(&self.url)?;
        self.tls.check()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn DnsProvider>, SettingsError> {
        self.open(context)
    }
}

impl Config {
    pub fn new(url: impl Into<String>, protocol: Protocol, secret: Option<Secret>) -> Self {
        Self {
            url: url.into(),
            protocol,
            secret,
            auth_header: None,
            auth_token: None,
            timeout: Span::from_secs(30),
            tls: Tls::default(),
        }
    }

    /// Opens files and secrets; the receiver itself is asked later.
    pub fn open(&self, context: &BuildContext) -> Result<Arc<dyn DnsProvider>, SettingsError> {
        self.check()?;
        let reveal = |key: &'static str, secret: &Secret| {
            secret.reveal(context).map_err(|problem| SettingsError::new(key, problem))
        };
        let mut http = Http::open(&self.url, &self.tls, context)?.timeout(self.timeout.into());
        if let (Some(name), Some(token)) = (&self.auth_header, &self.auth_token) {
            let token = reveal("auth_token", token)?;
            http = http.named_secret_header("auth_header", name, "auth_token", &token)?;
        }
        match &self.secret {
            None => Ok(Arc::new(PerRecord::new(Dnsweaver::new(http, context)))),
            Some(secret) => {
                let secret = reveal("secret", secret)?;
                if secret.expose().len() < SHORTEST_SECRET {
                    let problem = format!("it has fewer than {SHORTEST_SECRET} characters");
                    return Err(SettingsError::new("secret", problem));
                }
                let http = http.redacting(&secret);
                Ok(Arc::new(Webhook::new(SignedHttp::new(http, &secret, context))))
            }
        }
    }
}

/// Of the protocol `netstead`.
fn capabilities() -> Capabilities {
    Capabilities { fenced: false, ..Capabilities::all(RecordType::ALL) }
}
