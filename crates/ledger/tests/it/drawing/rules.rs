//! The rules, one after the other.

use std::time::Duration;

use netstead_ledger::{Command, DriftKind, Reply};
use netstead_model::{ClaimRequest, Key, Span, Want};

use super::branch::{Branch, patient, upstream};
use crate::support::{any, claim, create, exact, restless, target};

#[tokio::test]
async fn a_claim_gets_the_address_that_the_backend_gives_under_a_key_of_its_own() {
    let branch = Branch::new().await;
    assert_eq!(branch.say("ann", any("lan", "web")).await, "10.0.3.50 for web of ann, new");
    assert_eq!(branch.office.held(), ["10.0.3.50 own/lan/web"]);
    assert_eq!(branch.say("ann", any("lan", "web")).await, "10.0.3.50 for web of ann, again");
    assert_eq!(branch.office.requests(), ["claim own/lan/web"]);
    assert_eq!(branch.house.log().await, ["pool-created", "waiting", "claimed"]);
}

#[tokio::test]
async fn a_key_stays_when_its_claim_moves_and_one_in_use_gets_a_number() {
    let branch = Branch::new().await;
    branch.wants("web").await;
    branch.comes_to(&["bound 10.0.3.50 own/lan/web"]).await;
    let to: Key = "db".parse().unwrap();
    let moved = Command::Move { target: target("lan", "web", None), key: to, owner: None };
    assert_eq!(branch.say("ann", moved).await, "10.0.3.50 is now db of ann");
    branch.wants("web").await;
    // pool-created, waiting, claimed, moved: the next number is 5, with the commit that said it was asked for.
    branch.pass(1).await;
    let keys: Vec<String> = branch.office.objects().into_iter().map(|object| object.key).collect();
    assert!(keys[0] == "own/lan/web" && keys[1].starts_with("own/lan/web~"), "{keys:?}");
    assert_eq!(branch.account().await.len(), 2);
}

#[tokio::test]
async fn a_released_address_rests_comes_back_to_its_key_and_is_given_back_in_the_end() {
    let branch = Branch::new().await;
    branch.wants("web").await;
    branch.comes_to(&["bound 10.0.3.50 own/lan/web"]).await;
    branch.release("web").await;
    assert_eq!(branch.account().await, ["resting 10.0.3.50 own/lan/web"]);
    assert_eq!(branch.say("ann", any("lan", "web")).await, "10.0.3.50 for web of ann, new");
    assert_eq!(branch.office.requests(), ["claim own/lan/web"]);
    branch.release("web").await;
    branch.house.pass(601).await;
    branch.comes_to(&[]).await;
    assert_eq!(branch.office.held(), Vec::<String>::new());
    assert_eq!(branch.house.log().await.last(), Some(&"given-back"));
}

#[tokio::test]
async fn an_address_stays_until_the_backend_confirms_that_it_has_it_back() {
    let branch = Branch::with(restless).await;
    branch.wants("web").await;
    branch.comes_to(&["bound 10.0.3.50 own/lan/web"]).await;
    branch.pass(11).await;
    branch.office.set(|faults| faults.away = true);
    branch.release("web").await;
    branch.pass(5).await;
    branch.comes_to(&["giving-back 10.0.3.50 own/lan/web"]).await;
    branch.office.set(|faults| faults.away = false);
    branch.pass(20).await;
    branch.comes_to(&[]).await;
}

#[tokio::test]
async fn rests_are_given_back_early_when_the_backend_has_nothing_left() {
    let branch = Branch::new().await;
    for key in ["a", "b", "c", "d", "e"] {
        branch.wants(key).await;
    }
    branch.pass(11).await;
    branch.release("c").await;
    branch.wants("f").await;
    branch.pass(5).await;
    assert!(branch.account().await.contains(&"waiting own/lan/f".into()), "it has not rested long enough");
    branch.pass(60).await;
    branch
        .comes_to(&[
            "bound 10.0.3.50 own/lan/a",
            "bound 10.0.3.51 own/lan/b",
            "bound 10.0.3.52 own/lan/f",
            "bound 10.0.3.53 own/lan/d",
            "bound 10.0.3.54 own/lan/e",
        ])
        .await;
}

#[tokio::test]
async fn a_claim_that_may_have_been_asked_for_is_withdrawn_and_ends_when_nothing_is_left() {
    let branch = Branch::new().await;
    branch.office.set(|faults| faults.lost_answers = 1);
    branch.wants("web").await;
    branch.comes_to(&["waiting own/lan/web"]).await;
    while branch.office.objects().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    branch.release("web").await;
    assert_eq!(branch.account().await, ["withdrawn own/lan/web"]);
    branch.pass(5).await;
    assert_eq!(branch.office.held(), Vec::<String>::new(), "what was found is given back");
    assert_eq!(branch.account().await, ["withdrawn own/lan/web"], "a request may still be on its way");
    branch.pass(20).await;
    branch.comes_to(&[]).await;
}

