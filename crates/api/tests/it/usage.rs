//! How full pools were, and how much changed per day.

use std::{io::Write as _, sync::Arc, time::Duration};

use netstead_api::{
    RecordError, ServeOptions, UsageRecorder,
    access::{NewToken, Role, Scopes, survives_restore},
    cluster::FORMAT,
};
use netstead_ledger::{Backends, backup};
use netstead_model::{Clock as _, ManualClock};
use netstead_store::{MemoryStore, Store};
use serde_json::{Value, json};

use crate::support::House;

const HOUR: Duration = Duration::from_hours(1);

/// A house whose clock is moved by hand, at ten past midnight.
async fn house(clock: &ManualClock, store: Arc<dyn Store>) -> House {
    House::over(store, clock.shared(), ServeOptions::new("127.0.0.1:0")).await
}

fn clock() -> ManualClock {
    ManualClock::at("2026-11-01T00:10:00Z".parse().unwrap())
}

async fn record(house: &House) -> Result<usize, RecordError> {
    let backends = Backends::default();
    let epoch = house.ledger.health().epoch;
    UsageRecorder::new(&house.ledger, None, &backends, epoch).record().await
}

/// Five days in which two claims are made a day, at six and at eighteen, and one ends.
async fn five_days(house: &House, clock: &ManualClock) {
    for hour in 0..5 * 24 {
        if hour % 12 == 6 {
            house.claim("lan", &format!("host-{hour}")).await;
        }
        if hour % 24 == 20 {
            house.claim("big", "guest").await;
            house.delete("/pools/big/claims/guest").go().await.fine();
        }
        record(house).await.unwrap();
        clock.advance(HOUR);
    }
}

/// Everything below `usage/`, as it is stored.
async fn stored(store: &dyn Store) -> Vec<(String, String)> {
    let entries = store.snapshot().await.unwrap().range(b"usage/", None, 100).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    entries.into_iter().map(|entry| (text(entry.key), text(entry.value))).collect()
}

#[tokio::test]
async fn a_pool_has_a_history_that_says_when_it_will_be_full_and_survives_a_restore() {
    let (clock, store) = (clock(), Arc::new(MemoryStore::new()));
    let house = house(&clock, store.clone()).await;
    house.pool("lan", json!({"ranges": ["10.0.3.1-10.0.3.40"]})).await;
    house.pool("big", json!({"network": "10.16.0.0/16"})).await;
    five_days(&house, &clock).await;

    let answer = house.get("/pools/lan/usage").go().await;
    let history = answer.fine();
    let day = |number: u32, claims: u64, used: u64, made: u64| json!({"day": format!("2026-11-{number:02}"), "claims": claims, "used_permyriad": used, "claimed": made, "ended": 0});
    let days =
        [day(1, 2, 500, 2), day(2, 4, 1000, 2), day(3, 6, 1500, 2), day(4, 8, 2000, 2), day(5, 10, 2500, 2)];
    let days: Vec<Value> = days.into_iter().chain([day(6, 10, 2500, 0)]).collect();
    assert_eq!(history["days"], json!(days));
    // The samples of the hours, and this moment.
    assert_eq!(history["hours"].as_array().unwrap().len(), 5 * 24 + 1);
    assert_eq!(
        history["hours"][6],
        json!({"at": "2026-11-01T06:00:00Z", "claims": 1, "used_permyriad": 250})
    );
    assert_eq!(
        history["hours"][120],
        json!({"at": "2026-11-06T00:10:00Z", "claims": 10, "used_permyriad": 2500})
    );
    let forecast = &history["forecast"];
    assert_eq!(forecast["days_left"], 16, "30 are free, and 2 go a day: {forecast}");
    assert!((forecast["per_day"].as_f64().unwrap() - 2.0).abs() < 0.01, "{forecast}");

    let all = house.get("/usage").go().await;
    let day = |number: u32, made: u64, ended: u64| json!({"day": format!("2026-11-{number:02}"), "claimed": made, "ended": ended, "applied": 0});
    let mut days: Vec<Value> = (1..6).map(|number| day(number, 3, 1)).collect();
    days.push(day(6, 0, 0));
    assert_eq!(all.fine()["days"], json!(days));
    assert_eq!(all.body["filling"], json!([{"pool": "lan", "free": "30", "forecast": forecast}]));
    let two = house.get("/usage?days=2").go().await;
    assert_eq!(two.fine()["days"], json!(days[4..]));
    for wrong in ["0", "732", "x"] {
        let answer = house.get(&format!("/usage?days={wrong}")).go().await;
        assert_eq!(
            answer.invalid(400),
            ("days".into(), "days: it is a number from 1 to 731".into()),
            "{wrong}"
        );
    }

    let file = house.get("/backup").go().await;
    let mut saved = tempfile::NamedTempFile::new().unwrap();
    saved.write_all(file.text.as_bytes()).unwrap();
    let new = Arc::new(MemoryStore::new());
    backup::restore(&*new, &clock, saved.path(), FORMAT, survives_restore).await.unwrap();
    let restored = self::house(&clock, new).await;
    let answer = restored.get("/pools/lan/usage").by(&house.admin).go().await;
    assert_eq!(answer.fine(), history);
    // It goes on there.
    assert_eq!(record(&restored).await.unwrap(), 2);
    let check = restored.post("/check").json(&json!({})).by(&house.admin).go().await;
    assert_eq!(check.fine()["problems"], json!([]));
}

