//! Terraform's side: go-plugin's handshake, plugin protocol 6, values, schemas and diagnostics.
//!
//! Nothing in here knows Netstead. `resource.rs` has the traits behind which resources stand; `plugin.rs` has the methods of the
//! protocol on top of them; `server.rs` serves the socket; `messages.rs` has the bytes.

mod diagnostic;
mod ephemeral;
mod handshake;
mod kind;
mod messages;
mod msgpack;
mod plugin;
mod resource;
mod schema;
mod server;
mod value;

pub use self::{
    diagnostic::{Diagnostic, Step},
    ephemeral::{Ephemeral, Opened},
    handshake::{Handshake, HandshakeError},
    kind::Kind,
    plugin::Plugin,
    resource::{Change, Closing, DataSource, Failed, Function, Provider, Resource},
    schema::{Attribute, Check, Mode, Schema, sentence},
    server::serve,
    value::{Fields, Object, Refinement, Value},
};
