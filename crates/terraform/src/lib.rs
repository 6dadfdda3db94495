//! The Terraform provider `netstead`: pools, addresses and records as resources of Terraform and `OpenTofu`.
//!
//! ```text
//!  terraform ──► protocol: handshake, TLS, plugin protocol 6, values ──► resources ──┬─► client ─────► REST API
//!                                                                                     └─► providers ──► etcd (netaddr)
//! ```
//!
//! - [`protocol`] speaks with Terraform and knows nothing of Netstead. Start with `protocol/resource.rs`, the traits.
//! - [`resources`] has one file per resource, with its data source, and the list of them. Adding one is a file and a line there.
//! - [`session`] reads the provider's own configuration.
//! - [`docs`] writes the pages of the registry from the schemas.

pub mod docs;
pub mod protocol;
pub mod resources;
pub mod session;

use self::{protocol::Provider, session::Session};

/// Everything this provider serves.
pub fn provider() -> Provider<Session> {
    Provider {
        schema: session::schema(),
        validate: session::validate,
        configure: session::configure,
        close: |session| Box::pin(session.close()),
        resources: resources::all(),
        data_sources: resources::data_sources(),
        ephemerals: resources::ephemerals(),
        functions: resources::functions(),
    }
}
