//! [`LoginSession`] and [`LoginLink`] as they are stored: credentials that stand for a token for a while.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{AccessError, digest::Digest};

/// The first byte of every stored value: which form the rest has.
const VERSION: u8 = b'1';

/// How long a session lives without being used.
pub const SESSION_IDLE: Duration = Duration::from_hours(12);
/// How long a session lives at most.
pub const SESSION_LONGEST: Duration = Duration::from_hours(7 * 24);
/// How long a login link can be used.
pub const LINK_LIFE: Duration = Duration::from_mins(1);

/// One login of the holder of a token, in a browser. It can do what the token can, and ends with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginSession {
    pub id: String,
    /// The id of its token.
    pub token: String,
    pub created: Timestamp,
    /// When it was last known to be in use.
    pub seen: Timestamp,
    /// The browser, in its own words.
    pub agent: Option<String>,
    pub(super) digest: Digest,
}

impl LoginSession {
    /// When it ends unless it is used before.
    pub fn until(&self) -> Timestamp {
        let after = |from: Timestamp, span: Duration| from.checked_add(span).unwrap_or(Timestamp::MAX);
        after(self.seen, SESSION_IDLE).min(after(self.created, SESSION_LONGEST))
    }
}

/// A link that makes one session, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginLink {
    pub id: String,
    /// The id of its token.
    pub token: String,
    pub until: Timestamp,
    pub(super) digest: Digest,
}

/// The stored form of a session: the version byte, then this as JSON. The id is in the key.
#[derive(Serialize, Deserialize)]
struct StoredSession {
    sha256: Digest,
    token: String,
    created: Timestamp,
    seen: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
}

/// The stored form of a link.
#[derive(Serialize, Deserialize)]
struct StoredLink {
    sha256: Digest,
    token: String,
    until: Timestamp,
}

impl LoginSession {
    pub(super) fn encode(&self) -> Result<Vec<u8>, AccessError> {
        let stored = StoredSession {
            sha256: self.digest,
            token: self.token.clone(),
            created: self.created,
            seen: self.seen,
            agent: self.agent.clone(),
        };
        encode(&self.id, &stored)
    }

    pub(super) fn decode(id: &str, bytes: &[u8]) -> Result<Self, AccessError> {
        let StoredSession { sha256, token, created, seen, agent } = decode(id, bytes)?;
        Ok(Self { id: id.to_owned(), token, created, seen, agent, digest: sha256 })
    }
}

impl LoginLink {
    pub(super) fn encode(&self) -> Result<Vec<u8>, AccessError> {
        encode(&self.id, &StoredLink { sha256: self.digest, token: self.token.clone(), until: self.until })
    }

    pub(super) fn decode(id: &str, bytes: &[u8]) -> Result<Self, AccessError> {
        let StoredLink { sha256, token, until } = decode(id, bytes)?;
        Ok(Self { id: id.to_owned(), token, until, digest: sha256 })
    }
}

fn encode(id: &str, stored: &impl Serialize) -> Result<Vec<u8>, AccessError> {
    let mut bytes = vec![VERSION];
    serde_json::to_writer(&mut bytes, stored).map_err(|error| damaged(id, &error))?;
    Ok(bytes)
}

fn decode<T: DeserializeOwned>(id: &str, bytes: &[u8]) -> Result<T, AccessError> {
    match bytes.split_first() {
        Some((&VERSION, json)) => serde_json::from_slice(json).map_err(|error| damaged(id, &error)),
        Some((other, _)) => Err(damaged(id, &format!("its form has the unknown version {other}"))),
        None => Err(damaged(id, &"it is empty")),
    }
}

fn damaged(id: &str, reason: &dyn std::fmt::Display) -> AccessError {
    AccessError::Damaged { id: id.to_owned(), reason: reason.to_string() }
}
