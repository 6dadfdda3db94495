//! [`Cluster`]: the connection to one Kubernetes cluster, with its credentials, limits and call metrics.
//!
//! Credentials come from a kubeconfig that is named, or from the service account of the pod this process runs in; never from
//! `$KUBECONFIG` or the home directory, which may lead to a cluster that was not meant. A client whose credentials are refused
//! or have run out is made anew, from the files as they are then.

mod access;
mod error;
mod limits;
mod resource;

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream::BoxStream};
use hyper::Request;
use jiff::Timestamp;
pub use kube;
use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
    core::WatchEvent,
};
use netstead_model::{CallObserver, Clock};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use tokio::{sync::Mutex, time::timeout};

use self::limits::ObserveLayer;
pub use self::{
    access::KubernetesAccess,
    error::KubernetesError,
    resource::{Listing, Resource, Selection},
};

/// One call but a watch, from connecting to the last byte.
const PATIENCE: Duration = Duration::from_secs(30);
/// Opening a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// How long the server shall keep a watch; it ends by itself then.
const WATCH_SECONDS: u64 = 290;
/// How much longer a watch may be silent before it counts as dead.
const WATCH_MARGIN: Duration = Duration::from_secs(10);

/// The name under which the server keeps what is written.
const MANAGER: &str = "netstead";

/// One cluster. The first call connects.
pub struct Cluster {
    access: KubernetesAccess,
    observer: Arc<dyn CallObserver>,
    clock: Arc<dyn Clock>,
    client: Mutex<Option<Client>>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("access", &self.access).finish_non_exhaustive()
    }
}

/// One page of a list.
#[derive(Debug, Deserialize)]
pub struct Page<T> {
    #[serde(default)]
    pub metadata: PageMetadata,
    #[serde(default = "Vec::new")]
    pub items: Vec<T>,
}

/// The state of a list that comes in pages.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageMetadata {
    pub resource_version: String,
    /// Asks for the next page; empty on the last.
    #[serde(rename = "continue")]
    pub next: String,
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched<T> {
    /// An object is new or has changed.
    Changed(T),
    Deleted(T),
    /// Nothing happened up to this version.
    Bookmark(String),
}

impl Cluster {
    pub fn new(access: KubernetesAccess, observer: Arc<dyn CallObserver>, clock: Arc<dyn Clock>) -> Self {
        Self { access, observer, clock, client: Mutex::default() }
    }

    pub fn access(&self) -> &KubernetesAccess {
        &self.access
    }

    /// The client, for callers that use kube itself. It is the same until its credentials run out.
    pub async fn client(&self) -> Result<Client, KubernetesError> {
        let mut client = self.client.lock().await;
        let now = Timestamp::from_millisecond(self.clock.wall().as_millisecond()).unwrap_or_default();
        if let Some(client) =
            client.as_ref().filter(|client| client.valid_until().is_none_or(|end| now < end))
        {
            return Ok(client.clone());
        }
        let fresh = self.connect().await?;
        *client = Some(fresh.clone());
        Ok(fresh)
    }

