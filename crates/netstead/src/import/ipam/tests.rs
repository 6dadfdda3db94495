use netstead_providers::ipam_contents::{
    AddressUse, IpamContents, IpamNetwork, IpamRange, IpamRow, IpamVrf, NetworkUse,
};

use super::{ImportPlan, NETBOX, PHPIPAM, Selection, plan};

fn network(id: u64, cidr: &str) -> IpamNetwork {
    IpamNetwork {
        id,
        vrf: None,
        network: cidr.parse().unwrap(),
        usage: NetworkUse::Active,
        is_pool: false,
        description: String::new(),
        ours: false,
    }
}

fn range(id: u64, ends: &str) -> IpamRange {
    IpamRange {
        id,
        vrf: None,
        range: ends.parse().unwrap(),
        network: None,
        usage: NetworkUse::Active,
        description: String::new(),
        ours: false,
    }
}

fn row(id: u64, address: &str, name: &str) -> IpamRow {
    IpamRow {
        id,
        vrf: None,
        address: address.parse().unwrap(),
        network: None,
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        usage: AddressUse::Held,
        description: String::new(),
        ours: false,
    }
}

fn of(contents: &IpamContents) -> ImportPlan {
    plan(contents, NETBOX, &Selection::default()).unwrap()
}

fn contents(networks: &[IpamNetwork], ranges: &[IpamRange], rows: &[IpamRow]) -> IpamContents {
    IpamContents { networks: networks.to_vec(), ranges: ranges.to_vec(), addresses: rows.to_vec() }
}

#[test]
fn a_prefix_becomes_a_pool_and_its_addresses_claims_gateway_and_exclusions() {
    let used = |id, address: &str, usage| IpamRow { usage, ..row(id, address, "") };
    let rows = [
        row(1, "10.0.3.12", "web.lab.test"),
        row(2, "10.0.3.11", ""),
        used(3, "10.0.3.1", AddressUse::Gateway),
        used(4, "10.0.3.2", AddressUse::Gateway),
        used(5, "10.0.3.20", AddressUse::Reserved),
        used(6, "10.0.3.21", AddressUse::Reserved),
        IpamRow { ours: true, ..row(7, "10.0.3.30", "ours.lab.test") },
        row(8, "10.0.3.0", "the-network"),
        row(9, "192.0.2.1", "far.lab.test"),
    ];
    let plan = of(&contents(&[network(1, "10.0.3.0/24")], &[], &rows));
    assert_eq!(
        plan.preview(),
        "pool 10.0.3.0_24: 10.0.3.0/24, gateway 10.0.3.1, without 10.0.3.2, 10.0.3.20/31, from prefix 10.0.3.0/24\n  \
         10.0.3.11  netbox-2\n  10.0.3.12  web.lab.test\n\
         left out:\n  192.0.2.1 (far.lab.test): no prefix that is imported holds it\n  \
         10.0.3.0 (the-network): it is a network or broadcast address\n"
    );
    assert_eq!((plan.own, plan.claims()), (1, 2));
    assert!(plan.left_out.iter().all(|one| one.refused));
}

