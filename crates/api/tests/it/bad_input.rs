//! Bad input of any kind: a 4xx that names the field, and nothing changed.

use serde_json::{Value, json};

use crate::support::{Answer, House};

/// The field a problem names; asserts that nothing changed.
async fn field(house: &House, answer: Answer, status: u16) -> String {
    let (field, detail) = answer.invalid(status);
    assert!(detail.contains(&field), "{detail}");
    let pools = house.get("/pools").go().await;
    assert_eq!(pools.fine()["items"].as_array().unwrap().len(), 1, "{detail}");
    assert_eq!(house.get("/claims").go().await.fine()["items"], json!([]), "{detail}");
    field
}

#[tokio::test]
async fn pools_that_cannot_be() {
    let house = House::with_lan().await;
    let cases: [(Value, u16, &str); 14] = [
        (json!({"ranges": ["10.9.0.9-10.9.0.5"]}), 400, "ranges[0]"),
        (json!({"ranges": ["10.9.0.1-10.9.0.5", "10.9.0.9-fd00::1"]}), 400, "ranges[1]"),
        (json!({"ranges": ["10.9.0.1-10.9.0.5", "fd00::1-fd00::9"]}), 422, "ranges"),
        (json!({"network": "fd00::/129"}), 400, "network"),
        (json!({"ranges": ["52:54:00:00:00-52:54:00:00:ff"]}), 400, "ranges[0]"),
        (json!({}), 422, "ranges"),
        (json!({"network": "10.9.0.0/24", "colour": "blue"}), 400, "colour"),
        (json!({"network": 7}), 400, "network"),
        (json!({"network": "10.9.0.0/24", "labels": {"env": 7}}), 400, "labels.env"),
        (json!({"network": "10.9.0.0/24", "sticky": "yes"}), 400, "sticky"),
        (json!({"network": "10.9.0.0/24", "max_per_owner": -1}), 400, "max_per_owner"),
        (json!({"network": "10.9.0.0/24", "max_per_owner": 0}), 422, "max_per_owner"),
        (json!({"network": "10.9.0.0/24", "cooldown": "soon"}), 400, "cooldown"),
        (json!({"network": "10.9.0.0/24", "description": "x".repeat(1001)}), 422, "description"),
    ];
    for (pool, status, named) in cases {
        let answer = house.put("/pools/new").json(&pool).go().await;
        assert_eq!(field(&house, answer, status).await, named, "{pool}");
    }
}

#[tokio::test]
async fn names_that_cannot_be() {
    let house = House::with_lan().await;
    let long = "x".repeat(300);
    let pool = json!({"network": "10.9.0.0/24"});
    for name in [&*long, "Upper", "-x", "a%20b", "%FF"] {
        let answer = house.put(&format!("/pools/{name}")).json(&pool).go().await;
        let named = field(&house, answer, 400).await;
        assert!(named == "pool" || named == "path", "{name}: {named}");
    }
    for key in [&*long, "%20x", "a%00b", "%FF"] {
        let answer = house.put(&format!("/pools/lan/claims/{key}")).json(&json!({})).go().await;
        let named = field(&house, answer, 400).await;
        assert!(named == "key" || named == "path", "{key}: {named}");
    }
    // An empty name is another path.
    house.put("/pools/").json(&pool).go().await.problem(404, "not-found");
    house.put("/pools/lan/claims/").json(&json!({})).go().await.problem(404, "not-found");
    let empty = json!({"key": "", "any": ["lan"]});
    assert_eq!(field(&house, house.post("/claims").json(&empty).go().await, 400).await, "key");
    let empty = json!({"key": "k", "any": [""]});
    assert_eq!(field(&house, house.post("/claims").json(&empty).go().await, 400).await, "any[0]");
}

