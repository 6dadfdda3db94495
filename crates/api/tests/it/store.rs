//! Backup, check and resume.

use std::{io::Write as _, sync::Arc};

use netstead_api::{
    ServeOptions,
    access::{Role, survives_restore},
    cluster::FORMAT,
};
use netstead_ledger::backup;
use netstead_model::SystemClock;
use netstead_store::{Commit, FaultyStore, MemoryStore};
use serde_json::{Value, json};

use crate::support::House;

#[tokio::test]
async fn a_backup_restores_into_a_paused_ledger_that_can_be_resumed() {
    let house = House::with_lan().await;
    house.claim("lan", "web").await;
    house.token("ann", Role::Claim).await;
    let file = house.get("/backup").go().await;
    assert_eq!((file.status, file.header("content-type")), (200, "application/jsonl"));
    let last: Value = serde_json::from_str(file.text.lines().last().unwrap()).unwrap();
    assert_eq!(last["entries"].as_u64().unwrap(), file.text.lines().count() as u64 - 2);

    let mut saved = tempfile::NamedTempFile::new().unwrap();
    saved.write_all(file.text.as_bytes()).unwrap();
    let store = Arc::new(MemoryStore::new());
    backup::restore(&*store, &SystemClock, saved.path(), FORMAT, survives_restore).await.unwrap();
    let restored = House::over(store, SystemClock::shared(), ServeOptions::new("127.0.0.1:0")).await;
    // Its tokens were revoked, but for the local admin's.
    assert_eq!(restored.tokens.list().len(), 2);
    restored.get("/pools").by(&house.admin).go().await.fine();
    assert_ne!(restored.ledger.id(), house.ledger.id());
    assert_eq!(restored.claim("lan", "web").await, "10.0.3.50");
    restored.put("/pools/lan/claims/new").json(&json!({})).go().await.problem(409, "paused");
    let status = restored.get("/status").go().await;
    assert!(
        status.fine()["paused"].as_bool().unwrap()
            && status.body["todo"].to_string().contains("netstead resume")
    );
    assert_eq!(restored.post("/resume").json(&json!({})).go().await.fine(), &json!({}));
    assert_eq!(restored.claim("lan", "new").await, "10.0.3.51");
}

#[tokio::test]
async fn a_check_finds_what_should_not_be() {
    let house = House::with_lan().await;
    house.claim("lan", "web").await;
    let clean = house.post("/check").json(&json!({})).go().await;
    assert_eq!(clean.fine()["problems"], json!([]));
    assert!(clean.body["keys"].as_u64().unwrap() > 3);
    house.store.commit(Commit::new().put("ledger/pool/ghost", "1{")).await.unwrap();
    let dirty = house.post("/check").go().await;
    assert_eq!(dirty.fine()["problems"][0]["key"], "ledger/pool/ghost");
    assert!(dirty.body["problems"][0]["repairable"].is_boolean());
}

#[tokio::test]
async fn a_backup_that_cannot_begin_says_why() {
    let way = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let options = ServeOptions::new("127.0.0.1:0");
    let house = House::over(way.clone(), SystemClock::shared(), options).await;
    way.set_outage(Some("most nodes are away"));
    let answer = house.get("/backup").go().await;
    answer.problem(503, "unavailable");
    assert!(answer.text.contains("most nodes are away"), "{}", answer.text);
}
