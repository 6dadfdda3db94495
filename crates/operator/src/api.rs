//! [`Api`]: the calls that change objects of the API server. Each is safe to repeat.

use netstead_wire::kubernetes::{Cluster, KubernetesError, Resource};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{kinds, object::ObjectName};

const MERGE: &str = "application/merge-patch+json";

/// The result of deleting an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deleted {
    Gone,
    /// Finalizers of others keep it.
    Pending,
}

#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) cluster: Cluster,
}

impl Api {
    /// Merges `patch` into an object as it was at this version: a later change is a conflict.
    pub(crate) async fn patch(
        &self,
        resource: &Resource,
        name: &ObjectName,
        version: &str,
        patch: Value,
    ) -> Result<(), KubernetesError> {
        self.patch_to::<serde::de::IgnoredAny>(resource, name, version, patch).await.map(drop)
    }

    /// The same, with the object as the server has it then.
    pub(crate) async fn patch_to<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        name: &ObjectName,
        version: &str,
        patch: Value,
    ) -> Result<T, KubernetesError> {
        self.merge(&object_path(resource, name), version, patch).await
    }

    /// The same for its status.
    pub(crate) async fn patch_status(
        &self,
        resource: &Resource,
        name: &ObjectName,
        version: &str,
        patch: Value,
    ) -> Result<(), KubernetesError> {
        let path = format!("{}/status", object_path(resource, name));
        self.merge::<serde::de::IgnoredAny>(&path, version, patch).await.map(drop)
    }

    async fn merge<T: DeserializeOwned>(
        &self,
        path: &str,
        version: &str,
        mut patch: Value,
    ) -> Result<T, KubernetesError> {
        if let (Some(fields), false) = (patch.as_object_mut(), version.is_empty()) {
            let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("resourceVersion".to_owned(), Value::from(version));
            }
        }
        let path = format!("{path}?fieldManager=netstead");
        let body = patch.to_string().into_bytes();
        self.cluster.send("PATCH", &path, MERGE, body).await
    }

    pub(crate) async fn create<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        namespace: &str,
        object: &Value,
    ) -> Result<T, KubernetesError> {
        let path = format!("{}?fieldManager=netstead", resource.path(in_namespace(namespace)));
        self.cluster.send("POST", &path, "application/json", object.to_string().into_bytes()).await
    }

    pub(crate) async fn replace<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        name: &ObjectName,
        object: &Value,
    ) -> Result<T, KubernetesError> {
        let path = format!("{}?fieldManager=netstead", object_path(resource, name));
        self.cluster.send("PUT", &path, "application/json", object.to_string().into_bytes()).await
    }

    /// An object as the server has it now.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        name: &ObjectName,
    ) -> Result<Option<T>, KubernetesError> {
        match self.cluster.get(&object_path(resource, name)).await {
            Ok(object) => Ok(Some(object)),
            Err(KubernetesError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes exactly this object. One that is gone is fine.
    pub(crate) async fn delete(
        &self,
        resource: &Resource,
        name: &ObjectName,
        uid: &str,
        version: Option<&str>,
    ) -> Result<Deleted, KubernetesError> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            kind: String,
        }
        let mut conditions = json!({ "uid": uid });
        if let (Some(version), Some(fields)) = (version, conditions.as_object_mut()) {
            fields.insert("resourceVersion".to_owned(), Value::from(version));
        }
        let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions });
        let body = options.to_string().into_bytes();
        let path = object_path(resource, name);
        match self.cluster.send::<Answer>("DELETE", &path, "application/json", body).await {
            // An object that waits for finalizers is answered as it is.
            Ok(answer) if answer.kind == resource.kind => Ok(Deleted::Pending),
            Ok(_) | Err(KubernetesError::NotFound(_)) => Ok(Deleted::Gone),
            Err(error) => Err(error),
        }
    }
}

fn object_path(resource: &Resource, name: &ObjectName) -> String {
    resource.object_path(in_namespace(&name.namespace), &name.name)
}

fn in_namespace(namespace: &str) -> Option<&str> {
    Some(namespace).filter(|namespace| !namespace.is_empty())
}

pub(crate) fn claims() -> Resource {
    kinds::resource(kinds::GROUP, "v1beta2", "ipaddressclaims", "IPAddressClaim", true)
}

pub(crate) fn addresses() -> Resource {
    kinds::resource(kinds::GROUP, "v1beta2", "ipaddresses", "IPAddress", true)
}

pub(crate) fn clusters() -> Resource {
    kinds::resource("cluster.x-k8s.io", "v1beta2", "clusters", "Cluster", true)
}