#[tokio::test]
async fn an_address_that_the_ledger_may_not_bind_is_kept_and_the_claim_asks_again() {
    let branch = Branch::new().await;
    let seen = crate::support::observe("scan", false, &["10.0.3.50"]);
    branch.house.ask("admin!", seen).await.unwrap();
    assert_eq!(branch.say("ann", any("lan", "web")).await, "10.0.3.51 for web of ann, new");
    let account = branch.account().await;
    assert_eq!(account[1], "stray own/lan/web");
    assert!(account[0].starts_with("bound 10.0.3.51 own/lan/web~"), "{account:?}");
    let drift = branch.house.ledger.read(netstead_ledger::Freshness::Fresh, |book| {
        branch.backends.drift(book, jiff::Timestamp::UNIX_EPOCH)
    });
    let drift = drift.await.unwrap().value;
    assert_eq!(
        (drift[0].kind, drift[0].address.unwrap().to_string()),
        (DriftKind::Stray, "10.0.3.50".into())
    );
    let seq = drift[0].stray.unwrap();
    let step = netstead_ledger::DrawStep::ReleaseStray { seq };
    branch.house.ask("admin!", Command::Draw(Box::new(step))).await.unwrap();
    branch.pass(15).await;
    assert_eq!(branch.office.objects().len(), 1);
}

#[tokio::test]
async fn a_claim_asks_eight_times_at_most() {
    let branch = Branch::new().await;
    let outside = (1..=20).map(|last| format!("10.0.9.{last}").parse().unwrap()).collect();
    branch.office.set(|faults| faults.answers = outside);
    branch.wants("web").await;
    branch.pass(5).await;
    assert_eq!(branch.office.objects().len(), 8);
    let account = branch.account().await;
    assert_eq!(account.iter().filter(|line| line.starts_with("stray")).count(), 8);
    assert_eq!(account.iter().filter(|line| line.starts_with("waiting")).count(), 1);
}

#[tokio::test]
async fn an_exact_claim_is_taken_or_ends_and_a_preferred_one_falls_back() {
    let branch = Branch::new().await;
    branch.office.take("10.0.3.52".parse().unwrap(), "somebody");
    assert_eq!(branch.say("ann", claim("lan", "a", exact("10.0.3.51"))).await, "10.0.3.51 for a of ann, new");
    let refused = branch.say("ann", claim("lan", "b", exact("10.0.3.52"))).await;
    assert_eq!(refused, "refused: backend `office` of pool `lan`: 10.0.3.52 is held");
    let prefer = |request: &mut ClaimRequest| request.want = Want::Prefer("10.0.3.52".parse().unwrap());
    assert_eq!(branch.say("ann", claim("lan", "c", prefer)).await, "10.0.3.50 for c of ann, new");
    let held = branch.say("bob", claim("lan", "d", exact("10.0.3.51"))).await;
    assert_eq!(held, "refused: 10.0.3.51 is held by `a` of `ann` in pool `lan`");
}

#[tokio::test]
async fn several_claims_at_once_choices_and_reservations_are_refused_with_the_reason() {
    let branch = Branch::new().await;
    branch.house.make("own", "10.0.4.1-10.0.4.9").await;
    let bulk = Command::Bulk(vec![any("lan", "web")]);
    let said = branch.say("ann", bulk).await;
    assert!(said.contains("a pool with a backend serves single claims only"), "{said}");
    let both = claim("lan", "web", |request| {
        request.from =
            netstead_model::PoolChoice::Pools(vec!["own".parse().unwrap(), "lan".parse().unwrap()]);
    });
    assert_eq!(
        branch.say("ann", both).await,
        "refused: pools: pool `lan` has a backend: claim from it alone"
    );
    let reserve = Command::Reserve {
        pool: "lan".parse().unwrap(),
        key: "rack".parse().unwrap(),
        range: "10.0.3.50-10.0.3.51".parse().unwrap(),
        description: None,
    };
    let said = branch.say("ann", reserve).await;
    assert!(said.contains("set it aside at `office`"), "{said}");
}

#[tokio::test]
async fn a_caller_that_does_not_wait_hears_the_refusal_and_one_that_waits_goes_on_waiting() {
    let branch = Branch::with(|spec| spec.max_per_owner = Some(6)).await;
    for number in 0..5 {
        branch.office.take(format!("10.0.3.5{number}").parse().unwrap(), "somebody");
    }
    let full = branch.say("ann", any("lan", "web")).await;
    assert_eq!(full, "refused: backend `office` of pool `lan`: no address is free");
    branch.wants("db").await;
    branch.pass(2).await;
    assert_eq!(branch.account().await, ["waiting own/lan/db", "withdrawn own/lan/web"]);
    branch.office.lose("somebody");
    branch.pass(40).await;
    branch.comes_to(&["bound 10.0.3.50 own/lan/db"]).await;
}

