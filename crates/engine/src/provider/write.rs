//! Sends the steps of a plan to the server, zone by zone, and counts the outcomes.
//!
//! The store already has the new values as ours (`record_intent`), so a crash at any moment loses no ownership. Two nodes
//! may still believe that they lead. What happens then depends on the server:
//!
//! - A server that keeps a fence refuses a write whose epoch and generation are below the newest it took.
//! - Any other server is protected by asking the store, before and after:
//!
//! 1. Node A asks the store for the epoch: A still leads.
//! 2. Node B raises the epoch, reads the zone and plans from it.
//! 3. A's request reaches the server, which takes it.
//! 4. A asks the store again and learns that it no longer leads. It puts `engine/doubt/<provider>/<zone>`.
//! 5. B watches these keys. It reads the zone again, takes back what A brought (see `late_writes`) and deletes the key.
//!
//! If A dies between 3 and 4, no key is put. B then finds the change by the zone's serial, or when it reads every zone once
//! more after `PATIENCE`.

use std::time::Duration;

use netstead_model::{Fence, Name, ProviderError, Unit, UnitOutcome, WriteRequest};
use netstead_plan::{Domains, Plan, Step};
use netstead_store::Commit;
use tokio::time::{sleep, timeout};

use super::{PassReport, Worker};
use crate::{
    history::{EngineEvent, EngineEventKind},
    keys, metrics,
};

/// How long a write may take. Without an answer by then, it is unknown whether it took effect.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);
/// How often storing a report of a late write is tried.
const DOUBT_TRIES: u32 = 6;
/// The longest wait before a rejected change is tried again, in milliseconds.
const LONGEST_RETRY: u64 = 3_600_000;

/// A unit that the server rejected.
#[derive(Debug, Clone)]
pub(super) struct Poison {
    unit: Unit,
    pub(super) reason: String,
    tries: u32,
    /// Engine time at which it is tried again.
    next: u64,
}

impl Worker {
    /// Removes steps from a plan that must wait: those in paused zones, and those the server rejected a short time ago.
    pub(super) fn hold_back(&mut self, plan: &mut Plan) {
        let now = self.shared.now();
        let paused = self.shared.pauses.of(self.name(), now).is_some();
        let current: std::collections::BTreeSet<(&Name, &Name)> =
            plan.steps.iter().map(|step| (&step.zone, &step.unit.name)).collect();
        self.poison.retain(|(zone, name), _| current.contains(&(zone, name)));
        let (pauses, provider) = (&self.shared.pauses, self.name().clone());
        plan.steps.retain(|step| {
            let place = (step.zone.clone(), step.unit.name.clone());
            let poison =
                self.poison.get(&place).filter(|poison| poison.unit == step.unit && now.millis < poison.next);
            !paused && poison.is_none() && !pauses.holds_zone(&provider, &step.zone, now)
        });
        if plan.steps.is_empty() {
            plan.generation = self.guard.generation;
        }
    }

    /// Writes zone by zone. Returns the outcome of every step, `None` where it is unknown.
    pub(super) async fn write(&mut self, plan: &Plan, report: &mut PassReport) -> Vec<Option<UnitOutcome>> {
        let mut outcomes: Vec<Option<UnitOutcome>> = Vec::with_capacity(plan.steps.len());
        for group in plan.steps.chunk_by(|one, other| one.zone == other.zone) {
            let Some(zone) = group.first().map(|step| step.zone.clone()) else { continue };
            let units: Vec<Unit> = group.iter().map(|step| step.unit.clone()).collect();
            let answer = self.write_zone(&zone, units, plan.generation).await;
            match answer {
                Ok(answer) => {
                    self.note_written(&zone, group, &answer);
                    self.written.insert(zone.clone());
                    let mut answer = answer.into_iter();
                    outcomes.extend(group.iter().map(|_| answer.next()));
                }
                Err(error) => {
                    self.zone_cache.mark_doubtful(&zone);
                    tracing::warn!(provider = %self.name(), %zone, %error, "A zone could not be changed.");
                    self.record_unwritten_event(&zone, plan.generation, &error).await;
                    if let ProviderError::Late { .. } = error {
                        report.again |= self.catch_up_with_fence(&zone, plan.generation).await;
                    }
                    if let ProviderError::Busy { retry_after, .. } = &error {
                        report.retry_after = *retry_after;
                    }
                    report.zone_errors.push((zone, error.to_string()));
                    outcomes.extend(group.iter().map(|_| None));
                }
            }
        }
        self.count_outcomes(plan, &outcomes, report);
        outcomes
    }

    /// Puts applied changes into the zone cache, so that the zone need not be read back. After an unexpected outcome the zone
    /// is marked to be read before the next plan.
    fn note_written(&mut self, zone: &Name, group: &[Step], answer: &[UnitOutcome]) {
        let sure = |outcome: &UnitOutcome| !matches!(outcome, UnitOutcome::Changed);
        if answer.len() != group.len() || !answer.iter().all(sure) {
            return self.zone_cache.mark_doubtful(zone);
        }
        let taken = group.iter().zip(answer).filter(|(_, outcome)| **outcome == UnitOutcome::Applied);
        self.zone_cache.apply_written(zone, taken.flat_map(|(step, _)| &step.unit.changes));
    }

