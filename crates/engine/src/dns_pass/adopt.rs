//! Adopts values on a server that are not ours yet, because an operator says so (`adopt`, `recover`).

mod find;

use std::sync::Arc;

use netstead_model::{Ident, Name, RecordData, RecordType};
use netstead_plan::{
    Guard, Owned, OwnedValue, OwnerId, Plan, Settings,
    marks::{Tool, external_dns::Naming},
};
use netstead_store::Write;

use super::DnsPass;
use crate::{
    EngineError,
    history::{EngineEvent, EngineEventKind},
    keys,
    provider_loop::{PassReport, Stopped, StoredProvider, Worker},
};

/// What is taken over.
#[derive(Debug, Clone)]
pub enum Adoption {
    /// Everything at a name, or its records of one type.
    Name { name: Name, kind: Option<RecordType> },
    /// What the marks of another tool say is that tool's: of all of them or of one instance, everywhere or in one zone.
    Tool { tool: Tool, id: Option<String>, naming: Naming, zone: Option<Name> },
    /// What the marks of an installation of Netstead say is that one's. From now on it is this one.
    Marks(OwnerId),
}

/// What was taken over on one provider, or would be.
#[derive(Debug, Clone)]
pub struct AdoptionReport {
    pub provider: Ident,
    pub values: Vec<AdoptedValue>,
    /// What was looked at and left.
    pub left: Vec<LeftValue>,
    /// What would change then; only if that was all that was asked for.
    pub plan: Option<Arc<Plan>>,
    /// The pass that followed.
    pub report: Option<PassReport>,
    /// Why nothing was done here.
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedValue {
    pub name: Name,
    pub data: RecordData,
    /// Whose it was, as far as marks say.
    pub by: Option<String>,
}

/// Something that stays foreign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftValue {
    pub name: Name,
    pub data: Option<RecordData>,
    /// One sentence without its full stop.
    pub why: String,
}

/// What a look at the server found.
#[derive(Debug, Default)]
struct AdoptionCandidates {
    values: Vec<AdoptedValue>,
    left: Vec<LeftValue>,
    /// What becomes ours: the values, and marks of other tools that go.
    puts: Vec<(Name, OwnedValue)>,
}

/// What a take changes, for taking it back.
struct Before {
    owned: Arc<Owned>,
    settings: Arc<Settings>,
    guard: Guard,
}

impl AdoptionReport {
    pub(crate) fn failed(provider: Ident, error: String) -> Self {
        let (values, left, plan, report) = (Vec::new(), Vec::new(), None, None);
        Self { provider, values, left, plan, report, error: Some(error) }
    }
}

impl Worker<DnsPass> {
    pub(super) async fn adopt_values(
        &mut self,
        take: &Adoption,
        dry: bool,
        by: &str,
    ) -> Result<AdoptionReport, EngineError> {
        let name = self.name().clone();
        let stopped = |stopped: Stopped| EngineError::Server { name: name.clone(), reason: stopped.reason };
        self.rename_sources();
        self.persist().await?;
        let AdoptionCandidates { values, left, puts } =
            self.find_adoptable(take).await.map_err(|error| stopped(error.into()))?;
        let before = Before {
            owned: self.state.owned.clone(),
            settings: self.state.settings.clone(),
            guard: self.guard.clone(),
        };
        let mut taken =
            AdoptionReport { provider: name.clone(), values, left, plan: None, report: None, error: None };
        for (at, value) in &puts {
            Arc::make_mut(&mut self.state.owned).put(at, value.clone());
        }
        if let Adoption::Marks(owner) = take {
            Arc::make_mut(&mut self.state.settings).owner = owner.clone();
            self.guard.recovered = true;
        }
        if dry {
            let plan = self.would_plan().await;
            self.restore(before);
            taken.plan = Some(Arc::new(plan.map_err(stopped)?));
            return Ok(taken);
        }
        self.state.dirty.extend(puts.into_iter().map(|(at, _)| at));
        self.guard_dirty |= self.guard != before.guard;
        let kept = match take {
            Adoption::Marks(owner) => self.persist_owner(owner).await,
            _ => Ok(()),
        };
        let kept = match kept {
            Ok(()) => self.persist().await,
            refused => refused,
        };
        if let Err(error) = kept {
            self.restore(before);
            self.state.dirty.clear();
            return Err(error);
        }
        self.record_adoption_event(take, &taken, by).await;
        Ok(taken)
    }

    fn restore(&mut self, before: Before) {
        let Before { owned, settings, guard } = before;
        (self.state.owned, self.state.settings, self.guard) = (owned, settings, guard);
    }

    /// The plan as it would be.
    async fn would_plan(&mut self) -> Result<Plan, Stopped> {
        let inventory = self.shared.inventory.borrow().inventory.clone();
        let wanted = self.desired(inventory).await?;
        self.refresh_zones_between_passes(&wanted).await?;
        Ok(self.diff(wanted).await?.0)
    }

    /// The store learns whose marks these are before it learns of the values.
    async fn persist_owner(&self, owner: &OwnerId) -> Result<(), EngineError> {
        let (kind, server) = (self.setup.provider.kind().to_owned(), self.setup.provider.server());
        let known = StoredProvider { kind, server, owner: Some(owner.clone()) };
        let place = format!("{}{}", keys::PROVIDER, self.name());
        self.fenced_store.put(vec![Write::Put(place.into(), keys::encode(&known))]).await
    }

    async fn record_adoption_event(&self, take: &Adoption, taken: &AdoptionReport, by: &str) {
        let (count, provider) = (taken.values.len(), self.name());
        let (what, text) = match take {
            Adoption::Marks(owner) => {
                (EngineEventKind::Recovered, format!("{count} values of `{owner}` on {provider}"))
            }
            Adoption::Tool { tool, .. } => {
                (EngineEventKind::Adopted, format!("{count} values of {tool} on {provider}"))
            }
            Adoption::Name { name, .. } => {
                (EngineEventKind::Adopted, format!("{count} values at {name} on {provider}"))
            }
        };
        tracing::info!(%provider, count, by, "Values were taken over.");
        let event = EngineEvent::new(what, format!("{text} are ours from now on")).on(provider).by(by);
        self.shared
            .record_event(match take {
                Adoption::Name { name, .. } => event.at_name(name),
                Adoption::Tool { zone: Some(zone), .. } => event.in_zone(zone),
                _ => event,
            })
            .await;
    }
}
