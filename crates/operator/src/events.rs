//! Events: one sentence on an object, that `kubectl describe` shows for an hour.

use std::fmt::Write as _;

use netstead_wire::kubernetes::{KubernetesError, Resource};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tracing::debug;

use crate::{kinds, object::Metadata, shared::Shared};

/// Events of objects of the cluster itself live here.
const DEFAULT_NAMESPACE: &str = "default";
const CONTROLLER: &str = "netstead.io/operator";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Warning,
}

impl Shared {
    /// Writes an event. One that cannot be written is not missed: the condition says the same.
    pub(crate) async fn event(
        &self,
        (resource, object): (&Resource, &Metadata),
        kind: EventKind,
        reason: &str,
        note: &str,
    ) {
        let namespace = Some(object.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
        // The same sentence on the same object has the same name, so the server keeps it once.
        let digest = Sha256::digest(format!("{} {reason} {note}", object.uid));
        let mut name: String = object.name.chars().take(200).collect();
        name.push('.');
        for byte in digest.iter().take(8) {
            let _ = write!(name, "{byte:02x}");
        }
        let mut regarding = json!({
            "apiVersion": resource.api_version(), "kind": resource.kind, "name": object.name, "uid": object.uid,
        });
        if let (false, Some(fields)) = (object.namespace.is_empty(), regarding.as_object_mut()) {
            fields.insert("namespace".to_owned(), Value::from(object.namespace.as_str()));
        }
        let events = kinds::resource("events.k8s.io", "v1", "events", "Event", true);
        let instance = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
        let instance: String = instance.unwrap_or_else(|| "netstead".to_owned()).chars().take(128).collect();
        let event = json!({
            "apiVersion": events.api_version(),
            "kind": events.kind,
            "metadata": { "name": name, "namespace": namespace },
            "eventTime": self.clock.wall().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
            "reportingController": CONTROLLER,
            "reportingInstance": instance,
            "action": "Reconcile",
            "reason": reason,
            "type": match kind { EventKind::Warning => "Warning" },
            "regarding": regarding,
            "note": note.chars().take(1000).collect::<String>(),
        });
        match self.api.create::<IgnoredAny>(&events, namespace, &event).await {
            Ok(_) | Err(KubernetesError::Conflict(_)) => {}
            Err(error) => debug!(object = object.name, reason, %error, "An event could not be written."),
        }
    }
}