    /// Records an event for a write that came late or got no clear answer.
    async fn record_unwritten_event(&self, zone: &Name, generation: u64, error: &ProviderError) {
        let (what, text) = match error {
            ProviderError::Late { .. } => {
                (EngineEventKind::Late, format!("{error}: something newer was written before"))
            }
            ProviderError::Unknown { .. } => {
                let text = format!("nobody knows whether {zone} has generation {generation}: {error}");
                (EngineEventKind::Doubtful, text)
            }
            _ => return,
        };
        self.shared.record_event(EngineEvent::new(what, text).on(self.name()).in_zone(zone)).await;
    }

    async fn write_zone(
        &self,
        zone: &Name,
        units: Vec<Unit>,
        generation: u64,
    ) -> Result<Vec<UnitOutcome>, ProviderError> {
        let provider = &self.setup.provider;
        let server = provider.server();
        let fenced = provider.capabilities().fenced;
        if self.shared.lead.is_deposed() {
            return Err(ProviderError::Late { server, zone: zone.clone() });
        }
        if !fenced {
            self.check_leadership(zone).await?;
        }
        let fence = Fence { owner: self.settings.owner.to_string(), epoch: self.fence_epoch(), generation };
        let request = WriteRequest { units, fence };
        let answer = timeout(PATIENCE, provider.write(zone, &request)).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", PATIENCE.as_secs());
            Err(ProviderError::Unknown { server, reason })
        });
        if !fenced && self.check_leadership(zone).await.is_err() && self.shared.lead.is_deposed() {
            self.report_late_write(zone).await;
        }
        answer
    }

    /// Asks the store whether this node still leads. Called before and after a request that the server cannot refuse.
    pub(super) async fn check_leadership(&self, zone: &Name) -> Result<(), ProviderError> {
        let server = self.setup.provider.server();
        match self.shared.lead.still_leads(&*self.shared.store).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ProviderError::Late { server, zone: zone.clone() }),
            Err(error) => {
                let reason = format!("the store does not say who leads: {error}");
                Err(ProviderError::Unreachable { server, reason })
            }
        }
    }

    /// Stores that this node wrote to `zone` after it lost the lead, so that the new leader reads the zone again.
    async fn report_late_write(&self, zone: &Name) {
        let key = format!("{}{}/{zone}", keys::DOUBT, self.name());
        let at = self.shared.clock.wall();
        self.shared.count_late(self.name());
        tracing::warn!(provider = %self.name(), %zone, "A write ended after another node had taken the lead; it is told to look.");
        // Without the epoch as a condition: this node no longer leads.
        for trial in 0..DOUBT_TRIES {
            let told = self.shared.store.commit(Commit::new().put(key.clone(), keys::encode(&at))).await;
            let Err(error) = told else { return };
            if trial + 1 == DOUBT_TRIES {
                tracing::error!(%error, %zone, "A late write could not be told to the new leader.");
            }
            sleep(Duration::from_millis(100 << trial)).await;
        }
    }

    /// Counts the outcomes of the steps, and remembers the rejected ones.
    fn count_outcomes(&mut self, plan: &Plan, outcomes: &[Option<UnitOutcome>], report: &mut PassReport) {
        let (now, domains) = (self.shared.now(), self.shared.domains());
        for (step, outcome) in plan.steps.iter().zip(outcomes) {
            let place = (step.zone.clone(), step.unit.name.clone());
            let zone = metrics::zone_label(&self.setup, |zone| named(&domains, zone), &step.zone);
            metrics::count_outcome(&mut report.tallies, zone, step, outcome.as_ref());
            match outcome {
                Some(UnitOutcome::Applied) => {
                    report.applied += 1;
                    self.poison.remove(&place);
                }
                Some(UnitOutcome::Changed) => report.changed += 1,
                Some(UnitOutcome::Rejected { reason }) => {
                    report.rejected += 1;
                    let before = self.poison.get(&place).filter(|poison| poison.unit == step.unit);
                    let tries = before.map_or(0, |poison| poison.tries + 1);
                    let next = now.millis + (60_000u64 << tries.min(10)).min(LONGEST_RETRY);
                    tracing::warn!(name = %step.unit.name, reason, "The server rejects a change; it is tried again later.");
                    let poison = Poison { unit: step.unit.clone(), reason: reason.clone(), tries, next };
                    self.poison.insert(place, poison);
                }
                None => report.unknown += 1,
            }
        }
        // What was written is confirmed by the serial or read back; what had changed is planned anew.
        report.again |= report.applied + report.changed > 0;
    }
}

/// Whether the configuration has a table for exactly this domain.
fn named(domains: &Domains, zone: &Name) -> bool {
    domains.0.iter().any(|rule| rule.domain == *zone)
}
