//! A DNS server and a source in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use jiff::Timestamp;
use netstead_engine::{ProviderSetup, SourceSetup};
use netstead_model::{
    Capabilities, Clock as _, Content, DnsProvider, Ident, Marks, Name, ProviderError, RecordData, RecordSet,
    RecordType, Report, SetChange, Source, SystemClock, UnitOutcome, View, Wish, Workload, WriteReply,
    WriteRequest, Zone, ZoneContent,
};
use netstead_plan::{Digest, Settings};

/// A server that takes what it is sent, but for names that begin with `bad`.
#[derive(Debug)]
pub struct DnsServer {
    zones: Mutex<BTreeMap<Name, Held>>,
    /// Error that every call returns; `None` while calls succeed.
    pub fails: Mutex<Option<ProviderError>>,
}

#[derive(Debug, Default)]
struct Held {
    serial: u32,
    sets: BTreeMap<(Name, RecordType), RecordSet>,
}

impl DnsServer {
    pub fn new(zones: &[&str]) -> Arc<Self> {
        let zones = zones.iter().map(|zone| (zone.parse().unwrap(), Held::default())).collect();
        Arc::new(Self { zones: Mutex::new(zones), fails: Mutex::default() })
    }

    /// Replaces what a name has by an address that Netstead did not write.
    pub fn add(&self, name: &str, address: &str) {
        self.replace(name, &[address]);
    }

    /// Replaces the addresses of a name, as others do.
    pub fn replace(&self, name: &str, addresses: &[&str]) {
        let name: Name = name.parse().unwrap();
        let values = addresses.iter().map(|address| RecordData::parse(RecordType::A, address).unwrap());
        let set = RecordSet::new(name.clone(), RecordType::A, 300, values);
        let mut zones = self.zones.lock().unwrap();
        let held = zones.iter_mut().find(|(zone, _)| name.is_subdomain_of(zone)).unwrap().1;
        held.sets.insert((name, RecordType::A), set);
        held.serial += 1;
    }

    /// The setup of a provider for these domains.
    pub fn setup(self: &Arc<Self>, name: &str, domains: &[&str]) -> ProviderSetup {
        let domains = domains.iter().map(|domain| domain.parse().unwrap()).collect();
        let settings = Settings::new(name.parse().unwrap(), "blue".parse().unwrap(), domains);
        ProviderSetup::new(settings, self.clone(), Digest::of([name]))
    }

    fn answer(&self) -> Result<(), ProviderError> {
        self.fails.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

fn key_of(change: &SetChange) -> (Name, RecordType) {
    let set = change.before.as_ref().or(change.after.as_ref()).unwrap();
    (set.name.clone(), set.kind)
}

#[async_trait]
impl DnsProvider for DnsServer {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn server(&self) -> String {
        "memory".into()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { marks: Marks::None, fenced: false, ..Capabilities::all(RecordType::ALL) }
    }

    async fn zones(&self, _: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        self.answer()?;
        let zones = self.zones.lock().unwrap();
        Ok(zones
            .iter()
            .map(|(name, held)| Zone { name: name.clone(), sign: Some(held.serial.into()) })
            .collect())
    }

    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        self.answer()?;
        let zones = self.zones.lock().unwrap();
        let held = zones.get(zone).unwrap();
        Ok(ZoneContent { sign: Some(held.serial.into()), sets: held.sets.values().cloned().collect() })
    }

    async fn read_names(&self, zone: &Name, _: &BTreeSet<Name>) -> Result<ZoneContent, ProviderError> {
        self.read(zone).await
    }

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError> {
        self.answer()?;
        let mut zones = self.zones.lock().unwrap();
        let held = zones.get_mut(zone).unwrap();
        let mut outcomes = Vec::new();
        for unit in &request.units {
            if unit.name.labels().next().is_some_and(|label| label.contains("bad")) {
                outcomes.push(UnitOutcome::Rejected { reason: format!("{} is bad", unit.name) });
                continue;
            }
            for change in &unit.changes {
                match &change.after {
                    Some(set) => held.sets.insert(key_of(change), set.clone()),
                    None => held.sets.remove(&key_of(change)),
                };
            }
            held.serial += 1;
            outcomes.push(UnitOutcome::Applied);
        }
        Ok(outcomes.into())
    }
}

/// A source that sees what a test wants.
#[derive(Debug)]
pub struct Seen {
    name: Ident,
    pub says: Mutex<(View, Vec<Workload>)>,
}

impl Seen {
    pub fn new(name: &str, workloads: Vec<Workload>) -> Arc<Self> {
        Arc::new(Self { name: name.parse().unwrap(), says: Mutex::new((View::Complete, workloads)) })
    }

    pub fn setup(self: &Arc<Self>) -> SourceSetup {
        SourceSetup::new(self.clone(), Digest::of([self.name.as_str()]))
    }
}

#[async_trait]
impl Source for Seen {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "memory"
    }

    async fn report(&self) -> Report {
        let (view, workloads) = self.says.lock().unwrap().clone();
        let begun: Timestamp = SystemClock.wall();
        Report::whole(self.name.clone(), begun, view, workloads)
    }

    async fn changed(&self) {
        std::future::pending::<()>().await;
    }
}

/// A workload of `source` that asks for `name` with one address.
pub fn workload(source: &str, name: &str, address: &str) -> Workload {
    let wish = Wish {
        name: name.parse().unwrap(),
        content: Content::Addresses(vec![address.parse().unwrap()]),
        ttl: None,
        providers: Vec::new(),
        reason: "a test wants it".into(),
        adopt: false,
        share: false,
        main: false,
        borrowed: false,
        moves: false,
        proxied: None,
        entrypoints: Vec::new(),
    };
    let short = name.split('.').next().unwrap();
    let workload = Workload::new(source.parse().unwrap(), name.parse().unwrap(), "vm", short);
    Workload { wishes: vec![wish], why_not: vec![format!("{name} has no second name")], ..workload }
}
