//! Labels made for the DNS.

use std::cell::RefCell;

use netstead_sources::dialects::{Reader, TargetSpec};

use super::{all, reading};

#[test]
fn one_label_makes_names() {
    assert_eq!(
        all(&[("netstead.hostnames", "a.test, B.test\tc.test"), ("netstead.hostname", "d.test")]),
        [
            "a.test -> Source (netstead.hostnames)",
            "b.test -> Source (netstead.hostnames)",
            "c.test -> Source (netstead.hostnames)",
            "d.test -> Source (netstead.hostname)",
        ]
    );
}

#[test]
fn a_label_of_which_a_part_is_no_name_makes_none() {
    for text in ["bad host!.home.example.com", "bad host.home.example.com", "a.test, b!.test"] {
        let read = reading(&Reader::default(), &[("netstead.hostname", text)]);
        assert_eq!(read.requests, [], "{text}");
        assert!(read.unclear && !read.why_not.is_empty(), "{text}: {read:?}");
    }
}

#[test]
fn what_our_labels_say_holds_for_the_names_of_every_dialect() {
    let labels = [
        ("dnsweaver.hostname", "a.test"),
        ("dnsweaver.ttl", "60"),
        ("netstead.hostname", "b.test"),
        ("netstead.ttl", "30"),
        ("netstead.target", "10.0.0.9,fd00::9"),
        ("netstead.providers", "lan,Edge"),
        ("netstead.share", "yes"),
    ];
    let rest = "share=true ttl";
    assert_eq!(
        all(&labels),
        [
            format!(
                "a.test -> Addresses([Address(10.0.0.9), Address(fd00::9)]) {rest}=60 to=[Ident(lan), Ident(edge)] (dnsweaver.hostname)"
            ),
            format!(
                "b.test -> Addresses([Address(10.0.0.9), Address(fd00::9)]) {rest}=30 to=[Ident(lan), Ident(edge)] (netstead.hostname)"
            ),
        ]
    );
}

#[test]
fn named_records_make_any_type() {
    let labels = [
        ("netstead.records.a.hostname", "a.test"),
        ("netstead.records.a.type", "aaaa"),
        ("netstead.records.a.target", "network:lan"),
        ("netstead.records.mail.hostname", "b.test"),
        ("netstead.records.mail.type", "MX"),
        ("netstead.records.mail.target", "mail.b.test"),
        ("netstead.records.old.hostname", "c.test"),
        ("netstead.records.old.type", "CNAME"),
        ("netstead.records.old.target", "a.test"),
        ("netstead.records.srv.hostname", "_sip._tcp.d.test"),
        ("netstead.records.srv.port", "5060"),
        ("netstead.records.srv.target", "a.test"),
        ("netstead.records.srv.provider", "lan"),
        ("netstead.records.text.hostname", "e.test"),
        ("netstead.records.text.type", "TXT"),
        ("netstead.records.text.value", "v=spf1 -all"),
        ("netstead.records.web.hostname", "f.test"),
        ("netstead.records.web.type", "HTTPS"),
        ("netstead.records.web.value", "1 . alpn=h2"),
    ];
    assert_eq!(
        all(&labels),
        [
            "_sip._tcp.d.test SRV 0 0 5060 a.test. to=[Ident(lan)] (netstead.records.srv.hostname)",
            "a.test AAAA -> Network(\"lan\") (netstead.records.a.hostname)",
            "b.test MX 10 mail.b.test. (netstead.records.mail.hostname)",
            "c.test CNAME a.test. (netstead.records.old.hostname)",
            "e.test TXT \"v=spf1 -all\" (netstead.records.text.hostname)",
            "f.test HTTPS 1 . alpn=h2 (netstead.records.web.hostname)",
        ]
    );
}

#[test]
fn what_cannot_be_read_is_said_and_never_guessed() {
    let labels = [
        ("netstead.hostnam", "a.test"),
        ("netstead.records.a.type", "A"),
        ("netstead.records.b.hostname", "b.test"),
        ("netstead.records.b.type", "SRV"),
        ("netstead.records.c.hostname", "c.test"),
        ("netstead.records.c.provider", "not a name!"),
        ("netstead.records.d.enabled", "false"),
        ("netstead.records.e.hostname", "e..test"),
        ("netstead.records.f", "f.test"),
        ("netstead.ttl", "soon"),
    ];
    assert_eq!(
        all(&labels),
        [
            "! netstead.records.f is not of the form netstead.records.<n>.<field>, with <n> of letters, digits, `_` and `-`",
            "! netstead.hostnam is no label of this dialect; did you mean `netstead.hostname`?",
            "! netstead.records.a.hostname: it is missing, so the record has no name",
            "! netstead.records.b.port: it is missing, and a record of this type needs it",
            "! netstead.records.c.provider: `name!` is not an identifier: `!` at character 5 is none of `a` to `z`, `0` to `9`, `.`, `_` and `-`",
            "! netstead.records.d.enabled is false",
            "! netstead.records.e.hostname: `e..test` is not a DNS name: the label at character 3 is empty",
            "! netstead.ttl: `soon` is not a number of seconds, at least 1",
        ]
    );
}

#[test]
fn a_target_or_provider_that_cannot_be_read_makes_no_name_at_all() {
    for (label, value) in
        [("netstead.target", "somewhere"), ("netstead.providers", "!"), ("netstead.type", "MX")]
    {
        let found = reading(&Reader::default(), &[("dnsweaver.hostname", "a.test"), (label, value)]);
        assert_eq!(found.requests, [], "{label}");
        assert!(found.why_not.iter().any(|why| why.starts_with(label)), "{label}: {:?}", found.why_not);
    }
}

