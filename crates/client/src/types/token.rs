//! Tokens.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{TokenRole, text_format};

/// A new token. Its secret is shown this once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenInput {
    /// The subject of the token: the owner of what is claimed with it.
    pub subject: String,
    pub role: TokenRole,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(inline, value_type = Vec<text_format::Identifier>)]
    pub vrfs: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(inline, value_type = Vec<text_format::Identifier>)]
    pub pools: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(inline, value_type = Vec<text_format::DnsName>)]
    pub zones: Vec<String>,
    /// How long it is valid; default `90d`, `0` for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "time-span")]
    pub expires_in: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenOutput {
    pub id: String,
    pub subject: String,
    pub role: TokenRole,
    #[serde(default)]
    #[schema(inline, value_type = Vec<text_format::Identifier>)]
    pub vrfs: Vec<String>,
    #[serde(default)]
    #[schema(inline, value_type = Vec<text_format::Identifier>)]
    pub pools: Vec<String>,
    #[serde(default)]
    #[schema(inline, value_type = Vec<text_format::DnsName>)]
    pub zones: Vec<String>,
    #[schema(value_type = String, format = "date-time")]
    pub created: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub expires: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Only in the answer to its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}
