//! [`EngineSlot`]: holds the engine while this node leads.

use std::time::Duration;

use netstead_engine::Engine;
use tokio::sync::watch;

/// The engine, if this node leads at the moment. Clones are the same slot.
#[derive(Debug, Clone, Default)]
pub struct EngineSlot(watch::Sender<Option<Engine>>);

impl EngineSlot {
    pub fn install(&self, engine: Engine) {
        self.0.send_replace(Some(engine));
    }

    /// Empties the slot. Returns the engine that was in it.
    pub fn uninstall(&self) -> Option<Engine> {
        self.0.send_replace(None)
    }

    pub fn engine(&self) -> Option<Engine> {
        self.0.borrow().clone()
    }

    /// As [`EngineSlot::engine`], but waits up to `patience` for an engine that is starting.
    pub(crate) async fn await_engine(&self, patience: Duration) -> Option<Engine> {
        let mut place = self.0.subscribe();
        let there = async { place.wait_for(Option::is_some).await.ok().and_then(|engine| engine.clone()) };
        tokio::time::timeout(patience, there).await.ok()?
    }
}
