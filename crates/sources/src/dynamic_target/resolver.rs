//! [`DynamicTarget`], and the trait through which a source resolves one.

use std::{fmt, net::IpAddr};

use async_trait::async_trait;

/// Where a moving target is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DynamicTarget {
    /// Wherever the world sees this network.
    Public,
    /// An interface of this machine.
    Interface(String),
}

impl fmt::Display for DynamicTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public => f.write_str("public"),
            Self::Interface(name) => write!(f, "interface:{name}"),
        }
    }
}

/// Follows places, and keeps their last good addresses through a restart.
#[async_trait]
pub trait TargetResolver: Send + Sync + fmt::Debug {
    /// The addresses of a place: the last good ones while it cannot be found, an error if there never were any. It is
    /// followed from now on. Bounded in time.
    async fn addresses_of(&self, place: &DynamicTarget) -> Result<Vec<IpAddr>, String>;

    /// Returns once a place that is followed has other addresses than before.
    async fn changed(&self);
}
