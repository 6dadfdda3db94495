//! [`Object`]: an object as the API server sends it, and [`Stored`]: what is kept of it.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::kinds::Body;

/// An object of any kind. Its parts are read by its kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Object {
    #[serde(default)]
    pub(super) metadata: Metadata,
    #[serde(default)]
    pub(super) spec: Value,
    #[serde(default)]
    pub(super) status: Value,
    /// Of a ConfigMap and its like.
    #[serde(default)]
    pub(super) data: Value,
    /// Of an EndpointSlice.
    #[serde(default)]
    pub(super) endpoints: Value,
    #[serde(default)]
    pub(super) address_type: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    /// Another one means another spec.
    pub(super) generation: Option<i64>,
    pub(super) resource_version: String,
    pub(super) creation_timestamp: Option<Timestamp>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// Namespace and name; objects of the cluster have an empty namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ObjectName {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl ObjectName {
    pub(super) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
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

/// The part of an object that is kept: the labels and annotations that are read, and what its kind takes out of it. A change of
/// anything else is no change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) name: ObjectName,
    pub(super) uid: String,
    /// Of kinds with a status that is ours to write.
    pub(super) generation: Option<i64>,
    pub(super) created: Option<Timestamp>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) body: Body,
}

impl Object {
    pub(super) fn name(&self) -> ObjectName {
        ObjectName::new(self.metadata.namespace.clone(), self.metadata.name.clone())
    }

    /// The spec as a type of ours. An object without a spec is one whose fields are all missing.
    pub(super) fn spec<T: DeserializeOwned + Default>(&self) -> Result<T, String> {
        part("spec", &self.spec)
    }

    pub(super) fn status<T: DeserializeOwned + Default>(&self) -> Result<T, String> {
        part("status", &self.status)
    }
}

pub(super) fn part<T: DeserializeOwned + Default>(name: &str, value: &Value) -> Result<T, String> {
    if value.is_null() {
        return Ok(T::default());
    }
    T::deserialize(value).map_err(|error| format!("{name}: {error}"))
}
