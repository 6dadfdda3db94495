//! Sends the steps of a plan to the server, zone by zone, and counts the outcomes.
//!
//! The store already has the new values as ours (`record_intent`), so a crash at any moment loses no ownership. Two nodes
//! may still believe that they lead. What happens then depends on the server:
//!
//! - A server that keeps a fence refuses a write whose epoch and generation are below the newest it took.
//! - Any other server is protected by asking the store, before and after:
//!
//! 1. Node A asks the store for the epoch, right before its request (the [`WriteGuard`]): A still leads.
//! 2. Node B raises the epoch, reads the zone and plans from it.
//! 3. A's request reaches the server, which takes it.
//! 4. A asks the store again and learns that it no longer leads. It puts `engine/doubt/<provider>/<zone>`.
//! 5. B watches these keys. It reads the zone again, takes back what A brought (see `late_writes`) and deletes the key.
//!
//! One pass writes for at most [`WRITING`]. The guard ends it; what is left is *not tried*, as if it had never been planned.
//!
//! If A dies between 3 and 4, no key is put. B then finds the change by the zone's serial, or when it reads every zone once
//! more after `PATIENCE`.

use std::{collections::BTreeSet, num::NonZeroUsize, sync::Arc, time::Duration};

use netstead_model::{Fence, Name, ProviderError, Unit, UnitOutcome, WriteGuard, WriteReply, WriteRequest};
use netstead_plan::{Domains, Plan, Step};
use netstead_store::Commit;
use tokio::time::{sleep, timeout};

use super::{PassReport, Worker};
use crate::{
    engine_state::EngineState,
    history::{EngineEvent, EngineEventKind},
    keys, metrics,
};

