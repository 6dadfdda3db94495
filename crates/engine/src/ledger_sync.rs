//! Keeps the ledger in step with the sources: which addresses are in use, and the claims that workloads ask for.
//!
//! Both follow the inventory with the caution that names have: only a scope that is seen completely ends anything, only of
//! its own, and only after a grace period. Every pass decides from the inventory and the ledger alone, so a crash, a lost answer or an operator
//! who was faster needs no other path.

mod backend_claims;
mod sightings;
mod workload_claims;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use netstead_ledger::{Ledger, LedgerError};
use netstead_model::{Ident, Key, Scope};
use netstead_plan::{Grace, SourceState};
use tokio::{
    sync::{Mutex, OnceCell},
    time::sleep,
};

use self::{sightings::SentSightings, workload_claims::SourceClaims};
use crate::{background_task::BackgroundTask, dns_pass::ProviderHandle, engine_state::EngineState};

/// How often the ledger is told anyway: grace runs out without anything changing.
const INTERVAL: Duration = Duration::from_secs(5);
/// One command.
const PATIENCE: Duration = Duration::from_secs(10);

/// The state of the ledger's sync.
#[derive(Debug, Default)]
pub(crate) struct LedgerSync {
    state: Mutex<State>,
    /// Why a workload's address is not claimed, one sentence each.
    troubles: RwLock<BTreeMap<(Ident, Key), Vec<String>>>,
    running: OnceCell<BackgroundTask>,
}

#[derive(Debug, Default)]
struct State {
    /// The sightings last sent to the ledger, by source.
    sightings: BTreeMap<Ident, SentSightings>,
    /// The claims of each source, once they were looked for.
    claims: BTreeMap<Ident, SourceClaims>,
    /// The ledger could not be told; said once.
    silent: bool,
}

impl LedgerSync {
    /// Why the address of a workload is not claimed although it asks for that.
    pub(crate) fn troubles(&self, source: &Ident, id: &Key) -> Vec<String> {
        let troubles = self.troubles.read().unwrap_or_else(PoisonError::into_inner);
        if troubles.is_empty() {
            return Vec::new();
        }
        troubles.get(&(source.clone(), id.clone())).cloned().unwrap_or_default()
    }

    pub(crate) async fn stop_gracefully(&self) {
        if let Some(running) = self.running.get() {
            running.stop_gracefully().await;
        }
    }

    pub(crate) async fn stop_or_abort(&self) {
        if let Some(running) = self.running.get() {
            running.stop_or_abort().await;
        }
    }
}

/// Tells the ledger from now on, if there is one.
pub(crate) fn start(shared: &Arc<EngineState>) {
    if ledger(shared).is_none() {
        return;
    }
    let stop = shared.stop.child_token();
    let (inside, ends) = (Arc::clone(shared), stop.clone());
    let work = async move {
        let mut newest = inside.inventory.subscribe();
        loop {
            tokio::select! {
                () = ends.cancelled() => return,
                () = pass(&inside) => {}
            }
            tokio::select! {
                () = ends.cancelled() => return,
                changed = newest.changed() => if changed.is_err() { return },
                () = sleep(INTERVAL) => {}
            }
        }
    };
    let _ = shared.ledger_sync.running.set(BackgroundTask::start(stop, work));
}

fn ledger(shared: &EngineState) -> Option<&Ledger> {
    let options = &shared.options;
    options.ledger.as_ref().filter(|_| !options.dry_run && !options.only_by_hand)
}

/// Tells the ledger what is not known there yet. What fails is told the next time.
pub(crate) async fn pass(shared: &EngineState) {
    let Some(ledger) = ledger(shared) else { return };
    let mut state = shared.ledger_sync.state.lock().await;
    let done = sync_sources(shared, ledger, &mut state).await;
    match done {
        Ok(troubles) => {
            state.silent = false;
            *shared.ledger_sync.troubles.write().unwrap_or_else(PoisonError::into_inner) = troubles;
        }
        Err(error) => {
            if !state.silent {
                tracing::warn!(%error, "The ledger was not told which addresses are in use; it will be.");
            }
            state.silent = true;
        }
    }
}

async fn sync_sources(
    shared: &EngineState,
    ledger: &Ledger,
    state: &mut State,
) -> Result<BTreeMap<(Ident, Key), Vec<String>>, LedgerError> {
    let (now, grace) = (shared.now(), grace(shared));
    let inventory = shared.inventory.borrow().inventory.clone();
    let renames = shared.renames.read().unwrap_or_else(PoisonError::into_inner).clone();
    let mut troubles = BTreeMap::new();
    for (source, known) in inventory.sources().filter(|(_, known)| !known.commanded) {
        let alive = inventory.alive(source, grace, now);
        let all = known.says_all();
        let told = state.sightings.get(source);
        let unsure = if all || !known.scopes.keys().any(|scope| known.says_all_of(scope)) {
            None
        } else {
            Some(sightings::unsure(ledger, source, known, told).await?)
        };
        if let Some(news) = SentSightings::if_changed(source, &alive, all, unsure, told) {
            sightings::send_sightings(ledger, source, &news).await?;
            state.sightings.insert(source.clone(), news);
        }
        let former: BTreeSet<&Ident> =
            renames.iter().filter(|(_, name)| name == source).map(|(was, _)| was).collect();
        for was in &former {
            // What it saw is seen under its new name now.
            if state.sightings.get(*was) != Some(&SentSightings::nothing()) {
                sightings::send_sightings(ledger, was, &SentSightings::nothing()).await?;
                state.sightings.insert((*was).clone(), SentSightings::nothing());
            }
        }
        if !state.claims.contains_key(source) {
            let found = SourceClaims::load(ledger, source, &former).await?;
            state.claims.insert(source.clone(), found);
        }
        let Some(held) = state.claims.get_mut(source) else { continue };
        let may_end =
            |key: &Key| all || scope_of_claim(source, known, key).is_some_and(|s| known.says_all_of(s));
        for (id, why) in held.sync_claims(ledger, &alive, may_end).await? {
            troubles.entry((source.clone(), id)).or_insert_with(Vec::new).push(why);
        }
    }
    Ok(troubles)
}

/// The scope of the workload for which a claim was made: its key is the source and the workload's id, and perhaps an address.
fn scope_of_claim<'a>(source: &Ident, known: &'a SourceState, key: &Key) -> Option<&'a Scope> {
    let id = key.as_str().strip_prefix(source.as_str())?.strip_prefix('/')?;
    let shorter = || id.rsplit_once('/').and_then(|(id, _)| known.entries.get(id));
    known.entries.get(id).or_else(shorter).map(|entry| &entry.scope)
}

/// The longest grace of all providers: what still has a name still has its address.
fn grace(shared: &EngineState) -> Grace {
    let providers: Vec<ProviderHandle> = shared.providers().values().cloned().collect();
    let graces = providers.iter().map(|provider| provider.setup.settings.graces());
    graces.reduce(Grace::or_longer).unwrap_or_default()
}
