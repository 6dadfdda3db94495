//! Sightings and claims that the ledger gets from the sources.

use netstead_engine::Engine;
use netstead_ledger::{
    Backends, Caller, Command, DrawOptions, DrawWorker, EventQuery, Freshness, Ledger, LedgerBackend,
    LedgerError, Options, Reply, Role,
};
use netstead_model::{
    ClaimRef, ClaimRequest, Draw, EventKind, Interface, PoolBackend, PoolSpec, Range, Upstream, View, Want,
    Workload,
};
use netstead_store::MemoryStore;
use tokio_util::sync::CancellationToken;

use crate::world::{World, ident, vm};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// A world whose engine tells a ledger with one pool, 10.0.0.1 to 10.0.0.9.
async fn world() -> (World, Ledger) {
    let mut world = World::new();
    let ledger = Ledger::open(world.store.clone(), world.clock.shared(), Options::default()).await.unwrap();
    let spec: PoolSpec = serde_json::from_value(serde_json::json!({
        "name": "lan", "family": "ipv4", "network": "10.0.0.0/24", "ranges": ["10.0.0.1-10.0.0.9"],
    }))
    .unwrap();
    submit(&ledger, "admin", Command::CreatePool(Box::new(spec))).await.unwrap();
    world.options.ledger = Some(ledger.clone());
    (world, ledger)
}

async fn submit(ledger: &Ledger, who: &str, command: Command) -> Result<Reply, LedgerError> {
    ledger.submit(Caller::new(who), command, PATIENCE).await.map(|done| done.reply)
}

fn wants(key: &str, want: Want) -> Command {
    let request = ClaimRequest { want, ..ClaimRequest::any(ident("lan"), key.parse().unwrap()) };
    Command::Claim(Box::new(request))
}

/// A container that has this address.
fn has(id: &str, address: &str, pool: Option<&str>) -> Workload {
    let addresses = vec![address.parse().unwrap()];
    let interfaces = vec![Interface { addresses, ..Interface::default() }];
    Workload { interfaces, kind: "container".into(), pool: pool.map(ident), ..vm(id, address) }
}

/// `key address owner` of every claim.
async fn claims(ledger: &Ledger) -> Vec<String> {
    let look =
        |book: &netstead_ledger::Book| book.claims(&netstead_ledger::ClaimFilter::default(), None, 100);
    let found = ledger.read(Freshness::Stale, look).await.unwrap().value;
    found
        .iter()
        .map(|view| {
            let claim = &view.claim;
            format!("{} {} {}", claim.key, claim.address, claim.owner)
        })
        .collect()
}

async fn observed(ledger: &Ledger) -> Vec<String> {
    let look = |book: &netstead_ledger::Book| {
        book.observations()
            .map(|seen| format!("{} {}", seen.address, seen.note.as_deref().unwrap_or("")))
            .collect::<Vec<_>>()
    };
    ledger.read(Freshness::Stale, look).await.unwrap().value
}

fn why_not(engine: &Engine, id: &str) -> Vec<String> {
    let workloads = engine.workloads();
    workloads.iter().find(|one| one.workload.id == *id).unwrap().workload.why_not.clone()
}

#[tokio::test]
async fn an_address_that_was_seen_is_not_handed_out_until_it_is_gone_for_good() {
    let (world, ledger) = world().await;
    let mut local = has("b", "10.0.0.2", None);
    local.interfaces[0].local = true;
    world.source.sees([has("a", "10.0.0.1", None), local.clone(), has("l", "127.0.0.1", None)]);
    let engine = world.start().await;
    assert_eq!(observed(&ledger).await, ["10.0.0.1 container a of pve"]);
    let Ok(Reply::Claimed { claim, .. }) = submit(&ledger, "admin", wants("x", Want::Any)).await else {
        panic!("there is room")
    };
    assert_eq!(claim.address.to_string(), "10.0.0.2", "what its host alone has is free");

    world.source.says(View::Failed { reason: "away".into() }, [], &[]);
    world.minutes(&engine, 30).await;
    world.source.says(View::Partial { reason: "half".into() }, [local.clone()], &[]);
    world.minutes(&engine, 30).await;
    assert_eq!(observed(&ledger).await.len(), 1, "a source that does not show all ends nothing");
    world.source.sees([local]);
    world.minutes(&engine, 3).await;
    assert_eq!(observed(&ledger).await.len(), 1, "grace");
    world.minutes(&engine, 5).await;
    assert!(observed(&ledger).await.is_empty());
    engine.close().await;
}

