use std::sync::Arc;

use netstead_model::{DnsProvider as _, Name, ProviderError, RecordType, UnitOutcome};
use netstead_providers::{
    Secret,
    contract::{self, Subject},
    dns::powerdns::{Config, PowerDns},
};
use netstead_testkit::PowerDns as Server;

use crate::support::{Counter, ZONE, a, change, context, name, request, set, zone};

fn config(server: &Server) -> Config {
    Config::new(server.api_url(), Secret::new(server.api_key()))
}

fn provider(server: &Server) -> PowerDns {
    PowerDns::new(config(server)).unwrap()
}

async fn api(server: &Server, method: reqwest::Method, path: &str, body: &str) -> String {
    let url = format!("{}/api/v1/servers/localhost{path}", server.api_url());
    let request = reqwest::Client::builder().tls_certs_only([]).build().unwrap().request(method, url);
    let answer = request.header("X-API-Key", server.api_key()).body(body.to_owned()).send().await.unwrap();
    answer.text().await.unwrap()
}

#[tokio::test]
async fn powerdns_keeps_the_contract() {
    let Some(server) = Server::start(&[ZONE]) else { return };
    let counter = Counter::default();
    let observed = PowerDns::open(config(&server), &context().with_calls(Arc::new(counter.clone()))).unwrap();
    let stranger = PowerDns::new(Config::new(server.api_url(), Secret::new("wrong"))).unwrap();
    let mut subject = Subject::new(Arc::new(observed), Arc::new(stranger), zone());
    subject.requests = Some(Box::new(move || counter.get()));
    contract::all(&subject).await;
}

#[tokio::test]
async fn comments_and_disabled_records_stay() {
    let Some(server) = Server::start(&[ZONE]) else { return };
    let body = r#"{"rrsets":[{"name":"www.example.test.","type":"A","ttl":300,"changetype":"REPLACE",
        "records":[{"content":"192.0.2.1","disabled":false},{"content":"192.0.2.50","disabled":true}],
        "comments":[{"content":"by hand","account":"me"}]}]}"#;
    let path = format!("/zones/{ZONE}.");
    assert_eq!(api(&server, reqwest::Method::PATCH, &path, body).await, "");
    let provider = provider(&server);
    let old = a("www.example.test", &["192.0.2.1"]);
    assert!(provider.read(&zone()).await.unwrap().sets.contains(&old), "what is disabled is not there");
    let new = a("www.example.test", &["192.0.2.2"]);
    let done = provider
        .write(&zone(), &request(1, vec![change(Some(old), Some(new.clone()))]))
        .await
        .unwrap()
        .outcomes;
    assert_eq!(done, [UnitOutcome::Applied]);
    let text = api(&server, reqwest::Method::GET, &path, "").await;
    assert!(text.contains("by hand") && text.contains("192.0.2.50") && text.contains("192.0.2.2"), "{text}");
    let done = provider.write(&zone(), &request(2, vec![change(Some(new), None)])).await.unwrap().outcomes;
    assert_eq!(done, [UnitOutcome::Applied]);
    let text = api(&server, reqwest::Method::GET, &path, "").await;
    assert!(text.contains("192.0.2.50") && !text.contains("192.0.2.2\""), "{text}");
    assert!(
        !provider.read(&zone()).await.unwrap().sets.iter().any(|set| set.name == name("www.example.test"))
    );
}

#[tokio::test]
async fn a_set_with_a_value_we_cannot_read_is_not_replaced() {
    let Some(server) = Server::start(&[ZONE]) else { return };
    let body = r#"{"rrsets":[{"name":"gone.example.test.","type":"SRV","ttl":300,"changetype":"REPLACE",
        "records":[{"content":"0 0 0 .","disabled":false}]}]}"#;
    assert_eq!(api(&server, reqwest::Method::PATCH, &format!("/zones/{ZONE}."), body).await, "");
    let wanted = set("gone.example.test", RecordType::Srv, &["1 2 443 www.example.test."]);
    let done = provider(&server)
        .write(&zone(), &request(1, vec![change(None, Some(wanted))]))
        .await
        .unwrap()
        .outcomes;
    assert!(matches!(done.as_slice(), [UnitOutcome::Rejected { .. }]), "{done:?}");
}

