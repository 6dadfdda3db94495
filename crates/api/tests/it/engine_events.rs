//! Events of the engine on the stream.

use std::time::Duration;

use netstead_api::access::Role;
use netstead_engine::Setup;
use netstead_model::{ProviderError, View};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    dns_server::{DnsServer, Seen, workload},
    events::Stream,
    support::House,
    tenants::{Tenants, tells_hidden},
};

/// `event name text` of the next message of the engine, which has no id.
async fn next(stream: &mut Stream) -> (String, Value) {
    let soon =
        timeout(Duration::from_secs(20), stream.next()).await.expect("an event of the engine should come");
    let (id, event, data) = soon.expect("the stream should go on");
    assert_eq!(id, "", "{event}");
    (event, data)
}

/// Reads until a message of this kind about this name.
async fn until(stream: &mut Stream, event: &str, name: &str) -> Value {
    loop {
        let (found, data) = next(stream).await;
        if found == event && data["name"] == name {
            return data;
        }
    }
}

async fn set(tenants: &Tenants, name: &str, address: &str) {
    let values = json!({"values": [address]});
    tenants.house.put(&format!("/records/{name}/A")).json(&values).go().await.fine();
}

#[tokio::test]
async fn the_stream_sends_what_the_engine_does_and_notices() {
    let tenants = Tenants::open().await;
    let mut stream = Stream::open(tenants.house.get("/events/stream?engine=true")).await;
    set(&tenants, "new.a.test", "10.1.0.33").await;
    let mut applied = until(&mut stream, "engine-applied", "new.a.test").await;
    applied.as_object_mut().unwrap().retain(|field, _| !["at", "generation"].contains(&field.as_str()));
    assert_eq!(
        applied,
        json!({"what": "applied", "provider": "shared", "zone": "a.test", "name": "new.a.test", "text": "+ A 10.1.0.33"})
    );
    tenants.shared.add("new.a.test", "192.0.2.77");
    tenants.house.post("/apply").json(&json!({})).go().await.fine();
    let drift = until(&mut stream, "engine-drift", "new.a.test").await;
    assert_eq!((&drift["what"], &drift["provider"]), (&json!("drift"), &json!("shared")));
    assert_eq!(drift["text"], "A 10.1.0.33 was removed by others");
}

#[tokio::test]
async fn a_value_that_others_put_beside_ours_or_change_there_is_an_event_each_time() {
    let tenants = Tenants::open().await;
    let apply = async || {
        tenants.house.post("/apply").json(&json!({})).go().await.fine();
    };
    let mut stream = Stream::open(tenants.house.get("/events/stream?engine=true")).await;
    set(&tenants, "new.a.test", "10.1.0.33").await;
    until(&mut stream, "engine-applied", "new.a.test").await;
    for (values, foreign) in [
        (&["10.1.0.33", "192.0.2.77"], "192.0.2.77"),
        (&["10.1.0.33", "192.0.2.78"], "192.0.2.78"),
        // As it was before: that is news again.
        (&["10.1.0.33", "192.0.2.77"], "192.0.2.77"),
    ] {
        tenants.shared.replace("new.a.test", values);
        apply().await;
        // Another pass over the same value sends nothing.
        apply().await;
        let drift = until(&mut stream, "engine-drift", "new.a.test").await;
        assert_eq!(drift["text"], format!("A {foreign} was added by others"));
    }
    set(&tenants, "last.a.test", "10.1.0.34").await;
    let (event, data) = next(&mut stream).await;
    assert_ne!(event, "engine-drift", "{data}");
}

#[tokio::test]
async fn the_stream_sends_when_a_source_or_a_server_fails_and_works_again() {
    let seen = Seen::new("vms", vec![workload("vms", "vm.a.test", "10.1.0.77")]);
    let server = DnsServer::new(&["a.test"]);
    let house = House::with_setup(|_| Setup {
        sources: vec![seen.setup()],
        providers: vec![server.setup("lan", &["a.test"])],
        ..Setup::default()
    })
    .await;
    let apply = async || {
        house.post("/apply").json(&json!({})).go().await.fine();
    };
    apply().await;
    let mut stream = Stream::open(house.get("/events/stream?engine=true")).await;
    let mut told = async || {
        let (event, data) = next(&mut stream).await;
        format!(
            "{event} {}: {}",
            data["source"].as_str().or(data["provider"].as_str()).unwrap(),
            data["text"]
        )
    };
    seen.says.lock().unwrap().0 = View::Partial { reason: "one host is down".into() };
    apply().await;
    assert_eq!(told().await, "engine-failing vms: \"vms does not show everything: one host is down\"");
    seen.says.lock().unwrap().0 = View::Failed { reason: "refused".into() };
    apply().await;
    assert_eq!(told().await, "engine-failing vms: \"vms shows nothing any more: refused\"");
    seen.says.lock().unwrap().0 = View::Partial { reason: "one host is down".into() };
    apply().await;
    assert_eq!(told().await, "engine-failing vms: \"vms shows a part again: one host is down\"");
    seen.says.lock().unwrap().0 = View::Complete;
    apply().await;
    assert_eq!(told().await, "engine-working vms: \"vms shows everything again\"");
    *server.fails.lock().unwrap() = Some(ProviderError::Denied { server: "ns1".into(), reason: "no".into() });
    apply().await;
    assert_eq!(told().await, "engine-failing lan: \"lan fails: ns1 refuses these credentials: no\"");
    *server.fails.lock().unwrap() = None;
    apply().await;
    assert_eq!(told().await, "engine-working lan: \"lan works again\"");
}

#[tokio::test]
async fn a_token_gets_the_events_of_the_names_that_it_covers() {
    let tenants = Tenants::open().await;
    for scope in ["pool=a", "vrf=x", "zone=a.test"] {
        let token = tenants.token(Role::Read, scope).await;
        let mut stream = Stream::open(tenants.house.get("/events/stream?engine=true").by(&token)).await;
        let host = scope.replace(['=', '.'], "-");
        set(&tenants, &format!("{host}.hidden.test"), "10.2.0.40").await;
        set(&tenants, &format!("{host}.hidden-own.test"), "10.2.0.41").await;
        let pause = json!({"provider": "shared", "reason": "hidden"});
        tenants.house.post("/pause").json(&pause).go().await.fine();
        tenants.house.post("/resume").json(&json!({"provider": "shared"})).go().await.fine();
        set(&tenants, &format!("{host}.a.test"), "10.1.0.40").await;
        loop {
            let (event, data) = next(&mut stream).await;
            assert!(!tells_hidden(&data.to_string()), "{scope}: {event} {data}");
            if event == "engine-applied" && data["name"] == format!("{host}.a.test") {
                break;
            }
        }
    }
}

#[tokio::test]
async fn events_of_the_engine_come_to_those_who_ask_for_them() {
    let tenants = Tenants::open().await;
    let mut stream = Stream::open(tenants.house.get("/events/stream")).await;
    set(&tenants, "new.a.test", "10.1.0.33").await;
    tenants.house.post("/apply").json(&json!({})).go().await.fine();
    tenants.house.claim("a", "after").await;
    let (id, event, data) = stream.next().await.unwrap();
    assert_eq!((event.as_str(), &data["key"]), ("claimed", &json!("after")));
    assert_ne!(id, "");
    let wrong = tenants.house.get("/events/stream?engine=yes").go().await;
    assert_eq!(wrong.problem(400, "invalid"), "engine: use `true` or `false`");
}
