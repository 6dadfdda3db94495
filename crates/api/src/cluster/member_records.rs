//! Keys and values of the registry: the leader, the members, and the format of the store.

use jiff::Timestamp;
use netstead_store::Entry;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::ClusterError;

/// The highest format of the store that this program understands.
///
/// Format 2 brings: scopes of sources (`scopes` of a source, `scope` of a workload).
///
/// Format 3 brings: pools with a backend (`upstream` of a pool, `draw` of a waiting claim, `drawn` of a claim and of a resting
/// address, the event `given-back`).
pub const FORMAT: u32 = 3;
/// The first format that has pools with a backend.
pub const FORMAT_OF_BACKENDS: u32 = 3;
/// The format in which a store is written, as decimal text.
pub const FORMAT_KEY: &str = "meta/format";
/// The current leader.
pub const LEADER_KEY: &str = "cluster/leader";
/// `cluster/member/<node>`: one node.
pub const MEMBERS: &str = "cluster/member/";
/// Replaced whenever a member registers, is removed, or changes its format. The leader makes a commit of the format
/// conditional on it.
pub const ROLL_KEY: &str = "cluster/roll";

/// The first byte of every stored value: which form the rest has.
const VERSION: u8 = b'1';

/// Where the leader is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// The epoch it leads in.
    pub epoch: u64,
    /// Its id.
    pub node: String,
    /// Where its API is for the others.
    pub url: String,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Drawn once, never used by another node; it is in the key.
    #[serde(skip)]
    pub id: String,
    /// Its name, for people: that of its machine.
    pub name: String,
    /// Where its API is for the others.
    pub url: String,
    /// Of its program.
    pub version: String,
    /// The highest format that its program understands.
    pub format: u32,
    /// When it started.
    pub since: Timestamp,
    /// When it last told of itself.
    pub seen: Timestamp,
}

impl Leader {
    pub(super) fn encode(&self) -> Vec<u8> {
        encode(self)
    }
}

impl Member {
    pub(super) fn key(&self) -> Vec<u8> {
        format!("{MEMBERS}{}", self.id).into_bytes()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Whether it counts the same for the format.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (&self.id, self.format) == (&other.id, other.format)
    }
}

/// Any value that was not there before.
pub(super) fn roll() -> Vec<u8> {
    encode(&rand::random::<u64>())
}

pub(super) fn format_of(entry: &Entry) -> Result<u32, ClusterError> {
    parse_format(&entry.key, &entry.value)
}

pub(super) fn parse_format(key: &[u8], value: &[u8]) -> Result<u32, ClusterError> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| damaged(key, "it is no number"))
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    // Our own types have string keys and no failing serialiser.
    let _ = serde_json::to_writer(&mut bytes, value);
    bytes
}

pub(super) fn decode<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, ClusterError> {
    match value.split_first() {
        Some((&VERSION, json)) => {
            serde_json::from_slice(json).map_err(|error| damaged(key, &error.to_string()))
        }
        _ => Err(damaged(key, "its format is not known here")),
    }
}

fn damaged(key: &[u8], reason: &str) -> ClusterError {
    ClusterError::Damaged { key: String::from_utf8_lossy(key).into_owned(), reason: reason.to_owned() }
}
