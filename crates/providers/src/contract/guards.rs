//! Checks of what must not happen.

#![allow(clippy::panic, clippy::missing_panics_doc, reason = "a promise that is broken ends the test")]

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use netstead_model::{
    Fence, ProviderError, RecordSet, RecordType, UnitOutcome, WriteGuard, WriteRequest, ZoneSource,
};

use super::{Subject, name, ok, set, stopped, typed, unit};

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
        let wanted = [&there, &good].map(|set| subject.provider.adjust(set.clone(), &subject.can()));
        assert_eq!(found.into_values().collect::<Vec<_>>(), wanted);
        subject.change(Some(good), None).await;
    }
    subject.change(Some(there), None).await;
}

/// Another program adds a value between our read and our write.
pub async fn foreign_values_survive(subject: &Subject) {
    if subject.can().one_value {
        return;
    }
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
    let error = stopped(stranger.write(&subject.zone, &request).await);
    assert!(matches!(error, ProviderError::Denied { .. }), "a stranger should be denied: {error}");
    let outcome = stranger.read(&subject.zone).await;
    assert!(matches!(outcome, Err(ProviderError::Denied { .. })), "a stranger should be denied: {outcome:?}");
    subject.has(&name, &there).await;
    subject.change(Some(there), None).await;
}

pub async fn an_unknown_zone_is_told(subject: &Subject) {
    if subject.stranger.is_none() || subject.can().zones == ZoneSource::Domains {
        return;
    }
    let zone = name("elsewhere.invalid");
    let outcome = subject.provider.read_names(&zone, &BTreeSet::from([zone.clone()])).await;
    assert!(matches!(outcome, Err(ProviderError::NoSuchZone { .. })), "{outcome:?}");
    let request = subject.request(vec![unit(&zone, None, Some(set(&zone, &["192.0.2.1"])))]);
    let error = stopped(subject.provider.write(&zone, &request).await);
    assert!(matches!(error, ProviderError::NoSuchZone { .. }), "{error}");
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
        let request = WriteRequest::new(units, fence);
        let error = stopped(subject.provider.write(&subject.zone, &request).await);
        assert!(matches!(error, ProviderError::Late { .. }), "a late write should be refused: {error}");
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
    let request = WriteRequest::new(units, fence);
    assert_eq!(subject.send(&request).await, [UnitOutcome::Applied]);
}

/// A server that keeps a fence may do without the guard.
pub async fn nothing_is_sent_without_consent(subject: &Subject) {
    if subject.can().fenced {
        return;
    }
    let name = subject.at("consent");
    let denied = ProviderError::Late { server: "the guard".into(), zone: subject.zone.clone() };
    let error = denied.clone();
    let guard = WriteGuard::new(move || {
        let error = error.clone();
        async move { Err(error) }
    });
    let units = vec![unit(&name, None, Some(set(&name, &["192.0.2.1"])))];
    let request = WriteRequest { guard, ..subject.request(units) };
    assert_eq!(stopped(subject.provider.write(&subject.zone, &request).await), denied);
    assert!(subject.read(&[&name]).await.is_empty(), "nothing should be written without consent");
}

/// The time of a pass is over after a few requests: what is said to be applied stands, and nothing else.
pub async fn a_write_that_is_ended_half_way_says_what_stands(subject: &Subject) {
    if subject.can().fenced {
        return;
    }
    let sets: Vec<RecordSet> =
        (1..=20).map(|n| set(&subject.at(&format!("half-way-{n}")), &[&format!("192.0.2.{n}")])).collect();
    let units: Vec<_> = sets.iter().map(|set| unit(&set.name, None, Some(set.clone()))).collect();
    let left = Arc::new(AtomicUsize::new(7));
    let guard = WriteGuard::new(move || {
        let spent =
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err();
        async move { if spent { Err(ProviderError::OutOfTime { server: "it".into() }) } else { Ok(()) } }
    });
    let request = WriteRequest { guard, ..subject.request(units.clone()) };
    let reply = ok(subject.provider.write(&subject.zone, &request).await);
    for (set, outcome) in sets.iter().zip(&reply.outcomes) {
        let stands = !subject.read(&[&set.name]).await.is_empty();
        match outcome {
            UnitOutcome::Applied => assert!(stands, "{} should stand", set.name),
            UnitOutcome::NotTried => assert!(!stands, "{} should not stand", set.name),
            other => panic!("{} should be applied or not tried, and is {other:?}", set.name),
        }
    }
    let all = reply.outcomes.iter().all(|outcome| *outcome == UnitOutcome::Applied);
    assert_eq!(reply.stopped.is_none(), all, "a write that ends early should say why");
    let outcomes = subject.write(units).await;
    assert!(outcomes.iter().all(|outcome| *outcome == UnitOutcome::Applied), "the rest should follow");
    let units = sets.into_iter().map(|set| unit(&set.name.clone(), Some(set), None)).collect();
    let outcomes = subject.write(units).await;
    assert!(outcomes.iter().all(|outcome| *outcome == UnitOutcome::Applied), "all should be removed");
}

pub async fn a_cname_never_meets_other_records(subject: &Subject) {
    if !subject.can().types.contains(&RecordType::Cname) {
        return;
    }
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
