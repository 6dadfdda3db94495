//! Against a fake: Cloudflare cannot be had on a test machine.

use std::{sync::Arc, time::Duration};

use netstead_model::{
    DnsProvider, ManualClock, ProviderError, RecordSet, RecordType, Unit, UnitOutcome, WriteGuard,
    WriteReply, WriteRequest,
};
use netstead_providers::{
    Secret,
    contract::{self, Subject},
    dns::cloudflare::Config,
};
use netstead_settings::{Configured as _, Number};
use netstead_testkit::{FakeCloudflare as Server, HttpFault, HttpRequest, HttpResponse};
use serde_json::json;

use crate::support::{Counter, ZONE, a, change, context, name, request, set, stopped, zone};

fn config(server: &Server) -> Config {
    Config { url: server.url(), ..Config::new(Secret::new(server.token())) }
}

fn provider(server: &Server) -> Arc<dyn DnsProvider> {
    config(server).build(&context()).unwrap()
}

fn is_batch(request: &HttpRequest) -> bool {
    request.path.ends_with("/batch")
}

fn many(count: u32) -> Vec<Unit> {
    let one = |n| change(None, Some(a(&format!("h{n}.example.test"), &["192.0.2.1"])));
    (0..count).map(one).collect()
}

fn applied(count: usize) -> WriteReply {
    vec![UnitOutcome::Applied; count].into()
}

fn unproxied(set: RecordSet) -> RecordSet {
    RecordSet { proxied: Some(false), ..set }
}

#[tokio::test]
async fn cloudflare_keeps_the_contract() {
    let server = Server::start(&["other.test", ZONE]);
    let counter = Counter::default();
    let observed = config(&server).build(&context().with_calls(Arc::new(counter.clone()))).unwrap();
    let stranger = Config { token: Secret::new("wrong"), ..config(&server) }.build(&context()).unwrap();
    let mut subject = Subject::new(observed, stranger, zone());
    subject.requests = Some(Box::new(move || counter.get()));
    contract::all(&subject).await;
    assert!(server.records("other.test").is_empty());
}

#[tokio::test]
async fn a_thousand_names_take_five_batches() {
    let server = Server::start(&[ZONE]);
    let provider = provider(&server);
    assert_eq!(provider.write(&zone(), &request(1, many(1_000))).await, Ok(applied(1_000)));
    let sent = server.http().requests();
    assert_eq!(sent.iter().filter(|request| is_batch(request)).count(), 5);
    assert_eq!(sent.len(), 7, "besides them one finds the zone and one reads it");
}

#[tokio::test]
async fn zones_are_found_by_name_and_by_id() {
    let server = Server::start(&["other.test", ZONE]);
    let names = async |config: Config| {
        let zones = config.build(&context()).unwrap().zones(&[zone(), name("a.other.test")]).await.unwrap();
        zones.iter().map(|zone| zone.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(config(&server)).await, [ZONE, "other.test"]);
    assert_eq!(names(Config { zone: Some(zone()), ..config(&server) }).await, [ZONE]);
    let id = server.zone_id(ZONE);
    assert_eq!(names(Config { zone_id: id.clone(), ..config(&server) }).await, [ZONE]);
    // With both, a token that may not read zones will do.
    server.set_permissions(Some(&["#dns_records:read", "#dns_records:edit"]));
    let both = Config { zone: Some(zone()), zone_id: id, ..config(&server) };
    assert_eq!(names(both.clone()).await, [ZONE]);
    let both = both.build(&context()).unwrap();
    assert_eq!(both.may_write(&zone()).await, Ok(()));
}

#[tokio::test]
async fn a_token_that_only_reads_is_found_out() {
    let server = Server::start(&[ZONE]);
    let provider = provider(&server);
    assert_eq!(provider.may_write(&zone()).await, Ok(()));
    server.set_permissions(Some(&["#zone:read", "#dns_records:read"]));
    let error = provider.may_write(&zone()).await.unwrap_err();
    assert!(
        matches!(&error, ProviderError::Denied { reason, .. } if reason.contains("DNS Write")),
        "{error}"
    );
    let error = stopped(provider.write(&zone(), &request(1, many(3))).await);
    assert!(matches!(error, ProviderError::Denied { .. }), "{error}");
}

#[tokio::test]
async fn all_pages_are_read_and_a_missing_one_is_no_shorter_list() {
    let server = Server::start(&[ZONE]);
    let provider = provider(&server);
    provider.write(&zone(), &request(1, many(25))).await.unwrap();
    server.set_page(10);
    assert_eq!(provider.read(&zone()).await.unwrap().sets.len(), 25);
    server.lose_page(Some(2));
    let error = provider.read(&zone()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Malformed { .. }), "{error}");
    let error = stopped(provider.write(&zone(), &request(2, many(26))).await);
    assert!(matches!(error, ProviderError::Malformed { .. }), "{error}");
    server.lose_page(None);
    assert_eq!(provider.read(&zone()).await.unwrap().sets.len(), 25);
}

