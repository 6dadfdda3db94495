//! The status summary.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ClusterOutput, PoolOutput, ProviderOutput, SourceOutput};

/// What a person wants to know first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusOutput {
    pub version: String,
    /// `ready`, or what is wrong.
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
    /// Where the nameserver of this node answers; empty if it does not.
    #[serde(default)]
    pub nameserver: Vec<String>,
    /// What a person must do, one sentence each, with the command that helps.
    #[serde(default)]
    pub todo: Vec<String>,
}
