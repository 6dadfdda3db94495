//! Roles and their rights.

use netstead_api::{
    ServeOptions,
    access::{NewToken, Role},
};
use netstead_model::{ManualClock, Span};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

use crate::{
    openapi::{document, operations},
    support::{Ask, House},
};

/// A call of one route, the least role it needs, and what it answers to those who have it.
struct Route {
    method: Method,
    path: &'static str,
    needs: Role,
    body: Value,
    /// The expected status: things are not always there, and it is enough that they were looked for.
    answer: u16,
}

/// Every route.
fn routes() -> Vec<Route> {
    use Role::{Admin, Claim, Read, Write};
    let mut routes = Vec::new();
    let mut add = |line: &'static str, needs: Role, body: Value, answer: u16| {
        let (method, path) = line.split_once(' ').unwrap();
        routes.push(Route { method: method.parse().unwrap(), path, needs, body, answer });
    };
    let none = Value::Null;
    for path in [
        "GET /status",
        "GET /doctor",
        "GET /pools",
        "GET /pools/lan",
        "GET /pools/lan/claims/root",
        "GET /claims",
        "GET /addresses",
        "GET /addresses/10.0.3.50",
        "GET /pools/lan/reservations",
        "GET /reservations",
        "GET /events",
        "GET /events/stream",
        "GET /observations",
        "GET /sources",
        "GET /providers",
        "GET /workloads",
        "GET /zones",
        "GET /plans",
        "GET /records",
        "GET /names/www.home.test",
        "GET /changes",
        "GET /drift",
        "GET /drift/ignored",
        "GET /sessions",
        "GET /pools/lan/blocks?within=10.0.3.0%2F24",
        "GET /pools/lan/usage",
        "GET /usage",
    ] {
        add(path, Read, none.clone(), 200);
    }
    add("GET /cluster", Read, none.clone(), 404);
    // These are asked with tokens, and this server has no pages.
    add("GET /session", Read, none.clone(), 404);
    add("PUT /session", Read, json!({}), 404);
    add("DELETE /session", Read, none.clone(), 404);
    add("POST /sessions", Read, json!({}), 201);
    add("POST /sessions/link", Read, json!({}), 404);
    add("DELETE /sessions/nobody", Read, none.clone(), 404);
    add("GET /plans/nowhere", Read, none.clone(), 404);
    add("GET /plans/nowhere/case", Read, none.clone(), 404);

    add("PUT /pools/lan/claims/k", Claim, json!({}), 201);
    add("POST /pools/lan/claims/k/renew", Claim, json!({}), 200);
    add("POST /pools/lan/claims/k/move", Claim, json!({"key": "k"}), 200);
    add("DELETE /pools/lan/claims/k", Claim, none.clone(), 200);
    add("POST /claims", Claim, json!({"key": "k", "any": ["lan"]}), 200);
    add("POST /bulk", Claim, json!({"entries": [{"release": {"pool": "lan", "key": "k"}}]}), 200);

    add("PUT /pools/new", Write, json!({"network": "10.9.0.0/24"}), 201);
    add("DELETE /pools/new", Write, none.clone(), 200);
    add("PUT /pools/lan/reservations/r", Write, json!({"range": "10.0.3.100"}), 200);
    add("DELETE /pools/lan/reservations/r", Write, none.clone(), 200);
    add("PUT /observations/scan", Write, json!({"seen": []}), 200);
    add("PUT /records/www.home.test/A", Write, json!({"values": ["10.0.3.9"]}), 200);
    add("GET /records/www.home.test/TXT", Read, none.clone(), 404);
    add("DELETE /records/www.home.test/A", Write, none.clone(), 200);
    add("DELETE /records/www.home.test", Write, none.clone(), 200);
    add("POST /adopt", Write, json!({"name": "www.home.test", "provider": "nowhere"}), 404);
    add("POST /rollback", Write, json!({"to": 3, "provider": "nowhere"}), 404);
    add("POST /drift/restore", Write, json!({"pool": "lan", "key": "nothing"}), 404);
    add("POST /drift/ignored", Write, json!({"name": "www.home.test", "reason": "theirs"}), 422);
    add("DELETE /drift/ignored?name=www.home.test", Write, none.clone(), 200);
    add("POST /drift/release", Write, json!({"stray": 7}), 404);
    add("POST /apply", Write, json!({}), 200);
    add("POST /apply/0123456789abcdef", Write, json!({}), 404);
    add("POST /pause", Write, json!({"all": true}), 200);
    add("POST /what-if", Write, json!({"config": ""}), 503);

    add("POST /resume", Admin, json!({}), 200);
    add("GET /tokens", Admin, none.clone(), 200);
    add("POST /tokens", Admin, json!({"subject": "x", "role": "read"}), 201);
    add("DELETE /tokens/nobody", Admin, none.clone(), 404);
    add("POST /recover", Admin, json!({"owner": "3f9a0c51", "provider": "nowhere"}), 404);
    add("POST /clean", Admin, json!({"source": "nobody"}), 404);
    add("DELETE /cluster/members/nobody", Admin, none.clone(), 404);
    add("POST /cluster/nodes", Admin, json!({"address": "10.0.3.9:5302"}), 404);
    add("DELETE /cluster/nodes/nobody", Admin, none.clone(), 404);
    add("GET /backup", Admin, none.clone(), 200);
    add("POST /check", Admin, json!({}), 200);
    routes
}

