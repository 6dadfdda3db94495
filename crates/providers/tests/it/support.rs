use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use netstead_model::{
    DnsProvider, Fence, Name, ProviderError, RecordData, RecordSet, RecordType, SetChange, Unit, UnitOutcome,
    WriteReply, WriteRequest,
};
use netstead_providers::{
    BuildContext, Call, CallObserver, Secret,
    contract::Subject,
    dns::rfc2136::{Config, Rfc2136},
};
use netstead_testkit::TsigKey;

pub const ZONE: &str = "example.test";

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub fn zone() -> Name {
    name(ZONE)
}

pub fn a(at: &str, addresses: &[&str]) -> RecordSet {
    set(at, RecordType::A, addresses)
}

pub fn set(at: &str, kind: RecordType, values: &[&str]) -> RecordSet {
    let values = values.iter().map(|text| RecordData::parse(kind, text).unwrap());
    RecordSet::new(name(at), kind, 300, values)
}

pub fn change(before: Option<RecordSet>, after: Option<RecordSet>) -> Unit {
    let name = before.as_ref().or(after.as_ref()).unwrap().name.clone();
    Unit { name, changes: vec![SetChange { before, after }] }
}

pub fn request(generation: u64, units: Vec<Unit>) -> WriteRequest {
    WriteRequest::new(units, Fence { owner: "it".into(), epoch: 1, generation })
}

/// The error that ended a write.
pub fn stopped(wrote: Result<WriteReply, ProviderError>) -> ProviderError {
    match wrote {
        Ok(WriteReply { stopped: Some(error), outcomes }) => {
            assert!(!outcomes.contains(&UnitOutcome::Applied), "{outcomes:?}");
            error
        }
        Ok(reply) => panic!("nothing stopped it: {reply:?}"),
        Err(error) => error,
    }
}

#[derive(Debug, Default, Clone)]
pub struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl CallObserver for Counter {
    fn called(&self, _: Call) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub fn config(server: SocketAddr, key: &TsigKey) -> Config {
    let mut config = Config::new([server.to_string()]);
    config.tsig_name = Some(key.name.clone());
    config.tsig_algorithm.clone_from(&key.algorithm);
    config.tsig_secret = Some(Secret::new(key.secret.clone()));
    config
}

pub fn rfc2136(server: SocketAddr, key: &TsigKey) -> Rfc2136 {
    Rfc2136::new(config(server, key)).unwrap()
}

/// With limits of time that a test can wait for.
pub fn hasty(config: Config) -> Rfc2136 {
    let half = Duration::from_millis(500);
    Rfc2136::with_timeouts(config, &context(), half, half).unwrap()
}

pub fn context() -> BuildContext {
    BuildContext::new("it".parse().unwrap())
}

pub fn wrong_secret(key: &TsigKey) -> TsigKey {
    TsigKey { secret: "d3Jvbmc=".into(), ..key.clone() }
}

pub fn subject(server: SocketAddr, key: &TsigKey) -> Subject {
    let counter = Counter::default();
    let observer = Arc::new(counter.clone());
    let provider = Rfc2136::open(config(server, key), &context().with_calls(observer)).unwrap();
    let stranger: Arc<dyn DnsProvider> = Arc::new(rfc2136(server, &wrong_secret(key)));
    let mut subject = Subject::new(Arc::new(provider), stranger, zone());
    subject.requests = Some(Box::new(move || counter.get()));
    subject
}
