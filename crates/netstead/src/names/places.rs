//! The targets that move, for one source.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;
use netstead_model::Ident;
use netstead_sources::target::{Place, Places};
use tokio::sync::{Mutex, watch};

use super::targets::{Targets, Whose};
use crate::config::Finding;

/// Places that names of one source point at.
#[derive(Debug)]
pub(super) struct SourcePlaces {
    source: Ident,
    finding: Finding,
    targets: Arc<Targets>,
    moves: Mutex<watch::Receiver<u64>>,
}

impl SourcePlaces {
    pub(super) fn new(source: Ident, finding: Finding, targets: &Arc<Targets>) -> Self {
        let moves = Mutex::new(targets.moves());
        Self { source, finding, targets: Arc::clone(targets), moves }
    }
}

#[async_trait]
impl Places for SourcePlaces {
    async fn at(&self, place: &Place) -> Result<Vec<IpAddr>, String> {
        let whose = Whose::Source(self.source.clone(), place.clone());
        self.targets.of(&whose, &self.finding.of(place)).await
    }

    async fn moved(&self) {
        // Only when the server ends there is nobody left who could tell.
        if self.moves.lock().await.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
