//! [`UnitPlan`]: which records a unit adds and removes, and in which files.

use netstead_model::{Name, RecordData, SetChange, Unit, UnitOutcome, Values};

use super::{
    lines::to_conf_line,
    records::{Dir, Records},
};
use crate::dns::preconditions::{kind_of, wanted};

/// The directories that are configured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) hosts: bool,
    pub(super) conf: bool,
}

/// Records of one unit to add and to remove.
#[derive(Debug, Default)]
pub(super) struct UnitPlan {
    pub(super) add: Vec<(Dir, (Name, RecordData))>,
    pub(super) remove: Vec<(Name, RecordData)>,
    /// Whether a file in `conf_dir` changes, which needs a reload.
    pub(super) changes_conf: bool,
}

impl Layout {
    /// The directory that a record belongs in.
    pub(super) fn dir_of(self, name: &Name, data: &RecordData) -> Result<Dir, String> {
        if self.hosts && data.to_address().is_some() && !name.is_wildcard() {
            return Ok(Dir::Hosts);
        }
        if !self.conf {
            let what = if name.is_wildcard() { "a wildcard".to_owned() } else { data.kind().to_string() };
            return Err(format!("dnsmasq has {what} only in its configuration: set `conf_dir` and `reload`"));
        }
        to_conf_line(name, data).map(|_| Dir::Conf)
    }
}

/// The outcome of a unit that is not written, or its plan.
pub(super) fn plan_unit(
    records: &Records,
    layout: Layout,
    zone: &Name,
    unit: &Unit,
) -> Result<UnitPlan, UnitOutcome> {
    let rejected = |reason: String| UnitOutcome::Rejected { reason };
    if let Some(outside) = unit.names().into_iter().find(|name| !name.is_subdomain_of(zone)) {
        return Err(rejected(format!("`{outside}` is not in the zone `{zone}`")));
    }
    if let Some(outcome) = records.found.outcome(unit) {
        return Err(outcome);
    }
    if let Some(reason) = records.found.cname_conflict(unit) {
        return Err(rejected(reason));
    }
    let mut plan = UnitPlan::default();
    for change in &unit.changes {
        plan_change(records, layout, change, &mut plan).map_err(rejected)?;
    }
    let in_conf = |record| records.conf.records.contains(record) || records.dnsweaver.has(record);
    plan.changes_conf = plan.add.iter().any(|(dir, _)| *dir == Dir::Conf) || plan.remove.iter().any(in_conf);
    Ok(plan)
}

fn plan_change(
    records: &Records,
    layout: Layout,
    change: &SetChange,
    plan: &mut UnitPlan,
) -> Result<(), String> {
    let Some((some, kind)) = change.after.as_ref().or(change.before.as_ref()).zip(kind_of(change)) else {
        return Ok(());
    };
    let none = Values::default();
    let name = &some.name;
    let there = records.found.sets.get(&(name.clone(), kind)).map_or(&none, |set| &set.values);
    let wanted = wanted(change).map_or(&none, |set| &set.values);
    if let Some(RecordData::Cname(target)) = wanted.first()
        && records.found.would_loop(name, target)
    {
        return Err(format!("`{name}` would be an alias of itself, by way of `{target}`"));
    }
    for data in wanted.difference(there) {
        let dir = layout.dir_of(name, data)?;
        plan.add.push((dir, (name.clone(), data.clone())));
    }
    for data in there.difference(wanted) {
        let record = (name.clone(), data.clone());
        if !records.is_ours(&record) && !records.dnsweaver.has(&record) {
            let file = records.foreign.get(&record).map_or("another file", String::as_str);
            return Err(format!(
                "{kind} {data} of `{name}` is in `{file}`, which Netstead does not change; remove it there"
            ));
        }
        plan.remove.push(record);
    }
    Ok(())
}
