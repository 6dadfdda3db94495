//! Webhooks: Netstead's protocol and that of dnsweaver, each against a receiver that keeps its rules.

use std::{sync::Arc, time::Duration};

use netstead_model::{
    DnsProvider, ManualClock, ProviderError, RecordType, Span, SystemClock, Unit, UnitOutcome, WriteReply,
};
use netstead_providers::{
    Secret,
    contract::{self, Subject, basics::BINARY_TEXT},
    dns::webhook::{Config, Protocol},
};
use netstead_testkit::{DnsweaverReceiver, HttpFault, WebhookFault, WebhookReceiver};

use crate::support::{ZONE, a, change, context, request, set, zone};

const SECRET: &str = "a secret of the tests";
const TOKEN: &str = "Bearer hunter2";

fn signed(receiver: &WebhookReceiver, secret: &str) -> Config {
    Config::new(receiver.url(), Protocol::Netstead, Some(Secret::new(secret)))
}

fn weaver(receiver: &DnsweaverReceiver, token: &str) -> Config {
    Config {
        auth_header: Some("Authorization".into()),
        auth_token: Some(Secret::new(token)),
        ..Config::new(receiver.url(), Protocol::Dnsweaver, None)
    }
}

fn open(config: &Config) -> Arc<dyn DnsProvider> {
    config.open(&context()).unwrap()
}

fn host(n: usize) -> Unit {
    change(None, Some(a(&format!("h{n}.example.test"), &["192.0.2.1"])))
}

#[tokio::test]
async fn a_receiver_of_signed_batches_keeps_the_contract() {
    let receiver = Arc::new(WebhookReceiver::start(SECRET, &[ZONE]));
    let stranger = open(&signed(&receiver, "a secret of another"));
    let mut subject = Subject::new(open(&signed(&receiver, SECRET)), stranger, zone());
    let counted = Arc::clone(&receiver);
    subject.requests = Some(Box::new(move || counted.requests()));
    contract::all(&subject).await;
}

#[tokio::test]
async fn a_receiver_made_for_dnsweaver_keeps_the_contract() {
    let receiver = Arc::new(DnsweaverReceiver::start("authorization", TOKEN));
    let stranger = open(&weaver(&receiver, "Bearer wrong"));
    let mut subject = Subject::new(open(&weaver(&receiver, TOKEN)), stranger, zone());
    subject.impossible = vec![(RecordType::Txt, BINARY_TEXT)];
    let counted = Arc::clone(&receiver);
    subject.requests = Some(Box::new(move || counted.requests()));
    contract::all(&subject).await;
    assert_eq!(receiver.records(), [serde_json::Value::Null; 0]);
}

#[tokio::test]
async fn a_change_whose_answer_is_lost_is_made_once() {
    let receiver = WebhookReceiver::start(SECRET, &[ZONE]);
    let provider = open(&signed(&receiver, SECRET));
    receiver.fail(&[WebhookFault::LostAnswer, WebhookFault::Broken]);
    let done = provider.write(&zone(), &request(1, vec![host(1)])).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
    assert_eq!(receiver.changes(), (1, 1), "carried out once, recognised once");
    receiver.fail(&[WebhookFault::HalfAnswer]);
    assert_eq!(
        provider.write(&zone(), &request(2, vec![host(2)])).await,
        Ok(vec![UnitOutcome::Applied].into())
    );
    assert_eq!(receiver.changes(), (2, 2));
    receiver.fail(&[WebhookFault::LostAnswer; 3]);
    let lost = provider.write(&zone(), &request(3, vec![host(3)])).await.unwrap();
    assert_eq!(lost.outcomes, [UnitOutcome::Unknown]);
    assert!(matches!(lost.stopped, Some(ProviderError::Unknown { .. })), "{lost:?}");
    assert_eq!(provider.read(&zone()).await.unwrap().sets.len(), 3);
}

#[tokio::test]
async fn a_receiver_that_is_busy_in_the_middle_keeps_what_it_has_done() {
    let receiver = WebhookReceiver::start(SECRET, &[ZONE]);
    let provider = open(&signed(&receiver, SECRET));
    receiver.fail(&[WebhookFault::None, WebhookFault::Busy(90)]);
    let reply = provider.write(&zone(), &request(1, (0..1_200).map(host).collect())).await.unwrap();
    let mut wanted = vec![UnitOutcome::Applied; 500];
    wanted.resize(1_200, UnitOutcome::NotTried);
    assert_eq!(reply.outcomes, wanted);
    let ninety = Some(Duration::from_secs(90));
    assert_eq!(reply.stopped, Some(ProviderError::Busy { server: provider.server(), retry_after: ninety }));
    assert_eq!(provider.read(&zone()).await.unwrap().sets.len(), 500);
}

