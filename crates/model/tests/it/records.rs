use std::net::IpAddr;

use insta::assert_snapshot;
use netstead_model::{Name, RecordData, RecordSet, RecordType, Service, address_of_reverse, reverse_name};
use proptest::{collection::vec, prelude::*};

fn read(kind: RecordType, text: &str) -> RecordData {
    RecordData::parse(kind, text).unwrap()
}

fn refused(kind: RecordType, text: &str) -> String {
    RecordData::parse(kind, text).unwrap_err().to_string()
}

#[test]
fn a_value_reads_as_people_write_it_and_prints_as_a_zone_file_has_it() {
    let written = [
        (RecordType::A, "192.0.2.1"),
        (RecordType::Aaaa, "2001:DB8:0::1"),
        (RecordType::Cname, "WEB.Example.net"),
        (RecordType::Ptr, "web.example.net."),
        (RecordType::Srv, "10  5 443 web.example.net"),
        (RecordType::Txt, "v=spf1 -all"),
        (RecordType::Txt, r#""a \"quote\"" "b\\c\000""#),
        (RecordType::Mx, "10 mail.example.net"),
        (RecordType::Mx, "0 ."),
        (RecordType::Caa, "0 ISSUE ca.example.net"),
        (RecordType::Ns, "ns1.example.net"),
        (RecordType::Https, r#"1 . port=443 alpn="h2,h3" ipv4hint=192.0.2.1,192.0.2.2 ipv6hint=2001:db8::1"#),
        (RecordType::Https, "0 web.example.net"),
        (
            RecordType::Svcb,
            "1 web.example.net mandatory=port,alpn alpn=h2 port=53 no-default-alpn ech=AEX+DQ==",
        ),
        (RecordType::Svcb, r#"1 . key667=hello\210qoo key3="\001\187" alpn="f\\\\oo\\,bar,h2""#),
    ];
    let printed: Vec<String> =
        written.iter().map(|(kind, text)| format!("{kind} {}", read(*kind, text))).collect();
    assert_snapshot!(printed.join("\n"), @r#"
    A 192.0.2.1
    AAAA 2001:db8::1
    CNAME web.example.net.
    PTR web.example.net.
    SRV 10 5 443 web.example.net.
    TXT "v=spf1 -all"
    TXT "a \"quote\"" "b\\c\000"
    MX 10 mail.example.net.
    MX 0 .
    CAA 0 issue "ca.example.net"
    NS ns1.example.net.
    HTTPS 1 . alpn=h2,h3 port=443 ipv4hint=192.0.2.1,192.0.2.2 ipv6hint=2001:db8::1
    HTTPS 0 web.example.net.
    SVCB 1 web.example.net. mandatory=alpn,port alpn=h2 no-default-alpn port=53 ech=AEX+DQ==
    SVCB 1 . alpn="f\\\\oo\\,bar,h2" port=443 key667="hello\210qoo"
    "#);
}

#[test]
fn a_wrong_value_says_what_is_wrong() {
    let errors = [
        refused(RecordType::A, "192.0.2.300"),
        refused(RecordType::A, ""),
        refused(RecordType::A, "192.0.2.1 192.0.2.2"),
        refused(RecordType::Cname, "192.0.2.1"),
        refused(RecordType::Mx, "10 a..b"),
        refused(RecordType::Srv, "10 5 70000 web.example.net"),
        refused(RecordType::Txt, "\"open"),
        refused(RecordType::Txt, r#""\999""#),
        refused(RecordType::Https, "1 . port=http"),
        refused(RecordType::Https, "1 . colour=red"),
        refused(RecordType::Https, "1 . port=1 key3=ab"),
    ];
    assert_snapshot!(errors.join("\n"), @r#"
    `192.0.2.300` is not a value of type A: it is not an IPv4 address
    `` is not a value of type A: it is empty
    `192.0.2.1 192.0.2.2` is not a value of type A: write one IPv4 address
    `192.0.2.1` is not a value of type CNAME: it is wrong: it is an IP address; write a name such as `web.example.net`
    `10 a..b` is not a value of type MX: the name `a..b` at character 4 is wrong: the label at character 3 is empty
    `10 5 70000 web.example.net` is not a value of type SRV: the port `70000` at character 6 is not a number of at most 65535
    `"open` is not a value of type TXT: a quote is not closed
    `"\999"` is not a value of type TXT: the escape `\9` at character 2 is not followed by three digits of at most 255
    `1 . port=http` is not a value of type HTTPS: the parameter `port=http` at character 5 has a value that cannot be
    `1 . colour=red` is not a value of type HTTPS: the parameter `colour=red` at character 5 is not known; use mandatory, alpn, no-default-alpn, port, ipv4hint, ech, ipv6hint or key65000
    `1 . port=1 key3=ab` is not a value of type HTTPS: the parameter `key3=ab` at character 12 is there twice
    "#);
}

#[test]
fn long_text_is_split() {
    let RecordData::Txt(strings) = read(RecordType::Txt, &"x".repeat(600)) else { panic!("TXT is TXT") };
    assert_eq!(strings.iter().map(Vec::len).collect::<Vec<_>>(), [255, 255, 90]);
    assert_eq!(read(RecordType::Txt, &format!("\"{}\"", "x".repeat(600))), RecordData::Txt(strings));
    assert!(refused(RecordType::Txt, &"x".repeat(70_000)).contains("the most is 65535"));
}

#[test]
fn a_set_is_lines_of_a_zone_file_and_json_without_foreign_types() {
    let name: Name = "www.example.net".parse().unwrap();
    let values = ["192.0.2.2", "192.0.2.1"].map(|text| read(RecordType::A, text));
    let set = RecordSet::new(name, RecordType::A, 300, values.into_iter().chain([RecordData::txt("no")]));
    assert_snapshot!(set, @r"
    www.example.net. 300 IN A 192.0.2.1
    www.example.net. 300 IN A 192.0.2.2
    ");
    let json = serde_json::to_string(&set).unwrap();
    assert_eq!(
        json,
        r#"{"name":"www.example.net","type":"A","ttl":300,"values":["A 192.0.2.1","A 192.0.2.2"]}"#
    );
    assert_eq!(serde_json::from_str::<RecordSet>(&json).unwrap(), set);
    let mixed = json.replace("A 192.0.2.2", "TXT hello");
    let error = serde_json::from_str::<RecordSet>(&mixed).unwrap_err().to_string();
    assert_eq!(error, "the TXT value `\"hello\"` is in a set of type A");
}

#[test]
fn reverse_names_are_of_one_form() {
    let name = |text: &str| text.parse::<Name>().unwrap();
    assert_eq!(reverse_name("10.0.3.7".parse().unwrap()), name("7.3.0.10.in-addr.arpa"));
    assert_eq!(
        reverse_name("2001:db8::1".parse().unwrap()),
        name("1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa")
    );
    for other in [
        "3.0.10.in-addr.arpa",
        "07.3.0.10.in-addr.arpa",
        "1.7.3.0.10.in-addr.arpa",
        "in-addr.arpa",
        "a.ip6.arpa",
        "x7.3.0.10.in-addr.arpa",
        "example.net",
    ] {
        assert_eq!(address_of_reverse(&name(other)), None, "{other}");
    }
}

fn a_name() -> impl Strategy<Value = Name> {
    "[a-z_][a-z0-9]{0,20}(\\.[a-z]{1,20}){0,3}".prop_map(|text| text.parse().unwrap())
}

fn a_service() -> impl Strategy<Value = Service> {
    let param = (prop_oneof![0..8u16, any::<u16>()], vec(any::<u8>(), 0..40));
    (any::<u16>(), proptest::option::of(a_name()), proptest::collection::btree_map(param.0, param.1, 0..5))
        .prop_map(|(priority, target, params)| Service {
            priority,
            target,
            params: params.into_iter().collect(),
        })
}

fn a_value() -> impl Strategy<Value = RecordData> {
    prop_oneof![
        any::<IpAddr>().prop_map(RecordData::address),
        a_name().prop_map(RecordData::Cname),
        a_name().prop_map(RecordData::Ptr),
        a_name().prop_map(RecordData::Ns),
        (any::<(u16, u16, u16)>(), a_name()).prop_map(|((priority, weight, port), target)| RecordData::Srv {
            priority,
            weight,
            port,
            target
        }),
        vec(vec(any::<u8>(), 0..=255), 1..4).prop_map(RecordData::Txt),
        (any::<u16>(), proptest::option::of(a_name()))
            .prop_map(|(preference, exchange)| RecordData::Mx { preference, exchange }),
        (any::<u8>(), "[a-z0-9]{1,15}", vec(any::<u8>(), 0..300))
            .prop_map(|(flags, tag, value)| RecordData::Caa { flags, tag, value }),
        a_service().prop_map(RecordData::Https),
        a_service().prop_map(RecordData::Svcb),
    ]
}

proptest! {
    #[test]
    fn every_value_comes_back_from_its_text(value in a_value()) {
        prop_assert_eq!(&RecordData::parse(value.kind(), &value.to_string()).unwrap(), &value);
        let json = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(serde_json::from_str::<RecordData>(&json).unwrap(), value);
    }

    #[test]
    fn no_text_makes_the_parser_panic(kind in 0..RecordType::ALL.len(), text in "\\PC{0,40}|[ 0-9a-z.,=\"\\\\]{0,40}") {
        if let Ok(value) = RecordData::parse(RecordType::ALL[kind], &text) {
            prop_assert_eq!(&RecordData::parse(value.kind(), &value.to_string()).unwrap(), &value);
        }
    }

    #[test]
    fn an_address_comes_back_from_its_reverse_name(address: IpAddr) {
        prop_assert_eq!(address_of_reverse(&reverse_name(address)), Some(address));
    }
}
