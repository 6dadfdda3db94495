//! Commands of people: adopt, recover, clean, rollback, rename.

use std::sync::Arc;

use netstead_engine::{Adoption, AdoptionReport, Cleaning, Engine, EngineError, Setup};
use netstead_model::{Marks, ProviderError, View};
use netstead_plan::marks::{Tool, external_dns::Naming};
use netstead_store::MemoryStore;

use crate::{
    server::Server,
    world::{World, fleet, ident, name, vm},
};

fn at(text: &str) -> Adoption {
    Adoption::Name { name: name(text), kind: None }
}

fn texts(taken: &[AdoptionReport]) -> Vec<String> {
    taken.iter().flat_map(|one| &one.values).map(|value| format!("{} {}", value.name, value.data)).collect()
}

#[tokio::test]
async fn a_blocked_name_is_taken_over_by_its_name() {
    let world = World::new();
    world.server().add("web.example.com", "A 192.0.2.1");
    world.server().add("hand.example.com", "A 192.0.2.2");
    world.source.sees([vm("web", "10.0.0.1")]);
    let engine = world.start().await;
    assert_eq!(engine.status().providers[0].blocked, 1);
    // A look changes nothing, and shows what would follow.
    let seen = engine.adopt(at("web.example.com"), None, true, "ann").await.unwrap();
    assert_eq!(texts(&seen), ["web.example.com 192.0.2.1"]);
    assert!(seen[0].plan.as_ref().unwrap().to_string().contains("192.0.2.1 → 10.0.0.1"));
    engine.apply(None).await.unwrap();
    assert!(world.server().has("web.example.com", "A 192.0.2.1"));
    let taken = engine.adopt(at("web.example.com"), Some(&ident("lan")), false, "ann").await.unwrap();
    assert_eq!(texts(&taken), ["web.example.com 192.0.2.1"]);
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    assert!(!world.server().has("web.example.com", "A 192.0.2.1"));
    assert!(world.server().has("hand.example.com", "A 192.0.2.2"));
    assert!(engine.adopt(at("web.example.com"), None, false, "ann").await.unwrap()[0].values.is_empty());
    let elsewhere = engine.adopt(at("web.example.net"), Some(&ident("lan")), false, "ann").await;
    assert!(matches!(elsewhere, Err(EngineError::Invalid { field: "provider", .. })), "{elsewhere:?}");
    assert!(engine.events(10).await.iter().any(|event| event.by.as_deref() == Some("ann")));
    engine.close().await;
}

#[tokio::test]
async fn records_of_another_tool_are_taken_over_with_their_marks() {
    let world = World::new();
    for (at, text) in [
        ("app.example.com", "A 10.0.0.1"),
        ("_dnsweaver.app.example.com", "TXT \"heritage=dnsweaver,instance=home\""),
        ("_dnsweaver-catalog-0.example.com", "TXT \"app.example.com\""),
        ("web.example.com", "A 10.0.0.2"),
        ("a-web.example.com", "TXT \"heritage=external-dns,external-dns/owner=k8s\""),
        ("hand.example.com", "A 10.0.0.3"),
    ] {
        world.server().add(at, text);
    }
    world.source.sees([vm("app", "10.0.0.1")]);
    let engine = world.start().await;
    let tool = |tool, id: Option<&str>| Adoption::Tool {
        tool,
        id: id.map(str::to_owned),
        naming: Naming::default(),
        zone: None,
    };
    let other = engine.adopt(tool(Tool::Dnsweaver, Some("work")), None, false, "ann").await.unwrap();
    assert!(other[0].values.is_empty());
    let taken = engine.adopt(tool(Tool::Dnsweaver, None), None, false, "ann").await.unwrap();
    assert_eq!(texts(&taken), ["app.example.com 10.0.0.1"]);
    assert_eq!(taken[0].values[0].by.as_deref(), Some("dnsweaver home"));
    let has = |at: &str, text: &str| world.server().has(at, text);
    assert!(!has("_dnsweaver.app.example.com", "TXT \"heritage=dnsweaver,instance=home\""));
    assert!(!has("_dnsweaver-catalog-0.example.com", "TXT \"app.example.com\""));
    assert!(has("a-web.example.com", "TXT \"heritage=external-dns,external-dns/owner=k8s\""));
    engine.adopt(tool(Tool::ExternalDns, Some("k8s")), None, false, "ann").await.unwrap();
    assert!(!has("a-web.example.com", "TXT \"heritage=external-dns,external-dns/owner=k8s\""));
    // Nothing asks for it, and it stays.
    assert!(has("web.example.com", "A 10.0.0.2") && has("hand.example.com", "A 10.0.0.3"));
    assert_eq!(engine.status().providers[0].owned, 3, "two addresses and a PTR");
    engine.close().await;
}

