//! Names by REST.

use netstead_api::access::{NewToken, Role, Scopes};
use serde_json::json;

use crate::support::House;

#[tokio::test]
async fn a_record_is_set_replaced_and_deleted() {
    let house = House::with_names().await;
    let ask = || house.put("/records/WWW.home.test/a");
    let set = ask().json(&json!({"values": ["10.0.3.9"], "ttl": 60})).go().await;
    let wanted = json!({"name": "www.home.test", "type": "A", "values": ["10.0.3.9"], "ttl": 60});
    assert_eq!(set.fine(), &wanted);
    assert_eq!(ask().json(&json!({"values": ["10.0.3.9"], "ttl": 60})).go().await.fine(), &wanted);
    house.post("/apply").json(&json!({})).go().await.fine();
    let workloads = house.get("/workloads?source=manual").go().await;
    assert_eq!(workloads.fine()["items"][0]["names"], json!(["www.home.test"]));
    let why = house.get("/names/www.home.test").go().await;
    assert_eq!(why.fine()["name"], "www.home.test");
    let gone = house.delete("/records/www.home.test/A").go().await;
    assert_eq!(gone.fine(), &json!({"deleted": true}));
    assert_eq!(house.delete("/records/www.home.test").go().await.fine(), &json!({"deleted": false}));
}

#[tokio::test]
async fn what_is_wrong_with_a_record_is_named() {
    let house = House::with_names().await;
    for (path, body, status, field) in [
        ("/records/www..test/A", json!({"values": ["10.0.3.9"]}), 400, "name"),
        ("/records/www.home.test/ABC", json!({"values": ["10.0.3.9"]}), 400, "type"),
        ("/records/www.home.test/A", json!({"values": ["10.0.3.9", "x"]}), 400, "values[1]"),
        ("/records/www.home.test/A", json!({"values": []}), 422, "values"),
        ("/records/www.home.test/A", json!({"values": ["10.0.3.9"], "tll": 60}), 400, "tll"),
        ("/records/www.home.test/A", json!({"values": ["10.0.3.9"], "ttl": 4_294_967_295_u32}), 422, "ttl"),
        ("/records/www.home.test/CNAME", json!({"values": ["a.test.", "b.test."]}), 422, "values"),
    ] {
        let (named, told) = house.put(path).json(&body).go().await.invalid(status);
        assert_eq!(named, field, "{path} {body}: {told}");
    }
    house.get("/records?state=fine").go().await.invalid(400);
    house.post("/pause").json(&json!({"zone": "home.test"})).go().await.invalid(422);
    house.post("/pause").json(&json!({"provider": "lan"})).go().await.problem(404, "no-such-provider");
    house.post("/apply").json(&json!({"provider": "lan"})).go().await.problem(404, "no-such-provider");
    house.post("/apply/0123456789abcdef").json(&json!({})).go().await.problem(404, "no-such-plan");
    house.get("/plans/lan").go().await.problem(404, "no-such-provider");
}

#[tokio::test]
async fn a_token_of_a_zone_writes_there_and_nowhere_else() {
    let house = House::with_names().await;
    let zones = vec!["home.test".parse().unwrap()];
    let scopes = Scopes { zones, ..Scopes::default() };
    let token = house.scoped(NewToken { scopes, ..NewToken::new("ci", Role::Write) }).await;
    let record = json!({"values": ["10.0.3.9"]});
    house.put("/records/www.home.test/A").by(&token).json(&record).go().await.fine();
    for ask in [
        house.put("/records/www.other.test/A").json(&record),
        house.delete("/records/www.athome.test"),
        house.get("/names/www.other.test"),
        house.get("/plans"),
        house.get("/workloads"),
        house.post("/apply").json(&json!({})),
        house.post("/pause").json(&json!({})),
    ] {
        ask.by(&token).go().await.problem(403, "forbidden");
    }
}

#[tokio::test]
async fn a_pause_is_told_and_ended() {
    let house = House::with_names().await;
    let paused = house.post("/pause").json(&json!({"for": "2h", "reason": "moving"})).go().await;
    let paused = paused.fine();
    assert_eq!((&paused["reason"], &paused["by"]), (&json!("moving"), &json!("root")));
    assert!(paused["until"].is_string(), "{paused}");
    house.post("/resume").json(&json!({})).go().await.fine();
    house.post("/resume").json(&json!({})).go().await.fine();
}

#[tokio::test]
async fn without_an_engine_names_are_not_ready_and_the_rest_is() {
    let house = House::with_lan().await;
    house.get("/records").go().await.problem(503, "not-ready");
    house.get("/status").go().await.fine();
    house.post("/resume").json(&json!({})).go().await.fine();
}

#[tokio::test]
async fn what_is_wrong_with_taking_over_or_back_is_named() {
    let house = House::with_names().await;
    for (path, body, status, field) in [
        ("/adopt", json!({}), 422, "name"),
        ("/adopt", json!({"name": "www.home.test", "from": "dnsweaver"}), 422, "name"),
        ("/adopt", json!({"name": "www..test"}), 400, "name"),
        ("/adopt", json!({"name": "www.home.test", "id": "home"}), 422, "from"),
        ("/adopt", json!({"from": "dnsweaver", "type": "A"}), 422, "type"),
        ("/adopt", json!({"from": "octodns"}), 400, "from"),
        ("/recover", json!({"owner": "default"}), 400, "owner"),
        ("/recover", json!({"owner": "3f9a0c51", "dry": true}), 400, "dry"),
        ("/clean", json!({}), 422, "source"),
        ("/clean", json!({"source": "a", "provider": "b"}), 422, "source"),
        ("/clean", json!({"source": "a", "forget": true}), 422, "forget"),
        ("/rollback", json!({"to": 3}), 422, "to"),
    ] {
        let (named, told) = house.post(path).json(&body).go().await.invalid(status);
        assert_eq!(named, field, "{path} {body}: {told}");
    }
    for (path, body, problem) in [
        ("/adopt", json!({"name": "www.home.test", "provider": "lan"}), "no-such-provider"),
        ("/recover", json!({"owner": "3f9a0c51", "provider": "lan"}), "no-such-provider"),
        ("/clean", json!({"source": "nobody"}), "no-such-source"),
        ("/clean", json!({"provider": "nobody"}), "no-such-provider"),
        ("/clean", json!({"provider": "nobody", "forget": true}), "no-such-provider"),
        ("/rollback", json!({"to": 3, "provider": "lan"}), "no-such-provider"),
    ] {
        house.post(path).json(&body).go().await.problem(404, problem);
    }
    house.post("/clean").json(&json!({"source": "manual"})).go().await.problem(409, "attached");
    // Giving up and recovering concern everything.
    let token = house.scoped(NewToken::new("ci", Role::Write)).await;
    for (path, body) in [("/clean", json!({"source": "x"})), ("/recover", json!({"owner": "3f9a0c51"}))] {
        house.post(path).by(&token).json(&body).go().await.problem(403, "forbidden");
    }
}
