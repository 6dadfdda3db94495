//! The objects of IPAM systems that a name is about.

use std::collections::BTreeSet;

use netstead_model::{FieldValue, Ident, Key, Name, ObjectKey};

use crate::{engine_state::EngineState, ipam_pass::IpamHandle};

/// One sentence for everything on an IPAM system that has the name, and for everything of the same workloads that is not as
/// it should be.
pub(super) fn of_system(
    shared: &EngineState,
    handle: &IpamHandle,
    name: &Name,
    errors: bool,
    said: &mut Vec<String>,
) {
    let provider = handle.setup.name();
    let seen = handle.snapshot.read().clone();
    let is_name = |value: &FieldValue| matches!(value, FieldValue::Text(text) if text == name.as_str());
    let mut workloads: BTreeSet<(Ident, Key)> = BTreeSet::new();
    let at = |key: &ObjectKey| (key.source.clone(), key.workload.clone());
    for (key, object) in &seen.owned.0 {
        for (field, _) in object.fields.iter().filter(|(_, field)| is_name(&field.value)) {
            let place = if object.pending { "is on its way" } else { "is ours there" };
            said.push(format!("{provider}: {key} with {field} {name} {place}."));
            workloads.insert(at(key));
        }
    }
    let newest = shared.inventory.borrow().inventory.clone();
    for (source, state) in newest.sources() {
        let asks = state.entries.iter().filter(|(_, entry)| {
            entry.workload.hostname.as_ref() == Some(name)
                || entry.workload.wishes.iter().any(|wish| wish.name == *name)
        });
        workloads.extend(asks.map(|(id, _)| (source.clone(), id.clone())));
    }
    let meant = |key: &ObjectKey| workloads.contains(&at(key));
    let known = said.len();
    if let Some(plan) = &seen.plan {
        for blocked in plan.blocked.iter().filter(|one| meant(&one.key)) {
            said.push(format!("{provider}: {} is blocked: {}.", blocked.key, blocked.why));
        }
        for kept in plan.kept.iter().filter(|one| meant(&one.key)) {
            said.push(format!("{provider}: {} is kept: {}.", kept.key, kept.why.at(shared.now())));
        }
        for drift in plan.drift.iter().filter(|one| meant(&one.key)) {
            said.push(match (&drift.field, &drift.found) {
                (Some(field), Some(found)) => {
                    format!("{provider}: others set {field} of {} to {found}.", drift.key)
                }
                _ => format!("{provider}: others changed {}.", drift.key),
            });
        }
        let parked = plan.parked.iter().flat_map(|parked| &parked.changes);
        for change in parked.filter(|change| meant(&change.key)) {
            said.push(format!("{provider}: {} is parked because {}.", change.key, change.guard));
        }
    }
    for (key, why) in seen.rejected.iter().filter(|(key, _)| meant(key)) {
        said.push(format!("{provider}: the system rejects {key}: {why}."));
    }
    if workloads.is_empty() && said.len() == known {
        return;
    }
    if let Some(pause) = shared.pauses.of(provider, None, shared.now()) {
        said.push(format!("{provider}: {pause}; `{}` ends that.", pause.resume_command()));
    }
    if let Some(error) = seen.error.as_ref().filter(|_| errors) {
        said.push(format!("{provider}: {error}."));
    }
}
