//! phpIPAM's REST API (1.5 to 1.8), for the IPAM system `phpipam` and the pool backend `phpipam`.
//!
//! - `phpipam/api.rs`: requests with a token that is renewed. `phpipam/envelope.rs`: the form of every answer.
//! - `phpipam/rows.rs`: subnets and addresses, whatever form their values have.
//! - `phpipam/marks.rs`: our keys in a field that people use too.
//! - `phpipam/text.rs`: texts as phpIPAM gives them back.
//! - `phpipam/reader.rs`: subnets and addresses for an import.

mod api;
mod envelope;
mod error;
mod marks;
mod reader;
mod rows;
mod text;

use std::fmt;

use netstead_settings::{BuildContext, Identity, SecretValue, SettingsError, choice, table};
use netstead_wire::http::{Http, check_url};

pub use self::reader::PhpIpamReader;
pub(crate) use self::{
    api::Api,
    error::ApiError,
    marks::{KeyField, Mark, Marks},
    rows::{AddressRow, Subnet},
    text::{clean, cut},
};
use crate::{Secret, Tls};

choice! {
    /// The security of an app of phpIPAM.
    #[derive(Default)]
    pub enum Security {
        /// A user logs in through TLS and gets a token.
        #[default]
        SslToken = "ssl_token",
        /// The app's code, through TLS.
        SslCode = "ssl_code",
        /// As `ssl_token`, without TLS.
        None = "none",
        /// Every request is encrypted with the app's code. Refused, with the reason.
        Crypt = "crypt",
    }
}

table! {
    /// The keys by which phpIPAM is reached.
    pub struct Connection {
        /// of the web interface: `https://ipam.example.com`; with `/api` at its end or without
        url: String, required "\"https://ipam.example.com\"";
        /// the id of the app in Administration, API
        app: String, required "\"netstead\"";
        /// the app's security: `ssl_token` (SSL with User token), `ssl_code` (SSL with App code token) or `none`
        security: Security, default "ssl_token";
        /// a user of phpIPAM, for `ssl_token` and `none`
        user: Option<String>, unset;
        /// of that user, a secret
        password: Option<Secret>, unset;
        /// the app's code, for `ssl_code`, a secret
        code: Option<Secret>, unset;
        tls: Tls, all;
    }
}

impl Connection {
    /// An app of the security `none`.
    pub fn plain(url: impl Into<String>, app: &str, user: &str, password: Secret) -> Self {
        Self {
            url: url.into(),
            app: app.to_owned(),
            security: Security::None,
            user: Some(user.to_owned()),
            password: Some(password),
            code: None,
            tls: Tls::default(),
        }
    }

    /// An app with a code.
    pub fn with_code(url: impl Into<String>, app: &str, code: Secret) -> Self {
        Self {
            url: url.into(),
            app: app.to_owned(),
            security: Security::SslCode,
            user: None,
            password: None,
            code: Some(code),
            tls: Tls::default(),
        }
    }

    /// The address without the path of the API.
    fn root(&self) -> &str {
        let url = self.url.trim_end_matches('/');
        url.strip_suffix("/api").unwrap_or(url)
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity::default().and_url(self.root(), "")
    }

    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        check_url(self.root())?;
        if self.app.is_empty()
            || self.app.contains(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
        {
            return Err(SettingsError::new("app", format!("`{}` is no id of an app", self.app)));
        }
        match self.security {
            Security::Crypt => Err(SettingsError::new(
                "security",
                "`crypt` is not spoken: it encrypts requests alone, and phpIPAM answers in the clear; TLS protects both",
            )
            .hint("give the app `SSL with User token` and write `security = \"ssl_token\"`")),
            Security::SslCode if self.code.is_none() => {
                Err(SettingsError::new("code", "it is missing").hint("write `code = { file = \"/run/secrets/phpipam\" }`"))
            }
            Security::SslCode if self.user.is_some() || self.password.is_some() => {
                Err(SettingsError::new("user", "an app with a code takes no login").hint("leave out `user` and `password`"))
            }
            Security::SslCode => self.tls.check(),
            Security::SslToken | Security::None if self.code.is_some() => {
                let hint = "write `security = \"ssl_code\"`, or leave out `code`";
                Err(SettingsError::new("code", "only an app with `security = \"ssl_code\"` has one").hint(hint))
            }
            Security::SslToken | Security::None => {
                if self.user.as_ref().is_none_or(|user| user.is_empty() || user.contains(':')) {
                    return Err(SettingsError::new("user", "it is missing, or no user of phpIPAM")
                        .hint("write `user = \"netstead\"`"));
                }
                if self.password.is_none() {
                    return Err(SettingsError::new("password", "it is missing")
                        .hint("write `password = { file = \"/run/secrets/phpipam\" }`"));
                }
                self.tls.check()
            }
        }
    }

    /// Opens files and secrets; the server itself is asked later.
    pub(crate) fn open(&self, context: &BuildContext) -> Result<Api, SettingsError> {
        self.check()?;
        let http = Http::open(self.root(), &self.tls, context)?;
        let reveal = |key, secret: &Option<Secret>| match secret {
            Some(secret) => secret.reveal(context).map_err(|problem| SettingsError::new(key, problem)),
            None => Err(SettingsError::new(key, "it is missing")),
        };
        let way = if self.security == Security::SslCode {
            Way::Code(reveal("code", &self.code)?)
        } else {
            let password = reveal("password", &self.password)?;
            let user = self.user.as_deref().unwrap_or_default();
            Way::Login(Box::new(http.clone().basic_auth(user, &password)?), password)
        };
        Ok(Api::new(http, &self.app, way, context))
    }
}

/// The beginning of the description of an address that a pool backend claims.
pub(crate) const CLAIM_DESCRIPTION: &str = "claim `";

/// The way in.
pub(crate) enum Way {
    /// The app's code goes with every request.
    Code(SecretValue),
    /// Logs in with user and password, and gets a token.
    Login(Box<Http>, SecretValue),
}

/// Shows no secret.
impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Code(_) => "Code",
            Self::Login(..) => "Login",
        })
    }
}
