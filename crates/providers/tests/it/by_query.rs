use std::net::SocketAddr;

use netstead_model::{DnsProvider as _, ProviderError, UnitOutcome};
use netstead_providers::dns::rfc2136::{Read, Rfc2136};
use netstead_testkit::{Bind, Knot, PowerDns, SecretiveBind, TsigKey};

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

#[tokio::test]
async fn without_a_choice_a_transfer_is_tried_and_names_are_asked_for_where_it_is_refused() {
    let Some(open) = Bind::start(&[ZONE]) else { return };
    let Some(secretive) = SecretiveBind::start(&[ZONE]) else { return };
    let (www, other) = (a("www.example.test", &["192.0.2.1"]), a("other.example.test", &["192.0.2.2"]));
    let names = [name("www.example.test")].into();
    let filled = async |server, key: &TsigKey| {
        let provider = Rfc2136::new(config(server, key)).unwrap();
        assert!(provider.reads_by_name(), "nothing is known yet");
        let units = vec![change(None, Some(www.clone())), change(None, Some(other.clone()))];
        provider.write(&zone(), &request(1, units)).await.unwrap();
        provider
    };
    let by_transfer = filled(open.address(), open.key()).await;
    let whole = by_transfer.read_names(&zone(), &names).await.unwrap().sets;
    assert!(whole.contains(&www) && whole.contains(&other), "{whole:?}");
    assert!(!by_transfer.reads_by_name());

    let by_query = filled(secretive.address(), secretive.key()).await;
    let refused = by_query.read(&zone()).await;
    assert!(matches!(refused, Err(ProviderError::Denied { .. })), "a short list is an error: {refused:?}");
    let none = by_query.read_names(&zone(), &[].into()).await;
    assert!(
        matches!(none, Err(ProviderError::Denied { .. })),
        "nothing asked is not nothing there: {none:?}"
    );
    for _ in 0..2 {
        assert_eq!(by_query.read_names(&zone(), &names).await.unwrap().sets, std::slice::from_ref(&www));
        assert!(by_query.reads_by_name());
    }
}
