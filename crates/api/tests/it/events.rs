//! Events: lists, and the stream.

use std::{collections::VecDeque, time::Duration};

use netstead_api::access::{NewToken, Role, Scopes};
use netstead_ledger::Options;
use netstead_model::ManualClock;
use reqwest::Response;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{Ask, House};

/// A reader of the stream: events as `(id, event, data)`.
pub struct Stream {
    response: Response,
    text: String,
    ready: VecDeque<(String, String, Value)>,
}

impl Stream {
    pub async fn open(ask: Ask) -> Self {
        let response = ask.into_request().send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new(), ready: VecDeque::new() }
    }

    /// The next event, or nothing at the end of the stream.
    pub async fn next(&mut self) -> Option<(String, String, Value)> {
        while self.ready.is_empty() {
            let chunk =
                timeout(Duration::from_secs(20), self.response.chunk()).await.expect("an event").unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
            while let Some((message, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let line = message.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
                    line.unwrap_or_default().to_owned()
                };
                if let Ok(data) = serde_json::from_str(&field("data")) {
                    self.ready.push_back((field("id"), field("event"), data));
                }
                self.text = String::from(rest);
            }
        }
        self.ready.pop_front()
    }

    async fn keys(&mut self, count: usize) -> Vec<String> {
        let mut keys = Vec::new();
        for _ in 0..count {
            keys.push(self.next().await.unwrap().2["key"].as_str().unwrap_or("-").to_owned());
        }
        keys
    }
}

#[tokio::test]
async fn history_answers_who_had_this_when() {
    let house = House::with_lan().await;
    house.claim("lan", "web-1").await;
    house.delete("/pools/lan/claims/web-1").go().await.fine();
    let forced = json!({"address": "10.0.3.50", "force": true});
    house.put("/pools/lan/claims/web-2").json(&forced).go().await.created();
    let told = async |query: &str| {
        let page = house.get(&format!("/events?{query}")).go().await;
        let items = page.fine()["items"].as_array().unwrap().clone();
        let line = |e: &Value| format!("{} {} {}", e["what"], e["key"], e["address"]).replace('"', "");
        items.iter().map(line).collect::<Vec<_>>().join(", ")
    };
    let newest = "claimed web-2 10.0.3.50, released web-1 10.0.3.50, claimed web-1 10.0.3.50";
    assert_eq!(told("address=10.0.3.50").await, newest);
    assert_eq!(told("address=10.0.3.50&order=oldest&limit=1").await, "claimed web-1 10.0.3.50");
    assert_eq!(told("key=web-2").await, "claimed web-2 10.0.3.50");
    assert_eq!(told("what=released").await, "released web-1 10.0.3.50");
    assert_eq!(told("what=pool-created").await, "pool-created null null");
    assert_eq!(told("since=1h&what=released").await, "released web-1 10.0.3.50");
    assert_eq!(told("until=1h").await, "");
    let released = house.get("/events?what=released").go().await;
    assert_eq!(released.fine()["items"][0]["before"]["owner"], "root");
}

