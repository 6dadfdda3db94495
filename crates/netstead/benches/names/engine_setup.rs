//! An engine with one source that says what the bench wants, and one provider.

use std::{
    net::Ipv4Addr,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use netstead_engine::{Engine, Options, PassReport, ProviderSetup, Setup, SourceSetup};
use netstead_model::{Clock as _, Content, Ident, Report, Source, SystemClock, View, Wish, Workload};
use netstead_plan::{Digest, Settings};
use netstead_store::{LocalStore, Store};

pub const ZONE: &str = "example.com";

/// A source that sees what it is told.
#[derive(Debug)]
pub struct BenchSource {
    name: Ident,
    workloads: Mutex<Vec<Workload>>,
}

impl BenchSource {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { name: "bench".parse().expect("a name"), workloads: Mutex::default() })
    }

    pub fn set_workloads(&self, workloads: Vec<Workload>) {
        *self.workloads.lock().expect("no panic") = workloads;
    }
}

#[async_trait]
impl Source for BenchSource {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "bench"
    }

    async fn report(&self) -> Report {
        let workloads = self.workloads.lock().expect("no panic").clone();
        let (source, begun) = (self.name.clone(), SystemClock.wall());
        Report::whole(source, begun, View::Complete, workloads)
    }

    async fn changed(&self) {
        std::future::pending::<()>().await;
    }
}

pub fn settings() -> Settings {
    Settings::new(
        "lan".parse().expect("a name"),
        "bench".parse().expect("an id"),
        vec![ZONE.parse().expect("a domain")],
    )
}

pub async fn open(dir: &Path) -> Arc<dyn Store> {
    Arc::new(LocalStore::open(dir).await.expect("a store"))
}

/// Starts an engine that looks only when it is told to.
pub async fn engine(
    store: &Arc<dyn Store>,
    source: &Arc<BenchSource>,
    mut provider: ProviderSetup,
) -> Engine {
    let mut source = SourceSetup::new(source.clone(), Digest::of(["bench"]));
    (source.interval, provider.interval) = (Duration::from_hours(9), Duration::from_hours(9));
    let setup = Setup { sources: vec![source], providers: vec![provider], ..Setup::default() };
    Engine::start(store.clone(), SystemClock::shared(), setup, Options::default()).await.expect("an engine")
}

/// Looks and runs a pass; what it did and how long it took.
pub async fn apply(engine: &Engine) -> (PassReport, Duration) {
    let start = SystemClock.monotonic();
    let (_, report) = engine.apply(None).await.expect("a pass").pop().expect("one provider");
    assert!(report.error.is_none() && report.zone_errors.is_empty(), "{report:?}");
    (report, SystemClock.monotonic() - start)
}

/// `host-N.example.com` at an address of its own.
pub fn workload(number: u32) -> Workload {
    let name = format!("host-{number}");
    let address = Ipv4Addr::from_bits(0x0a00_0000 | (number & 0x00ff_ffff));
    let wish = Wish {
        name: format!("{name}.{ZONE}").parse().expect("a name"),
        content: Content::Addresses(vec![address.to_string().parse().expect("an address")]),
        ttl: None,
        providers: Vec::new(),
        reason: "label".into(),
        adopt: false,
        share: false,
        main: true,
        borrowed: false,
        moves: false,
        proxied: None,
        entrypoints: Vec::new(),
    };
    let id = name.parse().expect("a key");
    Workload { wishes: vec![wish], ..Workload::new("bench".parse().expect("a name"), id, "vm", name) }
}
