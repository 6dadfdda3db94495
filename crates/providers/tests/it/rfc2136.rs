use std::{fmt::Write as _, sync::Arc, time::Duration};

use netstead_model::{DnsProvider as _, ProviderError, RecordType, UnitOutcome, WriteReply};
use netstead_providers::contract;
use netstead_testkit::{Bind, Knot, PowerDns, TsigKey};

use crate::support::{
    ZONE, a, change, config, context, hasty, name, request, rfc2136, set, stopped, subject, wrong_secret,
    zone,
};

#[tokio::test]
async fn bind_keeps_the_contract() {
    let Some(bind) = Bind::start(&[ZONE]) else { return };
    contract::all(&subject(bind.address(), bind.key())).await;
}

#[tokio::test]
async fn knot_keeps_the_contract() {
    let Some(knot) = Knot::start(&[ZONE]) else { return };
    contract::all(&subject(knot.address(), knot.key())).await;
}

#[tokio::test]
async fn powerdns_keeps_the_contract_by_dns_update() {
    let Some(powerdns) = PowerDns::start(&[ZONE]) else { return };
    contract::all(&subject(powerdns.address(), powerdns.key())).await;
}

#[tokio::test]
async fn longer_keys_work_too() {
    for algorithm in ["hmac-sha384", "hmac-sha512"] {
        let key = TsigKey::with_algorithm(algorithm);
        let Some(bind) = Bind::with_records(&[ZONE], &key, "") else { return };
        let provider = rfc2136(bind.address(), &key);
        let wanted = a("www.example.test", &["192.0.2.1"]);
        let done = provider.write(&zone(), &request(1, vec![change(None, Some(wanted.clone()))])).await;
        assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
        assert!(provider.read(&zone()).await.unwrap().sets.contains(&wanted));
    }
}

#[tokio::test]
async fn refused_credentials_are_explained() {
    let Some(bind) = Bind::start(&[ZONE]) else { return };
    let told = |key: TsigKey| {
        let provider = rfc2136(bind.address(), &key);
        async move { provider.read(&zone()).await.unwrap_err().to_string() }
    };
    let server = bind.address();
    assert_eq!(
        told(wrong_secret(bind.key())).await,
        format!(
            "{server} refuses these credentials: BADSIG: it has another secret for the key netstead-test (hmac-sha256)"
        )
    );
    let unknown = TsigKey { name: "nobody".into(), ..bind.key().clone() };
    assert_eq!(
        told(unknown).await,
        format!(
            "{server} refuses these credentials: BADKEY: it does not know the key nobody (hmac-sha256); name and \
             algorithm must be the same there"
        )
    );
    let clock = netstead_model::ManualClock::at(jiff::Timestamp::from_second(1_000_000_000).unwrap());
    let context = context().with_clock(clock.shared());
    let late = netstead_providers::dns::Rfc2136::open(config(server, bind.key()), &context);
    let error = late.unwrap().read(&zone()).await.unwrap_err();
    assert!(matches!(error, ProviderError::Denied { .. }), "{error:?}");
    assert!(error.to_string().contains("BADTIME: its clock and ours are "), "{error}");
    let keyless = netstead_providers::dns::Rfc2136::new(netstead_providers::dns::rfc2136::Config::new([
        server.to_string(),
    ]));
    let keyless = keyless.unwrap();
    let error = keyless.read(&zone()).await.unwrap_err();
    assert!(error.to_string().contains("set `read = \"query\"`"), "{error}");
    let write = keyless
        .write(&zone(), &request(1, vec![change(None, Some(a("x.example.test", &["192.0.2.1"])))]))
        .await;
    assert!(matches!(write, Err(ProviderError::Denied { .. })), "{write:?}");
}

#[tokio::test]
async fn ten_thousand_records_are_read_whole() {
    let mut records = String::new();
    for n in 0..10_000 {
        writeln!(records, "host-{n} IN A 10.1.{}.{}", n / 250, n % 250).unwrap();
    }
    let Some(bind) = Bind::with_records(&[ZONE], &TsigKey::default(), &records) else { return };
    let content = rfc2136(bind.address(), bind.key()).read(&zone()).await.unwrap();
    let hosts = content.sets.iter().filter(|set| set.name.as_str().starts_with("host-")).count();
    assert_eq!(hosts, 10_000);
    assert_eq!(content.sign, Some(1.into()));
}

#[tokio::test]
async fn what_our_types_cannot_hold_hides_nothing_and_is_never_replaced() {
    let records = "gone IN SRV 0 0 0 .\ngone IN TXT \"kept\"\nold IN LOC 52 22 23.000 N 4 53 32.000 E -2.00m\n\
                   we\\032ird IN TXT x\n-odd IN TXT x\nempty IN APL\nkey IN SSHFP 1 1 0123456789012345678901234567890123456789\n";
    let Some(bind) = Bind::with_records(&[ZONE], &TsigKey::default(), records) else { return };
    let provider = rfc2136(bind.address(), bind.key());
    let content = provider.read(&zone()).await.unwrap();
    let shown: Vec<String> = content.sets.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "example.test. 3600 IN NS ns1.example.test.",
            "gone.example.test. 3600 IN TXT \"kept\"",
            "ns1.example.test. 3600 IN A 127.0.0.1",
        ]
    );
    let joined =
        change(None, Some(set("gone.example.test", RecordType::Srv, &["1 2 443 www.example.test."])));
    let alias = change(None, Some(set("old.example.test", RecordType::Cname, &["www.example.test."])));
    let outcomes = provider.write(&zone(), &request(1, vec![joined, alias])).await.unwrap().outcomes;
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, UnitOutcome::Rejected { .. } | UnitOutcome::Changed)),
        "{outcomes:?}"
    );
    assert!(matches!(outcomes.first(), Some(UnitOutcome::Rejected { .. })), "{outcomes:?}");
}

