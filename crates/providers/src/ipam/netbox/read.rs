//! Reads all objects, and everything that they refer to.

use std::collections::BTreeSet;

use netstead_model::{Address, Cidr, FieldValue, Fields, IpamObject, Kind, ObjectKind};
use serde_json::Value;

use super::{
    MAC, Made, NetBox, columns_of,
    known::{Known, Vlan},
    path_of, text,
};
use crate::netbox::{
    ApiError, KeyFieldState, Prefix, PrefixIndex, Row, Version, address_and_length, choice, id_of, label_of,
    list_of, marks_of, name_of, text_of, types_key,
};

/// The type of an interface of a machine.
pub(super) const VM_INTERFACE: &str = "virtualization.vminterface";

impl NetBox {
    pub(super) async fn read_all(&self) -> Result<Vec<IpamObject>, ApiError> {
        let state = self.api.look_at_key_field().await?;
        let mut known = self.read_related().await?;
        let kinds = [ObjectKind::MACHINE, ObjectKind::INTERFACE, MAC, ObjectKind::ADDRESS];
        let [machines, interfaces, macs, addresses] = &kinds;
        let (one, two, three, four) = tokio::try_join!(
            self.rows(machines, &known),
            self.rows(interfaces, &known),
            self.rows(macs, &known),
            self.rows(addresses, &known),
        )?;
        let field = self.api.key_field().name();
        let all: Vec<(&ObjectKind, Row)> = kinds
            .iter()
            .zip([one, two, three, four])
            .flat_map(|(kind, rows)| rows.into_iter().map(move |row| (kind, row)))
            .collect();
        // Objects refer to each other, so all keys are known before the first field is read.
        if state == KeyFieldState::Ready {
            for (kind, row) in &all {
                let (Some(id), Some(mark)) = (id_of(row, "id"), marks_of(row, field).object) else {
                    continue;
                };
                if mark.key.kind == **kind {
                    known.remember(id, &mark);
                }
            }
        }
        let mut objects = Vec::with_capacity(all.len());
        for (kind, row) in &all {
            let Some(id) = id_of(row, "id") else { continue };
            let marks = marks_of(row, field);
            // Ours by a pool backend: it is filled in once something has the address.
            if marks.object.is_none() && marks.claim.is_some() {
                continue;
            }
            let Some(fields) = fields_of(kind, row, &known) else {
                return Err(self
                    .api
                    .malformed(&format!("{} {id} has no value that can be read", kind.as_str()))
                    .into());
            };
            objects.push(IpamObject {
                kind: (*kind).clone(),
                id: id.to_string(),
                mark: marks.object,
                fields,
            });
        }
        *self.known() = known;
        Ok(objects)
    }

    /// Reads everything that objects refer to.
    pub(super) async fn read_related(&self) -> Result<Known, ApiError> {
        let version = self.api.version().await?;
        let vrf = self.find_by_name("/api/ipam/vrfs/", self.config.vrf.as_deref(), Made::Vrf).await?;
        let tenant =
            self.find_by_name("/api/tenancy/tenants/", self.config.tenant.as_deref(), Made::Tenant).await?;
        let named = [("fields", "id,name")];
        let vrf_filter = vrf.map_or_else(|| "null".to_owned(), |id| id.to_string());
        let prefix_query =
            [("fields", "id,prefix,vlan,status,is_pool,vrf,description"), ("vrf_id", vrf_filter.as_str())];
        let prefixes = async {
            // A VRF that is yet to be made has none; those of the global table are not its own.
            if self.lacks_vrf(vrf) {
                Ok(Vec::new())
            } else {
                self.api.list("/api/ipam/prefixes/", &prefix_query).await
            }
        };
        let (clusters, tags, vlans, prefixes) = tokio::try_join!(
            self.api.list("/api/virtualization/clusters/", &named),
            self.api.list("/api/extras/tags/", &[("fields", "id,name,slug,object_types")]),
            self.api.list("/api/ipam/vlans/", &[("fields", "id,vid")]),
            prefixes,
        )?;
        let mut known = Known::default();
        (known.version, known.vrf, known.tenant) = (Some(version), vrf, tenant);
        for cluster in &clusters {
            if let Some(id) = id_of(cluster, "id") {
                known.clusters.entry(text_of(cluster, "name")).or_insert(id);
            }
        }
        let machine = Value::from("virtualization.virtualmachine");
        for tag in &tags {
            // A tag may be meant for other types of objects alone.
            let types = tag.get(types_key(version)).and_then(Value::as_array);
            if types.is_none_or(|types| types.is_empty() || types.contains(&machine)) {
                let slug = text_of(tag, "slug");
                known.tags.insert(slug.to_lowercase(), slug.clone());
                known.tags.entry(text_of(tag, "name").to_lowercase()).or_insert(slug);
            }
        }
        let vlan = |row: &Row| Some(Vlan { id: id_of(row, "id")?, vid: id_of(row, "vid")? });
        known.vlans = vlans.iter().filter_map(vlan).collect();
        let prefixes = prefixes.iter().filter_map(Prefix::read);
        known.prefixes = PrefixIndex::new(prefixes.filter(|prefix| prefix.vrf == vrf));
        Ok(known)
    }

