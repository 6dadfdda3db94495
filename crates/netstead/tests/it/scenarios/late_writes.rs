//! An applier that is stopped between its last look and its write, while a newer plan is applied, and then goes on.

use std::{path::Path, sync::Arc, time::Duration};

use netstead_engine::{Engine, EngineEventKind, Options, ProviderSetup, Setup};
use netstead_model::{RecordData, RecordType, SystemClock};
use netstead_plan::{Digest, Settings};
use netstead_providers::{Secret, dns::powerdns as provider};
use netstead_store::{MemoryStore, Store};
use netstead_testkit::{Bind, DelayingProxy, Knot, PowerDns, Primary, PrimaryKind, wait_until};

use super::dns_fixture::{FORWARD, SOON, Server, ZONES, is_patch, is_update, powerdns, rfc2136, sandbox};
use crate::resolve::Stopwatch;

/// Copies what a replicated store would give a successor: everything that was durable.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn stopped_and_overtaken<M: PrimaryKind>(daemon: &Primary<M>) {
    let gate = DelayingProxy::before(daemon.address(), is_update).unwrap();
    let server = Server::from(daemon);
    let mut first = sandbox(&rfc2136("lan", gate.address(), daemon.key(), "interval = \"1s\""));
    first.start(&[]);
    first.does("record set www.home.test A 10.0.3.9");
    server.until(FORWARD, &["www.home.test A 10.0.3.9"]);
    first.settles("lan");
    // It has looked, has found everything as expected, and is stopped on its way to the server.
    gate.shut();
    first.does("record set www.home.test A 10.0.3.10");
    assert!(gate.holds_one(SOON));
    first.server().signal("STOP").unwrap();

    let mut second = sandbox(&rfc2136("lan", daemon.address(), daemon.key(), "interval = \"1s\""));
    copy(&first.data(), &second.data());
    second.start(&[]);
    second.does("record set www.home.test A 10.0.3.11");
    let newer = server.until(FORWARD, &["www.home.test A 10.0.3.11"]);
    second.settles("lan");

    // The late update arrives, and the server will not have it.
    first.server().signal("CONT").unwrap();
    gate.open();
    let told = wait_until(SOON, || first.does("status").contains("refuses a late write").then_some(()));
    assert!(told.is_some(), "{}", first.does("status"));
    assert_eq!(server.zone(FORWARD), newer);
    second.does("apply");
    second.settles("lan");
    assert_eq!(server.zone(FORWARD), newer);
}

#[test]
fn a_late_update_is_refused_by_bind() {
    let Some(daemon) = Bind::start(&ZONES) else { return };
    stopped_and_overtaken(&daemon);
}

#[test]
fn a_late_update_is_refused_by_knot() {
    let Some(daemon) = Knot::start(&ZONES) else { return };
    stopped_and_overtaken(&daemon);
}

/// The sender is gone, so the late write is not reported: it is found by the zone's serial, and was ours when it was sent.
#[test]
fn what_a_killed_process_had_sent_through_the_api_of_powerdns_is_taken_back() {
    let Some(daemon) = PowerDns::start(&ZONES) else { return };
    let api = daemon.api_url().strip_prefix("http://").unwrap().parse().unwrap();
    let gate = DelayingProxy::before(api, is_patch).unwrap();
    let server = Server::from(&daemon);
    let config = |url: &str| powerdns("lan", url, "reverse = false\ninterval = \"1s\"");
    let mut sandbox = sandbox(&config(&format!("http://{}", gate.address())));
    sandbox.start(&[]);
    sandbox.does("record set www.home.test A 10.0.3.9");
    server.until(FORWARD, &["www.home.test A 10.0.3.9"]);
    sandbox.settles("lan");
    gate.shut();
    sandbox.does("record set www.home.test A 10.0.3.10");
    assert!(gate.holds_one(SOON));
    sandbox.kill();

    sandbox.write("netstead.toml", &config(&daemon.api_url()));
    sandbox.start(&[]);
    sandbox.does("record set www.home.test A 10.0.3.11");
    server.until(FORWARD, &["www.home.test A 10.0.3.11"]);
    sandbox.settles("lan");
    gate.open();
    let told = sandbox.server().wait_for_line("A write arrived late; it is taken back.", SOON);
    assert!(told.is_ok(), "{told:?}");
    server.until(FORWARD, &["www.home.test A 10.0.3.11"]);
    sandbox.settles("lan");
}

/// An installation's engine on a store that two processes share.
async fn engine(store: &Arc<dyn Store>, url: &str) -> Engine {
    let mut settings =
        Settings::new("lan".parse().unwrap(), "blue".parse().unwrap(), vec![FORWARD.parse().unwrap()]);
    // One zone, so that it is clear what is late.
    settings.reverse = false;
    let config = provider::Config::new(url, Secret::new("netstead-test"));
    let provider = Arc::new(provider::PowerDns::new(config).unwrap());
    let setup = Setup {
        providers: vec![ProviderSetup::new(settings, provider, Digest::of([url]))],
        ..Setup::default()
    };
    Engine::start(Arc::clone(store), SystemClock::shared(), setup, Options::default()).await.unwrap()
}

async fn set(engine: &Engine, address: &str) {
    let value = RecordData::parse(RecordType::A, address).unwrap();
    engine
        .manual()
        .set("www.home.test".parse().unwrap(), RecordType::A, vec![value], None, "ada")
        .await
        .unwrap();
}

/// PowerDNS' API cannot refuse what comes late: it is repaired at once, and told. That takes a store with two
/// processes, so both run here.
#[test]
fn what_comes_late_through_the_api_of_powerdns_is_repaired_within_five_seconds() {
    let Some(daemon) = PowerDns::start(&ZONES) else { return };
    let api = daemon.api_url().strip_prefix("http://").unwrap().parse().unwrap();
    let gate = DelayingProxy::before(api, is_patch).unwrap();
    let server = Server::from(&daemon);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (late, newer) = (format!("http://{}", gate.address()), daemon.api_url());

    let first = runtime.block_on(async {
        store.lead().await.unwrap();
        let first = engine(&store, &late).await;
        set(&first, "10.0.3.9").await;
        first
    });
    server.until(FORWARD, &["www.home.test A 10.0.3.9"]);
    runtime.block_on(first.apply(None)).unwrap();
    gate.shut();
    runtime.block_on(set(&first, "10.0.3.10"));
    assert!(gate.holds_one(SOON));

    let second = runtime.block_on(async {
        store.lead().await.unwrap();
        let second = engine(&store, &newer).await;
        set(&second, "10.0.3.11").await;
        second
    });
    server.until(FORWARD, &["www.home.test A 10.0.3.11"]);
    runtime.block_on(second.apply(None)).unwrap();

    // From here on five seconds, for the arrival, the repair and the event.
    let before = gate.passed();
    let begun = Stopwatch::start();
    gate.open();
    let late =
        || runtime.block_on(second.events(100)).into_iter().find(|event| event.what == EngineEventKind::Late);
    let event = wait_until(SOON, late).expect("an event names the late write");
    server.until(FORWARD, &["www.home.test A 10.0.3.11"]);
    let took = begun.elapsed();
    assert!(gate.passed() > before, "the late write did arrive");
    assert!(event.text.contains("home.test") && event.text.contains("late"), "{event:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    runtime.block_on(async {
        first.close().await;
        second.close().await;
    });
}