/// Another installation on the same servers, with an empty store.
fn lost(world: &World) -> (World, Setup) {
    let other = World::with(Arc::new(MemoryStore::new()), Vec::new());
    let servers = world.servers.clone();
    let other = World { servers, ..other };
    let mut setup = other.setup();
    setup.providers[0].settings.owner = "green".parse().unwrap();
    (other, setup)
}

#[tokio::test]
async fn a_lost_store_is_recovered_from_marks_and_its_first_plan_waits() {
    let world = World::new();
    world.source.sees(fleet(1..6));
    world.start().await.close().await;
    world.server().add("hand.example.com", "A 192.0.2.2");
    let (other, setup) = lost(&world);
    other.source.sees(fleet(2..4).into_iter().chain([vm("w1", "10.0.0.99"), vm("new", "10.0.0.77")]));
    let engine = other.start_with(setup.clone()).await;
    engine.apply(None).await.unwrap();
    // Without it nothing is taken: only what is new is made.
    assert_eq!(engine.status().providers[0].owned, 2);
    assert!(world.server().has("w5.example.com", "A 10.0.0.5"));
    let blue = || "blue".parse().unwrap();
    let nothing = engine.recover("red".parse().unwrap(), None, true, "ann").await.unwrap();
    assert!(texts(&nothing).is_empty());
    let seen = engine.recover(blue(), None, true, "ann").await.unwrap();
    assert_eq!(texts(&seen).len(), 10);
    assert_eq!(engine.status().providers[0].owned, 2);
    let taken = engine.recover(blue(), None, false, "ann").await.unwrap();
    assert_eq!(texts(&taken).len(), 10);
    let parked =
        taken[0].report.as_ref().unwrap().plan.as_ref().unwrap().as_dns().unwrap().parked.clone().unwrap();
    // All of it waits: new values, values without a reason, and marks under the former id.
    assert!(world.server().has("w5.example.com", "A 10.0.0.5"));
    assert!(!world.server().has("w1.example.com", "A 10.0.0.99"));
    engine.approve(&parked.hash.to_string(), "ann").await.unwrap();
    assert!(world.server().has("w1.example.com", "A 10.0.0.99"));
    assert!(!world.server().has("w5.example.com", "A 10.0.0.5"));
    assert!(world.server().has("w2.example.com", "A 10.0.0.2"));
    assert!(world.server().has("hand.example.com", "A 192.0.2.2"));
    // What the drawn id had marked carries the recovered one now, and nothing says otherwise.
    let marks = |owner: &str| {
        let place = format!("_netstead-{owner}.");
        let zones = world.server().lock();
        let names = zones.values().flat_map(|zone| zone.sets.keys());
        names
            .filter(|(name, _)| name.as_str().starts_with(&place))
            .map(|(name, _)| name.to_string())
            .collect()
    };
    let (green, blue_ones): (Vec<String>, Vec<String>) = (marks("green"), marks("blue"));
    assert!(green.is_empty(), "{green:?}");
    assert!(blue_ones.contains(&"_netstead-blue.new.example.com".to_owned()), "{blue_ones:?}");
    engine.close().await;
    // The id stays what it is now, though the configuration still brings the drawn one.
    assert_eq!(Engine::owner(&*other.store).await.unwrap(), blue());
    let engine = other.start_with(setup).await;
    engine.apply(None).await.unwrap();
    assert_eq!(engine.status().providers[0].blocked, 0);
    assert!(engine.plans()[0].1.is_empty(), "{}", engine.plans()[0].1);
    engine.close().await;
}

