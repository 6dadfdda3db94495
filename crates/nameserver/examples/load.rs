//! Serves ten thousand names for a measurement with dnsperf: `cargo run --release --example load -- 127.0.0.1:5300`. With
//! one more argument all of them change every second.
#![allow(clippy::unwrap_used, reason = "a measurement stops at the first thing that is not as it should be")]

use std::sync::Arc;

use netstead_model::{
    DnsProvider, Fence, RecordData, RecordSet, RecordType, SetChange, SystemClock, Unit, WriteRequest,
};
use netstead_nameserver::{Builtin, NameServer, Options};
use netstead_store::{MemoryStore, Store};

const NAMES: u32 = 10_000;

#[tokio::main]
async fn main() {
    let listen = std::env::args().nth(1).unwrap().parse().unwrap();
    let changing = std::env::args().nth(2).is_some();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let zone = "bench.test".parse().unwrap();
    let builtin = Builtin::new(Arc::clone(&store), SystemClock::shared(), vec![zone]);
    write(&builtin, None, 0).await;
    let options = Options { listen: vec![listen], ..Options::default() };
    let server = NameServer::start(store, SystemClock::shared(), options).await.unwrap();
    for generation in 0.. {
        if changing {
            write(&builtin, Some(generation), generation + 1).await;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    server.shutdown().await;
}

/// Gives every name the address of `after` instead of that of `before`.
async fn write(builtin: &Builtin, before: Option<u32>, after: u32) {
    let set = |n: u32, generation: u32| {
        let address = RecordData::A((0x0a00_0000 + generation * NAMES + n).into());
        RecordSet::new(format!("n{n}.bench.test").parse().unwrap(), RecordType::A, 300, [address])
    };
    let unit = |n| {
        let after = set(n, after);
        Unit {
            name: after.name.clone(),
            changes: vec![SetChange { before: before.map(|before| set(n, before)), after: Some(after) }],
        }
    };
    let fence = Fence { owner: "bench".into(), epoch: 1, generation: after.into() };
    let request = WriteRequest::new((0..NAMES).map(unit).collect(), fence);
    builtin.write(&"bench.test".parse().unwrap(), &request).await.unwrap();
}
