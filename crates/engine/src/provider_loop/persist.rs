//! Loads and stores the state of a provider's loop: guards, and what its passes remember.

use std::{collections::BTreeMap, sync::Arc};

use netstead_model::Ident;
use netstead_plan::{Guard, OwnerId};
use netstead_store::{MAX_BYTES, Write};
use serde::{Deserialize, Serialize};

use super::{Nudges, Pass, PublishedSnapshot, Snapshot, StepOf, Worker};
use crate::{
    EngineError,
    engine_state::EngineState,
    fenced_store::{FencedStore, entries},
    history,
    keys::{self, Class},
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

impl<P: Pass> Worker<P> {
    pub(super) async fn load(
        shared: Arc<EngineState>,
        setup: P::Setup,
        nudges: Arc<Nudges>,
    ) -> Result<Self, EngineError> {
        let about = P::describe(&setup);
        let name = about.name.clone();
        let fenced_store = shared.fenced_store(&format!("provider/{name}"));
        if let Some(was) = about.was.as_ref().filter(|was| **was != name) {
            rename_provider(&shared, P::CLASS, &fenced_store, was, &name).await?;
        }
        let guard: Guard = fenced_store.get(&P::CLASS.key(keys::GUARD, &name)).await?.unwrap_or_default();
        let plans = history::readable_plans::<StepOf<P>>(P::CLASS, &fenced_store, &name).await?;
        let plans = plans.into_iter().map(|(generation, plan)| (generation, plan.steps.len())).collect();
        let place = P::CLASS.key(keys::PROVIDER, &name);
        let stored: Option<StoredProvider> = fenced_store.get(&place).await?;
        let owner = stored.as_ref().and_then(|stored| stored.owner.clone());
        let mut known = StoredProvider { kind: about.kind.to_owned(), server: about.server.clone(), owner };
        let state = P::load(&shared, &setup, &fenced_store, &mut known).await?;
        if stored.is_none_or(|stored| stored != known) {
            fenced_store.put(vec![Write::Put(place.into(), keys::encode(&known))]).await?;
        }
        let snapshot = Arc::new(PublishedSnapshot::default());
        let begun = shared.clock.monotonic();
        snapshot.update(|seen: &mut Snapshot<P>| {
            state.publish(&mut seen.view);
            seen.guard = Arc::new(guard.clone());
            seen.succeeded = Some(begun);
        });
        Ok(Self {
            shared,
            setup,
            about,
            fenced_store,
            snapshot,
            nudges,
            guard,
            guard_dirty: false,
            poison: BTreeMap::new(),
            plans,
            renamed: Arc::default(),
            failures: 0,
            not_before: None,
            next_end: None,
            state,
        })
    }

    /// Makes the store know what is ours and what the guards remember. What fails stays to be written.
    pub(crate) async fn persist(&mut self) -> Result<(), EngineError> {
        let provider = self.name().clone();
        let mut writes = self.state.writes(&provider);
        if self.guard_dirty {
            let key = P::CLASS.key(keys::GUARD, &provider);
            writes.push(Write::Put(key.into(), encode_guard(&self.guard)));
            writes.push(self.shared.time.write());
        }
        self.fenced_store.put(writes).await?;
        self.state.persisted();
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
    class: Class,
    fenced_store: &FencedStore,
    was: &Ident,
    name: &Ident,
) -> Result<(), EngineError> {
    let known = class.key(keys::PROVIDER, was);
    let Some(before) = fenced_store.get::<StoredProvider>(&known).await? else { return Ok(()) };
    fenced_store.put(vec![Write::Put(class.key(keys::PROVIDER, name).into(), keys::encode(&before))]).await?;
    for prefix in [keys::OWNED, keys::PLAN, keys::LATELY] {
        let (from, to) = (class.key(prefix, &format!("{was}/")), class.key(prefix, &format!("{name}/")));
        let mut writes = Vec::new();
        for entry in entries(&*shared.store, &from).await? {
            let rest = entry.key.get(from.len()..).unwrap_or_default();
            writes.push(Write::Put([to.as_bytes(), rest].concat(), entry.value));
        }
        fenced_store.put(writes).await?;
    }
    if let Some(guard) = fenced_store.get::<Guard>(&class.key(keys::GUARD, was)).await? {
        fenced_store.put(vec![Write::Put(class.key(keys::GUARD, name).into(), encode_guard(&guard))]).await?;
    }
    let mut gone = vec![Write::Delete(class.key(keys::GUARD, was).into()), Write::Delete(known.into())];
    for prefix in [keys::OWNED, keys::PLAN, keys::LATELY] {
        let old = entries(&*shared.store, &class.key(prefix, &format!("{was}/"))).await?;
        gone.splice(0..0, old.into_iter().map(|entry| Write::Delete(entry.key)));
    }
    fenced_store.put(gone).await?;
    tracing::info!(%was, %name, "A provider has another name now; what was ours there still is.");
    Ok(())
}