#[tokio::test]
async fn a_server_without_marks_is_named_when_a_lost_store_is_recovered() {
    let unmarked = || Server { marks: Marks::None, ..Server::new(&["example.com", "0.10.in-addr.arpa"]) };
    let own = || Server { kind: "builtin", ..unmarked() };
    let marked = Server::new(&["example.com", "0.10.in-addr.arpa"]);
    let servers = vec![("lan", marked), ("filter", unmarked()), ("names", own())];
    let world = World::with(Arc::new(MemoryStore::new()), servers);
    world.source.sees([vm("web", "10.0.0.1")]);
    world.start().await.close().await;
    let (other, mut setup) = lost(&world);
    for provider in &mut setup.providers {
        provider.settings.owner = "green".parse().unwrap();
    }
    other.source.sees([vm("web", "10.0.0.1")]);
    let engine = other.start_with(setup).await;
    engine.apply(None).await.unwrap();
    let owner = || "blue".parse().unwrap();
    let taken = engine.recover(owner(), None, false, "ann").await.unwrap();
    // Our own nameserver lost nothing that was not in the store.
    let told: Vec<_> = taken.iter().map(|one| (one.provider.as_str(), one.error.as_deref())).collect();
    let unable = "nothing can be recovered from `filter`, because no marks stand there: only the lost store knew what was \
                  ours; `netstead adopt NAME --provider filter` takes over one name, `adopt = true` in [dns.filter] every \
                  record that is equal to what is asked for";
    assert_eq!(told, [("lan", None), ("filter", Some(unable))]);
    for (asked, why) in [
        ("filter", unable),
        ("names", "nothing can be recovered from `names`: its zones are in the store itself"),
    ] {
        let refused = engine.recover(owner(), Some(&ident(asked)), false, "ann").await;
        assert!(
            matches!(&refused, Err(EngineError::Invalid { field: "provider", reason }) if reason == why),
            "{refused:?}"
        );
    }
    // What it says works.
    let adopted = engine.adopt(at("web.example.com"), Some(&ident("filter")), false, "ann").await.unwrap();
    assert_eq!(texts(&adopted), ["web.example.com 10.0.0.1"]);
    let findings = engine.diagnose().await;
    let about = |name: &str| {
        let of_it = findings.iter().filter(|finding| finding.about == format!("dns.{name}"));
        of_it.map(|finding| finding.text.as_str()).collect::<Vec<_>>().join("\n")
    };
    assert!(
        about("filter").contains("without one, `netstead adopt` takes over what stands there"),
        "{findings:?}"
    );
    assert!(
        !about("lan").contains("netstead adopt") && !about("names").contains("netstead adopt"),
        "{findings:?}"
    );
    engine.close().await;
}

#[tokio::test]
async fn recovery_does_not_contradict_the_configuration() {
    let world = World::new();
    let mut setup = world.setup();
    setup.providers[0].fixed_owner = true;
    let engine = world.start_with(setup).await;
    let lan = ident("lan");
    let refused = engine.recover("green".parse().unwrap(), Some(&lan), false, "ann").await;
    assert!(matches!(refused, Err(EngineError::Invalid { field: "provider", .. })), "{refused:?}");
    engine.recover("blue".parse().unwrap(), Some(&lan), false, "ann").await.unwrap();
    engine.close().await;
}

