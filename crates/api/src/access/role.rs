//! [`Role`]: what a token may do. Each role includes those before it.

use std::{fmt, str::FromStr};

use netstead_model::ParseError;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Looks.
    Read,
    /// Claims addresses, and touches its own claims only.
    Claim,
    /// Makes pools, and touches everybody's claims.
    Write,
    /// Makes tokens, backups and checks.
    Admin,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Read, Self::Claim, Self::Write, Self::Admin];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Claim => "claim",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Role {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| ParseError::new("role", text, None, "use `read`, `claim`, `write` or `admin`"))
    }
}