#[test]
fn one_label_silences_every_dialect() {
    let other = ("netstead.records.a.hostname", "a.test");
    for (labels, silent) in [
        (vec![("netstead.enabled", "false"), other], true),
        (vec![("dnsweaver.enabled", "FALSE"), other], true),
        (vec![("dnsweaver.enabled", "false"), ("netstead.enabled", "true"), other], false),
        (vec![("netstead.enabled", "perhaps"), other], false),
    ] {
        let found = reading(&Reader::default(), &labels);
        assert_eq!((found.silenced, found.requests.is_empty()), (silent, silent), "{labels:?}");
    }
}

#[test]
fn dnsweavers_labels_mean_what_they_mean_there() {
    let labels = [
        ("dnsweaver.hostnames", "a.test,b.test"),
        ("dnsweaver.ttl", "60"),
        ("dnsweaver.proxied", "true"),
        ("dnsweaver.instances", "Internal-DNS"),
        ("dnsweaver.records.v6.hostname", "c.test"),
        ("dnsweaver.records.v6.type", "aaaa"),
        ("dnsweaver.records.v6.target", "fd00::1"),
        ("dnsweaver.records.v4.hostname", "c.test"),
        ("dnsweaver.records.v4.target", "10.0.0.1"),
        ("dnsweaver.records.v4.ttl", "often"),
        ("dnsweaver.records.v4.meta.team", "web"),
        ("dnsweaver.records.ext.hostname", "c.test"),
        ("dnsweaver.records.ext.target", "203.0.113.1"),
        ("dnsweaver.records.ext.provider", "cf"),
        ("dnsweaver.records.mc.hostname", "_minecraft._tcp.mc.test"),
        ("dnsweaver.records.mc.port", "25565"),
        ("dnsweaver.records.mc.target", "mc.test"),
        ("dnsweaver.records.mc.adopt", "true"),
    ];
    let own = "to=[Ident(internal-dns)]";
    assert_eq!(
        all(&labels),
        [
            format!(
                "_minecraft._tcp.mc.test SRV 0 0 25565 mc.test. adopt=true {own} (dnsweaver.records.mc.hostname)"
            ),
            format!("a.test -> Source proxied=true ttl=60 {own} (dnsweaver.hostnames)"),
            format!("b.test -> Source proxied=true ttl=60 {own} (dnsweaver.hostnames)"),
            "c.test -> Addresses([Address(203.0.113.1)]) to=[Ident(cf)] (dnsweaver.records.ext.hostname)"
                .into(),
            format!("c.test -> Addresses([Address(10.0.0.1)]) {own} (dnsweaver.records.v4.hostname)"),
            format!("c.test AAAA -> Addresses([Address(fd00::1)]) {own} (dnsweaver.records.v6.hostname)"),
            "! dnsweaver.records.v4.ttl: `often` is not a number of seconds, at least 1".into(),
        ]
    );
}

#[test]
fn our_own_labels_decide_where_a_name_points_and_all_reasons_are_kept() {
    let labels = [
        ("dnsweaver.hostname", "a.test"),
        ("netstead.records.a.hostname", "a.test"),
        ("netstead.records.a.target", "host"),
        ("netstead.records.t.hostname", "a.test"),
        ("netstead.records.t.type", "TXT"),
        ("netstead.records.t.value", "hello"),
    ];
    assert_eq!(
        all(&labels),
        [
            "a.test -> Host (netstead.records.a.hostname, dnsweaver.hostname)",
            "a.test TXT \"hello\" (netstead.records.t.hostname)",
        ]
    );
}

#[test]
fn each_target_is_asked_for_once_and_what_has_no_address_is_said() {
    let labels = [
        ("netstead.hostnames", "a.test,b.test"),
        ("netstead.records.h.hostnames", "c.test,d.test"),
        ("netstead.records.h.target", "host"),
        ("netstead.records.n.hostname", "e.test"),
        ("netstead.records.n.target", "network:lan"),
        ("netstead.records.x.hostname", "f.test"),
        ("netstead.records.x.target", "www.elsewhere.test"),
        ("netstead.records.y.hostname", "g.test"),
        ("netstead.records.y.target", "10.0.0.1"),
        ("netstead.records.y.type", "AAAA"),
    ];
    let asked = RefCell::new(Vec::new());
    let (wishes, why_not) = reading(&Reader::default(), &labels).wishes(|target| {
        asked.borrow_mut().push(target.clone());
        match target {
            TargetSpec::Host => Ok(vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()]),
            TargetSpec::Source => Err("no network".into()),
            _ => Err("it is not on network `lan`".into()),
        }
    });
    assert_eq!(asked.into_inner(), [TargetSpec::Source, TargetSpec::Host, TargetSpec::Network("lan".into())]);
    let wishes: Vec<String> = wishes
        .iter()
        .map(|wish| format!("{} {}", wish.name, serde_json::to_string(&wish.content).unwrap()))
        .collect();
    assert_eq!(
        wishes,
        [
            r#"a.test {"addresses":[]}"#,
            r#"b.test {"addresses":[]}"#,
            r#"c.test {"records":{"kind":"A","values":["A 192.0.2.1"]}}"#,
            r#"c.test {"records":{"kind":"AAAA","values":["AAAA 2001:db8::1"]}}"#,
            r#"d.test {"records":{"kind":"A","values":["A 192.0.2.1"]}}"#,
            r#"d.test {"records":{"kind":"AAAA","values":["AAAA 2001:db8::1"]}}"#,
            r#"f.test {"records":{"kind":"CNAME","values":["CNAME www.elsewhere.test."]}}"#,
        ]
    );
    assert_eq!(
        why_not,
        [
            "its own address is not known: no network",
            "e.test: it is not on network `lan`",
            "g.test: its target has no address for AAAA",
        ]
    );
}
