//! Sends a message when a person must act: once per alert, with the command that helps.
//!
//! It has a task of its own that looks at the engine's status, so nothing waits for it. The alerts that were sent are in the
//! store, so that a restart repeats none.

mod alert;
mod message;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use netstead_api::DailyBackups;
use netstead_engine::Engine;
use netstead_ledger::{Ledger, Role};
use netstead_model::{Clock as _, SystemClock};
use netstead_store::{Commit, Store};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use self::{alert::Alert, message::Messenger};
use crate::config::{Config, NotifyConfig};

/// `engine/told`: the matters a person was told of.
const KEY: &str = "engine/told";
const FORMAT: u8 = b'1';
const TICK: Duration = Duration::from_secs(1);
/// A matter that comes back within this time is the same one.
const FORGET: Duration = Duration::from_mins(30);
/// How often it is tried to tell one.
const TRIES: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// The state of one alert.
#[derive(Debug, Clone, Default)]
struct AlertState {
    /// Monotonic times: first seen, last seen, and when telling is tried next.
    first: Duration,
    last: Duration,
    next: Duration,
    tries: u32,
    told: bool,
}

/// Watches, and tells.
#[derive(Debug)]
pub(crate) struct Notifier {
    /// None on a node that follows.
    engine: Option<Engine>,
    backups: Option<DailyBackups>,
    ledger: Ledger,
    store: Arc<dyn Store>,
    in_force: Arc<RwLock<Config>>,
    known: BTreeMap<String, AlertState>,
}

impl Notifier {
    /// For the node that leads: everything.
    pub(crate) fn leading(
        engine: &Engine,
        ledger: &Ledger,
        store: &Arc<dyn Store>,
        in_force: Arc<RwLock<Config>>,
        backups: &DailyBackups,
    ) -> Self {
        let (engine, backups) = (Some(engine.clone()), Some(backups.clone()));
        Self { engine, backups, ..Self::following(ledger, store, in_force) }
    }

    /// For a node whenever it follows: its own disk.
    pub(crate) fn following(ledger: &Ledger, store: &Arc<dyn Store>, in_force: Arc<RwLock<Config>>) -> Self {
        let (ledger, store) = (ledger.clone(), Arc::clone(store));
        Self { engine: None, backups: None, ledger, store, in_force, known: BTreeMap::new() }
    }

    /// Watches until `stop`. Without `[notify]` it only waits for one.
    pub(crate) async fn run(mut self, stop: &CancellationToken) {
        if self.engine.is_some() {
            self.load().await;
        }
        while stop.run_until_cancelled(sleep(TICK)).await.is_some() {
            // An alert counts from when there is a receiver.
            let config = self.in_force.read().unwrap_or_else(PoisonError::into_inner).notify.clone();
            let Some(config) = config else { continue };
            let matters = self.matters();
            let due = self.due_alerts(matters, SystemClock.monotonic());
            if due.is_empty() {
                continue;
            }
            let telling = self.send_alerts(&config, due);
            if stop.run_until_cancelled(telling).await.is_none() {
                return;
            }
        }
    }

    /// Everything there is now.
    fn matters(&self) -> Vec<Alert> {
        let health = self.ledger.health();
        match &self.engine {
            Some(engine) => {
                let mut matters = alert::current_alerts(&engine.status(), &engine.plans(), &health);
                matters.extend(alert::of_store(&*self.store, &health.damage));
                matters.extend(self.backups.as_ref().and_then(|backups| alert::of_backups(&backups.state())));
                matters
            }
            None if matches!(*self.ledger.role().borrow(), Role::Following) => {
                alert::of_store(&*self.store, &health.damage)
            }
            None => Vec::new(),
        }
    }

    /// Remembers what there is, forgets what has been over for long, and says what is to be told now.
    fn due_alerts(&mut self, matters: Vec<Alert>, now: Duration) -> Vec<Alert> {
        let mut due = Vec::new();
        for matter in matters {
            let known = self
                .known
                .entry(matter.id.clone())
                .or_insert_with(|| AlertState { first: now, ..AlertState::default() });
            if now.saturating_sub(known.last) > FORGET {
                known.first = now;
            }
            known.last = now;
            if !known.told && now.saturating_sub(known.first) >= matter.patience && now >= known.next {
                due.push(matter);
            }
        }
        self.known.retain(|_, known| now.saturating_sub(known.last) <= FORGET);
        due
    }

    async fn send_alerts(&mut self, config: &NotifyConfig, due: Vec<Alert>) {
        let messenger = Messenger::new(config);
        let mut any = false;
        for matter in due {
            let sent = match &messenger {
                Ok(messenger) => messenger.send(&matter).await,
                Err(error) => Err(error.clone()),
            };
            let Some(known) = self.known.get_mut(&matter.id) else { continue };
            known.tries += 1;
            match sent {
                Ok(()) => {
                    info!(matter = matter.id, "A person was told.");
                    (known.told, any) = (true, true);
                }
                Err(reason) if known.tries < TRIES => {
                    let pause = (FIRST_PAUSE * (1 << known.tries.min(10))).min(LONGEST_PAUSE);
                    known.next = SystemClock.monotonic() + pause;
                    warn!(matter = matter.id, reason, retry_in = ?pause, "Nobody could be told.");
                }
                Err(reason) => {
                    error!(
                        matter = matter.id,
                        reason,
                        text = matter.text,
                        "Nobody could be told, and it is given up."
                    );
                    (known.told, any) = (true, true);
                }
            }
        }
        if any {
            self.save().await;
        }
    }

    async fn load(&mut self) {
        let entry = self.store.get(KEY.as_bytes()).await.ok().flatten();
        let told: BTreeSet<String> = entry
            .and_then(|entry| match entry.value.split_first() {
                Some((&FORMAT, json)) => serde_json::from_slice(json).ok(),
                _ => None,
            })
            .unwrap_or_default();
        let now = SystemClock.monotonic();
        let known = AlertState { first: now, last: now, told: true, ..AlertState::default() };
        self.known.extend(told.into_iter().map(|id| (id, known.clone())));
    }

    async fn save(&self) {
        if self.engine.is_none() {
            return;
        }
        let told: BTreeSet<&String> =
            self.known.iter().filter(|(_, known)| known.told).map(|(id, _)| id).collect();
        let mut value = vec![FORMAT];
        let _ = serde_json::to_writer(&mut value, &told);
        if let Err(error) = self.store.commit(Commit::new().put(KEY, value)).await {
            warn!(%error, "What was told could not be stored; a restart may tell it again.");
        }
    }
}
