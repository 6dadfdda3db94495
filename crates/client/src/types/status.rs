//! The status summary.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ClusterOutput, Degradation, PoolOutput, ProviderOutput, ServerState, SourceOutput};

/// The state of the server in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusOutput {
    pub version: String,
    pub state: ServerState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why the state is `degraded`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<Degradation>,
    pub store: String,
    pub ledger: String,
    pub seq: u64,
    pub epoch: u64,
    pub paused: bool,
    /// The node that answers, and the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterOutput>,
    #[schema(value_type = String, format = "date-time")]
    pub started: Timestamp,
    pub pools: Vec<PoolOutput>,
    /// Where names come from.
    #[serde(default)]
    pub sources: Vec<SourceOutput>,
    /// The DNS servers that are kept in line.
    #[serde(default)]
    pub providers: Vec<ProviderOutput>,
    /// The servers that pools draw from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<BackendOutput>,
    /// Where the nameserver of this node answers; empty if it does not.
    #[serde(default)]
    pub nameserver: Vec<String>,
    /// Parts of the store that were found to be damaged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<DamageOutput>,
    /// How the daily backups stand; missing where none are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupOutput>,
    /// Settings of this node that are allowed and probably not meant, one sentence each, with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How many workloads ask for a name that they do not get; `GET /workloads?problems=true` lists them.
    #[serde(default)]
    pub problems: u64,
    /// Changes that happen by themselves later, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Tasks for a person, one sentence each, with the command that helps.
    #[serde(default)]
    pub todo: Vec<String>,
}

/// A server that pools draw from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackendOutput {
    #[schema(format = "identifier")]
    pub name: String,
    /// It is paused: nothing is asked, and nothing is given back.
    pub paused: bool,
    /// The last error, while it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Pools that it does not let us describe or list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncompared: Vec<UncomparedPoolOutput>,
}

/// A pool that cannot be compared with its backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UncomparedPoolOutput {
    #[schema(format = "identifier")]
    pub pool: String,
    pub reason: String,
}

/// A part of the store that cannot be read in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DamageOutput {
    /// Name of the part: `events`, `pools and claims`, …
    pub part: String,
    /// The damaged key, or the last one before the damage.
    pub key: String,
    pub reason: String,
}

/// How the daily backups stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupOutput {
    /// When the newest one was written; missing if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub last: Option<Timestamp>,
    /// Since when none could be written, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub failing_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