#[test]
fn ranges_and_inner_prefixes_are_pools_of_their_own_and_the_outer_one_has_what_is_left() {
    let closed = |why, one| IpamNetwork { usage: why, ..one };
    let networks = [
        closed(NetworkUse::Container, network(1, "10.0.0.0/8")),
        network(2, "10.1.0.0/16"),
        network(3, "10.1.3.0/24"),
        network(4, "10.1.3.64/26"),
        closed(NetworkUse::Closed("reserved"), network(5, "10.1.3.240/28")),
        IpamNetwork { ours: true, ..network(6, "10.1.3.224/28") },
    ];
    let ranges = [
        range(1, "10.1.3.10-10.1.3.19"),
        IpamRange { usage: NetworkUse::Closed("marked as populated"), ..range(2, "10.1.3.20-10.1.3.29") },
    ];
    let gateway = IpamRow { usage: AddressUse::Gateway, ..row(1, "10.1.3.1", "") };
    let rows =
        [gateway, row(2, "10.1.3.12", "dhcp.lab.test"), row(3, "10.1.3.70", "vip"), row(4, "10.1.3.21", "")];
    assert_eq!(
        of(&contents(&networks, &ranges, &rows)).preview(),
        "pool 10.1.3.0_24: 10.1.3.0-10.1.3.9, 10.1.3.20-10.1.3.63, 10.1.3.128/25, gateway 10.1.3.1, without \
         10.1.3.20-10.1.3.29, 10.1.3.224/27, from prefix 10.1.3.0/24\n\
         pool 10.1.3.10-10.1.3.19: 10.1.3.10-10.1.3.19, gateway 10.1.3.1, from range 10.1.3.10-10.1.3.19\n  \
         10.1.3.12  dhcp.lab.test\n\
         pool 10.1.3.64_26: 10.1.3.64/26, from prefix 10.1.3.64/26\n  10.1.3.70  vip\n\
         left out:\n  prefix 10.0.0.0/8: it is a container\n  prefix 10.1.3.240/28: it is reserved\n  \
         range 10.1.3.20-10.1.3.29: it is marked as populated\n  \
         prefix 10.1.0.0/16: it holds 10.1.3.0/24, which is a pool of its own, and no address beside\n  \
         10.1.3.21 (id 4): it is excluded\n"
    );
}

#[test]
fn networks_that_are_there_twice_and_ranges_that_cross_an_end_are_refused_and_the_rest_goes_on() {
    let networks = [network(9, "10.0.3.0/24"), network(2, "10.0.3.0/24"), network(3, "10.0.5.0/24")];
    let ranges = [
        range(1, "10.0.3.250-10.0.4.9"),
        range(2, "10.0.4.200-10.0.5.5"),
        range(3, "10.0.9.1-10.0.9.9"),
        range(4, "10.0.9.5-10.0.9.19"),
        range(5, "10.0.5.10-10.0.5.19"),
    ];
    let plan = of(&contents(&networks, &ranges, &[]));
    let told: Vec<String> = plan.left_out.iter().map(super::LeftOut::line).collect();
    assert_eq!(
        told,
        [
            "prefix 10.0.3.0/24 with the id 9: the one with the id 2 is the same, and pools of one VRF never overlap",
            "range 10.0.3.250-10.0.4.9: it overlaps 10.0.3.0/24, and pools of one VRF never do",
            "range 10.0.4.200-10.0.5.5: it overlaps 10.0.5.0/24, and pools of one VRF never do",
            "range 10.0.9.5-10.0.9.19: it overlaps 10.0.9.1-10.0.9.9, and pools of one VRF never do",
        ]
    );
    assert!(plan.left_out.iter().all(|one| one.refused));
    let names: Vec<&str> = plan.pools.iter().map(|pool| pool.spec.name.as_str()).collect();
    assert_eq!(names, ["10.0.3.0_24", "10.0.5.0_24", "10.0.5.10-10.0.5.19", "10.0.9.1-10.0.9.9"]);
}

#[test]
fn a_range_that_is_all_of_its_prefix_is_the_pool() {
    let plan = of(&contents(&[network(1, "10.0.3.0/30")], &[range(7, "10.0.3.1-10.0.3.2")], &[]));
    assert_eq!(
        plan.preview(),
        "pool 10.0.3.1-10.0.3.2: 10.0.3.1-10.0.3.2, from range 10.0.3.1-10.0.3.2\n\
         left out:\n  prefix 10.0.3.0/30: the ranges in it have all of it\n"
    );
}

