//! Resolves the dynamic targets of one source.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;
use netstead_model::Ident;
use netstead_sources::dynamic_target::{DynamicTarget, LookupSettings, TargetResolver, TargetResolvers};
use tokio::sync::{Mutex, watch};

use super::target_follower::{TargetFollower, TargetOwner};

/// Makes the resolver of each source.
#[derive(Debug)]
pub(super) struct SourceTargetResolvers(pub(super) Arc<TargetFollower>);

impl TargetResolvers for SourceTargetResolvers {
    fn of_source(&self, source: &Ident, lookup: &LookupSettings) -> Arc<dyn TargetResolver> {
        Arc::new(SourceTargetResolver::new(source.clone(), lookup.clone(), &self.0))
    }
}

/// Places that names of one source point at.
#[derive(Debug)]
struct SourceTargetResolver {
    source: Ident,
    finding: LookupSettings,
    targets: Arc<TargetFollower>,
    moves: Mutex<watch::Receiver<u64>>,
}

impl SourceTargetResolver {
    fn new(source: Ident, finding: LookupSettings, targets: &Arc<TargetFollower>) -> Self {
        let moves = Mutex::new(targets.subscribe());
        Self { source, finding, targets: Arc::clone(targets), moves }
    }
}

#[async_trait]
impl TargetResolver for SourceTargetResolver {
    async fn addresses_of(&self, place: &DynamicTarget) -> Result<Vec<IpAddr>, String> {
        let whose = TargetOwner::Source(self.source.clone(), place.clone());
        self.targets.addresses_of(&whose, &self.finding.of(place)).await
    }

    async fn changed(&self) {
        // The sender is gone only when the server ends.
        if self.moves.lock().await.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