#[tokio::test]
async fn events_come_in_pages_both_ways() {
    let house = House::with_lan().await;
    for number in 0..7 {
        house.claim("lan", &format!("k{number}")).await;
    }
    for (order, expected) in [("oldest", "- k0 k1 k2 k3 k4 k5 k6"), ("newest", "k6 k5 k4 k3 k2 k1 k0 -")] {
        let (mut keys, mut after) = (Vec::new(), String::new());
        loop {
            let page = house.get(&format!("/events?order={order}&limit=3{after}")).go().await;
            keys.extend(
                page.fine()["items"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|e| e["key"].as_str().unwrap_or("-").to_owned()),
            );
            let Some(next) = page.body["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        assert_eq!(keys.join(" "), expected);
    }
}

#[tokio::test]
async fn cursors_of_another_ledger_are_gone() {
    let house = House::with_lan().await;
    let other = house.ledger.id() ^ 1;
    for path in ["/events?order=oldest&after", "/events?after", "/events/stream?after"] {
        let told = house.get(&format!("{path}={other:08x}:1")).go().await.problem(410, "gone");
        assert!(told.contains("start again from a list"), "{told}");
    }
    house
        .get("/events/stream")
        .header("last-event-id", &format!("{other:08x}:1"))
        .go()
        .await
        .problem(410, "gone");
}

#[tokio::test]
async fn cursors_older_than_what_is_kept_are_gone() {
    let clock = ManualClock::default();
    let keep = Options { max_events: 10, ..Options::default() };
    let house = House::keeping(clock.shared(), keep).await;
    house.pool("lan", json!({"network": "10.0.3.0/24", "cooldown": "0"})).await;
    let cursor = |seq: u64| format!("{:08x}:{seq}", house.ledger.id());
    let early = cursor(house.ledger.health().seq);
    house.get(&format!("/events?order=oldest&after={early}")).go().await.fine();
    let come_and_go = async || {
        house.claim("lan", "restless").await;
        house.delete("/pools/lan/claims/restless").go().await.fine();
    };
    for _ in 0..30 {
        come_and_go().await;
    }
    let trimmed = async || !house.get("/events?what=trimmed").go().await.fine()["items"][0].is_null();
    // Events are looked through from time to time, once the index knows all of them.
    let mut rounds = 0..1000;
    while !trimmed().await {
        rounds.next().expect("old events are trimmed");
        clock.advance(Duration::from_mins(11));
        come_and_go().await;
    }
    let oldest = house.ledger.oldest_event();
    assert!(oldest > 10, "{oldest}");
    let told = format!("kept from {oldest} on only");
    for path in ["/events?order=oldest&after", "/events/stream?after"] {
        for gone in [&early, &cursor(oldest - 2)] {
            let said = house.get(&format!("{path}={gone}")).go().await.problem(410, "gone");
            assert!(said.contains(&told) && said.contains("start again from a list"), "{said}");
        }
    }
    let back = house.get("/events/stream").header("last-event-id", &early).go().await;
    assert!(back.problem(410, "gone").contains(&told));
    // What is kept can be followed to its first event, and newest first there is nothing to miss.
    let first = cursor(oldest - 1);
    house.get(&format!("/events?order=oldest&after={first}")).go().await.fine();
    Stream::open(house.get(&format!("/events/stream?after={first}"))).await;
    assert_eq!(house.get(&format!("/events?after={early}")).go().await.fine()["items"], json!([]));
}

#[tokio::test]
async fn the_stream_tells_what_happens_from_now_on() {
    let house = House::with_lan().await;
    house.claim("lan", "before").await;
    let mut stream = Stream::open(house.get("/events/stream")).await;
    house.claim("lan", "after").await;
    let (id, event, data) = stream.next().await.unwrap();
    assert_eq!(
        (event.as_str(), &data["key"], &data["address"]),
        ("claimed", &json!("after"), &json!("10.0.3.51"))
    );
    assert_eq!(id, format!("{:08x}:{}", house.ledger.id(), data["seq"]));
}

#[tokio::test]
async fn a_stream_that_broke_goes_on_without_gaps_or_repeats() {
    let house = House::with_lan().await;
    let start = format!("{:08x}:{}", house.ledger.id(), house.ledger.health().seq);
    for number in 0..3 {
        house.claim("lan", &format!("k{number}")).await;
    }
    let mut stream = Stream::open(house.get(&format!("/events/stream?after={start}"))).await;
    assert_eq!(stream.keys(2).await, ["k0", "k1"]);
    let (last, ..) = stream.next().await.unwrap();
    drop(stream);
    house.claim("lan", "k3").await;
    let mut stream = Stream::open(house.get("/events/stream").header("last-event-id", &last)).await;
    house.claim("lan", "k4").await;
    assert_eq!(stream.keys(2).await, ["k3", "k4"]);
}

#[tokio::test]
async fn under_load_every_reader_sees_every_event_once_and_in_order() {
    let house = House::open().await;
    house.pool("big", json!({"network": "10.0.0.0/16"})).await;
    let start = format!("{:08x}:{}", house.ledger.id(), house.ledger.health().seq);
    let claims = async |from: usize| {
        for number in from..from + 100 {
            house.claim("big", &format!("k{number}")).await;
        }
    };
    let read = async || {
        let mut seqs = Vec::new();
        let mut after = start.clone();
        while seqs.len() < 400 {
            let mut stream = Stream::open(house.get(&format!("/events/stream?after={after}"))).await;
            // Breaks off again and again.
            for _ in 0..37.min(400 - seqs.len()) {
                let (id, _, data) = stream.next().await.unwrap();
                seqs.push(data["seq"].as_u64().unwrap());
                after = id;
            }
        }
        seqs
    };
    let ((), (), (), (), one, two) =
        tokio::join!(claims(0), claims(100), claims(200), claims(300), read(), read());
    assert!(one.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(one, two);
}

#[tokio::test]
async fn a_stream_shows_what_is_in_scope_and_ends_with_its_token() {
    let house = House::with_lan().await;
    house.pool("lab", json!({"network": "10.9.0.0/24", "vrf": "lab"})).await;
    let scopes = Scopes { vrfs: vec!["lab".parse().unwrap()], ..Scopes::default() };
    let token = house.scoped(NewToken { scopes, ..NewToken::new("ann", Role::Read) }).await;
    let mut stream = Stream::open(house.get("/events/stream").by(&token)).await;
    house.claim("lan", "hidden").await;
    house.claim("lab", "shown").await;
    assert_eq!(stream.keys(1).await, ["shown"]);
    let id = token.split('_').nth(1).unwrap();
    house.tokens.revoke(id).await.unwrap();
    house.claim("lab", "too-late").await;
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_stream_in_which_nothing_happens_ends_with_its_token() {
    let house = House::with_lan().await;
    let token = house.token("ann", Role::Read).await;
    let mut stream = Stream::open(house.get("/events/stream").by(&token)).await;
    house.tokens.revoke(token.split('_').nth(1).unwrap()).await.unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(5), stream.next()).await;
    assert!(ended.expect("it goes on").is_none());
}

#[tokio::test]
async fn a_cursor_of_what_has_not_happened_yet_is_gone() {
    let house = House::with_lan().await;
    let (id, seq) = (house.ledger.id(), house.ledger.health().seq);
    let next = seq + 1;
    for path in [
        format!("/events/stream?after={id:08x}:{next}"),
        format!("/events?after={id:08x}:99999999"),
        format!("/events?order=oldest&after={id:08x}:{next}"),
    ] {
        let answer = house.get(&path).go().await;
        answer.problem(410, "gone");
    }
    let last = format!("{id:08x}:99999999");
    house.get("/events/stream").header("last-event-id", &last).go().await.problem(410, "gone");
    house.get(&format!("/events?order=oldest&after={id:08x}:{seq}")).go().await.fine();
}
