//! [`Installation`]: an engine with one source and its servers, whose store and clock outlive it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use netstead_engine::{Engine, Options, PassReport, ProviderSetup, Setup, SourceSetup};
use netstead_model::{
    Clock, Content, Ended, Ident, ManualClock, Name, RecordSet, Report, Source, Span, SystemClock, View,
    Wish, Workload,
};
use netstead_plan::{Digest, Settings};
use netstead_store::{MemoryStore, Store};
use netstead_wire::http::LongestRequest;

use super::backend::Backend;
use crate::support::{ZONE, a, change, context, name, request, zone};

/// Longer than a refused login is waited for.
const A_LITTLE_MORE_THAN_A_MINUTE: Duration = Duration::from_secs(70);

pub struct Installation {
    owner: &'static str,
    store: Arc<dyn Store>,
    clock: ManualClock,
    source: Arc<Hosts>,
    engine: Option<Engine>,
    /// How long a request may take, if that is less than usual.
    longest: Option<Duration>,
}

/// A source with the names and addresses that a test writes.
#[derive(Debug)]
struct Hosts {
    name: Ident,
    clock: ManualClock,
    wanted: Mutex<Vec<(String, String)>>,
    /// Records of any type, each of a workload of its own.
    records: Mutex<Vec<RecordSet>>,
    /// Hosts that were seen to end since the last report.
    ended: Mutex<Vec<String>>,
}

#[async_trait]
impl Source for Hosts {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "hosts"
    }

    async fn report(&self) -> Report {
        let hosts = self.wanted.lock().unwrap().clone();
        let records = self.records.lock().unwrap().clone();
        let addresses = hosts.iter().map(|(host, address)| self.workload(host, address));
        let workloads =
            addresses.chain((0..).zip(&records).map(|(number, set)| self.holder(number, set))).collect();
        let ended = std::mem::take(&mut *self.ended.lock().unwrap());
        let ended = ended.iter().map(|host| Ended { id: host.parse().unwrap(), asked: true }).collect();
        Report::whole(self.name.clone(), self.clock.wall(), View::Complete, workloads).with_ended(ended)
    }

    async fn changed(&self) {
        std::future::pending::<()>().await;
    }
}

impl Hosts {
    fn workload(&self, host: &str, address: &str) -> Workload {
        let content = Content::Addresses(vec![address.parse().unwrap()]);
        self.with_wish(host, name(&format!("{host}.{ZONE}")), content)
    }

    fn holder(&self, number: u32, set: &RecordSet) -> Workload {
        let content = Content::Records { kind: set.kind, values: set.values.iter().cloned().collect() };
        self.with_wish(&format!("record-{number}"), set.name.clone(), content)
    }

    fn with_wish(&self, id: &str, name: Name, content: Content) -> Workload {
        let wish = Wish {
            name,
            content,
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
        let workload = Workload::new(self.name.clone(), id.parse().unwrap(), "vm", id);
        Workload { wishes: vec![wish], ..workload }
    }
}

impl Installation {
    /// One with an empty store, which starts with its first pass.
    pub fn new(owner: &'static str) -> Self {
        let clock = ManualClock::at(SystemClock.wall());
        let name = "pve".parse().unwrap();
        let (wanted, records, ended) = (Mutex::default(), Mutex::default(), Mutex::default());
        let hosts = Hosts { name, clock: clock.clone(), wanted, records, ended };
        let store = Arc::new(MemoryStore::new());
        Self { owner, store, clock, source: Arc::new(hosts), engine: None, longest: None }
    }

    /// From now on it wants these names and no others.
    pub fn wants(&self, hosts: &[(&str, &str)]) {
        let hosts = hosts.iter().map(|(host, address)| ((*host).to_owned(), (*address).to_owned()));
        let before = std::mem::replace(&mut *self.source.wanted.lock().unwrap(), hosts.collect());
        let still = self.source.wanted.lock().unwrap().clone();
        let gone = before.into_iter().map(|(host, _)| host);
        let gone = gone.filter(|host| !still.iter().any(|(other, _)| other == host));
        self.source.ended.lock().unwrap().extend(gone);
    }

    /// From now on it wants these records beside its names.
    pub fn wants_records(&self, records: &[RecordSet]) {
        *self.source.records.lock().unwrap() = records.to_vec();
    }

    /// From its next start on, no request takes longer than this.
    pub fn waits_at_most(&mut self, longest: Duration) {
        self.longest = Some(longest);
    }

