//! The names that a read must ask for, on servers that do not hand out whole zones.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{Name, Zone};
use netstead_plan::{Desired, Owned, Settings, marks};

use super::DnsPass;
use crate::provider_loop::Worker;

impl Worker<DnsPass> {
    /// Per zone every name that is wanted or ours; nothing where whole zones can be read.
    pub(super) fn names_to_read(&self, zones: &[Zone], desired: &Desired) -> BTreeMap<Name, BTreeSet<Name>> {
        if !self.setup.provider.reads_by_name() {
            return BTreeMap::new();
        }
        names_by_zone(zones, desired, &self.state.owned, &self.state.settings)
    }
}

/// Each name with the places of its marks: what is not asked for would look like gone.
pub(super) fn names_by_zone(
    zones: &[Zone],
    desired: &Desired,
    owned: &Owned,
    settings: &Settings,
) -> BTreeMap<Name, BTreeSet<Name>> {
    let mut expected: BTreeMap<Name, BTreeSet<Name>> =
        zones.iter().map(|zone| (zone.name.clone(), BTreeSet::new())).collect();
    let names: BTreeSet<&Name> =
        desired.sets.iter().map(|set| &set.name).chain(owned.iter().map(|(name, _)| name)).collect();
    for name in names {
        let above = std::iter::successors(Some(name.clone()), Name::parent);
        let Some(zone) = above.into_iter().find(|above| expected.contains_key(above)) else { continue };
        let Some(asked) = expected.get_mut(&zone) else { continue };
        asked.insert(name.clone());
        if settings.marks {
            let places = [false, true].map(|cut| marks::mark_name(&settings.owner, name, &zone, cut));
            asked.extend(places.iter().filter_map(|place| place.parse().ok()));
        }
    }
    expected
}
