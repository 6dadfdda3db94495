//! Applies a new configuration to the running engine: starts, stops and restarts only what differs.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use netstead_model::{Ident, Source};
use netstead_plan::{Digest, SourceConfig};

use super::{first_duplicate, start::MANUAL};
use crate::{
    DetachedStatus, EngineError, IpamSetup, ProviderSetup, Pushed, PushedSetup, Setup, SourceSetup,
    dns_pass::load_owned,
    engine_state::EngineState,
    ipam_pass::load_owned_objects,
    keys::{self, Class},
    provider_loop::{LoopHandle, Pass, StoredProvider},
    source_poller::SourceHandle,
};

/// How long a source that another program writes into must be quiet: that program sends all it has at once.
const QUIET: Duration = Duration::from_millis(5);

/// Checks a configuration before anything of it is applied.
pub(super) fn check(setup: &Setup) -> Result<(), EngineError> {
    let looked = || setup.sources.iter().map(|source| source.source.name());
    let sources = || looked().chain(setup.pushed.iter().map(|pushed| &pushed.name));
    let invalid = |field, reason| Err(EngineError::Invalid { field, reason });
    if let Some(name) = first_duplicate(sources()) {
        return invalid("source", format!("two sources are called `{name}`"));
    }
    if sources().any(|name| name.as_ref() == MANUAL) {
        return invalid("source", format!("`{MANUAL}` is the name of the records people set"));
    }
    let was = || setup.sources.iter().filter_map(|source| source.was.as_ref());
    if let Some(name) = was().find(|was| sources().any(|name| name == *was)) {
        return invalid("source", format!("`{name}` is the former name of another source and still there"));
    }
    if let Some(name) = first_duplicate(was()) {
        return invalid("source", format!("two sources were called `{name}` before"));
    }
    if let Some(name) = first_duplicate(
        setup.providers.iter().map(crate::ProviderSetup::name).chain(setup.ipam.iter().map(IpamSetup::name)),
    ) {
        return invalid("provider", format!("two providers are called `{name}`"));
    }
    Ok(())
}

pub(super) async fn configure(shared: &Arc<EngineState>, mut setup: Setup) -> Result<(), EngineError> {
    let manual = Arc::new(shared.manual.clone()) as Arc<dyn Source>;
    setup.sources.push(SourceSetup::new(manual, Digest::of([MANUAL])));
    setup.sources.extend(pushed_sources(shared, &setup.pushed).await?);
    *shared.domains.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(setup.domains);
    configure_inventory(shared, &setup.sources).await;
    // Providers first, so that none of them misses what a source has to say at its start.
    configure_loops(shared, EngineState::providers, setup.providers, ProviderSetup::is_like).await?;
    configure_loops(shared, EngineState::ipam, setup.ipam, IpamSetup::is_like).await?;
    find_detached_providers(shared).await?;
    configure_sources(shared, setup.sources).await;
    shared.providers().values().for_each(LoopHandle::wake);
    shared.ipam().values().for_each(LoopHandle::wake);
    Ok(())
}

/// The sources that other programs write into, each loaded once.
async fn pushed_sources(
    shared: &EngineState,
    wanted: &[PushedSetup],
) -> Result<Vec<SourceSetup>, EngineError> {
    let known = || shared.pushed.lock().unwrap_or_else(PoisonError::into_inner);
    let mut setups = Vec::with_capacity(wanted.len());
    for PushedSetup { name, rules } in wanted {
        let running = known().get(name).cloned();
        let pushed = if let Some(pushed) = running {
            pushed
        } else {
            let fenced_store = shared.fenced_store(&format!("pushed/{name}"));
            Pushed::load(name.clone(), fenced_store, shared.clock.clone()).await?
        };
        known().insert(name.clone(), pushed.clone());
        let mut setup = SourceSetup::new(Arc::new(pushed), Digest::of(["pushed"]));
        setup.rules = rules.clone();
        (setup.debounce_quiet, setup.debounce_most) = (Some(QUIET), Some(QUIET * 4));
        setups.push(setup);
    }
    known().retain(|name, _| wanted.iter().any(|setup| setup.name == *name));
    Ok(setups)
}

