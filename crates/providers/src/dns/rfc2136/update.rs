//! The UPDATE message of RFC 2136: prerequisites and changes.

use netstead_model::{Fence, Name, RecordData, RecordSet, RecordType, Unit};

use crate::dns::{
    preconditions::{expected, removals_first, wanted},
    tidy,
};

const IN: u16 = 1;
const NONE: u16 = 254;
const ANY: u16 = 255;
const SOA: u16 = 6;
/// Where the name of the zone stands in every update.
const ZONE: [u8; 2] = [0xc0, 12];
/// Opcode UPDATE.
const FLAGS: [u8; 2] = [0x28, 0];
const FENCE_TTL: u32 = 60;
const FENCE: &str = "_netstead-fence-";

/// An update of one zone in the making.
#[derive(Debug, Clone)]
pub(super) struct Update {
    zone: Name,
    prerequisites: Section,
    updates: Section,
}

#[derive(Debug, Clone, Default)]
struct Section {
    bytes: Vec<u8>,
    count: u32,
    /// It has a value that fits into no record, and can be sent to no server.
    unencodable: bool,
}

impl Section {
    fn put_value(&mut self, zone: &Name, name: &Name, class: u16, ttl: u32, value: &RecordData) {
        match value.to_wire() {
            Some(data) => self.put(zone, name, value.kind().number(), class, ttl, &data),
            None => self.unencodable = true,
        }
    }

    fn put(&mut self, zone: &Name, name: &Name, kind: u16, class: u16, ttl: u32, data: &[u8]) {
        self.count += 1;
        let inside = name.as_str().strip_suffix(zone.as_str()).filter(|_| name.is_subdomain_of(zone));
        match inside {
            Some(front) => {
                for label in front.split('.').filter(|label| !label.is_empty()) {
                    self.bytes.push(u8::try_from(label.len()).unwrap_or(u8::MAX));
                    self.bytes.extend_from_slice(label.as_bytes());
                }
                self.bytes.extend(ZONE);
            }
            None => name.put_wire(&mut self.bytes),
        }
        self.bytes.extend(kind.to_be_bytes());
        self.bytes.extend(class.to_be_bytes());
        self.bytes.extend(ttl.to_be_bytes());
        self.bytes.extend(u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.bytes.extend_from_slice(data);
    }
}

impl Update {
    pub(super) fn new(zone: &Name) -> Self {
        Self { zone: zone.clone(), prerequisites: Section::default(), updates: Section::default() }
    }

    /// Whether it is of at most `most` bytes without its signature, and every value fits into a record.
    pub(super) fn fits(&self, most: usize) -> bool {
        self.size() <= most && !self.prerequisites.unencodable && !self.updates.unencodable
    }

    /// How long the message is without its signature.
    pub(super) fn size(&self) -> usize {
        // The header, and the zone with type and class.
        12 + self.zone.as_str().len() + 6 + self.prerequisites.bytes.len() + self.updates.bytes.len()
    }

    /// The message, without its id.
    pub(super) fn message(&self) -> Vec<u8> {
        let count = |section: &Section| u16::try_from(section.count).unwrap_or(u16::MAX).to_be_bytes();
        let mut message = vec![0, 0];
        message.extend(FLAGS);
        message.extend([0, 1]);
        message.extend(count(&self.prerequisites));
        message.extend(count(&self.updates));
        message.extend([0, 0]);
        self.zone.put_wire(&mut message);
        message.extend(SOA.to_be_bytes());
        message.extend(IN.to_be_bytes());
        message.extend_from_slice(&self.prerequisites.bytes);
        message.extend_from_slice(&self.updates.bytes);
        message
    }

    /// The set must be there, with any values.
    pub(super) fn require_any(&mut self, name: &Name, kind: RecordType) {
        self.prerequisites.put(&self.zone, name, kind.number(), ANY, 0, &[]);
    }

    fn require_none(&mut self, name: &Name, kind: RecordType) {
        self.prerequisites.put(&self.zone, name, kind.number(), NONE, 0, &[]);
    }

    fn require_unused(&mut self, name: &Name) {
        self.prerequisites.put(&self.zone, name, ANY, NONE, 0, &[]);
    }

    /// The set must be there with exactly these values.
    fn require(&mut self, set: &RecordSet) {
        for value in &set.values {
            self.prerequisites.put_value(&self.zone, &set.name, IN, 0, value);
        }
    }

    fn add(&mut self, name: &Name, ttl: u32, value: &RecordData) {
        self.updates.put_value(&self.zone, name, IN, ttl, value);
    }

    fn remove(&mut self, name: &Name, value: &RecordData) {
        self.updates.put_value(&self.zone, name, NONE, 0, value);
    }

    fn remove_set(&mut self, set: &RecordSet) {
        self.updates.put(&self.zone, &set.name, set.kind.number(), ANY, 0, &[]);
    }

    /// The old value of the fence must be there, and the new one shall be.
    pub(super) fn fence(&mut self, name: &Name, old: Option<&Mark>, new: &Mark) {
        match old {
            Some(old) => self.require(&old.set(name)),
            None => self.require_none(name, RecordType::Txt),
        }
        if old != Some(new) {
            if let Some(old) = old {
                self.remove_set(&old.set(name));
            }
            for value in new.set(name).values {
                self.add(name, FENCE_TTL, &value);
            }
        }
    }

