//! Checks of what must not happen.

#![allow(clippy::panic, clippy::missing_panics_doc, reason = "a promise that is broken ends the test")]

use std::collections::BTreeSet;

use netstead_model::{Fence, ProviderError, RecordType, UnitOutcome, WriteRequest};

use super::{Subject, name, set, typed, unit};

pub async fn what_is_not_expected_is_left_alone(subject: &Subject) {
    let name = subject.at("changed");
    let other = subject.at("untouched");
    let there = set(&name, &["192.0.2.1"]);
    subject.change(None, Some(there.clone())).await;
    let wrong = [
        unit(&name, None, Some(set(&name, &["192.0.2.2"]))),
        unit(&name, Some(set(&name, &["192.0.2.3"])), Some(set(&name, &["192.0.2.2"]))),
        unit(&name, Some(set(&name, &["192.0.2.3"])), None),
    ];
    for wrong in wrong {
        let good = set(&other, &["192.0.2.4"]);
        let outcomes = subject.write(vec![wrong, unit(&other, None, Some(good.clone()))]).await;
        assert_eq!(outcomes, [UnitOutcome::Changed, UnitOutcome::Applied]);
        let found = subject.read(&[&name, &other]).await;
        assert_eq!(found.into_values().collect::<Vec<_>>(), [there.clone(), good.clone()]);
        subject.change(Some(good), None).await;
    }
    subject.change(Some(there), None).await;
}

/// Somebody adds a value between our read and our write.
pub async fn foreign_values_survive(subject: &Subject) {
    let name = subject.at("foreign");
    let ours = set(&name, &["192.0.2.1"]);
    subject.change(None, Some(ours.clone())).await;
    let shared = set(&name, &["192.0.2.1", "192.0.2.99"]);
    subject.change(Some(ours.clone()), Some(shared.clone())).await;
    let outcomes = subject.write(vec![unit(&name, Some(ours), Some(set(&name, &["192.0.2.2"])))]).await;
    if subject.provider.capabilities().keeps_foreign {
        assert_eq!(
            outcomes,
            [UnitOutcome::Changed],
            "a set with a value we did not know of is not ours to change"
        );
    }
    subject.has(&name, &shared).await;
    let moved = set(&name, &["192.0.2.2", "192.0.2.99"]);
    subject.change(Some(shared), Some(moved.clone())).await;
    subject.has(&name, &moved).await;
    subject.change(Some(moved), None).await;
}

pub async fn strangers_are_refused_and_lose_nothing(subject: &Subject) {
    let Some(stranger) = &subject.stranger else { return };
    let name = subject.at("strangers");
    let there = set(&name, &["192.0.2.1"]);
    subject.change(None, Some(there.clone())).await;
    let request = subject.request(vec![unit(&name, Some(there.clone()), None)]);
    let outcome = stranger.write(&subject.zone, &request).await;
    assert!(matches!(outcome, Err(ProviderError::Denied { .. })), "a stranger should be denied: {outcome:?}");
    let outcome = stranger.read(&subject.zone).await;
    assert!(matches!(outcome, Err(ProviderError::Denied { .. })), "a stranger should be denied: {outcome:?}");
    subject.has(&name, &there).await;
    subject.change(Some(there), None).await;
}

pub async fn an_unknown_zone_is_told(subject: &Subject) {
    if subject.stranger.is_none() {
        return;
    }
    let zone = name("elsewhere.invalid");
    let outcome = subject.provider.read_names(&zone, &BTreeSet::from([zone.clone()])).await;
    assert!(matches!(outcome, Err(ProviderError::NoSuchZone { .. })), "{outcome:?}");
    let request = subject.request(vec![unit(&zone, None, Some(set(&zone, &["192.0.2.1"])))]);
    let outcome = subject.provider.write(&zone, &request).await;
    assert!(matches!(outcome, Err(ProviderError::NoSuchZone { .. })), "{outcome:?}");
}

pub async fn a_late_write_is_refused(subject: &Subject) {
    if !subject.provider.capabilities().fenced {
        return;
    }
    let name = subject.at("late");
    let newer = set(&name, &["192.0.2.12"]);
    let late = subject.next_fence();
    subject.change(None, Some(newer.clone())).await;
    let older = [late.clone(), Fence { epoch: 0, generation: u64::MAX, ..late.clone() }];
    for fence in older {
        let units = vec![unit(&name, Some(newer.clone()), Some(set(&name, &["192.0.2.11"])))];
        let outcome = subject.provider.write(&subject.zone, &WriteRequest { units, fence }).await;
        assert!(
            matches!(outcome, Err(ProviderError::Late { .. })),
            "a late write should be refused: {outcome:?}"
        );
    }
    subject.has(&name, &newer).await;
    // A store that was restored can learn how far the server is.
    let known = subject.provider.fence(&subject.zone, &late.owner).await;
    let above = |fence: &(u64, u64)| *fence > (late.epoch, late.generation);
    assert!(known.as_ref().is_ok_and(|known| known.as_ref().is_some_and(above)), "{known:?}");
    if subject.stranger.is_none() {
        return subject.change(Some(newer), None).await;
    }
    // Another installation has a fence of its own.
    let fence = Fence { owner: "neighbour".into(), ..late };
    let units = vec![unit(&name, Some(newer), None)];
    let outcome = subject.provider.write(&subject.zone, &WriteRequest { units, fence }).await;
    assert_eq!(outcome, Ok(vec![UnitOutcome::Applied]));
}

pub async fn a_cname_never_meets_other_records(subject: &Subject) {
    let name = subject.at("cname-rule");
    let address = set(&name, &["192.0.2.1"]);
    let alias = typed(&name, RecordType::Cname, &["target.example.net."]);
    for (there, wanted) in [(&address, &alias), (&alias, &address)] {
        subject.change(None, Some(there.clone())).await;
        let outcomes = subject.write(vec![unit(&name, None, Some(wanted.clone()))]).await;
        assert!(matches!(outcomes.as_slice(), [UnitOutcome::Rejected { .. }]), "{outcomes:?}");
        subject.has(&name, there).await;
        subject.change(Some(there.clone()), None).await;
    }
}
