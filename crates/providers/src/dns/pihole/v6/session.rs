//! [`Session`]: the one session that Netstead has at a Pi-hole.
//!
//! The server has 16 sessions for everyone, browsers included, and keeps each for half an hour after its last use. So there is
//! never a second one: all tables of one server share it, one of them logs in, and the last one gives it back.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, LazyLock, Mutex as StdMutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

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
    shared: Arc<Shared>,
    /// It counts as one that uses the shared session.
    in_use: AtomicBool,
}

/// The session of all tables with one server and password.
struct Shared {
    refused: RefusedLogin,
    /// The id of the session, once there is one. The lock is held while one logs in.
    held: Mutex<Option<Ticket>>,
    users: AtomicUsize,
}

/// Sessions by server and password digest. One ends with the last table that uses it.
static SHARED: LazyLock<StdMutex<BTreeMap<String, Weak<Shared>>>> = LazyLock::new(StdMutex::default);

impl Shared {
    fn of(key: String, refused: RefusedLogin) -> Arc<Self> {
        let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, shared| shared.strong_count() > 0);
        if let Some(shared) = all.get(&key).and_then(Weak::upgrade) {
            return shared;
        }
        let shared = Arc::new(Self { refused, held: Mutex::default(), users: AtomicUsize::new(0) });
        all.insert(key, Arc::downgrade(&shared));
        shared
    }
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
    /// `key` names the server and the password.
    pub(super) fn new(http: Http, password: Option<SecretValue>, key: String, refused: RefusedLogin) -> Self {
        Self { http, password, shared: Shared::of(key, refused), in_use: AtomicBool::new(false) }
    }

    /// Counts this table among those that use the session.
    fn begin_use(&self) {
        if !self.in_use.swap(true, Ordering::SeqCst) {
            self.shared.users.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// True if no table uses the session any more.
    fn end_use(&self) -> bool {
        self.in_use.swap(false, Ordering::SeqCst) && self.shared.users.fetch_sub(1, Ordering::SeqCst) == 1
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

    /// Gives the session back, unless another table uses it. The next request makes a new one.
    pub(super) async fn log_out(&self) {
        let mut held = self.shared.held.lock().await;
        if !self.end_use() {
            return;
        }
        let Some(Ticket(Some(id))) = held.take() else { return };
        drop(held);
        let request = self.http.delete("/api/auth").secret_header(HEADER, &id).effect(Effect::Once);
        if let Err(error) = request.send().await {
            tracing::debug!(server = self.http.server(), %error, "The session was not given back; it ends by itself.");
        }
    }

    async fn forget(&self, ticket: &Ticket) {
        let mut held = self.shared.held.lock().await;
        // Another caller may have a new one already.
        if held.as_ref() == Some(ticket) {
            *held = None;
        }
    }

    async fn ticket(&self) -> Result<Ticket, ProviderError> {
        let mut held = self.shared.held.lock().await;
        // Under the lock, so that the session is not given back at this moment.
        self.begin_use();
        if let Some(ticket) = &*held {
            return Ok(ticket.clone());
        }
        self.shared.refused.check()?;
        let ticket = self.shared.refused.note(self.log_in().await)?;
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
                self.shared
                    .refused
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

impl Drop for Session {
    fn drop(&mut self) {
        self.end_use();
    }
}

/// Shows neither password nor session.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("server", &self.http.server()).finish_non_exhaustive()
    }
}
