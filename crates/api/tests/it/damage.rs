//! A store of which a part is damaged: it is served, and everything that shows the state says so.

use std::{sync::Arc, time::Duration};

use netstead_api::{
    ServeOptions,
    access::{NewToken, Role, Scopes},
};
use netstead_ledger::record::event_key;
use netstead_model::SystemClock;
use netstead_store::{FaultyStore, MemoryStore};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, House};

/// A server with pool `lan` and claims `c0` to `c9`, and its store.
async fn house() -> (House, Arc<FaultyStore>) {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let house = House::over(store.clone(), SystemClock::shared(), ServeOptions::new("127.0.0.1:0")).await;
    house.pool("lan", json!({"ranges": ["10.0.3.50-10.0.3.200"]})).await;
    for number in 0..10 {
        house.claim("lan", &format!("c{number}")).await;
    }
    (house, store)
}

/// Damages the event with which `c4` was claimed.
async fn damage_an_event(house: &House, store: &FaultyStore) -> String {
    let page = house.get("/events?key=c4").go().await;
    let key = event_key(page.fine()["items"][0]["seq"].as_u64().unwrap());
    store.damage_keys(&key..=&key);
    key
}

async fn ready(house: &House) -> (u16, String) {
    let answer = Answer::of(house.bare(Method::GET, "/readyz")).await;
    (answer.status, answer.text)
}

async fn metric(house: &House, name: &str) -> Option<String> {
    let text = Answer::of(house.bare(Method::GET, "/metrics")).await.text;
    text.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).map(str::to_owned)
}

