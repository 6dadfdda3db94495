//! Writes the units of one request: at most one new content for each file.
//!
//! 1. The hosts file gets all new addresses. dnsmasq sees them at once.
//! 2. The configuration is replaced and dnsmasq restarted. If it does not come back, the old files are put back and it is
//!    restarted again.
//! 3. The hosts file loses addresses of names that became something else.
//!
//! So a name that moves between the two files is never missing. Units without records in the configuration are done after
//! the first step, whatever becomes of the others.

use netstead_model::{
    Name, ProviderError, RecordData, RecordSet, SetChange, Unit, UnitOutcome, WriteGuard, WriteReply,
    WriteRequest,
};

use super::{
    Dnsmasq,
    records::{CONF_FILE, Dir, DnsweaverFile, HOSTS_FILE, OurFile, Records},
    unit_plan::{Layout, UnitPlan, plan_unit},
};
use crate::dns::{
    config_files::{MachineError, ReplaceError, Replacement},
    tidy,
};

impl Dnsmasq {
    pub(super) fn layout(&self) -> Layout {
        Layout { hosts: self.config.hostsdir.is_some(), conf: self.config.conf_dir.is_some() }
    }

    pub(super) async fn apply(
        &self,
        zone: &Name,
        request: &WriteRequest,
        mut records: Records,
    ) -> Result<WriteReply, ProviderError> {
        let layout = self.layout();
        let mut outcomes = vec![UnitOutcome::NotTried; request.units.len()];
        let (mut quick, mut slow, mut plans) =
            (Vec::new(), Vec::new(), Vec::with_capacity(request.units.len()));
        for (index, unit) in request.units.iter().enumerate() {
            let unit = adjusted(unit);
            match plan_unit(&records, layout, zone, &unit) {
                Ok(plan) => {
                    if plan.changes_conf { &mut slow } else { &mut quick }.push(index);
                    plans.push(plan);
                    note(&mut records, unit);
                }
                Err(outcome) => {
                    if let Some(slot) = outcomes.get_mut(index) {
                        *slot = outcome;
                    }
                }
            }
        }
        let mut reply = WriteReply::from(outcomes);
        if quick.is_empty() && slow.is_empty() {
            return Ok(reply);
        }
        let mut first = records.hosts.clone();
        if plans.iter().all(|plan| plan.remove.is_empty()) {
            // One by one, many new names would take several times as long.
            let mut added = plans.iter().flat_map(hosts_records).cloned().collect();
            first.records.append(&mut added);
        } else {
            for plan in &plans {
                change_hosts(&mut first, plan, !plan.changes_conf);
            }
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
        // The hosts file in the end, and as it is if the configuration cannot be changed.
        let (mut last, mut without_slow) = (records.hosts.clone(), records.hosts.clone());
        let (mut conf, mut dnsweaver) = (records.conf.clone(), records.dnsweaver.clone());
        for plan in &plans {
            change_hosts(&mut last, plan, true);
            if plan.changes_conf {
                change_conf(&mut conf, &mut dnsweaver, plan);
            } else {
                change_hosts(&mut without_slow, plan, true);
            }
        }
        if let Err(error) = request.guard.permit().await {
            // Nothing may be sent any more: new addresses of these units stay in the hosts file.
            let half = first != without_slow;
            set(&mut reply, &slow, if half { &UnitOutcome::Unknown } else { &UnitOutcome::NotTried });
            reply.stopped = Some(error);
            return Ok(reply);
        }
        let replacements = self.replacements(&records, &conf, &dnsweaver);
        let (outcome, stopped) = match self.files.replace(&replacements).await {
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
                    (ReplaceError::Unknown(error), _) | (_, Err(error)) => {
                        (UnitOutcome::Unknown, Some(error))
                    }
                    (ReplaceError::Refused(reason), Ok(())) if slow.len() == 1 => {
                        (UnitOutcome::Rejected { reason }, None)
                    }
                    (ReplaceError::Refused(reason), Ok(())) => {
                        let reason = format!("none of {} changes is made: {reason}", slow.len());
                        (UnitOutcome::NotTried, Some(self.files.unreachable(reason)))
                    }
                    (ReplaceError::Failed(error), Ok(())) => (UnitOutcome::NotTried, Some(error)),
                }
            }
        };
        set(&mut reply, &slow, &outcome);
        reply.stopped = stopped;
        Ok(reply)
    }

    async fn write_hosts(&self, file: &OurFile) -> Result<(), MachineError> {
        let Some(dir) = &self.config.hostsdir else { return Ok(()) };
        self.files.write(dir, HOSTS_FILE, file.text(Dir::Hosts).as_deref()).await
    }

    async fn finish_hosts(&self, request: &WriteRequest, file: &OurFile) -> Result<(), ProviderError> {
        match request.guard.permit().await {
            Ok(()) | Err(ProviderError::OutOfTime { .. }) => {}
            Err(error) => return Err(error),
        }
        self.write_hosts(file).await.map_err(MachineError::into_provider_error)
    }

    /// Moves records from dnsweaver's file to ours: addresses first, then the configuration with one restart. A record that
    /// our files cannot hold stays where it is.
    pub(super) async fn absorb(
        &self,
        values: &[(Name, RecordData)],
        guard: &WriteGuard,
    ) -> Result<(), ProviderError> {
        let records = self.load().await?;
        let layout = self.layout();
        let (mut hosts, mut conf) = (records.hosts.clone(), records.conf.clone());
        let mut dnsweaver = records.dnsweaver.clone();
        for record in values.iter().filter(|record| records.dnsweaver.has(record)) {
            match layout.dir_of(&record.0, &record.1) {
                Ok(Dir::Hosts) => hosts.records.insert(record.clone()),
                Ok(Dir::Conf) => conf.records.insert(record.clone()),
                Err(_) => continue,
            };
            dnsweaver.remove(record);
        }
        if dnsweaver == records.dnsweaver {
            return Ok(());
        }
        guard.permit().await?;
        if hosts != records.hosts {
            self.write_hosts(&hosts).await.map_err(MachineError::into_provider_error)?;
        }
        let replaced = self.files.replace(&self.replacements(&records, &conf, &dnsweaver)).await;
        replaced.map_err(|error| match error {
            ReplaceError::Refused(reason) => self.files.unreachable(reason),
            ReplaceError::Failed(error) | ReplaceError::Unknown(error) => error,
        })
    }

    /// The files of `conf_dir` that change.
    fn replacements<'a>(
        &'a self,
        records: &'a Records,
        conf: &OurFile,
        dnsweaver: &DnsweaverFile,
    ) -> Vec<Replacement<'a>> {
        let Some(dir) = &self.config.conf_dir else { return Vec::new() };
        let own = Replacement {
            dir,
            name: CONF_FILE,
            old: records.conf.written.as_deref(),
            new: conf.text(Dir::Conf),
        };
        let same = *dnsweaver == records.dnsweaver;
        let theirs = Replacement {
            dir,
            name: &self.config.dnsweaver_file,
            old: records.dnsweaver.written.as_deref(),
            new: if same { dnsweaver.written.clone() } else { dnsweaver.text() },
        };
        [own, theirs].into_iter().filter(|one| one.old != one.new.as_deref()).collect()
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
fn note(records: &mut Records, unit: Unit) {
    for SetChange { before, after } in unit.changes {
        let Some(some) = after.as_ref().or(before.as_ref()) else { continue };
        let key = (some.name.clone(), some.kind);
        match after.filter(|set| !set.values.is_empty()) {
            Some(set) => records.found.sets.insert(key, set),
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
    file.records.extend(hosts_records(plan).cloned());
}

/// The records that a plan adds to the hosts file.
fn hosts_records(plan: &UnitPlan) -> impl Iterator<Item = &(Name, RecordData)> {
    plan.add.iter().filter(|(dir, _)| *dir == Dir::Hosts).map(|(_, record)| record)
}

fn change_conf(file: &mut OurFile, dnsweaver: &mut DnsweaverFile, plan: &UnitPlan) {
    for record in &plan.remove {
        if !file.records.remove(record) {
            dnsweaver.remove(record);
        }
    }
    file.records.extend(plan.add.iter().filter(|(dir, _)| *dir == Dir::Conf).map(|(_, one)| one.clone()));
}
