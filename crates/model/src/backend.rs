//! [`PoolBackend`]: where the addresses of a pool come from.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Claim, ClaimRef, ClaimRequest, Ident, Key, Pool};

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

/// What a release did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    Done(Arc<Claim>),
    /// The named claim ended earlier, or never was. Nothing was touched.
    AlreadyGone,
}

/// Why a backend did not do what was asked: one variant per thing the caller does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// Another claim has it. Ask for another address, or ask the holder.
    #[error("{message}")]
    Held { message: String },
    /// No address is left. Ask again later.
    #[error("{message}")]
    Exhausted { message: String },
    /// The request can never work as it stands.
    #[error("{message}")]
    Refused { message: String },
    #[error("there is no pool `{pool}`")]
    NoSuchPool { pool: Ident },
    /// Nothing was done. Ask again later.
    #[error("{message}")]
    Unavailable { message: String },
    /// It is not known whether it was done. Ask again with the same key.
    #[error("{message}")]
    Unknown { message: String },
}

/// One place that hands out addresses. A key holds at most one address per pool, and asking again returns it.
#[async_trait]
pub trait PoolBackend: Send + Sync + std::fmt::Debug {
    async fn claim(&self, request: ClaimRequest) -> Result<Claim, BackendError>;
    async fn release(&self, target: ClaimRef) -> Result<Released, BackendError>;
    async fn look_up(&self, pool: &Ident, key: &Key) -> Result<Option<Claim>, BackendError>;
    async fn list(&self, pool: &Ident) -> Result<Vec<Claim>, BackendError>;
    async fn describe(&self, pool: &Ident) -> Result<PoolStatus, BackendError>;
}
