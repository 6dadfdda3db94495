//! An applier that is stopped between its last look and its write, while a newer plan is applied.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use netstead_model::{DnsProvider as _, ProviderError, UnitOutcome};
use netstead_testkit::{Bind, Knot, PowerDns, TsigKey};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    time::timeout,
};

use crate::support::{a, change, config, hasty, request, rfc2136, stopped, zone};

/// How long anything here may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Forwards whole messages to a server, but an update only once it is opened, also when its sender is gone.
struct Gate {
    address: SocketAddr,
    open: Arc<Semaphore>,
    updates: watch::Receiver<Updates>,
}

/// How many updates came to the gate, and how many of them the server has answered.
#[derive(Debug, Default)]
struct Updates {
    came: usize,
    answered: usize,
}

impl Gate {
    async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (open, counts) = (Arc::new(Semaphore::new(0)), watch::Sender::<Updates>::default());
        let (gate, updates) = (Arc::clone(&open), counts.subscribe());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server, Arc::clone(&gate), counts.clone()));
            }
        });
        Self { address, open, updates }
    }

    /// Returns when an update waits here.
    async fn holds_one(&mut self) {
        let came = self.updates.wait_for(|updates| updates.came > 0);
        timeout(PATIENCE, came).await.unwrap().unwrap();
    }

    /// Lets everything through, and returns when the server has answered all updates that waited.
    async fn let_through(&mut self) {
        self.open.add_permits(100);
        let answered = self.updates.wait_for(|updates| updates.answered == updates.came && updates.came > 0);
        timeout(PATIENCE, answered).await.unwrap().unwrap();
    }
}

async fn forward(
    mut client: TcpStream,
    server: SocketAddr,
    gate: Arc<Semaphore>,
    counts: watch::Sender<Updates>,
) {
    let mut server = TcpStream::connect(server).await.unwrap();
    while let Some(message) = frame(&mut client).await {
        let is_update = message[2] & 0x78 == 0x28;
        if is_update {
            counts.send_modify(|updates| updates.came += 1);
            gate.acquire().await.unwrap().forget();
        }
        send(&mut server, &message).await;
        let answer = frame(&mut server).await.unwrap();
        if is_update {
            counts.send_modify(|updates| updates.answered += 1);
        }
        send(&mut client, &answer).await;
    }
}

async fn frame(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let length = stream.read_u16().await.ok()?;
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await.ok()?;
    Some(message)
}

async fn send(stream: &mut TcpStream, message: &[u8]) {
    let _ = stream.write_u16(u16::try_from(message.len()).unwrap()).await;
    let _ = stream.write_all(message).await;
}

async fn check(server: SocketAddr, key: &TsigKey) {
    let direct = rfc2136(server, key);
    let at = |address: &str| Some(a("www.example.test", &[address]));
    let first = direct.write(&zone(), &request(10, vec![change(None, at("192.0.2.10"))])).await;
    assert_eq!(first, Ok(vec![UnitOutcome::Applied].into()));

    // Stopped, overtaken by generation 12, continued: told that it is late.
    let mut gate = Gate::before(server).await;
    let slow = rfc2136(gate.address, key);
    let late = tokio::spawn(async move {
        slow.write(&zone(), &request(11, vec![change(at("192.0.2.10"), at("192.0.2.11"))])).await
    });
    gate.holds_one().await;
    let newer = vec![change(at("192.0.2.10"), at("192.0.2.12"))];
    assert_eq!(direct.write(&zone(), &request(12, newer)).await, Ok(vec![UnitOutcome::Applied].into()));
    gate.open.add_permits(100);
    let late = late.await.unwrap();
    let late = stopped(late);
    assert!(matches!(late, ProviderError::Late { .. }), "{late:?}");

    // Given up by its sender, overtaken although the value it expects is back, and delivered after that.
    let mut gate = Gate::before(server).await;
    let slow = hasty(config(gate.address, key));
    let lost = slow.write(&zone(), &request(13, vec![change(at("192.0.2.12"), at("192.0.2.13"))])).await;
    let lost = stopped(lost);
    assert!(matches!(lost, ProviderError::Unknown { .. }), "{lost:?}");
    let there = vec![change(at("192.0.2.12"), at("192.0.2.14"))];
    assert_eq!(direct.write(&zone(), &request(14, there)).await, Ok(vec![UnitOutcome::Applied].into()));
    let back = vec![change(at("192.0.2.14"), at("192.0.2.12"))];
    assert_eq!(direct.write(&zone(), &request(15, back)).await, Ok(vec![UnitOutcome::Applied].into()));
    gate.let_through().await;
    let content = direct.read(&zone()).await.unwrap();
    assert!(content.sets.contains(&at("192.0.2.12").unwrap()), "{:?}", content.sets);
}

#[tokio::test]
async fn bind_refuses_what_comes_late() {
    let Some(bind) = Bind::start(&["example.test"]) else { return };
    check(bind.address(), bind.key()).await;
}

#[tokio::test]
async fn knot_refuses_what_comes_late() {
    let Some(knot) = Knot::start(&["example.test"]) else { return };
    check(knot.address(), knot.key()).await;
}

#[tokio::test]
async fn powerdns_refuses_what_comes_late_by_dns_update() {
    let Some(powerdns) = PowerDns::start(&["example.test"]) else { return };
    check(powerdns.address(), powerdns.key()).await;
}
