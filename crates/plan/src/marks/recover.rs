//! Ownership after the store was lost.

use std::collections::HashMap;

use netstead_model::{Name, RecordData, RecordType};

use super::{Mark, is_mark, place};
use crate::{Actual, Origin, Owned, OwnedValue, OwnerId};

/// What marks say.
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
                let at = place(owner, &set.name, &zone.name, delegation);
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
