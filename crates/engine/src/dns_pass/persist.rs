//! Loads and stores what the passes of a DNS server remember: owned values, and removed values.

use std::{collections::BTreeSet, sync::Arc};

use netstead_model::{Ident, Name};
use netstead_plan::{Owned, OwnedValue};
use netstead_store::Write;

use super::{DnsPass, RecentlyRemoved, ZoneCache};
use crate::{
    EngineError, ProviderSetup, engine_state::EngineState, fenced_store::FencedStore, keys,
    provider_loop::StoredProvider,
};

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

pub(super) async fn load(
    shared: &EngineState,
    setup: &ProviderSetup,
    fenced_store: &FencedStore,
    stored: &mut StoredProvider,
) -> Result<DnsPass, EngineError> {
    let mut settings = setup.effective();
    let name = settings.provider.clone();
    let owned = Arc::new(load_owned(fenced_store, &name).await?);
    if !setup.fixed_owner {
        // The id its marks carry; a new provider has that of the installation, as it is by now.
        let owner = match stored.owner.take() {
            None => fenced_store.get(keys::OWNER).await?,
            owner => owner,
        };
        settings.owner = owner.unwrap_or(settings.owner);
    }
    stored.owner = Some(settings.owner.clone());
    let recently_removed = RecentlyRemoved::load(fenced_store, &name, &owned, shared.now().millis).await?;
    Ok(DnsPass {
        settings: Arc::new(settings),
        owned,
        desired: Arc::default(),
        dirty: BTreeSet::new(),
        zone_cache: ZoneCache::new(shared.clock.monotonic()),
        recently_removed,
        written: BTreeSet::new(),
    })
}

impl DnsPass {
    /// The writes that make the store know what is ours.
    pub(super) fn store_writes(&self, provider: &Ident) -> Vec<Write> {
        let mut writes: Vec<Write> = Vec::new();
        for name in &self.dirty {
            let key = keys::owned(provider, name);
            let values = self.owned.of(name);
            writes.push(if values.is_empty() {
                Write::Delete(key)
            } else {
                Write::Put(key, keys::encode(&values))
            });
        }
        writes.extend(self.recently_removed.writes(provider));
        writes
    }
}