#[tokio::test]
async fn what_a_detached_source_brought_goes_when_a_person_says_so() {
    let world = World::new();
    world.source.sees(fleet(1..4));
    let engine = world.start().await;
    engine
        .manual()
        .set(
            name("hand.example.com"),
            netstead_model::RecordType::A,
            vec![crate::world::data("A 192.0.2.9")],
            None,
            "ann",
        )
        .await
        .unwrap();
    engine.apply(None).await.unwrap();
    let pve = Cleaning::Source(ident("pve"));
    let refused = engine.clean(&pve, true, None, "ann").await;
    assert!(matches!(refused, Err(EngineError::Attached { .. })), "{refused:?}");
    let unknown = engine.clean(&Cleaning::Source(ident("nobody")), true, None, "ann").await;
    assert!(matches!(unknown, Err(EngineError::NoSuchSource { .. })), "{unknown:?}");
    engine.reconfigure(Setup { sources: Vec::new(), ..world.setup() }).await.unwrap();
    world.minutes(&engine, 20).await;
    assert!(world.server().has("w1.example.com", "A 10.0.0.1"));
    let seen = engine.clean(&pve, true, None, "ann").await.unwrap();
    assert_eq!(seen.plans[0].steps(), 6);
    assert!(world.server().has("w1.example.com", "A 10.0.0.1") && engine.status().pauses.is_empty());
    let moved = engine.clean(&pve, false, Some("0123456789abcdef"), "ann").await;
    assert!(matches!(moved, Err(EngineError::NotAsShown)), "{moved:?}");
    let done = engine.clean(&pve, false, Some(&seen.hash), "ann").await.unwrap();
    assert_eq!((done.reports[0].applied, done.paused), (6, vec![ident("lan")]));
    assert!(!world.server().has("w1.example.com", "A 10.0.0.1"));
    assert!(world.server().has("hand.example.com", "A 192.0.2.9"));
    assert!(engine.status().providers[0].paused.is_some());
    engine.resume(netstead_engine::Scope::All, "ann").await.unwrap();
    world.minutes(&engine, 3).await;
    assert!(engine.status().sources.iter().all(|source| source.name != ident("pve")), "it is forgotten");
    engine.close().await;
}

#[tokio::test]
async fn a_provider_is_cleaned_and_paused_or_forgotten_once_it_is_detached() {
    let world = World::new();
    world.source.sees(fleet(1..4));
    let engine = world.start().await;
    world.server().add("hand.example.com", "A 192.0.2.2");
    let lan = Cleaning::Provider(ident("lan"));
    let done = engine.clean(&lan, false, None, "ann").await.unwrap();
    assert_eq!(done.reports[0].applied, 6);
    engine.apply(None).await.unwrap();
    // It is still wanted, but nothing comes back before `resume`.
    assert!(!world.server().has("w1.example.com", "A 10.0.0.1"));
    assert!(world.server().has("hand.example.com", "A 192.0.2.2"));
    engine.resume(netstead_engine::Scope::Provider(ident("lan")), "ann").await.unwrap();
    engine.apply(None).await.unwrap();
    assert!(world.server().has("w1.example.com", "A 10.0.0.1"));
    let attached = engine.forget(&ident("lan"), false, "ann").await;
    assert!(matches!(attached, Err(EngineError::Invalid { .. })), "{attached:?}");
    engine.reconfigure(Setup { providers: Vec::new(), ..world.setup() }).await.unwrap();
    let refused = engine.clean(&lan, false, None, "ann").await;
    assert!(matches!(refused, Err(EngineError::Detached { .. })), "{refused:?}");
    assert_eq!(engine.forget(&ident("lan"), true, "ann").await.unwrap(), 6);
    assert_eq!(engine.forget(&ident("lan"), false, "ann").await.unwrap(), 6);
    assert!(engine.status().detached.is_empty());
    assert!(world.server().has("w1.example.com", "A 10.0.0.1"));
    engine.close().await;
}

