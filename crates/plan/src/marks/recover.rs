//! Recovers ownership from our own marks after the store was lost.

use std::collections::{BTreeSet, HashMap};

use netstead_model::{Name, RecordData, RecordType};

use super::{Mark, is_mark, mark_name};
use crate::{Actual, Origin, Owned, OwnedValue, OwnerId};

/// The content of marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    pub owned: Owned,
    /// Marks of this owner that fit no value.
    pub loose: Vec<Name>,
}

/// Learns from the marks of `owner` what is ours. The values have no reasons yet: what nothing asks for is parked.
pub fn recover(owner: &OwnerId, actual: &Actual) -> Recovered {
    let mut recovered = Recovered::default();
    for zone in &actual.zones {
        let sets = zone.sets.as_deref().unwrap_or_default();
        let mut marks: HashMap<&str, (Vec<Mark>, bool)> = HashMap::new();
        for set in sets.iter().filter(|set| set.kind == RecordType::Txt) {
            if is_mark(set.name.as_str()) == Some(owner.as_str()) {
                let read = set.values.iter().filter_map(Mark::parse).collect();
                marks.insert(set.name.as_str(), (read, false));
            }
        }
        for set in sets.iter().filter(|set| is_mark(set.name.as_str()).is_none()) {
            for delegation in [false, true] {
                let at = mark_name(owner, &set.name, &zone.name, delegation);
                let Some((found, used)) = marks.get_mut(at.as_str()) else { continue };
                let ours = |data: &&RecordData| found.iter().any(|mark: &Mark| mark.covers(&set.name, data));
                for data in set.values.iter().filter(ours) {
                    *used = true;
                    let (data, reasons, pending) = (data.clone(), Vec::new(), false);
                    let origin = Origin::Recovered;
                    recovered.owned.put(&set.name, OwnedValue { data, reasons, origin, pending });
                }
            }
        }
        let loose = sets.iter().filter(|set| marks.get(set.name.as_str()).is_some_and(|(_, used)| !used));
        recovered.loose.extend(loose.filter(|set| set.kind == RecordType::Txt).map(|set| set.name.clone()));
    }
    recovered
}

/// The marks that `owner` left at names where something is ours: once we go by another id, they say nothing any more and go
/// with the next plan.
pub fn superseded(owner: &OwnerId, owned: &Owned, actual: &Actual) -> Vec<(Name, OwnedValue)> {
    let mut found = Vec::new();
    for zone in &actual.zones {
        let inside = owned.iter().map(|(name, _)| name).filter(|name| name.is_subdomain_of(&zone.name));
        let places: BTreeSet<String> = inside
            .flat_map(|name| [false, true].map(|cut| mark_name(owner, name, &zone.name, cut)))
            .collect();
        let texts = zone.sets.iter().flatten().filter(|set| set.kind == RecordType::Txt);
        for set in texts.filter(|set| places.contains(set.name.as_str())) {
            for data in set.values.iter().filter(|data| Mark::parse(data).is_some()) {
                let (data, reasons, origin) = (data.clone(), Vec::new(), Origin::Discarded);
                found.push((set.name.clone(), OwnedValue { data, reasons, origin, pending: false }));
            }
        }
    }
    found
}
