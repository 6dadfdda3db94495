use std::collections::BTreeMap;

use netstead_model::{Ident, Key, Name, is_host_label};
use proptest::prelude::*;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

#[test]
fn a_name_is_folded_to_one_form() {
    assert_eq!(name("WWW.Example.NET."), "www.example.net");
    assert_eq!(name("Bücher.example"), "xn--bcher-kva.example");
    assert_eq!(name("BÜCHER。example"), "xn--bcher-kva.example");
    assert_eq!(name("XN--BCHER-KVA.example"), "xn--bcher-kva.example");
    assert_eq!(name("faß.de"), "xn--fa-hia.de", "not `fass.de`: that would be transitional");
    assert_eq!(name("www.example.net").absolute(), "www.example.net.");
}

#[test]
fn what_exists_in_the_dns_is_a_name() {
    for text in
        ["a", "123", "_acme-challenge.a.b", "*.home.example.com", "r3---sn.example", "3.0.10.in-addr.arpa"]
    {
        assert_eq!(name(text), text);
    }
    assert_eq!(name("_dmarc.אבג.com"), "_dmarc.xn--4dbcd.com");
    assert_eq!(name("my_host.lan"), "my_host.lan");
}

#[test]
fn a_host_name_has_no_underscore_and_no_wildcard() {
    assert_eq!(Name::host("Web-1.lan").unwrap(), "web-1.lan");
    assert_eq!(Name::host("bücher").unwrap(), "xn--bcher-kva");
    assert!(Name::host("_sip.lan").is_err() && Name::host("*.lan").is_err());
}

#[test]
fn the_limits_of_length_are_exact() {
    let label = "a".repeat(63);
    assert!(label.parse::<Name>().is_ok() && format!("{label}a").parse::<Name>().is_err());
    let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
    assert_eq!(longest.len(), 253);
    assert!(longest.parse::<Name>().is_ok() && format!("{longest}.").parse::<Name>().is_ok());
    assert!(format!("{longest}a").parse::<Name>().is_err());
}

#[test]
fn a_name_knows_its_family() {
    let (zone, host) = (name("example.net"), name("*.a.example.net"));
    assert!(host.is_subdomain_of(&zone) && zone.is_subdomain_of(&zone) && !zone.is_subdomain_of(&host));
    assert!(!name("badexample.net").is_subdomain_of(&zone));
    assert!(host.is_wildcard() && !zone.is_wildcard());
    assert_eq!(host.labels().collect::<Vec<_>>(), ["*", "a", "example", "net"]);
    assert_eq!(host.parent(), Some(name("a.example.net")));
    assert_eq!(name("net").parent(), None);
    assert_eq!(Name::join("WWW", &zone), Ok(name("www.example.net")));
    assert!(Name::join("", &zone).is_err() && Name::join(&"a".repeat(64), &zone).is_err());
}

#[test]
fn a_host_label_is_one_label_as_it_stands() {
    assert!(["web1", "WEB-1", "1"].iter().all(|text| is_host_label(text).is_ok()));
    assert!(["", "a.b", "-a", "a-", "a_b", "bücher"].iter().all(|text| is_host_label(text).is_err()));
}

#[test]
fn identifiers_and_keys_are_found_by_text() {
    let ident: Ident = "lan.v4_1-b".parse().unwrap();
    let key: Key = "default/web 1 (blue) ü".parse().unwrap();
    let map = BTreeMap::from([(ident.clone(), key.clone())]);
    assert_eq!(map.get("lan.v4_1-b"), Some(&key));
    assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"lan.v4_1-b":"default/web 1 (blue) ü"}"#);
    for (text, step) in [(".", true), ("..", true), ("...", false), ("a/..", false), (".a", false)] {
        assert_eq!(text.parse::<Key>().unwrap().is_path_step(), step, "{text}");
    }
    assert!(serde_json::from_str::<BTreeMap<Ident, Key>>(r#"{"Lan":"a"}"#).is_err());
    assert!(serde_json::from_str::<BTreeMap<Ident, Key>>(r#"{"lan":" a"}"#).is_err());
}

proptest! {
    #[test]
    fn a_plain_name_is_kept(text in "_?[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?(\\.[a-z]([a-z0-9]{0,9}[a-z0-9])?){1,6}") {
        let parsed: Name = text.parse().unwrap();
        prop_assert_eq!(parsed.as_str(), &text);
        prop_assert_eq!(text.to_uppercase().parse(), Ok(parsed.clone()));
        prop_assert_eq!(parsed.absolute().parse(), Ok(parsed.clone()));
        let json = serde_json::to_string(&parsed).unwrap();
        prop_assert_eq!(serde_json::from_str::<Name>(&json).unwrap(), parsed.clone());
        let parent = parsed.parent().unwrap();
        prop_assert!(parsed.is_subdomain_of(&parent) && !parent.is_subdomain_of(&parsed));
        prop_assert_eq!(Name::join(parsed.labels().next().unwrap(), &parent), Ok(parsed.clone()));
    }

    #[test]
    fn every_name_goes_over_the_wire(text in "[\\PC.]{1,30}") {
        if let Ok(name) = text.parse::<Name>() {
            prop_assert!(name.as_str().len() <= 253);
            for label in name.labels() {
                prop_assert!((1..=63).contains(&label.len()));
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
                prop_assert!(label == "*" || label.chars().all(plain), "{}", name);
            }
            prop_assert_eq!(Name::host(name.as_str()).is_ok(), !name.as_str().contains(['_', '*']));
        }
    }

    #[test]
    fn identifiers_are_exactly_those_of_the_pattern(text in "[a-z0-9._\\-A-Z/ü]{0,70}|[a-z0-9][a-z0-9._-]{0,63}") {
        let head = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let tail = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
        prop_assert_eq!(text.parse::<Ident>().is_ok(), head && tail && text.len() <= 63);
    }

    #[test]
    fn a_key_is_kept_as_it_is(text in "[!-~ü/]([ -~ü/]{0,200}[!-~ü])?") {
        prop_assert_eq!(text.parse::<Key>().map(|key| key.to_string()), Ok(text));
    }
}
