//! The objects that stand for a workload: a machine, its interfaces with their MACs, and its addresses.

use std::collections::BTreeSet;

use netstead_model::{FieldValue, Fields, IpamInterface, IpamSubject, Kind, ObjectDraft, ObjectKind};

use super::{
    MAC, NetBox,
    known::{Known, slug},
    read::disk_unit,
    text,
};

/// The characters that names of machines and interfaces have room for.
const NAME: usize = 64;
/// The characters of a description.
const DESCRIPTION: usize = 200;

impl NetBox {
    pub(super) fn drafts(&self, subject: &IpamSubject) -> Vec<ObjectDraft> {
        let known = self.known();
        let at = subject.key(ObjectKind::MACHINE, "");
        let (mut drafts, mut machine) = (Vec::new(), Fields::new());
        for interface in &subject.interfaces {
            let key = subject.key(ObjectKind::INTERFACE, &interface.name);
            let mut fields = Fields::from([
                ("name".to_owned(), text(cut(&interface.name, NAME))),
                ("machine".to_owned(), FieldValue::Ref(at.clone())),
            ]);
            if let Some(mac) = interface.mac {
                let mac = mac.to_string();
                if known.has_macs() {
                    let own = subject.key(MAC, &interface.name);
                    fields.insert("mac".to_owned(), FieldValue::Ref(own.clone()));
                    let on = FieldValue::Ref(key.clone());
                    let fields = Fields::from([("mac".to_owned(), text(mac)), ("interface".to_owned(), on)]);
                    drafts.push(ObjectDraft { key: own, fields });
                } else {
                    fields.insert("mac".to_owned(), text(mac));
                }
            }
            fields.extend(vlan_of(interface, &known).map(|vlan| ("vlan".to_owned(), text(vlan))));
            drafts.push(ObjectDraft { key, fields });
        }
        for (interface, one) in subject.all_addresses() {
            if one.address.kind() == Kind::Mac || !self.is_near(one.address) {
                continue;
            }
            let key = subject.key(ObjectKind::ADDRESS, one.address.to_string());
            // The mask of the prefix counts, not that of the guest.
            let prefix = known.prefixes.longest(one.address);
            let length = prefix.map_or(one.address.kind().bits(), |prefix| prefix.cidr.len());
            let status = if one.reserved { "reserved" } else { "active" };
            let mut fields = Fields::from([
                ("address".to_owned(), text(format!("{}/{length}", one.address))),
                ("status".to_owned(), text(status)),
            ]);
            fields.extend(one.dns_name.as_ref().map(|name| ("dns_name".to_owned(), text(name.as_str()))));
            let claim = one.claim.as_ref().map(|claim| cut(&format!("claim {claim}"), DESCRIPTION));
            fields.extend(claim.map(|claim| ("description".to_owned(), text(claim))));
            fields.extend(self.config.tenant.as_ref().map(|name| ("tenant".to_owned(), text(name))));
            if let Some(interface) = interface {
                let on = FieldValue::Ref(subject.key(ObjectKind::INTERFACE, &interface.name));
                fields.insert("interface".to_owned(), on);
                let primary = if one.address.kind() == Kind::V6 { "primary_ip6" } else { "primary_ip4" };
                machine.entry(primary.to_owned()).or_insert_with(|| FieldValue::Ref(key.clone()));
            }
            drafts.push(ObjectDraft { key, fields });
        }
        if subject.is_machine() {
            self.describe(subject, &known, &mut machine);
            drafts.insert(0, ObjectDraft { key: at, fields: machine });
        }
        drafts
    }

    fn describe(&self, subject: &IpamSubject, known: &Known, machine: &mut Fields) {
        let facts = &subject.facts;
        let cluster = self.config.cluster.as_deref().or(facts.cluster.as_deref());
        machine.insert("name".to_owned(), text(cut(&subject.name, NAME)));
        machine.insert("cluster".to_owned(), text(cluster.unwrap_or(subject.source.as_ref())));
        machine.insert("status".to_owned(), text(status_of(facts.status.as_deref())));
        machine.extend(self.config.tenant.as_ref().map(|name| ("tenant".to_owned(), text(name))));
        // NetBox takes line ends and spaces from both ends of a text.
        let comments = facts.comments.as_deref().map(str::trim).filter(|comments| !comments.is_empty());
        machine.extend(comments.map(|comments| ("comments".to_owned(), text(comments))));
        let number = |number: u64| FieldValue::Number(i64::try_from(number).unwrap_or(i64::MAX));
        let sizes = [
            ("vcpus", facts.cpus.map(u64::from)),
            ("memory", facts.memory.map(|bytes| bytes >> 20)),
            ("disk", facts.disk.map(|bytes| bytes.div_ceil(disk_unit(known)))),
        ];
        for (name, size) in sizes {
            machine.extend(size.filter(|size| *size > 0).map(|size| (name.to_owned(), number(size))));
        }
        // Tags of others are used, never made.
        let theirs =
            subject.tags.iter().filter_map(|tag| known.tag(tag).or_else(|| known.tag(&slug(tag))).cloned());
        let tags: BTreeSet<String> = theirs.chain(self.own_tag(&subject.kind)).collect();
        if !tags.is_empty() {
            machine.insert("tags".to_owned(), FieldValue::Set(tags));
        }
    }

    /// The slug of the tag that machines of this kind have.
    pub(super) fn own_tag(&self, kind: &str) -> Option<String> {
        let name = self.config.kind_tags.get(kind).map_or(kind, String::as_str);
        (!name.is_empty()).then(|| slug(name))
    }
}

/// NetBox's word for a state.
fn status_of(status: Option<&str>) -> &'static str {
    match status {
        Some("stopped" | "exited" | "dead" | "offline" | "paused" | "suspended") => "offline",
        _ => "active",
    }
}

/// The VLAN of an interface: the one with its number. Of several, the one that a prefix of its addresses is on.
fn vlan_of(interface: &IpamInterface, known: &Known) -> Option<String> {
    let vid = u64::from(interface.vlan?);
    let same: Vec<_> = known.vlans.iter().copied().filter(|vlan| vlan.vid == vid).collect();
    let vlan = match same.as_slice() {
        [] => return None,
        [one] => *one,
        several => {
            let prefixes = interface.addresses.iter().filter_map(|one| known.prefixes.longest(one.address));
            let ids: BTreeSet<u64> = prefixes.filter_map(|prefix| prefix.vlan).collect();
            several.iter().copied().find(|vlan| ids.contains(&vlan.id))?
        }
    };
    Some(known.vlan_label(vlan))
}

fn cut(text: &str, most: usize) -> String {
    text.trim().chars().take(most).collect::<String>().trim_end().to_owned()
}
