//! [`Reply`]: an answer, whose status the caller understands better than this crate.

use std::fmt;

use reqwest::{StatusCode, header::HeaderMap};
use serde::de::DeserializeOwned;

/// The most characters of an answer that an error shows.
const SHOWN: usize = 300;

/// An answer. One that is no success holds no secret of ours.
#[derive(Clone)]
pub struct Reply {
    pub status: StatusCode,
    pub body: Vec<u8>,
    /// The text after the status, of an answer that is no success: some servers say only there what is wrong.
    pub reason: Option<String>,
    pub(super) headers: HeaderMap,
}

impl Reply {
    /// A reply as a test needs it.
    pub fn new(status: StatusCode, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), reason: None, headers: HeaderMap::new() }
    }

    pub fn is_success(&self) -> bool {
        self.status.is_success()
    }

    /// A header of the answer, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// The body as text, short enough for an error.
    pub fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN).collect()
    }
}

/// Shows neither headers nor body: an answer may hold a session, or secrets of the server.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reply({}, {} bytes)", self.status, self.body.len())
    }
}
