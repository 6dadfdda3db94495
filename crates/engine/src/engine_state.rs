//! [`EngineState`]: what all loops of the engine share.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use jiff::Timestamp;
use netstead_model::{Clock, Ident, Key, Report, Span, View};
use netstead_plan::{Domains, Grace, Inventory, Now, ReportArrival, ReportOutcome, SourceState};
use netstead_store::Store;
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    task::yield_now,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Options, Pushed,
    dns_pass::ProviderHandle,
    engine_time::EngineTime,
    fenced_store::{FencedStore, LeaderEpoch},
    history::{EngineEvent, EngineEventKind, History},
    ignored_drift::IgnoredDrifts,
    inventory_store::{InventoryStore, inventory_changed},
    ipam_pass::IpamHandle,
    ledger_sync::LedgerSync,
    manual_source::Manual,
    name_news::NameNews,
    name_problems::NameProblems,
    pause::Pauses,
    source_poller::SourceHandle,
    status::DetachedStatus,
};

/// How often old things are forgotten.
const PRUNE: Duration = Duration::from_mins(1);

/// A source is not looked at more often than this because a grace runs out: graces that run out together share a look.
const SHORTEST_LOOK: Duration = Duration::from_secs(1);

/// The newest inventory; its number grows with every change.
#[derive(Debug, Clone)]
pub(crate) struct LatestInventory {
    pub(crate) number: u64,
    pub(crate) inventory: Arc<Inventory>,
}

#[derive(Debug)]
pub(crate) struct EngineState {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    pub(crate) lead: Arc<LeaderEpoch>,
    pub(crate) time: EngineTime,
    /// The newest inventory; changes wake the providers.
    pub(crate) inventory: watch::Sender<LatestInventory>,
    pub(crate) inventory_store: AsyncMutex<InventoryStore>,
    pub(crate) pruned: Mutex<Duration>,
    pub(crate) domains: RwLock<Arc<Domains>>,
    pub(crate) pauses: Pauses,
    pub(crate) ignored: IgnoredDrifts,
    pub(crate) history: Arc<History>,
    pub(crate) manual: Manual,
    /// Sources that other programs write into.
    pub(crate) pushed: Mutex<BTreeMap<Ident, Pushed>>,
    pub(crate) sources: Mutex<BTreeMap<Ident, SourceHandle>>,
    pub(crate) providers: Mutex<BTreeMap<Ident, ProviderHandle>>,
    /// IPAM systems; no name is in both maps.
    pub(crate) ipam: Mutex<BTreeMap<Ident, IpamHandle>>,
    /// Providers that are no longer configured, with what is still ours there.
    pub(crate) detached: Mutex<Vec<DetachedStatus>>,
    /// Sources that are called otherwise now: their former name and the new one.
    pub(crate) renames: RwLock<Arc<Vec<(Ident, Ident)>>>,
    pub(crate) ledger_sync: LedgerSync,
    pub(crate) name_news: NameNews,
    pub(crate) name_problems: NameProblems,
    pub(crate) stop: CancellationToken,
}

impl EngineState {
    pub(crate) fn now(&self) -> Now {
        self.time.now()
    }

    pub(crate) fn fenced_store(&self, writer: &str) -> FencedStore {
        FencedStore::new(self.store.clone(), self.lead.clone(), writer)
    }