#[tokio::test]
async fn a_receiver_that_says_nothing_is_given_up_after_the_timeout() {
    let receiver = DnsweaverReceiver::start("authorization", TOKEN);
    let provider = open(&Config { timeout: Span::from_secs(1), ..weaver(&receiver, TOKEN) });
    receiver.http().fail_at("POST /create", 0, HttpFault::Silent);
    let reply = provider.write(&zone(), &request(1, vec![host(1), host(2)])).await.unwrap();
    assert_eq!(reply, vec![UnitOutcome::Unknown, UnitOutcome::Applied].into());
    let reply = provider.write(&zone(), &request(2, vec![host(1), host(2)])).await.unwrap();
    assert_eq!(reply, vec![UnitOutcome::Applied; 2].into());
}

#[tokio::test]
async fn a_late_write_is_refused_by_the_receiver() {
    let receiver = WebhookReceiver::start(SECRET, &[ZONE]);
    let provider = open(&signed(&receiver, SECRET));
    assert!(provider.write(&zone(), &request(12, vec![host(1)])).await.is_ok());
    let late = provider.write(&zone(), &request(11, vec![host(2)])).await;
    assert_eq!(late, Err(ProviderError::Late { server: provider.server(), zone: zone() }));
    assert_eq!(provider.read(&zone()).await.unwrap().sets.len(), 1);
}

#[tokio::test]
async fn a_secret_that_is_revoked_is_tried_once_a_minute() {
    let receiver = WebhookReceiver::start(SECRET, &[ZONE]);
    // Only the time that is measured stands still: the receiver compares the time of day with its own.
    let clock = ManualClock::at(netstead_model::Clock::wall(&SystemClock));
    let provider = signed(&receiver, SECRET).open(&context().with_clock(clock.shared())).unwrap();
    assert!(provider.zones(&[zone()]).await.is_ok());
    receiver.lock(true);
    let denied = provider.write(&zone(), &request(1, vec![host(1)])).await.unwrap_err();
    assert!(matches!(denied, ProviderError::Denied { .. }), "{denied}");
    let requests = receiver.requests();
    receiver.lock(false);
    assert_eq!(provider.zones(&[zone()]).await, Err(denied));
    assert_eq!(receiver.requests(), requests);
    clock.advance(Duration::from_secs(65));
    assert!(provider.write(&zone(), &request(2, vec![host(1)])).await.is_ok());
}

#[tokio::test]
async fn a_receiver_that_goes_and_comes_back_is_found_again() {
    let receiver = WebhookReceiver::start(SECRET, &[ZONE]);
    let provider = open(&signed(&receiver, SECRET));
    provider.write(&zone(), &request(1, vec![host(1)])).await.unwrap();
    receiver.stop();
    let gone = provider.write(&zone(), &request(2, vec![host(2)])).await;
    let gone = gone.map(|reply: WriteReply| reply.stopped);
    assert!(
        matches!(gone, Err(ProviderError::Unreachable { .. }) | Ok(Some(ProviderError::Unknown { .. }))),
        "{gone:?}"
    );
    receiver.restart();
    assert_eq!(
        provider.write(&zone(), &request(3, vec![host(2)])).await,
        Ok(vec![UnitOutcome::Applied].into())
    );
    assert_eq!(provider.read(&zone()).await.unwrap().sets.len(), 2);
}

#[tokio::test]
async fn what_netstead_cannot_read_is_left_out_and_read_only_zones_are_told() {
    let receiver = WebhookReceiver::start(SECRET, &[ZONE]);
    receiver.put(ZONE, "x.example.test", "NAPTR", &["whatever"]);
    receiver.put(ZONE, "y.example.test", "A", &["not an address"]);
    receiver.put(ZONE, "z.example.test", "A", &["192.0.2.1"]);
    let provider = open(&signed(&receiver, SECRET));
    assert_eq!(provider.read(&zone()).await.unwrap().sets, [a("z.example.test", &["192.0.2.1"])]);
    let wrong = change(None, Some(a("y.example.test", &["192.0.2.2"])));
    assert_eq!(
        provider.write(&zone(), &request(1, vec![wrong])).await,
        Ok(vec![UnitOutcome::Changed].into())
    );
    assert_eq!(provider.may_write(&zone()).await, Ok(()));
    receiver.make_read_only(ZONE);
    let told = provider.may_write(&zone()).await.unwrap_err();
    assert!(matches!(told, ProviderError::Denied { .. }), "{told}");
}

