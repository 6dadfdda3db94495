use netstead_model::Address;

use super::{AddressSpace, InClusterSpec, PrefixSpec, entry::Entry};

fn pool(addresses: &[&str], prefix: i64) -> InClusterSpec {
    let addresses = addresses.iter().map(ToString::to_string).collect();
    InClusterSpec { addresses, prefix, ..InClusterSpec::default() }
}

fn prefixes(prefixes: &[&str], length: i64) -> PrefixSpec {
    let prefixes = prefixes.iter().map(ToString::to_string).collect();
    PrefixSpec { prefixes, allocation_prefix_length: Some(length), ..PrefixSpec::default() }
}

/// The addresses as `first-last`, or the fields that are wrong.
fn shown(space: Result<AddressSpace, Vec<super::FieldError>>) -> String {
    match space {
        Ok(space) => {
            let text =
                |unit| space.address_of(unit).map_or_else(|| "-".to_owned(), |address| address.to_string());
            let one = |(first, last)| {
                if first == last { text(first) } else { format!("{}-{}", text(first), text(last)) }
            };
            space.units().intervals().map(one).collect::<Vec<_>>().join(" ")
        }
        Err(errors) => errors
            .iter()
            .map(|error| format!("! {} {}", error.field, error.value))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

#[test]
fn entries_are_read_as_the_in_cluster_provider_reads_them() {
    let cases = [
        ("192.168.1.1", "192.168.1.1 192.168.1.1"),
        ("192.168.1.1-192.168.1.8", "192.168.1.1 192.168.1.8"),
        ("192.168.1.7/24", "192.168.1.0 192.168.1.255"),
        ("fd00::1", "fd00::1 fd00::1"),
        ("fd00::1-fd00::ffff", "fd00::1 fd00::ffff"),
        ("fd00::/126", "fd00:: fd00::3"),
        ("192.168.1", "!"),
        ("192.168.1.300", "!"),
        ("192.168.1.8-192.168.1.1", "!"),
        ("192.168.1.1-fd00::1", "!"),
        ("192.168.1.1 - 192.168.1.8", "!"),
        ("192.168.1.1-", "!"),
        ("192.168.1.0/33", "!"),
        ("192.168.1.0/+8", "!"),
        ("192.168.1.0/", "!"),
        ("fd00::/129", "!"),
        ("fd00::12345", "!"),
        ("fe80::1%eth0", "!"),
        ("", "!"),
    ];
    for (text, wanted) in cases {
        let read = Entry::parse(text).map(|entry| {
            let address = |number| Address::new(entry.kind, number).unwrap();
            format!("{} {}", address(entry.first), address(entry.last))
        });
        assert_eq!(read.unwrap_or_else(|_| "!".to_owned()), wanted, "{text}");
    }
}

#[test]
fn counts_are_those_of_the_set() {
    let count = |addresses: &[&str], prefix| {
        let open = InClusterSpec { allocate_reserved_ip_addresses: true, ..pool(addresses, prefix) };
        AddressSpace::of_addresses(&open).map(|space| space.units().count()).unwrap_or_default()
    };
    assert_eq!(count(&[], 24), 0);
    assert_eq!(count(&["192.168.1.25"], 24), 1);
    assert_eq!(count(&["192.168.1.2-192.168.1.10", "192.168.1.7-192.168.1.16"], 24), 15);
    assert_eq!(count(&["192.168.1.0/24", "192.168.2.0/31"], 16), 258);
    assert_eq!(count(&["fd00::/126"], 120), 4);
    assert_eq!(count(&["fd00::/65"], 20), 1 << 63);
    assert_eq!(count(&["::/0"], 0), u128::MAX);
}

#[test]
fn reserved_addresses_and_the_gateway_are_kept_back() {
    let with = |spec: InClusterSpec, gateway: &str, reserved| InClusterSpec {
        gateway: Some(gateway.to_owned()),
        allocate_reserved_ip_addresses: reserved,
        ..spec
    };
    let cases = [
        (pool(&["10.0.0.0/29"], 24), "10.0.0.1-10.0.0.7"),
        (pool(&["10.0.0.0/24"], 24), "10.0.0.1-10.0.0.254"),
        (pool(&["10.0.0.254-10.0.0.255"], 24), "10.0.0.254"),
        (pool(&["10.0.0.0-10.0.0.1"], 24), "10.0.0.1"),
        (pool(&["fd00::1:ff"], 120), "fd00::1:ff"),
        (pool(&["fd00::1:0-fd00::1:1"], 120), "fd00::1:1"),
        (with(pool(&["10.0.0.0/30"], 30), "10.0.0.1", false), "10.0.0.2"),
        (with(pool(&["10.0.0.0/30"], 30), "10.0.0.1", true), "10.0.0.0 10.0.0.2-10.0.0.3"),
        (with(pool(&["10.0.0.5-10.0.0.6"], 24), "10.9.0.1", false), "10.0.0.5-10.0.0.6"),
        (with(pool(&["10.0.0.5"], 24), "", false), "10.0.0.5"),
    ];
    for (spec, wanted) in cases {
        assert_eq!(shown(AddressSpace::of_addresses(&spec)), wanted, "{spec:?}");
    }
}

#[test]
fn exclusions_are_taken_out_in_every_notation() {
    let excluded =
        ["10.0.0.3", "10.0.0.8/30", "10.0.0.20-10.0.0.29", "10.7.0.0/16"].map(str::to_owned).to_vec();
    let spec = InClusterSpec { excluded_addresses: excluded, ..pool(&["10.0.0.1-10.0.0.31"], 24) };
    let wanted = "10.0.0.1-10.0.0.2 10.0.0.4-10.0.0.7 10.0.0.12-10.0.0.19 10.0.0.30-10.0.0.31";
    assert_eq!(shown(AddressSpace::of_addresses(&spec)), wanted);
}

#[test]
fn the_verdicts_are_those_of_the_in_cluster_provider() {
    let gateway =
        |spec: InClusterSpec, gateway: &str| InClusterSpec { gateway: Some(gateway.to_owned()), ..spec };
    let excluded = |spec: InClusterSpec, excluded: &[&str]| InClusterSpec {
        excluded_addresses: excluded.iter().map(ToString::to_string).collect(),
        ..spec
    };
    let good = || pool(&["10.0.0.10-10.0.0.20"], 24);
    let cases = [
        (good(), ""),
        (pool(&["10.0.0.1", "10.0.0.3"], 0), ""),
        (gateway(good(), "10.99.0.1"), ""),
        (pool(&[], 24), "! spec.addresses "),
        (pool(&["10.0.0.8-10.0.0.1"], 24), "! spec.addresses 10.0.0.8-10.0.0.1"),
        (pool(&["10.0.0.1/33"], 24), "! spec.addresses 10.0.0.1/33"),
        (pool(&["10.0.0.10"], -1), "! spec.prefix -1"),
        (pool(&["10.0.0.10"], 33), "! spec.prefix 33"),
        (pool(&["fd00::1"], 129), "! spec.prefix 129"),
        (pool(&["10.0.0.10", "10.0.1.10"], 24), "! spec.addresses 10.0.1.10"),
        (pool(&["10.0.0.10", "10.0.0.250-10.0.1.3"], 24), "! spec.addresses 10.0.0.250-10.0.1.3"),
        (pool(&["10.0.1.1", "10.0.0.1"], 24), "! spec.addresses 10.0.1.1"),
        (pool(&["10.0.0.10", "fd00::1"], 24), "! spec.addresses fd00::1"),
        (excluded(good(), &["10.0.0.11", "fd00::1"]), "! spec.excludedAddresses fd00::1"),
        (excluded(good(), &["fd00::1"]), "! spec.excludedAddresses fd00::1"),
        (gateway(good(), "fd00::1"), "! spec.gateway fd00::1"),
        (gateway(good(), "the router"), "! spec.gateway the router"),
    ];
    for (spec, wanted) in cases {
        let shown = shown(AddressSpace::of_addresses(&spec));
        let verdict = if shown.starts_with('!') { shown } else { String::new() };
        assert_eq!(verdict, wanted, "{spec:?}");
    }
}

#[test]
fn prefixes_are_counted_in_units_of_their_length() {
    let count = |spec: &PrefixSpec| AddressSpace::of_prefixes(spec).unwrap().units().count();
    assert_eq!(count(&prefixes(&["fd00:0:0:4::/62"], 64)), 4);
    assert_eq!(count(&prefixes(&["fd00::/48"], 56)), 256);
    assert_eq!(count(&prefixes(&["fd00::/62", "fd00:0:0:4::/62"], 64)), 8);
    assert_eq!(count(&prefixes(&["fd00::/61", "fd00:0:0:4::/62"], 64)), 8);
    let excluded = vec!["fd00:0:0:1::5".to_owned(), "fd00:0:0:3::/80".to_owned()];
    let spec = PrefixSpec { excluded_prefixes: excluded, ..prefixes(&["fd00::/62"], 64) };
    assert_eq!(shown(AddressSpace::of_prefixes(&spec)), "fd00:: fd00:0:0:2::");
    let space = AddressSpace::of_prefixes(&prefixes(&["fd00::/60"], 64)).unwrap();
    let inside: Address = "fd00:0:0:5::1234".parse().unwrap();
    let unit = space.unit_of(inside).unwrap();
    assert_eq!(space.address_of(unit).unwrap().to_string(), "fd00:0:0:5::");
}

#[test]
fn prefix_pools_are_ipv6_and_aligned() {
    let cases = [
        (prefixes(&[], 64), "! spec.prefixes "),
        (prefixes(&["10.0.0.0/8"], 64), "! spec.prefixes 10.0.0.0/8"),
        (prefixes(&["fd00::1/48"], 64), "! spec.prefixes fd00::1/48"),
        (prefixes(&["fd00::/72"], 64), "! spec.prefixes fd00::/72"),
        (prefixes(&["fd00::5"], 128), "! spec.prefixes fd00::5"),
        (prefixes(&["fd00::/48"], 0), "! spec.allocationPrefixLength 0"),
        (prefixes(&["fd00::/48"], 129), "! spec.allocationPrefixLength 129"),
    ];
    for (spec, wanted) in cases {
        assert_eq!(shown(AddressSpace::of_prefixes(&spec)), wanted, "{spec:?}");
    }
}