/// How long a write may take. Without an answer by then, it is unknown whether it took effect.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);
/// How long one pass may write. What is left is planned anew, so that pauses, approvals and newer wishes never wait behind a
/// slow server.
const WRITING: Duration = Duration::from_secs(30);
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
        let paused = self.shared.pauses.of(&self.settings, now).is_some();
        let current: BTreeSet<(&Name, &Name)> =
            plan.steps.iter().map(|step| (&step.zone, &step.unit.name)).collect();
        self.poison.retain(|(zone, name), _| current.contains(&(zone, name)));
        let (pauses, provider) = (&self.shared.pauses, Arc::clone(&self.settings));
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

    /// Writes zone by zone, for at most [`WRITING`]. Returns the outcome of every step.
    pub(super) async fn write(&mut self, plan: &Plan, report: &mut PassReport) -> Vec<UnitOutcome> {
        let mut outcomes: Vec<UnitOutcome> = Vec::with_capacity(plan.steps.len());
        let until = self.shared.clock.monotonic().saturating_add(WRITING);
        let most = self.setup.provider.capabilities().most_units.map_or(usize::MAX, NonZeroUsize::get);
        let mut server_stopped = false;
        for group in plan.steps.chunk_by(|one, other| one.zone == other.zone) {
            let Some(zone) = group.first().map(|step| step.zone.clone()) else { continue };
            let mut zone_stopped = false;
            for piece in group.chunks(most.min(group.len())) {
                if server_stopped || zone_stopped {
                    outcomes.extend(piece.iter().map(|_| UnitOutcome::NotTried));
                    continue;
                }
                let reply = self.write_piece(&zone, piece, plan.generation, until).await;
                self.note_written(&zone, piece, &reply);
                if let Some(error) = &reply.stopped {
                    zone_stopped = true;
                    server_stopped = concerns_server(error);
                    self.note_stopped(&zone, plan.generation, error, report).await;
                } else {
                    self.written.insert(zone.clone());
                }
                outcomes.extend(reply.outcomes);
            }
        }
        self.count_outcomes(plan, &outcomes, report);
        outcomes
    }

    /// Puts applied changes into the zone cache, so that the zone need not be read back. Names with an unexpected outcome are
    /// read before the next plan.
    fn note_written(&mut self, zone: &Name, piece: &[Step], reply: &WriteReply) {
        let outcomes = piece.iter().zip(&reply.outcomes);
        let applied = outcomes.clone().filter(|(_, outcome)| **outcome == UnitOutcome::Applied);
        self.zone_cache.apply_written(zone, applied.flat_map(|(step, _)| &step.unit.changes));
        let unsure =
            outcomes.filter(|(_, outcome)| matches!(outcome, UnitOutcome::Changed | UnitOutcome::Unknown));
        let names: BTreeSet<Name> = unsure.flat_map(|(step, _)| step.unit.names()).cloned().collect();
        self.zone_cache.doubt_names(zone, names);
    }

    /// Notes why a write ended before its end, and what follows from that.
    async fn note_stopped(
        &mut self,
        zone: &Name,
        generation: u64,
        error: &ProviderError,
        report: &mut PassReport,
    ) {
        if let ProviderError::OutOfTime { .. } = error {
            report.unfinished = true;
            return;
        }
        tracing::warn!(provider = %self.name(), %zone, %error, "A zone could not be changed.");
        self.record_unwritten_event(zone, generation, error).await;
        match error {
            ProviderError::Late { .. } => {
                self.zone_cache.mark_doubtful(zone);
                report.again |= self.catch_up_with_fence(zone, generation).await;
            }
            ProviderError::Busy { retry_after, .. } => report.retry_after = *retry_after,
            ProviderError::NoSuchZone { .. } => self.zone_cache.mark_doubtful(zone),
            _ => {}
        }
        report.zone_errors.push((zone.clone(), error.to_string()));
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

    async fn write_piece(&self, zone: &Name, piece: &[Step], generation: u64, until: Duration) -> WriteReply {
        let provider = &self.setup.provider;
        let server = provider.server();
        let failed = |error| WriteReply::failed(piece.len(), error);
        if self.shared.lead.is_deposed() {
            return failed(ProviderError::Late { server, zone: zone.clone() });
        }
        let fenced = provider.capabilities().fenced;
        let request = WriteRequest {
            units: piece.iter().map(|step| step.unit.clone()).collect(),
            fence: Fence { owner: self.settings.owner.to_string(), epoch: self.fence_epoch(), generation },
            guard: self.write_guard(zone, fenced, until),
        };
        let answer = timeout(PATIENCE, provider.write(zone, &request)).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", PATIENCE.as_secs());
            Err(ProviderError::Unknown { server: server.clone(), reason })
        });
        if !fenced && self.check_leadership(zone).await.is_err() && self.shared.lead.is_deposed() {
            self.report_late_write(zone).await;
        }
        match answer {
            Ok(reply) if reply.outcomes.len() == piece.len() => reply,
            Ok(reply) => {
                let reason = format!("{} outcomes for {} units", reply.outcomes.len(), piece.len());
                failed(ProviderError::Malformed { server, reason })
            }
            Err(error) => failed(error),
        }
    }

    /// Asked before every request: the time of the pass is not over, and where the server keeps no fence, the store says that
    /// this node still leads.
    fn write_guard(&self, zone: &Name, fenced: bool, until: Duration) -> WriteGuard {
        let (shared, server, zone) = (self.shared.clone(), self.setup.provider.server(), zone.clone());
        WriteGuard::new(move || {
            let (shared, server, zone) = (shared.clone(), server.clone(), zone.clone());
            async move {
                if !fenced {
                    check_leadership(&shared, server.clone(), &zone).await?;
                }
                // Last, because a unit that is half done goes on when only the time is over.
                if shared.clock.monotonic() >= until {
                    Err(ProviderError::OutOfTime { server })
                } else {
                    Ok(())
                }
            }
        })
    }

    /// Asks the store whether this node still leads.
    pub(super) async fn check_leadership(&self, zone: &Name) -> Result<(), ProviderError> {
        check_leadership(&self.shared, self.setup.provider.server(), zone).await
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
    fn count_outcomes(&mut self, plan: &Plan, outcomes: &[UnitOutcome], report: &mut PassReport) {
        let (now, domains) = (self.shared.now(), self.shared.domains());
        for (step, outcome) in plan.steps.iter().zip(outcomes) {
            let place = (step.zone.clone(), step.unit.name.clone());
            let zone = metrics::zone_label(&self.setup, |zone| named(&domains, zone), &step.zone);
            metrics::count_outcome(&mut report.tallies, zone, step, outcome);
            match outcome {
                UnitOutcome::Applied => {
                    report.applied += 1;
                    self.poison.remove(&place);
                }
                UnitOutcome::Changed => report.changed += 1,
                UnitOutcome::Rejected { reason } => {
                    report.rejected += 1;
                    let before = self.poison.get(&place).filter(|poison| poison.unit == step.unit);
                    let tries = before.map_or(0, |poison| poison.tries + 1);
                    let next = now.millis + (60_000u64 << tries.min(10)).min(LONGEST_RETRY);
                    tracing::warn!(name = %step.unit.name, reason, "The server rejects a change; it is tried again later.");
                    let poison = Poison { unit: step.unit.clone(), reason: reason.clone(), tries, next };
                    self.poison.insert(place, poison);
                }
                UnitOutcome::Unknown => report.unknown += 1,
                UnitOutcome::NotTried => report.not_tried += 1,
            }
        }
        // What was written is confirmed by the sign of change or read back; what had changed is planned anew.
        report.again |= report.applied + report.changed > 0;
    }
}

async fn check_leadership(shared: &EngineState, server: String, zone: &Name) -> Result<(), ProviderError> {
    match shared.lead.still_leads(&*shared.store).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(ProviderError::Late { server, zone: zone.clone() }),
        Err(error) => {
            let reason = format!("the store does not say who leads: {error}");
            Err(ProviderError::Unreachable { server, reason })
        }
    }
}

/// Whether the rest of the server need not be tried in this pass.
fn concerns_server(error: &ProviderError) -> bool {
    matches!(
        error,
        ProviderError::Unreachable { .. } | ProviderError::Busy { .. } | ProviderError::OutOfTime { .. }
    )
}

/// Whether the configuration has a table for exactly this domain.
fn named(domains: &Domains, zone: &Name) -> bool {
    domains.0.iter().any(|rule| rule.domain == *zone)
}
