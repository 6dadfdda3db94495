use hickory_proto::op::{Edns, Message, MessageType, OpCode};
use insta::assert_snapshot;

use crate::fixture::{House, exchange, plain_query, query, show};

const ZONE: &str = r#"
    example.test 300 MX 10 mail.example.test
    www.example.test 300 A 192.0.2.1
    www.example.test 300 AAAA 2001:db8::1
    www.example.test 300 TXT "hello world" "second"
    www.example.test 300 CAA 0 issue "ca.example.test"
    www.example.test 300 HTTPS 1 . alpn=h2,h3 ipv4hint=192.0.2.1
    _http._tcp.example.test 60 SRV 10 5 443 www.example.test
    _dns.example.test 60 SVCB 1 dns.example.test port=853
    sub.example.test 300 NS ns.sub.example.test
    sub.example.test 300 NS ns.other.test
    ns.sub.example.test 300 A 192.0.2.53
"#;

#[tokio::test]
async fn each_type_is_answered() {
    let house = House::new(&["example.test"]).await;
    house.fill("example.test", ZONE).await;
    let mut answers = Vec::new();
    for (name, kind) in [
        ("www.example.test.", "A"),
        ("WWW.Example.Test.", "AAAA"),
        ("www.example.test.", "TXT"),
        ("www.example.test.", "CAA"),
        ("www.example.test.", "HTTPS"),
        ("example.test.", "MX"),
        ("example.test.", "SOA"),
        ("example.test.", "NS"),
        ("_http._tcp.example.test.", "SRV"),
        ("_dns.example.test.", "SVCB"),
        ("www.example.test.", "ANY"),
    ] {
        answers.push(house.ask(name, kind).await);
    }
    assert_snapshot!(answers.join("\n\n"));
    house.server.shutdown().await;
}

#[tokio::test]
async fn what_was_given_away_is_referred() {
    let house = House::new(&["example.test"]).await;
    house.fill("example.test", ZONE).await;
    let referral = house.ask("deep.sub.example.test.", "A").await;
    assert_eq!(house.ask("sub.example.test.", "NS").await, referral);
    assert_eq!(house.ask("ns.sub.example.test.", "A").await, referral);
    assert_snapshot!(referral, @r"
    NoError rd edns
    authority sub.example.test. 300 IN NS ns.other.test.
    authority sub.example.test. 300 IN NS ns.sub.example.test.
    additional ns.sub.example.test. 300 IN A 192.0.2.53
    ");
    // The upper side of a cut is asked for the DS, and has none.
    assert_snapshot!(house.ask("sub.example.test.", "DS").await, @r"
    NoError aa rd edns
    authority example.test. 60 IN SOA ns1.example.test. hostmaster.ns1.example.test. 1000000001 3600 600 1209600 60
    ");
}

#[tokio::test]
async fn addresses_have_their_names() {
    let house = House::new(&["2.0.192.in-addr.arpa"]).await;
    house.fill("2.0.192.in-addr.arpa", "7.2.0.192.in-addr.arpa 300 PTR web.example.test").await;
    assert_snapshot!(house.ask("7.2.0.192.in-addr.arpa.", "PTR").await, @r"
    NoError aa rd edns
    7.2.0.192.in-addr.arpa. 300 IN PTR web.example.test.
    ");
    assert_snapshot!(house.ask("8.2.0.192.in-addr.arpa.", "PTR").await, @r"
    NXDomain aa rd edns
    authority 2.0.192.in-addr.arpa. 60 IN SOA ns1.example.test. hostmaster.ns1.example.test. 1000000001 3600 600 1209600 60
    ");
}

#[tokio::test]
async fn what_does_not_fit_is_asked_again_over_tcp() {
    let house = House::new(&["example.test"]).await;
    let lines: Vec<String> = (0..100).map(|n| format!("big.example.test 300 A 192.0.2.{n}")).collect();
    house.fill("example.test", &lines.join("\n")).await;
    assert_eq!(house.ask("big.example.test.", "A").await, "NoError aa tc rd edns");
    let short = house.exchange(&plain_query("big.example.test.", "A")).await;
    assert_eq!(show(&short), "NoError aa tc rd");
    let whole = house.exchange_tcp(&query("big.example.test.", "A"), |messages| !messages.is_empty()).await;
    assert_eq!(whole[0].answers.len(), 100);
    assert!(!whole[0].metadata.truncation);
}

#[tokio::test]
async fn the_size_a_client_names_is_clamped() {
    let house = House::new(&["example.test"]).await;
    let lines = |name: &str, count: usize| -> String {
        (0..count).map(|n| format!("{name}.example.test 300 A 192.0.2.{n}")).collect::<Vec<_>>().join("\n")
            + "\n"
    };
    house.fill("example.test", &(lines("mid", 50) + &lines("big", 80))).await;
    for (name, size, truncated) in [
        ("mid.example.test.", 0, true),
        ("mid.example.test.", 512, true),
        ("mid.example.test.", 1000, false),
        ("mid.example.test.", 65_535, false),
        ("big.example.test.", 1232, true),
        ("big.example.test.", 65_535, true),
    ] {
        let mut message = plain_query(name, "A");
        let mut edns = Edns::new();
        edns.set_max_payload(size);
        edns.set_dnssec_ok(true);
        message.set_edns(edns);
        let bytes = exchange(house.address(), &message.to_vec().unwrap()).await.unwrap();
        let answer = Message::from_vec(&bytes).unwrap();
        assert_eq!(answer.metadata.truncation, truncated, "{size}");
        let edns = answer.edns.unwrap();
        assert_eq!((edns.max_payload(), edns.flags().dnssec_ok), (1232, true));
    }
}

#[tokio::test]
async fn what_is_not_ours_is_refused_and_what_we_do_not_do_is_said() {
    let house = House::new(&["example.test"]).await;
    assert_eq!(house.ask("example.com.", "A").await, "Refused rd edns");
    assert_eq!(house.ask(".", "NS").await, "Refused rd edns");
    for opcode in [OpCode::Notify, OpCode::Update, OpCode::Status] {
        let mut message = plain_query("example.test.", "SOA");
        message.metadata.op_code = opcode;
        let answer = house.exchange(&message).await;
        assert_eq!(show(&answer), "NotImp rd");
        assert_eq!(answer.metadata.op_code, opcode);
    }
    let mut versioned = query("example.test.", "SOA");
    versioned.edns.as_mut().unwrap().set_version(1);
    // The number is that of BADVERS; it has two names.
    assert_eq!(show(&house.exchange(&versioned).await), "BADSIG rd edns");
    let mut chaos = plain_query("version.bind.", "TXT");
    chaos.queries[0].set_query_class(hickory_proto::rr::DNSClass::CH);
    assert_eq!(show(&house.exchange(&chaos).await), "Refused rd");
    let mut response = plain_query("example.test.", "SOA");
    response.metadata.message_type = MessageType::Response;
    assert_eq!(exchange(house.address(), &response.to_vec().unwrap()).await, None);
}