#[tokio::test]
async fn a_workload_that_names_a_pool_holds_its_address_there_until_it_is_gone_for_good() {
    let (world, ledger) = world().await;
    world.source.sees([has("web", "10.0.0.5", Some("lan"))]);
    let engine = world.start().await;
    let mine = ["pve/web 10.0.0.5 source/pve"];
    assert_eq!(claims(&ledger).await, mine);
    world.source.says(View::Failed { reason: "away".into() }, [], &[]);
    world.minutes(&engine, 30).await;
    world.source.sees([]);
    world.minutes(&engine, 2).await;
    assert_eq!(claims(&ledger).await, mine, "grace");
    // It is back, with another address: the old one may still be in somebody's cache.
    world.source.sees([has("web", "10.0.0.6", Some("lan"))]);
    world.minutes(&engine, 1).await;
    assert_eq!(claims(&ledger).await, [mine[0], "pve/web/10.0.0.6 10.0.0.6 source/pve"]);
    world.minutes(&engine, 8).await;
    assert_eq!(claims(&ledger).await, ["pve/web/10.0.0.6 10.0.0.6 source/pve"]);
    world.source.sees([]);
    world.minutes(&engine, 8).await;
    assert!(claims(&ledger).await.is_empty());
    // It rests, and can be had again after that.
    world.source.sees([has("web", "10.0.0.6", Some("lan"))]);
    world.minutes(&engine, 1).await;
    assert_eq!(claims(&ledger).await, ["pve/web 10.0.0.6 source/pve"]);
    engine.close().await;
}

#[tokio::test]
async fn what_somebody_else_holds_stays_theirs_and_the_workload_says_so() {
    let (world, ledger) = world().await;
    let exact = Want::Exact("10.0.0.5".parse().unwrap());
    submit(&ledger, "ann", wants("printer", exact)).await.unwrap();
    let range: Range = "10.0.0.7".parse().unwrap();
    let (pool, key) = (ident("lan"), "later".parse().unwrap());
    submit(&ledger, "ann", Command::Reserve { pool, key, range, description: None }).await.unwrap();
    world.source.sees([
        has("far", "192.0.2.1", Some("lan")),
        has("later", "10.0.0.7", Some("lan")),
        has("lost", "10.0.0.6", Some("attic")),
        has("out", "10.0.0.200", Some("lan")),
        has("web", "10.0.0.5", Some("lan")),
    ]);
    let engine = world.start().await;
    assert_eq!(claims(&ledger).await, ["printer 10.0.0.5 ann"]);
    for (id, why) in [
        ("far", "netstead.pool: none of its addresses lies in pool `lan`"),
        ("later", "netstead.pool: 10.0.0.7 is reserved for `later` of `ann` in pool `lan`"),
        ("lost", "netstead.pool: there is no pool `attic`"),
        ("out", "netstead.pool: 10.0.0.200 is not in pool `lan`"),
        ("web", "netstead.pool: 10.0.0.5 is held by `printer` of `ann` in pool `lan`"),
    ] {
        assert_eq!(why_not(&engine, id), [why]);
    }
    let said = engine.explain(&"web.example.com".parse().unwrap(), None).await;
    assert!(said.iter().any(|line| line.contains("is held by `printer` of `ann`")), "{said:?}");
    // Once it is free, it is the workload's.
    let target = ClaimRef { pool: ident("lan"), key: "printer".parse().unwrap(), id: None };
    submit(&ledger, "ann", Command::Release(target)).await.unwrap();
    world.minutes(&engine, 1).await;
    assert_eq!(claims(&ledger).await, ["pve/web 10.0.0.5 source/pve"]);
    assert!(why_not(&engine, "web").is_empty());
    engine.close().await;
}

