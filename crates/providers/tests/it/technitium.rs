//! Against a fake: Technitium is in no package registry.

use std::{sync::Arc, time::Duration};

use netstead_model::{
    DnsProvider, ManualClock, Marks, Name, ProviderError, RecordType, SetChange, Unit, UnitOutcome,
    WriteReply,
};
use netstead_providers::{
    Secret,
    contract::{
        self, Subject,
        basics::{BINARY_TEXT, EMPTY_TEXT},
    },
    dns::technitium::{Config, TokenIn},
};
use netstead_settings::Configured as _;
use netstead_testkit::{FakeTechnitium as Server, HttpFault, HttpRequest, HttpResponse, TechnitiumRights};

use crate::support::{Counter, ZONE, a, change, context, name, request, set, stopped, zone};

fn config(server: &Server) -> Config {
    Config::new(server.http().url(), Secret::new(server.token()))
}

fn provider(server: &Server) -> Arc<dyn DnsProvider> {
    config(server).build(&context()).unwrap()
}

fn is(action: &'static str) -> impl Fn(&HttpRequest) -> bool + Send {
    move |request| request.path.ends_with(action)
}

fn busy() -> HttpFault {
    HttpFault::Answer(HttpResponse::json(429, "{}").header("retry-after", "30"))
}

fn ten() -> Vec<Unit> {
    (0..10).map(|n| change(None, Some(a(&format!("h{n}.example.test"), &["192.0.2.1"])))).collect()
}

async fn keeps_the_contract(server: &Server) {
    let counter = Counter::default();
    let observed = config(server).build(&context().with_calls(Arc::new(counter.clone()))).unwrap();
    let stranger = Config { token: Secret::new("wrong"), ..config(server) }.build(&context()).unwrap();
    let mut subject = Subject::new(observed, stranger, zone());
    subject.requests = Some(Box::new(move || counter.get()));
    subject.impossible = vec![(RecordType::Txt, EMPTY_TEXT), (RecordType::Txt, BINARY_TEXT)];
    contract::all(&subject).await;
}

#[tokio::test]
async fn technitium_keeps_the_contract() {
    let server = Server::start(&[ZONE]);
    keeps_the_contract(&server).await;
    let in_url = |request: &HttpRequest| request.parameter("token") == Some(server.token());
    assert!(!server.http().requests().iter().any(in_url), "a token that is valid should be in no URL");
}

#[tokio::test]
async fn an_older_technitium_keeps_the_contract() {
    keeps_the_contract(&Server::start_version(14, &[ZONE])).await;
}

#[tokio::test]
async fn a_version_without_headers_and_forms_is_found_out() {
    let server = Server::start_version(10, &[ZONE]);
    let www = a("www.example.test", &["192.0.2.1"]);
    let wanted = request(1, vec![change(None, Some(www.clone()))]);
    let provider = provider(&server);
    assert_eq!(provider.write(&zone(), &wanted).await, Ok(vec![UnitOutcome::Applied].into()));
    assert!(provider.read(&zone()).await.unwrap().sets.contains(&www));
    let strict = Config { token_in: TokenIn::Header, ..config(&server) }.build(&context()).unwrap();
    assert!(strict.read(&zone()).await.is_err());
    let query = Config { token_in: TokenIn::Query, ..config(&server) }.build(&context()).unwrap();
    assert!(query.read(&zone()).await.unwrap().sets.contains(&www));
}

