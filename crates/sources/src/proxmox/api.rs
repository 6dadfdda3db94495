//! [`Api`]: the API of one cluster, through whichever of its nodes answers.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use netstead_model::Clock;
use netstead_settings::{BuildContext, Secret, SecretValue, SettingsError};
use netstead_wire::{
    Tls,
    http::{Effect, Http, HttpError, Reply, path},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// A ticket counts for two hours; it is renewed long before.
const TICKET_LIFE: Duration = Duration::from_hours(1);
/// After refused credentials nothing is asked for so long: each attempt costs the server three seconds.
const REFUSAL_PAUSE: Duration = Duration::from_mins(1);
/// The longest a single call may take, except those of a guest agent.
const CALL: Duration = Duration::from_secs(15);

/// Why a call gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ApiError {
    /// No node answers.
    #[error("{0}")]
    Unreachable(String),
    /// The request was sent, and no answer came.
    #[error("{0}")]
    Lost(String),
    /// A person must correct the credentials.
    #[error("{server} refuses these credentials: {reason}")]
    Denied { server: String, reason: String },
    /// A privilege is missing. The text has path and privilege.
    #[error("{server} says: {reason}")]
    Forbidden { server: String, reason: String },
    /// The node that has the guest does not answer the node that was asked.
    #[error("node `{node}` does not answer: {reason}")]
    NodeDown { node: String, reason: String },
    /// The guest is not on that node: it was deleted or moved.
    #[error("{reason}")]
    Gone { reason: String },
    /// The guest agent is not set up.
    #[error("no guest agent is configured")]
    AgentOff,
    /// The guest agent says nothing.
    #[error("{reason}")]
    AgentSilent { reason: String },
    /// This release does not have the call.
    #[error("{reason}")]
    NotImplemented { reason: String },
    /// Everything else.
    #[error("{server} answers {status}: {reason}")]
    Other { server: String, status: u16, reason: String },
}

/// The credentials of a source.
#[derive(Debug, Clone)]
pub(super) enum Credentials {
    Token { id: String, secret: Secret },
    Password { user: String, password: Secret },
}

/// The API of one cluster.
pub(super) struct Api {
    nodes: Vec<Http>,
    /// The node that answered last.
    current: AtomicUsize,
    login: Option<Login>,
    /// Until when nothing is asked because the credentials were refused, and the reason.
    refused: Mutex<Option<(Duration, ApiError)>>,
    clock: std::sync::Arc<dyn Clock>,
}

struct Login {
    user: String,
    password: SecretValue,
    ticket: tokio::sync::Mutex<Option<(String, Duration)>>,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    data: Value,
}

