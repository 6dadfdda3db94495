//! [`Session`]: the one session that Netstead has at a Pi-hole.
//!
//! The server has 16 sessions for everyone, browsers included, and keeps each for half an hour after its last use. So there is
//! never a second one: callers share it, one of them logs in, and it is given back at the end.

use std::fmt;

use netstead_model::ProviderError;
use netstead_settings::SecretValue;
use netstead_wire::http::{Effect, Http, HttpError, Reply, Request, StatusCode};
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::dns::refused_login::RefusedLogin;

/// The header of a session.
const HEADER: &str = "x-ftl-sid";

pub(super) struct Session {
    http: Http,
    password: Option<SecretValue>,
    refused: RefusedLogin,
    /// The id of the session, once there is one. The lock is held while one logs in.
    held: Mutex<Option<Ticket>>,
}

/// The id of a session; none on a server without a password.
#[derive(Clone, PartialEq, Eq)]
struct Ticket(Option<String>);

#[derive(Deserialize)]
struct Answer {
    session: Granted,
}

#[derive(Deserialize)]
struct Granted {
    valid: bool,
    sid: Option<String>,
}

impl Session {
    pub(super) fn new(http: Http, password: Option<SecretValue>, refused: RefusedLogin) -> Self {
        Self { http, password, refused, held: Mutex::default() }
    }

    /// Sends a request in the session. If the server has forgotten the session, a new one is made once.
    pub(super) async fn send<F>(&self, request: F) -> Result<Reply, ProviderError>
    where
        F: for<'h> Fn(&'h Http) -> Request<'h>,
    {
        let mut renewed = false;
        loop {
            let ticket = self.ticket().await?;
            let mut request = request(&self.http);
            if let Ticket(Some(id)) = &ticket {
                request = request.secret_header(HEADER, id);
            }
            match request.send().await {
                Err(HttpError::Denied { status: 401, .. }) if !renewed => {
                    self.forget(&ticket).await;
                    renewed = true;
                }
                outcome => return outcome.map_err(Into::into),
            }
        }
    }

    /// Gives the session back. The next request makes a new one.
    pub(super) async fn log_out(&self) {
        let Some(Ticket(Some(id))) = self.held.lock().await.take() else { return };
        let request = self.http.delete("/api/auth").secret_header(HEADER, &id).effect(Effect::Once);
        if let Err(error) = request.send().await {
            tracing::debug!(server = self.http.server(), %error, "The session was not given back; it ends by itself.");
        }
    }

    async fn forget(&self, ticket: &Ticket) {
        let mut held = self.held.lock().await;
        // Another caller may have a new one already.
        if held.as_ref() == Some(ticket) {
            *held = None;
        }
    }

    async fn ticket(&self) -> Result<Ticket, ProviderError> {
        let mut held = self.held.lock().await;
        if let Some(ticket) = &*held {
            return Ok(ticket.clone());
        }
        self.refused.check()?;
        let ticket = self.refused.note(self.log_in().await)?;
        *held = Some(ticket.clone());
        Ok(ticket)
    }

    async fn log_in(&self) -> Result<Ticket, ProviderError> {
        let password = self.password.as_ref().map_or("", SecretValue::expose);
        let body = serde_json::json!({ "password": password });
        let reply = match self.http.post("/api/auth").operation("login").json(&body).send().await {
            Ok(reply) => reply,
            Err(error @ HttpError::Busy { .. }) => {
                tracing::warn!(
                    server = self.http.server(),
                    "Pi-hole has no free session, or had too many logins. `webserver.api.max_sessions` is the limit."
                );
                return Err(error.into());
            }
            // Made and lost, it would stay for half an hour: no second one right after it.
            Err(HttpError::Unknown { server, reason }) => {
                self.refused
                    .pause(ProviderError::Unreachable { server: server.clone(), reason: reason.clone() });
                return Err(ProviderError::Unreachable { server, reason });
            }
            Err(error) => return Err(error.into()),
        };
        let server = self.http.server().to_owned();
        if reply.status == StatusCode::BAD_REQUEST {
            let reason =
                format!("{}; with a second factor only an app password works", super::reason(&reply));
            return Err(ProviderError::Denied { server, reason });
        }
        match reply.json::<Answer>() {
            Ok(Answer { session: Granted { valid: true, sid } }) if reply.is_success() => Ok(Ticket(sid)),
            Ok(_) => Err(ProviderError::Denied { server, reason: "the password is wrong".into() }),
            Err(error) => Err(self.http.malformed(format!("no session in its answer: {error}")).into()),
        }
    }
}

/// Shows neither password nor session.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("server", &self.http.server()).finish_non_exhaustive()
    }
}