    pub(crate) fn domains(&self) -> Arc<Domains> {
        self.domains.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn sources(&self) -> MutexGuard<'_, BTreeMap<Ident, SourceHandle>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn providers(&self) -> MutexGuard<'_, BTreeMap<Ident, ProviderHandle>> {
        self.providers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ipam(&self) -> MutexGuard<'_, BTreeMap<Ident, IpamHandle>> {
        self.ipam.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The graces of all providers.
    pub(crate) fn graces(&self) -> Vec<Grace> {
        let mut graces: Vec<Grace> =
            self.providers().values().map(|provider| provider.setup.settings.graces()).collect();
        graces.extend(self.ipam().values().map(|provider| provider.setup.settings.graces()));
        graces
    }

    /// How long absences must last, for one provider or another.
    pub(crate) fn absence_graces(&self) -> Vec<Span> {
        let mut graces: Vec<Span> = self.graces().iter().map(|grace| grace.absent).collect();
        graces.sort_unstable();
        graces.dedup();
        graces
    }

    /// For how long `source` need not be looked at for the sake of a grace that runs out, or of a suspicion. None if
    /// nothing of it waits for another look.
    pub(crate) fn until_next_look(&self, source: &Ident) -> Option<Duration> {
        let (newest, now) = (self.inventory.borrow().inventory.clone(), self.now());
        let due = newest.source(source)?.next_look(&self.absence_graces())?;
        Some(Duration::from_millis(due.saturating_sub(now.millis)).max(SHORTEST_LOOK))
    }

    /// Takes a report that was begun at `began`: providers hear of it at once, the store right after.
    pub(crate) async fn ingest_report(&self, report: Report, began: Now, session: u64) -> ReportOutcome {
        let source = report.source.clone();
        let mut taken = ReportOutcome::Stale;
        let began = began.millis;
        let mut events = Vec::new();
        self.change_inventory(|inventory, now| {
            let before = inventory.source(&source).map(source_health);
            taken = inventory.ingest(report, ReportArrival { now, began, session });
            events = source_events(&source, before, inventory.source(&source));
        })
        .await;
        if taken == ReportOutcome::Stale {
            tracing::debug!(%source, "A report is too old to be looked at.");
        }
        for event in events {
            self.record_event(event).await;
        }
        taken
    }

    /// Changes the inventory. Changes follow one another, here and in the store.
    pub(crate) async fn change_inventory(&self, change: impl FnOnce(&mut Inventory, Now)) {
        let mut keeper = self.inventory_store.lock().await;
        let now = self.now();
        let old = self.inventory.borrow().clone();
        let mut newest = old.inventory.clone();
        let number = old.number + 1;
        let inventory = Arc::make_mut(&mut newest);
        change(inventory, now);
        let news = inventory_changed(&old.inventory, inventory, &self.absence_graces());
        self.prune(&mut keeper, inventory, number, now);
        self.inventory.send_if_modified(|slot| {
            *slot = LatestInventory { number, inventory: newest.clone() };
            news
        });
        drop(old);
        if news {
            // Those that were woken go first: they need not wait until this thread has prepared what it stores.
            yield_now().await;
        }
        if let Err(error) = keeper.save_changes(&newest, now, self.time.write()).await {
            tracing::warn!(%error, "The store did not learn what the sources said; it will be told again.");
        }
    }

    fn prune(&self, keeper: &mut InventoryStore, inventory: &mut Inventory, number: u64, now: Now) {
        let clock = self.clock.monotonic();
        {
            let mut last = self.pruned.lock().unwrap_or_else(PoisonError::into_inner);
            if clock.saturating_sub(*last) < PRUNE {
                return;
            }
            *last = clock;
        }
        let providers: Vec<ProviderHandle> = self.providers().values().cloned().collect();
        let ipam: Vec<IpamHandle> = self.ipam().values().cloned().collect();
        let numbers = providers.iter().map(|provider| provider.snapshot.read().number);
        let numbers = numbers.chain(ipam.iter().map(|provider| provider.snapshot.read().number));
        let passed = numbers.min().unwrap_or(number);
        let longest = providers.iter().map(ProviderHandle::longest_grace);
        let longest = longest.chain(ipam.iter().map(IpamHandle::longest_grace)).max().unwrap_or(Span::ZERO);
        let reasons = || {
            let mut reasons: HashSet<(Ident, Key)> = HashSet::new();
            for provider in &providers {
                let owned = provider.snapshot.read().owned.clone();
                reasons.extend(owned.workloads().map(|(source, id)| (source.clone(), id.clone())));
            }
            for provider in &ipam {
                let owned = provider.snapshot.read().owned.clone();
                let workloads = owned.workloads();
                reasons.extend(workloads.into_iter().map(|(source, id)| (source.clone(), id.clone())));
            }
            for detached in self.detached.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                reasons.extend(detached.reasons.iter().cloned());
            }
            reasons
        };
        keeper.prune(inventory, number, passed, longest, now, reasons);
    }

    pub(crate) fn count_late(&self, provider: &Ident) {
        if let Some(observer) = &self.options.observer {
            observer.late(provider);
        }
    }

    /// Adds an event of this moment.
    pub(crate) async fn record_event(&self, event: EngineEvent) {
        if event.what == EngineEventKind::Late
            && let Some(provider) = &event.provider
        {
            self.count_late(provider);
        }
        self.history.add(EngineEvent { at: self.clock.wall(), ..event }).await;
    }
}

/// How much a source shows, and whether it is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SourceHealth {
    shows: Shows,
    believed: bool,
}

/// How much a source shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    Everything,
    Some,
    Nothing,
}

fn source_health(state: &SourceState) -> SourceHealth {
    let shows = match state.view {
        View::Complete => Shows::Everything,
        // A source that never reported is not known to fail.
        _ if state.begun == Timestamp::MIN => Shows::Everything,
        View::Partial { .. } => Shows::Some,
        View::Failed { .. } => Shows::Nothing,
    };
    SourceHealth { shows, believed: state.suspect.is_none() }
}

/// Events about a source since its last report.
fn source_events(
    source: &Ident,
    before: Option<SourceHealth>,
    state: Option<&SourceState>,
) -> Vec<EngineEvent> {
    let Some(state) = state else { return Vec::new() };
    let before = before.unwrap_or(SourceHealth { shows: Shows::Everything, believed: true });
    let health = source_health(state);
    let mut events = Vec::new();
    let mut notice = |what, text: String| events.push(EngineEvent::new(what, text).of_source(source));
    match &state.view {
        View::Partial { reason } | View::Failed { reason } if health.shows != before.shows => {
            let text = match (before.shows, health.shows) {
                (Shows::Nothing, Shows::Some) => format!("{source} shows a part again: {reason}"),
                (Shows::Some, Shows::Nothing) => format!("{source} shows nothing any more: {reason}"),
                _ => format!("{source} does not show everything: {reason}"),
            };
            notice(EngineEventKind::Failing, text);
        }
        View::Complete if health.shows != before.shows => {
            notice(EngineEventKind::Working, format!("{source} shows everything again"));
        }
        _ => {}
    }
    match state.suspect {
        Some(suspicion) if before.believed => {
            let (missing, of) = (suspicion.missing, suspicion.of);
            let text = format!(
                "{missing} of {of} vanished from {source} at once; nothing goes until it says so again"
            );
            notice(EngineEventKind::Suspect, text);
        }
        None if !before.believed && health.believed => {
            notice(EngineEventKind::Believed, format!("what {source} says is believed again"));
        }
        _ => {}
    }
    events
}
