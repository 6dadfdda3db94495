//! Values that the marks of other tools claim, so that a person can adopt them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use netstead_model::{Name, ParseError, RecordData, RecordSet, RecordType};

use super::{dnsweaver, external_dns};
use crate::{Actual, ActualZone, Origin, OwnedValue};

/// A tool whose marks can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    Dnsweaver,
    ExternalDns,
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Dnsweaver => "dnsweaver",
            Self::ExternalDns => "external-dns",
        })
    }
}

impl FromStr for Tool {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "dnsweaver" => Ok(Self::Dnsweaver),
            "external-dns" => Ok(Self::ExternalDns),
            _ => Err(ParseError::new("tool", text, None, "it is `dnsweaver` or `external-dns`")),
        }
    }
}

/// A value that another tool wrote, and the mark that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adoptable {
    pub name: Name,
    pub data: RecordData,
    pub tool: Tool,
    /// dnsweaver's instance, external-dns' owner.
    pub id: Option<String>,
    /// Where the mark stands: to be removed once the value is ours.
    pub mark: (Name, RecordData),
}

impl Adoptable {
    /// `dnsweaver home`, `external-dns blue`.
    pub fn by(&self) -> String {
        let id = self.id.as_deref().unwrap_or_default();
        format!("{} {id}", self.tool).trim_end().to_owned()
    }

    /// The value as ours.
    pub fn owned(&self) -> OwnedValue {
        let (data, reasons, origin) = (self.data.clone(), Vec::new(), Origin::Adopted);
        OwnedValue { data, reasons, origin, pending: false }
    }

    /// The mark as something of ours that goes with the next plan.
    pub fn discarded(&self) -> (Name, OwnedValue) {
        let (name, data) = self.mark.clone();
        (name, discarded(data))
    }
}

fn discarded(data: RecordData) -> OwnedValue {
    OwnedValue { data, reasons: Vec::new(), origin: Origin::Discarded, pending: false }
}

/// Everything that marks of dnsweaver and external-dns cover. Nothing is adopted by this alone.
pub fn adoptable(actual: &Actual, naming: &external_dns::Naming) -> Vec<Adoptable> {
    let mut found: Vec<Adoptable> = actual.zones.iter().flat_map(|zone| of_zone(zone, naming)).collect();
    found.sort_by(|one, other| {
        let place = |it: &Adoptable| (it.name.clone(), it.data.clone(), it.tool, it.id.clone());
        place(one).cmp(&place(other))
    });
    found
}

fn of_zone(zone: &ActualZone, naming: &external_dns::Naming) -> Vec<Adoptable> {
    let mut found = Vec::new();
    let sets = zone.sets.as_deref().unwrap_or_default();
    let mut by_name: BTreeMap<&Name, Vec<&RecordSet>> = BTreeMap::new();
    for set in sets {
        by_name.entry(&set.name).or_default().push(set);
    }
    let marks = sets.iter().filter(|set| set.kind == RecordType::Txt);
    for (set, data) in marks.flat_map(|set| set.values.iter().map(move |data| (set, data))) {
        let mut add = |name: &Name, tool: Tool, id: Option<&str>, covers: &dyn Fn(&RecordData) -> bool| {
            let before = found.len();
            let sets = by_name.get(name).into_iter().flatten();
            for value in sets.flat_map(|set| &set.values).filter(|value| covers(value) && *value != data) {
                let (mark, id) = ((set.name.clone(), data.clone()), id.map(str::to_owned));
                found.push(Adoptable { name: name.clone(), data: value.clone(), tool, id, mark });
            }
            found.len() > before
        };
        if let Some(mark) = dnsweaver::Mark::parse(&set.name, data) {
            add(&mark.name, Tool::Dnsweaver, mark.instance.as_deref(), &|value| mark.covers(value));
        }
        // Of the readings of one mark the first that fits is meant: with a type before without.
        for mark in external_dns::Mark::parse(&set.name, data, naming) {
            if add(&mark.name, Tool::ExternalDns, Some(&mark.owner), &|value| mark.covers(value)) {
                break;
            }
        }
    }
    found
}

/// dnsweaver's lists of names in zones where each of its marks is among `taken`: they go with the marks.
pub fn catalogues(actual: &Actual, taken: &[Adoptable]) -> Vec<(Name, OwnedValue)> {
    let taken: BTreeSet<&(Name, RecordData)> = taken.iter().map(|one| &one.mark).collect();
    let mut found = Vec::new();
    for zone in &actual.zones {
        let texts = || {
            let sets = zone.sets.iter().flatten().filter(|set| set.kind == RecordType::Txt);
            sets.flat_map(|set| set.values.iter().map(move |data| (set.name.clone(), data.clone())))
        };
        let mut marks = texts().filter(|(at, data)| dnsweaver::Mark::parse(at, data).is_some()).peekable();
        if marks.peek().is_some() && marks.all(|mark| taken.contains(&mark)) {
            let listed = texts().filter(|(at, _)| dnsweaver::is_catalogue(at, &zone.name));
            found.extend(listed.map(|(at, data)| (at, discarded(data))));
        }
    }
    found
}
