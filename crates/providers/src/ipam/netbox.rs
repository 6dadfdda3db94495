//! NetBox: machines, interfaces, MAC addresses and IP addresses, over its REST API.
//!
//! Our key stands in a custom field of every object. Many objects are written per request, all or none: if NetBox names the
//! members that it refuses, the others are sent again without them, and if not, the batch is halved. An object is read right
//! before it is changed or removed. An address that a pool backend claimed is filled in, and never removed.

mod batches;
mod bodies;
mod create;
mod diagnose;
mod known;
mod objects;
mod read;
mod related;
mod write;

use std::{
    collections::BTreeMap,
    fmt,
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use netstead_model::{
    Cidr, Diagnosis, FieldValue, IpamCapabilities, IpamObject, IpamProvider, IpamSubject, ObjectDraft,
    ObjectKind, ObjectRole, ObjectType, ObjectWrite, ProviderError, WriteReply,
};
use netstead_settings::{Configured, Identity, Kind, Shape, TextShape, table};

use self::known::Known;
use super::IpamKind;
use crate::{
    BuildContext, Secret, SettingsError,
    netbox::{Api, Connection},
};

pub const KIND: IpamKind = Kind::new::<Config>(
    "netbox",
    "NetBox: machines, interfaces and addresses, over its REST API",
    capabilities,
);

/// MAC addresses are objects from NetBox 4.2 on.
const MAC: ObjectKind = ObjectKind::new("mac");

/// Objects that are made when they are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// The cluster of a machine, and its type.
    Cluster,
    Tenant,
    Vrf,
}

impl Made {
    const ALL: [Self; 3] = [Self::Cluster, Self::Tenant, Self::Vrf];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Tenant => "tenant",
            Self::Vrf => "vrf",
        }
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Made {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|made| made.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is never made; write `cluster`, `tenant` or `vrf`"))
    }
}

impl TextShape for Made {
    fn text_shape() -> Shape {
        Shape::Choice(Self::ALL.map(Self::as_str).to_vec())
    }
}

table! {
    /// `[ipam.NAME]` with `type = "netbox"`.
    pub struct Config {
        connection: Connection, all;
        /// the cluster of all machines
        cluster: Option<String>, unset "that of the workload, or the name of its source";
        /// the type of clusters that are made
        cluster_type: String, default "Netstead";
        /// the tenant of machines and addresses
        tenant: Option<String>, unset "none";
        /// the VRF of addresses; only prefixes and addresses in it are looked at
        vrf: Option<String>, unset "the global table";
        /// what is made when it is missing: `cluster`, `tenant`, `vrf`
        make: Vec<Made>, unset "nothing";
        /// the networks whose addresses are written there; the others are left out
        networks: Vec<Cidr>, unset "all";
        /// the tag of machines by their kind, which is made if it is missing: `{ vm = "qemu", container = "lxc" }`; an empty
        /// text gives none
        kind_tags: BTreeMap<String, String>, unset "the kind itself";
    }
}

impl Configured<dyn IpamProvider> for Config {
    fn identity(&self) -> Identity {
        self.connection.identity()
    }

    fn server(&self) -> String {
        self.connection.url.clone()
    }

    fn check(&self) -> Result<(), SettingsError> {
        self.connection.check()?;
        let named = [("cluster", &self.cluster), ("tenant", &self.tenant), ("vrf", &self.vrf)];
        let all = named.into_iter().filter_map(|(key, name)| Some((key, name.as_ref()?)));
        for (key, name) in all.chain([("cluster_type", &self.cluster_type)]) {
            if name.trim().is_empty() || name.chars().count() > 100 {
                return Err(SettingsError::new(
                    key,
                    format!("`{name}` is no name: it has 1 to 100 characters"),
                ));
            }
        }
        Ok(())
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn IpamProvider>, SettingsError> {
        Ok(Arc::new(self.open(context)?))
    }
}

impl Config {
    /// Everything but address and token at its default.
    pub fn new(url: impl Into<String>, token: Secret) -> Self {
        Self {
            connection: Connection::new(url, token),
            cluster: None,
            cluster_type: "Netstead".to_owned(),
            tenant: None,
            vrf: None,
            make: Vec::new(),
            networks: Vec::new(),
            kind_tags: BTreeMap::new(),
        }
    }

