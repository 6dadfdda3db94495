//! A refused value is not written, and its workload shows the reason. A value written before the rule stays.

use netstead_engine::{Engine, Setup, SourceSetup};
use netstead_model::{Content, Wish, Workload};
use netstead_plan::{Digest, SourceRules};

use crate::world::{World, data, name, vm};

/// A container that asks for all it likes.
fn greedy() -> Workload {
    let mut workload = vm("app", "10.0.0.1");
    let own = workload.wishes[0].clone();
    let at = |at: &str| Wish { name: name(at), ..own.clone() };
    let ns =
        Content::Records { kind: netstead_model::RecordType::Ns, values: vec![data("NS ns.evil.example.")] };
    workload.wishes.extend([at("example.com"), at("*.example.com"), at("_netstead-blue.app.example.com")]);
    workload.wishes.push(Wish { content: ns, ..at("sub.example.com") });
    workload
}

fn limited(world: &World) -> Setup {
    let mut setup = world.setup();
    setup.sources[0].rules = SourceRules::for_labels();
    setup
}

fn why_not(engine: &Engine) -> Vec<String> {
    engine.workloads().into_iter().flat_map(|view| view.workload.why_not.clone()).collect()
}

#[tokio::test]
async fn what_is_refused_is_not_written_and_told_beside_the_workload() {
    let world = World::new();
    world.source.sees([greedy()]);
    let engine = world.start_with(limited(&world)).await;
    engine.apply(None).await.unwrap();
    let names: Vec<String> = engine.records().iter().map(|record| record.name.to_string()).collect();
    assert_eq!(names, ["1.0.0.10.in-addr.arpa", "app.example.com"]);
    let told = [
        "*.example.com: a wildcard needs `wildcard = true` in [source.pve]",
        "sub.example.com: labels never write NS records; `netstead record set` does",
        "_netstead-blue.app.example.com: that is the name of an ownership mark, which only Netstead itself writes",
        "example.com: the top of a zone or domain needs `apex = true` in [source.pve]",
    ];
    assert_eq!(why_not(&engine), told);
    assert_eq!(
        engine.explain(&name("sub.example.com"), None).await,
        ["lan: pve/app gave no record: labels never write NS records; `netstead record set` does."]
    );
    // A rule needs no new look at the source.
    let mut setup = limited(&world);
    (setup.sources[0].rules.apex, setup.sources[0].rules.wildcard) = (true, true);
    engine.reconfigure(setup).await.unwrap();
    engine.apply(None).await.unwrap();
    assert!(
        world.server().has("example.com", "A 10.0.0.1") && world.server().has("*.example.com", "A 10.0.0.1")
    );
    assert_eq!(why_not(&engine), told[1..3]);
    engine.close().await;
}

#[tokio::test]
async fn what_an_older_version_wrote_stays_until_a_person_lets_it_go() {
    let world = World::new();
    world.source.sees([greedy()]);
    let engine = world.start().await;
    assert!(world.server().has("*.example.com", "A 10.0.0.1"));
    engine.close().await;
    let engine = world.start_with(limited(&world)).await;
    world.minutes(&engine, 20).await;
    for (at, value) in [
        ("*.example.com", "A 10.0.0.1"),
        ("example.com", "A 10.0.0.1"),
        ("sub.example.com", "NS ns.evil.example."),
    ] {
        assert!(world.server().has(at, value), "{at} {value}");
    }
    let said = engine.explain(&name("*.example.com"), None).await;
    assert_eq!(
        said,
        [
            "lan: A 10.0.0.1 is ours there.",
            "lan: pve/app gave no record: a wildcard needs `wildcard = true` in [source.pve].",
            "lan: parked because what asks for them may not have them any more.",
        ]
    );
    let parked = engine.status().providers[0].parked.clone().unwrap();
    assert_eq!(parked.count, 3);
    engine.approve(&parked.hash, "ann").await.unwrap();
    assert!(!world.server().has("*.example.com", "A 10.0.0.1"));
    assert!(!world.server().has("sub.example.com", "NS ns.evil.example."));
    assert!(world.server().has("app.example.com", "A 10.0.0.1"));
    engine.close().await;
}

#[tokio::test]
async fn too_many_names_of_one_workload_are_told_in_one_sentence() {
    let world = World::new();
    let mut many = vm("app", "10.0.0.1");
    let own = many.wishes.remove(0);
    many.wishes =
        (0..300).map(|n| Wish { name: name(&format!("n{n:03}.example.com")), ..own.clone() }).collect();
    world.source.sees([many]);
    let engine = world.start_with(limited(&world)).await;
    engine.apply(None).await.unwrap();
    assert_eq!(
        why_not(&engine),
        [
            "n256.example.com and 15 more: it asks for 300 names, and labels give at most 256",
            "it asks for 300 names, and labels give at most 256: 28 more are refused",
        ]
    );
    for (at, why) in
        [("n256", "labels give at most 256."), ("n299", "labels give at most 256: 28 more are refused.")]
    {
        let said = engine.explain(&name(&format!("{at}.example.com")), None).await;
        let expected = format!("lan: pve/app gave no record: it asks for 300 names, and {why}");
        assert_eq!(said, [expected]);
    }
    engine.close().await;
}

#[tokio::test]
async fn a_claim_that_is_blocked_says_so_everywhere() {
    let world = World::new();
    world.source.sees([vm("web", "10.0.0.1")]);
    let claims = world.called("ledger");
    let claim = Workload { kind: "claim".into(), owner: Some("ci".into()), ..vm("web", "10.0.0.2") };
    let claim = Workload { id: "lan/web".parse().unwrap(), source: "ledger".parse().unwrap(), ..claim };
    let mut setup = world.setup();
    setup.sources.push(SourceSetup::new(claims.clone(), Digest::of(["ledger"])));
    let engine = world.start_with(setup).await;
    engine.apply(None).await.unwrap();
    claims.sees([claim]);
    world.minutes(&engine, 1).await;
    assert!(world.server().has("web.example.com", "A 10.0.0.1"));
    assert!(!world.server().has("web.example.com", "A 10.0.0.2"));
    assert_eq!(
        engine.explain(&name("web.example.com"), None).await,
        [
            "lan: A 10.0.0.1 because of pve/web: label.",
            "lan: A 10.0.0.1 is ours there.",
            "lan: ledger/lan/web gave no record: pve/web has the name, and a claim does not join it.",
            "lan: blocked: pve/web has the name, and ledger/lan/web came later.",
        ]
    );
    assert_eq!(why_not(&engine), ["web.example.com: pve/web has the name, and a claim does not join it"]);
    assert_eq!(engine.status().providers[0].blocked, 1);
    engine.close().await;
}
