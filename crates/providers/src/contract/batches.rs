//! Checks with many units at once.

#![allow(clippy::panic, clippy::missing_panics_doc, reason = "a promise that is broken ends the test")]

use netstead_model::{Name, RecordSet, Unit, UnitOutcome, WriteOrder};

use super::{Subject, set, unit};

/// More would mean one request per name.
const FEW: usize = 20;

fn thousand(subject: &Subject, label: &str) -> Vec<RecordSet> {
    let named = (0..1_000).map(|n| {
        let address = format!("10.0.{}.{}", n / 250, n % 250);
        set(&subject.at(&format!("{label}-{n}")), &[&address])
    });
    named.collect()
}

async fn remove(subject: &Subject, sets: Vec<RecordSet>) {
    let units = sets.into_iter().map(|set| unit(&set.name.clone(), Some(set), None)).collect();
    let outcomes = subject.write(units).await;
    assert!(outcomes.iter().all(|outcome| *outcome == UnitOutcome::Applied), "all should be removed");
}

pub async fn one_poison_does_not_stop_the_others(subject: &Subject) {
    let sets = thousand(subject, "poisoned");
    let mut units: Vec<Unit> = sets.iter().map(|set| unit(&set.name, None, Some(set.clone()))).collect();
    units.insert(617, subject.poison.clone());
    let outcomes = subject.write(units).await;
    let rejected: Vec<_> =
        outcomes.iter().enumerate().filter(|(_, one)| **one != UnitOutcome::Applied).collect();
    let reason = match rejected.as_slice() {
        [(617, UnitOutcome::Rejected { reason })] => reason,
        other => panic!("only the poison should be rejected: {other:?}"),
    };
    assert!(!reason.is_empty(), "the poison should be rejected with a reason");
    let names: Vec<&Name> = sets.iter().map(|set| &set.name).collect();
    assert_eq!(subject.read(&names).await.len(), 1_000);
    remove(subject, sets).await;
}

pub async fn a_thousand_names_take_few_requests(subject: &Subject) {
    let count = || subject.requests.as_ref().map_or(0, |count| count());
    let sets = thousand(subject, "many");
    let units: Vec<Unit> = sets.iter().map(|set| unit(&set.name, None, Some(set.clone()))).collect();
    let before = count();
    let request = subject.request(units);
    let outcomes = subject.send(&request).await;
    let used = count() - before;
    assert!(outcomes.iter().all(|outcome| *outcome == UnitOutcome::Applied), "all should land");
    let most = if subject.can().order == WriteOrder::Atomic { FEW } else { FEW + 1_000 };
    assert!(used <= most, "a thousand names took {used} requests");
    let again = subject.send(&request).await;
    assert_eq!(again, outcomes, "a repeated write should find all of it there");
    remove(subject, sets).await;
}