    /// Whether the configuration names a VRF that is not there yet. No VRF then means none at all, not the global table.
    pub(super) fn lacks_vrf(&self, vrf: Option<u64>) -> bool {
        vrf.is_none() && self.config.vrf.is_some()
    }

    /// The id of an object that the configuration names. It may be missing only if it can be made.
    async fn find_by_name(
        &self,
        path: &str,
        name: Option<&str>,
        made: Made,
    ) -> Result<Option<u64>, ApiError> {
        let Some(name) = name else { return Ok(None) };
        let found = self.api.list(path, &[("fields", "id,name"), ("name", name)]).await?;
        let id = found.iter().find(|row| text_of(row, "name") == name).and_then(|row| id_of(row, "id"));
        if id.is_none() && !self.config.make.contains(&made) {
            let reason = format!("it has no {made} `{name}`: add it there, or write `make = [\"{made}\"]`");
            return Err(self.api.malformed(&reason).into());
        }
        Ok(id)
    }

    /// All rows of a kind that count.
    async fn rows(&self, kind: &ObjectKind, known: &Known) -> Result<Vec<Row>, ApiError> {
        let (path, columns) = (path_of(kind), ("fields", columns_of(kind)));
        match kind.as_str() {
            // Versions before 4.0 send all fields, and this one costs the most.
            "machine" => self.api.list(path, &[columns, ("exclude", "config_context")]).await,
            "mac" if !known.has_macs() => Ok(Vec::new()),
            "mac" => {
                let rows = self.api.list(path, &[columns, ("assigned_object_type", VM_INTERFACE)]).await?;
                Ok(rows
                    .into_iter()
                    .filter(|row| text_of(row, "assigned_object_type") == VM_INTERFACE)
                    .collect())
            }
            "address" if self.lacks_vrf(known.vrf) => Ok(Vec::new()),
            "address" => {
                let vrf = known.vrf.map_or_else(|| "null".to_owned(), |id| id.to_string());
                let query = [columns, ("vrf_id", vrf.as_str())];
                let networks: Vec<String> = self.config.networks.iter().map(Cidr::to_string).collect();
                let rows = if networks.is_empty() {
                    self.api.list(path, &query).await?
                } else {
                    self.api.list_by(path, &query, "parent", &networks).await?
                };
                Ok(rows.into_iter().filter(|row| self.counts(row, known)).collect())
            }
            _ => self.api.list(path, &[columns]).await,
        }
    }

    /// Whether an address is in the VRF and the networks that are looked at.
    pub(super) fn counts(&self, row: &Row, known: &Known) -> bool {
        let address = address_and_length(&text_of(row, "address")).map(|(address, _)| address);
        id_of(row, "vrf") == known.vrf && address.is_some_and(|address| self.is_near(address))
    }

    pub(super) fn is_near(&self, address: Address) -> bool {
        let networks = &self.config.networks;
        networks.is_empty() || networks.iter().any(|network| network.contains(address))
    }
}

