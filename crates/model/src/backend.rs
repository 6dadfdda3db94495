//! [`PoolBackend`]: another system that the addresses of a pool come from.

mod error;

use async_trait::async_trait;
use jiff::Timestamp;

pub use self::error::{BackendError, BackendErrorKind};
use crate::{Address, Cidr, Family, Pool, Range, Want};

/// How full a pool is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// All that can be handed out; for prefix pools, counted in addresses.
    pub size: u128,
    pub held: u128,
    pub resting: u128,
    pub reserved: u128,
    pub observed: u128,
    pub free: u128,
    /// Claims, as opposed to the addresses they hold.
    pub claims: u64,
    pub waiting: u64,
}

/// A pool with its counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolStatus {
    pub pool: Pool,
    pub usage: Usage,
}

/// A request for an address of a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendClaim {
    /// The pool as the backend calls it.
    pub pool: String,
    /// The key of the object. A backend that has an object under this key returns it instead of a new one.
    pub key: String,
    pub want: Want,
    /// The length of the prefix, in a prefix pool.
    pub length: Option<u8>,
    /// One line for people at the backend: the key and the owner of the claim.
    pub note: String,
}

/// An address that a backend holds for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendObject {
    /// The backend's own name of the object. Opaque: only the backend reads it.
    pub reference: String,
    pub key: String,
    /// The account at the backend that holds the object, where the backend has accounts.
    pub holder: Option<String>,
    pub address: Address,
    pub length: Option<u8>,
    /// When the object was made, where the backend knows.
    pub since: Option<Timestamp>,
}

/// A page of a list of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPage {
    pub objects: Vec<BackendObject>,
    /// Pass it to get the next page; `None` on the last one.
    pub next: Option<String>,
}

/// The result of giving an object back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenBack {
    Done,
    /// The backend has no such object any more. Nothing was touched.
    AlreadyGone,
}

/// A pool of a backend as the backend describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendPoolInfo {
    pub family: Family,
    pub network: Option<Cidr>,
    pub ranges: Vec<Range>,
    pub exclude: Vec<Range>,
    pub gateway: Option<Address>,
    pub use_reserved: bool,
    /// The length of a prefix when a claim names none.
    pub length: Option<u8>,
    pub size: u128,
    pub free: u128,
    /// Owner ids of the Netstead installations that the pool's addresses come through, the nearest first. Empty for a
    /// backend of another kind.
    pub installations: Vec<String>,
}

/// Another system that hands out addresses.
///
/// A key has one object per pool: asking again for a key returns its object. A backend that cannot promise this may have
/// several objects under one key; [`PoolBackend::look_up`] then returns all of them.
#[async_trait]
pub trait PoolBackend: Send + Sync + std::fmt::Debug {
    /// Makes an object, or returns the one that the key has.
    async fn claim(&self, claim: &BackendClaim) -> Result<BackendObject, BackendError>;

    /// Removes exactly this object, if it still carries the key in `object`. Another object of the same key stays.
    async fn release(&self, pool: &str, object: &BackendObject) -> Result<GivenBack, BackendError>;

    /// All objects of a key, the oldest first.
    async fn look_up(&self, pool: &str, key: &str) -> Result<Vec<BackendObject>, BackendError>;

    /// A page of the objects whose key begins with `prefix`, in a stable order.
    async fn list(&self, pool: &str, prefix: &str, after: Option<&str>) -> Result<ObjectPage, BackendError>;

    async fn describe(&self, pool: &str) -> Result<BackendPoolInfo, BackendError>;

    /// A text that differs when objects of the pool changed, cheaper than a list. `None`: the backend has none.
    async fn changed(&self, pool: &str) -> Result<Option<String>, BackendError>;
}