    /// All changes of one name, with what each expects.
    pub(super) fn unit(&mut self, unit: &Unit) {
        self.cname_rule(unit);
        for change in removals_first(unit) {
            let before = expected(change).cloned().map(tidy);
            let after = wanted(change).cloned().map(tidy);
            match (&before, change.after.as_ref().or(change.before.as_ref())) {
                (Some(before), _) => self.require(before),
                (None, Some(set)) => self.require_none(&set.name, set.kind),
                (None, None) => {}
            }
            self.replace(before.as_ref(), after.as_ref());
        }
    }

    /// Removes the whole set if any value of it is removed: its values are a condition, so no foreign value is hit, and
    /// PowerDNS passes over a single SVCB or HTTPS value that it wrote in another form.
    fn replace(&mut self, before: Option<&RecordSet>, after: Option<&RecordSet>) {
        let Some(set) = after.or(before) else { return };
        let keeps = |value: &RecordData| after.is_some_and(|after| after.values.contains(value));
        // The name servers of a zone are never all removed, so the new ones come first.
        if set.kind == RecordType::Ns && set.name == self.zone {
            if let Some(after) = after {
                self.add_all(after, |_| true);
            }
            let gone = before.iter().flat_map(|before| &before.values).filter(|value| !keeps(value));
            gone.for_each(|value| self.remove(&set.name, value));
            return;
        }
        let whole = before.is_some_and(|before| {
            after.is_none_or(|after| after.ttl != before.ttl) || !before.values.iter().all(keeps)
        });
        if let Some(before) = before.filter(|_| whole) {
            self.remove_set(before);
        }
        let there = |value: &RecordData| before.is_some_and(|before| !whole && before.values.contains(value));
        if let Some(after) = after {
            self.add_all(after, |value| !there(value));
        }
    }

    fn add_all(&mut self, set: &RecordSet, which: impl Fn(&RecordData) -> bool) {
        set.values.iter().filter(|value| which(value)).for_each(|value| self.add(&set.name, set.ttl, value));
    }

    /// A CNAME stands alone. Servers drop what would break that without a word (RFC 2136, section 3.4.2.2), so it is
    /// made a condition.
    fn cname_rule(&mut self, unit: &Unit) {
        let new = |cname: bool| {
            unit.own_changes().any(|change| {
                wanted(change).is_some_and(|set| (set.kind == RecordType::Cname) == cname)
                    && expected(change).is_none()
            })
        };
        let named = |kind: RecordType| {
            unit.own_changes().any(|change| {
                change.before.as_ref().or(change.after.as_ref()).is_some_and(|set| set.kind == kind)
            })
        };
        let fresh = unit.own_changes().all(|change| expected(change).is_none());
        if new(true) && fresh {
            self.require_unused(&unit.name);
        } else if new(true) {
            let others = RecordType::ALL.into_iter().filter(|kind| !named(*kind));
            others.for_each(|kind| self.require_none(&unit.name, kind));
        } else if new(false) && fresh && !named(RecordType::Cname) {
            self.require_none(&unit.name, RecordType::Cname);
        }
    }
}

/// The content of the fence record: the last write that the server accepted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub(super) epoch: u64,
    pub(super) generation: u64,
}

impl Mark {
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let (epoch, generation) = std::str::from_utf8(text).ok()?.split_once(' ')?;
        Some(Self { epoch: epoch.parse().ok()?, generation: generation.parse().ok()? })
    }

    fn set(&self, name: &Name) -> RecordSet {
        let text = format!("{} {}", self.epoch, self.generation);
        RecordSet::new(name.clone(), RecordType::Txt, FENCE_TTL, [RecordData::txt(text)])
    }
}

impl From<&Fence> for Mark {
    fn from(fence: &Fence) -> Self {
        Self { epoch: fence.epoch, generation: fence.generation }
    }
}

/// Where the fence of `owner` stands.
pub(super) fn fence_name(owner: &str, zone: &Name) -> Result<Name, String> {
    Name::join(&format!("{FENCE}{owner}"), zone)
        .map_err(|error| format!("the owner `{owner}` cannot stand in a name: {error}"))
}

/// Whether `set` is the fence of any installation: it is the provider's own, and nobody's record.
pub(super) fn is_fence(set: &RecordSet, zone: &Name) -> bool {
    set.kind == RecordType::Txt
        && set.name.as_str().starts_with(FENCE)
        && set.name.parent().as_ref() == Some(zone)
}

#[cfg(test)]
mod tests {
    use netstead_model::SetChange;

    use super::*;

    #[test]
    fn a_value_that_fits_into_no_record_is_never_cut_to_fit() {
        let zone: Name = "example.net".parse().unwrap();
        let update = |length: usize| {
            let value = RecordData::Txt(vec![vec![b'x'; length]]);
            let after = Some(RecordSet::new(zone.clone(), RecordType::Txt, 60, [value]));
            let mut update = Update::new(&zone);
            update.unit(&Unit { name: zone.clone(), changes: vec![SetChange { before: None, after }] });
            update
        };
        assert!(update(255).fits(1000));
        assert!(!update(255).fits(100));
        assert!(!update(256).fits(1000), "no message can hold a string of 256 bytes");
    }
}
