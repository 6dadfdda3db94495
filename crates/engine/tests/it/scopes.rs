//! Sources with scopes: what ends by their word, what is stored, and what they hear.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use netstead_engine::{Cleaning, Engine, EngineError, Setup, SourceSetup};
use netstead_ledger::{Caller, Command, Freshness, Ledger};
use netstead_model::{
    Clock as _, Content, Ident, Interface, Key, ManualClock, NameState, PoolSpec, Report, Scope, ScopeReport,
    Source, SourceFlags, View, Workload, WorkloadNames, WrittenState,
};
use netstead_plan::{Digest, Standing};
use netstead_store::{Commit, Store, Write};

use crate::world::{World, fleet, ident, name, soon, vm};

/// A source with scopes that says what a test wants.
#[derive(Debug)]
struct Platform {
    name: Ident,
    clock: ManualClock,
    says: Mutex<Vec<(Scope, ScopeReport)>>,
    remembered: Mutex<Vec<Vec<Key>>>,
    heard: Mutex<Vec<WorkloadNames>>,
}

impl Platform {
    fn new(world: &World) -> Arc<Self> {
        let (says, remembered, heard) = Default::default();
        Arc::new(Self { name: ident("pve"), clock: world.clock.clone(), says, remembered, heard })
    }

    fn says(&self, scopes: impl IntoIterator<Item = (Scope, ScopeReport)>) {
        *self.says.lock().unwrap() = scopes.into_iter().collect();
    }

    fn setup(self: &Arc<Self>, world: &World) -> Setup {
        let sources = vec![SourceSetup::new(self.clone(), Digest::of(["pve"]))];
        Setup { sources, ..world.setup() }
    }

    async fn start(self: &Arc<Self>, world: &World) -> Engine {
        let engine = world.start_with(self.setup(world)).await;
        engine.apply(None).await.unwrap();
        engine
    }
}

#[async_trait]
impl Source for Platform {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "fake"
    }

    fn flags(&self) -> SourceFlags {
        SourceFlags { hears_names: true, ..SourceFlags::default() }
    }

    async fn report(&self) -> Report {
        Report::of(self.name.clone(), self.clock.wall(), self.says.lock().unwrap().clone())
    }

    fn remember(&self, reported: Vec<Key>) {
        self.remembered.lock().unwrap().push(reported);
    }

    async fn hear_names(&self, names: Vec<WorkloadNames>) {
        self.heard.lock().unwrap().extend(names);
    }

    async fn changed(&self) {
        std::future::pending::<()>().await;
    }
}

fn scope(name: &str) -> Scope {
    name.parse().unwrap()
}

fn shows(name: &str, workloads: impl IntoIterator<Item = Workload>) -> (Scope, ScopeReport) {
    (scope(name), ScopeReport::all(View::Complete, workloads))
}

fn fails(name: &str) -> (Scope, ScopeReport) {
    (scope(name), ScopeReport::failed("forbidden"))
}

/// A container with an address in the pool `lan`, and a claim for it.
fn claims(id: &str, address: &str) -> Workload {
    let addresses = vec![address.parse().unwrap()];
    let interfaces = vec![Interface { addresses, ..Interface::default() }];
    Workload { interfaces, pool: Some(ident("lan")), ..vm(id, address) }
}

