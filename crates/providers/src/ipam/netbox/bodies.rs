//! Fields as NetBox takes them.

use std::collections::BTreeSet;

use netstead_model::{FieldValue, Fields, ObjectKey, ObjectKind};
use serde_json::{Value, json};

use super::{NetBox, known::Known, read::VM_INTERFACE, related::Missing};
use crate::{netbox::Row, phpipam::Marks};

/// The mode that an interface with an untagged VLAN must have.
const ACCESS: &str = "access";

impl NetBox {
    /// Fields in NetBox's own words. An error is a sentence for people.
    pub(super) fn sent(
        &self,
        kind: &ObjectKind,
        owner: &str,
        fields: &Fields,
        missing: &Missing,
    ) -> Result<Row, String> {
        let known = self.known();
        let mut body = Row::new();
        for (name, value) in fields {
            match (kind.as_str(), name.as_str(), value) {
                (_, "tags", FieldValue::Set(tags)) => {
                    body.insert("tags".into(), json!(tags_of(tags, &known, missing)?));
                }
                ("machine", "cluster", value) => {
                    let cluster = value.to_string();
                    let id = known.clusters.get(&cluster).ok_or_else(|| missing.of("cluster", &cluster))?;
                    body.insert("cluster".into(), json!(id));
                }
                (_, "tenant", value) => {
                    let tenant = value.to_string();
                    let configured = self.config.tenant.as_ref() == Some(&tenant);
                    let id =
                        known.tenant.filter(|_| configured).ok_or_else(|| missing.of("tenant", &tenant))?;
                    body.insert("tenant".into(), json!(id));
                }
                ("machine", "primary_ip4" | "primary_ip6", FieldValue::Ref(target)) => {
                    body.insert(name.clone(), json!(id_of(&known, owner, target)?));
                }
                ("interface", "machine", FieldValue::Ref(target)) => {
                    body.insert("virtual_machine".into(), json!(id_of(&known, owner, target)?));
                }
                ("interface", "mac", FieldValue::Ref(target)) => {
                    body.insert("primary_mac_address".into(), json!(id_of(&known, owner, target)?));
                }
                ("interface" | "mac", "mac", FieldValue::Text(mac)) => {
                    body.insert("mac_address".into(), json!(mac));
                }
                ("interface", "vlan", value) => {
                    let label = value.to_string();
                    let id =
                        known.vlan_by_label(&label).ok_or_else(|| format!("there is no VLAN {label}"))?;
                    body.insert("untagged_vlan".into(), json!(id));
                    body.insert("mode".into(), json!(ACCESS));
                }
                ("mac" | "address", "interface", FieldValue::Ref(target)) => {
                    body.insert("assigned_object_type".into(), json!(VM_INTERFACE));
                    body.insert("assigned_object_id".into(), json!(id_of(&known, owner, target)?));
                }
                (_, _, FieldValue::Ref(target)) => return Err(format!("`{name}` cannot be {target}")),
                (_, _, FieldValue::Number(number)) => drop(body.insert(name.clone(), json!(number))),
                (_, _, FieldValue::Text(text)) => drop(body.insert(name.clone(), json!(text))),
                (_, _, FieldValue::Set(set)) => drop(body.insert(name.clone(), json!(set))),
            }
        }
        Ok(body)
    }

    /// The custom field with our marks.
    pub(super) fn marked(&self, body: &mut Row, marks: &Marks) {
        let text = marks.field();
        let value = if text.is_empty() { Value::Null } else { json!(text) };
        body.insert("custom_fields".to_owned(), json!({ self.api.key_field().name(): value }));
    }

    /// Empties fields. One that cannot be empty stays.
    pub(super) fn emptied<'a>(&self, kind: &ObjectKind, names: impl Iterator<Item = &'a String>) -> Row {
        let mut body = Row::new();
        for name in names {
            let (name, value) = match (kind.as_str(), name.as_str()) {
                (_, "name" | "cluster" | "status" | "machine" | "address") | ("mac", "mac") => continue,
                (_, "comments" | "dns_name" | "description") => (name.as_str(), json!("")),
                (_, "tags") => ("tags", json!([])),
                ("interface", "mac") if self.known().has_macs() => ("primary_mac_address", Value::Null),
                ("interface", "mac") => ("mac_address", Value::Null),
                ("interface", "vlan") => {
                    body.insert("mode".into(), json!(""));
                    ("untagged_vlan", Value::Null)
                }
                ("mac" | "address", "interface") => {
                    body.insert("assigned_object_type".into(), Value::Null);
                    ("assigned_object_id", Value::Null)
                }
                (_, other) => (other, Value::Null),
            };
            body.insert(name.to_owned(), value);
        }
        body
    }
}

fn id_of(known: &Known, owner: &str, target: &ObjectKey) -> Result<u64, String> {
    known.id(owner, target).ok_or_else(|| format!("{target} is not there"))
}

fn tags_of(tags: &BTreeSet<String>, known: &Known, missing: &Missing) -> Result<Vec<Value>, String> {
    let tag = |slug: &String| match known.tag(slug) {
        Some(slug) => Ok(json!({ "slug": slug })),
        None => Err(missing.of("tag", slug)),
    };
    tags.iter().map(tag).collect()
}
