//! [`Lease`]: one of several replicas works, the others keep their view of the cluster warm.
//!
//! It spares double work and is no fence: a replica that stands still may go on after its lease has run out. What keeps an
//! address from two claims is in `claim_controller`.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use netstead_wire::kubernetes::{KubernetesError, Resource};
use serde_json::{Value, json};
use tokio::{sync::watch, time::sleep};
use tracing::{debug, info, warn};

use crate::{kinds, object::ObjectName, shared::Shared};

/// A lease that is not renewed for this long is free.
const DURATION: Duration = Duration::from_secs(15);
const RENEW: Duration = Duration::from_secs(3);
/// A holder that could not renew for this long stops working: before others may begin.
const GIVE_UP: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Lease {
    shared: Arc<Shared>,
    name: ObjectName,
    identity: String,
    /// The version of the lease as another holder left it, and when it was seen first: clocks of machines are not compared.
    seen: Option<(String, Duration)>,
    renewed: Option<Duration>,
}

impl Lease {
    pub(crate) fn new(shared: Arc<Shared>, namespace: &str, name: &str, identity: String) -> Self {
        Self { shared, name: ObjectName::new(namespace, name), identity, seen: None, renewed: None }
    }

    /// Goes on until it is dropped, and says whether this replica is to work.
    pub(crate) async fn run(mut self, leading: watch::Sender<bool>) {
        loop {
            match self.try_once().await {
                Ok(true) => {
                    self.renewed = Some(self.shared.clock.monotonic());
                    if !leading.send_replace(true) {
                        info!(identity = self.identity, "This replica works.");
                    }
                }
                Ok(false) => self.stop_leading(&leading, "Another replica works."),
                Err(error) => {
                    debug!(%error, "The lease could not be renewed.");
                    let now = self.shared.clock.monotonic();
                    let late = self.renewed.is_none_or(|at| now.saturating_sub(at) >= GIVE_UP);
                    if late && *leading.borrow() {
                        warn!(%error, "The lease was not renewed in time.");
                        self.stop_leading(&leading, "This replica stops working.");
                    }
                }
            }
            sleep(RENEW).await;
        }
    }

    fn stop_leading(&mut self, leading: &watch::Sender<bool>, message: &str) {
        self.renewed = None;
        if leading.send_replace(false) {
            info!(identity = self.identity, "{message}");
        }
    }

    /// Takes or renews the lease; `false` if another replica has it.
    async fn try_once(&mut self) -> Result<bool, KubernetesError> {
        let resource = resource();
        let now = self.shared.clock.monotonic();
        let Some(lease) = self.shared.api.get::<Value>(&resource, &self.name).await? else {
            let fresh = self.body(None, 0);
            return match self.shared.api.create::<Value>(&resource, &self.name.namespace, &fresh).await {
                Ok(_) => Ok(true),
                Err(KubernetesError::Conflict(_)) => Ok(false),
                Err(error) => Err(error),
            };
        };
        let text = |path: &str| lease.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let version = text("/metadata/resourceVersion");
        let holder = text("/spec/holderIdentity");
        if holder != self.identity && !holder.is_empty() {
            match &self.seen {
                Some((known, since)) if *known == version => {
                    if now.saturating_sub(*since) < DURATION {
                        return Ok(false);
                    }
                }
                _ => {
                    self.seen = Some((version, now));
                    return Ok(false);
                }
            }
        }
        let count = lease.pointer("/spec/leaseTransitions").and_then(Value::as_i64).unwrap_or_default();
        let count = if holder == self.identity { count } else { count + 1 };
        match self.shared.api.replace::<Value>(&resource, &self.name, &self.body(Some(&version), count)).await
        {
            Ok(_) => Ok(true),
            Err(KubernetesError::Conflict(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn body(&self, version: Option<&str>, transitions: i64) -> Value {
        let now: Timestamp = self.shared.clock.wall();
        let now = now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let mut metadata = json!({ "name": self.name.name, "namespace": self.name.namespace });
        if let (Some(version), Some(fields)) = (version, metadata.as_object_mut()) {
            fields.insert("resourceVersion".to_owned(), Value::from(version));
        }
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata,
            "spec": {
                "holderIdentity": self.identity, "leaseDurationSeconds": DURATION.as_secs(), "renewTime": now,
                "leaseTransitions": transitions,
            },
        })
    }

    /// Lets another replica work at once.
    pub(crate) async fn give_back(shared: &Shared, namespace: &str, name: &str, identity: &str) {
        let (resource, name) = (resource(), ObjectName::new(namespace, name));
        let Ok(Some(lease)) = shared.api.get::<Value>(&resource, &name).await else { return };
        let text = |path: &str| lease.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        if text("/spec/holderIdentity") == identity {
            let patch = json!({ "spec": { "holderIdentity": "" } });
            let done = shared.api.patch(&resource, &name, &text("/metadata/resourceVersion"), patch).await;
            debug!(?done, "The lease was given back.");
        }
    }
}

fn resource() -> Resource {
    kinds::resource("coordination.k8s.io", "v1", "leases", "Lease", true)
}
