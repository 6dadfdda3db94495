//! Takes back what was written, because an operator says so (`clean`, `rollback`).

use std::{collections::BTreeSet, sync::Arc};

use netstead_model::{Ident, Key, Name, Scope};
use netstead_plan::{Desired, DesiredSet, Input, Mode, Past, Plan, Step, diff, rollback};

use super::DnsPass;
use crate::{
    EngineError, history,
    keys::Class,
    provider_loop::{LoopPlan, PassReport, Stopped, Undo, Undoing, Worker},
};

impl Worker<DnsPass> {
    /// Plans it from what stands there now, and unless only that is wanted carries it out, whatever is paused.
    pub(super) async fn undo(&mut self, undo: &Undo, dry: bool) -> Result<Undoing, EngineError> {
        let name = self.name().clone();
        let stopped = |stopped: Stopped| EngineError::Server { name: name.clone(), reason: stopped.reason };
        self.rename_sources();
        self.persist().await?;
        let mut report = PassReport::new(name.clone());
        let plan = Arc::new(self.plan_undo(undo, &mut report).await?);
        if let Some((zone, error)) = report.zone_errors.first() {
            let reason = format!("{zone} could not be read, so nothing is done: {error}");
            return Err(EngineError::Server { name: name.clone(), reason });
        }
        let shown = Plan::shared(plan.clone());
        if dry {
            return Ok((shown, None));
        }
        if self.shared.options.dry_run || self.state.settings.mode == Mode::Observe {
            let reason = format!("`{name}` only observes: nothing is written to it");
            return Err(EngineError::Invalid { field: "provider", reason });
        }
        report.plan = Some(shown.clone());
        self.carry_out(plan, &mut report, true).await.map_err(stopped)?;
        Ok((shown, Some(report)))
    }

    async fn plan_undo(&mut self, undo: &Undo, report: &mut PassReport) -> Result<Plan, EngineError> {
        let name = self.name().clone();
        let stopped = |stopped: Stopped| EngineError::Server { name: name.clone(), reason: stopped.reason };
        let refused = |error: netstead_model::ProviderError| stopped(error.into());
        match undo {
            Undo::All => {
                report.zone_errors =
                    self.refresh_zones_between_passes(&Desired::default()).await.map_err(refused)?;
                let (desired, actual) = (&Desired::default(), &*self.state.zone_cache.actual);
                let (owned, guard, settings) = (&*self.state.owned, &self.guard, &*self.state.settings);
                let now = self.shared.now();
                Ok(diff(&Input { desired, actual, owned, guard, settings, now, clean: true }))
            }
            Undo::Source(source) => {
                let mut inventory = (*self.shared.inventory.borrow().inventory).clone();
                inventory.clean(source);
                let wanted = self.desired(Arc::new(inventory)).await.map_err(stopped)?;
                report.zone_errors = self.refresh_zones_between_passes(&wanted).await.map_err(refused)?;
                let (plan, _) = self.diff(wanted).await.map_err(stopped)?;
                Ok(limit_to_names(plan, &self.names_brought_by(source), self.guard.generation))
            }
            Undo::Scope(source, scope) => {
                let mut inventory = (*self.shared.inventory.borrow().inventory).clone();
                inventory.clean_scope(source, scope);
                let names = self.names_of_scope(source, scope);
                let wanted = self.desired(Arc::new(inventory)).await.map_err(stopped)?;
                report.zone_errors = self.refresh_zones_between_passes(&wanted).await.map_err(refused)?;
                let (plan, _) = self.diff(wanted).await.map_err(stopped)?;
                Ok(limit_to_names(plan, &names, self.guard.generation))
            }
            Undo::To(generation) => {
                let past = self.load_past(*generation).await?;
                report.zone_errors =
                    self.refresh_zones_between_passes(&desired_at(past.names())).await.map_err(refused)?;
                let (actual, now) = (&self.state.zone_cache.actual, self.shared.now());
                Ok(rollback(&past, actual, &self.state.owned, &self.guard, &self.state.settings, now))
            }
        }
    }

    /// The names at which something is ours because of a source.
    fn names_brought_by(&self, source: &Ident) -> BTreeSet<Name> {
        let of_it = |value: &netstead_plan::OwnedValue| value.reasons.iter().any(|one| one.source == *source);
        let names = self.state.owned.iter().filter(|(_, values)| values.iter().any(of_it));
        names.map(|(name, _)| name.clone()).collect()
    }

    /// The names at which something is ours because of a scope of a source.
    fn names_of_scope(&self, source: &Ident, scope: &Scope) -> BTreeSet<Name> {
        let inventory = self.shared.inventory.borrow().inventory.clone();
        let in_scope = |id: &Key| inventory.entry(source, id).is_some_and(|entry| entry.scope == *scope);
        let of_it = |value: &netstead_plan::OwnedValue| {
            value.reasons.iter().any(|one| one.source == *source && in_scope(&one.workload))
        };
        let names = self.state.owned.iter().filter(|(_, values)| values.iter().any(of_it));
        names.map(|(name, _)| name.clone()).collect()
    }

    /// Loads the changes since a generation. Those that certainly never took effect are left out.
    async fn load_past(&self, to: u64) -> Result<Past, EngineError> {
        let steps = history::steps_since::<Step>(Class::Dns, &self.fenced_store, self.name(), to).await?;
        let mut past = Past::default();
        for step in &steps {
            past.add(&step.unit);
        }
        Ok(past)
    }
}

/// A plan without everything that happens elsewhere than at `names`.
fn limit_to_names(mut plan: Plan, names: &BTreeSet<Name>, generation: u64) -> Plan {
    plan.steps.retain(|step| names.contains(&step.unit.name));
    plan.restated.retain(|(name, _)| names.contains(name));
    plan.forgotten.retain(|(name, _)| names.contains(name));
    plan.kept.retain(|kept| names.contains(&kept.name));
    (plan.parked, plan.blocked, plan.drift) = (None, Vec::new(), Vec::new());
    if plan.steps.is_empty() {
        plan.generation = generation;
    }
    plan
}

/// A desired state that makes the zones of these names be read.
fn desired_at(names: BTreeSet<&Name>) -> Desired {
    let set = |name: &Name| DesiredSet {
        name: name.clone(),
        kind: netstead_model::RecordType::A,
        ttl: 0,
        values: Vec::new(),
        adopt: false,
        share: false,
        proxied: None,
    };
    let mut desired = Desired::default();
    desired.sets.extend(names.into_iter().map(set));
    desired
}
