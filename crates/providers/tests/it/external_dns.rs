//! Webhook providers of external-dns: the contract and faults against a fake.

use std::{sync::Arc, time::Duration};

use netstead_model::{
    DnsProvider, ManualClock, Marks, ProviderError, RecordSet, RecordType, UnitOutcome, ZoneContent,
};
use netstead_providers::{
    BuildContext, Secret,
    contract::{self, Subject},
    dns::external_dns::{Config, ExternalDns},
};
use netstead_settings::Configured as _;
use netstead_testkit::{FakeWebhookProvider, HttpFault, HttpRequest, HttpResponse, WebhookHabits};
use serde_json::json;

use crate::support::{Counter, a, change, context, name, request, set, stopped, zone};

const TYPES: [RecordType; 8] = [
    RecordType::A,
    RecordType::Aaaa,
    RecordType::Cname,
    RecordType::Txt,
    RecordType::Srv,
    RecordType::Mx,
    RecordType::Ns,
    RecordType::Ptr,
];

fn config(server: &FakeWebhookProvider, password: &str) -> Config {
    let mut config = Config::new(server.http().url());
    config.user = Some(server.user().into());
    config.password = Some(Secret::new(password));
    config.record_types = TYPES.to_vec();
    config
}

fn open(server: &FakeWebhookProvider, password: &str, context: &BuildContext) -> Arc<dyn DnsProvider> {
    Arc::new(ExternalDns::open(&config(server, password), context).unwrap())
}

fn fake(habits: WebhookHabits) -> (FakeWebhookProvider, Arc<dyn DnsProvider>) {
    let server = FakeWebhookProvider::start(habits);
    let provider = open(&server, server.password(), &context());
    (server, provider)
}

fn subject(server: &FakeWebhookProvider) -> Subject {
    let counter = Counter::default();
    let provider = open(server, server.password(), &context().with_calls(Arc::new(counter.clone())));
    let mut subject = Subject::new(provider, open(server, "wrong", &context()), zone());
    subject.requests = Some(Box::new(move || counter.get()));
    subject.poison = change(None, Some(a("poison.example.test", &["198.51.100.66"])));
    subject
}

fn sets(content: &ZoneContent) -> Vec<String> {
    let shown = |set: &RecordSet| {
        let values: Vec<String> = set.values.iter().map(ToString::to_string).collect();
        format!("{} {} {} {}", set.name, set.ttl, set.kind, values.join(" "))
    };
    content.sets.iter().map(shown).collect()
}

fn posts(request: &HttpRequest) -> bool {
    request.method == "POST" && request.path == "/records"
}

fn status(status: u16) -> HttpFault {
    HttpFault::Answer(HttpResponse::new(status, ""))
}

fn www(address: &str) -> RecordSet {
    a("www.example.test", &[address])
}

#[tokio::test]
async fn a_webhook_provider_keeps_the_contract() {
    let half = WebhookHabits { atomic: false, ..WebhookHabits::default() };
    let raises = WebhookHabits { shortest_ttl: 120, ..WebhookHabits::default() };
    for habits in [WebhookHabits::default(), half, raises] {
        let server = FakeWebhookProvider::start(habits);
        contract::all(&subject(&server)).await;
        assert_eq!(server.endpoints(), Vec::<serde_json::Value>::new());
    }
}

#[tokio::test]
async fn a_provider_without_times_to_live_keeps_the_contract_and_shows_no_drift() {
    let server = FakeWebhookProvider::start(WebhookHabits { keeps_ttl: false, ..WebhookHabits::default() });
    contract::all(&subject(&server)).await;
    let provider = open(&server, server.password(), &context());
    let done = provider.write(&zone(), &request(1, vec![change(None, Some(www("192.0.2.1")))])).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
    let content = provider.read(&zone()).await.unwrap();
    assert_eq!(content.sets, [provider.adjust(www("192.0.2.1"), &provider.capabilities())]);
    assert_eq!(content.sets[0].ttl, 0);
}

