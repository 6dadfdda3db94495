//! [`ClusterError`]: what can go wrong with the registry of nodes.

use netstead_store::StoreError;

/// One variant per thing the caller does next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// Only a newer program understands what is stored.
    #[error(
        "this store has format {stored}, and this program ({version}) understands formats up to {highest}: \
         it is older than the rest of the cluster",
        version = env!("CARGO_PKG_VERSION")
    )]
    TooOld { stored: u32, highest: u32 },
    #[error("another node leads this store now")]
    NotLeading,
    #[error("there is no member `{id}`")]
    NoSuchMember { id: String },
    #[error("several members are called `{name}`: name one by its id")]
    Ambiguous { name: String },
    #[error("`{id}` leads, or is the node that was asked: stop it first, and ask another one")]
    InUse { id: String },
    #[error("the value of `{key}` cannot be understood: {reason}")]
    Damaged { key: String, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}