#[tokio::test]
async fn a_rejection_has_the_servers_reason() {
    let Some(server) = Server::start(&[ZONE]) else { return };
    let provider = provider(&server);
    let alias = set("www.example.test", RecordType::Cname, &["target.example.net."]);
    let address = a("www.example.test", &["192.0.2.1"]);
    provider.write(&zone(), &request(1, vec![change(None, Some(alias))])).await.unwrap();
    let done =
        provider.write(&zone(), &request(2, vec![change(None, Some(address))])).await.unwrap().outcomes;
    assert_eq!(
        done,
        [UnitOutcome::Rejected {
            reason: "RRset www.example.test. IN A: Conflicts with pre-existing RRset".into()
        }]
    );
}

#[tokio::test]
async fn zones_are_made_only_if_allowed() {
    let Some(server) = Server::start(&[ZONE]) else { return };
    let new: Name = name("2.0.192.in-addr.arpa");
    let pointer = set("1.2.0.192.in-addr.arpa", RecordType::Ptr, &["www.example.test."]);
    let wanted = request(1, vec![change(None, Some(pointer.clone()))]);
    let strict = provider(&server);
    assert!(strict.zones(std::slice::from_ref(&new)).await.unwrap().is_empty());
    assert!(matches!(strict.write(&new, &wanted).await, Err(ProviderError::NoSuchZone { .. })));
    let error = PowerDns::new(Config { create_zones: true, ..config(&server) }).unwrap_err();
    assert_eq!(error.key, "nameservers");
    let nameservers = vec![name("ns1.example.test"), name("ns2.example.test")];
    let free = PowerDns::new(Config { create_zones: true, nameservers, ..config(&server) }).unwrap();
    let zones = free.zones(&[new.clone(), name("below.example.test")]).await.unwrap();
    let names: Vec<&Name> = zones.iter().map(|zone| &zone.name).collect();
    assert_eq!(names, [&new, &zone()], "a domain inside a zone needs none of its own");
    assert!(free.read(&new).await.unwrap().sets.is_empty());
    assert_eq!(free.write(&new, &wanted).await, Ok(vec![UnitOutcome::Applied].into()));
    let content = free.read(&new).await.unwrap();
    assert!(content.sign.and_then(|sign| sign.serial()).is_some_and(|serial| serial > 1));
    assert!(content.sets.contains(&pointer));
    let text = api(&server, reqwest::Method::GET, &format!("/zones/{new}."), "").await;
    assert!(text.contains("ns1.example.test. hostmaster.2.0.192.in-addr.arpa. "), "{text}");
    assert!(!text.contains("misconfigured"), "{text}");
}

#[tokio::test]
async fn copies_of_other_servers_are_not_ours_to_write() {
    let Some(server) = Server::start(&[ZONE]) else { return };
    let body = r#"{"name":"copy.example.test.","kind":"Slave","masters":["192.0.2.1"]}"#;
    api(&server, reqwest::Method::POST, "/zones", body).await;
    let zones = provider(&server).zones(&[zone()]).await.unwrap();
    assert_eq!(zones.iter().map(|zone| zone.name.as_str()).collect::<Vec<_>>(), [ZONE]);
}

#[tokio::test]
async fn a_restart_between_writes_goes_unnoticed() {
    let Some(mut server) = Server::start(&[ZONE]) else { return };
    let provider = provider(&server);
    let one = a("one.example.test", &["192.0.2.1"]);
    provider.write(&zone(), &request(1, vec![change(None, Some(one.clone()))])).await.unwrap();
    server.process().kill().unwrap();
    let down = provider.read(&zone()).await;
    assert!(matches!(down, Err(ProviderError::Unreachable { .. })), "{down:?}");
    let write = provider.write(&zone(), &request(2, vec![change(Some(one.clone()), None)])).await;
    assert!(matches!(write, Err(ProviderError::Unreachable { .. })), "{write:?}");
    server.restart().unwrap();
    assert!(provider.read(&zone()).await.unwrap().sets.contains(&one));
}

#[tokio::test]
async fn ten_thousand_names_take_a_handful_of_requests() {
    let Some(server) = Server::start(&[ZONE]) else { return };
    let counter = Counter::default();
    let provider = PowerDns::open(config(&server), &context().with_calls(Arc::new(counter.clone()))).unwrap();
    let new = |n: u32| change(None, Some(a(&format!("h{n}.example.test"), &["192.0.2.1"])));
    let outcomes =
        provider.write(&zone(), &request(1, (0..10_000).map(new).collect())).await.unwrap().outcomes;
    assert!(outcomes.iter().all(|outcome| *outcome == UnitOutcome::Applied));
    assert!(counter.get() <= 5, "it took {} requests", counter.get());
    assert!(provider.read(&zone()).await.unwrap().sets.len() > 10_000);
}
