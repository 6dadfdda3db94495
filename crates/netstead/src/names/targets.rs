//! Targets that move: followed while the server runs, the last good one kept through a restart.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use netstead_model::{Clock as _, Ident, SystemClock};
use netstead_sources::target::{Interface, Locate, Public, Target};
use netstead_store::{Commit, Store};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::{Moving, MovingPlace};

/// `engine/target/<provider>`: the last good addresses.
const KEY: &str = "engine/target/";
/// The version of what stands there.
const FORMAT: u8 = b'1';
/// How long a start waits for an address that was never known.
const FIRST: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(500);

/// The moving targets of all providers.
#[derive(Debug)]
pub(super) struct Targets {
    store: Arc<dyn Store>,
    followed: Mutex<BTreeMap<Ident, Followed>>,
}

#[derive(Debug, Clone)]
struct Followed {
    moving: Moving,
    target: Arc<Target>,
    /// Monotonic time of the next look.
    due: Duration,
}

impl Targets {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, followed: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Ident, Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a provider's names point now, or why that is not known. It is followed from now on.
    pub(super) async fn of(&self, provider: &Ident, moving: &Moving) -> Result<Vec<IpAddr>, String> {
        let known = self.lock().get(provider).filter(|followed| followed.moving == *moving).cloned();
        let target = match known {
            Some(followed) => followed.target,
            None => self.follow_anew(provider, moving).await?,
        };
        let found = target.addresses();
        if found.is_empty() {
            return Err(target.error().unwrap_or_else(|| "it is not known yet".to_owned()));
        }
        Ok(found)
    }

    /// The last good addresses of a provider that is followed; none if it is not.
    pub(super) fn known(&self, provider: &Ident) -> Vec<IpAddr> {
        self.lock().get(provider).map(|followed| followed.target.addresses()).unwrap_or_default()
    }

    /// Providers that are no longer configured so are no longer followed.
    pub(super) fn keep(&self, wanted: impl Fn(&Ident) -> bool) {
        self.lock().retain(|provider, _| wanted(provider));
    }

    async fn follow_anew(&self, provider: &Ident, moving: &Moving) -> Result<Arc<Target>, String> {
        let locate: Arc<dyn Locate> = match &moving.place {
            MovingPlace::Public(endpoints) => Arc::new(Public::new(endpoints)?),
            MovingPlace::Interface(name) => Arc::new(Interface::new(name)),
        };
        let target = Arc::new(Target::new(locate, self.load(provider, &moving.place).await));
        if timeout(FIRST, target.refresh()).await == Ok(true) {
            self.save(provider, &moving.place, &target.addresses()).await;
        }
        let due = SystemClock.monotonic() + Duration::from(moving.interval);
        let followed = Followed { moving: moving.clone(), target: Arc::clone(&target), due };
        self.lock().insert(provider.clone(), followed);
        Ok(target)
    }

    /// Looks again when it is time, until `stop`; calls `moved` when any of them points elsewhere.
    pub(super) async fn follow(&self, moved: impl AsyncFn(), stop: &CancellationToken) {
        while stop.run_until_cancelled(sleep(TICK)).await.is_some() {
            let now = SystemClock.monotonic();
            let due: Vec<(Ident, Followed)> = {
                let mut followed = self.lock();
                let due = followed.iter_mut().filter(|(_, one)| one.due <= now);
                due.map(|(provider, one)| {
                    one.due = now + Duration::from(one.moving.interval);
                    (provider.clone(), one.clone())
                })
                .collect()
            };
            let mut any = false;
            for (provider, followed) in due {
                let before = followed.target.error();
                if followed.target.refresh().await {
                    let found = followed.target.addresses();
                    info!(%provider, target = ?found, "The target moved.");
                    self.save(&provider, &followed.moving.place, &found).await;
                    any = true;
                }
                if let Some(reason) = followed.target.error().filter(|_| before.is_none()) {
                    warn!(%provider, reason, "The target cannot be found; the last one stays.");
                }
            }
            if any {
                moved().await;
            }
        }
    }

    async fn load(&self, provider: &Ident, place: &MovingPlace) -> Vec<IpAddr> {
        let entry = self.store.get(format!("{KEY}{provider}").as_bytes()).await.ok().flatten();
        let stored = entry.and_then(|entry| match entry.value.split_first() {
            Some((&FORMAT, json)) => serde_json::from_slice::<(String, Vec<IpAddr>)>(json).ok(),
            _ => None,
        });
        // Another place has other addresses.
        stored.filter(|(of, _)| *of == place.to_string()).map(|(_, found)| found).unwrap_or_default()
    }

    async fn save(&self, provider: &Ident, place: &MovingPlace, found: &[IpAddr]) {
        let mut value = vec![FORMAT];
        let _ = serde_json::to_writer(&mut value, &(place.to_string(), found));
        if let Err(error) = self.store.commit(Commit::new().put(format!("{KEY}{provider}"), value)).await {
            warn!(%provider, %error, "The target could not be stored; after a restart it is found anew.");
        }
    }
}
