//! Several requests in one commit.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ClaimFrom, ClaimOutput, Problem, ReleaseOutput};

/// Several requests in one commit, all or none; more than 64 are several commits, each repeatable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkInput {
    pub entries: Vec<BulkEntry>,
}

/// One entry of a bulk request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum BulkEntry {
    Claim(ClaimFrom),
    Release(TargetInput),
    Renew(BulkRenew),
    Move(BulkMove),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetInput {
    pub pool: String,
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRenew {
    pub target: TargetInput,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkMove {
    pub target: TargetInput,
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// The answers to a bulk request, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkOutput {
    pub results: Vec<BulkResult>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BulkResult {
    /// One claim, or one per pool of `each`.
    Claimed(Vec<ClaimOutput>),
    Released(ReleaseOutput),
    Renewed(ClaimOutput),
    Moved(ClaimOutput),
    /// The commit this entry belongs to was refused; nothing of that commit was done.
    Failed(Problem),
}
