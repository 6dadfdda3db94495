//! Many callers ask in the same moment, from threads that really run at once: each gets one address, and none another's.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use netstead_ledger::{LedgerError, Outcome, Refusal, Reply, check::check};
use netstead_model::{Claim, EventKind};
use tokio::sync::Barrier;

use crate::support::{House, any, caller};

const MANY: usize = 64;
/// Others use the machine as well: who is slow is not wrong.
const PATIENCE: Duration = Duration::from_mins(1);

/// All ask for an address of `lan` at once, number `n` with the key `key_of(n)`.
async fn race(house: &House, key_of: impl Fn(usize) -> String) -> Vec<Result<(Claim, Outcome), LedgerError>> {
    let start = Arc::new(Barrier::new(MANY));
    let racers = (0..MANY).map(|number| {
        let (start, ledger, command) = (start.clone(), house.ledger.clone(), any("lan", &key_of(number)));
        tokio::spawn(async move {
            start.wait().await;
            match ledger.submit(caller("ann"), command, PATIENCE).await?.reply {
                Reply::Claimed { claim, outcome } => Ok((Arc::unwrap_or_clone(claim), outcome)),
                other => panic!("{other:?}"),
            }
        })
    });
    let racers: Vec<_> = racers.collect();
    let mut answers = Vec::new();
    for racer in racers {
        answers.push(racer.await.unwrap());
    }
    answers
}

/// Answers agree with the store: as this ledger has it, as a new one reads it, and as a check finds it.
async fn is_stored(house: House, claims: &[Claim]) {
    assert_eq!(house.pool("lan").await.usage.held, claims.len() as u128);
    let claimed = house.events().await.iter().filter(|event| event.what == EventKind::Claimed).count();
    assert_eq!(claimed, claims.len());
    let report = check(&*house.store).await.unwrap();
    assert_eq!((report.claims, report.problems), (claims.len() as u64, Vec::new()));
    let fresh = house.restart().await;
    for claim in claims {
        assert_eq!(fresh.holder("lan", claim.key.as_str()).await.as_ref(), Some(claim));
    }
}

fn addresses(claims: &[Claim]) -> BTreeSet<String> {
    claims.iter().map(Claim::held).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
pub(crate) async fn sixty_four_at_once_get_sixty_four_addresses() {
    let house = House::new().await;
    house.make("lan", "10.0.0.1-10.0.0.64").await;
    let answers = race(&house, |number| format!("k{number}")).await;
    let claims: Vec<Claim> = answers.into_iter().map(|answer| answer.unwrap().0).collect();
    let expected: BTreeSet<String> = (1..=MANY).map(|last| format!("10.0.0.{last}")).collect();
    assert_eq!(addresses(&claims), expected);
    is_stored(house, &claims).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
pub(crate) async fn of_sixty_four_for_sixty_three_addresses_one_hears_that_there_is_none() {
    let house = House::new().await;
    house.make("lan", "10.0.0.1-10.0.0.63").await;
    let answers = race(&house, |number| format!("k{number}")).await;
    let (served, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    let exhausted = Refusal::Exhausted { pool: "lan".parse().unwrap(), resting: 0, next_free: None };
    assert_eq!(refused, [Err(LedgerError::Refused(exhausted))]);
    let claims: Vec<Claim> = served.into_iter().map(|answer| answer.unwrap().0).collect();
    assert_eq!((claims.len(), addresses(&claims).len()), (63, 63));
    is_stored(house, &claims).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
pub(crate) async fn sixty_four_who_ask_with_one_key_get_one_address() {
    let house = House::new().await;
    house.make("lan", "10.0.0.1-10.0.0.64").await;
    let answers = race(&house, |_| "web".to_owned()).await;
    let (claims, outcomes): (Vec<Claim>, Vec<Outcome>) = answers.into_iter().map(Result::unwrap).unzip();
    assert!(claims.iter().all(|claim| *claim == claims[0]), "{claims:?}");
    assert_eq!(claims[0].held(), "10.0.0.1");
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Created).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Repeated).count(), MANY - 1);
    is_stored(house, &claims[..1]).await;
}
