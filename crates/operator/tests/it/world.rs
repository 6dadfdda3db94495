//! A namespace of the shared API server with an operator in this process.

use std::{path::Path, sync::OnceLock, thread, time::Duration};

use netstead_model::{NoopObserver, SystemClock};
use netstead_operator::{ExternalPools, NoExternalPools, Operator, OperatorOptions, PoolKind, definition};
use netstead_testkit::{KubeApiServer, wait_until};
use netstead_wire::kubernetes::KubernetesAccess;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(crate) const SOON: Duration = Duration::from_mins(1);
/// Long enough for what must not happen to happen.
pub(crate) const A_WHILE: Duration = Duration::from_secs(2);

const IPAM: &str = "/apis/ipam.cluster.x-k8s.io";

/// The API server with all definitions.
pub(crate) fn server() -> &'static KubeApiServer {
    static READY: OnceLock<()> = OnceLock::new();
    let server = KubeApiServer::shared();
    READY.get_or_init(|| define(server));
    server
}

/// Gives a server all definitions.
pub(crate) fn define(server: &KubeApiServer) {
    server.apply(include_str!("cluster-api.yaml"));
    for kind in PoolKind::ALL {
        server.apply(&definition(kind).to_string());
    }
}

/// An operator that ends when it is dropped.
pub(crate) struct Running {
    stop: CancellationToken,
    runtime: Option<tokio::runtime::Runtime>,
    task: Option<tokio::task::JoinHandle<()>>,
    pub(crate) operator: Arc<Operator>,
}

impl Running {
    pub(crate) fn with(options: OperatorOptions) -> Self {
        Self::with_systems(options, Arc::new(NoExternalPools))
    }

    pub(crate) fn with_systems(options: OperatorOptions, systems: Arc<dyn ExternalPools>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let operator =
            Arc::new(Operator::new(options, systems, Arc::new(NoopObserver), SystemClock::shared()));
        let stop = CancellationToken::new();
        let mut running = Self { stop, runtime: Some(runtime), task: None, operator };
        running.begin();
        running
    }

    /// Begins a run, as a node does that takes the lead.
    pub(crate) fn begin(&mut self) {
        let (ours, token) = (Arc::clone(&self.operator), self.stop.clone());
        let runtime = self.runtime.as_ref().unwrap();
        self.task = Some(runtime.spawn(async move {
            ours.run(&token).await.unwrap();
        }));
    }

    /// Drops the run in the middle of whatever it does, as a node does that loses the lead.
    pub(crate) fn drop_run(&mut self) {
        let task = self.task.take().unwrap();
        task.abort();
        let _ = self.runtime.as_ref().unwrap().block_on(task);
    }

