//! [`ChangeSign`]: a value that differs after a change.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value that a server gives with a zone and that differs once the zone has changed: a serial, an `ETag`, a digest over
/// the content. Only equality means something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ChangeSign {
    /// The serial of the zone's SOA.
    Serial(u32),
    /// Anything else.
    Opaque(String),
}

impl ChangeSign {
    /// The number, if it is a serial.
    pub fn serial(&self) -> Option<u32> {
        match self {
            Self::Serial(serial) => Some(*serial),
            Self::Opaque(_) => None,
        }
    }
}

impl From<u32> for ChangeSign {
    fn from(serial: u32) -> Self {
        Self::Serial(serial)
    }
}

impl fmt::Display for ChangeSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serial(serial) => serial.fmt(f),
            Self::Opaque(text) => text.fmt(f),
        }
    }
}
