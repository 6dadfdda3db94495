//! Follows dynamic targets while the server runs, and keeps the last good addresses through a restart.

use std::{
    collections::BTreeMap,
    fmt,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use netstead_model::{Clock as _, Ident, SystemClock};
use netstead_sources::dynamic_target::{
    AddressLookup, DynamicAddresses, DynamicTarget, DynamicTargetConfig, InterfaceLookup, LookupMethod,
    PublicAddressLookup,
};
use netstead_store::{Commit, Store};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// `engine/target/<provider>` and `engine/target/source/<source>/<place>`: the last good addresses.
const KEY: &str = "engine/target/";
/// The version of what stands there.
const FORMAT: u8 = b'1';
/// How long a start waits for an address that was never known.
const FIRST: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(500);

/// The moving targets of all providers, and of the sources whose names ask for one.
#[derive(Debug)]
pub(super) struct TargetFollower {
    store: Arc<dyn Store>,
    /// Whether what is found may be stored: one node does that.
    leading: AtomicBool,
    followed: Mutex<BTreeMap<TargetOwner, Followed>>,
    /// Counts how often a target of a source moved.
    moved: watch::Sender<u64>,
}

/// The owner of a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TargetOwner {
    Provider(Ident),
    /// A place that names of this source point at.
    Source(Ident, DynamicTarget),
}

impl fmt::Display for TargetOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(name) => write!(f, "{name}"),
            Self::Source(name, place) => write!(f, "source/{name}/{place}"),
        }
    }
}

#[derive(Debug, Clone)]
struct Followed {
    moving: DynamicTargetConfig,
    target: Arc<DynamicAddresses>,
    /// Monotonic time of the next look.
    due: Duration,
}

impl TargetFollower {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            leading: AtomicBool::new(true),
            followed: Mutex::default(),
            moved: watch::Sender::default(),
        }
    }

    /// A new leader looks up all targets again, from what the leader before it stored. A follower stores nothing.
    pub(super) fn set_leading(&self, leading: bool) {
        self.leading.store(leading, Ordering::Relaxed);
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TargetOwner, Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where its names point now, or why that is not known. It is followed from now on.
    pub(super) async fn addresses_of(
        &self,
        whose: &TargetOwner,
        moving: &DynamicTargetConfig,
    ) -> Result<Vec<IpAddr>, String> {
        let known = self.lock().get(whose).filter(|followed| followed.moving == *moving).cloned();
        let target = match known {
            Some(followed) => followed.target,
            None => self.follow_anew(whose, moving).await?,
        };
        let found = target.addresses();
        if found.is_empty() {
            return Err(target.error().unwrap_or_else(|| "it is not known yet".to_owned()));
        }
        Ok(found)
    }

    /// The last good addresses of a provider that is followed; none if it is not.
    pub(super) fn last_known(&self, provider: &Ident) -> Vec<IpAddr> {
        let whose = TargetOwner::Provider(provider.clone());
        self.lock().get(&whose).map(|followed| followed.target.addresses()).unwrap_or_default()
    }

    /// Stops following what is no longer configured.
    pub(super) fn retain(&self, wanted: impl Fn(&TargetOwner) -> bool) {
        self.lock().retain(|whose, _| wanted(whose));
    }

    /// Told when a target of a source moves.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    async fn follow_anew(
        &self,
        whose: &TargetOwner,
        moving: &DynamicTargetConfig,
    ) -> Result<Arc<DynamicAddresses>, String> {
        let locate: Arc<dyn AddressLookup> = match &moving.place {
            LookupMethod::Public(endpoints) => Arc::new(PublicAddressLookup::new(endpoints)?),
            LookupMethod::Interface(name) => Arc::new(InterfaceLookup::new(name)),
        };
        let target = Arc::new(DynamicAddresses::new(locate, self.load(whose, &moving.place).await));
        if timeout(FIRST, target.refresh()).await == Ok(true) {
            self.save(whose, &moving.place, &target.addresses()).await;
        }
        let due = SystemClock.monotonic() + Duration::from(moving.interval);
        let followed = Followed { moving: moving.clone(), target: Arc::clone(&target), due };
        self.lock().insert(whose.clone(), followed);
        Ok(target)
    }

    /// Looks again when it is time, until `stop`; calls `moved` when that of a provider points elsewhere.
    pub(super) async fn follow(&self, moved: impl AsyncFn(), stop: &CancellationToken) {
        while stop.run_until_cancelled(sleep(TICK)).await.is_some() {
            let now = SystemClock.monotonic();
            let due: Vec<(TargetOwner, Followed)> = {
                let mut followed = self.lock();
                let due = followed.iter_mut().filter(|(_, one)| one.due <= now);
                due.map(|(whose, one)| {
                    one.due = now + Duration::from(one.moving.interval);
                    (whose.clone(), one.clone())
                })
                .collect()
            };
            let mut any = false;
            for (whose, followed) in due {
                let before = followed.target.error();
                if followed.target.refresh().await {
                    let found = followed.target.addresses();
                    info!(of = %whose, target = ?found, "The target moved.");
                    self.save(&whose, &followed.moving.place, &found).await;
                    match &whose {
                        TargetOwner::Provider(_) => any = true,
                        TargetOwner::Source(..) => self.moved.send_modify(|times| *times += 1),
                    }
                }
                if let Some(reason) = followed.target.error().filter(|_| before.is_none()) {
                    warn!(of = %whose, reason, "The target cannot be found; the last one stays.");
                }
            }
            if any {
                moved().await;
            }
        }
    }

    async fn load(&self, whose: &TargetOwner, place: &LookupMethod) -> Vec<IpAddr> {
        let entry = self.store.get(format!("{KEY}{whose}").as_bytes()).await.ok().flatten();
        let stored = entry.and_then(|entry| match entry.value.split_first() {
            Some((&FORMAT, json)) => serde_json::from_slice::<(String, Vec<IpAddr>)>(json).ok(),
            _ => None,
        });
        // Another place has other addresses.
        stored.filter(|(of, _)| *of == place.to_string()).map(|(_, found)| found).unwrap_or_default()
    }

    async fn save(&self, whose: &TargetOwner, place: &LookupMethod, found: &[IpAddr]) {
        if !self.leading.load(Ordering::Relaxed) {
            return;
        }
        let mut value = vec![FORMAT];
        let _ = serde_json::to_writer(&mut value, &(place.to_string(), found));
        if let Err(error) = self.store.commit(Commit::new().put(format!("{KEY}{whose}"), value)).await {
            warn!(of = %whose, %error, "The target could not be stored; after a restart it is found anew.");
        }
    }
}
