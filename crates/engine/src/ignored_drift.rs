//! Drift that a person chose to ignore, with the reason.
//!
//! A choice is about one value at one name on one server, as it was shown. It ends by itself when a pass that read everything
//! does not find that value any more: another one is news.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock, RwLockReadGuard},
};

use jiff::Timestamp;
use netstead_model::{Ident, Name, RecordData, RecordType};
use netstead_plan::{Drift, DriftKind};
use netstead_store::Write;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::{EngineError, fenced_store::FencedStore, keys};

/// Values at one name of one provider that may be ignored.
const MOST: usize = 100;

/// A value of others that is no longer reported as drift.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoredDrift {
    pub provider: Ident,
    pub name: Name,
    pub value: RecordData,
    pub kind: DriftKind,
    pub reason: String,
    pub by: String,
    pub at: Timestamp,
}

impl IgnoredDrift {
    fn is(&self, drift: &Drift) -> bool {
        self.name == drift.name && self.kind == drift.kind && self.value == drift.value
    }
}

type ByPlace = BTreeMap<(Ident, Name), Vec<IgnoredDrift>>;

/// All of it, as the store has it.
#[derive(Debug)]
pub(crate) struct IgnoredDrifts {
    fenced_store: FencedStore,
    all: RwLock<ByPlace>,
    /// Changes follow one another, in the store as here.
    write_lock: Mutex<()>,
}

impl IgnoredDrifts {
    pub(crate) async fn load(fenced_store: FencedStore) -> Result<Self, EngineError> {
        let stored = fenced_store.all::<Vec<IgnoredDrift>>(keys::IGNORED).await?;
        let mut all = ByPlace::new();
        for one in stored.into_iter().flat_map(|(_, values)| values) {
            all.entry((one.provider.clone(), one.name.clone())).or_default().push(one);
        }
        Ok(Self { fenced_store, all: RwLock::new(all), write_lock: Mutex::new(()) })
    }

    /// Everything that is ignored, by provider and name.
    pub(crate) fn all(&self) -> Vec<IgnoredDrift> {
        self.read().values().flatten().cloned().collect()
    }

    /// Whether this drift of a provider is ignored.
    pub(crate) fn covers(&self, provider: &Ident, drift: &Drift) -> bool {
        let all = self.read();
        all.get(&(provider.clone(), drift.name.clone())).is_some_and(|at| at.iter().any(|one| one.is(drift)))
    }

    /// Ignores these; what is ignored already gets the new reason.
    pub(crate) async fn add(&self, new: &[IgnoredDrift]) -> Result<(), EngineError> {
        self.change(|all| {
            for one in new {
                let at = all.entry((one.provider.clone(), one.name.clone())).or_default();
                at.retain(|old| (old.kind, &old.value) != (one.kind, &one.value));
                at.push(one.clone());
                at.drain(..at.len().saturating_sub(MOST));
            }
        })
        .await
    }

    /// Reports what is ignored at a name again. Returns what that is.
    pub(crate) async fn remove(
        &self,
        provider: Option<&Ident>,
        name: &Name,
        kind: Option<RecordType>,
    ) -> Result<Vec<IgnoredDrift>, EngineError> {
        let is_meant = |one: &IgnoredDrift| {
            one.name == *name
                && provider.is_none_or(|provider| *provider == one.provider)
                && kind.is_none_or(|kind| kind == one.value.kind())
        };
        let meant: Vec<IgnoredDrift> = self.all().into_iter().filter(|one| is_meant(one)).collect();
        self.change(|all| all.values_mut().for_each(|at| at.retain(|one| !is_meant(one)))).await?;
        Ok(meant)
    }

    /// Ends what a pass that read everything of a provider did not find.
    pub(crate) async fn end_missing(&self, provider: &Ident, found: &[Drift]) -> Result<(), EngineError> {
        let is_over =
            |one: &IgnoredDrift| one.provider == *provider && !found.iter().any(|drift| one.is(drift));
        if !self.read().values().flatten().any(is_over) {
            return Ok(());
        }
        self.change(|all| all.values_mut().for_each(|at| at.retain(|one| !is_over(one)))).await
    }

    /// Changes the list in the store, then here.
    async fn change(&self, change: impl FnOnce(&mut ByPlace)) -> Result<(), EngineError> {
        let _turn = self.write_lock.lock().await;
        let before = self.read().clone();
        let mut after = before.clone();
        change(&mut after);
        after.retain(|_, at| !at.is_empty());
        let mut writes: Vec<Write> = before
            .keys()
            .filter(|place| !after.contains_key(place))
            .map(|place| Write::Delete(key(place)))
            .collect();
        let changed = after.iter().filter(|(place, at)| before.get(place) != Some(at));
        writes.extend(changed.map(|(place, at)| Write::Put(key(place), keys::encode(at))));
        self.fenced_store.put(writes).await?;
        *self.all.write().unwrap_or_else(PoisonError::into_inner) = after;
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, ByPlace> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key((provider, name): &(Ident, Name)) -> Vec<u8> {
    format!("{}{provider}/{name}", keys::IGNORED).into_bytes()
}
