//! [`Engine`]: the handle through which the API and the binary use the engine.

mod any_provider;
mod configure;
mod ignore_drift;
mod operator_commands;
mod start;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use netstead_model::{Address, Ident, Name, NameSet, RecordType, Span};
use netstead_plan::{Digest, Now, OwnerId, Plan, ipam::IpamPlan};
use netstead_store::{Commit, Condition, Store, StoreError};

pub use self::operator_commands::{Cleaning, Undone};
use crate::{
    EngineError, EngineStatus, Manual, Options, PassReport, ProblemsByWorkload, Pushed, RecordQuery,
    RecordView, Scope, Setup, WorkloadView,
    dns_pass::ProviderHandle,
    engine_state::EngineState,
    explain::{self, ExplainLimits},
    history::{self, Applied, ChangePage, ChangeQuery, EngineEvent, EngineEventKind, LiveChanges},
    ipam_pass::IpamHandle,
    keys::{self, Class},
    records, status,
};

/// How long a person waits for a source to look.
const POLL_TIMEOUT: Duration = Duration::from_secs(30);

/// All loops. Cheap to clone; all clones are the same engine.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<EngineState>,
    /// Reconfigurations follow one another.
    reconfigure_lock: Arc<tokio::sync::Mutex<()>>,
}

impl Engine {
    /// The installation's id: drawn at the first start, kept in the store.
    pub async fn owner(store: &dyn Store) -> Result<OwnerId, EngineError> {
        loop {
            if let Some(entry) = store.get(keys::OWNER.as_bytes()).await? {
                return keys::decode(&entry.key, &entry.value);
            }
            let drawn = format!("{:08x}", rand::random::<u32>());
            let owner: OwnerId = drawn.parse().map_err(|error: netstead_model::ParseError| {
                EngineError::Invalid { field: "owner", reason: error.to_string() }
            })?;
            let absent = Condition::Absent(keys::OWNER.into());
            match store.commit(Commit::new().when(absent).put(keys::OWNER, keys::encode(&owner))).await {
                Ok(_) => return Ok(owner),
                Err(StoreError::Refused { .. } | StoreError::Unknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Starts all loops. The caller must lead: the store's current epoch is used.
    pub async fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn netstead_model::Clock>,
        setup: Setup,
        options: Options,
    ) -> Result<Self, EngineError> {
        let shared = start::open(store, clock, &setup, options).await?;
        let engine = Self { shared, reconfigure_lock: Arc::default() };
        configure::configure(&engine.shared, setup).await?;
        start::watch_doubts(&engine.shared).await?;
        crate::ledger_sync::start(&engine.shared);
        crate::name_problems::start(&engine.shared);
        // Sources may write what they hear to their platforms.
        if !engine.shared.options.dry_run {
            crate::name_news::start(&engine.shared);
        }
        Ok(engine)
    }

    /// Goes on with another configuration. Only what differs is touched.
    pub async fn reconfigure(&self, setup: Setup) -> Result<(), EngineError> {
        let _turn = self.reconfigure_lock.lock().await;
        configure::check(&setup)?;
        configure::configure(&self.shared, setup).await
    }

    pub fn status(&self) -> EngineStatus {
        status::status(&self.shared)
    }

    /// The time at which what is shown now is true.
    pub fn now(&self) -> Now {
        self.shared.now()
    }

    /// The newest plan of each provider.
    pub fn plans(&self) -> Vec<(Ident, Arc<Plan>)> {
        let plan = |(name, handle): (&Ident, &ProviderHandle)| {
            Some((name.clone(), handle.snapshot.read().plan.clone()?))
        };
        self.shared.providers().iter().filter_map(plan).collect()
    }

    /// The newest plan of each IPAM system.
    pub fn ipam_plans(&self) -> Vec<(Ident, Arc<IpamPlan>)> {
        let plan = |(name, handle): (&Ident, &IpamHandle)| {
            Some((name.clone(), handle.snapshot.read().plan.clone()?))
        };
        self.shared.ipam().iter().filter_map(plan).collect()
    }

    /// All records that matter here.
    pub fn records(&self) -> Vec<RecordView> {
        self.list_records(&RecordQuery::default())
    }

    /// Those that are asked for, in the order of their places.
    pub fn list_records(&self, query: &RecordQuery) -> Vec<RecordView> {
        records::list(&self.shared, query)
    }

    /// By provider and zone: how many values are known beside foreign ones, and how many of them are not as they should be.
    /// With `within`, only values at these names are counted.
    pub fn count_zones(&self, within: Option<&NameSet>) -> BTreeMap<(Ident, Name), (u64, u64)> {
        records::count_zones(&self.shared, within)
    }

    /// By provider: how many values at these names are ours.
    pub fn count_owned(&self, names: &NameSet) -> BTreeMap<Ident, usize> {
        records::count_owned(&self.shared, names)
    }

    pub fn workloads(&self) -> Vec<WorkloadView> {
        status::workloads(&self.shared)
    }

    /// Workloads that ask for a name and do not get it, as of the last look.
    pub fn problems(&self) -> Arc<ProblemsByWorkload> {
        self.shared.name_problems.newest()
    }

    /// Why a record that is set by hand may not come into being, one sentence each without its full stop.
    pub fn doubts_about_record(&self, name: &Name, kind: RecordType) -> Vec<String> {
        crate::name_problems::doubts_about_record(&self.shared, name, kind)
    }

    /// Why a name is as it is, and why not, one sentence each. `limits` leaves out what the caller may not see; without them
    /// everything is said.
    pub async fn explain(&self, name: &Name, limits: Option<&ExplainLimits>) -> Vec<String> {
        explain::explain(&self.shared, name, limits).await
    }

    /// Why sources leave `address` out, one sentence each.
    pub fn why_left_out(&self, address: Address) -> Vec<String> {
        explain::why_left_out(&self.shared, address)
    }

    /// The newest events first.
    pub async fn events(&self, most: usize) -> Vec<EngineEvent> {
        self.shared.history.newest(most).await
    }

    /// Receives what is changed and noticed from now on, as it happens. A reader that is too slow loses some of it.
    pub fn subscribe(&self) -> tokio::sync::broadcast::Receiver<LiveChanges> {
        self.shared.history.subscribe()
    }

    /// One page of all that was changed and noticed.
    pub async fn changes(&self, query: &ChangeQuery) -> Result<ChangePage, EngineError> {
        history::list(&self.shared, query).await
    }

    /// The number of the oldest event that is still kept.
    pub async fn oldest_event(&self) -> u64 {
        self.shared.history.oldest().await
    }

    /// The plans of a provider that were carried out, the newest last.
    pub async fn applied(&self, provider: &Ident) -> Result<Vec<Applied>, EngineError> {
        let fenced_store = self.shared.fenced_store("reader");
        Ok(history::plans(Class::Dns, &fenced_store, provider).await?.into_values().collect())
    }

    /// Looks at the sources and runs a pass now, and waits for it.
    pub async fn apply(&self, provider: Option<&Ident>) -> Result<Vec<(Ident, PassReport)>, EngineError> {
        let (handles, systems): (Vec<ProviderHandle>, Vec<IpamHandle>) = match provider {
            None => (
                self.shared.providers().values().cloned().collect(),
                self.shared.ipam().values().cloned().collect(),
            ),
            Some(name) => match self.ipam_called(name) {
                Some(system) => (Vec::new(), vec![system]),
                None => (self.providers_called(name)?, Vec::new()),
            },
        };
        self.poll_all_sources().await;
        crate::ledger_sync::pass(&self.shared).await;
        Self::pass_of(&handles, &systems).await
    }

    /// Waits until every source has reported since the start and has read all its workloads, for at most `patience`. Returns
    /// those that have not reported.
    pub async fn first_reports(&self, patience: Duration) -> Vec<Ident> {
        let sources: Vec<_> = self.shared.sources().values().cloned().collect();
        let all = sources.iter().map(|source| async {
            source.first_report().await;
            source.read_the_rest(POLL_TIMEOUT).await;
        });
        let _ = tokio::time::timeout(patience, join_all(all)).await;
        let silent = sources.iter().filter(|source| !source.has_reported());
        silent.map(|source| source.setup.source.name().clone()).collect()
    }

    /// How many workloads each source has seen and not read yet; only sources that have such.
    pub fn unread(&self) -> BTreeMap<Ident, usize> {
        let sources = self.shared.sources();
        let unread = sources.values().map(|source| (source.setup.source.name().clone(), source.unread()));
        unread.filter(|(_, unread)| *unread > 0).collect()
    }

    /// Runs a pass of every provider with what the sources reported, and waits for it. The claims that workloads ask for are
    /// made before.
    pub async fn pass_everywhere(&self) -> Result<Vec<(Ident, PassReport)>, EngineError> {
        crate::ledger_sync::pass(&self.shared).await;
        // The names of those claims come from the ledger.
        let sources: Vec<_> = self.shared.sources().values().cloned().collect();
        let commanded = sources.iter().filter(|source| source.setup.commanded);
        join_all(commanded.map(|source| source.poll_now(POLL_TIMEOUT))).await;
        let handles: Vec<_> = self.shared.providers().values().cloned().collect();
        let systems: Vec<_> = self.shared.ipam().values().cloned().collect();
        Self::pass_of(&handles, &systems).await
    }

    async fn pass_of(
        handles: &[ProviderHandle],
        systems: &[IpamHandle],
    ) -> Result<Vec<(Ident, PassReport)>, EngineError> {
        let passes = handles
            .iter()
            .map(|handle| async { handle.pass().await.map(|report| (handle.setup.name().clone(), report)) });
        let objects = systems
            .iter()
            .map(|handle| async { handle.pass().await.map(|report| (handle.setup.name().clone(), report)) });
        let (passes, objects) = tokio::join!(join_all(passes), join_all(objects));
        passes.into_iter().chain(objects).collect()
    }

    /// Does exactly the parked changes with this hash, once.
    pub async fn approve(&self, hash: &str, by: &str) -> Result<(), EngineError> {
        let unknown = || EngineError::NoSuchPlan { hash: hash.to_owned() };
        let digest: Digest = hash.parse().map_err(|_| unknown())?;
        let offers = |handle: &&ProviderHandle| {
            handle.snapshot.read().guard.offers.iter().any(|offer| offer.hash == digest)
        };
        let handles: Vec<ProviderHandle> = self.shared.providers().values().filter(offers).cloned().collect();
        let offers = |handle: &&IpamHandle| {
            handle.snapshot.read().guard.offers.iter().any(|offer| offer.hash == digest)
        };
        let systems: Vec<IpamHandle> = self.shared.ipam().values().filter(offers).cloned().collect();
        if handles.is_empty() && systems.is_empty() {
            return Err(unknown());
        }
        for handle in systems {
            handle.approve(digest, by).await?;
        }
        for handle in handles {
            handle.approve(digest, by).await?;
        }
        Ok(())
    }

    /// From now on plans are made and shown, and nothing is written.
    pub async fn pause(
        &self,
        scope: Scope,
        lasts: Option<Span>,
        reason: Option<String>,
        by: &str,
    ) -> Result<(), EngineError> {
        self.check_scope(&scope)?;
        let text = match &reason {
            Some(reason) => format!("{scope} is paused: {reason}"),
            None => format!("{scope} is paused"),
        };
        self.shared.pauses.pause(scope.clone(), lasts, reason, by, self.shared.now()).await?;
        self.shared
            .record_event(with_scope(EngineEvent::new(EngineEventKind::Paused, text).by(by), &scope))
            .await;
        Ok(())
    }

    /// Ends a pause; [`Scope::All`] ends every one.
    pub async fn resume(&self, scope: Scope, by: &str) -> Result<(), EngineError> {
        self.check_scope(&scope)?;
        if self.shared.pauses.resume(&scope, self.shared.now()).await? {
            let event = EngineEvent::new(EngineEventKind::Resumed, format!("{scope}: resumed")).by(by);
            self.shared.record_event(with_scope(event, &scope)).await;
        }
        self.shared.providers().values().for_each(ProviderHandle::wake);
        self.shared.ipam().values().for_each(IpamHandle::wake);
        Ok(())
    }

    /// The records that people set by hand.
    pub fn manual(&self) -> &Manual {
        &self.shared.manual
    }

    /// The records that another program sends, if there is such a source.
    pub fn pushed(&self, source: &Ident) -> Option<Pushed> {
        self.shared.pushed.lock().unwrap_or_else(PoisonError::into_inner).get(source).cloned()
    }

    /// Ends all loops. What runs is given a moment; the store stays open.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        let sources: Vec<_> = self.shared.sources().values().cloned().collect();
        join_all(sources.iter().map(crate::source_poller::SourceHandle::stop_or_abort)).await;
        let providers: Vec<ProviderHandle> = self.shared.providers().values().cloned().collect();
        join_all(providers.iter().map(ProviderHandle::stop_or_abort)).await;
        let systems: Vec<IpamHandle> = self.shared.ipam().values().cloned().collect();
        join_all(systems.iter().map(IpamHandle::stop_or_abort)).await;
        self.shared.ledger_sync.stop_or_abort().await;
        self.shared.name_news.stop_or_abort().await;
        self.shared.name_problems.stop_or_abort().await;
        if let Err(error) = self.shared.fenced_store("time").put(vec![self.shared.time.write()]).await {
            tracing::debug!(%error, "The time could not be stored at the end.");
        }
    }

    /// Ends all loops because another process leads. Nothing more is begun, here or on any server. Writes that are on their
    /// way to a server end by themselves, and their zones are reported to the new leader.
    pub async fn stop_leading(&self) {
        self.shared.lead.depose();
        self.shared.stop.cancel();
        let sources: Vec<_> = self.shared.sources().values().cloned().collect();
        let providers: Vec<ProviderHandle> = self.shared.providers().values().cloned().collect();
        let systems: Vec<IpamHandle> = self.shared.ipam().values().cloned().collect();
        tokio::join!(
            join_all(systems.iter().map(IpamHandle::stop_gracefully)),
            join_all(sources.iter().map(crate::source_poller::SourceHandle::stop_gracefully)),
            join_all(providers.iter().map(ProviderHandle::stop_gracefully)),
            self.shared.ledger_sync.stop_gracefully(),
            self.shared.name_news.stop_or_abort(),
            self.shared.name_problems.stop_or_abort(),
        );
    }

    pub(crate) fn shared(&self) -> &EngineState {
        &self.shared
    }

    async fn poll_all_sources(&self) {
        let sources: Vec<_> = self.shared.sources().values().cloned().collect();
        join_all(sources.iter().map(|source| source.poll_now(POLL_TIMEOUT))).await;
    }

    /// The provider with this name, or all of a group.
    pub(crate) fn providers_called(&self, name: &Ident) -> Result<Vec<ProviderHandle>, EngineError> {
        let called = |handle: &&ProviderHandle| handle.setup.settings.is_called(name);
        let found: Vec<ProviderHandle> = self.shared.providers().values().filter(called).cloned().collect();
        if found.is_empty() { Err(EngineError::NoSuchProvider { name: name.clone() }) } else { Ok(found) }
    }

    /// The IPAM system with this name.
    pub(crate) fn ipam_called(&self, name: &Ident) -> Option<IpamHandle> {
        self.shared.ipam().get(name).cloned()
    }

    pub(crate) fn provider(&self, name: &Ident) -> Result<ProviderHandle, EngineError> {
        let found = self.shared.providers().get(name).cloned();
        found.ok_or_else(|| EngineError::NoSuchProvider { name: name.clone() })
    }

    fn check_scope(&self, scope: &Scope) -> Result<(), EngineError> {
        match scope {
            Scope::All | Scope::Backend(_) => Ok(()),
            Scope::Provider(name) if self.ipam_called(name).is_some() => Ok(()),
            Scope::Provider(name) | Scope::Zone(name, _) => self.providers_called(name).map(drop),
        }
    }
}

/// With the place that is paused or goes on.
fn with_scope(event: EngineEvent, scope: &Scope) -> EngineEvent {
    match scope {
        Scope::All | Scope::Backend(_) => event,
        Scope::Provider(provider) => event.on(provider),
        Scope::Zone(provider, zone) => event.on(provider).in_zone(zone),
    }
}

/// Names that occur twice are an error that says so.
fn first_duplicate<'a>(names: impl Iterator<Item = &'a Ident>) -> Option<&'a Ident> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}