#[tokio::test]
async fn claims_that_cannot_be() {
    let house = House::with_lan().await;
    let many: Vec<String> = (0..33).map(|number| format!("h{number}.test")).collect();
    let cases: [(Value, u16, &str); 12] = [
        (json!({"address": "10.0.3.999"}), 400, "address"),
        (json!({"address": "10.0.3.60", "prefer": "10.0.3.61"}), 422, "prefer"),
        (json!({"address": "10.0.3.0/24", "length": 25}), 422, "length"),
        (json!({"length": 64}), 422, "length"),
        (json!({"length": 640}), 400, "length"),
        (json!({"ttl": "tomorrow"}), 400, "ttl"),
        (json!({"hostnames": ["ok.test", "-bad"]}), 400, "hostnames[1]"),
        (json!({"hostnames": many}), 422, "hostnames"),
        (json!({"labels": {"a b": "c"}}), 400, "labels.a b"),
        (json!({"owner": ""}), 400, "owner"),
        (json!({"adress": "10.0.3.60"}), 400, "adress"),
        (json!({"wait": 5}), 400, "wait"),
    ];
    for (claim, status, named) in cases {
        let answer = house.put("/pools/lan/claims/k").json(&claim).go().await;
        assert_eq!(field(&house, answer, status).await, named, "{claim}");
    }
    house.put("/pools/wan/claims/k").json(&json!({})).go().await.problem(404, "no-such-pool");
    let nested = json!({"key": "k", "any": ["lan"], "claim": {"labels": {"env": 7}}});
    assert_eq!(field(&house, house.post("/claims").json(&nested).go().await, 400).await, "claim.labels.env");
    let answer = house.delete("/pools/lan/claims/k?id=17").go().await;
    assert_eq!(field(&house, answer, 400).await, "id");
}

#[tokio::test]
async fn bodies_that_cannot_be() {
    let house = House::with_lan().await;
    let put = || house.put("/pools/new");
    put().body("application/json", "{").go().await.invalid(400);
    put().body("application/json", "[]").go().await.invalid(400);
    put().body("application/json", "null").go().await.invalid(400);
    put().body("application/json", b"{\"network\": \"\xff\"}".to_vec()).go().await.invalid(400);
    put().body("application/json", "{} {}").go().await.invalid(400);
    put().body("application/json", "[".repeat(100_000)).go().await.invalid(400);
    put().body("text/plain", "{}").go().await.problem(415, "unsupported-media-type");
    put()
        .body("application/x-www-form-urlencoded", "network=10.9.0.0/24")
        .go()
        .await
        .problem(415, "unsupported-media-type");
    put().body("application/json; charset=utf-8", "{}").go().await.invalid(422);
    house.get("/pools/new").go().await.problem(404, "no-such-pool");
}

#[tokio::test]
async fn a_body_of_50_mb_is_refused_with_an_answer() {
    let house = House::with_lan().await;
    let body = format!("{{\"description\": \"{}\"}}", "x".repeat(50_000_000));
    let answer = house.put("/pools/new").body("application/json", body.clone()).go().await;
    assert!(answer.problem(413, "too-large").contains("1 MiB"));
    // The same without a length in front.
    let chunks =
        futures::stream::iter(body.into_bytes().chunks(1 << 16).map(<[u8]>::to_vec).collect::<Vec<_>>());
    let chunks = futures::StreamExt::map(chunks, Ok::<_, std::io::Error>);
    let answer = house.post("/bulk").body("application/json", reqwest::Body::wrap_stream(chunks)).go().await;
    assert!(answer.problem(413, "too-large").contains("8 MiB"));
    house.get("/pools/new").go().await.problem(404, "no-such-pool");
}

#[tokio::test]
async fn parameters_and_headers_that_cannot_be() {
    let house = House::with_lan().await;
    for (path, named) in [
        ("/pools?colour=blue", "colour"),
        ("/pools?limit=0", "limit"),
        ("/pools?limit=1001", "limit"),
        ("/pools?limit=ten", "limit"),
        ("/pools?vrf=Not%20One", "vrf"),
        ("/pools?selector=%3Dx", "selector"),
        ("/pools?stale=yes", "stale"),
        ("/pools?at_least=x", "at_least"),
        ("/pools?limit=1&limit=2", "limit"),
        ("/claims?pool=", "pool"),
        ("/addresses?state=broken", "state"),
        ("/addresses?within=10.0.0.9-10.0.0.1", "within"),
        ("/addresses/10.0.0.256", "address"),
        ("/addresses/52:54:00:00:00", "address"),
        ("/events?what=exploded", "what"),
        ("/events?since=yesterday", "since"),
        ("/events?order=random", "order"),
        ("/events?after=7", "after"),
        ("/events/stream?after=x", "after"),
        ("/observations?after=x", "after"),
        ("/status?verbose=1", "verbose"),
    ] {
        assert_eq!(field(&house, house.get(path).go().await, 400).await, named, "{path}");
    }
    let answer = house.get("/pools").header("netstead-timeout", "soon").go().await;
    assert_eq!(answer.invalid(400).0, "Netstead-Timeout");
    house.get("/events/stream").header("last-event-id", "x").go().await.invalid(400);
}
