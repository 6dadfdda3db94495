use netstead_model::{DnsProvider as _, ProviderError, UnitOutcome};
use netstead_providers::dns::rfc2136::Rfc2136;
use netstead_testkit::{Bind, Knot, free_port};

use crate::support::{ZONE, a, change, config, request, zone};

#[tokio::test]
async fn the_next_server_answers_when_the_first_is_gone() {
    let Some(bind) = Bind::start(&[ZONE]) else { return };
    let mut config = config(bind.address(), bind.key());
    config.servers.insert(0, format!("127.0.0.1:{}", free_port().unwrap()));
    let provider = Rfc2136::new(config).unwrap();
    assert_eq!(provider.zones(&[zone()]).await.unwrap().len(), 1);
    let wanted = a("www.example.test", &["192.0.2.1"]);
    let done = provider.write(&zone(), &request(1, vec![change(None, Some(wanted.clone()))])).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
    assert!(provider.read(&zone()).await.unwrap().sets.contains(&wanted));
}

#[tokio::test]
async fn writes_pass_over_a_server_that_does_not_hold_the_zone() {
    let (Some(other), Some(bind)) = (Knot::start(&["other.test"]), Bind::start(&[ZONE])) else { return };
    let mut config = config(bind.address(), bind.key());
    config.servers.insert(0, other.address().to_string());
    let provider = Rfc2136::new(config).unwrap();
    let wanted = a("www.example.test", &["192.0.2.1"]);
    let done = provider.write(&zone(), &request(1, vec![change(None, Some(wanted))])).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
}

#[tokio::test]
async fn the_first_error_is_told_when_all_fail() {
    let mut config =
        netstead_providers::dns::rfc2136::Config::new([format!("127.0.0.1:{}", free_port().unwrap())]);
    config.servers.push("127.0.0.1:1".into());
    let first = config.servers[0].clone();
    let error = Rfc2136::new(config).unwrap().read(&zone()).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Unreachable { server, .. } if *server == first), "{error:?}");
}
