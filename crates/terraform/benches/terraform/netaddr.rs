//! Claims per second in a range of terraform-provider-netaddr, beside the rate of transactions of the same etcd in the same minute.

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
use tokio::{runtime::Runtime, task::JoinSet};

use crate::report::Report;

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
        ended.expect("a client without a failed claim");
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
    let answer: TxnResponse = client.once_at(0, KV_TXN, question).await.expect("an answer of etcd");
    assert!(answer.succeeded);
}

/// False: there is no etcd, and that was said.
pub(crate) fn measure(report: &mut Report) -> bool {
    let Some(etcd) = Etcd::start(1) else { return false };
    Runtime::new().expect("a runtime").block_on(async {
        for held in [10, 1000, 50_000] {
            fill_and_measure(report, &etcd, held).await;
        }
    });
    true
}

async fn fill_and_measure(report: &mut Report, etcd: &Etcd, held: usize) {
    let connection = EtcdConnection::new(etcd.endpoints());
    let session = || Netaddr::new(NetaddrOptions::new(connection.clone())).expect("a client");
    let (prefix, ours) = (format!("{WIDE}{held}/"), session());
    let range = NewRange::parse(&prefix, RangeType::Ipv4, "10.0.0.0", "10.63.255.255").expect("a range");
    ours.create_range(&range).await.expect("a range");
    let mut filling = JoinSet::new();
    for part in 0..100 {
        let (ours, ranges) = (ours.clone(), [prefix.clone()]);
        filling.spawn(async move {
            for number in (part..held).step_by(100) {
                ours.claim(&ranges, None, &format!("held-{number}")).await.expect("a claim");
            }
        });
    }
    while let Some(filled) = filling.join_next().await {
        filled.expect("a filled range");
    }
    for clients in [1_usize, 10, 64] {
        let claim = |sessions: Vec<Netaddr>, kind: &'static str| {
            let prefix = prefix.clone();
            move |client: usize, number: u64| {
                let (ours, ranges) = (sessions[client % sessions.len()].clone(), [prefix.clone()]);
                async move {
                    let name = format!("{kind}-{clients}-{client}-{number}");
                    // A creation that fails ends the bench.
                    assert!(ours.claim(&ranges, None, &name).await.expect("a claim").made);
                }
            }
        };
        let one = rate(clients, claim(vec![ours.clone()], "one")).await;
        let each = rate(clients, claim((0..clients).map(|_| session()).collect(), "each")).await;
        let raw = Arc::new(EtcdClient::new(&connection).expect("a client"));
        let raw = rate(clients, move |client, number| {
            let (raw, name) = (Arc::clone(&raw), format!("{held}-{clients}-{client}-{number}"));
            async move { transaction(&raw, name).await }
        });
        let raw = raw.await;
        for (what, rate) in
            [("in one process", one), ("in a process each", each), ("transactions of etcd itself", raw)]
        {
            report.note(format!("{held} held, {clients} clients {what}"), figure(rate), "claims/s");
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a rate is far below 2^52")]
fn figure(rate: u64) -> f64 {
    rate as f64
}
