//! Several servers in one table: each has its own loop, and one name means all of them.

use std::sync::{Arc, atomic::Ordering};

use netstead_engine::{Engine, Scope};
use netstead_model::ProviderError;
use netstead_store::MemoryStore;

use crate::{
    server::Server,
    world::{World, fleet, ident, soon, vm},
};

async fn started() -> (World, Engine) {
    let servers = ["pi-one", "pi-two"].map(|name| (name, Server::new(&["example.com"])));
    let world = World::with(Arc::new(MemoryStore::new()), servers.into());
    let mut setup = world.setup();
    for provider in &mut setup.providers {
        provider.settings.group = Some(ident("pi"));
        provider.settings.reverse = false;
    }
    let engine = world.start_with(setup).await;
    (world, engine)
}

fn holding(world: &World, at: &str, value: &str) -> Vec<bool> {
    world.servers.iter().map(|(_, server)| server.has(at, value)).collect()
}

#[tokio::test]
async fn a_name_for_the_group_is_on_all_of_its_servers() {
    let (world, engine) = started().await;
    let mut web = vm("web", "10.0.0.1");
    web.wishes[0].providers = vec![ident("pi")];
    let mut one = vm("one", "10.0.0.2");
    one.wishes[0].providers = vec![ident("pi-one")];
    world.source.sees([web, one]);
    engine.apply(Some(&ident("pi"))).await.unwrap();
    assert_eq!(holding(&world, "web.example.com", "A 10.0.0.1"), [true, true]);
    assert_eq!(holding(&world, "one.example.com", "A 10.0.0.2"), [true, false]);
    assert!(engine.status().providers.iter().all(|provider| provider.group == Some(ident("pi"))));
    engine.close().await;
}

#[tokio::test]
async fn one_dead_server_does_not_stop_the_other_and_catches_up() {
    let (world, engine) = started().await;
    let dead = &world.servers[0].1;
    let error = ProviderError::Unreachable { server: "pi-one".into(), reason: "no route".into() };
    *dead.fails.lock().unwrap() = Some(error);
    world.source.sees([vm("web", "10.0.0.1")]);
    engine.apply(None).await.unwrap();
    assert_eq!(holding(&world, "web.example.com", "A 10.0.0.1"), [false, true]);
    *dead.fails.lock().unwrap() = None;
    engine.apply(None).await.unwrap();
    assert_eq!(holding(&world, "web.example.com", "A 10.0.0.1"), [true, true]);
    // Rebuilt empty, it is filled again.
    dead.remove("web.example.com", "A 10.0.0.1");
    world.minutes(&engine, 1).await;
    assert_eq!(holding(&world, "web.example.com", "A 10.0.0.1"), [true, true]);
    let writes: Vec<usize> = world.servers.iter().map(|(_, server)| server.writes()).collect();
    world.minutes(&engine, 3).await;
    let after: Vec<usize> = world.servers.iter().map(|(_, server)| server.writes()).collect();
    assert_eq!(writes, after, "a pass without a change writes nothing");
    engine.close().await;
}

#[tokio::test]
async fn a_pause_of_the_group_holds_all_of_it_and_one_hash_approves_on_all() {
    let (world, engine) = started().await;
    world.source.sees(fleet(0..40));
    engine.apply(None).await.unwrap();
    engine.pause(Scope::Provider(ident("pi")), None, None, "ann").await.unwrap();
    world.source.sees(fleet(0..41));
    engine.apply(None).await.unwrap();
    assert_eq!(holding(&world, "w40.example.com", "A 10.0.0.40"), [false, false]);
    engine.resume(Scope::Provider(ident("pi")), "ann").await.unwrap();
    engine.apply(None).await.unwrap();
    assert_eq!(holding(&world, "w40.example.com", "A 10.0.0.40"), [true, true]);
    // Twenty machines move at once: that waits for a person.
    let moved = |n: u8| vm(&format!("w{n}"), &format!("10.0.1.{n}"));
    world.source.sees(fleet(0..41).into_iter().take(21).chain((21..41).map(moved)));
    engine.apply(None).await.unwrap();
    let hashes: Vec<String> =
        engine.plans().iter().map(|(_, plan)| plan.parked.as_ref().unwrap().hash.to_string()).collect();
    assert_eq!(hashes[0], hashes[1]);
    engine.approve(&hashes[0], "ann").await.unwrap();
    soon(|| holding(&world, "w30.example.com", "A 10.0.1.30") == [true, true]).await;
    assert!(world.servers.iter().all(|(_, server)| server.writes.load(Ordering::SeqCst) > 0));
    engine.close().await;
}
