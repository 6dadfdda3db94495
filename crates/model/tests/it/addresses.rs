use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netstead_model::{Address, Kind, mac};
use proptest::prelude::*;

use crate::strategies::{address, kind, text};

fn read(text: &str) -> Address {
    text.parse().unwrap()
}

#[test]
fn the_four_ways_to_write_a_mac_are_one_address() {
    let ways = ["52:54:00:aa:bb:cc", "52-54-00-AA-BB-CC", "5254.00aa.bbcc", "525400AABBCC"].map(read);
    assert_eq!(ways, [Address::new(Kind::Mac, 0x5254_00aa_bbcc).unwrap(); 4]);
    assert_eq!(ways.map(|mac| mac.to_string()), ["52:54:00:aa:bb:cc"; 4]);
}

#[test]
fn the_first_byte_of_a_mac_says_whether_it_is_local_and_a_group() {
    let says = |text| (mac::is_local(read(text)), mac::is_multicast(read(text)));
    assert_eq!(says("00:16:3e:00:00:01"), (false, false));
    assert_eq!(says("52:54:00:00:00:01"), (true, false));
    assert_eq!(says("01:00:5e:00:00:01"), (false, true));
    assert_eq!(says("ff:ff:ff:ff:ff:ff"), (true, true));
    assert_eq!(says("255.255.255.255"), (false, false), "IP addresses have no such byte");
}

#[test]
fn ipv6_is_written_as_rfc_5952_has_it() {
    let canonical = |text| read(text).to_string();
    assert_eq!(canonical("2001:0DB8:0:0:0:0:0:1"), "2001:db8::1");
    assert_eq!(canonical("2001:db8:0:1:1:1:1:1"), "2001:db8:0:1:1:1:1:1");
    assert_eq!(canonical("1:0:0:2:0:0:0:3"), "1:0:0:2::3");
    assert_eq!(canonical("0:0:0:0:0:0:0:0"), "::");
}

#[test]
fn ipv4_inside_ipv6_stays_ipv6() {
    let mapped = read("::ffff:192.0.2.1");
    assert_eq!((mapped.kind(), mapped.to_string()), (Kind::V6, "::ffff:192.0.2.1".into()));
    assert_ne!(mapped, read("192.0.2.1"));
}

#[test]
fn the_kind_comes_first_in_the_order() {
    let mut all = ["00:00:00:00:00:00", "::1", "::", "255.255.255.255", "9.0.0.0", "10.0.0.0"].map(read);
    all.sort();
    assert_eq!(
        all.map(|a| a.to_string()),
        ["9.0.0.0", "10.0.0.0", "255.255.255.255", "::", "::1", "00:00:00:00:00:00"]
    );
}

#[test]
fn a_kind_ends_at_its_highest_address() {
    for kind in [Kind::V4, Kind::V6, Kind::Mac] {
        let (first, last) = (Address::new(kind, 0).unwrap(), Address::new(kind, kind.max()).unwrap());
        assert_eq!((first.pred(), last.succ()), (None, None));
        assert_eq!(first.checked_add(kind.max()), Some(last));
        assert_eq!(first.checked_add(u128::MAX), (kind == Kind::V6).then_some(last));
    }
    assert_eq!(Address::new(Kind::V4, 1 << 32), None);
    assert_eq!(Address::new(Kind::Mac, 1 << 48), None);
}

#[test]
fn serde_goes_through_the_text_and_keeps_the_error() {
    assert_eq!(serde_json::to_string(&read("2001:DB8::1")).unwrap(), r#""2001:db8::1""#);
    assert_eq!(serde_json::from_str::<Kind>(r#""ipv6""#).unwrap(), Kind::V6);
    let error = serde_json::from_str::<Address>(r#""10.0.3.999""#).unwrap_err().to_string();
    assert!(error.starts_with(&"10.0.3.999".parse::<Address>().unwrap_err().to_string()), "{error}");
}

#[test]
fn padding_works_in_tables() {
    let cell = |text| format!("[{:<20}]", read(text));
    assert_eq!(cell("10.0.3.1"), "[10.0.3.1            ]");
    assert_eq!(cell("52:54:00:00:00:01"), "[52:54:00:00:00:01   ]");
}

proptest! {
    #[test]
    fn an_address_reads_back_as_itself(address in address()) {
        let text = address.to_string();
        prop_assert_eq!(text.parse(), Ok(address));
        prop_assert_eq!(Address::parse(address.kind(), &text), Ok(address));
        let json = serde_json::to_string(&address).unwrap();
        prop_assert_eq!(serde_json::from_str::<Address>(&json).unwrap(), address);
        prop_assert_eq!(address.to_ip().map_or(address, Address::from), address);
    }

    #[test]
    fn a_kind_reads_back_as_itself(kind in kind()) {
        prop_assert_eq!(kind.to_string().parse(), Ok(kind));
    }

    #[test]
    fn ip_addresses_are_those_of_the_standard_library(text in text()) {
        prop_assert_eq!(Address::parse(Kind::V4, &text).ok(), text.parse::<Ipv4Addr>().ok().map(Address::from));
        prop_assert_eq!(Address::parse(Kind::V6, &text).ok(), text.parse::<Ipv6Addr>().ok().map(Address::from));
        if let Ok(ip) = text.parse::<IpAddr>() {
            prop_assert_eq!(text.parse(), Ok(Address::from(ip)));
        }
    }

    #[test]
    fn steps_are_steps_of_the_number(one in address(), steps in prop_oneof![any::<u128>(), 0..9u128]) {
        let sum = one.number().checked_add(steps).filter(|number| *number <= one.kind().max());
        let further = one.checked_add(steps);
        prop_assert_eq!(further.map(Address::number), sum);
        prop_assert_eq!(one.checked_sub(steps).map(Address::number), one.number().checked_sub(steps));
        if let Some(further) = further {
            prop_assert_eq!(further.checked_sub(steps), Some(one));
            prop_assert_eq!((one.distance(further), further.distance(one)), (Some(steps), Some(steps)));
            prop_assert!(one <= further);
        }
    }
}
