//! The nodes that serve one store.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{NodeRole, ServerRole};

/// One node's view of all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterOutput {
    /// The id of the node that answers.
    pub node: String,
    /// Its name, for people.
    pub name: String,
    pub role: ServerRole,
    /// The leader, as far as this node knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<LeaderOutput>,
    /// The format in which the store is written: that of the oldest member.
    pub format: u32,
    pub members: Vec<MemberOutput>,
    /// The nodes that keep the store together, with `type = "raft"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeOutput>,
}

/// One of the nodes that keep the store together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeOutput {
    /// Drawn with its directory, in hexadecimal.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// Where the others reach it.
    pub address: String,
    pub role: NodeRole,
    /// Entries of the log it lacks; known while a node leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<u64>,
    /// Milliseconds since it last answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_contact_ms: Option<u64>,
    /// Another node that stands at its address now, so that this one cannot be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
    /// Of its program.
    pub version: String,
}

/// A node that is to come into the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeInput {
    /// Where it waits: `host:port`, or a host if the port is the usual one.
    pub address: String,
}

/// The current leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaderOutput {
    pub node: String,
    /// Missing if the node never told of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[schema(format = "uri")]
    pub url: String,
    pub epoch: u64,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberOutput {
    pub id: String,
    pub name: String,
    /// Where its API is for the others.
    #[schema(format = "uri")]
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