#[tokio::test]
async fn the_quota_counts_what_waits_and_what_is_on_its_way_back() {
    let branch = Branch::with(|spec| {
        restless(spec);
        spec.max_per_owner = Some(2);
    })
    .await;
    branch.wants("a").await;
    branch.comes_to(&["bound 10.0.3.50 own/lan/a"]).await;
    branch.office.set(|faults| faults.away = true);
    branch.wants("b").await;
    let refused = branch.say("ann", any("lan", "c")).await;
    assert!(refused.contains("holds 2 addresses of pool `lan`, which allows 2"), "{refused}");
    branch.release("a").await;
    let refused = branch.say("ann", any("lan", "c")).await;
    assert!(refused.contains("holds 2 addresses"), "{refused}");
}

#[tokio::test]
async fn a_claim_never_ends_because_the_backend_lost_it() {
    let branch = Branch::new().await;
    branch.wants("web").await;
    branch.comes_to(&["bound 10.0.3.50 own/lan/web"]).await;
    branch.office.lose("own/lan/web");
    branch.office.take("10.0.3.53".parse().unwrap(), "own/lan/unheard-of");
    branch.backends.reconcile_soon();
    branch.pass(3).await;
    let status = branch.backends.status();
    let drift: Vec<_> = status.drift.values().flatten().collect();
    let kinds: Vec<_> = drift.iter().map(|drift| drift.kind).collect();
    assert_eq!(kinds, [DriftKind::Missing, DriftKind::Unknown], "{drift:?}");
    assert_eq!(branch.account().await, ["bound 10.0.3.50 own/lan/web"]);
    let adopted = branch.say("ann", any("lan", "unheard-of")).await;
    assert_eq!(adopted, "10.0.3.53 for unheard-of of ann, new");
}

#[tokio::test]
async fn a_pool_that_is_forced_out_stays_until_its_backend_has_everything_back() {
    let branch = Branch::with(restless).await;
    branch.wants("web").await;
    branch.comes_to(&["bound 10.0.3.50 own/lan/web"]).await;
    branch.pass(11).await;
    branch.office.set(|faults| faults.away = true);
    let delete = |force: Option<&str>| Command::DeletePool {
        name: "lan".parse().unwrap(),
        force: force.map(ToOwned::to_owned),
        if_version: None,
    };
    assert!(branch.say("admin!", delete(None)).await.starts_with("refused: pool `lan` has 1 claim"));
    let gone = branch.house.ask("admin!", delete(Some("moving out"))).await;
    assert_eq!(gone, Ok(Reply::PoolDeleted { released: 1, left: 0, owed: 1 }));
    assert!(branch.house.pool("lan").await.pool.closing);
    branch.office.set(|faults| faults.away = false);
    branch.pass(20).await;
    assert_eq!(branch.office.held(), Vec::<String>::new());
    assert_eq!(branch.house.log().await.last(), Some(&"pool-deleted"));
}

#[tokio::test]
async fn an_abandoned_pool_is_forgotten_with_an_event() {
    let branch = Branch::new().await;
    branch.wants("web").await;
    branch.comes_to(&["bound 10.0.3.50 own/lan/web"]).await;
    let (name, reason) = ("lan".parse().unwrap(), "the office burned down".to_owned());
    let gone = branch.house.ask("admin!", Command::AbandonPool { name, reason, if_version: None }).await;
    assert_eq!(gone, Ok(Reply::PoolDeleted { released: 1, left: 0, owed: 0 }));
    assert_eq!(branch.office.held(), ["10.0.3.50 own/lan/web"]);
    let last = branch.house.events().await.last().unwrap().reason.clone().unwrap();
    assert!(last.contains("the office burned down"), "{last}");
    branch.house.ask("admin!", create("lan", super::branch::RANGE, upstream)).await.unwrap();
    assert_eq!(branch.say("bob", any("lan", "web")).await, "10.0.3.50 for web of bob, new");
}

#[tokio::test]
async fn the_backend_of_a_pool_cannot_change_while_anything_is_held() {
    let branch = Branch::new().await;
    branch.wants("web").await;
    branch.comes_to(&["bound 10.0.3.50 own/lan/web"]).await;
    let mut spec = branch.house.pool("lan").await.pool.spec;
    spec.upstream = None;
    let update = Command::UpdatePool { spec: Box::new(spec), if_version: None };
    let said = branch.say("admin!", update).await;
    assert_eq!(
        said,
        "refused: backend: it cannot change while the pool holds anything: release the claims first"
    );
}

#[tokio::test]
async fn a_lease_ends_into_rest_and_the_backend_hears_nothing_of_it() {
    let branch = Branch::new().await;
    let leased = claim("lan", "web", |request| {
        patient(request);
        request.ttl = Some(Span::from_secs(30));
    });
    branch.house.ask("ann", leased).await.unwrap();
    branch.comes_to(&["bound 10.0.3.50 own/lan/web"]).await;
    branch.pass(31).await;
    assert_eq!(branch.account().await, ["resting 10.0.3.50 own/lan/web"]);
    assert_eq!(branch.office.requests(), ["claim own/lan/web"]);
}
