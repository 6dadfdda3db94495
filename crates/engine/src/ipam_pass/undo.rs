//! Takes back what was written to an IPAM system, because an operator says so (`clean`, `rollback`).

use std::sync::Arc;

use netstead_model::ObjectKey;
use netstead_plan::{
    Inventory, Mode,
    ipam::{IpamDesired, IpamInput, IpamPast, IpamPlan, IpamStep, ipam_rollback},
};

use super::IpamPass;
use crate::{
    EngineError, history,
    keys::Class,
    provider_loop::{LoopPlan, PassReport, Stopped, Undo, Undoing, Worker},
};

impl Worker<IpamPass> {
    /// Plans it from the objects that are there now, and unless only that is wanted carries it out, whatever is paused.
    pub(super) async fn undo(&mut self, undo: &Undo, dry: bool) -> Result<Undoing, EngineError> {
        let name = self.name().clone();
        let stopped = |stopped: Stopped| EngineError::Server { name: name.clone(), reason: stopped.reason };
        self.rename_sources();
        self.persist().await?;
        self.read_objects().await.map_err(stopped)?;
        let plan = Arc::new(self.plan_undo(undo).await?);
        let shown = LoopPlan::shared(plan.clone());
        if dry {
            return Ok((shown, None));
        }
        if self.shared.options.dry_run || self.about.mode == Mode::Observe {
            let reason = format!("`{name}` only observes: nothing is written to it");
            return Err(EngineError::Invalid { field: "provider", reason });
        }
        let mut report = PassReport::new(name.clone());
        report.plan = Some(shown.clone());
        self.carry_out(plan, &mut report, true).await.map_err(stopped)?;
        Ok((shown, Some(report)))
    }

    async fn plan_undo(&self, undo: &Undo) -> Result<IpamPlan, EngineError> {
        let name = self.name().clone();
        let stopped = |stopped: Stopped| EngineError::Server { name: name.clone(), reason: stopped.reason };
        let newest = self.shared.inventory.borrow().inventory.clone();
        match undo {
            Undo::All => self.diff_objects(IpamDesired::default(), true).await.map_err(stopped),
            Undo::Source(source) => {
                let mut inventory = (*newest).clone();
                inventory.clean(source);
                let plan = self.plan_with(inventory).await.map_err(stopped)?;
                Ok(limit(plan, |key| key.source == *source, self.guard.generation))
            }
            Undo::Scope(source, scope) => {
                let mut inventory = (*newest).clone();
                inventory.clean_scope(source, scope);
                let plan = self.plan_with(inventory).await.map_err(stopped)?;
                let of_it = |key: &ObjectKey| {
                    let entry = newest.entry(source, &key.workload);
                    key.source == *source && entry.is_some_and(|entry| entry.scope == *scope)
                };
                Ok(limit(plan, of_it, self.guard.generation))
            }
            Undo::To(generation) => {
                let past = self.load_object_past(*generation).await?;
                let (desired, actual, can) =
                    (&IpamDesired::default(), self.state.actual.as_slice(), &*self.state.can);
                let (owned, guard, settings) = (&*self.state.owned, &self.guard, &*self.state.settings);
                let (now, clean) = (self.shared.now(), false);
                let input = IpamInput { desired, actual, can, owned, guard, settings, now, clean };
                Ok(ipam_rollback(&past, &input))
            }
        }
    }

    async fn plan_with(&self, inventory: Inventory) -> Result<IpamPlan, Stopped> {
        let desired = self.desired_objects(Some(Arc::new(inventory))).await?;
        self.diff_objects(desired, false).await
    }

    /// The changes since a generation that took effect for sure, or may have.
    async fn load_object_past(&self, to: u64) -> Result<IpamPast, EngineError> {
        let steps =
            history::steps_since::<IpamStep>(Class::Ipam, &self.fenced_store, self.name(), to).await?;
        let mut past = IpamPast::default();
        for step in &steps {
            past.add(&step.unit);
        }
        Ok(past)
    }
}

/// A plan that removes objects of some keys and does nothing else.
fn limit(mut plan: IpamPlan, meant: impl Fn(&ObjectKey) -> bool, generation: u64) -> IpamPlan {
    plan.steps.retain(|step| meant(&step.unit.key));
    plan.forgotten.retain(&meant);
    plan.kept.retain(|kept| meant(&kept.key));
    (plan.parked, plan.blocked, plan.drift, plan.confirmed) = (None, Vec::new(), Vec::new(), Vec::new());
    if plan.steps.is_empty() {
        plan.generation = generation;
    }
    plan
}
