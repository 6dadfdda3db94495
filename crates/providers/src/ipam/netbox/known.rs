//! [`Known`]: what objects refer to, as the last read found it.

use std::collections::BTreeMap;

use netstead_model::{FieldValue, ObjectKey, ObjectKind, ObjectMark};

use super::text;
use crate::netbox::{PrefixIndex, Row, Version, id_of, label_of};

/// A VLAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vlan {
    pub(super) id: u64,
    pub(super) vid: u64,
}

/// Everything that objects refer to, and the ids of our own.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) version: Option<Version>,
    pub(super) prefixes: PrefixIndex,
    pub(super) vlans: Vec<Vlan>,
    /// Slugs of tags that machines may have, by name and by slug in lower case.
    pub(super) tags: BTreeMap<String, String>,
    pub(super) clusters: BTreeMap<String, u64>,
    pub(super) tenant: Option<u64>,
    pub(super) vrf: Option<u64>,
    /// Ids of objects with a mark.
    ids: BTreeMap<(String, ObjectKey), u64>,
    /// The same the other way round.
    keys: BTreeMap<(ObjectKind, u64), ObjectKey>,
}

impl Known {
    /// Remembers an object with a mark. Of two with one mark the older counts.
    pub(super) fn remember(&mut self, id: u64, mark: &ObjectMark) {
        self.keys.insert((mark.key.kind.clone(), id), mark.key.clone());
        self.ids.entry((mark.owner.clone(), mark.key.clone())).or_insert(id);
    }

    pub(super) fn forget(&mut self, id: u64, mark: &ObjectMark) {
        self.keys.remove(&(mark.key.kind.clone(), id));
        let at = (mark.owner.clone(), mark.key.clone());
        if self.ids.get(&at) == Some(&id) {
            self.ids.remove(&at);
        }
    }

    pub(super) fn id(&self, owner: &str, key: &ObjectKey) -> Option<u64> {
        self.ids.get(&(owner.to_owned(), key.clone())).copied()
    }

    /// Whether MAC addresses are objects.
    pub(super) fn has_macs(&self) -> bool {
        self.version.is_none_or(|version| version >= Version::MAC_OBJECTS)
    }

    /// The object that a relation of `row` points to: one of ours, or a text for people.
    pub(super) fn target(&self, kind: &ObjectKind, row: &Row, name: &str) -> Option<FieldValue> {
        let id = id_of(row, name)?;
        self.target_by_id(kind, id).or_else(|| label_of(row, name).map(text))
    }

    pub(super) fn target_by_id(&self, kind: &ObjectKind, id: u64) -> Option<FieldValue> {
        self.keys.get(&(kind.clone(), id)).cloned().map(FieldValue::Ref)
    }

    /// The name of a VLAN in the field `vlan`: its number, and its id if several have that.
    pub(super) fn vlan_label(&self, vlan: Vlan) -> String {
        let same = self.vlans.iter().filter(|other| other.vid == vlan.vid).count();
        if same < 2 { vlan.vid.to_string() } else { format!("{}#{}", vlan.vid, vlan.id) }
    }

    pub(super) fn vlan_by_label(&self, label: &str) -> Option<u64> {
        self.vlans.iter().find(|vlan| self.vlan_label(**vlan) == label).map(|vlan| vlan.id)
    }

    /// The slug of a tag that is there.
    pub(super) fn tag(&self, name: &str) -> Option<&String> {
        self.tags.get(&name.to_lowercase())
    }
}

/// A word as NetBox has it in addresses of pages: `Web Server` is `web-server`.
pub(super) fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let dashed: String = name.chars().map(plain).collect();
    let parts: Vec<&str> = dashed.split('-').filter(|part| !part.is_empty()).collect();
    let slug: String = parts.join("-").chars().take(100).collect();
    if slug.is_empty() { "netstead".to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_have_plain_characters() {
        assert_eq!(slug("Web  Server/1"), "web-server-1");
        assert_eq!(slug("---"), "netstead");
    }

    #[test]
    fn vlans_of_one_number_are_told_apart() {
        let vlan = |id, vid| Vlan { id, vid };
        let known = Known { vlans: vec![vlan(1, 100), vlan(2, 200), vlan(3, 200)], ..Known::default() };
        assert_eq!(known.vlan_label(vlan(1, 100)), "100");
        assert_eq!(known.vlan_label(vlan(3, 200)), "200#3");
        assert_eq!((known.vlan_by_label("200#3"), known.vlan_by_label("200")), (Some(3), None));
    }
}
