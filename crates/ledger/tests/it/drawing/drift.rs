//! A backend that is otherwise than the ledger has it: shown, and repaired when a person says so.

use std::{sync::Arc, time::Duration};

use netstead_ledger::{
    Command, DriftKind, Freshness, Options, RestoreError, backup, contract::FaultyBackend,
};
use netstead_model::{BackendErrorKind, Ident, ManualClock, Waiting};
use netstead_store::MemoryStore;

use super::branch::{Branch, RANGE, upstream};
use crate::support::{House, PATIENCE, any, create};

async fn with_web() -> Branch {
    let branch = Branch::new().await;
    assert_eq!(branch.say("ann", any("lan", "web")).await, "10.0.3.50 for web of ann, new");
    branch
}

async fn kinds(branch: &Branch) -> Vec<DriftKind> {
    branch.compare().await;
    branch.drift().await.into_iter().map(|(kind, ..)| kind).collect()
}

async fn restore(branch: &Branch) -> Result<(), RestoreError> {
    branch.backends.restore("lan".parse().unwrap(), "web".parse().unwrap(), PATIENCE).await
}

#[tokio::test]
async fn a_lost_object_is_restored_under_its_key_and_given_back_in_the_end() {
    let branch = with_web().await;
    branch.office.lose("own/lan/web");
    assert_eq!(kinds(&branch).await, [DriftKind::Missing]);
    assert_eq!(restore(&branch).await, Ok(()));
    assert_eq!(branch.office.held(), ["10.0.3.50 own/lan/web"]);
    assert_eq!(branch.drift().await, []);
    assert_eq!(restore(&branch).await, Ok(()), "a repeat changes nothing");
    assert_eq!(branch.office.held(), ["10.0.3.50 own/lan/web"]);
    branch.release("web").await;
    branch.house.pass(601).await;
    branch.comes_to(&[]).await;
    assert_eq!(branch.office.held(), Vec::<String>::new());
}

#[tokio::test]
async fn an_address_that_another_has_at_the_backend_is_shown_and_cannot_be_restored() {
    let branch = with_web().await;
    branch.office.lose("own/lan/web");
    branch.office.take("10.0.3.50".parse().unwrap(), "printer");
    assert_eq!(kinds(&branch).await, [DriftKind::OtherHolder]);
    let refused = restore(&branch).await;
    assert!(
        matches!(&refused, Err(RestoreError::Backend { error, .. }) if error.kind == BackendErrorKind::Held),
        "{refused:?}"
    );
    branch.release("web").await;
    branch.house.pass(601).await;
    branch.comes_to(&[]).await;
    assert_eq!(branch.office.held(), ["10.0.3.50 printer"], "what is not ours stays");
}

#[tokio::test]
async fn an_object_that_carries_another_key_is_not_given_back() {
    let branch = with_web().await;
    branch.office.rename("10.0.3.50".parse().unwrap(), "own/lan/other");
    assert_eq!(kinds(&branch).await, [DriftKind::OtherKey, DriftKind::Unknown]);
    branch.release("web").await;
    branch.house.pass(601).await;
    branch.comes_to(&[]).await;
    assert_eq!(branch.office.held(), ["10.0.3.50 own/lan/other"]);
}

#[tokio::test]
async fn an_object_with_another_address_under_the_key_of_a_claim_is_left_alone() {
    let branch = with_web().await;
    branch.office.lose("own/lan/web");
    branch.office.take("10.0.3.53".parse().unwrap(), "own/lan/web");
    let address = "10.0.3.53".parse().unwrap();
    let elsewhere = RestoreError::Elsewhere { backend: "office".parse().unwrap(), address };
    assert_eq!(restore(&branch).await, Err(elsewhere));
    assert_eq!(branch.office.held(), ["10.0.3.53 own/lan/web"]);
}

#[tokio::test]
async fn a_claim_without_an_object_and_a_paused_backend_restore_nothing() {
    let branch = with_web().await;
    let missing = branch.backends.restore("lan".parse().unwrap(), "db".parse().unwrap(), PATIENCE).await;
    assert_eq!(missing, Err(RestoreError::NoSuchClaim));
    branch.backends.set_paused(["office".parse().unwrap()].into());
    assert_eq!(restore(&branch).await, Err(RestoreError::Paused { backend: "office".parse().unwrap() }));
}

