//! A token as it is stored.

use std::sync::Arc;

use jiff::Timestamp;
use netstead_model::{Key, Span};
use serde::{Deserialize, Serialize};

use super::{AccessError, Role, Scopes, digest::Digest};

/// The first byte of every stored value: which form the rest has.
const VERSION: u8 = b'1';

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    /// The subject of the token: the owner of what is claimed with it.
    pub subject: Arc<str>,
    pub role: Role,
    pub scopes: Scopes,
    pub created: Timestamp,
    pub expires: Option<Timestamp>,
    pub description: Option<String>,
    /// The token that `run` leaves in the user's state directory; a restore keeps it.
    pub local_admin: bool,
    pub(super) digest: Digest,
}

/// A token as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    pub subject: String,
    pub role: Role,
    pub scopes: Scopes,
    /// How long it is valid; for ever without one.
    pub lifetime: Option<Span>,
    pub description: Option<String>,
    pub local_admin: bool,
}

impl NewToken {
    /// A token without limits on where and how long it works.
    pub fn new(subject: impl Into<String>, role: Role) -> Self {
        Self {
            subject: subject.into(),
            role,
            scopes: Scopes::default(),
            lifetime: None,
            description: None,
            local_admin: false,
        }
    }

    /// Checks the subject by the rules of a key, since it is an owner's name; `netstead` is the name of the ledger itself.
    pub(super) fn check(&self) -> Result<(), AccessError> {
        let wrong = |field, reason: String| Err(AccessError::Invalid { field, reason });
        if let Err(error) = self.subject.parse::<Key>() {
            return wrong("subject", format!("it cannot be a name: {}", error.reason));
        }
        if self.subject == "netstead" {
            return wrong("subject", "`netstead` is what the ledger calls itself in events".into());
        }
        if self.description.as_ref().is_some_and(|text| text.chars().count() > 1000) {
            return wrong("description", "it is longer than 1000 characters".into());
        }
        Ok(())
    }
}

/// The stored form: the version byte, then this as JSON. The id is in the key.
#[derive(Serialize, Deserialize)]
struct Stored {
    sha256: Digest,
    subject: Arc<str>,
    role: Role,
    #[serde(default)]
    scopes: Scopes,
    created: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    local_admin: bool,
}

impl Token {
    pub(super) fn encode(&self) -> Result<Vec<u8>, AccessError> {
        let stored = Stored {
            sha256: self.digest,
            subject: Arc::clone(&self.subject),
            role: self.role,
            scopes: self.scopes.clone(),
            created: self.created,
            expires: self.expires,
            description: self.description.clone(),
            local_admin: self.local_admin,
        };
        let mut bytes = vec![VERSION];
        serde_json::to_writer(&mut bytes, &stored).map_err(|error| damaged(&self.id, &error))?;
        Ok(bytes)
    }

    pub(super) fn decode(id: &str, bytes: &[u8]) -> Result<Self, AccessError> {
        let json = match bytes.split_first() {
            Some((&VERSION, json)) => json,
            Some((other, _)) => {
                return Err(damaged(id, &format!("its form has the unknown version {other}")));
            }
            None => return Err(damaged(id, &"it is empty")),
        };
        let stored: Stored = serde_json::from_slice(json).map_err(|error| damaged(id, &error))?;
        Ok(Self {
            id: id.to_owned(),
            subject: stored.subject,
            role: stored.role,
            scopes: stored.scopes,
            created: stored.created,
            expires: stored.expires,
            description: stored.description,
            local_admin: stored.local_admin,
            digest: stored.sha256,
        })
    }
}

fn damaged(id: &str, reason: &dyn std::fmt::Display) -> AccessError {
    AccessError::Damaged { id: id.to_owned(), reason: reason.to_string() }
}