    async fn connect(&self) -> Result<Client, KubernetesError> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(CONNECT);
        // Callers have their own pauses between attempts.
        config.default_retry = false;
        let layer = ObserveLayer { observer: Arc::clone(&self.observer), clock: Arc::clone(&self.clock) };
        // Reading credentials may start a program that a kubeconfig names.
        let build = move || ClientBuilder::try_from(config).map(|builder| builder.with_layer(&layer).build());
        let built = tokio::task::spawn_blocking(build).await;
        let built = built.map_err(|error| KubernetesError::Settings(error.to_string()))?;
        built.map_err(|error| KubernetesError::Settings(error::chain(&error)))
    }

    async fn config(&self) -> Result<Config, KubernetesError> {
        let Some(path) = &self.access.kubeconfig else {
            return Config::incluster().map_err(|error| {
                KubernetesError::Settings(format!(
                    "there is no service account here ({}); set `kubeconfig` outside of a cluster",
                    error::chain(&error)
                ))
            });
        };
        let wrong = |why: String| KubernetesError::Settings(format!("{}: {why}", path.display()));
        let file = path.clone();
        let read = tokio::task::spawn_blocking(move || Kubeconfig::read_from(file)).await;
        let kubeconfig = read.map_err(|error| wrong(error.to_string()))?;
        let kubeconfig = kubeconfig.map_err(|error| wrong(error::chain(&error)))?;
        let options =
            KubeConfigOptions { context: self.access.context.clone(), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        config.map_err(|error| wrong(error::chain(&error)))
    }

    /// Makes the next call read the credentials anew.
    async fn forget(&self) {
        *self.client.lock().await = None;
    }

    /// The version of the server: `v1.36.4`.
    pub async fn version(&self) -> Result<String, KubernetesError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        self.get::<Version>("/version").await.map(|version| version.git_version)
    }

    /// One JSON answer.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, KubernetesError> {
        self.send("GET", path, "", Vec::new()).await
    }

    /// Sends one request and reads its JSON answer. `kind` is the content type of `body`.
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: Vec<u8>,
    ) -> Result<T, KubernetesError> {
        let mut request = Request::builder().method(method).uri(path);
        if !body.is_empty() {
            request = request.header("content-type", kind);
        }
        let request = request.body(body).map_err(|error| KubernetesError::Malformed(error.to_string()))?;
        let call = async { self.client().await?.request(request).await.map_err(KubernetesError::from) };
        let answer = timeout(PATIENCE, call).await.unwrap_or(Err(KubernetesError::Slow(PATIENCE)));
        self.checked(answer).await
    }

    /// One page of the objects of a kind.
    pub async fn list<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        selection: &Selection,
        listing: &Listing<'_>,
    ) -> Result<Page<T>, KubernetesError> {
        self.get(&resource.list_path(selection, listing)).await
    }

    /// Makes an object. One that is there is a conflict.
    pub async fn create(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &serde_json::Value,
    ) -> Result<(), KubernetesError> {
        let path = format!("{}?fieldManager={MANAGER}", resource.path(namespace));
        let body = object.to_string().into_bytes();
        self.send::<IgnoredAny>("POST", &path, "application/json", body).await.map(drop)
    }

    /// Merges a patch into the status of an object.
    pub async fn patch_status(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        patch: &serde_json::Value,
    ) -> Result<(), KubernetesError> {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let path = format!("{}/status?fieldManager={MANAGER}", resource.object_path(namespace, name));
        let body = patch.to_string().into_bytes();
        self.send::<IgnoredAny>("PATCH", &path, "application/merge-patch+json", body).await.map(drop)
    }

    /// Changes after `version`, until the server or the connection ends it. Silence for too long is an error.
    pub async fn watch<T: DeserializeOwned + Clone + Send + 'static>(
        &self,
        resource: &Resource,
        selection: &Selection,
        version: &str,
    ) -> Result<BoxStream<'static, Result<Watched<T>, KubernetesError>>, KubernetesError> {
        let path = resource.watch_path(selection, version, WATCH_SECONDS);
        let request = Request::builder().uri(path).body(Vec::new());
        let request = request.map_err(|error| KubernetesError::Malformed(error.to_string()))?;
        let open = async {
            let events = self.client().await?.request_events::<T>(request).await;
            events.map_err(KubernetesError::from)
        };
        let opened = timeout(PATIENCE, open).await.unwrap_or(Err(KubernetesError::Slow(PATIENCE)));
        let events: BoxStream<'static, _> = self.checked(opened).await?.boxed();
        let silence = Duration::from_secs(WATCH_SECONDS) + WATCH_MARGIN;
        Ok(futures::stream::unfold(events, move |mut events| async move {
            match timeout(silence, events.next()).await {
                Ok(item) => item.map(|item| (watched(item), events)),
                Err(_) => Some((Err(KubernetesError::Slow(silence)), events)),
            }
        })
        .boxed())
    }

    /// Reads the credentials anew after the server refused them.
    async fn checked<T>(&self, answer: Result<T, KubernetesError>) -> Result<T, KubernetesError> {
        if let Err(KubernetesError::Unauthorized) = &answer {
            self.forget().await;
        }
        answer
    }
}

fn watched<T>(item: Result<WatchEvent<T>, kube::Error>) -> Result<Watched<T>, KubernetesError> {
    match item? {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => Ok(Watched::Changed(object)),
        WatchEvent::Deleted(object) => Ok(Watched::Deleted(object)),
        WatchEvent::Bookmark(mark) => Ok(Watched::Bookmark(mark.metadata.resource_version)),
        WatchEvent::Error(status) => Err(KubernetesError::of_status(&status)),
    }
}
