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
    assert_eq!(house.get("/records/www.home.test/A").go().await.fine(), &wanted);
    house.get("/records/www.home.test/AAAA").go().await.problem(404, "no-such-record");
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
        ("/records/_netstead-blue.www.home.test/TXT", json!({"values": ["\"netstead/1\""]}), 422, "name"),
        ("/records/_netstead-fence-blue.home.test/A", json!({"values": ["10.0.3.9"]}), 422, "name"),
        ("/records/0123456789ab._netstead-x.home.test/TXT", json!({"values": ["\"x\""]}), 422, "name"),
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
        house.get("/workloads"),
        house.post("/apply").json(&json!({})),
        house.post("/pause").json(&json!({"all": true})),
    ] {
        ask.by(&token).go().await.problem(403, "forbidden");
    }
}

#[tokio::test]
async fn a_pause_is_told_and_ended() {
    let house = House::with_names().await;
    let paused = house.post("/pause").json(&json!({"all": true, "for": "2h", "reason": "moving"})).go().await;
    let paused = paused.fine();
    assert_eq!((&paused["reason"], &paused["by"]), (&json!("moving"), &json!("root")));
    assert!(paused["until"].is_string(), "{paused}");
    house.post("/resume").json(&json!({})).go().await.fine();
    house.post("/resume").json(&json!({})).go().await.fine();
}

#[tokio::test]
async fn a_pause_says_what_it_is_of() {
    let house = House::with_names().await;
    let told = "all: say what to pause: `\"all\": true`, or a `provider`, or a `provider` and a `zone` of it";
    for ask in [
        house.post("/pause"),
        house.post("/pause").json(&json!({})),
        house.post("/pause").json(&json!({"all": false, "reason": "moving"})),
    ] {
        assert_eq!(ask.go().await.invalid(422), ("all".into(), told.into()));
    }
    let both = house.post("/pause").json(&json!({"all": true, "provider": "lan"})).go().await;
    assert_eq!(both.invalid(422), ("all".into(), "all: it goes without `provider` and `zone`".into()));
    let changes = house.get("/changes").go().await;
    assert_eq!(changes.fine()["items"], json!([]), "nothing was paused");
    // Resuming and applying everything does no harm, and stays as it was.
    house.post("/resume").go().await.fine();
    house.post("/apply").go().await.fine();
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

#[tokio::test]
async fn what_happened_to_names_is_listed_in_pages() {
    let house = House::with_names().await;
    for (name, address) in [("www", "10.0.3.9"), ("db", "10.0.3.8"), ("www", "10.0.3.7")] {
        let record = json!({"values": [address]});
        house.put(&format!("/records/{name}.home.test/A")).json(&record).go().await.fine();
    }
    house.put("/records/www.other.test/A").json(&json!({"values": ["10.0.3.6"]})).go().await.fine();
    house.post("/pause").json(&json!({"all": true, "reason": "moving"})).go().await.fine();
    let texts = |body: &serde_json::Value| -> Vec<String> {
        let items = body["items"].as_array().unwrap().iter();
        items.map(|item| item["text"].as_str().unwrap().to_owned()).collect()
    };
    let all = house.get("/changes").go().await;
    let all = all.fine();
    assert_eq!(texts(all).len(), 5);
    let paused = &all["items"][0];
    assert_eq!((&paused["what"], &paused["by"]), (&json!("paused"), &json!("root")));
    assert!(paused["at"].is_string() && paused["id"].is_string(), "{paused}");
    let of_www = house.get("/changes?name=www.home.test&order=oldest").go().await;
    assert_eq!(texts(of_www.fine()), ["A 10.0.3.9 was set by hand", "A 10.0.3.7 was set by hand"]);
    let ours = house.get("/changes?what=set&since=1h").go().await;
    assert_eq!(texts(ours.fine()).len(), 4);
    assert_eq!(texts(house.get("/changes?until=1h").go().await.fine()).len(), 0);

    let (mut paged, mut place) = (Vec::new(), String::new());
    loop {
        let page = house.get(&format!("/changes?limit=2{place}")).go().await;
        paged.extend(texts(page.fine()));
        let Some(next) = page.fine()["next"].as_str() else { break };
        place = format!("&after={next}");
    }
    assert_eq!(paged, texts(all));
    for (query, field) in [
        ("after=17.0.0", "after"),
        ("after=x:17.0.0", "after"),
        ("what=nonsense", "what"),
        ("order=up", "order"),
        ("since=yesterday", "since"),
        ("provider=a%20b", "provider"),
        ("zone=a..b", "zone"),
        ("limit=0", "limit"),
        ("zoen=home.test", "zoen"),
    ] {
        let (named, told) = house.get(&format!("/changes?{query}")).go().await.invalid(400);
        assert_eq!(named, field, "{query}: {told}");
    }
    house.get("/changes?after=00000000:1.0.0").go().await.problem(410, "gone");

    // A token for one zone shows nothing of the others.
    let zones = vec!["home.test".parse().unwrap()];
    let scopes = Scopes { zones, ..Scopes::default() };
    let token = house.scoped(NewToken { scopes, ..NewToken::new("ci", Role::Read) }).await;
    let seen = house.get("/changes").by(&token).go().await;
    assert_eq!(texts(seen.fine()).len(), 3, "{:?}", seen.fine());
}