#[tokio::test]
async fn a_version_that_joins_strings_takes_no_split_text() {
    let server = Server::start_version(12, &[ZONE]);
    let provider = provider(&server);
    let split = set("t.example.test", RecordType::Txt, &[r#""one" "two""#]);
    let reply = provider.write(&zone(), &request(1, vec![change(None, Some(split))])).await.unwrap();
    assert!(
        matches!(reply.outcomes.as_slice(), [UnitOutcome::Rejected { reason }] if reason.contains("this version")),
        "{reply:?}"
    );
    assert!(!provider.read(&zone()).await.unwrap().sets.iter().any(|set| set.kind == RecordType::Txt));
}

#[tokio::test]
async fn a_secondary_node_names_the_primary() {
    let server = Server::start(&[]);
    server.add_zone("Secondary", ZONE);
    server.join_cluster(Some("https://ns0.example.test:53443/"));
    let provider = provider(&server);
    let error = provider.zones(&[zone()]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{} gave an answer that cannot be used: it is a secondary node of the cluster `cluster.test`, which takes no \
             changes; set `url` to its primary, https://ns0.example.test:53443/",
            server.http().url()
        )
    );
    assert_eq!(provider.may_write(&zone()).await, Err(error));
}

#[tokio::test]
async fn copies_of_other_servers_are_not_ours_to_write() {
    let server = Server::start(&[ZONE]);
    server.add_zone("Secondary", "copy.example.test");
    server.add_zone("Forwarder", "fwd.example.test");
    let zones = provider(&server).zones(&[zone()]).await.unwrap();
    let names: Vec<&str> = zones.iter().map(|zone| zone.name.as_str()).collect();
    assert_eq!(names, [ZONE, "fwd.example.test"]);
}

#[tokio::test]
async fn zones_are_made_only_if_allowed() {
    let server = Server::start(&[ZONE]);
    server.join_cluster(None);
    let new: Name = name("2.0.192.in-addr.arpa");
    let pointer = set("1.2.0.192.in-addr.arpa", RecordType::Ptr, &["www.example.test."]);
    let wanted = request(1, vec![change(None, Some(pointer.clone()))]);
    let strict = provider(&server);
    assert!(strict.zones(std::slice::from_ref(&new)).await.unwrap().is_empty());
    assert!(matches!(strict.write(&new, &wanted).await, Err(ProviderError::NoSuchZone { .. })));
    let free = Config { create_zones: true, ..config(&server) }.build(&context()).unwrap();
    let zones = free.zones(&[new.clone(), name("below.example.test")]).await.unwrap();
    assert_eq!(zones.iter().map(|zone| &zone.name).collect::<Vec<_>>(), [&new, &zone()]);
    assert!(free.read(&new).await.unwrap().sets.is_empty());
    assert_eq!(free.may_write(&new).await, Ok(()));
    assert_eq!(free.write(&new, &wanted).await, Ok(vec![UnitOutcome::Applied].into()));
    assert!(free.read(&new).await.unwrap().sets.contains(&pointer));
    let catalog = server.catalog(new.as_str());
    assert_eq!(catalog.as_deref(), Some("cluster-catalog.cluster.test"), "the secondaries copy it");
}

#[tokio::test]
async fn a_right_that_is_missing_is_found_without_a_change() {
    let server = Server::start(&[ZONE]);
    let provider = provider(&server);
    assert_eq!(provider.may_write(&zone()).await, Ok(()));
    let before = server.records(ZONE);
    for rights in [
        TechnitiumRights { modify: false, ..TechnitiumRights::ALL },
        TechnitiumRights { delete: false, ..TechnitiumRights::ALL },
    ] {
        server.set_rights(Some(rights));
        let error = provider.may_write(&zone()).await.unwrap_err();
        assert!(
            matches!(&error, ProviderError::Denied { reason, .. }
                if reason == "Access was denied. Its user needs View, Modify and Delete of `example.test`"),
            "{error}"
        );
    }
    assert_eq!(server.records(ZONE), before);
}

#[tokio::test]
async fn comments_stay_and_disabled_records_are_none() {
    let server = Server::start(&[ZONE]);
    let at = [("zone", ZONE), ("domain", "www.example.test"), ("type", "A"), ("ttl", "300")];
    let add = |address, comments| {
        let more = [("ipAddress", address), ("comments", comments)];
        server.by_hand("add", &[&at[..], &more].concat());
    };
    add("192.0.2.1", "by hand");
    add("192.0.2.50", "off");
    let off = [("ipAddress", "192.0.2.50"), ("disable", "true"), ("comments", "off"), ("expiryTtl", "9")];
    server.by_hand("update", &[&at[..], &off].concat());
    let provider = provider(&server);
    let (old, new) = (a("www.example.test", &["192.0.2.1"]), a("www.example.test", &["192.0.2.2"]));
    assert!(provider.read(&zone()).await.unwrap().sets.contains(&old));
    let done = provider.write(&zone(), &request(1, vec![change(Some(old), Some(new.clone()))])).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
    let shown: Vec<String> = server.records(ZONE).iter().map(ToString::to_string).collect();
    let has = |parts: &[&str]| shown.iter().any(|record| parts.iter().all(|part| record.contains(part)));
    assert!(has(&["192.0.2.2", "by hand"]), "{shown:?}");
    assert!(has(&["192.0.2.50", "off", "\"expiryTtl\":9", "\"disabled\":true"]), "{shown:?}");
    // The value of a disabled record cannot be made.
    let twice = a("www.example.test", &["192.0.2.2", "192.0.2.50"]);
    let reply = provider.write(&zone(), &request(2, vec![change(Some(new), Some(twice))])).await.unwrap();
    assert!(
        matches!(reply.outcomes.as_slice(), [UnitOutcome::Rejected { reason }] if reason.contains("disabled")),
        "{reply:?}"
    );
}

#[tokio::test]
async fn a_value_we_cannot_read_is_not_replaced() {
    let server = Server::start(&[ZONE]);
    let at = [("zone", ZONE), ("domain", "gone.example.test"), ("type", "SRV")];
    let value = [("priority", "0"), ("weight", "0"), ("port", "0"), ("target", ".")];
    server.by_hand("add", &[&at[..], &value].concat());
    let wanted = set("gone.example.test", RecordType::Srv, &["1 2 443 www.example.test."]);
    let reply =
        provider(&server).write(&zone(), &request(1, vec![change(None, Some(wanted))])).await.unwrap();
    assert!(matches!(reply.outcomes.as_slice(), [UnitOutcome::Rejected { .. }]), "{reply:?}");
}

#[tokio::test]
async fn a_name_whose_address_goes_loses_its_pointer_and_that_is_no_error() {
    let server = Server::start(&[ZONE, "2.0.192.in-addr.arpa"]);
    let (provider, reverse) = (provider(&server), name("2.0.192.in-addr.arpa"));
    let address = a("www.example.test", &["192.0.2.1"]);
    let pointer = set("1.2.0.192.in-addr.arpa", RecordType::Ptr, &["www.example.test."]);
    for (zone, set) in [(&zone(), &address), (&reverse, &pointer)] {
        provider.write(zone, &request(1, vec![change(None, Some(set.clone()))])).await.unwrap();
    }
    let applied = Ok(vec![UnitOutcome::Applied].into());
    let gone = request(2, vec![change(Some(address), None)]);
    assert_eq!(provider.write(&zone(), &gone).await, applied);
    assert!(!provider.read(&reverse).await.unwrap().sets.contains(&pointer), "the server removes it");
    let gone = request(2, vec![change(Some(pointer), None)]);
    assert_eq!(provider.write(&reverse, &gone).await, applied);
}

#[tokio::test]
async fn a_token_revoked_in_mid_run_stops_the_write_and_is_asked_for_once_a_minute() {
    let server = Server::start(&[ZONE]);
    let clock = ManualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let provider = config(&server).build(&context().with_clock(Arc::new(clock.clone()))).unwrap();
    let invalid = HttpResponse::json(200, r#"{"status":"invalid-token","errorMessage":"Invalid token."}"#);
    server.http().fail(3, 1, HttpFault::Answer(invalid), is("/add"));
    let reply = provider.write(&zone(), &request(1, ten())).await.unwrap();
    let WriteReply { outcomes, stopped: Some(ProviderError::Denied { .. }) } = reply else {
        panic!("{reply:?}")
    };
    let expected = [vec![UnitOutcome::Applied; 3], vec![UnitOutcome::NotTried; 7]].concat();
    assert_eq!(outcomes, expected);
    server.http().requests();
    for _ in 0..5 {
        assert!(matches!(provider.read(&zone()).await, Err(ProviderError::Denied { .. })));
    }
    assert_eq!(server.http().requests().len(), 0, "a refused token should not be sent again");
    clock.advance(Duration::from_secs(65));
    assert_eq!(provider.read(&zone()).await.unwrap().sets.len(), 4);
}

#[tokio::test]
async fn a_busy_server_in_mid_batch_is_left_alone() {
    let server = Server::start(&[ZONE]);
    server.http().fail(4, 1, busy(), is("/add"));
    let reply = provider(&server).write(&zone(), &request(1, ten())).await.unwrap();
    let expected = [vec![UnitOutcome::Applied; 4], vec![UnitOutcome::NotTried; 6]].concat();
    let retry_after = Some(Duration::from_secs(30));
    let stopped = Some(ProviderError::Busy { server: server.http().url(), retry_after });
    assert_eq!(reply, WriteReply { outcomes: expected, stopped });
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_the_next_write_finds_it() {
    let server = Server::start(&[ZONE]);
    let provider = provider(&server);
    for (at, fault) in [(2, HttpFault::Lost), (1, HttpFault::Half), (0, HttpFault::Dropped)] {
        server.http().fail(at, 1, fault, is("/add"));
        let reply = provider.write(&zone(), &request(1, ten())).await.unwrap();
        assert_eq!(reply.outcomes.iter().filter(|one| **one == UnitOutcome::Unknown).count(), 1, "{reply:?}");
        let again = provider.write(&zone(), &request(2, ten())).await.unwrap();
        assert_eq!(again, vec![UnitOutcome::Applied; 10].into());
        let away =
            ten().into_iter().map(|unit| SetChange { before: unit.changes[0].after.clone(), after: None });
        let away = away.map(|change| Unit { name: change.name().unwrap().clone(), changes: vec![change] });
        provider.write(&zone(), &request(3, away.collect())).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_error_leaves_the_unit_unknown() {
    let server = Server::start(&[ZONE]);
    server.http().fail(0, 1, HttpFault::Answer(HttpResponse::json(500, "oops")), is("/add"));
    let www = change(None, Some(a("www.example.test", &["192.0.2.1"])));
    let reply = provider(&server).write(&zone(), &request(1, vec![www])).await.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::Unknown]);
}

#[tokio::test]
async fn a_server_that_was_gone_is_used_again() {
    let server = Server::start(&[ZONE]);
    let provider = provider(&server);
    let one = a("one.example.test", &["192.0.2.1"]);
    provider.write(&zone(), &request(1, vec![change(None, Some(one.clone()))])).await.unwrap();
    server.http().stop();
    assert!(matches!(provider.read(&zone()).await, Err(ProviderError::Unreachable { .. })));
    let away = request(2, vec![change(Some(one.clone()), None)]);
    assert!(matches!(stopped(provider.write(&zone(), &away).await), ProviderError::Unreachable { .. }));
    server.http().restart();
    assert!(provider.read(&zone()).await.unwrap().sets.contains(&one));
    assert_eq!(provider.write(&zone(), &away).await, Ok(vec![UnitOutcome::Applied].into()));
}

#[test]
fn the_https_record_beside_addresses_is_configured() {
    let config = Config::new("http://ns1:5380", Secret::new("x"));
    let companion = |config: &Config| config.build(&context()).unwrap().capabilities().companion;
    assert_eq!(companion(&config).unwrap().to_string(), "1 . alpn=h2");
    let more = Config { https_alpn: "h2,h3".into(), ..config.clone() };
    assert_eq!(companion(&more).unwrap().to_string(), "1 . alpn=h2,h3");
    assert_eq!(companion(&Config { https_records: false, ..config.clone() }), None);
    assert_eq!(config.build(&context()).unwrap().capabilities().marks, Marks::Txt);
    let error = Config { https_alpn: "h2 | x".into(), ..config }.build(&context()).unwrap_err();
    assert_eq!(error.key, "https_alpn");
}

#[tokio::test]
async fn a_token_that_the_server_echoes_is_not_shown() {
    let server = Server::start(&[ZONE]);
    let echo = format!(r#"{{"status":"error","errorMessage":"bad {}"}}"#, server.token());
    server.http().fail(0, 9, HttpFault::Answer(HttpResponse::json(200, echo)), is("/get"));
    let error = provider(&server).read(&zone()).await.unwrap_err().to_string();
    assert!(!error.contains(server.token()), "{error}");
}
