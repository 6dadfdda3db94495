//! The real router over a store in memory, asked through real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

mod addresses;
mod backend_claims;
mod bad_input;
mod bulk;
mod claims;
mod connections;
mod damage;
mod dns;
mod dns_server;
mod engine_events;
mod events;
mod external_dns;
mod forwarding;
mod health;
mod host_check;
mod ipam_approval;
mod openapi;
mod openapi_types;
mod pool_names;
mod pools;
mod probes;
mod races;
mod repeats;
mod roles;
mod scoped_routes;
mod scopes;
mod sessions;
mod shutdown;
mod store;
mod support;
mod tenants;
mod tls;
mod tokens;
mod usage;
mod waiting;
mod what_if;
