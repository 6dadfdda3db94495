//! The objects that stand for a workload: its addresses, in the subnets that hold them.

use std::collections::BTreeMap;

use netstead_model::{
    Address, Cidr, FieldValue, Fields, IpamSubject, Kind, ObjectDraft, ObjectKey, ObjectKind,
};

use super::{PhpIpam, text};
use crate::phpipam::{AddressRow, Subnet, clean, cut};

/// Columns with little room, and how many characters they have.
const ROOM: &[(&str, usize)] = &[("description", 64), ("owner", 128), ("hostname", 255), ("port", 32)];

/// Subnets and sections as the last read found them.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) subnets: Vec<Subnet>,
    /// Id and name.
    pub(super) sections: Vec<(String, String)>,
    /// The subnet in which an object of ours stands, by its label.
    pub(super) placed: BTreeMap<ObjectKey, String>,
    /// Labels by id.
    labels: BTreeMap<String, String>,
}

impl Known {
    pub(super) fn new(subnets: Vec<Subnet>, sections: Vec<(String, String)>) -> Self {
        let mut known = Self { subnets, sections, ..Self::default() };
        // The same network may be there in several sections.
        known.subnets.sort_by_key(|subnet| subnet.id.parse::<u64>().unwrap_or(u64::MAX));
        let mut count: BTreeMap<Cidr, usize> = BTreeMap::new();
        for subnet in &known.subnets {
            *count.entry(subnet.cidr).or_default() += 1;
        }
        let label = |subnet: &Subnet| {
            let alone = count.get(&subnet.cidr).is_none_or(|count| *count < 2);
            if alone { subnet.cidr.to_string() } else { format!("{}#{}", subnet.cidr, subnet.id) }
        };
        known.labels = known.subnets.iter().map(|subnet| (subnet.id.clone(), label(subnet))).collect();
        known
    }

    /// The name of a subnet in the field `subnet`.
    pub(super) fn label(&self, id: &str) -> Option<String> {
        self.labels.get(id).cloned()
    }

    pub(super) fn by_label(&self, label: &str) -> Option<&Subnet> {
        self.subnets.iter().find(|subnet| self.labels.get(&subnet.id).is_some_and(|own| own == label))
    }

    /// The smallest subnet that holds an address; of several, the oldest.
    pub(super) fn longest(&self, address: Address) -> Option<&Subnet> {
        let holding = self.subnets.iter().filter(|subnet| subnet.cidr.contains(address));
        holding.fold(None, |best: Option<&Subnet>, subnet| match best {
            Some(best) if best.cidr.len() >= subnet.cidr.len() => Some(best),
            _ => Some(subnet),
        })
    }
}

impl PhpIpam {
    /// The subnet that would be made for an address.
    pub(super) fn new_subnet(&self, address: Address) -> Option<Cidr> {
        self.config.make_subnets.as_ref()?;
        let length = match address.kind() {
            Kind::V4 => self.config.subnet_length.get(),
            Kind::V6 => self.config.subnet_length6.get(),
            Kind::Mac => return None,
        };
        Cidr::containing(address, length).ok()
    }

    pub(super) fn drafts(&self, subject: &IpamSubject) -> Vec<ObjectDraft> {
        let known = self.known().clone();
        let networks = &self.config.networks;
        let mut drafts = Vec::new();
        for (interface, at) in subject.all_addresses() {
            if !networks.is_empty() && !networks.iter().any(|network| network.contains(at.address)) {
                continue;
            }
            let key = subject.key(ObjectKind::ADDRESS, at.address.to_string());
            // An address stays in the subnet that it is in: phpIPAM moves none.
            let placed = known
                .placed
                .get(&key)
                .filter(|label| known.by_label(label).is_some_and(|subnet| subnet.cidr.contains(at.address)));
            let longest = || known.longest(at.address).and_then(|subnet| known.label(&subnet.id));
            let made = || self.new_subnet(at.address).map(|cidr| cidr.to_string());
            let subnet = placed.cloned().or_else(longest).or_else(made);
            let tag = if at.reserved { self.config.reserved_tag } else { self.config.tag };
            let mut fields = Fields::from([
                ("address".to_owned(), text(at.address.to_string())),
                ("tag".to_owned(), FieldValue::Number(tag.get())),
            ]);
            fields.extend(subnet.map(|subnet| ("subnet".to_owned(), text(subnet))));
            for (field, template) in &self.templates {
                let value = held(field, &template.fill(subject, interface, at));
                if !value.is_empty() {
                    fields.insert(field.clone(), text(value));
                }
            }
            drafts.push(ObjectDraft { key, fields });
        }
        drafts
    }

    /// The fields of an object that are ours to write.
    pub(super) fn fields_of(&self, row: &AddressRow, label: String) -> Fields {
        let mut fields = Fields::from([
            ("address".to_owned(), text(row.address.to_string())),
            ("subnet".to_owned(), text(label)),
            ("tag".to_owned(), FieldValue::Number(row.tag)),
        ]);
        for field in self.templates.keys() {
            fields.extend(row.field(field).map(|value| (field.clone(), text(value))));
        }
        fields
    }
}

/// A text as phpIPAM would hold it in this field.
fn held(field: &str, value: &str) -> String {
    let value = clean(value);
    match ROOM.iter().find(|(name, _)| *name == field) {
        Some((_, room)) => cut(&value, *room),
        None => value,
    }
}
