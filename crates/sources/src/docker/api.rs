//! The few calls to Docker's API that are needed, each bounded in time and size.
//!
//! Paths carry no version: the daemon then answers as it does to its own newest client, and what is read here has been
//! in every version since 1.24. Every one is a GET, so a socket proxy may stand between.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http_body_util::Empty;
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use netstead_model::{self as model, CallObserver, Clock, Outcome};
use netstead_wire::read_body;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::connect::{Connection, Connector};

/// One call, from connecting to the last byte.
const PATIENCE: Duration = Duration::from_secs(20);
/// Largest answer that is read: some tens of thousands of containers.
const MOST_BYTES: usize = 64 << 20;
/// Connections that are kept for the next call.
const MOST_IDLE: usize = 4;

type Sender = SendRequest<Empty<Bytes>>;

/// Why a call came to nothing. Each is a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ApiError {
    #[error("{0}")]
    Unreachable(String),
    /// A socket proxy, or an authorisation plugin, stands between.
    #[error("GET {path} is not allowed (403): {hint}")]
    Forbidden { path: &'static str, hint: &'static str },
    #[error("GET {path} answers {status}: {message}")]
    Status { path: String, status: u16, message: String },
    #[error("GET {path} answers what cannot be read: {reason}")]
    Unreadable { path: String, reason: String },
}

/// A call, and what to allow in a socket proxy for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// The label of metrics.
    operation: &'static str,
    pub(super) path: &'static str,
    hint: &'static str,
}

pub(super) const CONTAINERS: Call =
    Call { operation: "containers", path: "/containers/json", hint: "allow CONTAINERS in the socket proxy" };
pub(super) const NETWORKS: Call = Call {
    operation: "networks",
    path: "/networks",
    hint: "allow NETWORKS in the socket proxy, or set `target` to something else than `auto`",
};
pub(super) const INFO: Call = Call {
    operation: "info",
    path: "/info",
    hint: "allow INFO in the socket proxy, or set `mode = \"standalone\"`",
};
pub(super) const SERVICES: Call = Call {
    operation: "services",
    path: "/services",
    hint: "allow SERVICES in the socket proxy, or set `mode = \"standalone\"`",
};
pub(super) const TASKS: Call = Call {
    operation: "tasks",
    path: "/tasks",
    hint: "allow TASKS in the socket proxy, or set `mode = \"standalone\"`",
};
pub(super) const EVENTS: Call =
    Call { operation: "events", path: "/events", hint: "allow EVENTS in the socket proxy" };

pub(super) const VERSION: Call =
    Call { operation: "version", path: "/version", hint: "allow VERSION in the socket proxy" };

/// Speaks to one Docker host.
#[derive(Debug)]
pub(super) struct Api {
    connector: Connector,
    idle: Mutex<Vec<Sender>>,
    observer: Arc<dyn CallObserver>,
    clock: Arc<dyn Clock>,
}

impl Api {
    pub(super) fn new(connector: Connector, observer: Arc<dyn CallObserver>, clock: Arc<dyn Clock>) -> Self {
        Self { connector, idle: Mutex::new(Vec::new()), observer, clock }
    }

    /// Makes a call and reads its answer. `query` begins with `?` or is empty.
    pub(super) async fn get<T: DeserializeOwned>(&self, call: Call, query: &str) -> Result<T, ApiError> {
        let path = format!("{}{query}", call.path);
        let bytes = self.observed(call.operation, self.bytes(&path, Some(call))).await?;
        decoded(call.path, &bytes)
    }

