//! What other tools say is theirs, so that a person can hand it over.

use std::collections::BTreeMap;

use netstead_model::{Name, RecordData, RecordSet, RecordType};

use super::{dnsweaver, external_dns};
use crate::{Actual, Origin, OwnedValue};

/// A value that another tool wrote, and the mark that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adoptable {
    pub name: Name,
    pub data: RecordData,
    /// `dnsweaver home`, `external-dns blue`.
    pub by: String,
    /// Where the mark stands: to be removed once the value is ours.
    pub mark: (Name, RecordData),
}

impl Adoptable {
    /// The value as ours.
    pub fn owned(&self) -> OwnedValue {
        let (data, reasons, origin) = (self.data.clone(), Vec::new(), Origin::Adopted);
        OwnedValue { data, reasons, origin, pending: false }
    }

    /// The mark as something of ours that goes with the next plan.
    pub fn discarded(&self) -> (Name, OwnedValue) {
        let (name, data) = self.mark.clone();
        (name, OwnedValue { data, reasons: Vec::new(), origin: Origin::Discarded, pending: false })
    }
}

/// Everything that marks of dnsweaver and external-dns cover. Nothing is adopted by this alone.
pub fn adoptable(actual: &Actual, naming: &external_dns::Naming) -> Vec<Adoptable> {
    let mut found = Vec::new();
    for zone in &actual.zones {
        let sets = zone.sets.as_deref().unwrap_or_default();
        let mut by_name: BTreeMap<&Name, Vec<&RecordSet>> = BTreeMap::new();
        for set in sets {
            by_name.entry(&set.name).or_default().push(set);
        }
        let marks = sets.iter().filter(|set| set.kind == RecordType::Txt);
        for (set, data) in marks.flat_map(|set| set.values.iter().map(move |data| (set, data))) {
            let mut add = |name: &Name, by: String, covers: &dyn Fn(&RecordData) -> bool| {
                let sets = by_name.get(name).into_iter().flatten();
                for value in sets.flat_map(|set| &set.values).filter(|value| covers(value)) {
                    let mark = (set.name.clone(), data.clone());
                    found.push(Adoptable { name: name.clone(), data: value.clone(), by: by.clone(), mark });
                }
            };
            if let Some(mark) = dnsweaver::Mark::parse(&set.name, data) {
                let by = format!("dnsweaver {}", mark.instance.as_deref().unwrap_or_default());
                add(&mark.name, by.trim_end().to_owned(), &|value| mark.covers(value));
            }
            for mark in external_dns::Mark::parse(&set.name, data, naming) {
                let by = format!("external-dns {}", mark.owner);
                add(&mark.name, by, &|value| mark.covers(value));
            }
        }
    }
    found.sort_by(|one, other| (&one.name, &one.data, &one.by).cmp(&(&other.name, &other.data, &other.by)));
    found
}
