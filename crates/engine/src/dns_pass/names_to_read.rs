//! The names that a read must ask for, on servers that do not hand out whole zones.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{Name, ProviderError, RecordSet, RecordType, Zone};
use netstead_plan::{
    Desired, Owned, Settings,
    marks::{self, Tool},
};

use super::{DnsPass, zone_cache::with_timeout};
use crate::provider_loop::Worker;

/// The most lists of names that are read; each has up to a hundred.
const MOST_CATALOGUES: usize = 1000;

impl Worker<DnsPass> {
    /// Per zone every name that is wanted or ours; nothing where whole zones can be read.
    pub(super) fn names_to_read(&self, zones: &[Zone], desired: &Desired) -> BTreeMap<Name, BTreeSet<Name>> {
        if !self.setup.provider.reads_by_name() {
            return BTreeMap::new();
        }
        names_by_zone(zones, desired, &self.state.owned, &self.state.settings)
    }

    /// The names to ask for when the values of another tool are looked for: those that are known here, those the tool says it
    /// has, and the places of its marks. None if there is nothing to ask for, or no way to know the places of its marks.
    pub(super) async fn names_of_tool(
        &self,
        zone: &Name,
        mut names: BTreeSet<Name>,
        tool: Tool,
    ) -> Result<Option<BTreeSet<Name>>, ProviderError> {
        if tool != Tool::Dnsweaver {
            return Ok(None);
        }
        let catalogues = self.read_catalogues(zone).await?;
        for set in &catalogues {
            names.extend(set.values.iter().flat_map(|data| marks::dnsweaver::catalogued(data, zone)));
        }
        let marks: Vec<Name> = names.iter().filter_map(marks::dnsweaver::mark_name).collect();
        names.extend(marks);
        names.extend(catalogues.into_iter().map(|set| set.name));
        Ok(Some(names).filter(|names| !names.is_empty()))
    }

    /// dnsweaver's lists of its names: it numbers them, and the first that is missing ends them.
    async fn read_catalogues(&self, zone: &Name) -> Result<Vec<RecordSet>, ProviderError> {
        let provider = &self.setup.provider;
        let server = provider.server();
        let mut found = Vec::new();
        for number in 0..MOST_CATALOGUES {
            let Some(at) = marks::dnsweaver::catalogue_name(number, zone) else { break };
            let asked = BTreeSet::from([at.clone()]);
            let read = with_timeout(&server, provider.read_names(zone, &asked)).await?;
            let before = found.len();
            found.extend(read.sets.into_iter().filter(|set| set.name == at && set.kind == RecordType::Txt));
            if found.len() == before {
                break;
            }
        }
        Ok(found)
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
