//! Every route, asked with tokens that are for one of two tenants.

use netstead_api::access::{NewToken, Role, Scopes};
use netstead_engine::Setup;
use netstead_model::{ProviderError, View};
use netstead_plan::Limits;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    dns_server::{DnsServer, Seen, workload},
    openapi::{document, operations},
    support::{Answer, Ask, House},
    tenants::{Tenants, tells_hidden},
};

/// Effect of a token's scope on a route.
enum Class {
    /// It says nothing of pools and names, and answers with this.
    Same(u16),
    /// It concerns everything: only a token without scopes may ask.
    Everything,
    /// Leaves out everything that is out of scope.
    Filtered,
    /// It is about what it names: what it answers within the scope, and asks that are out of it.
    Named(u16, Vec<(&'static str, Value)>),
    /// A stream of what is in scope, which has no end.
    Stream,
}

struct Route {
    method: Method,
    path: &'static str,
    body: Value,
    needs: Role,
    class: Class,
}

/// Every route, in an order in which each finds what it needs. A new route has to be put in here.
#[expect(clippy::too_many_lines, reason = "one row for each route")]
fn routes() -> Vec<Route> {
    use Class::{Everything, Filtered, Named, Same, Stream};
    use Role::{Admin, Claim, Read, Write};
    let mut routes = Vec::new();
    let mut add = |line: &'static str, needs: Role, body: Value, class: Class| {
        let (method, path) = line.split_once(' ').unwrap();
        routes.push(Route { method: method.parse().unwrap(), path, body, needs, class });
    };
    let none = || Value::Null;
    let outside = |path: &'static str| vec![(path, Value::Null)];

    add("GET /cluster", Read, none(), Same(404));
    add("GET /session", Read, none(), Same(404));
    add("PUT /session", Read, json!({}), Same(404));
    add("DELETE /session", Read, none(), Same(404));
    add("GET /sessions", Read, none(), Same(200));
    add("POST /sessions", Read, json!({}), Same(201));
    add("POST /sessions/link", Read, json!({}), Same(404));
    add("DELETE /sessions/nobody", Read, none(), Same(404));
    for path in [
        "GET /status",
        "GET /pools",
        "GET /claims",
        "GET /addresses",
        "GET /reservations",
        "GET /events",
        "GET /observations",
        "GET /sources",
        "GET /providers",
        "GET /zones",
        "GET /plans",
        "GET /records",
        "GET /changes",
    ] {
        add(path, Read, none(), Filtered);
    }
    // These pools are too young for a forecast: see `usage::a_token_with_scopes_sees_its_own_pools_only`.
    add("GET /usage", Read, none(), Named(200, Vec::new()));
    // No pool of these has a backend, so nothing differs from one.
    add("GET /drift", Read, none(), Named(200, Vec::new()));
    add("GET /drift/ignored", Read, none(), Named(200, Vec::new()));
    let lost = json!({"pool": "a", "key": "nothing"});
    let hidden = vec![("/drift/restore", json!({"pool": "hidden", "key": "hidden-key"}))];
    add("POST /drift/restore", Write, lost, Named(404, hidden));
    add("POST /drift/release", Write, json!({"stray": 7}), Everything);
    add("GET /events/stream", Read, none(), Stream);
    for (path, out) in [
        ("GET /pools/a", "/pools/hidden"),
        ("GET /pools/a/claims/mine", "/pools/hidden/claims/hidden-key"),
        ("GET /pools/full/claims/later", "/pools/hidden-full/claims/later"),
        ("GET /pools/a/reservations", "/pools/hidden/reservations"),
        ("GET /pools/a/blocks?within=10.1.0.0%2F24", "/pools/hidden/blocks?within=10.2.0.0%2F24"),
        ("GET /pools/a/usage", "/pools/hidden/usage"),
        ("GET /addresses/10.1.0.1", "/addresses/10.2.0.1"),
        ("GET /names/mine.a.test", "/names/hidden-key.hidden.test"),
    ] {
        add(path, Read, none(), Named(200, outside(out)));
    }
    add(
        "GET /plans/shared",
        Read,
        none(),
        Named(200, vec![("/plans/hidden-dns", none()), ("/plans/nowhere", none())]),
    );
    for (line, needs, body) in [
        ("GET /doctor", Read, none()),
        ("GET /workloads", Read, none()),
        ("GET /plans/shared/case", Read, none()),
        ("POST /what-if", Write, json!({"config": ""})),
        ("POST /apply", Write, json!({"provider": "shared"})),
        ("POST /rollback", Write, json!({"to": 1, "provider": "shared", "dry_run": true})),
        ("POST /recover", Admin, json!({"owner": "3f9a0c51", "dry_run": true})),
        ("POST /clean", Admin, json!({"provider": "shared", "dry_run": true})),
        ("GET /tokens", Admin, none()),
        ("POST /tokens", Admin, json!({"subject": "x", "role": "read"})),
        ("DELETE /tokens/nobody", Admin, none()),
        ("DELETE /cluster/members/nobody", Admin, none()),
        ("POST /cluster/nodes", Admin, json!({"address": "10.0.3.9:5302"})),
        ("DELETE /cluster/nodes/nobody", Admin, none()),
        ("GET /backup", Admin, none()),
        ("POST /check", Admin, json!({})),
    ] {
        add(line, needs, body, Everything);
    }

    let a = json!({"network": "10.1.0.0/24", "vrf": "x", "domain": "a.test", "labels": {"any": "1"}});
    let hidden = json!({"network": "10.2.0.0/24", "domain": "hidden.test"});
    // A pool that takes the names of another one would take its records with them.
    let grab = json!({"network": "10.1.0.0/24", "vrf": "x", "domain": "hidden.test"});
    let pools = vec![("/pools/hidden", hidden), ("/pools/a", grab)];
    add("PUT /pools/a", Write, a, Named(200, pools));
    add("DELETE /pools/a", Write, none(), Named(409, outside("/pools/hidden")));
    let key = "/pools/hidden/claims/hidden-key";
    add("PUT /pools/a/claims/k", Claim, json!({}), Named(201, vec![(key, json!({}))]));
    let renew = vec![("/pools/hidden/claims/hidden-key/renew", json!({}))];
    add("POST /pools/a/claims/k/renew", Claim, json!({}), Named(200, renew));
    let other = json!({"key": "k2"});
    let moves = vec![("/pools/hidden/claims/hidden-key/move", other.clone())];
    add("POST /pools/a/claims/k/move", Claim, other, Named(200, moves));
    add("DELETE /pools/a/claims/k2", Claim, none(), Named(200, outside(key)));
    let claims = vec![
        ("/claims", json!({"key": "k", "any": ["hidden"]})),
        ("/claims", json!({"key": "k", "each": ["a", "hidden"]})),
    ];
    add("POST /claims", Claim, json!({"key": "k", "select": "any=1"}), Named(200, claims));
    let release = |pool: &str| json!({"entries": [{"release": {"pool": pool, "key": "k"}}]});
    add("POST /bulk", Claim, release("a"), Named(200, vec![("/bulk", release("hidden"))]));
    let range = json!({"range": "10.1.0.101"});
    let reserved = vec![("/pools/hidden/reservations/r", json!({"range": "10.2.0.101"}))];
    add("PUT /pools/a/reservations/r", Write, range, Named(200, reserved));
    let reserved = outside("/pools/hidden/reservations/hidden-r");
    add("DELETE /pools/a/reservations/r", Write, none(), Named(200, reserved));
    // A report is about a whole VRF, of which a pool is a part.
    add("PUT /observations/scan", Write, json!({"vrf": "default", "seen": []}), Everything);

    let values = || json!({"values": ["10.1.0.3"]});
    let records =
        vec![("/records/www.hidden.test/A", values()), ("/records/3.0.2.10.in-addr.arpa/A", values())];
    add("PUT /records/new.a.test/A", Write, values(), Named(200, records));
    add("GET /records/new.a.test/TXT", Read, none(), Named(404, outside("/records/www.hidden.test/A")));
    add("DELETE /records/new.a.test/A", Write, none(), Named(200, outside("/records/www.hidden.test/A")));
    add("DELETE /records/new.a.test", Write, none(), Named(200, outside("/records/www.hidden.test")));
    let zone = |zone: &str| json!({"provider": "shared", "zone": zone});
    let wide = |path: &'static str| {
        let bodies = [
            zone("hidden.test"),
            zone("test"),
            zone("10.in-addr.arpa"),
            json!({"provider": "shared"}),
            json!({"provider": "hidden-dns", "zone": "a.test"}),
        ];
        bodies.map(|body| (path, body)).to_vec()
    };
    let mut pauses = wide("/pause");
    pauses.push(("/pause", json!({"all": true})));
    add("POST /pause", Write, zone("a.test"), Named(200, pauses));
    let mut resumes = wide("/resume");
    resumes.push(("/resume", json!({})));
    add("POST /resume", Write, zone("a.test"), Named(200, resumes));
    let ignored = |name: &str| json!({"name": name, "reason": "theirs"});
    let hidden = vec![("/drift/ignored", ignored("taken.hidden.test"))];
    add("POST /drift/ignored", Write, ignored("taken.a.test"), Named(422, hidden));
    let hidden = outside("/drift/ignored?name=taken.hidden.test");
    add("DELETE /drift/ignored?name=taken.a.test", Write, none(), Named(200, hidden));
    let adopts = vec![
        ("/adopt", json!({"name": "taken.hidden.test", "dry_run": true})),
        ("/adopt", json!({"name": "taken.a.test", "provider": "hidden-dns", "dry_run": true})),
        ("/adopt", json!({"from": "dnsweaver", "dry_run": true})),
        ("/adopt", json!({"from": "dnsweaver", "zone": "hidden.test", "dry_run": true})),
    ];
    add("POST /adopt", Write, json!({"name": "taken.a.test", "dry_run": true}), Named(200, adopts));
    // What it does is told by a hash: see `parked_changes_are_applied_where_all_of_them_are_in_scope`.
    add("POST /apply/0123456789abcdef", Write, json!({}), Everything);
    routes
}

