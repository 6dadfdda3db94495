//! Calls of the API.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use netstead_model::ProviderError;
use netstead_settings::SecretValue;
use netstead_wire::http::{Effect, Http};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Config, TokenIn,
    wire::{Envelope, Session},
};
use crate::{BuildContext, SettingsError, dns::refused_login::RefusedLogin};

/// An answer of the API.
#[derive(Debug)]
pub(super) enum Answer {
    /// It did what it was asked.
    Done(Value),
    /// It did nothing, and says why.
    Refused(String),
}

pub(super) struct Client {
    http: Http,
    token: SecretValue,
    /// Where the token is sent; `Auto` until that is known.
    token_in: Mutex<TokenIn>,
    configured: TokenIn,
    refused: RefusedLogin,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("http", &self.http).finish_non_exhaustive()
    }
}

const SESSION: &str = "/api/user/session/get";

impl Client {
    pub(super) fn open(config: &Config, context: &BuildContext) -> Result<Self, SettingsError> {
        let wrong = |problem: String| SettingsError::new("token", problem);
        let token = config.token.reveal(context).map_err(wrong)?;
        if !token.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("it has characters that no token has".into()));
        }
        let http = Http::open(&config.url, &config.tls, context)?.redacting(&token);
        Ok(Self {
            http,
            token,
            token_in: Mutex::new(config.token_in),
            configured: config.token_in,
            refused: RefusedLogin::new(context.clock.clone()),
        })
    }

    pub(super) fn server(&self) -> String {
        self.http.server().to_owned()
    }

    pub(super) fn malformed(&self, reason: String) -> ProviderError {
        self.http.malformed(reason).into()
    }

    /// The JSON of an answer as `T`.
    pub(super) fn read<T: DeserializeOwned>(&self, body: &Value) -> Result<T, ProviderError> {
        T::deserialize(body).map_err(|error| self.malformed(format!("not its JSON: {error}")))
    }

    /// The session of the token, which also finds out where the token is sent.
    pub(super) async fn session(&self) -> Result<Session, ProviderError> {
        match self.call(SESSION, &[], Effect::Read).await? {
            Answer::Done(body) => self.read(&body),
            Answer::Refused(message) => Err(self.malformed(message)),
        }
    }

    /// Makes a call. A token that is not valid is an error, and is not sent again for a minute.
    pub(super) async fn call(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
        effect: Effect,
    ) -> Result<Answer, ProviderError> {
        self.refused.check()?;
        let token_in = match self.token_in() {
            TokenIn::Auto => self.find_token_in().await?,
            known => known,
        };
        if let Some(answer) = self.send(token_in, path, parameters, effect).await? {
            return Ok(answer);
        }
        // Perhaps the server has another version now.
        self.set_token_in(self.configured);
        Err(self.denied())
    }

    fn token_in(&self) -> TokenIn {
        *self.token_in.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_token_in(&self, token_in: TokenIn) {
        *self.token_in.lock().unwrap_or_else(PoisonError::into_inner) = token_in;
    }

    fn denied(&self) -> ProviderError {
        let reason = "the token is not valid, or was revoked".to_owned();
        self.refused.remember(ProviderError::Denied { server: self.server(), reason })
    }

    /// Tries the header first: a query is seen by every proxy on the way.
    async fn find_token_in(&self) -> Result<TokenIn, ProviderError> {
        for token_in in [TokenIn::Header, TokenIn::Query] {
            let answer = self.send(token_in, SESSION, &[], Effect::Read).await?;
            if matches!(answer, Some(Answer::Done(_))) {
                self.set_token_in(token_in);
                return Ok(token_in);
            }
        }
        Err(self.denied())
    }

    /// Sends a call. None if the token is not valid.
    async fn send(
        &self,
        token_in: TokenIn,
        path: &str,
        parameters: &[(&str, &str)],
        effect: Effect,
    ) -> Result<Option<Answer>, ProviderError> {
        let operation = path.rsplit('/').next().map_or("call", operation);
        let request = match token_in {
            // A form has no limit of length; old versions read the query only.
            TokenIn::Header | TokenIn::Auto => {
                let bearer = format!("Bearer {}", self.token.expose());
                self.http.post(path).form(parameters).secret_header("authorization", &bearer)
            }
            TokenIn::Query => self.http.get(path).query(parameters).query(&[("token", self.token.expose())]),
        };
        let reply = match request.effect(effect).operation(operation).try_read::<Value>().await {
            Ok(Ok(body)) => body,
            Ok(Err(reply)) => {
                return Err(self.malformed(format!("it answers {}: {}", reply.status, reply.text())));
            }
            Err(error) => return Err(self.refused.remember(error.into())),
        };
        let envelope: Envelope = self.read(&reply)?;
        let message = || self.http.malformed(&envelope.error_message);
        match envelope.status.as_str() {
            "ok" => Ok(Some(Answer::Done(reply))),
            "invalid-token" => Ok(None),
            // The text passes through the redactor: a server may echo what it was sent.
            "error" => match message() {
                netstead_wire::http::HttpError::Malformed { reason, .. } => Ok(Some(Answer::Refused(reason))),
                error => Err(error.into()),
            },
            other => Err(self.malformed(format!("its status is `{other}`"))),
        }
    }
}

fn operation(last: &str) -> &'static str {
    match last {
        "add" => "add",
        "update" => "update",
        "delete" => "delete",
        "create" => "create",
        "list" => "list",
        _ => "get",
    }
}
