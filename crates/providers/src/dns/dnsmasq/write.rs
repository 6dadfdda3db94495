//! Writes the units of one request: at most one new content for each file.
//!
//! 1. The hosts file gets all new addresses. dnsmasq sees them at once.
//! 2. The configuration is replaced and dnsmasq restarted. If it does not come back, the old files are put back and it is
//!    restarted again.
//! 3. The hosts file loses addresses of names that became something else.
//!
//! So a name that moves between the two files is never missing. Units without records in the configuration are done after
//! the first step, whatever becomes of the others.

use std::sync::atomic::Ordering;

use netstead_model::{
    Name, ProviderError, RecordSet, SetChange, Unit, UnitOutcome, WriteReply, WriteRequest,
};

use super::{
    Dnsmasq,
    machine::MachineError,
    records::{CONF_FILE, Dir, DnsweaverFile, HOSTS_FILE, OurFile, Records},
    unit_plan::{Layout, UnitPlan, plan_unit},
};
use crate::dns::{preconditions::wanted, tidy};

/// Says in `conf_dir` that dnsmasq has not read its files since they changed. dnsmasq itself skips it.
pub(super) const PENDING: &str = ".netstead.pending";

/// A file of `conf_dir` to be replaced.
struct Replacement<'a> {
    name: &'a str,
    old: Option<&'a [u8]>,
    new: Option<Vec<u8>>,
}

/// How a change of the configuration ended, if it did not work.
enum ConfError {
    /// The old files are there, and dnsmasq runs with them: the new ones are to blame.
    Refused(String),
    /// The old files are there.
    Failed(ProviderError),
    Unknown(ProviderError),
}

