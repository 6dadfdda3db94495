//! Claims per second in a range of terraform-provider-netaddr, beside the rate of transactions of the same etcd in the same minute.
//!
//! Run by hand: `cargo test -p netstead-providers --test it -- --ignored claims_per_second --nocapture`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use netstead_model::{Clock as _, SystemClock};
use netstead_providers::netaddr::{Netaddr, NetaddrOptions, NewRange, RangeType};
use netstead_testkit::Etcd;
use netstead_wire::etcd::{
    EtcdClient, EtcdConnection, KV_TXN,
    messages::{Compare, CompareTarget, Operand, Operation, PutRequest, TxnRequest, TxnResponse},
};
use tokio::task::JoinSet;

const TIME: Duration = Duration::from_secs(2);
const WIDE: &str = "/ranges/wide/";

/// Runs `call` in so many clients for the time, and returns how often a second it ended well.
async fn rate<F>(clients: usize, call: impl Fn(usize, u64) -> F + Clone + Send + 'static) -> u64
where
    F: Future<Output = ()> + Send + 'static,
{
    let (done, end) = (Arc::new(AtomicU64::new(0)), SystemClock.monotonic() + TIME);
    let mut running = JoinSet::new();
    for client in 0..clients {
        let (done, call) = (Arc::clone(&done), call.clone());
        running.spawn(async move {
            let mut number = 0;
            while SystemClock.monotonic() < end {
                call(client, number).await;
                number += 1;
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
    done.load(Ordering::Relaxed) / TIME.as_secs()
}

/// One transaction with the conditions and writes of one claim.
async fn transaction(client: &EtcdClient, name: String) {
    let absent = |key: &str| Compare {
        target: CompareTarget::Mod.into(),
        key: format!("/raw/{key}/{name}").into_bytes(),
        operand: Some(Operand::ModRevision(0)),
        ..Compare::default()
    };
    let put = |key: &str| {
        let (key, value) = (format!("/raw/{key}/{name}").into_bytes(), vec![0_u8; 16]);
        Operation::Put(PutRequest { key, value, lease: 0 }).into()
    };
    let question = TxnRequest {
        compare: vec![absent("name"), absent("address")],
        success: vec![put("name"), put("address"), put("pointer")],
        failure: Vec::new(),
    };
    let answer: TxnResponse = client.once_at(0, KV_TXN, question).await.unwrap();
    assert!(answer.succeeded);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures"]
async fn claims_per_second() {
    let Some(etcd) = Etcd::start(1) else { return };
    let connection = EtcdConnection::new(etcd.endpoints());
    println!(
        "{:>8} {:>8} {:>16} {:>18} {:>14}",
        "held", "clients", "one process", "process for each", "transactions"
    );
    let mut run = 0;
    for held in [10_usize, 1000, 50_000] {
        let prefix = format!("{WIDE}{held}/");
        let ours = Netaddr::new(NetaddrOptions::new(connection.clone())).unwrap();
        let range = NewRange::parse(&prefix, RangeType::Ipv4, "10.0.0.0", "10.63.255.255").unwrap();
        ours.create_range(&range).await.unwrap();
        let mut filling = JoinSet::new();
        for part in 0..100 {
            let (ours, ranges) = (ours.clone(), [prefix.clone()]);
            filling.spawn(async move {
                for number in (part..held).step_by(100) {
                    ours.claim(&ranges, None, &format!("held-{number}")).await.unwrap();
                }
            });
        }
        while let Some(filled) = filling.join_next().await {
            filled.unwrap();
        }
        for clients in [1_usize, 10, 64] {
            run += 1;
            let claim = |sessions: Vec<Netaddr>, kind: &'static str| {
                let prefix = prefix.clone();
                move |client: usize, number: u64| {
                    let (ours, ranges) = (sessions[client % sessions.len()].clone(), [prefix.clone()]);
                    async move {
                        let name = format!("{kind}-{run}-{client}-{number}");
                        // A creation that fails ends the test.
                        assert!(ours.claim(&ranges, None, &name).await.unwrap().made);
                    }
                }
            };
            let one = rate(clients, claim(vec![ours.clone()], "one")).await;
            let own: Vec<Netaddr> = (0..clients)
                .map(|_| Netaddr::new(NetaddrOptions::new(connection.clone())).unwrap())
                .collect();
            let each = rate(clients, claim(own, "each")).await;
            let raw = Arc::new(EtcdClient::new(&connection).unwrap());
            let raw = rate(clients, move |client, number| {
                let (raw, name) = (Arc::clone(&raw), format!("{run}-{client}-{number}"));
                async move { transaction(&raw, name).await }
            });
            println!("{held:>8} {clients:>8} {one:>14}/s {each:>16}/s {:>12}/s", raw.await);
        }
    }
}
