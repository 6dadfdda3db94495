//! The simulated store keeps the contract in fair weather, and in foul weather does what it says.

use std::{sync::Arc, time::Duration};

use netstead_store::{
    Commit, EPOCH_KEY, Epoch, Health, Store, StoreError, WatchItem, contract,
    simulated::{Broken, Cut, Network, Rules, Weather},
};
use tokio::time::sleep;

use crate::support::put;

/// A network whose time is tokio's.
fn network(machines: usize, rules: Rules) -> Network {
    let network = Network::new(7, machines, rules);
    let driven = network.clone();
    tokio::spawn(async move {
        let mut now = Duration::ZERO;
        loop {
            sleep(Duration::from_millis(1)).await;
            now += Duration::from_millis(1);
            driven.advance(now);
        }
    });
    network
}

async fn value(store: &dyn Store) -> Option<Vec<u8>> {
    store.get(b"k").await.unwrap().map(|entry| entry.value)
}

#[tokio::test(start_paused = true)]
async fn the_simulated_store_keeps_the_contract_in_fair_weather() {
    contract::all(async || network(1, Rules::default()).process(0) as Arc<dyn Store>).await;
}

#[tokio::test(start_paused = true)]
async fn the_lead_passes_on_when_its_lease_runs_out_and_late_commits_are_fenced() {
    let network = network(2, Rules::default());
    let (first, second) = (network.process(0), network.process(1));
    assert_eq!(first.lead().await.unwrap(), Epoch(1));
    sleep(Duration::from_secs(10)).await;
    network.cut(0, Cut { questions: true, answers: true });
    let late = tokio::spawn({
        let first = first.clone();
        async move { put(&*first, "k", "late").await }
    });
    assert_eq!(second.lead().await.unwrap(), Epoch(2));
    put(&*second, "k", "mine").await.unwrap();
    assert!(matches!(late.await.unwrap(), Err(StoreError::Unknown { .. })));
    network.cut(0, Cut::default());
    sleep(Duration::from_secs(2)).await;
    assert_eq!(value(&*second).await.as_deref(), Some(b"mine".as_slice()));
    assert!(matches!(first.health(), Health::Failed { .. }));
    let refused = put(&*first, "k", "x").await;
    assert!(matches!(&refused, Err(StoreError::Refused { key }) if key == EPOCH_KEY), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_stopped_process_held_lands_when_it_goes_on() {
    let network = network(2, Rules { lease: None, fenced: false, ..Rules::default() });
    let (first, second) = (network.process(0), network.process(1));
    network.stop(0, true);
    let held = put(&*first, "k", "held").await;
    assert!(matches!(held, Err(StoreError::Unknown { .. })), "{held:?}");
    assert_eq!(value(&*second).await, None);
    network.go_on(0);
    sleep(Duration::from_millis(50)).await;
    assert_eq!(value(&*second).await.as_deref(), Some(b"held".as_slice()));
}

#[tokio::test(start_paused = true)]
async fn watches_break_views_grow_too_old_and_answers_get_lost() {
    let network = network(2, Rules::default());
    let store = network.process(0);
    let mut watch = store.watch(b"").await.unwrap();
    let view = store.snapshot().await.unwrap();
    put(&*store, "k", "1").await.unwrap();
    assert!(matches!(watch.next().await, Some(WatchItem::Changed { .. })));
    network.lose_watches(0);
    assert_eq!(watch.next().await, Some(WatchItem::Lost));
    network.compact();
    assert!(view.get(b"k").await.unwrap_err().to_string().contains("begin anew"));
    network.cut(0, Cut { questions: false, answers: true });
    let lost = put(&*store, "k", "2").await;
    assert!(matches!(lost, Err(StoreError::Unknown { .. })), "{lost:?}");
    assert_eq!(value(&*network.process(1)).await.as_deref(), Some(b"2".as_slice()));
    let own = store.own_snapshot().await.unwrap().get(b"k").await.unwrap().unwrap();
    assert_eq!(own.value, b"1", "what this machine had before it was cut off");
    network.set_weather(Weather { refused: 1000, ..Weather::fair() });
    assert!(matches!(put(&*store, "k", "3").await, Err(StoreError::Unavailable { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_promise_that_is_to_be_broken_is() {
    let network = network(1, Rules { broken: Some(Broken::Conditions), ..Rules::default() });
    let store = network.process(0);
    let only_first = || Commit::new().when(netstead_store::Condition::Absent(b"k".to_vec())).put("k", "1");
    assert!(store.commit(only_first()).await.is_ok());
    assert!(store.commit(only_first()).await.is_ok());
}
