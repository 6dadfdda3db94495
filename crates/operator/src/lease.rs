//! [`Lease`]: one of several replicas works, the others keep their view of the cluster warm.
//!
//! It spares double work and is no fence: a replica that stands still may go on after its lease has run out. What keeps an
//! address from two claims is in `claim_controller`.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use netstead_wire::kubernetes::{KubernetesError, Resource};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tracing::{debug, info, warn};

use crate::{kinds, object::ObjectName, shared::Shared};

/// How a lease is renewed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// A lease that is not renewed for this long is free.
    pub(crate) duration: Duration,
    pub(crate) renew: Duration,
    /// A holder that could not renew for this long stops working: before others may begin.
    pub(crate) give_up: Duration,
    /// The longest that one attempt may take.
    pub(crate) attempt: Duration,
}

pub(crate) const TIMING: Timing = Timing {
    duration: Duration::from_secs(15),
    renew: Duration::from_secs(3),
    give_up: Duration::from_secs(10),
    attempt: Duration::from_secs(5),
};

#[derive(Debug)]
pub(crate) struct Lease {
    shared: Arc<Shared>,
    name: ObjectName,
    identity: String,
    /// The version of the lease as another holder left it, and when it was seen first: clocks of machines are not compared.
    seen: Option<(String, Duration)>,
    /// When the attempt began that renewed it last.
    renewed: Option<Duration>,
    timing: Timing,
}

impl Lease {
    pub(crate) fn new(
        shared: Arc<Shared>,
        namespace: &str,
        name: &str,
        identity: String,
        timing: Timing,
    ) -> Self {
        let name = ObjectName::new(namespace, name);
        Self { shared, name, identity, seen: None, renewed: None, timing }
    }

    /// Goes on until it is dropped, and says whether this replica is to work.
    pub(crate) async fn run(mut self, leading: watch::Sender<bool>) {
        loop {
            let begun = self.shared.clock.monotonic();
            // No attempt goes on for longer than this replica may work without one that succeeds.
            let patience = self.left(begun).unwrap_or(Duration::MAX).min(self.timing.attempt);
            let slow = || Err(KubernetesError::Slow(patience));
            match timeout(patience, self.try_once()).await.unwrap_or_else(|_| slow()) {
                Ok(true) => {
                    self.renewed = Some(begun);
                    if !leading.send_replace(true) {
                        info!(identity = self.identity, "This replica works.");
                    }
                }
                Ok(false) => self.stop_leading(&leading, "Another replica works."),
                Err(error) => {
                    debug!(%error, "The lease could not be renewed.");
                    let is_late = self.left(self.shared.clock.monotonic()).is_none_or(|left| left.is_zero());
                    if is_late && *leading.borrow() {
                        warn!(%error, "The lease was not renewed in time.");
                        self.stop_leading(&leading, "This replica stops working.");
                    }
                }
            }
            let left = self.left(self.shared.clock.monotonic()).filter(|left| !left.is_zero());
            sleep(left.unwrap_or(Duration::MAX).min(self.timing.renew)).await;
        }
    }

    /// How long this replica may go on working without a renewal; none if it does not work.
    fn left(&self, now: Duration) -> Option<Duration> {
        self.renewed.map(|renewed| renewed.saturating_add(self.timing.give_up).saturating_sub(now))
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
                    if now.saturating_sub(*since) < self.timing.duration {
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
                "holderIdentity": self.identity, "leaseDurationSeconds": self.timing.duration.as_secs(), "renewTime": now,
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

#[cfg(test)]
mod tests {
    use std::{
        path::PathBuf,
        sync::atomic::{AtomicBool, Ordering},
    };

    use axum::{Router, extract::Request, http::StatusCode, response::IntoResponse as _};
    use netstead_model::{NoopObserver, SystemClock};
    use netstead_wire::kubernetes::{Cluster, KubernetesAccess};

    use super::*;
    use crate::{NoExternalPools, api::Api, world::World};

    /// An API server that keeps no lease: each attempt makes it. Once it hangs it answers nothing any more.
    async fn server(hangs: Arc<AtomicBool>) -> String {
        let router = Router::new().fallback(move |request: Request| {
            let hangs = Arc::clone(&hangs);
            async move {
                if hangs.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
                if request.method() == "POST" {
                    return (StatusCode::CREATED, "{}").into_response();
                }
                let none = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
                    "message": "there is none" });
                (StatusCode::NOT_FOUND, none.to_string()).into_response()
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }

    fn kubeconfig(server: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("netstead-lease-{}", std::process::id()));
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{{ name: x, cluster: {{ server: '{server}' }} }}]\n\
             contexts: [{{ name: x, context: {{ cluster: x, user: x }} }}]\nusers: [{{ name: x, user: {{}} }}]\n"
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_replica_stops_before_its_lease_ends_although_the_server_hangs() {
        let hangs = Arc::new(AtomicBool::new(false));
        let path = kubeconfig(&server(Arc::clone(&hangs)).await);
        let access = KubernetesAccess { kubeconfig: Some(path.clone()), context: None };
        let clock = SystemClock::shared();
        let cluster = Cluster::new(access, Arc::new(NoopObserver), Arc::clone(&clock));
        let external = Arc::new(NoExternalPools);
        let world = World::new(Vec::new(), None);
        let shared = Shared::new(Api { cluster }, Arc::clone(&clock), None, world, external, Arc::default());
        // A twentieth of the usual times, with a margin of seconds before the end of the lease.
        let timing = Timing {
            duration: Duration::from_secs(8),
            renew: Duration::from_millis(150),
            give_up: Duration::from_millis(500),
            attempt: Duration::from_millis(250),
        };
        let (leading, mut leads) = watch::channel(false);
        let lease = Lease::new(Arc::new(shared), "x", "lease", "one".to_owned(), timing);
        let running = tokio::spawn(lease.run(leading));
        leads.wait_for(|leads| *leads).await.unwrap();
        hangs.store(true, Ordering::Relaxed);
        let stopped = timeout(timing.duration, leads.wait_for(|leads| !*leads)).await;
        assert!(stopped.is_ok(), "it works on after its lease has ended");
        running.abort();
        let _ = std::fs::remove_file(path);
    }
}
