//! Adopt, recover, clean and rollback.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    AdoptTool, ChangeOutput, PassOutput, RecordType, TakenObjectOutput, UndoneObjectOutput, text_format,
};

/// Choice of records to take over: those at a `name`, those marked by the tool in `from`, or an `object` of an IPAM system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdoptInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "dns-name")]
    pub name: Option<String>,
    /// Only records of this type at the name.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<RecordType>,
    /// `dnsweaver` or `external-dns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<AdoptTool>,
    /// Only marks of this instance of dnsweaver, or owner of external-dns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The options `--txt-prefix`, `--txt-suffix` and `--txt-wildcard-replacement` of external-dns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub txt_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub txt_suffix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub txt_wildcard: Option<String>,
    /// The key of encrypted marks, as external-dns has it in `--txt-encrypt-aes-key`: 32 bytes, as they are or in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(write_only)]
    pub txt_key: Option<String>,
    /// Only on this provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub provider: Option<String>,
    /// Only what is marked in this zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "dns-name")]
    pub zone: Option<String>,
    /// An object of an IPAM system instead of a name: one of others in the way of ours, or one whose fields others changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Of an object: leave the values of others as they are, and report them as drift no longer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// Only say what would be taken over.
    #[serde(default)]
    pub dry_run: bool,
}

/// The owner whose marks to take over after the store was lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecoverInput {
    /// The owner id that the marks carry.
    pub owner: String,
    /// Only on this provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub provider: Option<String>,
    /// Only say what would be taken over.
    #[serde(default)]
    pub dry_run: bool,
}

/// Values that were taken over, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakeOutput {
    pub taken: Vec<TakenOutput>,
    /// Objects of IPAM systems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<TakenObjectOutput>,
    /// Values that were looked at and stay foreign.
    pub left: Vec<LeftOutput>,
    /// Results of the passes; empty for a dry run.
    pub passes: Vec<PassOutput>,
    /// The plan after that, as people read it; only for a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Providers where it could not be done, and why.
    #[serde(default)]
    pub failed: Vec<FailedOutput>,
}

/// A value that is ours now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakenOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    #[schema(format = "dns-name")]
    pub name: String,
    #[serde(rename = "type")]
    pub kind: RecordType,
    pub value: String,
    /// The former owner, as far as marks say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A value that stays foreign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    #[schema(format = "dns-name")]
    pub name: String,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<RecordType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    pub why: String,
}

/// A provider where it could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    pub reason: String,
}

/// Names to remove: what a `source` brought that is no longer configured, what one `scope` of a source brought that is retired
/// or cannot be seen, or everything of ours on a `provider`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CleanInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub source: Option<String>,
    /// One part of the source, which may still be configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub provider: Option<String>,
    /// Leave the records where they are and forget that they are ours, on a provider that is no longer configured.
    #[serde(default)]
    pub forget: bool,
    /// Only say what would be removed.
    #[serde(default)]
    pub dry_run: bool,
    /// The `hash` of a dry run: do exactly that, or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
}

/// Which generation to go back to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackInput {
    /// A generation that was carried out, or 0 for what was before the first.
    pub to: u64,
    /// Of this provider; may be left out where only one has a past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub provider: Option<String>,
    /// Only say what would change.
    #[serde(default)]
    pub dry_run: bool,
    /// The `hash` of a dry run: do exactly that, or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
}

/// Changes that were taken back, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UndoOutput {
    /// Over all changes.
    pub hash: String,
    pub changes: Vec<UndoneOutput>,
    /// Changes of objects of IPAM systems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<UndoneObjectOutput>,
    /// Results of the passes; empty for a dry run.
    pub passes: Vec<PassOutput>,
    /// Providers to which nothing is written until they are resumed.
    #[schema(inline, value_type = Vec<text_format::Identifier>)]
    pub paused: Vec<String>,
    /// How many values are forgotten, or would be.
    #[serde(default)]
    pub forgotten: u64,
    /// Parts that could not be done, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// All changes, as people read them.
    pub text: String,
}

/// One change of one value on one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UndoneOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    #[serde(flatten)]
    pub change: ChangeOutput,
}