impl Dnsmasq {
    pub(super) async fn apply(
        &self,
        zone: &Name,
        request: &WriteRequest,
        mut records: Records,
    ) -> Result<WriteReply, ProviderError> {
        let layout = Layout { hosts: self.config.hostsdir.is_some(), conf: self.config.conf_dir.is_some() };
        let mut outcomes = vec![UnitOutcome::NotTried; request.units.len()];
        let (mut quick, mut slow) = (Vec::new(), Vec::new());
        let (mut first, mut last) = (records.hosts.clone(), records.hosts.clone());
        let (mut conf, mut dnsweaver) = (records.conf.clone(), records.dnsweaver.clone());
        // The hosts file if the configuration cannot be changed.
        let mut without_slow = records.hosts.clone();
        for (index, unit) in request.units.iter().enumerate() {
            let unit = adjusted(unit);
            let plan = match plan_unit(&records, layout, zone, &unit) {
                Ok(plan) => plan,
                Err(outcome) => {
                    if let Some(slot) = outcomes.get_mut(index) {
                        *slot = outcome;
                    }
                    continue;
                }
            };
            note(&mut records, &unit);
            change_hosts(&mut last, &plan, true);
            change_hosts(&mut first, &plan, !plan.changes_conf);
            if plan.changes_conf {
                change_conf(&mut conf, &mut dnsweaver, &plan);
                slow.push(index);
            } else {
                change_hosts(&mut without_slow, &plan, true);
                quick.push(index);
            }
        }
        let mut reply = WriteReply::from(outcomes);
        if quick.is_empty() && slow.is_empty() {
            return Ok(reply);
        }
        if first != records.hosts {
            request.guard.permit().await?;
            if let Err(error) = self.write_hosts(&first).await {
                let outcome = match &error {
                    MachineError::Failed(_) => UnitOutcome::NotTried,
                    MachineError::Unknown(_) => UnitOutcome::Unknown,
                };
                set(&mut reply, &quick, &outcome);
                set(&mut reply, &slow, &outcome);
                reply.stopped = Some(error.into_provider_error());
                return Ok(reply);
            }
        }
        set(&mut reply, &quick, &UnitOutcome::Applied);
        if slow.is_empty() {
            return Ok(reply);
        }
        if let Err(error) = request.guard.permit().await {
            // Nothing may be sent any more: new addresses of these units stay in the hosts file.
            let half = first != without_slow;
            set(&mut reply, &slow, if half { &UnitOutcome::Unknown } else { &UnitOutcome::NotTried });
            reply.stopped = Some(error);
            return Ok(reply);
        }
        let replacements: Vec<Replacement<'_>> = [
            Replacement { name: CONF_FILE, old: records.conf.written.as_deref(), new: conf.text(Dir::Conf) },
            Replacement {
                name: &self.config.dnsweaver_file,
                old: records.dnsweaver.written.as_deref(),
                new: if dnsweaver == records.dnsweaver {
                    dnsweaver.written.clone()
                } else {
                    dnsweaver.text()
                },
            },
        ]
        .into_iter()
        .filter(|one| one.old != one.new.as_deref())
        .collect();
        let (outcome, stopped) = match self.replace_conf(&replacements).await {
            Ok(()) if last == first => (UnitOutcome::Applied, None),
            // In the middle of units the time of the pass does not count.
            Ok(()) => match self.finish_hosts(request, &last).await {
                Ok(()) => (UnitOutcome::Applied, None),
                Err(error) => (UnitOutcome::Unknown, Some(error)),
            },
            Err(error) => {
                let back = if first == without_slow {
                    Ok(())
                } else {
                    self.finish_hosts(request, &without_slow).await
                };
                match (error, back) {
                    (ConfError::Unknown(error), _) | (_, Err(error)) => (UnitOutcome::Unknown, Some(error)),
                    (ConfError::Refused(reason), Ok(())) if slow.len() == 1 => {
                        (UnitOutcome::Rejected { reason }, None)
                    }
                    (ConfError::Refused(reason), Ok(())) => {
                        let reason = format!("none of {} changes is made: {reason}", slow.len());
                        (UnitOutcome::NotTried, Some(self.unreachable(reason)))
                    }
                    (ConfError::Failed(error), Ok(())) => (UnitOutcome::NotTried, Some(error)),
                }
            }
        };
        set(&mut reply, &slow, &outcome);
        reply.stopped = stopped;
        Ok(reply)
    }

    async fn write_hosts(&self, file: &OurFile) -> Result<(), MachineError> {
        let Some(dir) = &self.config.hostsdir else { return Ok(()) };
        self.observed("write", self.machine.write(dir, HOSTS_FILE, file.text(Dir::Hosts).as_deref())).await
    }

    async fn finish_hosts(&self, request: &WriteRequest, file: &OurFile) -> Result<(), ProviderError> {
        match request.guard.permit().await {
            Ok(()) | Err(ProviderError::OutOfTime { .. }) => {}
            Err(error) => return Err(error),
        }
        self.write_hosts(file).await.map_err(MachineError::into_provider_error)
    }

    /// Replaces files of `conf_dir` and restarts dnsmasq; puts the old ones back if that fails.
    async fn replace_conf(&self, replacements: &[Replacement<'_>]) -> Result<(), ConfError> {
        let Some(dir) = &self.config.conf_dir else { return Ok(()) };
        let texts: Vec<Option<Vec<u8>>> = replacements.iter().map(|one| one.new.clone()).collect();
        if let Some(reason) = self.refused_before(&texts) {
            return Err(ConfError::Refused(reason));
        }
        let untouched = |error| match error {
            MachineError::Failed(error) => ConfError::Failed(error),
            MachineError::Unknown(error) => ConfError::Unknown(error),
        };
        self.machine.write(dir, PENDING, Some(b"")).await.map_err(untouched)?;
        self.reload_due.store(true, Ordering::SeqCst);
        for (index, one) in replacements.iter().enumerate() {
            let write = self.machine.write(dir, one.name, one.new.as_deref());
            if let Err(error) = self.observed("write", write).await {
                self.put_back(replacements.get(..index).unwrap_or_default()).await?;
                if matches!(error, MachineError::Failed(_)) {
                    // dnsmasq has read the files that are there.
                    self.reload_due.store(false, Ordering::SeqCst);
                    let _ = self.machine.write(dir, PENDING, None).await;
                }
                return Err(untouched(error));
            }
        }
        let reason = match self.reload().await {
            Ok(()) => return Ok(()),
            Err(MachineError::Unknown(error)) => return Err(ConfError::Unknown(error)),
            Err(MachineError::Failed(ProviderError::Unreachable { reason, .. })) => reason,
            Err(MachineError::Failed(error)) => error.to_string(),
        };
        self.put_back(replacements).await?;
        if self.reload().await.is_ok() {
            let reason = format!("dnsmasq does not start with it, and has the old files again: {reason}");
            self.note_refused(texts, &reason);
            return Err(ConfError::Refused(reason));
        }
        let reason = format!("`reload` fails, and the old files are back: {reason}");
        Err(ConfError::Failed(self.unreachable(reason)))
    }

    async fn put_back(&self, replacements: &[Replacement<'_>]) -> Result<(), ConfError> {
        let Some(dir) = &self.config.conf_dir else { return Ok(()) };
        for one in replacements {
            let back = self.machine.write(dir, one.name, one.old).await;
            back.map_err(|error| {
                let (server, reason) = (self.shown.clone(), error.into_provider_error().to_string());
                ConfError::Unknown(ProviderError::Unknown { server, reason })
            })?;
        }
        Ok(())
    }
}

fn set(reply: &mut WriteReply, units: &[usize], outcome: &UnitOutcome) {
    for index in units {
        if let Some(slot) = reply.outcomes.get_mut(*index) {
            *slot = outcome.clone();
        }
    }
}

/// The unit as dnsmasq would hold it.
fn adjusted(unit: &Unit) -> Unit {
    let adjust = |set: &RecordSet| super::adjusted(tidy(set.clone()));
    let change = |change: &SetChange| SetChange {
        before: change.before.as_ref().map(adjust),
        after: change.after.as_ref().map(adjust),
    };
    Unit { name: unit.name.clone(), changes: unit.changes.iter().map(change).collect() }
}

/// Brings the records in line with a unit that will be written, for the units after it.
fn note(records: &mut Records, unit: &Unit) {
    for change in &unit.changes {
        let Some(some) = change.after.as_ref().or(change.before.as_ref()) else { continue };
        let key = (some.name.clone(), some.kind);
        match wanted(change) {
            Some(set) => records.found.sets.insert(key, set.clone()),
            None => records.found.sets.remove(&key),
        };
    }
}

fn change_hosts(file: &mut OurFile, plan: &UnitPlan, with_removals: bool) {
    if with_removals {
        for record in &plan.remove {
            file.records.remove(record);
        }
    }
    file.records.extend(plan.add.iter().filter(|(dir, _)| *dir == Dir::Hosts).map(|(_, one)| one.clone()));
}

fn change_conf(file: &mut OurFile, dnsweaver: &mut DnsweaverFile, plan: &UnitPlan) {
    for record in &plan.remove {
        if !file.records.remove(record) {
            dnsweaver.remove(record);
        }
    }
    file.records.extend(plan.add.iter().filter(|(dir, _)| *dir == Dir::Conf).map(|(_, one)| one.clone()));
}
