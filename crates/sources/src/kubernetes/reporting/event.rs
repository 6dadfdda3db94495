//! [`Event`]: one sentence on an object, that `kubectl describe` shows for an hour.

use std::fmt::Write as _;

use jiff::Timestamp;
use netstead_wire::kubernetes::{Cluster, KubernetesError, Resource};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Subject;

/// Events of objects of the cluster itself live here.
const DEFAULT_NAMESPACE: &str = "default";
const CONTROLLER: &str = "netstead.io/netstead";

#[derive(Debug)]
pub(in crate::kubernetes) struct Event {
    namespace: String,
    name: String,
    regarding: Value,
    reason: &'static str,
    good: bool,
    note: String,
}

impl Event {
    pub(in crate::kubernetes) fn new(
        subject: &Subject,
        reason: &'static str,
        good: bool,
        note: String,
    ) -> Self {
        let Subject { resource, object, .. } = subject;
        let (namespace, object_name) = (object.name.namespace.clone(), object.name.name.as_str());
        // The same sentence on the same object has the same name, so the server keeps it once.
        let digest = Sha256::digest(format!("{} {reason} {note}", object.uid));
        let mut name: String = object_name.chars().take(200).collect();
        name.push('.');
        for byte in digest.iter().take(8) {
            let _ = write!(name, "{byte:02x}");
        }
        let mut regarding = json!({
            "apiVersion": resource.api_version(), "kind": resource.kind, "name": object_name, "uid": object.uid,
        });
        if let (false, Some(fields)) = (namespace.is_empty(), regarding.as_object_mut()) {
            fields.insert("namespace".to_owned(), Value::from(namespace.as_str()));
        }
        Self {
            namespace: if namespace.is_empty() { DEFAULT_NAMESPACE.to_owned() } else { namespace },
            name,
            regarding,
            reason,
            good,
            note,
        }
    }

    pub(super) async fn write(&self, cluster: &Cluster, now: Timestamp) -> Result<(), KubernetesError> {
        let events = Resource {
            group: "events.k8s.io".to_owned(),
            version: "v1".to_owned(),
            plural: "events".to_owned(),
            kind: "Event".to_owned(),
            namespaced: true,
        };
        let instance = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
        let instance: String = instance.unwrap_or_else(|| "netstead".to_owned()).chars().take(128).collect();
        let body = json!({
            "apiVersion": events.api_version(),
            "kind": events.kind,
            "metadata": { "name": self.name, "namespace": self.namespace },
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
            "reportingController": CONTROLLER,
            "reportingInstance": instance,
            "action": "Publish",
            "reason": self.reason,
            "type": if self.good { "Normal" } else { "Warning" },
            "regarding": self.regarding,
            "note": self.note,
        });
        cluster.create(&events, Some(self.namespace.as_str()), &body).await
    }
}