    /// Lets time go by.
    pub fn rest(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Looks at its source and makes one pass, a little later than the last one.
    pub async fn pass(&mut self, server: &impl Backend) -> PassReport {
        self.pass_on(&[server]).await.pop().unwrap()
    }

    /// The same with several servers in one table: the reports in their order.
    pub async fn pass_on(&mut self, servers: &[&impl Backend]) -> Vec<PassReport> {
        self.clock.advance(A_LITTLE_MORE_THAN_A_MINUTE);
        // Signed requests carry the time of day, which the server has as well.
        let behind = SystemClock.wall().duration_since(self.clock.wall());
        self.clock.jump_wall(behind);
        if self.engine.is_none() {
            self.start(servers).await;
        }
        self.engine().apply(None).await.unwrap().into_iter().map(|(_, report)| report).collect()
    }

    /// Makes passes until nothing is left to do.
    pub async fn settles(&mut self, server: &impl Backend) {
        self.settles_on(&[server]).await;
    }

    pub async fn settles_on(&mut self, servers: &[&impl Backend]) {
        for _ in 0..5 {
            let reports = self.pass_on(servers).await;
            let in_sync = self.engine().status().providers.iter().all(|provider| provider.in_sync);
            if in_sync && reports.iter().all(PassReport::is_in_sync) {
                return;
            }
        }
        let (status, plans) = (self.engine().status(), self.engine().plans());
        panic!("{} does not settle: {:#?}\n{}", self.owner, status.providers, plans[0].1);
    }

    pub fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    async fn start(&mut self, servers: &[&impl Backend]) {
        let provider = |(number, server): (u32, &&_)| {
            let name = format!("lan-{number}").parse().unwrap();
            let mut settings = Settings::new(name, self.owner.parse().unwrap(), vec![ZONE.parse().unwrap()]);
            (settings.grace, settings.ended_grace) = (Span::from_secs(0), Span::from_secs(0));
            settings.group = Some("lan".parse().unwrap());
            let mut here = context().with_clock(self.clock.shared());
            if let Some(longest) = self.longest {
                here = here.with_part(LongestRequest(longest));
            }
            let connection = Backend::open(*server, &here);
            ProviderSetup::new(settings, connection, Digest::of(["lan"]))
        };
        let setup = Setup {
            sources: vec![SourceSetup::new(self.source.clone(), Digest::of(["pve"]))],
            providers: (1..).zip(servers).map(provider).collect(),
            ..Setup::default()
        };
        let (store, clock) = (self.store.clone(), self.clock.shared());
        self.engine = Some(Engine::start(store, clock, setup, Options::default()).await.unwrap());
    }

    /// Stops; the next pass starts it again with its store.
    pub async fn stop(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.close().await;
        }
    }

    /// Stops, and its store is lost.
    pub async fn lose_store(&mut self) {
        self.stop().await;
        self.store = Arc::new(MemoryStore::new());
    }
}

/// Everything that the server holds, as a new client sees it.
pub async fn snapshot(server: &impl Backend) -> Vec<RecordSet> {
    let provider = server.look();
    let mut sets = provider.read(&zone()).await.unwrap().sets;
    provider.close().await;
    sets.sort_by(|one, other| (&one.name, one.kind).cmp(&(&other.name, other.kind)));
    sets
}

/// The addresses of the zone beside those that the server itself needs: `www A 192.0.2.1`.
pub async fn addresses(server: &impl Backend) -> Vec<String> {
    let ends = format!(".{ZONE}");
    let line = |set: &RecordSet| {
        let host = set.name.as_str().strip_suffix(&ends)?.to_owned();
        let values: Vec<String> = set.values.iter().map(ToString::to_string).collect();
        let shown = set.kind == netstead_model::RecordType::A && host != "ns1";
        shown.then(|| format!("{host} {}", values.join(" ")))
    };
    snapshot(server).await.iter().filter_map(line).collect()
}

/// Makes an address as a person does, or removes it.
pub async fn by_hand(server: &impl Backend, before: Option<(&str, &str)>, after: Option<(&str, &str)>) {
    let provider = server.look();
    let set = |(host, address): (&str, &str)| {
        provider.adjust(a(&format!("{host}.{ZONE}"), &[address]), &provider.capabilities())
    };
    let unit = change(before.map(set), after.map(set));
    let reply = provider.write(&zone(), &request(1, vec![unit])).await.unwrap();
    assert_eq!(reply.outcomes, [netstead_model::UnitOutcome::Applied]);
    provider.close().await;
}
