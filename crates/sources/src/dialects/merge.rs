//! Merges requests for the same name from several dialects.

use std::collections::BTreeMap;

use netstead_model::Name;

use super::{NameRequest, diagnostics::Diagnostics};

/// The most differing asks of one name; more would be a mistake, and would take time.
const MOST: usize = 64;

/// The asks of one workload, the strongest dialect first.
#[derive(Debug, Default)]
pub(super) struct RequestMerger(BTreeMap<Name, Vec<NameRequest>>);

impl RequestMerger {
    /// Adds what the next dialect asks for.
    ///
    /// Where a name points is decided by the first dialect that says it; a later one only leaves its reason. Within one
    /// dialect a name may be asked for several times (for two providers, or both families), and equal asks are one.
    pub(super) fn add(&mut self, asks: Vec<NameRequest>, notes: &mut Diagnostics) {
        let mut fresh: BTreeMap<Name, Vec<NameRequest>> = BTreeMap::new();
        for ask in asks {
            let same_name = fresh.entry(ask.name.clone()).or_default();
            let full = same_name.len() >= MOST;
            match same_name.iter_mut().find(|other| other.same_as(&ask)) {
                Some(other) => join(other, &ask),
                None if !full => same_name.push(ask),
                None => notes.add(format!("{} is asked for more than {MOST} times", ask.name)),
            }
        }
        for (name, asks) in fresh {
            let here = self.0.entry(name).or_default();
            let decided = here.iter().any(NameRequest::is_pointer);
            for ask in asks {
                if decided && ask.is_pointer() {
                    here.iter_mut().filter(|other| other.is_pointer()).for_each(|other| join(other, &ask));
                } else if let Some(other) = here.iter_mut().find(|other| other.same_as(&ask)) {
                    join(other, &ask);
                } else {
                    here.push(ask);
                }
            }
        }
    }

    pub(super) fn merged(self) -> Vec<NameRequest> {
        self.0.into_values().flatten().collect()
    }
}

/// How long the reasons of one name may get.
const LONGEST: usize = 400;

/// Two requests as one: it is reached wherever one of them is.
fn join(ask: &mut NameRequest, other: &NameRequest) {
    if ask.entrypoints.is_empty() || other.entrypoints.is_empty() {
        ask.entrypoints.clear();
    } else {
        ask.entrypoints.extend(other.entrypoints.iter().cloned());
        ask.entrypoints.sort_unstable();
        ask.entrypoints.dedup();
    }
    let reason = &other.reason;
    if ask.reason.split(", ").all(|known| known != reason) && ask.reason.len() + reason.len() < LONGEST {
        ask.reason.push_str(", ");
        ask.reason.push_str(reason);
    }
}