#[tokio::test]
async fn records_are_proxied_as_the_table_or_the_workload_says() {
    let server = Server::start(&[ZONE]);
    let proxied = Config { proxied: true, ..config(&server) }.build(&context()).unwrap();
    let www = a("www.example.test", &["192.0.2.1"]);
    let direct = RecordSet { proxied: Some(false), ..a("direct.example.test", &["192.0.2.1"]) };
    let text = set("t.example.test", RecordType::Txt, &["\"x\""]);
    let units = [&www, &direct, &text].map(|set| change(None, Some(set.clone())));
    assert_eq!(proxied.write(&zone(), &request(1, units.to_vec())).await, Ok(applied(3)));
    let sets = proxied.read(&zone()).await.unwrap().sets;
    let shown = |at: &str| {
        let set = sets.iter().find(|set| set.name == name(at)).unwrap();
        (set.proxied, set.ttl)
    };
    assert_eq!(shown("www.example.test"), (Some(true), 1));
    assert_eq!(shown("direct.example.test"), (Some(false), 300));
    assert_eq!(shown("t.example.test"), (None, 300));
    let ttl = |ttl| proxied.adjust(RecordSet { ttl, ..direct.clone() }, &proxied.capabilities()).ttl;
    assert_eq!([0, 1, 59, 300, 900_000].map(ttl), [60, 1, 60, 300, 86_400]);
}

