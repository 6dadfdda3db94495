//! The nodes that serve one store.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One node's view of all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterOutput {
    /// The id of the node that answers.
    pub node: String,
    /// What people call it.
    pub name: String,
    /// `leading` or `following`.
    pub role: String,
    /// Who leads, as far as is known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<LeaderOutput>,
    /// The format in which the store is written: that of the oldest member.
    pub format: u32,
    pub members: Vec<MemberOutput>,
}

/// Who leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaderOutput {
    pub node: String,
    /// Missing if the node never told of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub url: String,
    pub epoch: u64,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberOutput {
    pub id: String,
    pub name: String,
    /// Where its API is for the others.
    pub url: String,
    /// Of its program.
    pub version: String,
    /// The highest format that its program understands.
    pub format: u32,
    pub leads: bool,
    /// When it started.
    #[schema(value_type = String, format = "date-time")]
    pub since: Timestamp,
    /// When it last told of itself; it does so every minute.
    #[schema(value_type = String, format = "date-time")]
    pub seen: Timestamp,
}
