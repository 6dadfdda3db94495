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

use std::{collections::BTreeSet, num::NonZeroUsize, time::Duration};

use netstead_model::{Fence, Name, ProviderError, UnitOutcome, WriteReply, WriteRequest};
use netstead_plan::{Domains, Plan, Step};
use tokio::time::timeout;

use super::DnsPass;
use crate::{
    history::{EngineEvent, EngineEventKind},
    provider_loop::{PATIENCE, PassReport, WRITING, Worker, check_leadership},
};

impl Worker<DnsPass> {
    /// Writes zone by zone, for at most [`WRITING`]. Returns the outcome of every step.
    pub(super) async fn write_plan(&mut self, plan: &Plan, report: &mut PassReport) -> Vec<UnitOutcome> {
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
                    self.state.written.insert(zone.clone());
                }
                outcomes.extend(reply.outcomes);
            }
        }
        outcomes
    }

    /// Puts applied changes into the zone cache, so that the zone need not be read back. Names with an unexpected outcome are
    /// read before the next plan.
    fn note_written(&mut self, zone: &Name, piece: &[Step], reply: &WriteReply) {
        let outcomes = piece.iter().zip(&reply.outcomes);
        let applied = outcomes.clone().filter(|(_, outcome)| **outcome == UnitOutcome::Applied);
        self.state.zone_cache.apply_written(zone, applied.flat_map(|(step, _)| &step.unit.changes));
        let unsure =
            outcomes.filter(|(_, outcome)| matches!(outcome, UnitOutcome::Changed | UnitOutcome::Unknown));
        let names: BTreeSet<Name> = unsure.flat_map(|(step, _)| step.unit.names()).cloned().collect();
        self.state.zone_cache.doubt_names(zone, names);
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
        if let ProviderError::Late { .. } = error
            && self.catch_up_with_fence(zone, generation).await
        {
            self.state.zone_cache.mark_doubtful(zone);
            (report.again, report.caught_up) = (true, true);
            return;
        }
        tracing::warn!(provider = %self.name(), %zone, %error, "A zone could not be changed.");
        self.record_unwritten_event(zone, generation, error).await;
        match error {
            ProviderError::Late { .. } | ProviderError::NoSuchZone { .. } => {
                self.state.zone_cache.mark_doubtful(zone);
            }
            ProviderError::Busy { retry_after, .. } => report.asked_pause = Some((*retry_after).into()),
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
                let text = format!("it is not known whether {zone} has generation {generation}: {error}");
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
            return failed(self.late(zone));
        }
        let fenced = provider.capabilities().fenced;
        let request = WriteRequest {
            units: piece.iter().map(|step| step.unit.clone()).collect(),
            fence: Fence {
                owner: self.state.settings.owner.to_string(),
                epoch: self.fence_epoch(),
                generation,
            },
            guard: self.write_guard(&server, (!fenced).then(|| self.late(zone)), until),
        };
        let answer = timeout(PATIENCE, provider.write(zone, &request)).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", PATIENCE.as_secs());
            Err(ProviderError::Unknown { server: server.clone(), reason })
        });
        if !fenced && self.check_leadership(zone).await.is_err() && self.shared.lead.is_deposed() {
            self.report_late_write(zone.as_str()).await;
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

    fn late(&self, zone: &Name) -> ProviderError {
        ProviderError::Late { server: self.setup.provider.server(), zone: zone.clone() }
    }

    /// Asks the store whether this node still leads.
    pub(super) async fn check_leadership(&self, zone: &Name) -> Result<(), ProviderError> {
        check_leadership(&self.shared, &self.setup.provider.server(), self.late(zone)).await
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
pub(super) fn named(domains: &Domains, zone: &Name) -> bool {
    domains.0.iter().any(|rule| rule.domain == *zone)
}
