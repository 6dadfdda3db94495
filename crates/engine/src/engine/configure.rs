//! From one configuration to the next, touching only what differs.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, PoisonError},
};

use netstead_model::{Ident, Source};
use netstead_plan::{Digest, SourceConfig};

use super::{start::MANUAL, twice};
use crate::{
    DetachedStatus, EngineError, Setup, SourceSetup, keys,
    look::SourceHandle,
    provider::{Known, ProviderHandle, load_owned},
    shared::Shared,
};

/// What is wrong with a configuration before anything of it is done.
pub(super) fn check(setup: &Setup) -> Result<(), EngineError> {
    let sources = || setup.sources.iter().map(|source| source.source.name());
    let invalid = |field, reason| Err(EngineError::Invalid { field, reason });
    if let Some(name) = twice(sources()) {
        return invalid("source", format!("two sources are called `{name}`"));
    }
    if sources().any(|name| name.as_ref() == MANUAL) {
        return invalid("source", format!("`{MANUAL}` is the name of the records people set"));
    }
    let was = || setup.sources.iter().filter_map(|source| source.was.as_ref());
    if let Some(name) = was().find(|was| sources().any(|name| name == *was)) {
        return invalid("source", format!("`{name}` is the former name of another source and still there"));
    }
    if let Some(name) = twice(was()) {
        return invalid("source", format!("two sources were called `{name}` before"));
    }
    if let Some(name) = twice(setup.providers.iter().map(|provider| &provider.settings.provider)) {
        return invalid("provider", format!("two providers are called `{name}`"));
    }
    Ok(())
}

pub(super) async fn configure(shared: &Arc<Shared>, mut setup: Setup) -> Result<(), EngineError> {
    let manual = Arc::new(shared.manual.clone()) as Arc<dyn Source>;
    setup.sources.push(SourceSetup::new(manual, Digest::of([MANUAL])));
    *shared.domains.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(setup.domains);
    tell_inventory(shared, &setup.sources).await;
    // Providers first, so that none of them misses what a source has to say at its start.
    providers(shared, setup.providers).await?;
    detached(shared).await?;
    sources(shared, setup.sources).await;
    shared.providers().values().for_each(ProviderHandle::wake);
    Ok(())
}

async fn tell_inventory(shared: &Shared, sources: &[SourceSetup]) {
    let named = |setup: &SourceSetup| Some((setup.was.clone()?, setup.source.name().clone()));
    let renames: Vec<(Ident, Ident)> =
        sources.iter().filter_map(named).filter(|(was, name)| was != name).collect();
    *shared.renames.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(renames.clone());
    let configs: BTreeMap<Ident, SourceConfig> = sources
        .iter()
        .map(|setup| {
            let config = SourceConfig { config: setup.config, commanded: setup.commanded };
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

async fn providers(shared: &Arc<Shared>, wanted: Vec<crate::ProviderSetup>) -> Result<(), EngineError> {
    let names: HashSet<Ident> = wanted.iter().map(|setup| setup.name().clone()).collect();
    let gone: Vec<ProviderHandle> = {
        let mut running = shared.providers();
        let gone: Vec<Ident> = running.keys().filter(|name| !names.contains(*name)).cloned().collect();
        gone.iter().filter_map(|name| running.remove(name)).collect()
    };
    for handle in gone {
        handle.end().await;
    }
    for setup in wanted {
        let name = setup.name().clone();
        let old = shared.providers().get(&name).cloned();
        if let Some(old) = old {
            if old.setup.is_like(&setup) {
                continue;
            }
            old.end().await;
        }
        let handle = ProviderHandle::start(shared, setup).await?;
        shared.providers().insert(name, handle);
    }
    Ok(())
}

async fn sources(shared: &Arc<Shared>, wanted: Vec<SourceSetup>) {
    let names: HashSet<Ident> = wanted.iter().map(|setup| setup.source.name().clone()).collect();
    let gone: Vec<SourceHandle> = {
        let mut running = shared.sources();
        let gone: Vec<Ident> = running.keys().filter(|name| !names.contains(*name)).cloned().collect();
        gone.iter().filter_map(|name| running.remove(name)).collect()
    };
    for handle in gone {
        handle.end().await;
    }
    for setup in wanted {
        let name = setup.source.name().clone();
        let old = shared.sources().get(&name).cloned();
        if let Some(old) = old {
            if old.setup.is_like(&setup) {
                continue;
            }
            old.end().await;
        }
        let handle = SourceHandle::start(shared, setup);
        shared.sources().insert(name, handle);
    }
}

/// Providers that the store knows and the configuration does not.
pub(super) async fn detached(shared: &Shared) -> Result<(), EngineError> {
    let shelf = shared.shelf("reader");
    let running: HashSet<String> = shared.providers().keys().map(ToString::to_string).collect();
    let mut found = Vec::new();
    for (name, known) in shelf.all::<Known>(keys::PROVIDER).await? {
        let Ok(ident) = name.parse::<Ident>() else { continue };
        if running.contains(&name) {
            continue;
        }
        let owned = load_owned(&shelf, &ident).await?;
        if owned.is_empty() {
            continue;
        }
        let reasons = owned.workloads().map(|(source, id)| (source.clone(), id.clone())).collect();
        let Known { kind, server, .. } = known;
        found.push(DetachedStatus { name: ident, kind, server, owned: owned.len(), reasons });
    }
    *shared.detached.lock().unwrap_or_else(PoisonError::into_inner) = found;
    Ok(())
}
