//! The objects of the API server, as far as they are read here.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::kinds::PoolKind;

/// The annotation that makes controllers leave an object alone, whatever its value.
pub(crate) const PAUSED: &str = "cluster.x-k8s.io/paused";
/// The label with the name of an object's cluster.
pub(crate) const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// The label that chooses one of several controllers.
pub(crate) const WATCH_FILTER: &str = "cluster.x-k8s.io/watch-filter";
/// The annotation that `clusterctl move` puts on objects it removes at the source.
pub(crate) const DELETE_FOR_MOVE: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
/// The annotation of a claim with the address it wants.
pub(crate) const WANTED: &str = "ipam.netstead.io/address";
/// The annotation of a pool with addresses that are kept for claims: `name=address`, with commas between.
pub(crate) const PROMISES: &str = "ipam.netstead.io/pre-allocations";

/// The annotation of a pool with the seconds that a released address rests.
pub(crate) const REUSE_DELAY: &str = "ipam.netstead.io/reuse-delay-seconds";
/// The annotation of a pool with the addresses that rest: `address=second`, with commas between.
pub(crate) const COOLING: &str = "ipam.netstead.io/cooling";
/// The annotation of a claim with the uid of an `IPAddress` that it gives up, because another claim has the address.
pub(crate) const GIVES_WAY: &str = "ipam.netstead.io/gives-way";
/// The annotation of an `IPAddress` with its key in another system.
pub(crate) const EXTERNAL_KEY: &str = "ipam.netstead.io/key";

/// The annotation of a claim with the names that its address gets in DNS, with commas between.
pub(crate) const HOSTNAME: &str = "netstead.io/hostname";
/// The annotation of an `IPAddress` with the names that it has in DNS.
pub(crate) const NAMES: &str = "ipam.netstead.io/names";
/// The annotation of an `IPAddress` with the reason why it lacks a name.
pub(crate) const NAME_PROBLEM: &str = "ipam.netstead.io/name-problem";

/// The annotation of a pool with the first part of its claims' keys in another system. It moves along with the pool.
pub(crate) const INSTALLATION: &str = "ipam.netstead.io/installation";

/// The finalizers of the in-cluster provider.
pub(crate) const RELEASE_ADDRESS: &str = "ipam.cluster.x-k8s.io/ReleaseAddress";
pub(crate) const PROTECT_ADDRESS: &str = "ipam.cluster.x-k8s.io/ProtectAddress";
pub(crate) const PROTECT_POOL: &str = "ipam.cluster.x-k8s.io/ProtectPool";

/// Namespace and name; objects of the cluster itself have an empty namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ObjectName {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// A pool: its kind and its name. Pools of two kinds with one name never mix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PoolKey {
    pub(crate) kind: PoolKind,
    pub(crate) name: ObjectName,
}

impl fmt::Display for PoolKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) generation: i64,
    pub(crate) creation_timestamp: Option<Timestamp>,
    pub(crate) deletion_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) finalizers: Vec<String>,
    /// As the server sends them: those of others are written back as they came.
    #[serde(deserialize_with = "or_empty")]
    pub(crate) owner_references: Vec<Value>,
}

impl Metadata {
    pub(crate) fn key(&self) -> ObjectName {
        ObjectName::new(&self.namespace, &self.name)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.annotations.contains_key(PAUSED)
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Whether `clusterctl move` removes it here because it is in another cluster by now: nothing of it may be released.
    pub(crate) fn is_deleted_for_move(&self) -> bool {
        self.annotations.contains_key(DELETE_FOR_MOVE)
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|one| one == name)
    }

    /// Its version as a number that only grows.
    pub(crate) fn version(&self) -> u64 {
        self.resource_version.parse().unwrap_or(u64::MAX)
    }
}

/// A reference to a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PoolReference {
    #[serde(deserialize_with = "or_empty")]
    pub(crate) api_group: String,
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl PoolReference {
    /// The pool that is meant by an object in this namespace; none of another provider's.
    pub(crate) fn pool(&self, namespace: &str) -> Option<PoolKey> {
        let kind = PoolKind::of_reference(&self.api_group, &self.kind)?;
        let namespace = if kind.is_namespaced() { namespace } else { "" };
        Some(PoolKey { kind, name: ObjectName::new(namespace, &self.name) })
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct NameReference {
    #[serde(deserialize_with = "or_empty")]
    pub(crate) name: String,
}

/// An `IPAddressClaim`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Claim {
    pub(crate) metadata: Metadata,
    pub(crate) spec: ClaimSpec,
    pub(crate) status: ClaimStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClaimSpec {
    #[serde(deserialize_with = "or_empty")]
    pub(crate) cluster_name: String,
    pub(crate) pool_ref: PoolReference,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClaimStatus {
    #[serde(deserialize_with = "or_empty")]
    pub(crate) address_ref: NameReference,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) conditions: Vec<Value>,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) deprecated: Value,
}

impl Claim {
    /// The cluster that it belongs to: the field, or else the label.
    pub(crate) fn cluster(&self) -> Option<ObjectName> {
        let label = self.metadata.labels.get(CLUSTER_NAME).map(String::as_str);
        let field = Some(self.spec.cluster_name.as_str()).filter(|name| !name.is_empty());
        let name = field.or(label).filter(|name| !name.is_empty())?;
        Some(ObjectName::new(&self.metadata.namespace, name))
    }

    pub(crate) fn pool(&self) -> Option<PoolKey> {
        self.spec.pool_ref.pool(&self.metadata.namespace)
    }

    /// Whether its owner was told the address.
    pub(crate) fn is_published(&self) -> bool {
        !self.status.address_ref.name.is_empty()
    }
}

/// An `IPAddress`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct AddressObject {
    pub(crate) metadata: Metadata,
    pub(crate) spec: AddressSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AddressSpec {
    pub(crate) claim_ref: NameReference,
    pub(crate) pool_ref: PoolReference,
    pub(crate) address: String,
}

impl AddressObject {
    pub(crate) fn pool(&self) -> Option<PoolKey> {
        self.spec.pool_ref.pool(&self.metadata.namespace)
    }
}

/// A `Cluster`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ClusterObject {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) spec: ClusterSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ClusterSpec {
    pub(crate) paused: Option<bool>,
}

impl ClusterObject {
    pub(crate) fn is_paused(&self) -> bool {
        self.spec.paused == Some(true) || self.metadata.is_paused()
    }
}

/// A pool of any kind.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct PoolObject {
    pub(crate) metadata: Metadata,
    pub(crate) spec: Value,
    pub(crate) status: Value,
}

/// Reads `null` as the value that means nothing.
fn or_empty<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(input).map(Option::unwrap_or_default)
}