#[tokio::test]
async fn a_rollback_is_a_new_generation_and_pauses_what_it_touches() {
    let world = World::new();
    world.source.sees([vm("web", "10.0.0.1"), vm("old", "10.0.0.2")]);
    let engine = world.start().await;
    world.source.says(View::Complete, [vm("web", "10.0.0.9"), vm("new", "10.0.0.3")], &["old"]);
    engine.apply(None).await.unwrap();
    let has = |at: &str, text: &str| world.server().has(at, text);
    assert!(has("web.example.com", "A 10.0.0.9") && !has("old.example.com", "A 10.0.0.2"));
    let newest = engine.status().providers[0].generation;
    for to in [newest, newest + 5] {
        let refused = engine.rollback(to, None, true, None, "ann").await;
        assert!(matches!(refused, Err(EngineError::NoSuchGeneration { .. })), "{refused:?}");
    }
    let seen = engine.rollback(1, None, true, None, "ann").await.unwrap();
    assert!(has("web.example.com", "A 10.0.0.9"));
    // Also when everything was stopped first.
    engine.pause(netstead_engine::Scope::All, None, None, "ann").await.unwrap();
    let done = engine.rollback(1, None, false, Some(&seen.hash), "ann").await.unwrap();
    assert_eq!(done.paused, [ident("lan")]);
    assert!(has("web.example.com", "A 10.0.0.1") && !has("web.example.com", "A 10.0.0.9"));
    assert!(has("old.example.com", "A 10.0.0.2") && !has("new.example.com", "A 10.0.0.3"));
    assert_eq!(engine.status().providers[0].generation, newest + 1);
    world.minutes(&engine, 2).await;
    assert!(has("web.example.com", "A 10.0.0.1"), "paused");
    // After that, names of what runs are wanted again, and names that came back without a reason wait for a person.
    engine.resume(netstead_engine::Scope::All, "ann").await.unwrap();
    engine.apply(None).await.unwrap();
    assert!(has("new.example.com", "A 10.0.0.3") && has("old.example.com", "A 10.0.0.2"));
    assert!(engine.status().providers[0].parked.is_some());
    engine.close().await;
}

#[tokio::test]
async fn a_renamed_source_keeps_its_records_here_and_after_a_restart() {
    let world = World::new();
    world.source.sees(fleet(1..4));
    let engine = world.start().await;
    let writes = world.server().writes();
    let renamed = World {
        source: world.called("lab"),
        servers: world.servers.clone(),
        ..World::with(world.store.clone(), Vec::new())
    };
    renamed.source.sees(fleet(1..4));
    let mut setup = renamed.setup();
    setup.sources[0].was = Some(ident("pve"));
    engine.reconfigure(setup.clone()).await.unwrap();
    engine.apply(None).await.unwrap();
    assert_eq!(world.server().writes(), writes);
    let status = engine.status();
    assert!(status.sources.iter().any(|source| source.name == ident("lab") && source.workloads == 3));
    assert!(status.sources.iter().all(|source| source.name != ident("pve")));
    assert!(engine.explain(&name("w1.example.com"), None).await[0].contains("because of lab/w1"));
    engine.close().await;
    let engine = renamed.start_with(setup).await;
    renamed.source.says(View::Complete, fleet(1..3), &["w3"]);
    engine.apply(None).await.unwrap();
    assert!(!world.server().has("w3.example.com", "A 10.0.0.3"), "it is that source's to take away");
    assert!(world.server().has("w1.example.com", "A 10.0.0.1"));
    engine.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_loses_nothing() {
    let world = World::new();
    world.source.sees(fleet(1..4));
    let engine = world.start().await;
    let unreachable = ProviderError::Unreachable { server: "fake".into(), reason: "down".into() };
    *world.server().fails.lock().unwrap() = Some(unreachable);
    for refused in [
        engine.adopt(at("w1.example.com"), None, false, "ann").await.map(drop),
        engine.recover("green".parse().unwrap(), None, false, "ann").await.map(drop),
        engine.clean(&Cleaning::Provider(ident("lan")), false, None, "ann").await.map(drop),
        engine.rollback(0, None, false, None, "ann").await.map(drop),
    ] {
        assert!(matches!(refused, Err(EngineError::Server { .. })), "{refused:?}");
    }
    assert!(engine.status().pauses.is_empty());
    *world.server().fails.lock().unwrap() = None;
    engine.apply(None).await.unwrap();
    assert!(engine.plans()[0].1.is_empty());
    assert_eq!(engine.status().providers[0].owned, 6);
    engine.close().await;
}
