//! A world to run the engine in: a store, a clock, sources that say what a test wants.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use netstead_engine::{Engine, Options, PassReport, ProviderSetup, Setup, SourceSetup};
use netstead_model::{
    Clock, Content, Ended, Ident, ManualClock, Name, RecordData, Report, Source, View, Wish, Workload,
};
use netstead_plan::{Digest, Settings};
use netstead_store::{MemoryStore, Store};
use tokio::sync::Notify;

use crate::server::Server;

pub struct World {
    pub store: Arc<dyn Store>,
    pub clock: ManualClock,
    pub source: Arc<Fake>,
    pub servers: Vec<(Ident, Arc<Server>)>,
    pub options: Options,
}

/// A source that says what a test wants.
#[derive(Debug)]
pub struct Fake {
    name: Ident,
    clock: ManualClock,
    pub says: Mutex<(View, Vec<Workload>, Vec<Ended>)>,
    changed: Notify,
    looks: AtomicUsize,
}

impl Fake {
    /// How often it was asked.
    pub fn looks(&self) -> usize {
        self.looks.load(Ordering::SeqCst)
    }

    /// From now on it sees these.
    pub fn sees(&self, workloads: impl IntoIterator<Item = Workload>) {
        self.says(View::Complete, workloads, &[]);
    }

    pub fn says(&self, view: View, workloads: impl IntoIterator<Item = Workload>, ended: &[&str]) {
        let ended = ended.iter().map(|id| Ended { id: id.parse().unwrap(), asked: true }).collect();
        *self.says.lock().unwrap() = (view, workloads.into_iter().collect(), ended);
    }

    /// It says by itself that something changed.
    pub fn announces_change(&self) {
        self.changed.notify_one();
    }
}

#[async_trait]
impl Source for Fake {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "fake"
    }

    async fn report(&self) -> Report {
        self.looks.fetch_add(1, Ordering::SeqCst);
        let mut says = self.says.lock().unwrap();
        let ended = std::mem::take(&mut says.2);
        let (view, workloads) = (says.0.clone(), says.1.clone());
        Report::whole(self.name.clone(), self.clock.wall(), view, workloads).with_ended(ended)
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl World {
    pub fn new() -> Self {
        let server = Server::new(&["example.com", "0.10.in-addr.arpa"]);
        Self::with(Arc::new(MemoryStore::new()), vec![("lan", server)])
    }

    pub fn with(store: Arc<dyn Store>, servers: Vec<(&str, Server)>) -> Self {
        let clock = ManualClock::default();
        let source = Arc::new(Fake {
            name: "pve".parse().unwrap(),
            clock: clock.clone(),
            says: Mutex::new((View::Complete, Vec::new(), Vec::new())),
            changed: Notify::new(),
            looks: AtomicUsize::new(0),
        });
        let servers =
            servers.into_iter().map(|(name, server)| (name.parse().unwrap(), Arc::new(server))).collect();
        Self { store, clock, source, servers, options: Options::default() }
    }

    /// Another source that says what a test wants.
    pub fn called(&self, name: &str) -> Arc<Fake> {
        Arc::new(Fake {
            name: name.parse().unwrap(),
            clock: self.clock.clone(),
            says: Mutex::new((View::Complete, Vec::new(), Vec::new())),
            changed: Notify::new(),
            looks: AtomicUsize::new(0),
        })
    }

    pub fn server(&self) -> &Server {
        &self.servers[0].1
    }

    pub fn setup(&self) -> Setup {
        let provider = |(name, server): &(Ident, Arc<Server>)| {
            let settings =
                Settings::new(name.clone(), "blue".parse().unwrap(), vec!["example.com".parse().unwrap()]);
            ProviderSetup::new(settings, server.clone(), Digest::of(["fake"]))
        };
        Setup {
            sources: vec![SourceSetup::new(self.source.clone(), Digest::of(["pve"]))],
            providers: self.servers.iter().map(provider).collect(),
            ..Setup::default()
        }
    }

    /// Starts, and waits for a first pass from what the source sees.
    pub async fn start(&self) -> Engine {
        let engine = self.start_with(self.setup()).await;
        engine.apply(None).await.unwrap();
        engine
    }

    pub async fn start_with(&self, setup: Setup) -> Engine {
        Engine::start(self.store.clone(), self.clock.shared(), setup, self.options.clone()).await.unwrap()
    }

    /// One minute after another, with a look and a pass after each.
    pub async fn minutes(&self, engine: &Engine, minutes: u32) -> PassReport {
        let mut last = None;
        for _ in 0..minutes {
            self.clock.advance(Duration::from_mins(1));
            last = engine.apply(None).await.unwrap().pop();
        }
        last.unwrap().1
    }
}

/// Waits in real time for something to become true.
pub async fn soon(mut is: impl FnMut() -> bool) {
    for _ in 0..400 {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it did not happen");
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub fn ident(text: &str) -> Ident {
    text.parse().unwrap()
}

/// `A 10.0.0.1`.
pub fn data(text: &str) -> RecordData {
    serde_json::from_value(text.into()).unwrap()
}

/// A machine `id.example.com` at this address.
pub fn vm(id: &str, address: &str) -> Workload {
    let wish = Wish {
        name: name(&format!("{id}.example.com")),
        content: Content::Addresses(vec![address.parse().unwrap()]),
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
    let workload = Workload::new("pve".parse().unwrap(), id.parse().unwrap(), "vm", id);
    Workload { wishes: vec![wish], ..workload }
}

/// Machines `w0` to `wN` at 10.0.0.N.
pub fn fleet(range: std::ops::Range<u8>) -> Vec<Workload> {
    range.map(|n| vm(&format!("w{n}"), &format!("10.0.0.{n}"))).collect()
}
