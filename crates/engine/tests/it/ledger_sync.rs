//! Sightings and claims that the ledger gets from the sources.

use netstead_engine::Engine;
use netstead_ledger::{Caller, Command, Freshness, Ledger, LedgerError, Options, Reply};
use netstead_model::{ClaimRef, ClaimRequest, Interface, PoolSpec, Range, View, Want, Workload};

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