impl Api {
    pub(super) fn new(
        urls: &[String],
        tls: &Tls,
        credentials: &Credentials,
        context: &BuildContext,
    ) -> Result<Self, SettingsError> {
        let reveal = |key: &'static str, secret: &Secret| {
            secret.reveal(context).map_err(|problem| SettingsError::new(key, problem))
        };
        let mut login = None;
        let mut nodes = Vec::new();
        for url in urls {
            let http = Http::open(url.trim_end_matches('/'), tls, context)?.timeout(CALL);
            nodes.push(match credentials {
                Credentials::Token { id, secret } => {
                    let secret = reveal("token_secret", secret)?;
                    http.authorization(&format!("PVEAPIToken={id}="), "token_secret", &secret)?
                }
                Credentials::Password { password, .. } => http.redacting(&reveal("password", password)?),
            });
        }
        if let Credentials::Password { user, password } = credentials {
            let password = reveal("password", password)?;
            login = Some(Login { user: user.clone(), password, ticket: tokio::sync::Mutex::default() });
        }
        let clock = std::sync::Arc::clone(&context.clock);
        Ok(Self { nodes, current: AtomicUsize::new(0), login, refused: Mutex::default(), clock })
    }

    /// The address that is asked now, for people.
    pub(super) fn server(&self) -> String {
        let current = self.current.load(Ordering::Relaxed);
        self.nodes
            .get(current)
            .or(self.nodes.first())
            .map(|http| http.server().to_owned())
            .unwrap_or_default()
    }

    /// Reads `data` of an answer; `null` becomes the default.
    pub(super) async fn get<T: DeserializeOwned + Default>(&self, segments: &[&str]) -> Result<T, ApiError> {
        self.get_within(segments, CALL).await
    }

    /// As [`Api::get`], ending after `limit`.
    pub(super) async fn get_within<T: DeserializeOwned + Default>(
        &self,
        segments: &[&str],
        limit: Duration,
    ) -> Result<T, ApiError> {
        let value = self.value(segments, &[], limit).await?;
        if value.is_null() {
            return Ok(T::default());
        }
        let other = |error: serde_json::Error| ApiError::Other {
            server: self.server(),
            status: 200,
            reason: format!("{} has another form: {error}", path(segments)),
        };
        serde_json::from_value(value).map_err(other)
    }

    /// Whether no guest of the cluster has this number. Every user may ask, also about guests that it may not see.
    pub(super) async fn is_number_free(&self, vmid: u64) -> Result<bool, ApiError> {
        let number = vmid.to_string();
        match self.value(&["cluster", "nextid"], &[("vmid", &number)], CALL).await {
            Ok(_) => Ok(true),
            Err(ApiError::Other { status: 400, reason, .. }) if reason.contains("already exists") => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn value(
        &self,
        segments: &[&str],
        query: &[(&str, &str)],
        limit: Duration,
    ) -> Result<Value, ApiError> {
        if let Some((until, error)) = self.refused().clone()
            && self.clock.monotonic() < until
        {
            return Err(error);
        }
        let first = self.current.load(Ordering::Relaxed);
        let mut failed = None;
        for number in (0..self.nodes.len()).map(|offset| (first + offset) % self.nodes.len()) {
            let Some(http) = self.nodes.get(number) else { continue };
            match self.ask(http, segments, query, limit).await {
                // A proxy in front of this node says that the node does not answer.
                Ok(reply) if matches!(reply.status.as_u16(), 502..=504) => {
                    let error = self.judge(http, segments, &reply).err();
                    failed = failed.or(error);
                }
                Ok(reply) => {
                    self.current.store(number, Ordering::Relaxed);
                    return self.judge(http, segments, &reply);
                }
                // A guest or node that hangs hangs behind every node.
                Err(error @ ApiError::Lost(_)) if segments.first() == Some(&"nodes") => return Err(error),
                Err(error @ (ApiError::Unreachable(_) | ApiError::Lost(_))) => {
                    let _ = failed.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| ApiError::Unreachable("no address is configured".into())))
    }

    async fn ask(
        &self,
        http: &Http,
        segments: &[&str],
        query: &[(&str, &str)],
        limit: Duration,
    ) -> Result<Reply, ApiError> {
        let mut renewed = false;
        loop {
            let target = format!("/api2/json{}", path(segments));
            // Sent once: another node of the cluster is asked instead, and agents are asked again later.
            let mut request = http.get(&target).query(query);
            request = request.any_status().effect(Effect::Once).timeout(limit);
            if let Some(login) = &self.login {
                let ticket = self.ticket(http, login).await?;
                let encoded = path(&[&ticket]);
                let cookie = format!("PVEAuthCookie={}", encoded.trim_start_matches('/'));
                request = request.secret_header("cookie", &cookie);
            }
            let reply = request.send().await.map_err(|error| unreachable(&error))?;
            if let (401, Some(login), false) = (reply.status.as_u16(), &self.login, renewed) {
                *login.ticket.lock().await = None;
                renewed = true;
                continue;
            }
            return Ok(reply);
        }
    }

    /// The ticket of this login: the one that is kept, or a new one if there is none or it grows old.
    async fn ticket(&self, http: &Http, login: &Login) -> Result<String, ApiError> {
        let mut kept = login.ticket.lock().await;
        let now = self.clock.monotonic();
        if let Some((ticket, until)) = &*kept
            && now < *until
        {
            return Ok(ticket.clone());
        }
        let form = [("username", login.user.as_str()), ("password", login.password.expose())];
        let request = http.post("/api2/json/access/ticket").form(&form).any_status();
        let reply = request.send().await.map_err(|error| unreachable(&error))?;
        let data = self.judge(http, &["access", "ticket"], &reply)?;
        let needs_tfa = data.get("NeedTFA").and_then(super::lenient::number_of) == Some(1);
        let ticket = data.get("ticket").and_then(Value::as_str).filter(|_| !needs_tfa);
        let Some(ticket) = ticket else {
            let reason = "this user has a second factor: use an API token instead".to_owned();
            return Err(self.note_refusal(ApiError::Denied { server: http.server().to_owned(), reason }));
        };
        *kept = Some((ticket.to_owned(), now.saturating_add(TICKET_LIFE)));
        Ok(ticket.to_owned())
    }

    fn judge(&self, http: &Http, segments: &[&str], reply: &Reply) -> Result<Value, ApiError> {
        let status = reply.status.as_u16();
        if reply.is_success() {
            let envelope = reply.json::<Envelope>();
            let server = http.server().to_owned();
            return envelope.map(|envelope| envelope.data).map_err(|error| ApiError::Other {
                server,
                status,
                reason: format!("not its JSON: {error}; is it Proxmox VE that listens there?"),
            });
        }
        let body = reply.json::<Value>().unwrap_or_default();
        let message = body.get("message").and_then(Value::as_str).map(str::trim);
        let reason = message.filter(|text| !text.is_empty()).or(reply.reason.as_deref()).unwrap_or_default();
        // The parameters that it refuses, each with the reason.
        let fields = body.get("errors").and_then(Value::as_object).into_iter().flatten();
        let reason = fields.fold(reason.to_owned(), |reason, (field, why)| {
            format!("{reason} {field}: {}", why.as_str().unwrap_or_default().trim())
        });
        let error = classify(http.server(), segments, status, &reason);
        Err(if matches!(error, ApiError::Denied { .. }) { self.note_refusal(error) } else { error })
    }

    fn note_refusal(&self, error: ApiError) -> ApiError {
        let until = self.clock.monotonic().saturating_add(REFUSAL_PAUSE);
        *self.refused() = Some((until, error.clone()));
        error
    }

    fn refused(&self) -> std::sync::MutexGuard<'_, Option<(Duration, ApiError)>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The class of a refusal: its status first, its text second.
fn classify(server: &str, segments: &[&str], status: u16, reason: &str) -> ApiError {
    let (server, reason) = (server.to_owned(), reason.trim().to_owned());
    let node = || match segments {
        ["nodes", node, ..] => (*node).to_owned(),
        _ => server.clone(),
    };
    match status {
        401 => ApiError::Denied { server, reason },
        403 => ApiError::Forbidden { server, reason },
        501 => ApiError::NotImplemented { reason },
        595 | 596 | 599 => ApiError::NodeDown { node: node(), reason: format!("{status} {reason}") },
        500 if reason.contains("No QEMU guest agent configured") => ApiError::AgentOff,
        500 if reason.contains("guest agent is not running") || reason.contains("got timeout") => {
            ApiError::AgentSilent { reason }
        }
        500 if reason.contains("does not exist") || reason.contains("is not running") => {
            ApiError::Gone { reason }
        }
        502..=504 => ApiError::Unreachable(format!("{server} answers {status}: {reason}")),
        _ => ApiError::Other { server, status, reason },
    }
}

fn unreachable(error: &HttpError) -> ApiError {
    match error {
        HttpError::Unknown { server, reason } => {
            ApiError::Lost(format!("{server} does not answer: {reason}"))
        }
        other => ApiError::Unreachable(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart_by_status_first() {
        let agent = ["nodes", "pve1", "qemu", "101", "agent", "get-host-name"];
        let of = |status, reason| classify("https://pve1:8006", &agent, status, reason);
        assert_eq!(of(500, "No QEMU guest agent configured"), ApiError::AgentOff);
        let silent = |reason: &str| ApiError::AgentSilent { reason: reason.into() };
        assert_eq!(of(500, "QEMU guest agent is not running"), silent("QEMU guest agent is not running"));
        assert_eq!(
            of(500, "VM 101 qga command 'x' failed - got timeout"),
            silent("VM 101 qga command 'x' failed - got timeout")
        );
        assert_eq!(
            of(500, "VM 101 is not running"),
            ApiError::Gone { reason: "VM 101 is not running".into() }
        );
        let down = ApiError::NodeDown { node: "pve1".into(), reason: "595 No route to host".into() };
        assert_eq!(of(595, "No route to host"), down);
        assert!(matches!(
            of(403, "Permission check failed (/vms/101, VM.Audit)"),
            ApiError::Forbidden { .. }
        ));
    }
}