impl Route {
    /// The request, with the body that belongs to it.
    fn ask(&self, house: &House) -> Ask {
        let ask = house.ask(self.method.clone(), self.path);
        if self.body.is_null() { ask } else { ask.json(&self.body) }
    }

    /// Whether this is the route `{method} {template}` of the document.
    fn is(&self, method: &str, template: &str) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        let (asked, written): (Vec<&str>, Vec<&str>) =
            (path.split('/').collect(), template.split('/').collect());
        self.method.as_str() == method
            && asked.len() == written.len()
            && asked.iter().zip(&written).all(|(asked, written)| asked == written || written.starts_with('{'))
    }
}

#[tokio::test]
async fn no_route_is_forgotten_here() {
    let house = House::open().await;
    let routes = routes();
    for (method, path, _) in operations(&document(&house).await) {
        let template = path.strip_prefix("/api/v1").unwrap();
        assert!(routes.iter().any(|route| route.is(&method, template)), "{method} {path} is asked by nobody");
    }
}

#[tokio::test]
async fn each_role_may_do_what_it_says_and_no_more() {
    let house = House::with_names().await;
    house.claim("lan", "root").await;
    for role in Role::ALL {
        let token = house.token("someone", role).await;
        for route in routes() {
            let Route { method, path, needs, answer, .. } = &route;
            let (ask, said) = (route.ask(&house).by(&token), format!("{role} {method} {path}"));
            if role < *needs {
                let told = ask.go().await.problem(403, "forbidden");
                assert!(told.contains(needs.as_str()) && told.contains(role.as_str()), "{said}: {told}");
            } else {
                // The stream has no end to wait for.
                let got = ask.into_request().send().await.unwrap();
                assert_eq!(got.status().as_u16(), *answer, "{said}");
            }
        }
    }
}

