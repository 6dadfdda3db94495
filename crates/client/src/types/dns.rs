//! Sources, providers, workloads, zones and records.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Mode, ProviderKind, RecordState, RecordType, RejectedObjectOutput, ScopeStanding, SourceKind, SourceView,
    WorkloadKind, text_format,
};

/// A place names come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceOutput {
    #[schema(format = "identifier")]
    pub name: String,
    #[serde(rename = "type")]
    pub kind: SourceKind,
    pub view: SourceView,
    /// Why it does not say all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When its newest report was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub begun: Option<Timestamp>,
    pub workloads: u64,
    /// So much vanished at once that it is not believed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspect: Option<String>,
    /// How many of its workloads are gone, and how long their names are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// It is no longer in the configuration; what it brought stays.
    #[serde(default)]
    pub detached: bool,
    /// The parts it looks at, each seen or not seen by itself; empty for a source without parts. `view` and `reason` of the
    /// source are those of the worst.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<ScopeOutput>,
}

/// A part of a source: a Kubernetes kind, a host, a cluster. Only its own scope can remove a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScopeOutput {
    /// Empty for workloads that no scope has shown yet.
    pub name: String,
    pub view: SourceView,
    /// Why it does not say all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When what it shows was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub begun: Option<Timestamp>,
    pub workloads: u64,
    /// Workloads that are no longer seen.
    pub absent: u64,
    pub standing: ScopeStanding,
    /// So much vanished at once that it is not believed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspect: Option<String>,
}

/// A DNS server or an IPAM system that is kept in line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderOutput {
    #[schema(format = "identifier")]
    pub name: String,
    /// The table it belongs to, if that has several servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(rename = "type")]
    pub kind: ProviderKind,
    pub server: String,
    pub mode: Mode,
    #[schema(inline, value_type = Vec<text_format::DnsName>)]
    pub zones: Vec<String>,
    /// Values on it that are ours.
    pub owned: u64,
    /// The number of its newest plan.
    pub generation: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<PassOutput>,
    /// Everything that should be there is there.
    pub in_sync: bool,
    /// Changes that are planned and not made.
    pub pending: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<ParkedOutput>,
    /// Names where a foreign value is in the way.
    pub blocked: u64,
    /// Names that the server will not have; each is tried again later.
    #[serde(default)]
    pub rejected: u64,
    /// The first of them, with what the server says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejections: Vec<RejectionOutput>,
    /// Objects that an IPAM system will not have, the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected_objects: Vec<RejectedObjectOutput>,
    /// Values that are not as we left them.
    pub drift: u64,
    /// Pauses on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paused: Vec<PauseOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The requests that it may still make, on a server that limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetOutput>,
    /// It is no longer in the configuration; its records stay.
    #[serde(default)]
    pub detached: bool,
    /// It is an IPAM system: it has no zones, and its values are objects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipam: bool,
}

/// Requests that were made and that are allowed, in a window of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BudgetOutput {
    /// Requests in the last window, of all tables with the same credentials.
    pub made: u64,
    pub limit: u64,
    pub window_seconds: u64,
    /// No request is made for so long: the limit is reached, or the server asked for a rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u64>,
}

/// A name that the server will not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RejectionOutput {
    #[schema(format = "dns-name")]
    pub zone: String,
    #[schema(format = "dns-name")]
    pub name: String,
    /// The server's own words.
    pub reason: String,
}

/// One look at a provider, with what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PassOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    #[schema(value_type = String, format = "date-time")]
    pub at: Timestamp,
    pub took_ms: u64,
    /// One sentence: what was done, or why not.
    pub outcome: String,
    /// It ended as it should.
    pub ok: bool,
    /// A pause holds changes back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// Changes that a guard holds back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ParkedOutput {
    pub changes: u64,
    /// The hash for `apply`.
    pub hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub since: Option<Timestamp>,
}

/// A pause of everything, of a provider or of one of its zones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PauseOutput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "dns-name")]
    pub zone: Option<String>,
    /// A pool backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub backend: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// One value at one name on one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    #[schema(format = "dns-name")]
    pub zone: String,
    #[schema(format = "dns-name")]
    pub name: String,
    #[serde(rename = "type")]
    pub kind: RecordType,
    pub ttl: u32,
    /// As in a zone file.
    pub value: String,
    pub state: RecordState,
    /// Why it is there, or shall be.
    #[serde(default)]
    pub reasons: Vec<String>,
}

/// A zone of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ZoneOutput {
    #[schema(format = "identifier")]
    pub provider: String,
    #[schema(format = "dns-name")]
    pub zone: String,
    /// Values that are known of it.
    pub records: u64,
    /// Those that are not as they should be.
    pub pending: u64,
    #[serde(default)]
    pub paused: bool,
}

/// Something that runs, and the names it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkloadOutput {
    #[schema(format = "identifier")]
    pub source: String,
    pub id: String,
    pub kind: WorkloadKind,
    pub name: String,
    /// `present`, or since when and why it is thought to be gone.
    pub state: String,
    #[serde(default)]
    #[schema(inline, value_type = Vec<text_format::Address>)]
    pub addresses: Vec<String>,
    /// Those that it asks for, and those that the domains of its addresses give it.
    #[serde(default)]
    #[schema(inline, value_type = Vec<text_format::DnsName>)]
    pub names: Vec<String>,
    /// Why something about it gave no name.
    #[serde(default)]
    pub why_not: Vec<String>,
    /// Names that it asks for and does not get, as of a moment ago: a part of `why_not`, and names that another workload has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The part of its source that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Where the platform has such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// When the platform made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub created: Option<Timestamp>,
    /// Facts of the platform about it, by name: `node`, `cluster`, `cpus`, `memory`, `disk`, `status`, `comments`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// The name that it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceOutput>,
}

/// A network interface of something that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InterfaceOutput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "address")]
    pub mac: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    #[serde(default)]
    #[schema(inline, value_type = Vec<text_format::Address>)]
    pub addresses: Vec<String>,
}

/// A record set by hand: all values of one type at one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordInput {
    /// As in a zone file.
    #[schema(example = json!(["10.0.3.9"]))]
    pub values: Vec<String>,
    /// Seconds; each provider's own if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
}

/// A record set by hand, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ManualOutput {
    #[schema(format = "dns-name")]
    pub name: String,
    #[serde(rename = "type")]
    pub kind: RecordType,
    pub values: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
    /// Why it may not come into being as it was set, one sentence each; only in the answer to setting it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Stops writing: to everything (`all`), to a provider, or to one of its zones. One of them must be said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseInput {
    /// Everything, which goes without `provider` and `zone`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "dns-name")]
    pub zone: Option<String>,
    /// A pool backend, which goes without `provider` and `zone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub backend: Option<String>,
    /// It ends by itself after this long.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    #[schema(example = "2h", format = "time-span")]
    pub span: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Ends a pause. Without a provider all of them end, and a restored ledger hands out addresses again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "dns-name")]
    pub zone: Option<String>,
    /// A pool backend, which goes without `provider` and `zone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "identifier")]
    pub backend: Option<String>,
}

/// Everything known about one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NameOutput {
    #[schema(format = "dns-name")]
    pub name: String,
    /// Why it is as it is, and why not otherwise, one sentence each.
    pub why: Vec<String>,
    pub records: Vec<RecordOutput>,
}
