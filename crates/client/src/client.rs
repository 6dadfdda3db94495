//! One method per call of the API.

mod addresses_and_events;
mod admin;
mod adopt_and_undo;
mod claims;
mod plans_and_records;
mod pools;

pub use self::admin::{CheckOutput, CheckProblem};

pub use self::pools::DeletedPool;

use std::{fmt, time::Duration};

use reqwest::{Method, StatusCode, Url};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    ClientError, Options,
    transport::{Answer, Call, Repeat, Transport},
    types::{DoctorOutput, StatusOutput},
};

/// Lists that need no question to the store.
const OF_THE_LEDGER: [&str; 7] =
    ["status", "pools", "claims", "addresses", "reservations", "observations", "events"];

/// A connection to one server with one token. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    transport: Transport,
}

/// The effect of a PUT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Created,
    /// It was there: just so, or it is so now.
    Kept,
    /// It waits in the queue.
    Queued,
}

/// An answer with its version, which goes into `If-Match` of the change made from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tagged<T> {
    pub value: T,
    pub etag: Option<String>,
}

impl Client {
    /// `url` is where the server is. For a cluster it may be several URLs with commas between them: when one takes no
    /// connection, the next is asked.
    pub fn new(url: &str, token: Option<&str>, options: Options) -> Result<Self, ClientError> {
        Transport::new(url, token, options).map(|transport| Self { transport })
    }

    pub fn url(&self) -> &Url {
        self.transport.base()
    }

    /// The same server, asked for what it knows, however old, as with [`Options::stale`]. Its answers do not count for the
    /// [`Client::age`] of this client.
    #[must_use]
    pub fn with_stale_reads(&self) -> Self {
        Self { transport: self.transport.with_stale_reads() }
    }

    pub async fn status(&self) -> Result<StatusOutput, ClientError> {
        self.get(&["status"], &()).await
    }

    /// Whether a server answers there. Needs no token.
    pub async fn alive(&self) -> Result<(), ClientError> {
        self.transport.alive().await
    }

    /// How old the oldest answer so far was, of those that came without asking the store: with [`Options::stale`].
    pub fn age(&self) -> Option<Duration> {
        self.transport.age()
    }

    /// Whether it serves, and will go on to. Needs no token.
    pub async fn ready(&self) -> Result<(), ClientError> {
        self.transport.ready().await
    }

    /// Looks at everything, servers included, and says what is wrong.
    pub async fn doctor(&self) -> Result<DoctorOutput, ClientError> {
        self.get(&["doctor"], &()).await
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &impl Serialize,
    ) -> Result<T, ClientError> {
        Ok(self.get_tagged(path, query).await?.value)
    }

    async fn get_tagged<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &impl Serialize,
    ) -> Result<Answer<T>, ClientError> {
        let mut call = self.transport.call(Method::GET, path, Repeat::Read)?.query(query)?;
        if self.transport.options.stale && path.first().is_some_and(|first| OF_THE_LEDGER.contains(first)) {
            call = call.query(&serde_json::json!({"stale": "ok"}))?;
        }
        self.transport.json(call).await
    }

    fn put(&self, path: &[&str], body: &impl Serialize) -> Result<Call, ClientError> {
        self.transport.call(Method::PUT, path, Repeat::Idempotent)?.json(body)
    }

    fn post(&self, path: &[&str], repeat: Repeat, body: &impl Serialize) -> Result<Call, ClientError> {
        self.transport.call(Method::POST, path, repeat)?.json(body)
    }

    fn delete(&self, path: &[&str], repeat: Repeat, query: &impl Serialize) -> Result<Call, ClientError> {
        self.transport.call(Method::DELETE, path, repeat)?.query(query)
    }

    async fn send<T: DeserializeOwned>(&self, call: Call) -> Result<T, ClientError> {
        Ok(self.transport.json(call).await?.value)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url().as_str()).finish_non_exhaustive()
    }
}

impl From<StatusCode> for Change {
    fn from(status: StatusCode) -> Self {
        match status {
            StatusCode::CREATED => Self::Created,
            StatusCode::ACCEPTED => Self::Queued,
            _ => Self::Kept,
        }
    }
}