#[tokio::test]
async fn without_a_valid_token_nothing_is_done() {
    let clock = ManualClock::default();
    let house = House::with(clock.shared(), ServeOptions::new("127.0.0.1:0")).await;
    house.pool("lan", json!({"network": "10.0.3.0/24"})).await;
    let short = NewToken { lifetime: Some(Span::from_secs(60)), ..NewToken::new("brief", Role::Admin) };
    let short = house.scoped(short).await;
    house.get("/pools").by(&short).go().await.fine();
    clock.advance(Duration::from_mins(1));

    let other_secret = format!("{}x", house.admin);
    let (id, _) = house.admin.rsplit_once('_').unwrap();
    let wrong = [String::new(), "hello".into(), "nst_a_b".into(), other_secret, id.to_owned(), short.clone()];
    for route in routes() {
        let answer = route.ask(&house).by_nobody().go().await;
        assert!(answer.problem(401, "unauthenticated").contains("netstead token create"));
        assert!(answer.header("www-authenticate").starts_with("Bearer"));
        for token in &wrong {
            let answer = route.ask(&house).by(token).go().await;
            let told = answer.problem(401, "unauthenticated");
            assert!(token.is_empty() || !told.contains(token.as_str()), "{told}");
        }
    }
    let expired = house.get("/pools").by(&short).go().await;
    assert!(expired.problem(401, "unauthenticated").contains("expired at 2001-09-09T01:47:40Z"));
    let basic = house.get("/pools").by_nobody().header("authorization", "Basic cm9vdDpyb290").go().await;
    basic.problem(401, "unauthenticated");
    // Neither is a token in another place one.
    house
        .get(&format!("/pools?token={}", house.admin))
        .by_nobody()
        .go()
        .await
        .problem(401, "unauthenticated");
    house.get("/pools/new").go().await.problem(404, "no-such-pool");
}

#[tokio::test]
async fn a_token_of_role_claim_forces_nothing_out_of_a_reservation() {
    let house = House::with_lan().await;
    let (bob, eve) = (house.token("bob", Role::Claim).await, house.token("eve", Role::Write).await);
    let path = "/pools/lan/reservations/spare";
    house.put(path).json(&json!({"range": "10.0.3.54-10.0.3.55"})).go().await.fine();
    let forced = |address: &str| json!({"address": address, "force": true});
    let refused = house.put("/pools/lan/claims/b").by(&bob).json(&forced("10.0.3.54")).go().await;
    assert!(refused.problem(403, "force-denied").contains("only a caller who may write can force it"));
    assert_eq!(refused.body["facts"]["owner"], "root");
    house.put("/pools/lan/claims/e").by(&eve).json(&forced("10.0.3.54")).go().await.created();
}

#[tokio::test]
async fn a_token_of_role_claim_touches_its_own_claims_only() {
    let house = House::with_lan().await;
    let (ann, bob) = (house.token("ann", Role::Claim).await, house.token("bob", Role::Claim).await);
    house.put("/pools/lan/claims/a").by(&ann).json(&json!({})).go().await.created();
    let path = "/pools/lan/claims/a";
    house.delete(path).by(&bob).go().await.problem(403, "not-yours");
    house
        .post(&format!("{path}/renew"))
        .by(&bob)
        .json(&json!({"ttl": "1h"}))
        .go()
        .await
        .problem(403, "not-yours");
    house
        .post(&format!("{path}/move"))
        .by(&bob)
        .json(&json!({"key": "b"}))
        .go()
        .await
        .problem(403, "not-yours");
    house.put(path).by(&bob).json(&json!({"adopt": true})).go().await.problem(403, "not-yours");
    let stolen = json!({"entries": [{"claim": {"key": "a", "any": ["lan"], "claim": {"adopt": true}}}]});
    let refused = house.post("/bulk").by(&bob).json(&stolen).go().await;
    assert_eq!(refused.fine()["results"][0]["failed"]["type"], "urn:netstead:not-yours");
    let named = house.put("/pools/lan/claims/x").by(&bob).json(&json!({"owner": "ann"})).go().await;
    named.problem(403, "forbidden");
    assert_eq!(named.body["field"], "owner");
    house.put("/pools/lan/claims/x").by(&bob).json(&json!({"owner": "bob"})).go().await.created();
    let gift = json!({"key": "a", "owner": "bob"});
    house.post(&format!("{path}/move")).by(&ann).json(&gift).go().await.problem(403, "forbidden");
    let still = house.get(path).go().await;
    assert_eq!((still.fine()["owner"].as_str(), &still.body["ttl"]), (Some("ann"), &json!(null)));
    // Two tokens of one subject are the same owner.
    let ann_too = house.token("ann", Role::Claim).await;
    assert_eq!(house.delete(path).by(&ann_too).go().await.fine()["outcome"], "released");
}
