#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a bench may end badly")]
//! `cargo xtask bench operator`: how long N claims of Cluster API take, beside the same writes with no logic at all, and the memory of
//! 10,000.
//!
//! The real binary with its usual settings works on a real API server. All claims are made while their pool is paused, so that the
//! time from the end of the pause until the last owner was told is that of the operator, not that of making claims. Bare writes are
//! the object of an address and the status of its claim, as many at once as the operator does.

#[allow(dead_code, reason = "other benches need more of it")]
#[path = "../shared/process_figures.rs"]
mod process_figures;
#[allow(dead_code, reason = "other benches need more of it")]
#[path = "../shared/report.rs"]
mod report;

use std::{
    path::PathBuf,
    process::{Command, ExitCode},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt as _, stream};
use netstead_model::{Clock as _, NoopObserver, SystemClock};
use netstead_operator::{PoolKind, definition};
use netstead_testkit::{KubeApiServer, Process};
use netstead_wire::kubernetes::{Cluster, KubernetesAccess, Listing, Page, Resource, Selection, Watched};
use serde_json::{Value, json};

use self::{process_figures::settled_memory, report::Report};

const SIZES: [usize; 3] = [100, 1000, 5000];
/// Claims whose memory is measured.
const MANY: usize = 10_000;
/// Calls at once: the operator's own default.
const AT_ONCE: usize = 20;
const GROUP: &str = "ipam.cluster.x-k8s.io";
/// The most time, as a multiple of the bare writes.
const MOST_TIME: f64 = 2.0;
/// The most that the last hundred may take, as a multiple of the first.
const MOST_GROWTH: f64 = 1.5;
/// The most memory, in megabytes.
const MOST_MEMORY: f64 = 150.0;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let mut json: Option<PathBuf> = None;
    while let Some(argument) = arguments.next() {
        if argument == "--json" {
            json = arguments.next().map(PathBuf::from);
        } else {
            eprintln!("error: `{argument}` is not known\nhint: --json FILE writes the figures");
            return ExitCode::FAILURE;
        }
    }
    let server = KubeApiServer::start(&[]);
    server.apply(include_str!("../../../operator/tests/it/cluster-api.yaml"));
    server.apply(&definition(PoolKind::InClusterIpPool).to_string());
    let access = KubernetesAccess { kubeconfig: Some(server.kubeconfig()), context: None };
    let cluster = Arc::new(Cluster::new(access, Arc::new(NoopObserver), SystemClock::shared()));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut command = Command::new(env!("CARGO_BIN_EXE_netstead"));
    let kubeconfig = server.kubeconfig().display().to_string();
    command.args(["operator", "--kinds", "InClusterIPPool", "--kubeconfig", &kubeconfig]);
    let mut operator = Process::start("netstead operator", &mut command).expect("an operator");
    let mut report = Report::default();
    report.note("load of the machine", load(), "");
    let mut present = 0;
    for size in SIZES {
        let namespace = format!("bare-{size}");
        server.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {namespace} }}\n"));
        let bare = runtime.block_on(bare_writes(&cluster, &namespace, size));
        report.note(format!("{size} claims: bare writes"), bare, "ms");
        let times = runtime.block_on(bind(&server, &cluster, size));
        present += size;
        let whole = times[size - 1];
        report.note(format!("{size} claims: until all are bound"), whole, "ms");
        let ratio = whole / bare;
        report.judge(
            format!("{size} claims: beside bare writes"),
            ratio,
            "times",
            "at most 2",
            ratio <= MOST_TIME,
        );
        if size > 100 {
            let growth = (whole - times[size - 101]) / times[99];
            let what = format!("{size} claims: the last hundred beside the first");
            report.judge(what, growth, "times", "at most 1.5", growth <= MOST_GROWTH);
        }
    }
    runtime.block_on(bind(&server, &cluster, MANY - present));
    let memory = settled_memory(&mut operator);
    report.judge(format!("memory of {MANY} claims"), memory, "MB", "at most 150", memory <= MOST_MEMORY);
    report.finish(json.as_deref())
}

/// The average of the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "a quarter of a microsecond is lost")]
fn now() -> f64 {
    SystemClock.wall().as_nanosecond() as f64 / 1e6
}

fn resource(plural: &str, kind: &str, version: &str) -> Resource {
    Resource {
        group: GROUP.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        kind: kind.to_owned(),
        namespaced: true,
    }
}

fn claims() -> Resource {
    resource("ipaddressclaims", "IPAddressClaim", "v1beta2")
}

