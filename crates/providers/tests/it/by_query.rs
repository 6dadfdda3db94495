use std::net::SocketAddr;

use netstead_model::{DnsProvider as _, ProviderError, UnitOutcome};
use netstead_providers::dns::rfc2136::{Read, Rfc2136};
use netstead_testkit::{Bind, Knot, PowerDns, TsigKey};

use crate::support::{ZONE, a, change, config, name, request, zone};

fn by_query(server: SocketAddr, key: &TsigKey) -> Rfc2136 {
    let mut config = config(server, key);
    config.read = Read::Query;
    Rfc2136::new(config).unwrap()
}

async fn check(provider: Rfc2136) {
    let unknown = provider.read(&zone()).await;
    assert!(matches!(unknown, Err(ProviderError::Malformed { .. })), "a short list is an error: {unknown:?}");
    let wild = a("*.example.test", &["192.0.2.9"]);
    let own = a("www.example.test", &["192.0.2.1"]);
    let units = vec![change(None, Some(wild.clone())), change(None, Some(own.clone()))];
    let done = provider.write(&zone(), &request(1, units.clone())).await.unwrap().outcomes;
    assert_eq!(done, [UnitOutcome::Applied, UnitOutcome::Applied]);
    let serial = provider.zones(&[zone()]).await.unwrap();
    // Repeated, and asked for a name that only the wildcard answers for.
    assert_eq!(provider.write(&zone(), &request(1, units)).await.unwrap().outcomes, done);
    let names = ["*.example.test", "www.example.test", "gone.example.test"].map(name).into();
    let content = provider.read_names(&zone(), &names).await.unwrap();
    assert_eq!(content.sets, [wild.clone(), own]);
    assert_eq!(provider.zones(&[zone()]).await.unwrap(), serial, "reading changes nothing");
    let covered = a("gone.example.test", &["192.0.2.5"]);
    let done = provider
        .write(&zone(), &request(2, vec![change(None, Some(covered.clone()))]))
        .await
        .unwrap()
        .outcomes;
    assert_eq!(done, [UnitOutcome::Applied]);
    let done = provider
        .write(&zone(), &request(2, vec![change(None, Some(covered.clone()))]))
        .await
        .unwrap()
        .outcomes;
    assert_eq!(done, [UnitOutcome::Applied]);
    let done = provider.write(&zone(), &request(3, vec![change(Some(wild), None)])).await.unwrap().outcomes;
    assert_eq!(done, [UnitOutcome::Applied]);
}

#[tokio::test]
async fn bind_can_be_read_without_transfer() {
    let Some(bind) = Bind::start(&[ZONE]) else { return };
    check(by_query(bind.address(), bind.key())).await;
}

#[tokio::test]
async fn knot_can_be_read_without_transfer() {
    let Some(knot) = Knot::start(&[ZONE]) else { return };
    check(by_query(knot.address(), knot.key())).await;
}

#[tokio::test]
async fn powerdns_can_be_read_without_transfer() {
    let Some(powerdns) = PowerDns::start(&[ZONE]) else { return };
    check(by_query(powerdns.address(), powerdns.key())).await;
}
