//! A store, the provider and a server in one, with a client that shows answers as text.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hickory_proto::{
    op::{Edns, Message, MessageType, OpCode, Query},
    rr::RecordType as Type,
};
use netstead_model::{
    ChangeSign, Clock, DnsProvider, Fence, ManualClock, Name, RecordData, RecordSet, RecordType, SetChange,
    Unit, UnitOutcome, WriteRequest,
};
use netstead_nameserver::{Builtin, NameServer, Options};
use netstead_store::{MemoryStore, Store};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    time::timeout,
};

pub(crate) struct House {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: ManualClock,
    pub(crate) builtin: Builtin,
    pub(crate) server: NameServer,
    epoch: u64,
    generation: AtomicU64,
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn options() -> Options {
    Options {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        hostname: Some(name("ns1.example.test")),
        transfer_to: vec!["127.0.0.0/8".parse().unwrap()],
        ..Options::default()
    }
}

/// Sets out of lines `name ttl type value`.
pub(crate) fn sets(lines: &str) -> Vec<RecordSet> {
    let mut sets: BTreeMap<(Name, RecordType), RecordSet> = BTreeMap::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let parts: Vec<&str> = line.splitn(4, ' ').collect();
        let [owner, ttl, kind, value] = parts[..] else { panic!("{line}") };
        let kind: RecordType = kind.parse().unwrap();
        let set = sets
            .entry((name(owner), kind))
            .or_insert_with(|| RecordSet::new(name(owner), kind, ttl.parse().unwrap(), []));
        set.values.insert(RecordData::parse(kind, value).unwrap());
    }
    sets.into_values().collect()
}

/// A change of one set per unit.
pub(crate) fn units(changes: impl IntoIterator<Item = (Option<RecordSet>, Option<RecordSet>)>) -> Vec<Unit> {
    let unit = |(before, after): (Option<RecordSet>, Option<RecordSet>)| Unit {
        name: after.as_ref().or(before.as_ref()).unwrap().name.clone(),
        changes: vec![SetChange { before, after }],
    };
    changes.into_iter().map(unit).collect()
}

pub(crate) fn fence(epoch: u64, generation: u64) -> Fence {
    Fence { owner: "test".into(), epoch, generation }
}

impl House {
    pub(crate) async fn new(domains: &[&str]) -> Self {
        Self::with(domains, Arc::new(MemoryStore::new()), options()).await
    }

    pub(crate) async fn with(domains: &[&str], store: Arc<dyn Store>, options: Options) -> Self {
        let clock = ManualClock::default();
        let domains = domains.iter().map(|domain| name(domain)).collect();
        let builtin = Builtin::new(Arc::clone(&store), clock.shared(), domains);
        builtin.prepare().await.unwrap();
        let shared: Arc<dyn Clock> = clock.shared();
        let server = NameServer::start(Arc::clone(&store), shared, options).await.unwrap();
        let epoch = store.lead().await.unwrap().0;
        Self { store, clock, builtin, server, epoch, generation: AtomicU64::new(0) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.local_addr().unwrap()
    }

    /// Makes the zone hold exactly `lines`, and waits until that is answered.
    pub(crate) async fn fill(&self, zone: &str, lines: &str) {
        let wanted = sets(lines);
        let old = self.builtin.read(&name(zone)).await.unwrap().sets;
        let is = |set: &RecordSet, other: &RecordSet| set.name == other.name && set.kind == other.kind;
        let gone = old
            .iter()
            .filter(|old| !wanted.iter().any(|new| is(new, old)))
            .map(|old| (Some(old.clone()), None));
        let new = wanted.iter().map(|new| (old.iter().find(|old| is(old, new)).cloned(), Some(new.clone())));
        self.write(zone, units(gone.chain(new))).await;
    }

    pub(crate) async fn write(&self, zone: &str, units: Vec<Unit>) {
        let generation = self.generation.fetch_add(1, Ordering::Relaxed) + 1;
        let request = WriteRequest::new(units, fence(self.epoch, generation));
        let outcomes = self.builtin.write(&name(zone), &request).await.unwrap().outcomes;
        assert!(outcomes.iter().all(|outcome| *outcome == UnitOutcome::Applied), "{outcomes:?}");
        self.settled(zone).await;
    }

    /// Waits until the server answers what the store has.
    pub(crate) async fn settled(&self, zone: &str) {
        let content = self.builtin.read(&name(zone)).await.unwrap();
        for _ in 0..500 {
            let serial = self.server.serial(&name(zone));
            if serial == content.sign.as_ref().and_then(ChangeSign::serial)
                || serial.is_none() && content.sets.is_empty()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{zone} is not answered as it is stored");
    }

    /// Asks over UDP with EDNS and shows the answer.
    pub(crate) async fn ask(&self, name: &str, kind: &str) -> String {
        show(&self.exchange(&query(name, kind)).await)
    }

    pub(crate) async fn exchange(&self, query: &Message) -> Message {
        let answer = exchange(self.address(), &query.to_vec().unwrap()).await.unwrap();
        Message::from_vec(&answer).unwrap()
    }

    /// Asks over TCP until the connection has been silent or `done` says so.
    pub(crate) async fn exchange_tcp(
        &self,
        query: &Message,
        done: impl Fn(&[Message]) -> bool,
    ) -> Vec<Message> {
        let mut stream = TcpStream::connect(self.address()).await.unwrap();
        let bytes = query.to_vec().unwrap();
        stream.write_u16(bytes.len().try_into().unwrap()).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        let mut messages = Vec::new();
        while !done(&messages) {
            let length = timeout(Duration::from_secs(5), stream.read_u16()).await.unwrap().unwrap();
            let mut answer = vec![0; length.into()];
            stream.read_exact(&mut answer).await.unwrap();
            messages.push(Message::from_vec(&answer).unwrap());
        }
        messages
    }
}

pub(crate) async fn exchange(server: SocketAddr, packet: &[u8]) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server).await.unwrap();
    socket.send(packet).await.unwrap();
    let mut buffer = vec![0; 65_535];
    let length = timeout(Duration::from_secs(2), socket.recv(&mut buffer)).await.ok()?.ok()?;
    buffer.truncate(length);
    Some(buffer)
}

pub(crate) fn plain_query(name: &str, kind: &str) -> Message {
    let mut message = Message::new(7, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    let kind = match kind {
        "IXFR" => Type::IXFR,
        "AXFR" => Type::AXFR,
        _ => kind.parse().unwrap(),
    };
    message.add_query(Query::query(hickory_proto::rr::Name::from_ascii(name).unwrap(), kind));
    message
}

pub(crate) fn query(name: &str, kind: &str) -> Message {
    let mut message = plain_query(name, kind);
    let mut edns = Edns::new();
    edns.set_max_payload(4096);
    message.set_edns(edns);
    message
}

/// Code and flags, then each record with its section.
pub(crate) fn show(message: &Message) -> String {
    let meta = &message.metadata;
    let flags = [
        (meta.authoritative, " aa"),
        (meta.truncation, " tc"),
        (meta.recursion_desired, " rd"),
        (meta.recursion_available, " ra"),
        (message.edns.is_some(), " edns"),
    ];
    let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, text)| *text).collect();
    let mut lines = vec![format!("{:?}{flags}", meta.response_code)];
    for (section, records) in
        [("", &message.answers), ("authority ", &message.authorities), ("additional ", &message.additionals)]
    {
        lines.extend(records.iter().map(|record| format!("{section}{record}")));
    }
    lines.join("\n")
}