#[tokio::test]
async fn each_call_is_as_the_stock_client_makes_it() {
    let (server, provider) = fake(WebhookHabits::default());
    provider.zones(&[zone()]).await.unwrap();
    provider.read(&zone()).await.unwrap();
    provider.write(&zone(), &request(1, vec![change(None, Some(www("192.0.2.1")))])).await.unwrap();
    let made = change(Some(www("192.0.2.1")), Some(www("192.0.2.2")));
    provider.write(&zone(), &request(2, vec![made])).await.unwrap();
    provider.write(&zone(), &request(3, vec![change(Some(www("192.0.2.2")), None)])).await.unwrap();
    let calls: Vec<String> = server
        .http()
        .requests()
        .iter()
        .map(|request| {
            format!("{} {} {}", request.method, request.path, String::from_utf8_lossy(&request.body))
        })
        .collect();
    let endpoint = |address: &str, more: &str| {
        format!(
            r#"[{{"dnsName":"www.example.test","targets":["{address}"],"recordType":"A","recordTTL":300{more}}}]"#
        )
    };
    let own = r#","providerSpecific":[{"name":"webhook/fake","value":"yes"}]"#;
    let (one, two) = (endpoint("192.0.2.1", own), endpoint("192.0.2.2", own));
    let expected = [
        "GET / ".to_owned(),
        "GET /records ".to_owned(),
        "GET /records ".to_owned(),
        format!("POST /adjustendpoints {}", endpoint("192.0.2.1", "")),
        format!(r#"POST /records {{"create":{one}}}"#),
        "GET /records ".to_owned(),
        format!("POST /adjustendpoints {}", endpoint("192.0.2.2", "")),
        format!(r#"POST /records {{"updateOld":{one},"updateNew":{two}}}"#),
        "GET /records ".to_owned(),
        format!(r#"POST /records {{"delete":{two}}}"#),
    ];
    assert_eq!(calls, expected);
}

#[tokio::test]
async fn a_text_comes_back_with_or_without_quotes() {
    for strips_quotes in [false, true] {
        let (_server, provider) = fake(WebhookHabits { strips_quotes, ..WebhookHabits::default() });
        let text = set("text.example.test", RecordType::Txt, &[r#""v=1; a b""#]);
        let units = vec![change(None, Some(text.clone()))];
        let done = provider.write(&zone(), &request(1, units)).await;
        assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
        assert_eq!(provider.read(&zone()).await.unwrap().sets, [text]);
    }
}

#[tokio::test]
async fn names_outside_the_domain_filter_are_rejected_before_they_are_sent() {
    let filter = json!({ "include": ["apps.example.test"], "exclude": ["old.apps.example.test"] });
    let (server, provider) = fake(WebhookHabits { filter, ..WebhookHabits::default() });
    assert_eq!(provider.zones(&[name("other.test")]).await, Ok(Vec::new()));
    assert!(matches!(provider.may_write(&name("other.test")).await, Err(ProviderError::NoSuchZone { .. })));
    assert_eq!(provider.may_write(&zone()).await, Ok(()));
    let [inside, out, old] = ["a.apps.example.test", "b.example.test", "c.old.apps.example.test"];
    let units = [inside, out, old].map(|at| change(None, Some(a(at, &["192.0.2.1"]))));
    let done = provider.write(&zone(), &request(1, units.to_vec())).await;
    let outside = |at: &str| UnitOutcome::Rejected {
        reason: format!("`{at}` is outside the domain filter of the provider"),
    };
    assert_eq!(done, Ok(vec![UnitOutcome::Applied, outside(out), outside(old)].into()));
    assert_eq!(server.endpoints().len(), 1);
}

#[tokio::test]
async fn endpoints_that_netstead_cannot_hold_are_left_alone() {
    let (server, provider) = fake(WebhookHabits::default());
    let weighted = json!({ "dnsName": "weighted.example.test", "recordType": "A", "targets": ["192.0.2.9"],
        "setIdentifier": "blue" });
    let naptr = json!({ "dnsName": "sip.example.test", "recordType": "NAPTR", "targets": ["1 1 S . . ."] });
    server.add(&weighted);
    server.add(&naptr);
    assert_eq!(provider.read(&zone()).await.unwrap().sets, []);
    let units = vec![
        change(None, Some(a("weighted.example.test", &["192.0.2.1"]))),
        change(None, Some(set("sip.example.test", RecordType::Cname, &["x.example.test."]))),
    ];
    let done = provider.write(&zone(), &request(1, units)).await.unwrap();
    let rejected = |outcome: &UnitOutcome| matches!(outcome, UnitOutcome::Rejected { .. });
    assert!(done.outcomes.iter().all(rejected), "{done:?}");
    assert_eq!(server.endpoints(), [weighted, naptr]);
}

#[tokio::test]
async fn values_that_are_listed_one_by_one_are_one_set() {
    let (server, provider) = fake(WebhookHabits::default());
    for address in ["192.0.2.1", "192.0.2.2"] {
        server.add(&json!({ "dnsName": "www.example.test", "recordType": "A", "targets": [address],
            "recordTTL": 300, "labels": { "owner": "default" } }));
    }
    let both = a("www.example.test", &["192.0.2.1", "192.0.2.2"]);
    assert_eq!(provider.read(&zone()).await.unwrap().sets, std::slice::from_ref(&both));
    let done = provider.write(&zone(), &request(1, vec![change(Some(both), Some(www("192.0.2.3")))])).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
    let expected = json!({ "dnsName": "www.example.test", "recordType": "A", "targets": ["192.0.2.3"],
        "recordTTL": 300, "labels": { "owner": "default" },
        "providerSpecific": [{ "name": "webhook/fake", "value": "yes" }] });
    assert_eq!(server.endpoints(), [expected]);
}

#[tokio::test]
async fn a_set_that_the_provider_drops_is_rejected() {
    let types = vec!["A", "TXT"];
    let (server, provider) = fake(WebhookHabits { types, ..WebhookHabits::default() });
    let units = vec![
        change(None, Some(set("sub.example.test", RecordType::Ns, &["ns.example.net."]))),
        change(None, Some(set("host.example.test", RecordType::Aaaa, &["2001:db8::1"]))),
        change(None, Some(www("192.0.2.1"))),
    ];
    let done = provider.write(&zone(), &request(1, units)).await.unwrap();
    let reasons = [
        "the provider does not hold the NS set of `sub.example.test`",
        "it answers 500 Internal Server Error: AAAA is not supported",
    ];
    let [first, second] = reasons.map(|reason| UnitOutcome::Rejected { reason: reason.into() });
    assert_eq!(done.outcomes, [first, second, UnitOutcome::Applied]);
    assert_eq!(server.endpoints().len(), 1);
}

#[tokio::test]
async fn a_provider_that_refuses_everything_is_in_trouble_itself() {
    let (server, provider) = fake(WebhookHabits::default());
    server.http().fail(0, 1_000, status(500), posts);
    let unit = |n: usize| change(None, Some(a(&format!("x{n}.example.test"), &["192.0.2.1"])));
    let units: Vec<_> = (0..50).map(unit).collect();
    let done = provider.write(&zone(), &request(1, units)).await.unwrap();
    assert_eq!(done.outcomes, vec![UnitOutcome::NotTried; 50]);
    let reason = "it answers 500 Internal Server Error and gives no reason; its log has one".to_owned();
    assert_eq!(done.stopped, Some(ProviderError::Unreachable { server: server.http().url(), reason }));
    let calls = server.http().requests().iter().filter(|request| posts(request)).count();
    assert!(calls < 15, "{calls}");
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_repeated_without_harm() {
    for fault in [HttpFault::Lost, HttpFault::Dropped] {
        let (server, provider) = fake(WebhookHabits::default());
        server.http().fail(0, 1, fault, posts);
        let units = vec![change(None, Some(www("192.0.2.1")))];
        let done = provider.write(&zone(), &request(1, units.clone())).await.unwrap();
        assert_eq!(done.outcomes, [UnitOutcome::Unknown]);
        let done = provider.write(&zone(), &request(2, units)).await;
        assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
        assert_eq!(server.endpoints().len(), 1);
    }
}

#[tokio::test]
async fn half_a_listing_and_an_odd_one_are_errors() {
    let (server, provider) = fake(WebhookHabits::default());
    let lists = |request: &HttpRequest| request.method == "GET" && request.path == "/records";
    server.http().fail(0, 3, HttpFault::Half, lists);
    let read = provider.read(&zone()).await;
    assert!(matches!(read, Err(ProviderError::Unreachable { .. })), "{read:?}");
    server.http().fail(0, 1, HttpFault::Answer(HttpResponse::json(200, r#"[{"dnsName": 7}]"#)), lists);
    let read = provider.read(&zone()).await;
    assert!(matches!(read, Err(ProviderError::Malformed { .. })), "{read:?}");
    server.http().fail(0, 1, HttpFault::Answer(HttpResponse::json(200, "null")), lists);
    assert_eq!(sets(&provider.read(&zone()).await.unwrap()), [""; 0]);
}

#[tokio::test]
async fn another_version_of_the_protocol_is_told() {
    let media_type = "application/external.dns.webhook+json;version=2";
    let (server, provider) = fake(WebhookHabits { media_type, ..WebhookHabits::default() });
    let reason = format!(
        "it speaks `{media_type}` and not `application/external.dns.webhook+json;version=1`: is it a webhook provider of \
         external-dns?"
    );
    let expected = ProviderError::Malformed { server: server.http().url(), reason };
    assert_eq!(provider.zones(&[zone()]).await, Err(expected));
}

#[tokio::test]
async fn refused_credentials_are_sent_once_a_minute() {
    let server = FakeWebhookProvider::start(WebhookHabits::default());
    let clock = ManualClock::default();
    let provider = open(&server, server.password(), &context().with_clock(clock.shared()));
    provider.zones(&[zone()]).await.unwrap();
    server.revoke(true);
    server.http().requests();
    let unit = change(None, Some(www("192.0.2.1")));
    for _ in 0..20 {
        let denied = provider.read(&zone()).await;
        assert!(matches!(denied, Err(ProviderError::Denied { .. })) || denied.is_ok(), "{denied:?}");
        let denied = stopped(provider.write(&zone(), &request(1, vec![unit.clone()])).await);
        assert!(matches!(denied, ProviderError::Denied { .. }), "{denied:?}");
    }
    assert_eq!(server.http().requests().len(), 1);
    server.revoke(false);
    clock.advance(Duration::from_secs(65));
    let done = provider.write(&zone(), &request(2, vec![unit])).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
}

#[tokio::test]
async fn credentials_that_are_revoked_half_way_and_a_busy_server_end_the_write() {
    for (number, retry) in [(401, None), (429, Some("7"))] {
        let (server, provider) = fake(WebhookHabits::default());
        let mut answer = HttpResponse::new(number, "");
        if let Some(seconds) = retry {
            answer = answer.header("retry-after", seconds);
        }
        server.http().fail(1, 1, HttpFault::Answer(answer), posts);
        let unit = |n: usize| change(None, Some(a(&format!("x{n}.example.test"), &["192.0.2.1"])));
        let units: Vec<_> = (0..500).map(unit).collect();
        let done = provider.write(&zone(), &request(1, units)).await.unwrap();
        let applied = done.outcomes.iter().filter(|one| **one == UnitOutcome::Applied).count();
        let waiting = done.outcomes.iter().filter(|one| **one == UnitOutcome::NotTried).count();
        assert_eq!((applied, waiting, server.endpoints().len()), (200, 300, 200));
        match done.stopped {
            Some(ProviderError::Denied { .. }) if number == 401 => {}
            Some(ProviderError::Busy { retry_after, .. }) if number == 429 => {
                assert_eq!(retry_after, Some(Duration::from_secs(7)));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_provider_that_went_away_comes_back_with_another_filter() {
    let (server, provider) = fake(WebhookHabits::default());
    provider.read(&zone()).await.unwrap();
    server.http().stop();
    let unit = change(None, Some(www("192.0.2.1")));
    let gone = provider.write(&zone(), &request(1, vec![unit.clone()])).await;
    assert!(matches!(gone, Err(ProviderError::Unreachable { .. })), "{gone:?}");
    server.http().restart();
    let done = provider.write(&zone(), &request(2, vec![unit])).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
    let asked = server.http().requests().iter().filter(|request| request.path == "/").count();
    assert_eq!(asked, 1, "it is asked again after a failure");
}

#[test]
fn a_provider_without_text_records_gets_no_marks() {
    let mut config = Config::new("http://localhost:8888");
    let marks = |config: &Config| ExternalDns::open(config, &context()).unwrap().capabilities().marks;
    assert_eq!(marks(&config), Marks::Txt);
    config.record_types = vec![RecordType::A];
    assert_eq!(marks(&config), Marks::None);
}

#[test]
fn settings_that_cannot_work_are_told() {
    let problem = |change: fn(&mut Config)| {
        let mut config = Config::new("http://localhost:8888");
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    assert_eq!(
        problem(|config| config.record_types.clear()),
        "record_types: it is empty: the provider could hold nothing"
    );
    assert_eq!(
        problem(|config| config.record_types.push(RecordType::Caa)),
        "record_types: external-dns has no records of type CAA"
    );
    assert_eq!(
        problem(|config| config.user = Some("me".into())),
        "password: `user` and `password` are set together"
    );
    assert_eq!(problem(|config| config.url = "http://me:x@a".into()), "url: a secret does not belong in it");
}