/// The fields of an object that are ours to write. None if the value that it is known by makes no sense.
pub(super) fn fields_of(kind: &ObjectKind, row: &Row, known: &Known) -> Option<Fields> {
    let mut fields = Fields::new();
    let mut put = |name: &str, value: Option<FieldValue>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    };
    let written = |name: &str| Some(text_of(row, name)).filter(|text| !text.is_empty()).map(text);
    match kind.as_str() {
        "machine" => {
            for name in ["name", "comments"] {
                put(name, written(name));
            }
            for name in ["cluster", "tenant"] {
                put(name, Some(name_of(row, name)).filter(|name| !name.is_empty()).map(text));
            }
            put("status", Some(text(choice(row, "status"))));
            put("vcpus", quantity(row, "vcpus"));
            put("memory", quantity(row, "memory"));
            put("disk", quantity(row, "disk"));
            let tags: BTreeSet<String> = list_of(row, "tags").map(|tag| text_of(tag, "slug")).collect();
            put("tags", Some(FieldValue::Set(tags)).filter(|tags| *tags != FieldValue::Set(BTreeSet::new())));
            for name in ["primary_ip4", "primary_ip6"] {
                put(name, known.target(&ObjectKind::ADDRESS, row, name));
            }
        }
        "interface" => {
            put("name", written("name"));
            put("machine", known.target(&ObjectKind::MACHINE, row, "virtual_machine"));
            let mac = if known.has_macs() {
                known.target(&MAC, row, "primary_mac_address")
            } else {
                mac_of(row).map(text)
            };
            put("mac", mac);
            let vlan = row.get("untagged_vlan").and_then(Value::as_object);
            let vlan = vlan.and_then(|vlan| Some(Vlan { id: id_of(vlan, "id")?, vid: id_of(vlan, "vid")? }));
            put("vlan", vlan.map(|vlan| text(known.vlan_label(vlan))));
        }
        "mac" => {
            put("mac", Some(text(mac_of(row)?)));
            put("interface", assigned(row, known));
        }
        _ => {
            let (address, length) = address_and_length(&text_of(row, "address"))?;
            put("address", Some(text(format!("{address}/{length}"))));
            put("status", Some(text(choice(row, "status"))));
            put("dns_name", written("dns_name"));
            put("description", written("description"));
            put("tenant", Some(name_of(row, "tenant")).filter(|name| !name.is_empty()).map(text));
            put("interface", assigned(row, known));
        }
    }
    Some(fields)
}

/// The interface that an address or a MAC is on.
fn assigned(row: &Row, known: &Known) -> Option<FieldValue> {
    let id = id_of(row, "assigned_object_id")?;
    let ours = || {
        let on_machine = text_of(row, "assigned_object_type") == VM_INTERFACE;
        known.target_by_id(&ObjectKind::INTERFACE, id).filter(|_| on_machine)
    };
    ours().or_else(|| label_of(row, "assigned_object").map(text)).or_else(|| Some(text(format!("(id {id})"))))
}

fn mac_of(row: &Row) -> Option<String> {
    Address::parse(Kind::Mac, &text_of(row, "mac_address")).ok().map(|mac| mac.to_string())
}

/// A number, whether it is written as `2`, `2.0` or `"2.00"`. One with a fraction stays a text.
fn quantity(row: &Row, name: &str) -> Option<FieldValue> {
    let written = text_of(row, name);
    let (whole, fraction) = written.split_once('.').unwrap_or((&written, ""));
    let number = whole.parse().ok().filter(|_| fraction.chars().all(|digit| digit == '0'));
    number.map(FieldValue::Number).or_else(|| Some(written).filter(|text| !text.is_empty()).map(text))
}

/// Whether a version wants disks in megabytes.
pub(super) fn disk_unit(known: &Known) -> u64 {
    let megabytes = known.version.is_none_or(|version| version >= Version::DISK_IN_MB);
    if megabytes { 1 << 20 } else { 1 << 30 }
}
