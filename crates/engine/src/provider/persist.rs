//! Loads and stores the state of a provider's worker: owned values, guards, and removed values.

use std::{collections::BTreeMap, sync::Arc};

use netstead_model::{Ident, Name};
use netstead_plan::{Guard, Owned, OwnedValue, OwnerId};
use netstead_store::{MAX_BYTES, Write};
use serde::{Deserialize, Serialize};

use super::{Nudges, PublishedSnapshot, RecentlyRemoved, Worker, ZoneCache};
use crate::{
    EngineError, ProviderSetup,
    engine_state::EngineState,
    fenced_store::{FencedStore, entries},
    history, keys,
};

/// Stored so that a provider removed from the file can still be shown as detached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredProvider {
    pub(crate) kind: String,
    pub(crate) server: String,
    /// The owner id that its marks carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<OwnerId>,
}

/// Our values on a provider, as the store has them.
pub(crate) async fn load_owned(fenced_store: &FencedStore, provider: &Ident) -> Result<Owned, EngineError> {
    let prefix = format!("{}{provider}/", keys::OWNED);
    let mut owned = Owned::default();
    for (name, values) in fenced_store.all::<Vec<OwnedValue>>(&prefix).await? {
        let name: Name = name.parse().map_err(|error: netstead_model::ParseError| EngineError::Damaged {
            key: format!("{prefix}{name}"),
            reason: error.to_string(),
        })?;
        owned.insert(name, values);
    }
    Ok(owned)
}

impl Worker {
    pub(super) async fn load(
        shared: Arc<EngineState>,
        setup: ProviderSetup,
        nudges: Arc<Nudges>,
    ) -> Result<Self, EngineError> {
        let mut settings = setup.effective();
        let name = settings.provider.clone();
        let fenced_store = shared.fenced_store(&format!("provider/{name}"));
        if let Some(was) = setup.was.as_ref().filter(|was| **was != name) {
            rename_provider(&shared, &fenced_store, was, &name).await?;
        }
        let owned = Arc::new(load_owned(&fenced_store, &name).await?);
        let guard: Guard = fenced_store.get(&format!("{}{name}", keys::GUARD)).await?.unwrap_or_default();
        let plans = history::readable_plans(&fenced_store, &name).await?;
        let plans = plans.into_iter().map(|(generation, plan)| (generation, plan.steps.len())).collect();
        let place = format!("{}{name}", keys::PROVIDER);
        let stored: Option<StoredProvider> = fenced_store.get(&place).await?;
        if !setup.fixed_owner {
            // The id its marks carry; a new provider has that of the installation, as it is by now.
            let owner = match stored.as_ref().and_then(|stored| stored.owner.clone()) {
                None => fenced_store.get(keys::OWNER).await?,
                owner => owner,
            };
            settings.owner = owner.unwrap_or(settings.owner);
        }
        let (kind, server) = (setup.provider.kind().to_owned(), setup.provider.server());
        let known = StoredProvider { kind, server, owner: Some(settings.owner.clone()) };
        if stored.is_none_or(|stored| stored != known) {
            fenced_store.put(vec![Write::Put(place.into(), keys::encode(&known))]).await?;
        }
        let settings = Arc::new(settings);
        let snapshot = Arc::new(PublishedSnapshot::default());
        let begun = shared.clock.monotonic();
        snapshot.update(|seen| {
            seen.owned = owned.clone();
            seen.guard = Arc::new(guard.clone());
            seen.succeeded = Some(begun);
        });
        let seen = ZoneCache::new(begun);
        let lately = RecentlyRemoved::load(&fenced_store, &name, &owned, shared.now().millis).await?;
        let (dirty, poison) = (std::collections::BTreeSet::new(), BTreeMap::new());
        let (guard_dirty, written, renamed) = (false, std::collections::BTreeSet::new(), Arc::default());
        Ok(Self {
            shared,
            setup,
            settings,
            fenced_store,
            snapshot,
            nudges,
            owned,
            guard,
            dirty,
            guard_dirty,
            zone_cache: seen,
            poison,
            recently_removed: lately,
            plans,
            written,
            renamed,
            failures: 0,
            not_before: None,
            next_end: None,
        })
    }

    /// Makes the store know what is ours and what the guards remember. What fails stays to be written.
    pub(super) async fn persist(&mut self) -> Result<(), EngineError> {
        let provider = self.name().clone();
        let mut writes: Vec<Write> = Vec::new();
        for name in &self.dirty {
            let key = keys::owned(&provider, name);
            let values = self.owned.of(name);
            writes.push(if values.is_empty() {
                Write::Delete(key)
            } else {
                Write::Put(key, keys::encode(&values))
            });
        }
        writes.extend(self.recently_removed.writes(&provider));
        if self.guard_dirty {
            writes.push(Write::Put(format!("{}{provider}", keys::GUARD).into(), encode_guard(&self.guard)));
            writes.push(self.shared.time.write());
        }
        self.fenced_store.put(writes).await?;
        self.dirty.clear();
        self.recently_removed.mark_persisted();
        self.guard_dirty = false;
        Ok(())
    }
}

/// The guard's bytes. What a person could approve is left out, the oldest first, if it would be too much for the store:
/// the next pass offers anew what is still parked.
fn encode_guard(guard: &Guard) -> Vec<u8> {
    let most = MAX_BYTES - (64 << 10);
    let mut bytes = keys::encode(guard);
    let mut smaller = guard.clone();
    while bytes.len() > most && !(smaller.offers.is_empty() && smaller.approved.is_empty()) {
        if smaller.offers.is_empty() {
            smaller.approved.remove(0);
        } else {
            smaller.offers.remove(0);
        }
        bytes = keys::encode(&smaller);
    }
    bytes
}

/// Carries everything over to a provider's new name. Done twice it changes nothing.
async fn rename_provider(
    shared: &EngineState,
    fenced_store: &FencedStore,
    was: &Ident,
    name: &Ident,
) -> Result<(), EngineError> {
    let known = format!("{}{was}", keys::PROVIDER);
    let Some(before) = fenced_store.get::<StoredProvider>(&known).await? else { return Ok(()) };
    fenced_store
        .put(vec![Write::Put(format!("{}{name}", keys::PROVIDER).into(), keys::encode(&before))])
        .await?;
    for prefix in [keys::OWNED, keys::PLAN, keys::LATELY] {
        let (from, to) = (format!("{prefix}{was}/"), format!("{prefix}{name}/"));
        let mut writes = Vec::new();
        for entry in entries(&*shared.store, &from).await? {
            let rest = entry.key.get(from.len()..).unwrap_or_default();
            writes.push(Write::Put([to.as_bytes(), rest].concat(), entry.value));
        }
        fenced_store.put(writes).await?;
    }
    if let Some(guard) = fenced_store.get::<Guard>(&format!("{}{was}", keys::GUARD)).await? {
        fenced_store
            .put(vec![Write::Put(format!("{}{name}", keys::GUARD).into(), encode_guard(&guard))])
            .await?;
    }
    let mut gone = vec![Write::Delete(format!("{}{was}", keys::GUARD).into()), Write::Delete(known.into())];
    for prefix in [keys::OWNED, keys::PLAN, keys::LATELY] {
        let old = entries(&*shared.store, &format!("{prefix}{was}/")).await?;
        gone.splice(0..0, old.into_iter().map(|entry| Write::Delete(entry.key)));
    }
    fenced_store.put(gone).await?;
    tracing::info!(%was, %name, "A provider has another name now; what was ours there still is.");
    Ok(())
}