#[tokio::test]
async fn one_batch_an_hour_counts_every_event_once_whoever_leads() {
    let (clock, store) = (clock(), Arc::new(MemoryStore::new()));
    let house = house(&clock, store.clone()).await;
    house.pool("lan", json!({"ranges": ["10.0.3.1-10.0.3.40"]})).await;
    house.claim("lan", "early").await;
    assert_eq!(record(&house).await.unwrap(), 1);
    let first = stored(&*store).await;
    assert_eq!(
        first.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
        ["usage/changes", "usage/recent/lan"]
    );
    house.claim("lan", "late").await;
    assert_eq!(record(&house).await.unwrap(), 0, "this hour has its samples");
    assert_eq!(stored(&*store).await, first);

    // Another node takes the lead: the former leader writes nothing more.
    clock.advance(HOUR);
    let next = self::house(&clock, store.clone()).await;
    let epoch = next.ledger.health().epoch;
    let backends = Backends::default();
    let former = UsageRecorder::new(&next.ledger, None, &backends, epoch - 1);
    assert!(matches!(former.record().await, Err(RecordError::NotLeading)));
    assert_eq!(stored(&*store).await, first);
    assert_eq!(record(&next).await.unwrap(), 1);
    let all = next.get("/usage").go().await;
    assert_eq!(all.fine()["days"], json!([{"day": "2026-11-01", "claimed": 2, "ended": 0, "applied": 0}]));
    let lan = next.get("/pools/lan/usage").go().await;
    assert_eq!(lan.fine()["days"][0]["claimed"], 2, "{}", lan.body);
}

#[tokio::test]
async fn a_pool_that_is_deleted_loses_its_history() {
    let (clock, store) = (clock(), Arc::new(MemoryStore::new()));
    let house = house(&clock, store.clone()).await;
    let spec = || json!({"ranges": ["10.0.3.1-10.0.3.40"]});
    house.pool("lan", spec()).await;
    house.pool("other", json!({"network": "10.16.0.0/16"})).await;
    for _ in 0..30 {
        record(&house).await.unwrap();
        clock.advance(HOUR);
    }
    let keys = async || stored(&*store).await.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    let both =
        ["usage/changes", "usage/days/lan", "usage/days/other", "usage/recent/lan", "usage/recent/other"];
    assert_eq!(keys().await, both);
    house.delete("/pools/lan").go().await.fine();
    house.get("/pools/lan/usage").go().await.problem(404, "no-such-pool");
    // Another pool of the name begins anew, be it before the samples are removed or after.
    house.pool("lan", spec()).await;
    let hours = async || {
        let history = house.get("/pools/lan/usage").go().await;
        history.fine()["hours"].as_array().unwrap().len()
    };
    assert_eq!(hours().await, 1);
    record(&house).await.unwrap();
    assert_eq!(hours().await, 2);
    assert_eq!(keys().await, ["usage/changes", "usage/days/other", "usage/recent/lan", "usage/recent/other"]);
    house.delete("/pools/lan").go().await.fine();
    clock.advance(HOUR);
    record(&house).await.unwrap();
    assert_eq!(keys().await, ["usage/changes", "usage/days/other", "usage/recent/other"]);
}

#[tokio::test]
async fn a_token_with_scopes_sees_its_own_pools_only() {
    let (clock, store) = (clock(), Arc::new(MemoryStore::new()));
    let house = house(&clock, store).await;
    house.pool("lan", json!({"ranges": ["10.0.3.1-10.0.3.40"]})).await;
    house.pool("big", json!({"network": "10.16.0.0/16"})).await;
    five_days(&house, &clock).await;
    let token = async |pool: &str| {
        let scopes = Scopes { pools: vec![pool.parse().unwrap()], ..Scopes::default() };
        house.scoped(NewToken { scopes, ..NewToken::new(pool, Role::Read) }).await
    };
    let (lan, big) = (token("lan").await, token("big").await);
    let all = house.get("/usage").by(&lan).go().await;
    assert_eq!((&all.fine()["days"], &all.body["filling"][0]["pool"]), (&json!([]), &json!("lan")));
    let none = house.get("/usage").by(&big).go().await;
    assert_eq!(none.fine(), &json!({"days": [], "filling": []}));
    house.get("/pools/lan/usage").by(&lan).go().await.fine();
    house.get("/pools/lan/usage").by(&big).go().await.problem(403, "forbidden");
}

#[tokio::test]
async fn many_pools_are_written_in_commits_that_every_store_takes() {
    let (clock, store) = (clock(), Arc::new(MemoryStore::new()));
    let house = house(&clock, store.clone()).await;
    for number in 0..250 {
        house.pool(&format!("p{number}"), json!({"network": format!("10.{number}.0.0/24")})).await;
    }
    assert_eq!(record(&house).await.unwrap(), 250);
    clock.advance(24 * HOUR);
    assert_eq!(record(&house).await.unwrap(), 250);
    let days = store.snapshot().await.unwrap().range(b"usage/days/", None, 1000).await.unwrap();
    assert_eq!(days.len(), 250);
    assert_eq!(clock.wall().to_string(), "2026-11-02T00:10:00Z");
}