#[tokio::test]
async fn a_comment_says_who_made_a_record_and_that_of_a_person_stays() {
    let server = Server::start(&[ZONE]);
    let by_hand = json!({ "name": "www.example.test", "type": "A", "content": "192.0.2.1", "ttl": 300, "comment": "mine" });
    server.by_hand(ZONE, by_hand);
    let provider = provider(&server);
    let (old, new) =
        (a("www.example.test", &["192.0.2.1"]), a("www.example.test", &["192.0.2.2", "192.0.2.3"]));
    assert_eq!(
        provider.write(&zone(), &request(1, vec![change(Some(old), Some(new))])).await,
        Ok(applied(1))
    );
    let mut shown: Vec<_> =
        server.records(ZONE).iter().map(|one| (one["content"].clone(), one["comment"].clone())).collect();
    shown.sort_by_key(|(content, _)| content.to_string());
    let expected = [
        (json!("192.0.2.2"), json!("mine")),
        (json!("192.0.2.3"), json!("made by Netstead it, provider it")),
    ];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn one_refused_unit_does_not_stop_the_others() {
    let server = Server::start(&[ZONE]);
    let mut units = many(50);
    units.insert(17, change(None, Some(set("bad.example.test", RecordType::Caa, &[r#"0 issue "x""#]))));
    let refused = HttpResponse::json(
        400,
        r#"{"success":false,"errors":[{"code":9005,"message":"Content is invalid."}],"result":null}"#,
    );
    server.http().fail(0, 99, HttpFault::Answer(refused), |request| {
        is_batch(request) && String::from_utf8_lossy(&request.body).contains("bad.example.test")
    });
    let reply = provider(&server).write(&zone(), &request(1, units)).await.unwrap();
    let mut expected = vec![UnitOutcome::Applied; 51];
    expected[17] = UnitOutcome::Rejected { reason: "Content is invalid. (9005)".into() };
    assert_eq!(reply, WriteReply { outcomes: expected, stopped: None });
}

/// A guard that makes a record by hand between the reading and the first batch.
fn meanwhile(server: &Arc<Server>, record: serde_json::Value) -> WriteGuard {
    let server = Arc::clone(server);
    let record = std::sync::Mutex::new(Some(record));
    WriteGuard::new(move || {
        if let Some(record) = record.lock().unwrap().take() {
            server.by_hand(ZONE, record);
        }
        async { Ok(()) }
    })
}

#[tokio::test]
async fn conflicts_that_come_up_meanwhile_are_told_as_what_they_are() {
    let www = a("www.example.test", &["192.0.2.1"]);
    let identical = json!({ "name": "www.example.test", "type": "A", "content": "192.0.2.1", "ttl": 300 });
    let alias = json!({ "name": "www.example.test", "type": "CNAME", "content": "x.test", "ttl": 300 });
    let rejected =
        UnitOutcome::Rejected { reason: "A CNAME record with that host already exists. (81054)".into() };
    for (record, outcome) in [(identical, UnitOutcome::Applied), (alias, rejected)] {
        let server = Arc::new(Server::start(&[ZONE]));
        let guard = meanwhile(&server, record);
        let units =
            vec![change(None, Some(www.clone())), change(None, Some(a("b.example.test", &["192.0.2.2"])))];
        let request = WriteRequest { guard, ..request(1, units) };
        let reply = provider(&server).write(&zone(), &request).await.unwrap();
        assert_eq!(reply, vec![outcome, UnitOutcome::Applied].into());
    }
    // A record that is gone.
    let server = Server::start(&[ZONE]);
    let provider = provider(&server);
    provider.write(&zone(), &request(1, vec![change(None, Some(www.clone()))])).await.unwrap();
    let gone = HttpResponse::json(
        400,
        r#"{"success":false,"errors":[{"code":81044,"message":"Record does not exist."}]}"#,
    );
    server.http().fail(0, 1, HttpFault::Answer(gone), is_batch);
    let moved = change(Some(www), Some(a("www.example.test", &["192.0.2.9"])));
    let reply = provider.write(&zone(), &request(2, vec![moved])).await.unwrap();
    let reason = "Record does not exist. (81044)".into();
    assert_eq!(reply, vec![UnitOutcome::Rejected { reason }].into());
}

#[tokio::test]
async fn the_budget_is_kept_before_the_server_has_to_ask() {
    let server = Server::start(&[ZONE]);
    let clock = ManualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let limited = Config { rate_limit: Number::nearest(12), ..config(&server) };
    let provider = limited.build(&context().with_clock(clock.shared())).unwrap();
    let mut made = 0;
    let error = loop {
        match provider.read(&zone()).await {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
        assert!(made < 20, "the budget should be spent");
    };
    let url = server.url();
    let retry_after = Some(Duration::from_mins(5));
    assert_eq!(error, ProviderError::Busy { server: url, retry_after });
    assert_eq!(server.http().requests().len(), 10, "two are left for repetitions");
    // Another table with the same token has the same budget.
    let second = limited.build(&context().with_clock(clock.shared())).unwrap();
    assert!(matches!(second.read(&zone()).await, Err(ProviderError::Busy { .. })));
    clock.advance(Duration::from_mins(5));
    assert_eq!(provider.read(&zone()).await.unwrap().sets, []);
}

#[tokio::test]
async fn a_budget_that_ends_in_mid_write_says_what_stands() {
    let server = Server::start(&[ZONE]);
    server.set_left(4);
    let provider = provider(&server);
    let reply = provider.write(&zone(), &request(1, many(1_000))).await.unwrap();
    let outcomes = [vec![UnitOutcome::Applied; 400], vec![UnitOutcome::NotTried; 600]].concat();
    let retry_after = Some(Duration::from_mins(2));
    assert_eq!(
        reply,
        WriteReply { outcomes, stopped: Some(ProviderError::Busy { server: server.url(), retry_after }) }
    );
    assert_eq!(server.records(ZONE).len(), 400);
    server.http().requests();
    server.set_left(100);
    assert!(
        matches!(provider.read(&zone()).await, Err(ProviderError::Busy { .. })),
        "it waits as it was asked to"
    );
    assert_eq!(server.http().requests().len(), 0);
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_the_next_write_finds_it() {
    for fault in [
        HttpFault::Lost,
        HttpFault::Half,
        HttpFault::Dropped,
        HttpFault::Answer(HttpResponse::json(500, "x")),
    ] {
        let server = Server::start(&[ZONE]);
        let provider = provider(&server);
        server.http().fail(1, 1, fault, is_batch);
        let reply = provider.write(&zone(), &request(1, many(600))).await.unwrap();
        let unknown = vec![UnitOutcome::Unknown; 200];
        let outcomes = [vec![UnitOutcome::Applied; 200], unknown, vec![UnitOutcome::NotTried; 200]].concat();
        assert_eq!(reply.outcomes, outcomes);
        assert_eq!(provider.write(&zone(), &request(2, many(600))).await, Ok(applied(600)));
        assert_eq!(server.records(ZONE).len(), 600);
    }
}

#[tokio::test]
async fn a_revoked_token_stops_the_write_and_is_sent_once_a_minute() {
    let server = Server::start(&[ZONE]);
    let clock = ManualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let provider = config(&server).build(&context().with_clock(clock.shared())).unwrap();
    assert_eq!(provider.write(&zone(), &request(1, many(3))).await, Ok(applied(3)));
    server.set_permissions(None);
    let error = stopped(provider.write(&zone(), &request(2, many(5))).await);
    assert!(matches!(&error, ProviderError::Denied { .. }), "{error}");
    server.http().requests();
    for _ in 0..5 {
        assert!(matches!(provider.read(&zone()).await, Err(ProviderError::Denied { .. })));
    }
    assert_eq!(server.http().requests().len(), 0, "a refused token should not be sent again");
    server.set_permissions(Some(&["#zone:read", "#dns_records:read", "#dns_records:edit"]));
    clock.advance(Duration::from_secs(65));
    let expected = unproxied(a("h0.example.test", &["192.0.2.1"]));
    assert!(provider.read(&zone()).await.unwrap().sets.contains(&expected));
}

#[tokio::test]
async fn a_server_that_was_gone_is_used_again() {
    let server = Server::start(&[ZONE]);
    let provider = provider(&server);
    provider.write(&zone(), &request(1, many(2))).await.unwrap();
    server.http().stop();
    assert!(matches!(provider.read(&zone()).await, Err(ProviderError::Unreachable { .. })));
    assert!(matches!(
        stopped(provider.write(&zone(), &request(2, many(3))).await),
        ProviderError::Unreachable { .. }
    ));
    server.http().restart();
    assert_eq!(provider.write(&zone(), &request(2, many(3))).await, Ok(applied(3)));
}

#[test]
fn an_id_that_is_none_is_refused() {
    let config = Config { zone_id: Some("example.test".into()), ..Config::new(Secret::new("x")) };
    assert_eq!(config.build(&context()).unwrap_err().key, "zone_id");
}
