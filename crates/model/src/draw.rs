//! [`Draw`] and [`Drawn`]: claims whose address comes out of a pool backend.
//!
//! ```text
//!  Waiting { draw }  ──bound──►  Claim { drawn }  ──released──►  resting { drawn }  ──given back──►  nothing
//!     │                                                              │ sticky: the claim comes back
//!     └─ended──►  withdrawn  ──nothing found, or given back──►  nothing
//! ```

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Address, BackendErrorKind, Ident, Want, serde_arc};

/// Where a pool draws its addresses from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upstream {
    /// The name of the `[backend.NAME]` table.
    pub backend: Ident,
    /// The pool as the backend calls it.
    pub pool: String,
    /// Our owner id: the first part of every key. Kept from when the pool was made.
    pub owner: String,
    /// Owner ids of the installations behind the backend, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installations: Vec<String>,
}

/// A claim without an address that asks a backend for one, or asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "so has a request")]
pub struct Draw {
    /// The key at the backend. It never changes once it may have been asked with.
    #[serde(deserialize_with = "serde_arc::text")]
    pub key: Arc<str>,
    /// A request with this key may have reached the backend.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    #[serde(default, skip_serializing_if = "is_any")]
    pub want: Want,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The caller waits, so a backend without a free address does not end the claim.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// How many answers the ledger could not bind.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tries: u8,
    #[serde(default)]
    pub state: DrawState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<DrawFailure>,
}

/// The state of a [`Draw`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DrawState {
    #[default]
    Waiting,
    /// The claim ended. What the backend may hold for it is given back.
    Withdrawn,
    /// The backend's answer is an address that the ledger may not bind. The object is kept until a person decides.
    Stray { reference: String, address: Address, length: Option<u8> },
}

/// Why a claim has no address yet, as the backend said it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawFailure {
    pub kind: BackendErrorKind,
    pub message: String,
}

/// The backend's object behind a claim, or behind an address that rests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drawn {
    #[serde(deserialize_with = "serde_arc::text")]
    pub key: Arc<str>,
    /// The backend's name of the object.
    pub reference: String,
    /// A request to give it back may have reached the backend.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub giving: bool,
}

impl Draw {
    /// Whether the claim still wants an address.
    pub fn is_live(&self) -> bool {
        self.state == DrawState::Waiting
    }

    pub fn is_withdrawn(&self) -> bool {
        self.state == DrawState::Withdrawn
    }
}

fn is_any(want: &Want) -> bool {
    *want == Want::Any
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}
