//! The part of Terraform's plugin protocol 6 that is spoken here, field by field as the protocol numbers them.
//!
//! Written by hand, so that nothing is needed to build Netstead but Rust and a C compiler. A field that this provider never
//! reads is left out: prost skips it.

#![allow(clippy::trivially_copy_pass_by_ref, reason = "prost's derive writes its getters this way")]
#![allow(clippy::struct_excessive_bools, reason = "the protocol has them")]

use std::collections::HashMap;

use prost::{Message, Oneof};

/// A request or an answer without fields.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Nothing {}

#[derive(Clone, PartialEq, Message)]
pub struct DynamicValue {
    #[prost(bytes = "vec", tag = "1")]
    pub msgpack: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub json: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Diagnostic {
    /// 1 is an error, 2 a warning.
    #[prost(int32, tag = "1")]
    pub severity: i32,
    #[prost(string, tag = "2")]
    pub summary: String,
    #[prost(string, tag = "3")]
    pub detail: String,
    #[prost(message, optional, tag = "4")]
    pub attribute: Option<AttributePath>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AttributePath {
    #[prost(message, repeated, tag = "1")]
    pub steps: Vec<PathStep>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PathStep {
    #[prost(oneof = "Selector", tags = "1, 2, 3")]
    pub selector: Option<Selector>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Selector {
    #[prost(string, tag = "1")]
    Attribute(String),
    #[prost(string, tag = "2")]
    Key(String),
    #[prost(int64, tag = "3")]
    Index(i64),
}

#[derive(Clone, PartialEq, Message)]
pub struct RawState {
    #[prost(bytes = "vec", tag = "1")]
    pub json: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Schema {
    #[prost(int64, tag = "1")]
    pub version: i64,
    #[prost(message, optional, tag = "2")]
    pub block: Option<Block>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Block {
    #[prost(int64, tag = "1")]
    pub version: i64,
    #[prost(message, repeated, tag = "2")]
    pub attributes: Vec<Attribute>,
    #[prost(string, tag = "4")]
    pub description: String,
    /// 1 is Markdown.
    #[prost(int32, tag = "5")]
    pub description_kind: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub kind: Vec<u8>,
    #[prost(string, tag = "3")]
    pub description: String,
    #[prost(bool, tag = "4")]
    pub required: bool,
    #[prost(bool, tag = "5")]
    pub optional: bool,
    #[prost(bool, tag = "6")]
    pub computed: bool,
    #[prost(bool, tag = "7")]
    pub sensitive: bool,
    #[prost(int32, tag = "8")]
    pub description_kind: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct IdentitySchema {
    #[prost(int64, tag = "1")]
    pub version: i64,
    #[prost(message, repeated, tag = "2")]
    pub attributes: Vec<IdentityAttribute>,
}

#[derive(Clone, PartialEq, Message)]
pub struct IdentityAttribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub kind: Vec<u8>,
    #[prost(bool, tag = "3")]
    pub required_for_import: bool,
    #[prost(string, tag = "5")]
    pub description: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Identity {
    #[prost(message, optional, tag = "1")]
    pub data: Option<DynamicValue>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Capabilities {
    #[prost(bool, tag = "1")]
    pub plan_destroy: bool,
    #[prost(bool, tag = "2")]
    pub get_provider_schema_optional: bool,
    #[prost(bool, tag = "3")]
    pub move_resource_state: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Function {
    #[prost(message, repeated, tag = "1")]
    pub parameters: Vec<Parameter>,
    #[prost(message, optional, tag = "3")]
    pub returns: Option<Return>,
    #[prost(string, tag = "4")]
    pub summary: String,
    #[prost(string, tag = "5")]
    pub description: String,
    #[prost(int32, tag = "6")]
    pub description_kind: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Parameter {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub kind: Vec<u8>,
    #[prost(string, tag = "5")]
    pub description: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Return {
    #[prost(bytes = "vec", tag = "1")]
    pub kind: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MetadataAnswer {
    #[prost(message, optional, tag = "1")]
    pub capabilities: Option<Capabilities>,
    #[prost(message, repeated, tag = "3")]
    pub data_sources: Vec<TypeName>,
    #[prost(message, repeated, tag = "4")]
    pub resources: Vec<TypeName>,
    #[prost(message, repeated, tag = "5")]
    pub functions: Vec<TypeName>,
    #[prost(message, repeated, tag = "6")]
    pub ephemerals: Vec<TypeName>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TypeName {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct SchemaAnswer {
    #[prost(message, optional, tag = "1")]
    pub provider: Option<Schema>,
    #[prost(map = "string, message", tag = "2")]
    pub resources: HashMap<String, Schema>,
    #[prost(map = "string, message", tag = "3")]
    pub data_sources: HashMap<String, Schema>,
    #[prost(message, optional, tag = "6")]
    pub capabilities: Option<Capabilities>,
    #[prost(map = "string, message", tag = "7")]
    pub functions: HashMap<String, Function>,
    #[prost(map = "string, message", tag = "8")]
    pub ephemerals: HashMap<String, Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub struct IdentitySchemasAnswer {
    #[prost(map = "string, message", tag = "1")]
    pub schemas: HashMap<String, IdentitySchema>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValidateProviderRequest {
    #[prost(message, optional, tag = "1")]
    pub config: Option<DynamicValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValidateProviderAnswer {
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

/// Of a resource, of a data source and of an ephemeral resource.
#[derive(Clone, PartialEq, Message)]
pub struct ValidateRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub config: Option<DynamicValue>,
}

/// Also the answer to the configuration of the provider.
#[derive(Clone, PartialEq, Message)]
pub struct DiagnosticsAnswer {
    #[prost(message, repeated, tag = "1")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ConfigureRequest {
    #[prost(string, tag = "1")]
    pub terraform_version: String,
    #[prost(message, optional, tag = "2")]
    pub config: Option<DynamicValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpgradeRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
    #[prost(message, optional, tag = "3")]
    pub raw: Option<RawState>,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpgradeAnswer {
    #[prost(message, optional, tag = "1")]
    pub state: Option<DynamicValue>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, PartialEq, Message)]
pub struct UpgradeIdentityAnswer {
    #[prost(message, optional, tag = "1")]
    pub identity: Option<Identity>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub state: Option<DynamicValue>,
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadAnswer {
    #[prost(message, optional, tag = "1")]
    pub state: Option<DynamicValue>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
    #[prost(message, optional, tag = "5")]
    pub identity: Option<Identity>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PlanRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub prior: Option<DynamicValue>,
    #[prost(message, optional, tag = "3")]
    pub proposed: Option<DynamicValue>,
    #[prost(message, optional, tag = "4")]
    pub config: Option<DynamicValue>,
    #[prost(bytes = "vec", tag = "5")]
    pub private: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PlanAnswer {
    #[prost(message, optional, tag = "1")]
    pub planned: Option<DynamicValue>,
    #[prost(message, repeated, tag = "2")]
    pub requires_replace: Vec<AttributePath>,
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
    #[prost(message, repeated, tag = "4")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(message, optional, tag = "7")]
    pub identity: Option<Identity>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ApplyRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub prior: Option<DynamicValue>,
    #[prost(message, optional, tag = "3")]
    pub planned: Option<DynamicValue>,
    #[prost(message, optional, tag = "4")]
    pub config: Option<DynamicValue>,
    #[prost(bytes = "vec", tag = "5")]
    pub private: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ApplyAnswer {
    #[prost(message, optional, tag = "1")]
    pub state: Option<DynamicValue>,
    #[prost(bytes = "vec", tag = "2")]
    pub private: Vec<u8>,
    #[prost(message, repeated, tag = "3")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(message, optional, tag = "5")]
    pub identity: Option<Identity>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImportRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(string, tag = "2")]
    pub id: String,
    #[prost(message, optional, tag = "4")]
    pub identity: Option<Identity>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ImportAnswer {
    #[prost(message, repeated, tag = "1")]
    pub imported: Vec<Imported>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Imported {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub state: Option<DynamicValue>,
    #[prost(bytes = "vec", tag = "3")]
    pub private: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub identity: Option<Identity>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MoveRequest {
    #[prost(string, tag = "1")]
    pub source_provider: String,
    #[prost(string, tag = "2")]
    pub source_type: String,
    #[prost(message, optional, tag = "4")]
    pub source_state: Option<RawState>,
    #[prost(string, tag = "5")]
    pub target_type: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct MoveAnswer {
    #[prost(message, optional, tag = "1")]
    pub state: Option<DynamicValue>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadDataRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub config: Option<DynamicValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadDataAnswer {
    #[prost(message, optional, tag = "1")]
    pub state: Option<DynamicValue>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, PartialEq, Message)]
pub struct OpenEphemeralRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(message, optional, tag = "2")]
    pub config: Option<DynamicValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct OpenEphemeralAnswer {
    #[prost(message, repeated, tag = "1")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(message, optional, tag = "2")]
    pub renew_at: Option<Timestamp>,
    #[prost(message, optional, tag = "3")]
    pub result: Option<DynamicValue>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub private: Option<Vec<u8>>,
}

/// To renew an ephemeral resource, and to close it.
#[derive(Clone, PartialEq, Message)]
pub struct EphemeralRequest {
    #[prost(string, tag = "1")]
    pub type_name: String,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub private: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RenewEphemeralAnswer {
    #[prost(message, repeated, tag = "1")]
    pub diagnostics: Vec<Diagnostic>,
    #[prost(message, optional, tag = "2")]
    pub renew_at: Option<Timestamp>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub private: Option<Vec<u8>>,
}

/// Seconds and nanoseconds since 1970.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct FunctionsAnswer {
    #[prost(map = "string, message", tag = "1")]
    pub functions: HashMap<String, Function>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CallRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub arguments: Vec<DynamicValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CallAnswer {
    #[prost(message, optional, tag = "1")]
    pub result: Option<DynamicValue>,
    #[prost(message, optional, tag = "2")]
    pub error: Option<FunctionError>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FunctionError {
    #[prost(string, tag = "1")]
    pub text: String,
    #[prost(int64, optional, tag = "2")]
    pub argument: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct StopAnswer {
    #[prost(string, tag = "1")]
    pub error: String,
}

/// Of `grpc.health.v1`. 1 is "serving".
#[derive(Clone, Copy, PartialEq, Message)]
pub struct HealthAnswer {
    #[prost(int32, tag = "1")]
    pub status: i32,
}
