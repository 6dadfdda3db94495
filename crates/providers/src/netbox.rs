//! NetBox's REST API (3.7 to 4.7), for the IPAM system `netbox` and the pool backend `netbox`.
//!
//! - `netbox/api.rs`: requests, lists page by page, bulk changes. `netbox/error.rs`: a refusal, in NetBox's own words.
//! - `netbox/key_field.rs`: the custom field that has our keys.
//! - `netbox/rows.rs`: values as NetBox's lists have them. `netbox/prefix_index.rs`: the longest prefix that holds an address.
//! - `netbox/reader.rs`: prefixes, ranges and addresses for an import.
//!
//! Two habits of NetBox shape everything here. It ignores a filter that it does not know and answers with all objects, so each
//! object of an answer is compared with what was asked for. And it changes many objects in one request or none.

mod api;
mod error;
mod key_field;
mod prefix_index;
mod reader;
mod rows;

use netstead_settings::{BuildContext, Identity, SettingsError, table};
use netstead_wire::http::{Http, check_url};

pub use self::reader::NetBoxReader;
pub(crate) use self::{
    api::{Api, Version, refused_members},
    error::ApiError,
    key_field::{KeyField, KeyFieldState, types_key},
    prefix_index::{Prefix, PrefixIndex},
    rows::{Row, address_and_length, choice, id_of, label_of, list_of, marks_of, name_of, text_of},
};
use crate::{Secret, Tls};

table! {
    /// The keys by which NetBox is reached.
    pub struct Connection {
        /// of the web interface: `https://netbox.example.com`; with `/api` at its end or without
        url: String, required "\"https://netbox.example.com\"";
        /// a token that may write, of version 1 or 2 (`nbt_…`), a secret
        token: Secret, required "{ file = \"/run/secrets/netbox\" }";
        /// the custom field that has our keys; it is made if the token may do that
        key_field: String, default "netstead_key";
        tls: Tls, all;
    }
}

impl Connection {
    /// Everything but address and token at its default.
    pub fn new(url: impl Into<String>, token: Secret) -> Self {
        Self { url: url.into(), token, key_field: "netstead_key".to_owned(), tls: Tls::default() }
    }

    /// The address without the path of the API.
    fn root(&self) -> &str {
        let url = self.url.trim_end_matches('/');
        url.strip_suffix("/api").unwrap_or(url)
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity::default().and_url(self.root(), "")
    }

    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        check_url(self.root())?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if self.key_field.is_empty() || self.key_field.len() > 50 || !self.key_field.chars().all(plain) {
            let problem = format!("`{}` is no name of a custom field", self.key_field);
            return Err(
                SettingsError::new("key_field", problem).hint("use lower case letters, digits and `_`")
            );
        }
        self.tls.check()
    }

    /// Opens files and secrets; the server itself is asked later.
    pub(crate) fn open(&self, context: &BuildContext) -> Result<Api, SettingsError> {
        self.check()?;
        let token = self.token.reveal(context).map_err(|problem| SettingsError::new("token", problem))?;
        let prefix = if token.expose().starts_with("nbt_") { "Bearer " } else { "Token " };
        let http = Http::open(self.root(), &self.tls, context)?.authorization(prefix, "token", &token)?;
        Ok(Api::new(http, KeyField::new(&self.key_field)))
    }
}
