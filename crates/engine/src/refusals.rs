//! Refusals by the rules of sources and providers, listed by the workload that asks.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{Ident, Key, Name};

use crate::{dns_pass::ProviderHandle, engine_state::EngineState};

/// Sentences without their full stop, by workload.
pub(crate) type Refusals = BTreeMap<(Ident, Key), Vec<String>>;

/// One sentence for each reason, however many names and providers it concerns.
pub(crate) fn refusals(shared: &EngineState) -> Refusals {
    let handles: Vec<ProviderHandle> = shared.providers().values().cloned().collect();
    let mut found: BTreeMap<(Ident, Key), BTreeMap<String, BTreeSet<Name>>> = BTreeMap::new();
    for handle in &handles {
        let desired = handle.snapshot.read().desired.clone();
        for one in desired.why_not.iter().filter(|one| one.refused) {
            let of = found.entry((one.source.clone(), one.workload.clone())).or_default();
            of.entry(one.why.clone()).or_default().extend(one.name.clone());
        }
    }
    let sentence = |(why, names): (String, BTreeSet<Name>)| {
        let more = names.len().saturating_sub(1);
        match names.first() {
            None => why,
            Some(name) if more == 0 => format!("{name}: {why}"),
            Some(name) => format!("{name} and {more} more: {why}"),
        }
    };
    found.into_iter().map(|(at, whys)| (at, whys.into_iter().map(sentence).collect())).collect()
}