/// Makes claims of a pool, as fast as the server takes them.
async fn make_claims(cluster: &Arc<Cluster>, namespace: &str, pool: &str, count: usize) {
    let make = |number: usize| {
        let claim = json!({
            "apiVersion": format!("{GROUP}/v1beta2"), "kind": "IPAddressClaim", "metadata": { "name": format!("claim-{number}") },
            "spec": { "poolRef": { "apiGroup": GROUP, "kind": "InClusterIPPool", "name": pool } },
        });
        async move { cluster.create(&claims(), Some(namespace), &claim).await.expect("a claim") }
    };
    stream::iter((0..count).map(make)).buffer_unordered(AT_ONCE).collect::<()>().await;
}

/// Makes the objects of addresses and writes the status of their claims, whose pool does not exist: in milliseconds.
async fn bare_writes(cluster: &Arc<Cluster>, namespace: &str, count: usize) -> f64 {
    // Of a group that the operator does not serve.
    let kind = "NoPool";
    let make = |number: usize| {
        let claim = json!({
            "apiVersion": format!("{GROUP}/v1beta2"), "kind": "IPAddressClaim", "metadata": { "name": format!("claim-{number}") },
            "spec": { "poolRef": { "apiGroup": GROUP, "kind": kind, "name": "none" } },
        });
        async move { cluster.create(&claims(), Some(namespace), &claim).await.expect("a claim") }
    };
    stream::iter((0..count).map(make)).buffer_unordered(AT_ONCE).collect::<()>().await;
    let begun = now();
    let write = |number: usize| {
        let name = format!("claim-{number}");
        let address = json!({
            "apiVersion": format!("{GROUP}/v1beta2"), "kind": "IPAddress", "metadata": { "name": name },
            "spec": { "address": format!("10.{}.{}.{}", 9 + (number >> 16), (number >> 8) & 255, number & 255), "prefix": 8,
                "claimRef": { "name": name }, "poolRef": { "apiGroup": GROUP, "kind": kind, "name": "none" } },
        });
        let condition = json!({ "type": "Ready", "status": "True", "reason": "AddressAllocated", "message": "",
            "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let status = json!({ "status": { "addressRef": { "name": name }, "conditions": [condition] } });
        async move {
            let addresses = resource("ipaddresses", "IPAddress", "v1beta2");
            cluster.create(&addresses, Some(namespace), &address).await.expect("an address");
            cluster.patch_status(&claims(), namespace, &name, &status).await.expect("a status");
        }
    };
    stream::iter((0..count).map(write)).buffer_unordered(AT_ONCE).collect::<()>().await;
    now() - begun
}

/// Makes claims while their pool is paused, ends the pause, and returns when each was told its address, in milliseconds since then.
async fn bind(server: &KubeApiServer, cluster: &Arc<Cluster>, count: usize) -> Vec<f64> {
    let namespace = format!("claims-{count}");
    server.apply_in(
        &namespace,
        &format!(
            "apiVersion: {GROUP}/v1alpha2\nkind: InClusterIPPool\nmetadata: {{ name: lan, annotations: {{ cluster.x-k8s.io/paused: '' }} }}\n\
             spec: {{ addresses: [10.1.0.0/16], prefix: 16 }}\n"
        ),
    );
    make_claims(cluster, &namespace, "lan", count).await;
    let selection = Selection { namespace: Some(namespace.clone()), labels: None };
    let first = Listing { limit: 1, next: None };
    let page: Page<Value> = cluster.list(&claims(), &selection, &first).await.expect("a list");
    let version = page.metadata.resource_version;
    let mut events = cluster.watch::<Value>(&claims(), &selection, &version).await.expect("a watch");
    // What was made a moment ago was seen by then.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let begun = now();
    let path = format!("/apis/{GROUP}/v1alpha2/namespaces/{namespace}/inclusterippools/lan");
    server.patch(&path, &json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": null } } }));
    let mut told = std::collections::HashSet::new();
    let mut times = Vec::with_capacity(count);
    while times.len() < count {
        let event = tokio::time::timeout(Duration::from_mins(5), events.next()).await;
        let event = event.expect("claims that are bound").expect("a watch that goes on").expect("an event");
        if let Watched::Changed(claim) = event
            && claim["status"]["addressRef"]["name"].is_string()
            && told.insert(claim["metadata"]["name"].to_string())
        {
            times.push(now() - begun);
        }
    }
    times
}