#[tokio::test]
async fn a_claim_follows_its_address_to_another_name_and_its_source_to_another() {
    let (world, ledger) = world().await;
    world.source.sees([has("web", "10.0.0.5", Some("lan"))]);
    let engine = world.start().await;
    world.source.sees([has("app", "10.0.0.5", Some("lan"))]);
    world.minutes(&engine, 1).await;
    assert_eq!(claims(&ledger).await, ["pve/app 10.0.0.5 source/pve"]);
    engine.close().await;

    let moved = world.called("lab");
    moved.sees([has("app", "10.0.0.5", Some("lan"))]);
    let mut setup = world.setup();
    setup.sources[0] = netstead_engine::SourceSetup::new(moved.clone(), netstead_plan::Digest::of(["pve"]));
    setup.sources[0].was = Some(ident("pve"));
    let engine = world.start_with(setup).await;
    engine.apply(None).await.unwrap();
    assert_eq!(claims(&ledger).await, ["lab/app 10.0.0.5 source/lab"]);
    assert_eq!(observed(&ledger).await.len(), 1);
    engine.close().await;
}

#[tokio::test]
async fn a_workload_without_a_name_is_called_by_its_own_in_the_pools_domain() {
    let (world, ledger) = world().await;
    let plain = Workload { wishes: Vec::new(), ..has("web", "10.0.0.5", Some("lan")) };
    world.source.sees([plain, has("named", "10.0.0.6", Some("lan"))]);
    let engine = world.start().await;
    let look = |book: &netstead_ledger::Book| {
        let of = |key: &str| {
            let claim = book.claim(&ident("lan"), &key.parse().unwrap()).unwrap().claim;
            let names: Vec<String> = claim.details().hostnames.iter().map(ToString::to_string).collect();
            (names, claim.details().description.clone())
        };
        (of("pve/web"), of("pve/named"))
    };
    let (web, named) = ledger.read(Freshness::Stale, look).await.unwrap().value;
    assert_eq!(web, (vec!["web".to_owned()], Some("container web of pve".to_owned())));
    assert!(named.0.is_empty(), "its labels say what it is called");
    engine.close().await;
}

#[tokio::test]
async fn nothing_is_told_when_nothing_shall_be_written() {
    let (mut world, ledger) = world().await;
    world.options.dry_run = true;
    world.source.sees([has("web", "10.0.0.5", Some("lan"))]);
    let engine = world.start().await;
    assert!(claims(&ledger).await.is_empty() && observed(&ledger).await.is_empty());
    engine.close().await;
}

/// Makes `branch`, 10.9.0.1 to 10.9.0.9, whose addresses come from the backend `office`.
async fn with_backend(ledger: &Ledger) {
    let mut spec: PoolSpec = serde_json::from_value(serde_json::json!({
        "name": "branch", "family": "ipv4", "ranges": ["10.9.0.1-10.9.0.9"],
    }))
    .unwrap();
    let (owner, installations) = ("own".to_owned(), Vec::new());
    let upstream = Upstream { backend: ident("office"), pool: "branch-7".to_owned(), owner, installations };
    spec.upstream = Some(Box::new(upstream));
    submit(ledger, "admin", Command::CreatePool(Box::new(spec))).await.unwrap();
}

/// `key` and the wanted address of every claim that waits for a backend.
async fn waiting(ledger: &Ledger) -> Vec<String> {
    let look = |book: &netstead_ledger::Book| {
        let live = book.waitings().filter(|one| one.draw.as_deref().is_some_and(Draw::is_live));
        let wanted = |draw: &Draw| match draw.want {
            Want::Exact(address) => address.to_string(),
            other => format!("{other:?}"),
        };
        live.map(|one| format!("{} {}", one.key, wanted(one.draw.as_deref().unwrap()))).collect::<Vec<_>>()
    };
    ledger.read(Freshness::Stale, look).await.unwrap().value
}

/// A head office with the pool of `branch`, and the worker that asks it.
async fn office(world: &World, ledger: &Ledger) -> (Ledger, CancellationToken) {
    let store = std::sync::Arc::new(MemoryStore::new());
    let office = Ledger::open(store, world.clock.shared(), Options::default()).await.unwrap();
    let spec: PoolSpec = serde_json::from_value(serde_json::json!({
        "name": "branch-7", "family": "ipv4", "ranges": ["10.9.0.1-10.9.0.9"],
    }))
    .unwrap();
    submit(&office, "admin", Command::CreatePool(Box::new(spec))).await.unwrap();
    let caller = Caller::new("branch");
    let backend = LedgerBackend { ledger: office.clone(), caller, patience: PATIENCE };
    let backends = Backends::default();
    let one: std::sync::Arc<dyn PoolBackend> = std::sync::Arc::new(backend);
    backends.configure([(ident("office"), one)].into());
    let Role::Leading { epoch } = *ledger.role().borrow() else { panic!("it leads") };
    let options = DrawOptions::default();
    let (stop, worker) =
        (CancellationToken::new(), DrawWorker { ledger: ledger.clone(), epoch, backends, options });
    let ends = stop.clone();
    tokio::spawn(async move { worker.run(&ends).await });
    (office, stop)
}