#[tokio::test]
async fn an_update_stopped_on_its_way_is_refused_once_a_newer_one_was_there() {
    let Some(knot) = Knot::start(&[ZONE]) else { return };
    let provider = rfc2136(knot.address(), knot.key());
    let at = |address: &str| Some(a("www.example.test", &[address]));
    provider.write(&zone(), &request(10, vec![change(None, at("192.0.2.10"))])).await.unwrap();
    provider.write(&zone(), &request(12, vec![change(at("192.0.2.10"), at("192.0.2.12"))])).await.unwrap();
    // A→C→A: the value that the late one expects is there again.
    provider.write(&zone(), &request(13, vec![change(at("192.0.2.12"), at("192.0.2.10"))])).await.unwrap();
    let late = provider.write(&zone(), &request(11, vec![change(at("192.0.2.10"), at("192.0.2.11"))])).await;
    let late = stopped(late);
    assert!(matches!(late, ProviderError::Late { .. }), "{late:?}");
    let content = provider.read(&zone()).await.unwrap();
    assert!(content.sets.contains(&at("192.0.2.10").unwrap()));
    assert!(
        !content.sets.iter().any(|set| set.name.as_str().contains("fence")),
        "the fence is nobody's record"
    );
}

#[tokio::test]
async fn a_server_that_stops_answering_leaves_an_unknown_outcome_and_heals() {
    let Some(mut bind) = Bind::start(&[ZONE]) else { return };
    let provider = hasty(config(bind.address(), bind.key()));
    let first = change(None, Some(a("one.example.test", &["192.0.2.1"])));
    assert_eq!(
        provider.write(&zone(), &request(1, vec![first.clone()])).await,
        Ok(vec![UnitOutcome::Applied].into())
    );
    bind.process().signal("STOP").unwrap();
    // The kernel still takes connections; the questions before the update go unanswered.
    let stopped = provider.write(&zone(), &request(2, vec![first.clone()])).await;
    assert!(matches!(stopped, Err(ProviderError::Unreachable { .. })), "{stopped:?}");
    bind.restart().unwrap();
    assert_eq!(
        provider.write(&zone(), &request(3, vec![first])).await,
        Ok(vec![UnitOutcome::Applied].into())
    );
    let content = provider.read(&zone()).await.unwrap();
    assert!(content.sets.contains(&a("one.example.test", &["192.0.2.1"])));
}

#[tokio::test]
async fn a_restart_in_mid_write_loses_nothing_that_was_acknowledged() {
    let Some(mut bind) = Bind::start(&[ZONE]) else { return };
    let provider = Arc::new(rfc2136(bind.address(), bind.key()));
    let writer = {
        let provider = Arc::clone(&provider);
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for n in 1..=300_u64 {
                let wanted = a(&format!("w{n}.example.test"), &["192.0.2.1"]);
                let done =
                    provider.write(&zone(), &request(n, vec![change(None, Some(wanted.clone()))])).await;
                match done {
                    Ok(reply) if reply.outcomes == [UnitOutcome::Applied] => acknowledged.push(wanted),
                    Ok(WriteReply {
                        stopped: Some(ProviderError::Unknown { .. } | ProviderError::Unreachable { .. }),
                        ..
                    }) => tokio::time::sleep(Duration::from_millis(20)).await,
                    Ok(other) => panic!("{other:?}"),
                    Err(ProviderError::Unknown { .. } | ProviderError::Unreachable { .. }) => {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
            acknowledged
        })
    };
    tokio::time::sleep(Duration::from_millis(150)).await;
    tokio::task::spawn_blocking(move || {
        bind.restart().unwrap();
        bind
    })
    .await
    .map(|bind| async move {
        let acknowledged = writer.await.unwrap();
        let content = rfc2136(bind.address(), bind.key()).read(&zone()).await.unwrap();
        assert!(!acknowledged.is_empty());
        for wanted in acknowledged {
            assert!(content.sets.contains(&wanted), "{wanted} was acknowledged");
        }
    })
    .unwrap()
    .await;
}

#[tokio::test]
async fn the_name_servers_of_the_zone_can_be_changed() {
    for which in ["bind", "knot"] {
        let (bind, knot) = match which {
            "bind" => (Bind::start(&[ZONE]), None),
            _ => (None, Knot::start(&[ZONE])),
        };
        let Some((address, key)) = bind
            .as_ref()
            .map(|server| (server.address(), server.key()))
            .or(knot.as_ref().map(|server| (server.address(), server.key())))
        else {
            return;
        };
        let provider = rfc2136(address, key);
        let mut old = set(ZONE, RecordType::Ns, &["ns1.example.test."]);
        old.ttl = 3600;
        let mut new = set(ZONE, RecordType::Ns, &["ns2.example.net.", "ns3.example.net."]);
        new.ttl = 600;
        let outcomes = provider.write(&zone(), &request(1, vec![change(Some(old), Some(new.clone()))])).await;
        assert_eq!(outcomes, Ok(vec![UnitOutcome::Applied].into()), "{which}");
        let content = provider.read(&zone()).await.unwrap();
        let found =
            content.sets.iter().find(|set| set.name == name(ZONE) && set.kind == RecordType::Ns).unwrap();
        assert_eq!(found, &new, "{which}");
    }
}
