//! Several writers of one zone at once.

use std::sync::Arc;

use netstead_model::{DnsProvider as _, ManualClock, ProviderError, WriteRequest};
use netstead_nameserver::Builtin;
use netstead_store::{MemoryStore, Store, WatchItem, Write};

use crate::fixture::{fence, name, sets, units};

/// The order of a zone after each commit: epoch, generation and serial.
type Order = (u64, u64, u64);

fn order(write: &Write) -> Option<Order> {
    let Write::Put(key, value) = write else { return None };
    let header: serde_json::Value = serde_json::from_slice(value.get(1..)?).ok()?;
    let number = |field: &str| header.get(field)?.as_u64();
    (key == b"dns/zone/example.test").then_some(())?;
    Some((number("epoch")?, number("generation")?, number("serial")?))
}

/// One process that applies plan after plan, some of them long overtaken.
async fn writer(store: Arc<dyn Store>, number: u64) -> (u32, u32) {
    let zone = name("example.test");
    let builtin = Builtin::new(store, ManualClock::default().shared(), vec![zone.clone()]);
    let (mut written, mut late) = (0, 0);
    for step in 0..40 {
        let after = sets(&format!("a.example.test 300 A 192.0.2.{}", number * 40 + step)).remove(0);
        let before = builtin.read(&zone).await.unwrap().sets.pop();
        tokio::task::yield_now().await;
        let at = fence(1 + step / 8, (step * 7 + number * 3) % 16);
        let request = WriteRequest::new(units([(before, Some(after))]), at);
        match builtin.write(&zone, &request).await {
            Ok(_) => written += 1,
            Err(ProviderError::Late { .. }) => late += 1,
            Err(ProviderError::Busy { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    (written, late)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_race_never_take_a_zone_back() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut watch = store.watch(b"dns/zone/").await.unwrap();
    let writers: Vec<_> = (0..4).map(|number| tokio::spawn(writer(Arc::clone(&store), number))).collect();
    let (mut written, mut late) = (0, 0);
    for writer in writers {
        let (wrote, refused) = writer.await.unwrap();
        (written, late) = (written + wrote, late + refused);
    }
    assert!(written > 0 && late > 0, "{written} written, {late} late");
    store.commit(netstead_store::Commit::new().put("dns/zone/end", "1{}")).await.unwrap();
    let mut orders: Vec<Order> = Vec::new();
    loop {
        let Some(WatchItem::Changed { writes, .. }) = watch.next().await else {
            panic!("the watch was lost")
        };
        if writes.iter().any(|write| matches!(write, Write::Put(key, _) if key == b"dns/zone/end")) {
            break;
        }
        orders.extend(writes.iter().filter_map(order));
    }
    assert!(orders.len() > 10, "{orders:?}");
    assert!(orders.is_sorted_by_key(|(epoch, generation, _)| (*epoch, *generation)), "{orders:?}");
    assert!(orders.is_sorted_by_key(|(_, _, serial)| *serial), "{orders:?}");
}