    /// Ends it in the middle of whatever it does.
    pub(crate) fn crash(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Lets it end what it does, and give its lease back.
    pub(crate) fn stop(mut self) {
        self.stop.cancel();
        thread::sleep(Duration::from_secs(1));
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A namespace of its own.
pub(crate) struct Space {
    pub(crate) server: &'static KubeApiServer,
    pub(crate) name: String,
}

impl Space {
    pub(crate) fn new(name: &str) -> Self {
        Self::on(server(), name)
    }

    pub(crate) fn on(server: &'static KubeApiServer, name: &str) -> Self {
        server.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {name} }}\n"));
        Self { server, name: name.to_owned() }
    }

    pub(crate) fn options(&self, kubeconfig: &Path) -> OperatorOptions {
        OperatorOptions {
            access: KubernetesAccess { kubeconfig: Some(kubeconfig.to_owned()), context: None },
            // Pools of other systems are of the whole cluster, and each test has its own systems.
            kinds: PoolKind::ALL.into_iter().filter(|kind| !kind.is_external()).collect(),
            namespace: Some(self.name.clone()),
            watch_filter: None,
            lease_namespace: None,
            concurrency: 8,
            metrics: None,
            health: None,
            webhook: None,
        }
    }

    /// An operator for this namespace.
    pub(crate) fn operator(&self) -> Running {
        Running::with(self.options(&self.server.kubeconfig()))
    }

    pub(crate) fn apply(&self, yaml: &str) {
        self.server.apply_in(&self.name, yaml);
    }

    /// A pool with this spec; one of the whole cluster if its kind is.
    pub(crate) fn pool(&self, kind: &str, name: &str, spec: &str) {
        self.apply(&format!(
            "apiVersion: ipam.cluster.x-k8s.io/v1alpha2\nkind: {kind}\nmetadata: {{ name: {name} }}\nspec: {spec}\n"
        ));
    }

    pub(crate) fn pool_path(&self, kind: &str, name: &str) -> String {
        let plural = format!("{}s", kind.to_lowercase());
        if kind.starts_with("Global") {
            format!("{IPAM}/v1alpha2/{plural}/{name}")
        } else {
            format!("{IPAM}/v1alpha2/namespaces/{}/{plural}/{name}", self.name)
        }
    }

    pub(crate) fn claim(&self, name: &str, kind: &str, pool: &str) {
        self.claim_with(name, kind, pool, "", "");
    }

    /// A claim with more metadata and spec: `, labels: {…}` and `, clusterName: x`.
    pub(crate) fn claim_with(&self, name: &str, kind: &str, pool: &str, metadata: &str, spec: &str) {
        self.apply(&format!(
            "apiVersion: ipam.cluster.x-k8s.io/v1beta2\nkind: IPAddressClaim\nmetadata: {{ name: {name}{metadata} }}\n\
             spec: {{ poolRef: {{ apiGroup: ipam.cluster.x-k8s.io, kind: {kind}, name: {pool} }}{spec} }}\n"
        ));
    }

    pub(crate) fn claim_path(&self, name: &str) -> String {
        format!("{IPAM}/v1beta2/namespaces/{}/ipaddressclaims/{name}", self.name)
    }

    pub(crate) fn address_path(&self, name: &str) -> String {
        format!("{IPAM}/v1beta2/namespaces/{}/ipaddresses/{name}", self.name)
    }

    /// An object; none if it does not exist.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let (status, object) = self.server.call("GET", path, None);
        (status == 200).then_some(object)
    }

    /// The address that the owner of a claim was told.
    pub(crate) fn address(&self, claim: &str) -> Option<String> {
        let object = self.get(&self.claim_path(claim))?;
        let name = object["status"]["addressRef"]["name"].as_str()?;
        let address = self.get(&self.address_path(name))?;
        address["spec"]["address"].as_str().map(str::to_owned)
    }

    /// The address of a claim, waited for.
    pub(crate) fn bound(&self, claim: &str) -> String {
        wait_until(SOON, || self.address(claim))
            .unwrap_or_else(|| panic!("{claim} has no address: {:?}", self.get(&self.claim_path(claim))))
    }

    /// `reason: message` of a claim's condition.
    pub(crate) fn reason(&self, claim: &str) -> Option<String> {
        let object = self.get(&self.claim_path(claim))?;
        let ready =
            object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == "Ready")?.clone();
        Some(ready["reason"].as_str()?.to_owned())
    }

    pub(crate) fn wait_for_reason(&self, claim: &str, reason: &str) {
        let seen = wait_until(SOON, || self.reason(claim).filter(|seen| seen == reason));
        assert!(seen.is_some(), "{claim} never says {reason}: {:?}", self.get(&self.claim_path(claim)));
    }

    /// Nothing is given to a claim for a while.
    pub(crate) fn stays_without(&self, claim: &str) {
        thread::sleep(A_WHILE);
        assert_eq!(self.get(&self.address_path(claim)), None, "{claim} has an address");
    }

    pub(crate) fn gone(&self, path: &str) {
        let gone = wait_until(SOON, || self.get(path).is_none().then_some(()));
        assert!(gone.is_some(), "{path} is still there: {:?}", self.get(path));
    }

    pub(crate) fn annotate(&self, path: &str, annotation: &str, value: Option<&str>) {
        self.server.patch(path, &json!({ "metadata": { "annotations": { annotation: value } } }));
    }

    /// `total/used/free/outOfRange` of a pool, once it is this.
    pub(crate) fn counts(&self, kind: &str, pool: &str, wanted: &str) {
        let path = self.pool_path(kind, pool);
        let read = || {
            let counts = self.get(&path)?["status"]["ipAddresses"].clone();
            let text = ["total", "used", "free", "outOfRange"].map(|key| counts[key].to_string());
            Some(text.join("/"))
        };
        let seen = wait_until(SOON, || read().filter(|seen| seen == wanted));
        assert!(seen.is_some(), "{kind} {pool} has {:?} instead of {wanted}", read());
    }
}
