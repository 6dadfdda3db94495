//! Sessions: opened with a token or a link, limited in time, and ended.

use std::{sync::Arc, time::Duration};

use netstead_api::{
    ServeOptions,
    access::{NewToken, Role, SESSION_IDLE, SESSION_LONGEST, Tokens},
};
use netstead_model::{Clock, ManualClock, SystemClock};
use netstead_store::MemoryStore;
use serde_json::json;

use crate::support::House;

async fn session_of(house: &House, token: &str) -> (String, String) {
    let opened = house.post("/sessions").by(token).go().await;
    let text = |field: &str| opened.created()[field].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

#[tokio::test]
async fn a_session_can_do_what_its_token_can_and_ends_with_it() {
    let house = House::with_lan().await;
    let made = house.post("/tokens").json(&json!({"subject": "ann", "role": "claim"})).go().await;
    let token = made.created()["secret"].as_str().unwrap().to_owned();
    let (id, session) = session_of(&house, &token).await;
    assert!(session.starts_with(&format!("nss_{id}_")));

    let shown = house.get("/session").by(&session).go().await;
    let shown = shown.fine();
    assert_eq!((&shown["subject"], &shown["role"]), (&json!("ann"), &json!("claim")));
    assert!(shown["secret"].is_null());
    house.put("/pools/lan/claims/k").by(&session).json(&json!({})).go().await.created();
    house.put("/pools/new").by(&session).json(&json!({})).go().await.problem(403, "forbidden");
    let events = house.get("/events?key=k").go().await;
    let request = events.fine()["items"][0]["request"].as_str().unwrap().to_owned();
    assert!(request.ends_with(&format!(" in session {id}")), "{request}");

    house.delete(&format!("/tokens/{}", made.body["id"].as_str().unwrap())).go().await;
    house.get("/session").by(&session).go().await.problem(401, "unauthenticated");
    house.get("/status").by(&session).go().await.problem(401, "unauthenticated");
}

#[tokio::test]
async fn sessions_are_listed_and_ended_by_their_owner_and_by_admins() {
    let house = House::open().await;
    let (ann, bob) = (house.token("ann", Role::Read).await, house.token("bob", Role::Read).await);
    let (of_ann, session) = session_of(&house, &ann).await;
    let (of_bob, other) = session_of(&house, &bob).await;
    let listed = |answer: crate::support::Answer| -> Vec<String> {
        let items = answer.fine()["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    let mut both = vec![of_ann.clone(), of_bob.clone()];
    both.sort_unstable();
    assert_eq!(listed(house.get("/sessions").go().await), both, "an admin sees all");
    assert_eq!(listed(house.get("/sessions").by(&ann).go().await), std::slice::from_ref(&of_ann));
    house.delete(&format!("/sessions/{of_bob}")).by(&ann).go().await.problem(404, "no-such-session");
    assert_eq!(house.delete(&format!("/sessions/{of_bob}")).go().await.status, 204);
    house.get("/session").by(&other).go().await.problem(401, "unauthenticated");
    assert_eq!(house.delete("/session").by(&session).go().await.status, 204, "logged out");
    house.get("/session").by(&session).go().await.problem(401, "unauthenticated");
    assert!(listed(house.get("/sessions").go().await).is_empty());
    house.get("/session").by(&ann).go().await.problem(404, "no-such-session");
}

#[tokio::test]
async fn a_session_opens_no_other() {
    let house = House::open().await;
    let (_, session) = session_of(&house, &house.admin).await;
    house.post("/sessions").by(&session).go().await.problem(403, "forbidden");
    house.post("/sessions/link").by(&session).go().await.problem(403, "forbidden");
    house.post("/sessions/link").go().await.problem(404, "no-web-page");
}

#[tokio::test]
async fn a_session_ends_when_it_is_idle_and_after_a_week_at_most() {
    let clock = ManualClock::at("2026-11-19T12:00:00Z".parse().unwrap());
    let house = House::with(clock.shared(), ServeOptions::new("127.0.0.1:0")).await;
    let (_, session) = session_of(&house, &house.admin).await;
    clock.advance(SESSION_IDLE.checked_sub(Duration::from_secs(1)).unwrap());
    house.put("/session").by(&session).json(&json!({})).go().await.fine();
    clock.advance(SESSION_IDLE.checked_sub(Duration::from_secs(1)).unwrap());
    house.get("/session").by(&session).go().await.fine();
    clock.advance(Duration::from_secs(1));
    house.get("/session").by(&session).go().await.problem(401, "unauthenticated");

    let (_, session) = session_of(&house, &house.admin).await;
    let begun = clock.wall();
    while clock.wall().duration_since(begun).unsigned_abs() + SESSION_IDLE < SESSION_LONGEST {
        clock.advance(SESSION_IDLE.checked_sub(Duration::from_secs(1)).unwrap());
        house.put("/session").by(&session).json(&json!({})).go().await.fine();
    }
    clock.advance(SESSION_IDLE);
    house.put("/session").by(&session).json(&json!({})).go().await.problem(401, "unauthenticated");
    session_of(&house, &house.admin).await;
    let kept = house.store.snapshot().await.unwrap().range(b"access/session/", None, 10).await.unwrap();
    assert_eq!(kept.len(), 1, "a login removes what ended by itself");
}

#[tokio::test]
async fn a_login_link_opens_one_session_once_on_any_node() {
    let (store, clock) =
        (Arc::new(MemoryStore::new()), ManualClock::at("2026-11-19T12:00:00Z".parse().unwrap()));
    let house = House::over(store.clone(), clock.shared(), ServeOptions::new("127.0.0.1:0")).await;
    let other = Tokens::open(store, clock.shared()).await.unwrap();
    let grant = other.verify(&house.admin).unwrap();
    let (link, secret) = other.create_login_link(&grant).await.unwrap();
    let secret = secret.expose().to_owned();
    assert!(secret.starts_with(&format!("nsl_{}_", link.id)));
    // It is good for nothing but to log in.
    house.get("/status").by(&secret).go().await.problem(401, "unauthenticated");
    house
        .post("/tokens")
        .by(&secret)
        .json(&json!({"subject": "x", "role": "admin"}))
        .go()
        .await
        .problem(401, "unauthenticated");

    let (_, session) = session_of(&house, &secret).await;
    assert!(other_knows(&other, &session).await, "another node accepts the session");
    house.post("/sessions").by(&secret).go().await.problem(401, "unauthenticated");

    let (_, late) = other.create_login_link(&grant).await.unwrap();
    clock.advance(Duration::from_secs(61));
    house.post("/sessions").by(late.expose()).go().await.problem(401, "unauthenticated");
}

async fn other_knows(tokens: &Tokens, session: &str) -> bool {
    for _ in 0..100 {
        if tokens.verify(session).is_ok() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

#[tokio::test]
async fn two_that_use_one_link_at_the_same_time_get_one_session() {
    let store = Arc::new(MemoryStore::new());
    let one = Tokens::open(store.clone(), SystemClock::shared()).await.unwrap();
    let (_, token) = one.create(NewToken::new("ann", Role::Read)).await.unwrap();
    let grant = one.verify(token.expose()).unwrap();
    let (_, link) = one.create_login_link(&grant).await.unwrap();
    let house = House::over(store, SystemClock::shared(), ServeOptions::new("127.0.0.1:0")).await;
    let answers =
        futures::future::join_all((0..8).map(|_| house.post("/sessions").by(link.expose()).go())).await;
    let opened = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(opened, 1, "{answers:?}");
    assert!(answers.iter().all(|answer| answer.status == 201 || answer.status == 401), "{answers:?}");
}

#[tokio::test]
async fn the_store_sees_no_secret_of_a_session() {
    let house = House::open().await;
    let (_, session) = session_of(&house, &house.admin).await;
    let secret = session.rsplit('_').next().unwrap();
    let entries = house.store.snapshot().await.unwrap().range(b"access/session/", None, 10).await.unwrap();
    assert_eq!(entries.len(), 1);
    let value = String::from_utf8(entries.into_iter().next().unwrap().value).unwrap();
    assert!(value.starts_with("1{") && !value.contains(secret), "{value}");
}