    /// Opens files and secrets; the server itself is asked later.
    pub fn open(&self, context: &BuildContext) -> Result<NetBox, SettingsError> {
        Configured::check(self)?;
        let api = self.connection.open(context)?;
        Ok(NetBox {
            api,
            config: self.clone(),
            known: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        })
    }
}

fn capabilities() -> IpamCapabilities {
    let machine = &[
        "name",
        "cluster",
        "status",
        "vcpus",
        "memory",
        "disk",
        "tags",
        "comments",
        "tenant",
        "primary_ip4",
        "primary_ip6",
    ];
    let address = &["address", "status", "dns_name", "description", "interface", "tenant"];
    let kinds = vec![
        ObjectType::new(ObjectKind::MACHINE, ObjectRole::Machine, &["name", "cluster"], machine),
        ObjectType::new(
            ObjectKind::INTERFACE,
            ObjectRole::Interface,
            &["machine", "name"],
            &["name", "machine", "mac", "vlan"],
        ),
        ObjectType::new(MAC, ObjectRole::Other, &[], &["mac", "interface"]),
        ObjectType::new(ObjectKind::ADDRESS, ObjectRole::Address, &["address"], address),
    ];
    IpamCapabilities { kinds, most_units: None }
}

/// One NetBox.
#[derive(Debug)]
pub struct NetBox {
    api: Api,
    config: Config,
    /// As the last read found it, and as writes changed it since.
    known: Mutex<Known>,
    writing: tokio::sync::Mutex<()>,
}

impl NetBox {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl IpamProvider for NetBox {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn server(&self) -> String {
        self.api.server().to_owned()
    }

    fn capabilities(&self) -> IpamCapabilities {
        capabilities()
    }

    async fn read(&self) -> Result<Vec<IpamObject>, ProviderError> {
        self.read_all().await.map_err(|error| error.unexpected(self.api.server()))
    }

    fn objects(&self, subject: &IpamSubject) -> Vec<ObjectDraft> {
        self.drafts(subject)
    }

    async fn write(&self, request: &ObjectWrite) -> Result<WriteReply, ProviderError> {
        self.write_all(request).await
    }

    async fn diagnose(&self) -> Vec<Diagnosis> {
        self.findings().await
    }
}

fn text(value: impl Into<String>) -> FieldValue {
    FieldValue::Text(value.into())
}

/// Where objects of a kind are.
fn path_of(kind: &ObjectKind) -> &'static str {
    match kind.as_str() {
        "machine" => "/api/virtualization/virtual-machines/",
        "interface" => "/api/virtualization/interfaces/",
        "mac" => "/api/dcim/mac-addresses/",
        _ => "/api/ipam/ip-addresses/",
    }
}

/// The fields of a kind that are looked at: fewer cost NetBox less. Versions before 4.0 send all.
fn columns_of(kind: &ObjectKind) -> &'static str {
    match kind.as_str() {
        "machine" => {
            "id,name,cluster,status,vcpus,memory,disk,tags,comments,tenant,primary_ip4,primary_ip6,custom_fields"
        }
        "interface" => "id,name,virtual_machine,mac_address,primary_mac_address,untagged_vlan,custom_fields",
        "mac" => "id,mac_address,assigned_object_type,assigned_object_id,assigned_object,custom_fields",
        _ => {
            "id,address,status,dns_name,description,tenant,vrf,assigned_object_type,assigned_object_id,\
             assigned_object,custom_fields"
        }
    }
}
