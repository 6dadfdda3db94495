//! [`FaultProxy`]: stands before the API server and answers some changes with an error, before or after they were made, and lets
//! some events of watches come late. Or it only writes down what is changed, in order.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, extract::Request, response::Response};
use futures::StreamExt as _;
use netstead_model::{NoopObserver, SystemClock};
use netstead_wire::kubernetes::{Cluster, KubernetesAccess, kube};
use tokio::net::TcpListener;

pub(crate) struct FaultProxy {
    runtime: tokio::runtime::Runtime,
    pub(crate) kubeconfig: PathBuf,
    dir: PathBuf,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    /// Nothing goes wrong.
    harmless: bool,
    /// `PATCH /path` of each change that was made.
    changes: Mutex<Vec<String>>,
    seen: AtomicUsize,
    made: AtomicUsize,
}

impl FaultProxy {
    pub(crate) fn before(kubeconfig: PathBuf) -> Self {
        Self::with(kubeconfig, Faults::default())
    }

    /// One that makes no faults.
    pub(crate) fn recording(kubeconfig: PathBuf) -> Self {
        Self::with(kubeconfig, Faults { harmless: true, ..Faults::default() })
    }

    fn with(kubeconfig: PathBuf, faults: Faults) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let access = KubernetesAccess { kubeconfig: Some(kubeconfig), context: None };
        let cluster = Cluster::new(access, Arc::new(NoopObserver), SystemClock::shared());
        let faults = Arc::new(faults);
        let (address, listener) = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            (listener.local_addr().unwrap(), listener)
        });
        let client = runtime.block_on(cluster.client()).unwrap();
        let counted = Arc::clone(&faults);
        let router = Router::new().fallback(move |request: Request| {
            let (client, faults) = (client.clone(), Arc::clone(&counted));
            async move { faults.answer(client, request).await }
        });
        runtime.spawn(async move { axum::serve(listener, router).await });
        let dir =
            std::env::temp_dir().join(format!("netstead-faults-{}-{}", std::process::id(), address.port()));
        std::fs::create_dir_all(&dir).unwrap();
        let kubeconfig = dir.join("kubeconfig");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{{ name: x, cluster: {{ server: 'http://{address}' }} }}]\n\
             contexts: [{{ name: x, context: {{ cluster: x, user: x }} }}]\nusers: [{{ name: x, user: {{}} }}]\n"
        );
        std::fs::write(&kubeconfig, text).unwrap();
        Self { runtime, kubeconfig, dir, faults }
    }

    /// How many changes it answered with an error.
    pub(crate) fn made(&self) -> usize {
        self.faults.made.load(Ordering::Relaxed)
    }

    /// The changes so far: method and path.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.faults.changes.lock().unwrap().clone()
    }

    pub(crate) fn end(self) {
        let _ = std::fs::remove_dir_all(&self.dir);
        self.runtime.shutdown_background();
    }
}

impl Faults {
    async fn answer(&self, client: kube::Client, request: Request) -> Response {
        let number = self.seen.fetch_add(1, Ordering::Relaxed);
        let changes = request.method() != "GET";
        let fault = match number % 17 {
            _ if self.harmless => None,
            3 if changes => Some((429, "TooManyRequests", false)),
            7 if changes => Some((500, "InternalError", false)),
            11 if changes => Some((409, "Conflict", false)),
            // It was made, and the answer is lost.
            13 if changes => Some((504, "Timeout", true)),
            _ => None,
        };
        if number % 17 == 5 && !changes && !self.harmless {
            // The caller sees an older state for a while.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let change = changes.then(|| format!("{} {}", request.method(), request.uri().path()));
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        if fault.is_some() {
            self.made.fetch_add(1, Ordering::Relaxed);
        }
        if let Some((status, reason, false)) = fault {
            return refusal(status, reason);
        }
        let (mut parts, body) = request.into_parts();
        parts.headers.remove("host");
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap().to_vec();
        let answer = client.send(Request::from_parts(parts, kube::client::Body::from(body))).await;
        if let (Ok(answer), Some(change)) = (&answer, change)
            && answer.status().is_success()
        {
            self.changes.lock().unwrap().push(change);
        }
        match (answer, fault) {
            (_, Some((status, reason, true))) => refusal(status, reason),
            (Ok(answer), _) if watches && !self.harmless => answer.map(|body| late(Body::new(body))),
            (Ok(answer), _) => answer.map(Body::new),
            (Err(_), _) => refusal(503, "ServiceUnavailable"),
        }
    }
}

/// The events of a watch in their order, each tenth of them late, and those behind it with it.
fn late(body: Body) -> Body {
    let mut number = 0_u32;
    let events = body.into_data_stream().then(move |chunk| {
        number += 1;
        let pause = if number % 10 == 7 { Duration::from_millis(150) } else { Duration::ZERO };
        async move {
            tokio::time::sleep(pause).await;
            chunk
        }
    });
    Body::from_stream(events)
}

fn refusal(code: u16, reason: &str) -> Response {
    let status = serde_json::json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
        "message": "injected", "code": code });
    Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(Body::from(status.to_string()))
        .unwrap()
}
