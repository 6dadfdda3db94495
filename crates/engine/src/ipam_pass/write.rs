//! Sends the steps of a plan in waves: a unit follows the units it needs, and is not tried if one of them failed.

use std::collections::BTreeMap;

use netstead_model::{Fence, ObjectKey, ObjectUnit, ObjectWrite, ProviderError, UnitOutcome, WriteReply};
use netstead_plan::ipam::IpamPlan;
use tokio::time::timeout;

use super::{IpamPass, PLACE};
use crate::provider_loop::{PATIENCE, PassReport, WRITING, Worker, check_leadership};

impl Worker<IpamPass> {
    pub(super) async fn write_objects(
        &mut self,
        plan: &IpamPlan,
        report: &mut PassReport,
    ) -> Vec<UnitOutcome> {
        let until = self.shared.clock.monotonic().saturating_add(WRITING);
        let most = self.setup.provider.capabilities().most_units.map_or(usize::MAX, std::num::NonZero::get);
        let mut outcomes: Vec<Option<UnitOutcome>> = vec![None; plan.steps.len()];
        let numbers: BTreeMap<&ObjectKey, usize> =
            plan.steps.iter().enumerate().map(|(number, step)| (&step.unit.key, number)).collect();
        loop {
            let mut wave: Vec<usize> = Vec::new();
            for (number, step) in plan.steps.iter().enumerate() {
                if outcomes.get(number).is_none_or(Option::is_some) {
                    continue;
                }
                let needs = step.unit.needs.iter().filter_map(|need| numbers.get(need));
                let needs: Vec<Option<&UnitOutcome>> =
                    needs.map(|need| outcomes.get(*need).and_then(Option::as_ref)).collect();
                if needs.iter().any(|need| need.is_some_and(|outcome| *outcome != UnitOutcome::Applied)) {
                    set(&mut outcomes, number, UnitOutcome::NotTried);
                } else if needs.iter().all(Option::is_some) {
                    wave.push(number);
                }
            }
            if wave.is_empty() {
                break;
            }
            for piece in wave.chunks(most.min(wave.len())) {
                let units: Vec<ObjectUnit> = piece
                    .iter()
                    .filter_map(|number| plan.steps.get(*number))
                    .map(|step| step.unit.clone())
                    .collect();
                let reply = self.write_piece(units, plan.generation, until).await;
                for (number, outcome) in piece.iter().zip(reply.outcomes) {
                    set(&mut outcomes, *number, outcome);
                }
                if let Some(error) = reply.stopped {
                    self.note_stopped(&error, report);
                    return outcomes.into_iter().map(|one| one.unwrap_or(UnitOutcome::NotTried)).collect();
                }
            }
        }
        outcomes.into_iter().map(|one| one.unwrap_or(UnitOutcome::NotTried)).collect()
    }

    async fn write_piece(
        &self,
        units: Vec<ObjectUnit>,
        generation: u64,
        until: std::time::Duration,
    ) -> WriteReply {
        let provider = &self.setup.provider;
        let (server, count) = (provider.server(), units.len());
        let late = ProviderError::Deposed { server: server.clone() };
        if self.shared.lead.is_deposed() {
            return WriteReply::failed(count, late);
        }
        let epoch = self.shared.lead.epoch.saturating_add(self.guard.lift);
        let fence = Fence { owner: self.state.settings.owner.to_string(), epoch, generation };
        let guard = self.write_guard(&server, Some(late.clone()), until);
        let answer = timeout(PATIENCE, provider.write(&ObjectWrite { units, fence, guard })).await;
        let answer = answer.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", PATIENCE.as_secs());
            Err(ProviderError::Unknown { server: server.clone(), reason })
        });
        let leads = check_leadership(&self.shared, &server, late).await;
        if leads.is_err() && self.shared.lead.is_deposed() {
            self.report_late_write(PLACE).await;
        }
        match answer {
            Ok(reply) if reply.outcomes.len() == count => reply,
            Ok(reply) => {
                let reason = format!("{} outcomes for {count} units", reply.outcomes.len());
                WriteReply::failed(count, ProviderError::Malformed { server, reason })
            }
            Err(error) => WriteReply::failed(count, error),
        }
    }

    fn note_stopped(&self, error: &ProviderError, report: &mut PassReport) {
        match error {
            ProviderError::OutOfTime { .. } => {
                report.unfinished = true;
                return;
            }
            ProviderError::Busy { retry_after, .. } => report.asked_pause = Some((*retry_after).into()),
            _ => {}
        }
        tracing::warn!(provider = %self.name(), %error, "Not all objects could be written.");
        report.error = Some(error.to_string());
    }
}

fn set(outcomes: &mut [Option<UnitOutcome>], number: usize, outcome: UnitOutcome) {
    if let Some(slot) = outcomes.get_mut(number) {
        *slot = Some(outcome);
    }
}
