//! Answers to claims in a pool with a backend: bound, refused, without an answer, and waiting.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use netstead_api::ServeOptions;
use netstead_ledger::{
    Backends, DrawOptions, DrawWorker, Options, Role as LedgerRole, contract::FaultyBackend,
};
use netstead_model::{PoolBackend, SystemClock};
use netstead_store::MemoryStore;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::{Answer, House};

/// A server whose pool `lan` draws from the faulty backend `office`, which has two addresses.
struct Branch {
    house: House,
    office: Arc<FaultyBackend>,
    _worker: DropGuard,
}

impl Branch {
    async fn open() -> Self {
        let (office, backends) =
            (Arc::new(FaultyBackend::new("10.0.3.50-10.0.3.51".parse().unwrap())), Backends::default());
        let one: Arc<dyn PoolBackend> = office.clone();
        backends.configure(BTreeMap::from([("office".parse().unwrap(), one)]));
        let house = House::build(
            Arc::new(MemoryStore::new()),
            SystemClock::shared(),
            ServeOptions::new("127.0.0.1:0"),
            Options::default(),
            async |api, _, _, _| api.with_backends(&backends),
        )
        .await;
        let LedgerRole::Leading { epoch } = *house.ledger.role().borrow() else { panic!("it does not lead") };
        let (ledger, stop) = (house.ledger.clone(), CancellationToken::new());
        let worker = DrawWorker { ledger, epoch, backends, options: DrawOptions::default() };
        let stopped = stop.clone();
        tokio::spawn(async move { worker.run(&stopped).await });
        house.pool("lan", json!({"backend": "office", "backend_pool": "lan", "cooldown": "0"})).await;
        Self { house, office, _worker: stop.drop_guard() }
    }

    async fn claim(&self, key: &str, claim: Value) -> Answer {
        self.house.put(&format!("/pools/lan/claims/{key}")).json(&claim).go().await
    }

    /// As [`Branch::claim`], by a caller that gives it so many seconds.
    async fn claim_within(&self, key: &str, seconds: &str, claim: Value) -> Answer {
        let asked = self.house.put(&format!("/pools/lan/claims/{key}"));
        asked.header("netstead-timeout", seconds).json(&claim).go().await
    }
}

#[tokio::test]
async fn a_claim_is_answered_with_the_address_of_the_backend() {
    let branch = Branch::open().await;
    let made = branch.claim("web", json!({})).await;
    assert_eq!(made.created()["address"], "10.0.3.50");
    assert_eq!((&made.body["state"], made.body.get("why")), (&json!("bound"), None), "{made:?}");
    let again = branch.claim("web", json!({})).await;
    assert_eq!((again.status, &again.body["id"]), (200, &made.body["id"]), "{again:?}");
}

#[tokio::test]
async fn a_refusal_of_the_backend_is_the_answer_and_leaves_nothing() {
    let branch = Branch::open().await;
    for key in ["a", "b"] {
        branch.claim(key, json!({})).await.created();
    }
    let full = branch.claim("c", json!({})).await;
    let told = full.problem(409, "backend-refuses");
    assert!(told.contains("no address is free"), "{told}");
    let facts = json!({"pool": "lan", "backend": "office", "kind": "exhausted"});
    assert_eq!(full.body["facts"], facts, "{full:?}");
    let held = branch.claim("d", json!({"address": "10.0.3.51"})).await;
    assert_eq!(held.status, 409, "{held:?}");
    let kept: Vec<String> = branch.office.held();
    assert_eq!(kept.len(), 2, "{kept:?}");
}

#[tokio::test]
async fn a_backend_that_is_away_is_503_with_the_key_to_ask_again() {
    let branch = Branch::open().await;
    branch.office.set(|faults| faults.away = true);
    let asked = branch.claim_within("web", "1.5", json!({})).await;
    let told = asked.problem(503, "backend-does-not-answer");
    assert!(told.contains("ask again with the key `web`") && told.contains("it cannot be reached"), "{told}");
    assert_eq!(asked.body["facts"], json!({"pool": "lan", "key": "web"}), "{asked:?}");
    assert_eq!(asked.header("retry-after"), "5");
    let waiting = branch.house.get("/pools/lan/claims/web").go().await;
    assert_eq!(waiting.fine()["state"], "waiting", "{waiting:?}");

    branch.office.set(|faults| faults.away = false);
    let bound = async {
        loop {
            let again = branch.claim("web", json!({})).await;
            if (200..300).contains(&again.status) {
                break again;
            }
        }
    };
    let bound = timeout(Duration::from_secs(30), bound).await.unwrap();
    assert_eq!(bound.body["address"], "10.0.3.50", "{bound:?}");
    assert_eq!(branch.office.held().len(), 1);
}

#[tokio::test]
async fn a_caller_that_waits_gets_202_and_the_reason() {
    let branch = Branch::open().await;
    branch.office.set(|faults| faults.away = true);
    for (key, claim) in [
        ("waits", json!({"wait": "1s"})),
        ("kept", json!({"keep": true})),
        ("both", json!({"wait": "1s", "keep": true})),
    ] {
        let asked = branch.claim(key, claim).await;
        assert_eq!((asked.status, &asked.body["state"]), (202, &json!("waiting")), "{asked:?}");
        assert_eq!(asked.body.get("address"), None, "{asked:?}");
        let why = asked.body["why"].as_str().unwrap_or_default();
        assert!(!why.is_empty(), "{asked:?}");
    }
    branch.office.set(|faults| faults.away = false);
    let bound = branch.claim("kept", json!({"wait": "30s"})).await;
    assert!(bound.fine()["address"].as_str().unwrap().starts_with("10.0.3.5"), "{bound:?}");
}

#[tokio::test]
async fn choices_of_pools_and_bulks_are_refused_with_the_reason() {
    let branch = Branch::open().await;
    branch.house.pool("own", json!({"ranges": ["10.0.4.1-10.0.4.9"]})).await;
    for from in [json!({"key": "web", "each": ["lan", "own"]}), json!({"key": "web", "any": ["own", "lan"]})]
    {
        let refused = branch.house.post("/claims").json(&from).go().await;
        assert_eq!(refused.status, 422, "{refused:?}");
        assert!(refused.text.contains("backend"), "{refused:?}");
    }
    assert_eq!(branch.office.held(), Vec::<String>::new());
}