impl Route {
    fn ask(&self, house: &House, path: &str, body: &Value) -> Ask {
        let ask = house.ask(self.method.clone(), path);
        if body.is_null() { ask } else { ask.json(body) }
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
async fn every_route_is_classified_by_what_a_scope_means_for_it() {
    let house = House::open().await;
    let routes = routes();
    for (method, path, _) in operations(&document(&house).await) {
        let template = path.strip_prefix("/api/v1").unwrap();
        let found = routes.iter().any(|route| route.is(&method, template));
        assert!(found, "{method} {path} must stand in the table of this file");
    }
}

#[tokio::test]
async fn no_route_reaches_beyond_the_scope_of_a_token() {
    let tenants = Tenants::open().await;
    let house = &tenants.house;
    for (role, scope) in [
        (Role::Write, "pool=a"),
        (Role::Read, "vrf=x"),
        (Role::Admin, "pool=a"),
        (Role::Claim, "pool=a"),
        (Role::Write, "vrf=x"),
    ] {
        let token = tenants.token(role, scope).await;
        for route in routes() {
            let said = format!("{role} {scope}: {} {}", route.method, route.path);
            let ask = |path: &str, body: &Value| route.ask(house, path, body).by(&token);
            if role < route.needs {
                ask(route.path, &route.body).go().await.problem(403, "forbidden");
                continue;
            }
            match &route.class {
                Class::Same(status) => {
                    assert_eq!(ask(route.path, &route.body).go().await.status, *status, "{said}");
                }
                Class::Everything => {
                    let answer = ask(route.path, &route.body).go().await;
                    refused(&answer, &said);
                }
                Class::Filtered => {
                    let all = route.ask(house, route.path, &route.body).go().await;
                    assert!(tells_hidden(&all.text), "the test shows nothing of {said}: {}", all.text);
                    let seen = ask(route.path, &route.body).go().await;
                    assert_eq!(seen.status, 200, "{said}: {seen:?}");
                    assert!(!tells_hidden(&seen.text), "{said} tells: {}", seen.text);
                }
                Class::Named(status, outside) => {
                    let seen = ask(route.path, &route.body).go().await;
                    assert_eq!(seen.status, *status, "{said}: {seen:?}");
                    assert!(!tells_hidden(&seen.text), "{said} tells: {}", seen.text);
                    for (path, body) in outside {
                        let said = format!("{said}, as {path} {body}");
                        refused(&ask(path, body).go().await, &said);
                    }
                }
                Class::Stream => stream(house, &token, &said).await,
            }
        }
    }
}

/// Refused for its scope, which is named, and nothing of the other tenant is told that was not asked for.
fn refused(answer: &Answer, said: &str) {
    assert_eq!(answer.status, 403, "{said}: {answer:?}");
    answer.problem(403, "forbidden");
    let facts = &answer.body["facts"];
    assert!(!facts["scope"].is_null() || facts["needs"] == "admin", "{said}: {answer:?}");
}

async fn stream(house: &House, token: &str, said: &str) {
    let newest = house.get("/events?pool=a&limit=1").go().await.fine()["items"][0]["seq"].clone();
    let path = format!("/events/stream?after={:08x}:0", house.ledger.id());
    let mut answer = house.get(&path).by(token).into_request().send().await.unwrap();
    assert_eq!(answer.status(), 200, "{said}");
    let (mut text, last) = (String::new(), format!("\"seq\":{newest}"));
    while !text.contains(&last) {
        text += std::str::from_utf8(&answer.chunk().await.unwrap().expect("it has no end")).unwrap();
    }
    assert!(!tells_hidden(&text), "{said} tells: {text}");
}

#[tokio::test]
async fn a_token_of_a_zone_covers_its_names_as_one_of_a_pool_does() {
    let tenants = Tenants::open().await;
    let house = &tenants.house;
    let token = tenants.token(Role::Write, "zone=a.test").await;
    for path in [
        "/sources",
        "/providers",
        "/zones",
        "/plans",
        "/plans/shared",
        "/records",
        "/changes",
        "/names/mine.a.test",
    ] {
        let seen = house.get(path).by(&token).go().await;
        assert_eq!(seen.status, 200, "{path}: {seen:?}");
        // Claims may be looked at whatever their names are.
        let told = seen.text.replace("hidden-bare/mine", "");
        assert!(!tells_hidden(&told), "{path} tells: {}", seen.text);
    }
    let zone = |zone: &str| json!({"provider": "shared", "zone": zone});
    house.post("/pause").by(&token).json(&zone("a.test")).go().await.fine();
    house.post("/resume").by(&token).json(&zone("a.test")).go().await.fine();
    refused(&house.post("/pause").by(&token).json(&zone("hidden.test")).go().await, "a pause");
    refused(&house.post("/rollback").by(&token).json(&json!({"to": 1})).go().await, "a rollback");
}

#[tokio::test]
async fn parked_changes_are_applied_where_all_of_them_are_in_scope() {
    let (shared, seen) = (DnsServer::new(&["a.test", "hidden.test"]), Seen::new("seen", Vec::new()));
    let see = |numbers: &[(&str, u8)]| {
        let workload = |(name, last): &(&str, u8)| workload("seen", name, &format!("10.1.0.{last}"));
        *seen.says.lock().unwrap() = (View::Complete, numbers.iter().map(workload).collect());
    };
    see(&[("vm.a.test", 1), ("vm.hidden.test", 1)]);
    let house = House::with_setup(|_| {
        let mut provider = shared.setup("shared", &["a.test", "hidden.test"]);
        // Every change of what is there is parked.
        provider.settings.breaker = Limits { changes: 0, percent: 0, total: 0, ..Limits::default() };
        Setup { sources: vec![seen.setup()], providers: vec![provider], ..Setup::default() }
    })
    .await;
    house.pool("a", json!({"network": "10.1.0.0/24", "domain": "a.test"})).await;
    let scopes = Scopes { pools: vec!["a".parse().unwrap()], ..Scopes::default() };
    let token = house.scoped(NewToken { scopes, ..NewToken::new("tenant", Role::Write) }).await;
    let parked = async || {
        house.post("/apply").json(&json!({})).go().await.fine();
        let plan = house.get("/plans/shared").by(&token).go().await;
        assert!(!tells_hidden(&plan.text), "{}", plan.text);
        plan.fine()["parked"].clone()
    };
    assert_eq!(parked().await, Value::Null);
    // One of two is the tenant's own.
    see(&[("vm.a.test", 2), ("vm.hidden.test", 2)]);
    let both = parked().await;
    assert_eq!(both["changes"], 1);
    let both = both["hash"].as_str().unwrap().to_owned();
    let path = format!("/apply/{both}");
    refused(&house.post(&path).by(&token).json(&json!({})).go().await, "both");
    house.post(&path).json(&json!({})).go().await.fine();

    see(&[("vm.a.test", 3), ("vm.hidden.test", 2)]);
    let own = parked().await["hash"].as_str().unwrap().to_owned();
    let done = house.post(&format!("/apply/{own}")).by(&token).json(&json!({})).go().await;
    assert_eq!(done.fine()["passes"][0]["ok"], true);
    let records = house.get("/records").by(&token).go().await;
    let wanted = json!([["vm.a.test", "10.1.0.3", "ok"]]);
    let line = |record: &Value| json!([record["name"], record["value"], record["state"]]);
    assert_eq!(Value::Array(records.fine()["items"].as_array().unwrap().iter().map(line).collect()), wanted);
}

#[tokio::test]
async fn what_fails_elsewhere_is_not_told() {
    let tenants = Tenants::open().await;
    let house = &tenants.house;
    let zone = "hidden.test".parse().unwrap();
    *tenants.shared.fails.lock().unwrap() = Some(ProviderError::NoSuchZone { server: "memory".into(), zone });
    house.post("/apply").json(&json!({})).go().await.fine();
    assert!(house.get("/providers").go().await.text.contains("does not hold the zone `hidden.test`"));
    let token = tenants.token(Role::Read, "pool=a").await;
    for path in ["/providers", "/status", "/names/mine.a.test", "/plans"] {
        let seen = house.get(path).by(&token).go().await;
        assert!(!tells_hidden(seen.fine().to_string().as_str()), "{path} tells: {}", seen.text);
    }
    let status = house.get("/status").by(&token).go().await;
    assert_eq!(status.fine()["providers"][0]["error"], "a token without scopes is told why");
    let todo = status.fine()["todo"].to_string();
    assert!(todo.contains("Provider `shared` fails"), "{todo}");
}
