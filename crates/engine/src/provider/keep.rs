//! What a provider's passes keep in the store.

use std::{collections::BTreeMap, sync::Arc};

use netstead_model::{Ident, Name};
use netstead_plan::{Guard, Owned, OwnedValue, OwnerId};
use netstead_store::{MAX_BYTES, Write};
use serde::{Deserialize, Serialize};

use super::{Lately, Nudges, Outlook, Seen, Worker};
use crate::{
    EngineError, ProviderSetup, history, keys,
    shared::Shared,
    shelf::{Shelf, entries},
};

/// That a provider exists, for the time when it is no longer configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) kind: String,
    pub(crate) server: String,
    /// The owner id that its marks carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<OwnerId>,
}

/// Our values on a provider, as the store has them.
pub(crate) async fn load_owned(shelf: &Shelf, provider: &Ident) -> Result<Owned, EngineError> {
    let prefix = format!("{}{provider}/", keys::OWNED);
    let mut owned = Owned::default();
    for (name, values) in shelf.all::<Vec<OwnedValue>>(&prefix).await? {
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
        shared: Arc<Shared>,
        setup: ProviderSetup,
        nudges: Arc<Nudges>,
    ) -> Result<Self, EngineError> {
        let mut settings = setup.effective();
        let name = settings.provider.clone();
        let shelf = shared.shelf(&format!("provider/{name}"));
        if let Some(was) = setup.was.as_ref().filter(|was| **was != name) {
            rename(&shared, &shelf, was, &name).await?;
        }
        let owned = Arc::new(load_owned(&shelf, &name).await?);
        let guard: Guard = shelf.get(&format!("{}{name}", keys::GUARD)).await?.unwrap_or_default();
        let plans = history::plans(&shelf, &name).await?;
        let plans = plans.into_iter().map(|(generation, plan)| (generation, plan.steps.len())).collect();
        let place = format!("{}{name}", keys::PROVIDER);
        let stored: Option<Known> = shelf.get(&place).await?;
        if !setup.fixed_owner {
            // The id its marks carry; a new provider has that of the installation, as it is by now.
            let owner = match stored.as_ref().and_then(|stored| stored.owner.clone()) {
                None => shelf.get(keys::OWNER).await?,
                owner => owner,
            };
            settings.owner = owner.unwrap_or(settings.owner);
        }
        let (kind, server) = (setup.provider.kind().to_owned(), setup.provider.server());
        let known = Known { kind, server, owner: Some(settings.owner.clone()) };
        if stored.is_none_or(|stored| stored != known) {
            shelf.put(vec![Write::Put(place.into(), keys::encode(&known))]).await?;
        }
        let settings = Arc::new(settings);
        let outlook = Arc::new(Outlook::default());
        let begun = shared.clock.monotonic();
        outlook.change(|seen| {
            seen.owned = owned.clone();
            seen.guard = Arc::new(guard.clone());
            seen.succeeded = Some(begun);
        });
        let seen = Seen::new(begun);
        let lately = Lately::load(&shelf, &name, &owned, shared.now().millis).await?;
        let (dirty, poison) = (std::collections::BTreeSet::new(), BTreeMap::new());
        let (guard_dirty, written, renamed) = (false, std::collections::BTreeSet::new(), Arc::default());
        Ok(Self {
            shared,
            setup,
            settings,
            shelf,
            outlook,
            nudges,
            owned,
            guard,
            dirty,
            guard_dirty,
            seen,
            poison,
            lately,
            plans,
            written,
            renamed,
            failures: 0,
        })
    }

    /// Makes the store know what is ours and what the guards remember. What fails stays to be written.
    pub(super) async fn keep(&mut self) -> Result<(), EngineError> {
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
        writes.extend(self.lately.writes(&provider));
        if self.guard_dirty {
            writes.push(Write::Put(format!("{}{provider}", keys::GUARD).into(), fitting(&self.guard)));
            writes.push(self.shared.time.write());
        }
        self.shelf.put(writes).await?;
        self.dirty.clear();
        self.lately.kept();
        self.guard_dirty = false;
        Ok(())
    }
}

/// The guard's bytes. What a person could approve is left out, the oldest first, if it would be too much for the store:
/// the next pass offers anew what is still parked.
fn fitting(guard: &Guard) -> Vec<u8> {
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
async fn rename(shared: &Shared, shelf: &Shelf, was: &Ident, name: &Ident) -> Result<(), EngineError> {
    let known = format!("{}{was}", keys::PROVIDER);
    let Some(before) = shelf.get::<Known>(&known).await? else { return Ok(()) };
    shelf.put(vec![Write::Put(format!("{}{name}", keys::PROVIDER).into(), keys::encode(&before))]).await?;
    for prefix in [keys::OWNED, keys::PLAN, keys::LATELY] {
        let (from, to) = (format!("{prefix}{was}/"), format!("{prefix}{name}/"));
        let mut writes = Vec::new();
        for entry in entries(&*shared.store, &from).await? {
            let rest = entry.key.get(from.len()..).unwrap_or_default();
            writes.push(Write::Put([to.as_bytes(), rest].concat(), entry.value));
        }
        shelf.put(writes).await?;
    }
    if let Some(guard) = shelf.get::<Guard>(&format!("{}{was}", keys::GUARD)).await? {
        shelf.put(vec![Write::Put(format!("{}{name}", keys::GUARD).into(), fitting(&guard))]).await?;
    }
    let mut gone = vec![Write::Delete(format!("{}{was}", keys::GUARD).into()), Write::Delete(known.into())];
    for prefix in [keys::OWNED, keys::PLAN, keys::LATELY] {
        let old = entries(&*shared.store, &format!("{prefix}{was}/")).await?;
        gone.splice(0..0, old.into_iter().map(|entry| Write::Delete(entry.key)));
    }
    shelf.put(gone).await?;
    tracing::info!(%was, %name, "A provider has another name now; what was ours there still is.");
    Ok(())
}