async fn in_ledger(ledger: &Ledger) -> (Vec<String>, Vec<String>) {
    let look = |book: &netstead_ledger::Book| {
        let claims = book.claims(&netstead_ledger::ClaimFilter::default(), None, 100);
        let mut seen: Vec<String> = book.observations().map(|one| one.address.to_string()).collect();
        seen.sort();
        (claims.iter().map(|view| view.claim.key.to_string()).collect(), seen)
    };
    ledger.read(Freshness::Stale, look).await.unwrap().value
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn observations_and_claims_end_by_the_word_of_their_own_scope() {
    let mut world = World::new();
    let options = netstead_ledger::Options::default();
    let ledger = Ledger::open(world.store.clone(), world.clock.shared(), options).await.unwrap();
    let spec: PoolSpec = serde_json::from_value(serde_json::json!({
        "name": "lan", "family": "ipv4", "network": "10.0.0.0/24", "ranges": ["10.0.0.1-10.0.0.9"],
    }))
    .unwrap();
    let create = Command::CreatePool(Box::new(spec));
    ledger.submit(Caller::new("admin"), create, Duration::from_secs(10)).await.unwrap();
    world.options.ledger = Some(ledger.clone());
    let platform = Platform::new(&world);
    let (a, b) = (claims("a", "10.0.0.1"), claims("b", "10.0.0.2"));
    platform.says([shows("one", [a.clone()]), shows("two", [b.clone()])]);
    let engine = platform.start(&world).await;
    let both = (texts(&["pve/a", "pve/b"]), texts(&["10.0.0.1", "10.0.0.2"]));
    assert_eq!(in_ledger(&ledger).await, both);
    // One scope says that its workload is gone; the other cannot be seen.
    platform.says([shows("one", []), fails("two")]);
    world.minutes(&engine, 3).await;
    assert_eq!(in_ledger(&ledger).await, both, "grace");
    world.minutes(&engine, 5).await;
    assert_eq!(in_ledger(&ledger).await, (texts(&["pve/b"]), texts(&["10.0.0.2"])));
    world.minutes(&engine, 30).await;
    assert_eq!(in_ledger(&ledger).await.0, ["pve/b"], "nothing of a scope that cannot be seen ends");
    platform.says([shows("one", []), shows("two", [])]);
    world.minutes(&engine, 8).await;
    assert_eq!(in_ledger(&ledger).await, (Vec::new(), Vec::new()));
    engine.close().await;
}

#[tokio::test]
async fn the_status_lists_scopes_and_one_is_cleaned_by_hand() {
    let world = World::new();
    let platform = Platform::new(&world);
    platform.says([shows("one", fleet(1..3)), shows("two", fleet(3..5))]);
    let engine = platform.start(&world).await;
    let clean = |name: &str| Cleaning::Scope(ident("pve"), scope(name));
    let refused = engine.clean(&clean("two"), true, None, "ann").await.unwrap_err();
    assert!(refused.to_string().contains("is looked at"), "{refused}");
    let unknown = engine.clean(&clean("three"), true, None, "ann").await.unwrap_err();
    assert!(unknown.to_string().contains("its scopes: one, two"), "{unknown}");
    let nobody = Cleaning::Scope(ident("other"), scope("one"));
    let nobody = engine.clean(&nobody, true, None, "ann").await;
    assert!(matches!(nobody, Err(EngineError::NoSuchSource { .. })), "{nobody:?}");
    platform.says([shows("one", fleet(1..3)), fails("two")]);
    world.minutes(&engine, 2).await;
    let status = engine.status().sources.into_iter().find(|source| source.name == ident("pve")).unwrap();
    let shown: Vec<String> = status
        .scopes
        .iter()
        .map(|scope| format!("{} {:?} {} {:?}", scope.name, scope.view, scope.workloads, scope.standing))
        .collect();
    assert_eq!(shown, ["one Complete 2 Listed", r#"two Failed { reason: "forbidden" } 2 Listed"#]);
    assert_eq!(status.scopes[1].complete_age, Some(Duration::from_mins(2)));
    assert_eq!(status.view, View::Failed { reason: "two: forbidden".into() });
    let seen = engine.clean(&clean("two"), true, None, "ann").await.unwrap();
    assert_eq!(seen.plans[0].steps(), 4, "two names and their PTR records");
    let done = engine.clean(&clean("two"), false, Some(&seen.hash), "ann").await.unwrap();
    assert_eq!((done.reports[0].applied, done.paused), (4, vec![ident("lan")]));
    assert!(world.server().has("w1.example.com", "A 10.0.0.1"));
    assert!(!world.server().has("w3.example.com", "A 10.0.0.3"));
    engine.close().await;
}

async fn stored(store: &dyn Store, key: &str) -> serde_json::Value {
    let entry = store.get(key.as_bytes()).await.unwrap().unwrap();
    serde_json::from_slice(&entry.value[1..]).unwrap()
}

async fn set_format(store: &dyn Store, format: &str) {
    let writes = vec![Write::Put(b"meta/format".to_vec(), format.as_bytes().to_vec())];
    store.commit(Commit { conditions: Vec::new(), writes }).await.unwrap();
}

#[tokio::test]
async fn scopes_are_stored_once_every_member_reads_them_and_survive_a_restart() {
    let world = World::new();
    let store = &*world.store;
    set_format(store, "1").await;
    let platform = Platform::new(&world);
    platform.says([shows("one", fleet(1..3)), fails("two")]);
    let engine = platform.start(&world).await;
    let source = stored(store, "engine/source/pve").await;
    assert_eq!(source.get("scopes"), None, "a member of version 0.1.0 may lead next");
    assert_eq!(source["view"], serde_json::json!({ "failed": { "reason": "two: forbidden" } }));
    assert_eq!(stored(store, "engine/workload/pve/w1").await.get("scope"), None);
    set_format(store, "2").await;
    world.minutes(&engine, 1).await;
    let source = stored(store, "engine/source/pve").await;
    assert_eq!(source["scopes"]["two"]["view"], serde_json::json!({ "failed": { "reason": "forbidden" } }));
    assert_eq!(stored(store, "engine/workload/pve/w1").await["scope"], "one");
    // The platform ends a scope while no node leads; a new leader knows what belonged to it.
    engine.close().await;
    platform.says([shows("two", fleet(3..4))]);
    let engine = platform.start(&world).await;
    world.minutes(&engine, 3).await;
    assert!(world.server().has("w1.example.com", "A 10.0.0.1"), "grace begins with this leader");
    let scopes = engine.status().sources.into_iter().find(|one| one.name == ident("pve")).unwrap().scopes;
    assert!(matches!(scopes[0].standing, Standing::Retired { .. }), "{scopes:?}");
    world.minutes(&engine, 4).await;
    assert!(!world.server().has("w1.example.com", "A 10.0.0.1"));
    assert!(world.server().has("w3.example.com", "A 10.0.0.3"));
    engine.close().await;
}

#[tokio::test]
async fn an_upgrade_with_several_scopes_and_a_kill_in_the_middle_removes_nothing() {
    let world = World::new();
    let store = &*world.store;
    set_format(store, "1").await;
    let platform = Platform::new(&world);
    platform.says([shows("one", fleet(1..4)), shows("two", fleet(4..7)), shows("three", fleet(7..10))]);
    let engine = platform.start(&world).await;
    // 1. The last member is upgraded, and the leader dies before it wrote a scope. 2. The next one cannot see scope `two`.
    set_format(store, "2").await;
    drop(engine);
    platform.says([shows("one", fleet(1..4)), fails("two"), shows("three", fleet(7..10))]);
    let engine = platform.start(&world).await;
    world.minutes(&engine, 20).await;
    let there = |numbers: std::ops::Range<u32>| {
        numbers.filter(|n| world.server().has(&format!("w{n}.example.com"), &format!("A 10.0.0.{n}"))).count()
    };
    assert_eq!(there(1..10), 9);
    assert_eq!(stored(store, "engine/workload/pve/w1").await["scope"], "one");
    assert_eq!(stored(store, "engine/workload/pve/w4").await.get("scope"), None, "no scope has shown it yet");
    // 3. It dies too, when some workloads have a scope and others have none. 4. Only its own scope ends a workload.
    drop(engine);
    platform.says([shows("one", fleet(2..4)), fails("two"), shows("three", fleet(7..10))]);
    let engine = platform.start(&world).await;
    world.minutes(&engine, 20).await;
    assert_eq!((there(1..2), there(2..10)), (0, 8));
    // 5. The scope is seen again, without one of its workloads.
    platform.says([shows("one", fleet(2..4)), shows("two", fleet(5..7)), shows("three", fleet(7..10))]);
    world.minutes(&engine, 20).await;
    assert_eq!((there(4..5), there(5..10)), (0, 5));
    engine.close().await;
}

#[tokio::test]
async fn a_source_hears_what_became_of_its_names() {
    let world = World::new();
    let platform = Platform::new(&world);
    let other = Workload { wishes: vm("x", "10.0.0.9").wishes, ..vm("a", "10.0.0.1") };
    platform.says([shows("one", [vm("web", "10.0.0.1"), other])]);
    let engine = platform.start(&world).await;
    let of = |id: &str| {
        let heard = platform.heard.lock().unwrap().clone();
        heard.into_iter().filter(|one| one.id == *id).map(|one| one.names).collect::<Vec<_>>()
    };
    let state = |at: &str, state| NameState {
        name: name(&format!("{at}.example.com")),
        provider: Some(ident("lan")),
        state,
        why: None,
    };
    let written = || vec![state("web", WrittenState::Written)];
    soon(|| of("web").last() == Some(&written())).await;
    assert!(platform.remembered.lock().unwrap().len() == 1, "it was told once what is known of it");
    // A name that is refused is told of after a moment.
    world.minutes(&engine, 1).await;
    soon(|| !of("a").is_empty()).await;
    // Nothing changes, so nothing is told.
    let told = platform.heard.lock().unwrap().len();
    world.minutes(&engine, 2).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(platform.heard.lock().unwrap().len(), told);
    let renamed = Workload { wishes: vm("app", "10.0.0.1").wishes, ..vm("web", "10.0.0.1") };
    platform.says([shows("one", [renamed, vm("a", "10.0.0.2")])]);
    world.minutes(&engine, 8).await;
    soon(|| of("web").last() == Some(&vec![state("app", WrittenState::Written)])).await;
    engine.close().await;
}

#[tokio::test]
async fn a_name_for_another_provider_is_not_refused_and_one_without_an_address_waits() {
    let world = World::new();
    let platform = Platform::new(&world);
    let mut elsewhere = vm("far", "10.0.0.1");
    elsewhere.wishes[0].name = name("far.example.net");
    let mut waits = vm("waits", "10.0.0.2");
    waits.wishes[0].content = Content::Addresses(Vec::new());
    platform.says([shows("one", [elsewhere, waits, vm("web", "10.0.0.3")])]);
    let engine = platform.start(&world).await;
    let of = |id: &str| {
        let heard = platform.heard.lock().unwrap().clone();
        heard.into_iter().rfind(|one| one.id == *id).map(|one| one.names)
    };
    // The others are told of a moment after it was seen that they are not written.
    soon(|| of("web").is_some()).await;
    world.minutes(&engine, 1).await;
    soon(|| of("far").is_some() && of("waits").is_some()).await;
    assert_eq!(of("far"), Some(Vec::new()), "no provider answers for it");
    let waiting = NameState {
        name: name("waits.example.com"),
        provider: Some(ident("lan")),
        state: WrittenState::Pending,
        why: Some("it has no address of a type this provider writes".to_owned()),
    };
    assert_eq!(of("waits"), Some(vec![waiting]));
    engine.close().await;
}
