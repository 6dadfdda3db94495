//! [`IpamSubject`]: a workload or a claim as an IPAM system shall show it.

use std::collections::BTreeSet;

use super::{FieldValue, Fields, ObjectDraft, ObjectKey, ObjectKind, ObjectRole, ObjectType};
use crate::{Address, Facts, Ident, Key, Kind, Name};

/// A workload or a claim, with the addresses that are its own. Two subjects never have the same address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpamSubject {
    pub source: Ident,
    pub id: Key,
    /// `container`, `vm`, `claim`, …
    pub kind: String,
    pub name: String,
    pub tags: BTreeSet<String>,
    pub facts: Facts,
    pub interfaces: Vec<IpamInterface>,
    /// Addresses that are on no known interface: those of a claim, or of a workload that is only known by its addresses.
    pub addresses: Vec<IpamAddress>,
}

/// An interface. Its name is unique within the subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpamInterface {
    pub name: String,
    pub mac: Option<Address>,
    pub vlan: Option<u16>,
    pub addresses: Vec<IpamAddress>,
}

/// An address of the subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpamAddress {
    pub address: Address,
    /// The name that DNS shall have for it.
    pub dns_name: Option<Name>,
    /// The claim that holds it, as `POOL/KEY`.
    pub claim: Option<String>,
    /// Nothing that runs has it: it is only claimed.
    pub reserved: bool,
}

impl IpamSubject {
    /// The key of an object that stands for a part of this subject.
    pub fn key(&self, kind: ObjectKind, part: impl Into<String>) -> ObjectKey {
        ObjectKey::new(kind, &self.source, &self.id, part)
    }

    /// Whether it has interfaces; otherwise it is a claim, or known by its addresses alone.
    pub fn is_machine(&self) -> bool {
        !self.interfaces.is_empty()
    }

    /// All addresses with their interface, in order.
    pub fn all_addresses(&self) -> impl Iterator<Item = (Option<&IpamInterface>, &IpamAddress)> {
        let on = |interface| move |address| (Some(interface), address);
        let placed = self.interfaces.iter().flat_map(move |one| one.addresses.iter().map(on(one)));
        placed.chain(self.addresses.iter().map(|address| (None, address)))
    }
}

/// The kinds of [`standard_objects`].
pub fn standard_kinds() -> Vec<ObjectType> {
    vec![
        ObjectType::new(
            ObjectKind::MACHINE,
            ObjectRole::Machine,
            &["name"],
            &[
                "name",
                "type",
                "status",
                "cluster",
                "node",
                "cpus",
                "memory",
                "disk",
                "tags",
                "comments",
                "primary_ip4",
                "primary_ip6",
            ],
        ),
        ObjectType::new(
            ObjectKind::INTERFACE,
            ObjectRole::Interface,
            &[],
            &["name", "machine", "mac", "vlan"],
        ),
        ObjectType::new(
            ObjectKind::ADDRESS,
            ObjectRole::Address,
            &["address"],
            &["address", "status", "dns_name", "interface", "claim"],
        ),
    ]
}

/// A machine, its interfaces and its addresses; without interfaces the addresses alone. Memory and disk are in bytes.
pub fn standard_objects(subject: &IpamSubject) -> Vec<ObjectDraft> {
    let text = |text: &str| FieldValue::Text(text.to_owned());
    let number = |number: u64| FieldValue::Number(i64::try_from(number).unwrap_or(i64::MAX));
    let (mut objects, mut machine) = (Vec::new(), Fields::new());
    let at = subject.key(ObjectKind::MACHINE, "");
    for interface in &subject.interfaces {
        let mut fields = Fields::from([
            ("name".to_owned(), text(&interface.name)),
            ("machine".to_owned(), FieldValue::Ref(at.clone())),
        ]);
        fields.extend(interface.mac.map(|mac| ("mac".to_owned(), text(&mac.to_string()))));
        fields.extend(interface.vlan.map(|vlan| ("vlan".to_owned(), number(vlan.into()))));
        objects.push(ObjectDraft { key: subject.key(ObjectKind::INTERFACE, &interface.name), fields });
    }
    for (interface, one) in subject.all_addresses() {
        let status = if one.reserved { "reserved" } else { "active" };
        let key = subject.key(ObjectKind::ADDRESS, one.address.to_string());
        let mut fields = Fields::from([
            ("address".to_owned(), text(&one.address.to_string())),
            ("status".to_owned(), text(status)),
        ]);
        fields.extend(one.dns_name.as_ref().map(|name| ("dns_name".to_owned(), text(name.as_str()))));
        fields.extend(one.claim.as_ref().map(|claim| ("claim".to_owned(), text(claim))));
        if let Some(interface) = interface {
            let on = FieldValue::Ref(subject.key(ObjectKind::INTERFACE, &interface.name));
            fields.insert("interface".to_owned(), on);
            let primary = if one.address.kind() == Kind::V6 { "primary_ip6" } else { "primary_ip4" };
            machine.entry(primary.to_owned()).or_insert_with(|| FieldValue::Ref(key.clone()));
        }
        objects.push(ObjectDraft { key, fields });
    }
    if subject.is_machine() {
        let facts = &subject.facts;
        machine.insert("name".to_owned(), text(&subject.name));
        machine.insert("type".to_owned(), text(&subject.kind));
        let words = [
            ("status", &facts.status),
            ("cluster", &facts.cluster),
            ("node", &facts.node),
            ("comments", &facts.comments),
        ];
        for (name, word) in words {
            machine.extend(word.as_ref().map(|word| (name.to_owned(), text(word))));
        }
        let numbers = [("cpus", facts.cpus.map(u64::from)), ("memory", facts.memory), ("disk", facts.disk)];
        for (name, value) in numbers {
            machine.extend(value.map(|value| (name.to_owned(), number(value))));
        }
        if !subject.tags.is_empty() {
            machine.insert("tags".to_owned(), FieldValue::Set(subject.tags.clone()));
        }
        objects.insert(0, ObjectDraft { key: at, fields: machine });
    }
    objects
}