#[tokio::test]
async fn a_pool_that_the_backend_describes_otherwise_is_drift() {
    let house = House::new().await;
    house.ask("admin!", create("lan", RANGE, upstream)).await.unwrap();
    let office = Arc::new(FaultyBackend::new("10.0.3.50-10.0.3.99".parse().unwrap()));
    let branch = Branch::idle(house, office);
    branch.work();
    assert_eq!(kinds(&branch).await, [DriftKind::Description]);
    let described = branch.backends.status().described;
    assert_eq!(described.values().map(|described| described.info.size).collect::<Vec<_>>(), [50]);
}

#[tokio::test]
async fn an_object_of_a_pool_that_is_no_more_is_shown_and_one_of_another_pool_only_there() {
    let branch = with_web().await;
    let beside = create("beside", "10.0.4.50-10.0.4.54", upstream);
    branch.house.ask("admin!", beside).await.unwrap();
    branch.office.take("10.0.3.52".parse().unwrap(), "own/beside/web");
    branch.office.take("10.0.3.53".parse().unwrap(), "own/former/web");
    branch.compare().await;
    let unknown: Vec<_> = branch
        .drift()
        .await
        .into_iter()
        .filter(|(kind, ..)| *kind == DriftKind::Unknown)
        .map(|(_, address, _)| address)
        .collect();
    // Each pool that draws from there shows it.
    assert_eq!(unknown, ["10.0.3.52", "10.0.3.53", "10.0.3.53"]);
}

#[tokio::test]
async fn a_list_is_left_out_while_the_backend_says_that_nothing_changed() {
    let branch = with_web().await;
    branch.compare().await;
    let lists = branch.office.lists();
    branch.house.pass(601).await;
    branch.pass(5).await;
    assert_eq!(branch.office.lists(), lists, "nothing changed");
    branch.office.take("10.0.3.53".parse().unwrap(), "own/lan/unheard-of");
    branch.house.pass(601).await;
    branch.pass(5).await;
    assert!(branch.office.lists() > lists);
    assert_eq!(branch.drift().await.len(), 1);
}

/// The ledger of a branch as its backup brings it back, with the office as it went on meanwhile.
async fn restored(branch: &Branch) -> Branch {
    let dir = tempfile::tempdir().unwrap();
    let (path, clock) = (dir.path().join("ledger.backup"), ManualClock::default());
    let mut file = tokio::fs::File::create(&path).await.unwrap();
    backup::write(&*branch.house.store, &clock, &mut file).await.unwrap();
    let store = Arc::new(MemoryStore::new());
    backup::restore(&*store, &clock, &path, 3, |_, _| true).await.unwrap();
    Branch::idle(House::on(store, Options::default()).await, branch.office.clone())
}

