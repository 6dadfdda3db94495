//! Adopts values on a server that are not ours yet, because an operator says so (`adopt`, `recover`).

mod find;

use std::sync::Arc;

use netstead_model::{Fields, Ident, Name, ObjectKey, ProviderError, RecordData, RecordType};
use netstead_plan::{
    Guard, Owned, OwnedValue, OwnerId, Plan, Settings,
    ipam::IpamPlan,
    marks::{Tool, external_dns::Naming},
};
use netstead_store::Write;
use tokio::time::timeout;

use super::DnsPass;
use crate::{
    EngineError,
    history::{EngineEvent, EngineEventKind},
    keys,
    provider_loop::{PATIENCE, PassReport, Stopped, StoredProvider, WRITING, Worker},
};

/// The values to take over.
#[derive(Debug, Clone)]
pub enum Adoption {
    /// Everything at a name, or its records of one type.
    Name { name: Name, kind: Option<RecordType> },
    /// Values that belong to another tool by its marks: to all instances or to one, everywhere or in one zone.
    Tool { tool: Tool, id: Option<String>, naming: Naming, zone: Option<Name> },
    /// Values that belong to another installation of Netstead by its marks. From now on they belong to this one.
    Marks(OwnerId),
}

/// Values taken over on one provider, or that would be.
#[derive(Debug, Clone)]
pub struct AdoptionReport {
    pub provider: Ident,
    pub values: Vec<AdoptedValue>,
    /// Values that were looked at and left.
    pub left: Vec<LeftValue>,
    /// Objects, on an IPAM system.
    pub objects: Vec<AdoptedObject>,
    /// The plan after that; only if nothing else was asked for.
    pub plan: Option<Arc<Plan>>,
    /// The same on an IPAM system.
    pub object_plan: Option<Arc<IpamPlan>>,
    /// The pass that followed.
    pub report: Option<PassReport>,
    /// Why nothing was done here.
    pub error: Option<String>,
}

/// An object of an IPAM system, or fields of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedObject {
    pub key: ObjectKey,
    /// The server's id, if the whole object was taken over.
    pub id: Option<String>,
    /// Fields that had another value than ours, with that value.
    pub fields: Fields,
    /// These values stay, and are no longer reported as drift.
    pub kept: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedValue {
    pub name: Name,
    pub data: RecordData,
    /// The former owner, as far as marks say.
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

/// The result of reading the server.
#[derive(Debug, Default)]
struct AdoptionCandidates {
    values: Vec<AdoptedValue>,
    left: Vec<LeftValue>,
    /// Values that become ours, and marks of other tools that are removed.
    puts: Vec<(Name, OwnedValue)>,
    /// Values in a place of the other tool's own, which move to ours.
    moves: Vec<(Name, RecordData)>,
}

/// The state before an adoption, for taking it back.
struct Before {
    owned: Arc<Owned>,
    settings: Arc<Settings>,
    guard: Guard,
}

impl AdoptionReport {
    /// A report of nothing yet.
    pub(crate) fn new(provider: Ident) -> Self {
        let (values, left, objects) = (Vec::new(), Vec::new(), Vec::new());
        let (plan, object_plan, report, error) = (None, None, None, None);
        Self { provider, values, left, objects, plan, object_plan, report, error }
    }

    pub(crate) fn failed(provider: Ident, error: String) -> Self {
        Self { error: Some(error), ..Self::new(provider) }
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
        let AdoptionCandidates { values, left, puts, moves } =
            self.find_adoptable(take).await.map_err(|error| stopped(error.into()))?;
        let before = Before {
            owned: self.state.owned.clone(),
            settings: self.state.settings.clone(),
            guard: self.guard.clone(),
        };
        let mut taken = AdoptionReport { values, left, ..AdoptionReport::new(name.clone()) };
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
        if let (Adoption::Tool { tool, .. }, false) = (take, moves.is_empty()) {
            taken.error = self.move_values(*tool, &moves).await;
        }
        Ok(taken)
    }

    /// Moves values out of the place of another tool, now that the store knows them as ours. Why that did not work, if so.
    async fn move_values(&self, tool: Tool, values: &[(Name, RecordData)]) -> Option<String> {
        let provider = &self.setup.provider;
        let (server, until) = (provider.server(), self.shared.clock.monotonic().saturating_add(WRITING));
        let zone = values.first().map(|(name, _)| name.clone())?;
        let late = ProviderError::Late { server: server.clone(), zone };
        let guard = self.write_guard(&server, Some(late), until);
        let moved = timeout(PATIENCE, provider.move_from(&tool.to_string(), values, &guard)).await;
        let reason = match moved {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("{server} gives no answer within {} s", PATIENCE.as_secs()),
        };
        Some(format!(
            "the values are ours and stand where {tool} put them, because they could not be moved: {reason}; run it again"
        ))
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