#[test]
fn names_that_two_addresses_have_or_that_are_no_keys_give_way_to_ids() {
    let rows = [
        row(8, "10.0.3.8", "web"),
        row(5, "10.0.3.5", "web"),
        row(6, "10.0.3.6", "a\u{200b}b"),
        row(7, "10.0.3.7", ".."),
        row(9, "10.0.3.9", "netbox-8"),
        row(10, "10.0.3.5", "again"),
    ];
    assert_eq!(
        of(&contents(&[network(1, "10.0.3.0/24")], &[], &rows)).preview(),
        "pool 10.0.3.0_24: 10.0.3.0/24, from prefix 10.0.3.0/24\n  10.0.3.5  web\n  \
         10.0.3.6  netbox-6  (`a\\u{200b}b` is not a key: `\\u{200b}` at character 2 cannot be printed)\n  \
         10.0.3.7  netbox-7  (`..` cannot be its key)\n  10.0.3.8  netbox-8  (`web` is the key of 10.0.3.5)\n  \
         10.0.3.9  netbox-9  (`netbox-8` cannot be its key)\n\
         left out:\n  10.0.3.5 (again): it is there twice, and the one with the id 5 counts\n"
    );
}

#[test]
fn vrfs_are_kept_also_where_their_names_are_none_or_the_same() {
    let vrf = |id, name: &str| Some(IpamVrf { id, name: name.to_owned() });
    let at = |id, vrf, cidr: &str| IpamNetwork { vrf, ..network(id, cidr) };
    let networks = [
        network(1, "10.0.3.0/24"),
        at(2, vrf(1, "Team Red"), "10.0.3.0/24"),
        at(3, vrf(2, "team-red"), "10.0.3.0/24"),
        at(4, vrf(3, "default"), "10.0.3.0/24"),
        at(5, vrf(4, "?"), "fd00:1::/64"),
    ];
    let rows = [IpamRow { vrf: vrf(2, "team-red"), ..row(1, "10.0.3.7", "web") }, row(2, "10.0.3.7", "web")];
    let contents = contents(&networks, &[], &rows);
    let all = of(&contents);
    let shown: Vec<String> = all
        .pools
        .iter()
        .map(|pool| format!("{} {} {}", pool.spec.name, pool.spec.vrf, pool.claims.len()))
        .collect();
    assert_eq!(
        shown,
        [
            "10.0.3.0_24 default 1",
            "team-red.10.0.3.0_24 team-red 0",
            "team-red-2.10.0.3.0_24 team-red-2 1",
            "default-3.10.0.3.0_24 default-3 0",
            "vrf-4.fd00-1--_64 vrf-4 0",
        ]
    );
    assert_eq!(all.pools[2].pool_input().vrf.as_deref(), Some("team-red-2"));
    let wanted = |name: &str| Selection { vrfs: vec![name.to_owned()], ..Selection::default() };
    assert_eq!(plan(&contents, NETBOX, &wanted("Team Red")).unwrap().pools.len(), 1);
    let unknown = plan(&contents, NETBOX, &wanted("blue")).unwrap_err().to_string();
    assert_eq!(unknown, "NetBox has no VRF `blue`; `default` is its global table");
}

#[test]
fn a_subnet_of_another_section_is_refused_with_its_addresses() {
    let at = |subnet, one| IpamRow { network: Some(subnet), ..one };
    let rows = [at(1, row(7, "10.0.3.7", "web")), at(2, row(8, "10.0.3.7", "theirs"))];
    let contents = contents(&[network(1, "10.0.3.0/24"), network(2, "10.0.3.0/24")], &[], &rows);
    let name = Some("office".parse().unwrap());
    let plan = plan(&contents, PHPIPAM, &Selection { pool: name, hostnames: true, ..Selection::default() });
    let plan = plan.unwrap();
    assert_eq!(
        plan.preview(),
        "pool office: 10.0.3.0/24, from subnet 10.0.3.0/24\n  10.0.3.7  web\n\
         left out:\n  subnet 10.0.3.0/24 with the id 2: the one with the id 1 is the same, and pools of one VRF never overlap\n  \
         10.0.3.7 (theirs): no subnet that is imported holds it\n"
    );
    let claims: Vec<_> = plan.pools[0].claims.iter().collect();
    let sent = serde_json::to_value(plan.pools[0].bulk(&claims)).unwrap();
    assert_eq!(
        sent,
        serde_json::json!({ "entries": [{ "claim":
            { "key": "web", "any": ["office"], "claim": { "address": "10.0.3.7", "hostnames": ["web"] } } }] })
    );
}
