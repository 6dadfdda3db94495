//! Requests to an etcd: to several endpoints, with TLS, users and timeouts.
//!
//! - `client`: [`EtcdClient`]. `options`: [`EtcdConnection`]. `messages`: the part of etcd's protocol that we speak.
//! - `error_text`: errors in words that a person can act on.

mod client;
mod error_text;
pub mod messages;
mod options;
mod stream;

pub use self::{
    client::{EtcdClient, EtcdOptionsError},
    error_text::{describe_error, describe_first_error},
    options::EtcdConnection,
    stream::Questions,
};

pub const KV_RANGE: &str = "/etcdserverpb.KV/Range";
pub const KV_TXN: &str = "/etcdserverpb.KV/Txn";
pub const WATCH: &str = "/etcdserverpb.Watch/Watch";
pub const LEASE_GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";

/// Whether the request cannot have reached etcd: there was no connection to send it on.
pub fn never_left(status: &tonic::Status) -> bool {
    let mut next = std::error::Error::source(status);
    while let Some(error) = next {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        next = error.source();
    }
    false
}
