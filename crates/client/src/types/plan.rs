//! Plans: what would change on a provider, and what would not.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ChangeAction, DriftKind, Mode, ObjectPlanOutput, ParkedOutput, PassOutput, RecordType};

/// The newest plan of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    pub mode: Mode,
    /// Over the changes.
    pub hash: String,
    /// Its number; only grows.
    pub generation: u64,
    /// Changes that are made by themselves.
    pub changes: Vec<ChangeOutput>,
    /// Changes that a person must agree to, with their hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<ParkedOutput>,
    #[serde(default)]
    pub parked_changes: Vec<ChangeOutput>,
    /// Names where a foreign value is in the way.
    #[serde(default)]
    pub blocked: Vec<BlockedOutput>,
    /// Records that the server cannot hold.
    #[serde(default)]
    pub refused: Vec<RefusedOutput>,
    /// Values that stay although no workload asks for them.
    #[serde(default)]
    pub kept: Vec<KeptOutput>,
    /// Values that another program changed.
    #[serde(default)]
    pub drift: Vec<DriftOutput>,
    /// The plan of an IPAM system: objects instead of names. The lists above are empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectPlanOutput>,
    /// Why the server cannot be read. The plan is then the one from before, or an empty one with an empty hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The pause, with its author, its reason and the command that ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// All of it, as people read it.
    pub text: String,
}

/// One change of one value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeOutput {
    #[schema(format = "dns-name")]
    pub zone: String,
    #[schema(format = "dns-name")]
    pub name: String,
    pub action: ChangeAction,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<RecordType>,
    pub value: String,
    pub why: String,
    /// Which guard holds it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
}

/// A record that is not written, because the server cannot hold it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedOutput {
    #[schema(format = "dns-name")]
    pub name: String,
    pub why: String,
}

/// A name where nothing is written, because of what stands there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockedOutput {
    #[schema(format = "dns-name")]
    pub name: String,
    /// `TYPE value`, each.
    pub wanted: Vec<String>,
    pub found: Vec<String>,
    pub why: String,
    /// The installation of Netstead whose marks stand there: `recover` takes over from one that was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// `adopt` takes over what stands there.
    pub adopt: bool,
    /// `share` puts ours beside it.
    pub share: bool,
    /// The workload that has the name, as `source/id`: a claim does not join it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Way to make that workload give the name up: a command, or a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_by: Option<String>,
}

/// A value that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeptOutput {
    #[schema(format = "dns-name")]
    pub name: String,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<RecordType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    pub why: String,
}

/// A value that is not as we left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DriftOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    #[schema(format = "dns-name")]
    pub name: String,
    #[serde(rename = "type")]
    pub kind: RecordType,
    pub value: String,
    pub drift: DriftKind,
}

/// Drift at a name that is to be ignored until it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IgnoreDriftInput {
    #[schema(format = "dns-name")]
    pub name: String,
    /// Only values of this type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<RecordType>,
    /// Only on this provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub provider: Option<String>,
    /// Why, for those who look at it later: 1 to 1000 characters.
    pub reason: String,
}

/// A value of others that is not reported as drift.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IgnoredDriftOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    #[schema(format = "dns-name")]
    pub name: String,
    #[serde(rename = "type")]
    pub kind: RecordType,
    pub value: String,
    pub drift: DriftKind,
    pub reason: String,
    pub by: String,
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
}

/// Which providers to bring in line now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyInput {
    /// Only this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub provider: Option<String>,
}

/// The result of a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApplyOutput {
    pub passes: Vec<PassOutput>,
}

/// Another configuration: what would it change?
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhatIfInput {
    /// The text of the file.
    #[schema(example = "[dns.lan]\ntype = \"builtin\"\ndomains = [\"home.example.com\"]\n")]
    pub config: String,
    /// The name of the file, for the places of problems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The changes of another configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfOutput {
    /// Why it would be refused. Then there are no plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ConfigProblem>,
    /// One for each provider it has.
    #[serde(default)]
    pub plans: Vec<PlanOutput>,
    /// Changes that the plans do not show, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigProblem {
    /// `pr.toml:3:1`, or the name of a variable.
    pub at: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