#[tokio::test]
async fn damage_that_a_read_finds_is_shown_everywhere_until_a_check_is_clean() {
    let (house, store) = house().await;
    let key = damage_an_event(&house, &store).await;
    assert_eq!(ready(&house).await, (200, "ok\n".to_owned()), "nothing has met it yet");

    let asked = tokio::time::timeout(Duration::from_secs(5), house.get("/events?key=c4").go());
    let told = asked.await.expect("it must not hang").problem(500, "damaged");
    let reason = format!("the test damaged `{key}`");
    assert_eq!(told, format!("the stored ledger is damaged: {reason}; run `netstead store check`"));
    house.get("/events?limit=3").go().await.fine();

    let part = format!("events cannot be read in full: {reason}");
    assert_eq!(ready(&house).await, (200, format!("degraded: {part}\n")));
    assert_eq!(metric(&house, "netstead_store_damaged").await.as_deref(), Some("1"));
    let status = house.get("/status").go().await;
    assert_eq!(
        (&status.fine()["state"], &status.body["damage"]),
        (&json!("degraded"), &json!([{"part": "events", "key": key, "reason": reason}]))
    );
    let todo = format!(
        "The store is damaged, and all else is served: {part}. To go on: stop the server, write all that can be read with \
         `netstead store backup --local --leave-out-damaged FILE`, and restore FILE into an empty directory with `netstead \
         store restore`."
    );
    assert_eq!(status.body["todo"], json!([todo]));
    // A key names pools and claims, so a token with scopes is told no more than that.
    let scopes = Scopes { pools: vec!["lan".parse().unwrap()], ..Scopes::default() };
    let token = house.scoped(NewToken { scopes, ..NewToken::new("ann", Role::Read) }).await;
    let status = house.get("/status").by(&token).go().await;
    let told = (&status.fine()["state"], &status.body["damage"], &status.body["todo"]);
    assert_eq!(told, (&json!("degraded"), &Value::Null, &json!([])));
    let doctor = house.get("/doctor").go().await;
    let problems: Vec<&Value> = doctor.fine()["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["state"] == "problem")
        .collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(
        (&problems[0]["about"], &problems[0]["text"]),
        (&json!("store"), &json!(format!("it is damaged: {part}")))
    );
    house.claim("lan", "one-more").await;

    store.mend_keys();
    assert_eq!(house.post("/check").json(&json!({})).go().await.fine()["problems"], json!([]));
    assert_eq!(ready(&house).await, (200, "ok\n".to_owned()));
    assert_eq!(house.get("/status").go().await.fine()["state"], "ready");
}

#[tokio::test]
async fn damage_that_a_check_finds_is_remembered() {
    let (house, store) = house().await;
    let key = damage_an_event(&house, &store).await;
    let report = house.post("/check").json(&json!({})).go().await;
    let problem = report.fine()["problems"][0]["problem"].as_str().unwrap();
    assert!(problem.contains("cannot be read: the test damaged") && problem.contains(&key), "{problem}");
    assert!(
        ready(&house)
            .await
            .1
            .starts_with("degraded: events cannot be read in full: what lies behind it up to")
    );
}

#[tokio::test]
async fn a_backup_says_what_is_damaged_and_may_leave_out_history() {
    let (house, store) = house().await;
    damage_an_event(&house, &store).await;
    house.get("/backup").go().await.problem(500, "damaged");
    assert!(ready(&house).await.1.starts_with("degraded: events"), "and remembers it");
    let told = house.get("/backup").go().await.problem(500, "damaged");
    assert!(
        told.starts_with(
            "the store is damaged: events cannot be read in full: the test damaged `ledger/event/"
        ),
        "{told}"
    );
    assert!(told.contains("; a whole backup cannot be made. To go on: stop the server, write all"), "{told}");

    let file = house.get("/backup?damaged=leave-out").go().await;
    let last: Value = serde_json::from_str(file.text.lines().last().unwrap()).unwrap();
    assert_eq!(last["entries"].as_u64().unwrap(), file.text.lines().count() as u64 - 2);
    assert!(last["left_out"][0].as_str().unwrap().starts_with("events between `ledger/event/"), "{last}");
    house.get("/backup?damaged=perhaps").go().await.invalid(400);

    store.damage_keys("ledger/addr/"..="ledger/addr/~");
    let told = house.get("/backup?damaged=leave-out").go().await.problem(500, "damaged");
    assert!(told.contains("that is more than history"), "{told}");
}

#[tokio::test]
async fn a_daily_backup_that_fails_is_an_alarm_until_one_is_written() {
    let (house, _store) = house().await;
    let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
    let doctor = async || {
        let findings = house.get("/doctor").go().await;
        let findings = findings.fine()["findings"].as_array().unwrap().clone();
        findings.into_iter().find(|one| one["about"] == "backup").unwrap()
    };
    assert_eq!(
        (doctor().await["state"].as_str(), metric(&house, "netstead_backup_age_seconds").await),
        (Some("ok"), None)
    );
    house.backups.succeeded(at("2026-03-01T00:01:00Z"));
    house.backups.failed(at("2026-03-02T00:01:00Z"), "the disk is full".into(), "make room".into());
    house.backups.failed(at("2026-03-02T00:16:00Z"), "the disk is very full".into(), "make room".into());
    let status = house.get("/status").go().await;
    assert_eq!(
        status.fine()["backup"],
        json!({"last": "2026-03-01T00:01:00Z", "failing_since": "2026-03-02T00:01:00Z", "error": "the disk is very full"})
    );
    assert_eq!(
        status.body["todo"],
        json!(["The daily backup cannot be written since 2026-03-02T00:01:00Z, and the newest is of \
                2026-03-01T00:01:00Z: the disk is very full. To go on: make room."])
    );
    assert_eq!(
        doctor().await,
        json!({"state": "problem", "about": "backup", "hint": "make room",
            "text": "none could be written since 2026-03-02T00:01:00Z: the disk is very full"})
    );
    assert_eq!(metric(&house, "netstead_backup_failing").await.as_deref(), Some("1"));
    assert!(metric(&house, "netstead_backup_age_seconds").await.is_some());
    house.backups.succeeded(at("2026-03-02T01:00:00Z"));
    assert_eq!(house.get("/status").go().await.fine()["todo"], json!([]));
    assert_eq!(metric(&house, "netstead_backup_failing").await.as_deref(), Some("0"));
}