async fn configure_inventory(shared: &EngineState, sources: &[SourceSetup]) {
    let named = |setup: &SourceSetup| Some((setup.was.clone()?, setup.source.name().clone()));
    let renames: Vec<(Ident, Ident)> =
        sources.iter().filter_map(named).filter(|(was, name)| was != name).collect();
    *shared.renames.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(renames.clone());
    let configs: BTreeMap<Ident, SourceConfig> = sources
        .iter()
        .map(|setup| {
            let (config, commanded, rules) = (setup.config, setup.commanded, setup.rules.clone());
            let movable = setup.source.flags().movable;
            let config = SourceConfig { config, commanded, movable, rules };
            (setup.source.name().clone(), config)
        })
        .collect();
    shared
        .change_inventory(|inventory, now| {
            for (was, name) in &renames {
                inventory.rename(was, name);
            }
            inventory.configure(&configs, now);
        })
        .await;
}

/// The running loops of one kind, by name.
type RunningLoops<P> = for<'a> fn(&'a EngineState) -> MutexGuard<'a, BTreeMap<Ident, LoopHandle<P>>>;

/// Ends the loops that are no longer wanted, starts those that are new, and starts those anew whose setup is another.
async fn configure_loops<P: Pass>(
    shared: &Arc<EngineState>,
    running: RunningLoops<P>,
    wanted: Vec<P::Setup>,
    alike: fn(&P::Setup, &P::Setup) -> bool,
) -> Result<(), EngineError> {
    let names: HashSet<Ident> = wanted.iter().map(|setup| P::describe(setup).name).collect();
    let gone: Vec<LoopHandle<P>> = {
        let mut running = running(shared);
        let gone: Vec<Ident> = running.keys().filter(|name| !names.contains(*name)).cloned().collect();
        gone.iter().filter_map(|name| running.remove(name)).collect()
    };
    for handle in gone {
        handle.stop_or_abort().await;
    }
    for setup in wanted {
        let name = P::describe(&setup).name;
        let old = running(shared).get(&name).cloned();
        if let Some(old) = old {
            if alike(&old.setup, &setup) {
                continue;
            }
            old.stop_or_abort().await;
        }
        let handle = LoopHandle::start(shared, setup).await?;
        running(shared).insert(name, handle);
    }
    Ok(())
}

async fn configure_sources(shared: &Arc<EngineState>, wanted: Vec<SourceSetup>) {
    let names: HashSet<Ident> = wanted.iter().map(|setup| setup.source.name().clone()).collect();
    let gone: Vec<SourceHandle> = {
        let mut running = shared.sources();
        let gone: Vec<Ident> = running.keys().filter(|name| !names.contains(*name)).cloned().collect();
        gone.iter().filter_map(|name| running.remove(name)).collect()
    };
    for handle in gone {
        handle.stop_or_abort().await;
    }
    for setup in wanted {
        let name = setup.source.name().clone();
        let old = shared.sources().get(&name).cloned();
        if let Some(old) = old {
            if old.setup.is_like(&setup) {
                continue;
            }
            old.stop_or_abort().await;
        }
        let handle = SourceHandle::start(shared, setup);
        shared.sources().insert(name, handle);
    }
}

/// Providers that the store knows and the configuration does not.
pub(super) async fn find_detached_providers(shared: &EngineState) -> Result<(), EngineError> {
    let fenced_store = shared.fenced_store("reader");
    let running: HashSet<String> = shared.providers().keys().map(ToString::to_string).collect();
    let mut found = Vec::new();
    for (name, known) in fenced_store.all::<StoredProvider>(keys::PROVIDER).await? {
        let Ok(ident) = name.parse::<Ident>() else { continue };
        if running.contains(&name) {
            continue;
        }
        let owned = load_owned(&fenced_store, &ident).await?;
        if owned.is_empty() {
            continue;
        }
        let reasons = owned.workloads().map(|(source, id)| (source.clone(), id.clone())).collect();
        let StoredProvider { kind, server, .. } = known;
        found.push(DetachedStatus { name: ident, kind, server, owned: owned.len(), ipam: false, reasons });
    }
    let running: HashSet<String> = shared.ipam().keys().map(ToString::to_string).collect();
    for (name, known) in fenced_store.all::<StoredProvider>(&Class::Ipam.key(keys::PROVIDER, "")).await? {
        let Ok(ident) = name.parse::<Ident>() else { continue };
        if running.contains(&name) {
            continue;
        }
        let owned = load_owned_objects(&fenced_store, &ident).await?;
        if owned.0.is_empty() {
            continue;
        }
        let workloads = owned.workloads();
        let reasons = workloads.into_iter().map(|(source, id)| (source.clone(), id.clone())).collect();
        let StoredProvider { kind, server, .. } = known;
        found.push(DetachedStatus { name: ident, kind, server, owned: owned.0.len(), ipam: true, reasons });
    }
    *shared.detached.lock().unwrap_or_else(PoisonError::into_inner) = found;
    Ok(())
}
