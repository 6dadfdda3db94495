//! Why the engine did not do what was asked.

use netstead_model::Ident;
use netstead_store::StoreError;

/// One variant per thing the caller does next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    #[error("there is no provider `{name}`")]
    NoSuchProvider { name: Ident },
    #[error("nothing is parked under `{hash}`; it may be done already, or was planned anew")]
    NoSuchPlan { hash: String },
    /// Its server did not say what it holds.
    #[error("`{provider}` could not be read: {reason}")]
    Unread { provider: Ident, reason: String },
    /// The request itself is wrong.
    #[error("{field}: {reason}")]
    Invalid { field: &'static str, reason: String },
    #[error("the engine is shutting down")]
    Closed,
    /// Another process leads this store: ask that one.
    #[error("another Netstead leads this store now")]
    Deposed,
    /// What stands in the store cannot be understood. A person must act.
    #[error("`{key}` in the store cannot be read: {reason}")]
    Damaged { key: String, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}