#[tokio::test]
async fn after_a_restore_nothing_is_asked_or_given_back_until_resume_which_lists_first() {
    let branch = with_web().await;
    branch.release("web").await;
    branch.pass(1).await;
    let again = restored(&branch).await;
    branch.office.take("10.0.3.53".parse().unwrap(), "own/lan/later");
    again.work();
    again.house.clock.advance(Duration::from_secs(700));
    assert!(again.say("ann", any("lan", "new")).await.contains("restored from a backup"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(branch.office.requests(), ["claim own/lan/web"]);
    let lists = branch.office.lists();
    again.house.ask("admin!", Command::Resume).await.unwrap();
    again.pass(3).await;
    assert!(branch.office.lists() > lists, "the backend is listed first");
    again.pass(20).await;
    again.comes_to(&[]).await;
    assert_eq!(branch.office.requests(), ["claim own/lan/web", "release own/lan/web"]);
    let drift = again.drift().await;
    assert_eq!((drift[0].0, drift[0].1.as_str()), (DriftKind::Unknown, "10.0.3.53"));
    assert_eq!(again.say("ann", any("lan", "later")).await, "10.0.3.53 for later of ann, new");
}

#[tokio::test]
async fn a_paused_backend_is_not_compared_and_gets_no_duplicate_back() {
    let branch = with_web().await;
    branch.pass(11).await;
    branch.pause(true);
    branch.pass(2).await;
    branch.office.take("10.0.3.53".parse().unwrap(), "own/lan/web");
    let described = branch.office.describes();
    branch.compare().await;
    branch.pass(15).await;
    assert_eq!(branch.office.describes(), described);
    assert_eq!(branch.office.held(), ["10.0.3.50 own/lan/web", "10.0.3.53 own/lan/web"]);
    branch.pause(false);
    branch.compare().await;
    branch.pass(15).await;
    assert_eq!(branch.office.held(), ["10.0.3.50 own/lan/web"]);
}

#[tokio::test]
async fn after_a_restore_no_duplicate_is_given_back_until_resume() {
    let branch = with_web().await;
    branch.pass(1).await;
    let again = restored(&branch).await;
    branch.office.take("10.0.3.53".parse().unwrap(), "own/lan/web");
    let both = ["10.0.3.50 own/lan/web", "10.0.3.53 own/lan/web"];
    again.work();
    again.pass(15).await;
    let lists = branch.office.lists();
    again.compare().await;
    assert!(branch.office.lists() > lists, "it is compared all the same");
    assert_eq!(branch.office.held(), both);
    again.house.ask("admin!", Command::Resume).await.unwrap();
    again.pass(15).await;
    assert_eq!(branch.office.held(), ["10.0.3.50 own/lan/web"]);
}

#[tokio::test]
async fn a_backend_that_refuses_the_list_after_resume_is_asked_with_pauses_and_its_claims_hear_why() {
    let branch = with_web().await;
    branch.pass(1).await;
    let again = restored(&branch).await;
    again.work();
    again.pass(1).await;
    branch.office.set(|faults| faults.refuses_views = true);
    again.house.ask("admin!", Command::Resume).await.unwrap();
    again.pass(1).await;
    let described = branch.office.describes();
    again.wants("new").await;
    again.pass(30).await;
    let more = branch.office.describes() - described;
    assert!((1..=10).contains(&more), "it was asked {more} times in 30 s");
    assert_eq!(branch.office.requests(), ["claim own/lan/web"], "nothing is claimed before a list");
    let why = again.house.ledger.read(Freshness::Fresh, |book| {
        let why = |waiting: &Arc<Waiting>| waiting.draw.as_deref()?.why.clone().map(|why| why.message);
        book.waitings().find_map(why)
    });
    assert_eq!(why.await.unwrap().value.as_deref(), Some("this token may not look at pools"));
    let pool: Ident = "lan".parse().unwrap();
    assert_eq!(again.backends.status().uncompared[&pool], "this token may not look at pools");
    branch.office.set(|faults| faults.refuses_views = false);
    again.pass(20).await;
    again.comes_to(&["bound 10.0.3.50 own/lan/web", "bound 10.0.3.51 own/lan/new"]).await;
    assert!(again.backends.status().uncompared.is_empty());
}

#[tokio::test]
async fn a_leader_that_begins_after_resume_lists_before_it_claims_or_gives_back() {
    let branch = with_web().await;
    branch.release("web").await;
    branch.pass(1).await;
    let again = restored(&branch).await;
    // 1. The leader that saw the pause stops between `resume` and the list. 2. Another one begins.
    again.house.ask("admin!", Command::Resume).await.unwrap();
    again.house.clock.advance(Duration::from_secs(700));
    branch.office.set(|faults| faults.holds_lists = true);
    again.wants("new").await;
    again.work();
    again.pass(5).await;
    assert_eq!(branch.office.requests(), ["claim own/lan/web"]);
    branch.office.set(|faults| faults.holds_lists = false);
    again.pass(20).await;
    again.comes_to(&["bound 10.0.3.51 own/lan/new"]).await;
}

#[tokio::test]
async fn a_refused_list_does_not_keep_a_new_leader_from_asking() {
    let house = House::new().await;
    house.ask("admin!", create("lan", RANGE, upstream)).await.unwrap();
    let office = Arc::new(FaultyBackend::new(RANGE.parse().unwrap()));
    office.set(|faults| faults.refuses_views = true);
    let branch = Branch::idle(house, office);
    branch.work();
    assert_eq!(branch.say("ann", any("lan", "web")).await, "10.0.3.50 for web of ann, new");
}

#[tokio::test]
async fn a_restore_at_a_backend_that_is_not_configured_is_no_answer_of_it() {
    let branch = with_web().await;
    branch.backends.configure(std::collections::BTreeMap::new());
    let refused = restore(&branch).await;
    let told = "backend `office`: no backend `office` is configured";
    assert_eq!(refused.map_err(|error| error.to_string()), Err(told.to_owned()));
    branch.pass(1).await;
    let health = branch.backends.status().backends.remove(&"office".parse::<Ident>().unwrap()).unwrap();
    assert_eq!(health.error.as_deref(), Some("no backend `office` is configured"));
}
