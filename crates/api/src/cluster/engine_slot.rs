//! The place of the engine: it is there while this node leads.

use std::time::Duration;

use netstead_engine::Engine;
use tokio::sync::watch;

/// What keeps names on this node, if anything does at the moment. Clones are the same place.
#[derive(Debug, Clone, Default)]
pub struct EngineSlot(watch::Sender<Option<Engine>>);

impl EngineSlot {
    pub fn install(&self, engine: Engine) {
        self.0.send_replace(Some(engine));
    }

    /// Returns what was there.
    pub fn uninstall(&self) -> Option<Engine> {
        self.0.send_replace(None)
    }

    pub fn engine(&self) -> Option<Engine> {
        self.0.borrow().clone()
    }

    /// As [`Stage::engine`]; one who is about to enter is waited for.
    pub(crate) async fn await_engine(&self, patience: Duration) -> Option<Engine> {
        let mut place = self.0.subscribe();
        let there = async { place.wait_for(Option::is_some).await.ok().and_then(|engine| engine.clone()) };
        tokio::time::timeout(patience, there).await.ok()?
    }
}