    /// One object, of any path.
    pub(super) async fn get_one<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        decoded(path, &self.observed("inspect", self.bytes(path, None)).await?)
    }

    async fn observed<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let begun = self.clock.monotonic();
        let answer = call.await;
        let outcome = match &answer {
            Ok(_) => Outcome::Answered,
            Err(ApiError::Forbidden { .. } | ApiError::Status { .. }) => Outcome::Refused,
            Err(_) => Outcome::Failed,
        };
        let took = self.clock.monotonic().saturating_sub(begun);
        self.observer.called(model::Call { operation, outcome, took });
        answer
    }

    async fn bytes(&self, path: &str, call: Option<Call>) -> Result<Vec<u8>, ApiError> {
        let late = |_| {
            let reason = format!("{} does not answer within {} s", self.connector.host, PATIENCE.as_secs());
            ApiError::Unreachable(reason)
        };
        timeout(PATIENCE, async {
            let (sender, response) = self.send(path).await?;
            let status = response.status();
            let body = read_body(response.into_body(), MOST_BYTES).await;
            let body = body.map_err(|error| unreadable(path, error.to_string()))?;
            self.return_to_pool(sender);
            checked(path, call, status, &body)?;
            Ok(body)
        })
        .await
        .map_err(late)?
    }

    /// Opens a stream of events; `query` begins with `?`.
    pub(super) async fn events(&self, query: &str) -> Result<Response<Incoming>, ApiError> {
        self.observed(EVENTS.operation, self.open_events(query)).await
    }

    async fn open_events(&self, query: &str) -> Result<Response<Incoming>, ApiError> {
        let path = format!("{}{query}", EVENTS.path);
        let late = |_| ApiError::Unreachable(format!("{} does not answer", self.connector.host));
        let (sender, response) = timeout(PATIENCE, self.send(&path)).await.map_err(late)??;
        // The answer never ends by itself, so the connection is not used again.
        drop(sender);
        if response.status() != StatusCode::OK {
            let status = response.status();
            let body = timeout(PATIENCE, read_body(response.into_body(), MOST_BYTES)).await.map_err(late)?;
            let body = body.map_err(|error| unreadable(&path, error.to_string()))?;
            checked(EVENTS.path, Some(EVENTS), status, &body)?;
            return Err(unreadable(EVENTS.path, format!("status {status}")));
        }
        Ok(response)
    }

    /// Sends a request over a connection that was kept, or else over a new one.
    async fn send(&self, path: &str) -> Result<(Sender, Response<Incoming>), ApiError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(mut sender) = idle
            && sender.ready().await.is_ok()
            && let Ok(response) = sender.send_request(request(path)?).await
        {
            return Ok((sender, response));
        }
        let Connection { stream, ssh } = self.connector.open().await.map_err(ApiError::Unreachable)?;
        let shaken = async {
            let (mut sender, running) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(running);
            let response = sender.send_request(request(path).map_err(io::Error::other)?).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((sender, response))
        };
        match (shaken.await, ssh) {
            (Ok(done), ssh) => {
                if let Some(ssh) = ssh {
                    ssh.reap();
                }
                Ok(done)
            }
            (Err(error), Some(ssh)) => {
                let words = ssh.last_words().await.unwrap_or_else(|| error.to_string());
                Err(ApiError::Unreachable(format!("{} cannot be reached: {words}", self.connector.host)))
            }
            (Err(error), None) => {
                Err(ApiError::Unreachable(format!("{} does not answer: {error}", self.connector.host)))
            }
        }
    }

    fn return_to_pool(&self, sender: Sender) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !sender.is_closed() && idle.len() < MOST_IDLE {
            idle.push(sender);
        }
    }
}

fn request(path: &str) -> Result<Request<Empty<Bytes>>, ApiError> {
    let request = Request::get(path).header("Host", "docker").header("User-Agent", "netstead");
    request.body(Empty::new()).map_err(|error| unreadable(path, error.to_string()))
}

/// Docker's text beside an error status.
#[derive(serde::Deserialize)]
struct ErrorBody {
    message: String,
}

fn checked(path: &str, call: Option<Call>, status: StatusCode, body: &[u8]) -> Result<(), ApiError> {
    if status.is_success() {
        return Ok(());
    }
    if let (StatusCode::FORBIDDEN, Some(Call { path, hint, .. })) = (status, call) {
        return Err(ApiError::Forbidden { path, hint });
    }
    let said = serde_json::from_slice::<ErrorBody>(body).map(|said| said.message);
    let said = said.unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned());
    let message: String = said.trim().chars().filter(|c| !c.is_control()).take(300).collect();
    Err(ApiError::Status { path: path.to_owned(), status: status.as_u16(), message })
}

fn decoded<T: DeserializeOwned>(path: &str, body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| unreadable(path, error.to_string()))
}

fn unreadable(path: &str, reason: String) -> ApiError {
    ApiError::Unreadable { path: path.to_owned(), reason }
}