#[tokio::test]
async fn faults_of_a_receiver_made_for_dnsweaver_are_told_apart() {
    let receiver = DnsweaverReceiver::start("authorization", TOKEN);
    let clock = ManualClock::default();
    let provider = weaver(&receiver, TOKEN).open(&context().with_clock(clock.shared())).unwrap();
    provider.may_write(&zone()).await.unwrap();
    receiver.fail(&[WebhookFault::None, WebhookFault::Busy(90)]);
    let reply = provider.write(&zone(), &request(1, (0..3).map(host).collect())).await.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::Applied, UnitOutcome::NotTried, UnitOutcome::NotTried]);
    assert!(matches!(reply.stopped, Some(ProviderError::Busy { .. })), "{reply:?}");
    receiver.fail(&[WebhookFault::LostAnswer]);
    let reply = provider.write(&zone(), &request(2, vec![host(1), host(2)])).await.unwrap();
    assert_eq!(
        reply.outcomes,
        [UnitOutcome::Unknown, UnitOutcome::Applied],
        "a lost answer is not asked for again"
    );
    assert_eq!(receiver.records().len(), 3);
    receiver.lock(true);
    let denied = provider.read(&zone()).await.unwrap_err();
    assert!(matches!(denied, ProviderError::Denied { .. }), "{denied}");
    assert!(!denied.to_string().contains("hunter2"), "{denied}");
    let requests = receiver.requests();
    assert_eq!(provider.read(&zone()).await, Err(denied));
    assert_eq!(receiver.requests(), requests);
    receiver.lock(false);
    clock.advance(Duration::from_secs(65));
    assert_eq!(provider.read(&zone()).await.unwrap().sets.len(), 3);
}

#[tokio::test]
async fn dnsweavers_protocol_is_spoken_as_dnsweaver_does() {
    let receiver = DnsweaverReceiver::start("authorization", TOKEN);
    receiver.put(serde_json::json!({ "hostname": "old.example.test", "type": "MX", "value": "x", "ttl": 1 }));
    let provider = open(&weaver(&receiver, TOKEN));
    let srv = set("_x._tcp.example.test", RecordType::Srv, &["1 2 443 web.example.test."]);
    let text = set("t.example.test", RecordType::Txt, &[r#""say \"hi\"""#]);
    let units = vec![change(None, Some(srv.clone())), change(None, Some(text)), host(1)];
    provider.write(&zone(), &request(1, units)).await.unwrap();
    let moved = set("_x._tcp.example.test", RecordType::Srv, &["1 2 8443 web.example.test."]);
    provider.write(&zone(), &request(2, vec![change(Some(srv), Some(moved))])).await.unwrap();
    assert_eq!(
        serde_json::Value::Array(receiver.records().split_off(1)),
        serde_json::json!([
            { "hostname": "_x._tcp.example.test", "type": "SRV", "value": "web.example.test", "ttl": 300,
              "srv": { "priority": 1, "weight": 2, "port": 8443 }, "id": "1" },
            { "hostname": "t.example.test", "type": "TXT", "value": "say \"hi\"", "ttl": 300, "id": "2" },
            { "hostname": "h1.example.test", "type": "A", "value": "192.0.2.1", "ttl": 300, "id": "3" },
        ])
    );
}

#[test]
fn settings_of_webhooks_that_do_not_fit_together_are_refused() {
    let url = "http://hook.test";
    let secret = || Some(Secret::new(SECRET));
    let plain = |protocol, secret| Config::new(url, protocol, secret);
    let cases = [
        (plain(Protocol::Netstead, None), "secret"),
        (plain(Protocol::Netstead, Some(Secret::new("short"))), "secret"),
        (plain(Protocol::Dnsweaver, secret()), "secret"),
        (Config { auth_header: Some("X-Key".into()), ..plain(Protocol::Netstead, secret()) }, "auth_token"),
        (Config { auth_token: secret(), ..plain(Protocol::Netstead, secret()) }, "auth_header"),
        (
            Config {
                auth_header: Some("no header".into()),
                auth_token: secret(),
                ..plain(Protocol::Netstead, secret())
            },
            "auth_header",
        ),
        (Config::new("ftp://hook.test", Protocol::Netstead, secret()), "url"),
    ];
    for (config, key) in cases {
        assert_eq!(config.open(&context()).map(|one| one.server()).unwrap_err().key, key);
    }
}