/// With a time of its own: it passes only while all tasks wait.
#[tokio::test(start_paused = true)]
async fn no_source_waits_for_a_backend_that_is_away() {
    let (world, ledger) = world().await;
    with_backend(&ledger).await;
    world.source.sees((1..=6).map(|n| has(&format!("c{n}"), &format!("10.9.0.{n}"), Some("branch"))));
    let other = world.called("zoo");
    other.sees([has("lion", "10.0.0.1", None)]);
    let mut setup = world.setup();
    setup.sources.push(netstead_engine::SourceSetup::new(other, netstead_plan::Digest::of(["zoo"])));
    let started = async {
        let engine = world.start_with(setup).await;
        engine.apply(None).await.unwrap();
        engine
    };
    let engine = tokio::time::timeout(std::time::Duration::from_secs(5), started).await;
    let engine = engine.expect("the pass does not wait for the backend");
    assert_eq!(waiting(&ledger).await.len(), 6);
    assert!(observed(&ledger).await.contains(&"10.0.0.1 container lion of zoo".to_owned()));
    let told = ["netstead.pool: 10.9.0.1 waits for the backend of pool `branch`"];
    assert_eq!(why_not(&engine, "c1"), told);
    world.minutes(&engine, 2).await;
    assert_eq!(why_not(&engine, "c1"), told, "also when it is looked at again");
    assert_eq!(waiting(&ledger).await.len(), 6);
    engine.close().await;
}

#[tokio::test]
async fn a_claim_that_waits_for_a_backend_follows_its_workload() {
    let (world, ledger) = world().await;
    with_backend(&ledger).await;
    world.source.sees([has("web", "10.9.0.5", Some("branch"))]);
    let engine = world.start().await;
    assert_eq!(waiting(&ledger).await, ["pve/web 10.9.0.5"]);
    // 1. It has another address. 2. It is gone for good.
    world.source.sees([has("web", "10.9.0.6", Some("branch"))]);
    world.minutes(&engine, 8).await;
    assert_eq!(waiting(&ledger).await, ["pve/web/10.9.0.6 10.9.0.6"]);
    world.source.sees([]);
    world.minutes(&engine, 8).await;
    assert_eq!(waiting(&ledger).await, Vec::<String>::new());
    engine.close().await;
}

#[tokio::test]
async fn a_workload_gets_its_address_from_the_backend_or_says_why_not() {
    let (world, ledger) = world().await;
    with_backend(&ledger).await;
    let (office, stop) = office(&world, &ledger).await;
    let taken = ClaimRequest {
        want: Want::Exact("10.9.0.6".parse().unwrap()),
        ..ClaimRequest::any(ident("branch-7"), "printer".parse().unwrap())
    };
    submit(&office, "head", Command::Claim(Box::new(taken))).await.unwrap();
    world.source.sees([has("app", "10.9.0.6", Some("branch")), has("web", "10.9.0.5", Some("branch"))]);
    let engine = world.start().await;
    let refused = || why_not(&engine, "app").iter().any(|why| why.contains("refuses 10.9.0.6: "));
    let mut passes = 0;
    while !refused() || !why_not(&engine, "web").is_empty() {
        passes += 1;
        assert!(passes < 1000, "{:?} {:?}", why_not(&engine, "app"), why_not(&engine, "web"));
        engine.apply(None).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(claims(&ledger).await, ["pve/web 10.9.0.5 source/pve"]);
    world.minutes(&engine, 4).await;
    let query = EventQuery { what: Some(EventKind::Waiting), limit: 100, ..EventQuery::default() };
    let asked = ledger.events(&query).await.unwrap().events.len();
    assert_eq!(asked, 2, "one is asked for once, and the other not again soon");
    stop.cancel();
    engine.close().await;
}
