use netstead_model::{Name, NameSet, Range, range_of_reverse, reverse_name};
use proptest::prelude::*;
use std::net::IpAddr;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn set(domains: &[&str], addresses: &[&str]) -> NameSet {
    let addresses = addresses.iter().map(|range| range.parse().unwrap()).collect();
    NameSet::new(domains.iter().map(|domain| name(domain)).collect(), addresses)
}

#[test]
fn a_reverse_name_stands_for_an_address_or_a_network() {
    for (text, range) in [
        ("7.3.0.10.in-addr.arpa", Some("10.0.3.7")),
        ("3.0.10.in-addr.arpa", Some("10.0.3.0/24")),
        ("10.in-addr.arpa", Some("10.0.0.0/8")),
        ("in-addr.arpa", Some("0.0.0.0/0")),
        ("ip6.arpa", Some("::/0")),
        ("8.b.d.0.1.0.0.2.ip6.arpa", Some("2001:db8::/32")),
        ("0.8.b.d.0.1.0.0.2.ip6.arpa", Some("2001:db8::/36")),
        ("03.0.10.in-addr.arpa", None),
        ("256.10.in-addr.arpa", None),
        ("1.7.3.0.10.in-addr.arpa", None),
        ("x.3.0.10.in-addr.arpa", None),
        ("*.3.0.10.in-addr.arpa", None),
        ("10.0.ip6.arpa", None),
        ("x10.in-addr.arpa", None),
        ("home.test", None),
    ] {
        let found = range_of_reverse(&name(text));
        let wanted = range.map(|range| range.parse::<Range>().unwrap());
        assert_eq!(found, wanted, "{text}");
    }
}

#[test]
fn a_set_has_its_domains_and_the_reverse_names_of_its_addresses() {
    let set = set(&["home.test", "b.test", "home.test"], &["10.0.3.0/25", "10.0.3.128/25", "fd00::/64"]);
    assert_eq!(set.domains(), [name("b.test"), name("home.test")]);
    for (text, contained, met) in [
        ("home.test", true, true),
        ("a.b.home.test", true, true),
        ("*.home.test", true, true),
        ("athome.test", false, false),
        // It has more than is in the set.
        ("test", false, true),
        ("7.3.0.10.in-addr.arpa", true, true),
        ("3.0.10.in-addr.arpa", true, true),
        ("0.10.in-addr.arpa", false, true),
        ("7.4.0.10.in-addr.arpa", false, false),
        ("x.7.3.0.10.in-addr.arpa", false, false),
        ("0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa", false, true),
        ("0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa", true, true),
        ("1.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa", false, false),
    ] {
        assert_eq!((set.contains(&name(text)), set.meets(&name(text))), (contained, met), "{text}");
    }
    assert!(!NameSet::default().contains(&name("home.test")));
    assert!(!NameSet::default().meets(&name("test")));
}

#[test]
fn a_domain_within_another_can_be_left_out() {
    let inner = || vec![name("lab.home.test"), name("other.test")];
    let set = set(&["home.test", "deep.lab.home.test"], &[]).without(inner());
    for (text, contained, whole, met) in [
        ("home.test", true, false, true),
        ("www.home.test", true, true, true),
        ("lab.home.test", false, false, true),
        ("x.lab.home.test", false, false, false),
        ("deep.lab.home.test", true, true, true),
        ("x.deep.lab.home.test", true, true, true),
        ("other.test", false, false, false),
        ("test", false, false, true),
    ] {
        let name = name(text);
        let found = (set.contains(&name), set.contains_all_below(&name), set.meets(&name));
        assert_eq!(found, (contained, whole, met), "{text}");
    }
    // Both have it: neither is left out.
    let shared = NameSet::new(vec![name("lab.home.test")], Vec::new()).without(inner());
    assert!(shared.contains_all_below(&name("lab.home.test")));
}

proptest! {
    #[test]
    fn the_reverse_name_of_an_address_lies_in_all_its_networks(address: IpAddr) {
        let mut at = Some(reverse_name(address));
        while let Some(name) = at.filter(|name| name.as_str() != "arpa") {
            prop_assert!(range_of_reverse(&name).is_some_and(|range| range.contains(address.into())), "{}", name);
            at = name.parent();
        }
    }
}
