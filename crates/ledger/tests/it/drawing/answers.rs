//! Answers that the ledger may not bind, and claims that end while a backend may hold something for them.

use netstead_ledger::DriftKind;
use netstead_model::{PoolChoice, Span};

use super::branch::Branch;
use crate::support::{any, claim, observe};

#[tokio::test]
async fn an_address_that_is_held_or_rests_for_another_is_not_bound() {
    let branch = Branch::new().await;
    for (key, address) in [("a", "10.0.3.50"), ("b", "10.0.3.51")] {
        assert_eq!(branch.say("ann", any("lan", key)).await, format!("{address} for {key} of ann, new"));
    }
    branch.release("b").await;
    let taken = ["10.0.3.50", "10.0.3.51"].map(|address| address.parse().unwrap());
    branch.office.set(|faults| faults.answers = taken.to_vec());
    assert_eq!(branch.say("ann", any("lan", "c")).await, "10.0.3.52 for c of ann, new");
    let drift = branch.drift().await;
    let strays: Vec<_> = drift.iter().map(|(kind, address, _)| (*kind, address.as_str())).collect();
    assert_eq!(strays, [(DriftKind::Stray, "10.0.3.50"), (DriftKind::Stray, "10.0.3.51")]);
    assert_eq!(drift[0].2, "10.0.3.50 is held by `a` of `ann` in pool `lan`");
    assert!(drift[1].2.starts_with("10.0.3.51 rests for "), "{drift:?}");
    let states: Vec<String> =
        branch.account().await.iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(states, ["bound", "bound", "resting", "stray", "stray"]);
}

#[tokio::test]
async fn an_excluded_address_is_not_bound() {
    let branch = Branch::with(|spec| spec.exclude = vec!["10.0.3.50-10.0.3.51".parse().unwrap()]).await;
    assert_eq!(branch.say("ann", any("lan", "web")).await, "10.0.3.52 for web of ann, new");
    let strays = branch.drift().await.into_iter().filter(|(kind, ..)| *kind == DriftKind::Stray);
    let reasons: Vec<String> = strays.map(|(.., reason)| reason).collect();
    let reason = |address: &str| format!("pool `lan` never hands out {address}: it is excluded");
    assert_eq!(reasons, [reason("10.0.3.50"), reason("10.0.3.51")]);
}

#[tokio::test]
async fn an_address_that_was_seen_is_bound_by_a_claim_that_adopts() {
    let branch = Branch::new().await;
    branch.house.ask("admin!", observe("scan", false, &["10.0.3.50"])).await.unwrap();
    let adopts = claim("lan", "web", |request| request.adopt = true);
    assert_eq!(branch.say("ann", adopts).await, "10.0.3.50 for web of ann, new");
}

#[tokio::test]
async fn a_claim_whose_caller_is_silent_is_withdrawn_if_it_may_have_been_asked_for() {
    let branch = Branch::new().await;
    branch.office.set(|faults| faults.away = true);
    let waits = claim("lan", "web", |request| request.wait = Some(Span::ZERO));
    branch.house.ask("ann", waits).await.unwrap();
    branch.pass(2).await;
    assert_eq!(branch.account().await, ["waiting own/lan/web"]);
    branch.pass(31).await;
    assert_eq!(branch.account().await, ["withdrawn own/lan/web"]);
    branch.office.set(|faults| faults.away = false);
    branch.pass(40).await;
    branch.comes_to(&[]).await;
    assert_eq!(branch.office.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_claim_that_was_never_asked_for_ends_at_once() {
    let branch = Branch::new().await;
    branch.backends.set_paused(["office".parse().unwrap()].into());
    branch.wants("web").await;
    assert_eq!(branch.account().await, ["waiting own/lan/web"]);
    branch.release("web").await;
    assert_eq!(branch.account().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_late_answer_to_an_ended_claim_is_given_back() {
    let branch = Branch::new().await;
    branch.office.set(|faults| faults.late = Some(std::time::Duration::from_millis(30)));
    branch.wants("web").await;
    while branch.office.most_claiming() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    branch.release("web").await;
    assert_eq!(branch.account().await, ["withdrawn own/lan/web"]);
    tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    branch.pass(40).await;
    branch.comes_to(&[]).await;
    assert_eq!(branch.office.held(), Vec::<String>::new());
    assert_eq!(branch.office.requests(), ["claim own/lan/web", "release own/lan/web"]);
}

#[tokio::test]
async fn a_selector_skips_pools_with_a_backend_and_says_so() {
    let labelled = |spec: &mut netstead_model::PoolSpec| {
        spec.labels = netstead_model::Labels::new([("site".to_owned(), "ams".to_owned())]).unwrap();
    };
    let branch = Branch::with(labelled).await;
    let select = |key: &str| {
        claim("lan", key, |request| request.from = PoolChoice::Select("site=ams".parse().unwrap()))
    };
    let alone = branch.say("ann", select("web")).await;
    assert_eq!(
        alone,
        "refused: select: only pools with a backend match, and a selector skips them: claim from `lan` by name"
    );
    branch.house.make_so("own", "10.0.4.1-10.0.4.9", labelled).await;
    assert_eq!(branch.say("ann", select("web")).await, "10.0.4.1 for web of ann, new");
}
