//! Reads one TOML file, overlaid by the environment, and says everything that is wrong with it at once.
//!
//! ```text
//!  netstead.toml ──► tree: every value with its line and column ──┐
//!  NETSTEAD_… ─────► environment: variables laid over the tree ───┤
//!                                                                 ▼
//!  [dns.lan]          Kind "powerdns" ──► Section ──► Config (a table! struct)
//!  type = "powerdns"    keys, help,        one table,      │ Configured: identity, check
//!  url = "http://…"     defaults           its Problems    ▼
//!                                                        build ──► Arc<dyn DnsProvider>
//! ```
//!
//! A *kind* (of DNS provider, source, IPAM provider, pool backend) describes itself once, beside its code, with
//! [`table!`] and [`Kind`]. From that description come the reading, the hints for mistyped keys, `config check`, the JSON
//! Schema, the reference page and `netstead.toml`. Start reading at [`table!`], then [`Setting`], then [`Kind`].
//!
//! Reading opens no file, no socket and no secret, so a file that a client sends can be planned. Building does.

mod choice;
mod environment;
mod identity;
mod key;
mod kind;
mod problem;
mod reference;
mod schema;
mod secret;
mod section;
mod setting;
mod table;
mod text_index;
mod tree;
mod written;

pub use self::{
    environment::{Environment, NamedKeys, PlainKeys, VariableKey},
    identity::Identity,
    key::{InnerKey, KeyDefault, KeyInfo, Shape},
    kind::{BuildContext, Configured, Kind, KindConfig, Kinds, ReadTable, SettingsError},
    problem::{Problem, Problems, ValueOrigin, nearest},
    reference::{key_rows, toml_lines},
    schema::{object_schema, shape_schema},
    secret::{NOT_SET, Secret, SecretValue},
    section::Section,
    setting::{Bounds, Number, OneOrMore, Parsed, Paths, Setting, Tables, TextShape},
    table::{Settings, read_key},
    tree::{Entry, Node, Table, Value, parse},
    written::written_form,
};

/// Used by the macros of this crate.
#[doc(hidden)]
pub mod macros {
    pub use serde_json::{Map, Value as Json};
}
