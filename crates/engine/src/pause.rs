//! Pauses: plans are made and shown, and nothing is written.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{PoisonError, RwLock},
};

use jiff::Timestamp;
use netstead_model::{Ident, Name, Span};
use netstead_plan::Now;
use netstead_store::Write;
use serde::{Deserialize, Serialize};

use crate::{EngineError, fenced_store::FencedStore, keys};

/// The scope of a pause.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    All,
    Provider(Ident),
    Zone(Ident, Name),
    /// A pool backend: nothing is asked of it, and nothing is given back to it.
    Backend(Ident),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Provider(provider) => write!(f, "provider/{provider}"),
            Self::Zone(provider, zone) => write!(f, "zone/{provider}/{zone}"),
            Self::Backend(backend) => write!(f, "backend/{backend}"),
        }
    }
}

/// Why and how long something is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub scope: Scope,
    /// Engine time at which it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub by: String,
    pub at: Timestamp,
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "paused by {}", self.by)?;
        self.reason.iter().try_for_each(|reason| write!(f, ": {reason}"))
    }
}

impl Pause {
    /// The command that ends it.
    pub fn resume_command(&self) -> String {
        match &self.scope {
            Scope::All => "netstead resume".to_owned(),
            Scope::Provider(provider) => format!("netstead resume --provider {provider}"),
            Scope::Zone(provider, zone) => format!("netstead resume --provider {provider} --zone {zone}"),
            Scope::Backend(backend) => format!("netstead resume --backend {backend}"),
        }
    }
}

/// All pauses, as the store has them.
#[derive(Debug)]
pub(crate) struct Pauses {
    fenced_store: FencedStore,
    all: RwLock<BTreeMap<Scope, Pause>>,
}

impl Pauses {
    pub(crate) async fn load(fenced_store: FencedStore) -> Result<Self, EngineError> {
        let stored = fenced_store.all::<Pause>(keys::PAUSE).await?;
        let all = stored.into_iter().map(|(_, pause)| (pause.scope.clone(), pause)).collect();
        Ok(Self { fenced_store, all: RwLock::new(all) })
    }

    pub(crate) async fn pause(
        &self,
        scope: Scope,
        lasts: Option<Span>,
        reason: Option<String>,
        by: &str,
        now: Now,
    ) -> Result<(), EngineError> {
        let until = lasts.map(|lasts| now.millis.saturating_add(lasts.as_millis()));
        let pause = Pause { scope: scope.clone(), until, reason, by: by.to_owned(), at: now.at };
        // Nothing is written from now on, even if the store is slow to learn it.
        self.all.write().unwrap_or_else(PoisonError::into_inner).insert(scope.clone(), pause.clone());
        self.fenced_store.put(vec![Write::Put(key(&scope), keys::encode(&pause))]).await
    }

    /// Ends the pause of exactly this scope; [`Scope::All`] ends every one. False if there was none.
    pub(crate) async fn resume(&self, scope: &Scope, now: Now) -> Result<bool, EngineError> {
        let meant: Vec<Pause> = {
            let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
            all.values().filter(|pause| *scope == Scope::All || pause.scope == *scope).cloned().collect()
        };
        self.fenced_store.put(meant.iter().map(|pause| Write::Delete(key(&pause.scope))).collect()).await?;
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        for pause in &meant {
            all.remove(&pause.scope);
        }
        Ok(meant.iter().any(|pause| lasts(pause, now)))
    }

    pub(crate) fn all(&self, now: Now) -> Vec<Pause> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.values().filter(|pause| lasts(pause, now)).cloned().collect()
    }

    /// The pause that holds back the whole provider.
    pub(crate) fn of(&self, provider: &Ident, group: Option<&Ident>, now: Now) -> Option<Pause> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let named = names_of(provider, group).map(|name| Scope::Provider(name.clone()));
        let scopes: Vec<Scope> = std::iter::once(Scope::All).chain(named).collect();
        scopes.iter().filter_map(|scope| all.get(scope)).find(|pause| lasts(pause, now)).cloned()
    }

    /// The pause that holds back this zone alone.
    pub(crate) fn of_zone(
        &self,
        provider: &Ident,
        group: Option<&Ident>,
        zone: &Name,
        now: Now,
    ) -> Option<Pause> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let of = |name: &Ident| all.get(&Scope::Zone(name.clone(), zone.clone()));
        names_of(provider, group).filter_map(of).find(|pause| lasts(pause, now)).cloned()
    }
}

/// The names that mean a provider.
fn names_of<'a>(provider: &'a Ident, group: Option<&'a Ident>) -> impl Iterator<Item = &'a Ident> {
    std::iter::once(provider).chain(group)
}

fn key(scope: &Scope) -> Vec<u8> {
    format!("{}{scope}", keys::PAUSE).into_bytes()
}

fn lasts(pause: &Pause, now: Now) -> bool {
    pause.until.is_none_or(|until| now.millis < until)
}
