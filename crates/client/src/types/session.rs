//! Sessions: logins of browsers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{TokenRole, text_format};

/// A login of the holder of a token. It can do what the token can, and ends with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionOutput {
    pub id: String,
    /// The id of its token.
    pub token: String,
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
    /// When it was last known to be in use.
    #[schema(value_type = String, format = "date-time")]
    pub seen: Timestamp,
    /// When it ends unless it is used before.
    #[schema(value_type = String, format = "date-time")]
    pub until: Timestamp,
    /// The browser, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// It is the one in which this is asked.
    #[serde(default)]
    pub current: bool,
    /// Only in the answer to its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// A link that opens one session, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoginLinkOutput {
    /// The last part of `/login/…`.
    pub secret: String,
    /// Where people open the page, if the configuration says; else where the API is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "uri")]
    pub url: Option<String>,
    /// The server listens on loopback only, so that only its own machine reaches the page directly.
    #[serde(default)]
    pub loopback: bool,
    #[schema(value_type = String, format = "date-time")]
    pub expires: Timestamp,
}
