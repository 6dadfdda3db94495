//! [`EngineError`]: why the engine did not do what was asked.

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
    #[error("there is no source `{name}`, and nothing is ours because of one")]
    NoSuchSource { name: Ident },
    /// It must be taken out of the configuration first.
    #[error("source `{name}` is in the configuration: take it out first, then clean up after it")]
    Attached { name: Ident },
    /// Its server cannot be reached without its credentials.
    #[error(
        "provider `{name}` is no longer in the configuration, so its server cannot be reached: \
         put it back to clean it, or forget what is ours there with `--forget`"
    )]
    Detached { name: Ident },
    #[error("generation {to} of `{provider}` is not kept: {kept}")]
    NoSuchGeneration { provider: Ident, to: u64, kept: String },
    /// Look again, and say so again.
    #[error("what would be done is no longer what was shown: look again")]
    NotAsShown,
    /// The server could not be read or written; nothing was done there.
    #[error("provider `{name}`: {reason}")]
    Server { name: Ident, reason: String },
    /// The request itself is wrong.
    #[error("{field}: {reason}")]
    Invalid { field: &'static str, reason: String },
    #[error("the engine is shutting down")]
    Closed,
    /// Another process leads this store: ask that one.
    #[error("another Netstead leads this store now")]
    Deposed,
    /// The stored value cannot be understood. A person must act.
    #[error("`{key}` in the store cannot be read: {reason}")]
    Damaged { key: String, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}
