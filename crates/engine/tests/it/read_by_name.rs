//! A server that hands out no whole zones.

use std::sync::{Arc, Mutex};

use netstead_store::MemoryStore;

use crate::{
    server::Server,
    world::{World, name, vm},
};

#[tokio::test]
async fn every_wanted_name_and_its_mark_is_asked_for_and_a_new_one_though_the_serial_stands_still() {
    let server = Server { by_name: Some(Mutex::default()), ..Server::new(&["example.com"]) };
    // A foreign value, which only shows when its name is asked for.
    server.add("w2.example.com", "A 192.0.2.66");
    let world = World::with(Arc::new(MemoryStore::new()), vec![("lan", server)]);
    world.source.sees([vm("w1", "10.0.0.1")]);
    let engine = world.start().await;
    assert!(world.server().has("w1.example.com", "A 10.0.0.1"));
    let asked = || world.server().by_name.as_ref().unwrap().lock().unwrap().clone();
    let first = asked().first().unwrap().clone();
    assert!(
        first.contains(&name("w1.example.com")) && first.contains(&name("_netstead-blue.w1.example.com"))
    );

    world.source.sees([vm("w1", "10.0.0.1"), vm("w2", "10.0.0.2")]);
    engine.apply(None).await.unwrap();
    assert!(asked().last().unwrap().contains(&name("w2.example.com")));
    assert!(!world.server().has("w2.example.com", "A 10.0.0.2"), "it is blocked, not overwritten");
    let reads = asked().len();
    engine.apply(None).await.unwrap();
    assert_eq!(asked().len(), reads, "nothing new is asked for");
    engine.close().await;
}
