use std::{sync::Arc, time::Duration};

use netstead_model::DnsProvider;
use netstead_store::{LocalStore, Store};

use crate::fixture::{House, name, options};

#[tokio::test]
async fn serials_only_grow_also_across_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let serial = async |house: &House| {
        house.builtin.read(&name("example.test")).await.unwrap().sign.unwrap().serial().unwrap()
    };
    let store: Arc<dyn Store> = Arc::new(LocalStore::open(folder.path()).await.unwrap());
    let house = House::with(&["example.test"], Arc::clone(&store), options()).await;
    house.fill("example.test", "a.example.test 300 A 192.0.2.1").await;
    let first = serial(&house).await;
    // The clock of the tests stands still, so each change adds one.
    house.fill("example.test", "a.example.test 300 A 192.0.2.2").await;
    assert_eq!(serial(&house).await, first + 1);
    house.clock.advance(Duration::from_secs(1000));
    house.fill("example.test", "a.example.test 300 A 192.0.2.3").await;
    let last = serial(&house).await;
    assert_eq!(last, 1_000_001_000);
    house.server.shutdown().await;
    store.close().await;
    drop(store);

    // Its clock begins in the past again, as after a dead battery.
    let store: Arc<dyn Store> = Arc::new(LocalStore::open(folder.path()).await.unwrap());
    let house = House::with(&["example.test"], store, options()).await;
    assert_eq!(house.server.serial(&name("example.test")), Some(last));
    assert!(house.ask("a.example.test.", "A").await.contains("192.0.2.3"));
    house.fill("example.test", "a.example.test 300 A 192.0.2.3").await;
    assert_eq!(serial(&house).await, last);
    house.fill("example.test", "a.example.test 300 A 192.0.2.4").await;
    assert_eq!(serial(&house).await, last + 1);
}
