//! From terraform-provider-netaddr to ours: its state and keyspace are taken over, and its ranges and addresses become Netstead's own.

use std::{collections::BTreeMap, fs};

use netstead_testkit::{Etcd, NetaddrClient, Terraform, netaddr_ipv4, skip_without};
use serde_json::{Value as Json, json};

use crate::{
    netaddr::{Bench, LAN, ran, terraform, write},
    server::Bench as Server,
};

/// The original, as its users write it.
const THEIRS: &str = "ferlab-ste-justine/netaddr";

/// Instances of one resource as the SDK of the original writes them; those of a count have their numbers.
fn resource(terraform: &Terraform, kind: &str, name: &str, instances: &[Json], counted: bool) -> Json {
    let instance = |(number, attributes): (usize, &Json)| {
        let mut instance = json!({
            "schema_version": 0, "attributes": attributes, "sensitive_attributes": [], "private": "bnVsbA==",
        });
        if counted {
            instance["index_key"] = json!(number);
        }
        instance
    };
    json!({
        "mode": "managed", "type": kind, "name": name,
        "provider": format!("provider[\"{}/{THEIRS}\"]", terraform.registry()),
        "instances": instances.iter().enumerate().map(instance).collect::<Vec<_>>(),
    })
}

/// Writes a state of the original's, and changes its provider to ours.
fn take_over(terraform: &Terraform, resources: &[Json]) {
    let state = json!({
        "version": 4, "terraform_version": "1.9.8", "serial": 7, "lineage": "0d6bf4b4-5f0e-2f3c-9c2f-4d6a1f2f9a11", "outputs": {},
        "resources": resources, "check_results": null,
    });
    fs::write(terraform.path().join("terraform.tfstate"), state.to_string()).unwrap();
    let registry = terraform.registry();
    let (from, to) = (format!("{registry}/{THEIRS}"), format!("{registry}/netstead/netstead"));
    ran(terraform, &["state", "replace-provider", "-auto-approve", &from, &to], 0);
}

/// An address with all defaults written out, and an attribute that only the SDK knows.
fn of_address(name: &str, range: &str, fixed: Option<&str>, address: &str) -> Json {
    json!({
        "id": name, "name": name, "range_id": range, "hardcoded_address": fixed, "address": address,
        "retain_on_delete": false, "manage_existing": false, "timeouts": null,
    })
}

#[test]
fn a_state_of_the_original_is_taken_over_and_the_next_plan_is_empty() {
    let Some(bench) = Bench::start() else { return };
    let mut original = bench.original();
    let (first, last) = (netaddr_ipv4([10, 0, 3, 50]), netaddr_ipv4([10, 0, 3, 60]));
    assert!(original.create_range("/ranges/lan/", "ipv4", &first, &last).unwrap());
    assert!(original.create_hardcoded("/ranges/lan/", "dns", &netaddr_ipv4([10, 0, 3, 53])).unwrap());
    original.create_generated(&["/ranges/lan/"], "web").unwrap().unwrap();
    original.create_generated(&["/ranges/lan/"], "any").unwrap().unwrap();
    let keys = original.dump("/ranges/").unwrap();
    let configuration = format!(
        r#"{LAN}
resource "netaddr_address_ipv4" "dns" {{
  range_id          = netaddr_range_ipv4.lan.id
  name              = "dns"
  hardcoded_address = "10.0.3.53"
}}
resource "netaddr_address_ipv4" "web" {{
  range_id = netaddr_range_ipv4.lan.id
  name     = "web"
}}
resource "netaddr_address_ipv4_v2" "any" {{
  range_ids = [netaddr_range_ipv4.lan.id]
  name      = "any"
}}
"#
    );
    bench.write(&configuration);
    let lan = "/ranges/lan/";
    let range = json!({
        "id": lan, "key_prefix": lan, "first_address": "10.0.3.50", "last_address": "10.0.3.60",
    });
    let any = json!({
        "id": "any", "name": "any", "range_ids": [lan], "hardcoded_address": null, "address": "10.0.3.51",
        "found_in_range": lan, "retain_on_delete": false, "manage_existing": false,
    });
    let one = |kind: &str, name: &str, attributes: Json| {
        resource(&bench.terraform, kind, name, &[attributes], false)
    };
    take_over(
        &bench.terraform,
        &[
            one("netaddr_range_ipv4", "lan", range),
            one("netaddr_address_ipv4", "dns", of_address("dns", lan, Some("10.0.3.53"), "10.0.3.53")),
            one("netaddr_address_ipv4", "web", of_address("web", lan, None, "10.0.3.50")),
            one("netaddr_address_ipv4_v2", "any", any),
        ],
    );
    let said = bench.plan(0);
    assert!(said.contains("No changes."), "{said}");
    bench.apply(&configuration);
    assert_eq!(original.dump("/ranges/").unwrap(), keys, "not one key changed");
    bench.destroy();
    assert!(original.dump("/ranges/").unwrap().is_empty());
}

/// A fleet: one range of each kind, and seventeen states with pairs of an IPv4 and a MAC address of the same names, mostly by count.
#[test]
fn a_fleet_of_seventeen_states_is_taken_over_without_a_change() {
    let Some(etcd) = Etcd::start(1) else { return };
    let mut original = NetaddrClient::connect(&etcd.endpoints()[0]).unwrap();
    let (lan, macs) = ("/fleet/lan/", "/fleet/macs/");
    let (first, last) = (netaddr_ipv4([10, 0, 3, 1]), netaddr_ipv4([10, 0, 3, 200]));
    assert!(original.create_range(lan, "ipv4", &first, &last).unwrap());
    let mac = |last: u8| vec![0x52, 0x54, 0, 0, 0, last];
    assert!(original.create_range(macs, "mac", &mac(1), &mac(200)).unwrap());
    let text = |bytes: &[u8]| match bytes {
        [.., a, b, c, d] if bytes.len() == 16 => format!("{a}.{b}.{c}.{d}"),
        other => other.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"),
    };
    // Six states with two pairs, eleven with one: 23 pairs.
    let mut states = Vec::new();
    for number in 0..17 {
        let count = if number < 6 { 2 } else { 1 };
        let mut pairs: BTreeMap<&str, Vec<Json>> = BTreeMap::new();
        for member in 0..count {
            let name = format!("node-{number}-{member}");
            for (kind, range) in [("netaddr_address_ipv4", lan), ("netaddr_address_mac", macs)] {
                let address = original.create_generated(&[range], &name).unwrap().unwrap();
                pairs.entry(kind).or_default().push(of_address(&name, range, None, &text(&address)));
            }
        }
        states.push((number, count, pairs));
    }
    let keys = original.dump("/fleet/").unwrap();
    assert_eq!(keys.len(), 8 + 4 * 23);
    for (number, count, pairs) in states {
        let Some(terraform) = terraform(&etcd) else { return };
        let configuration = format!(
            r#"
data "netaddr_range_ipv4" "lan" {{
  key_prefix = "{lan}"
}}
data "netaddr_range_mac" "macs" {{
  key_prefix = "{macs}"
}}
resource "netaddr_address_ipv4" "nodes" {{
  count    = {count}
  range_id = data.netaddr_range_ipv4.lan.id
  name     = "node-{number}-${{count.index}}"
}}
resource "netaddr_address_mac" "nodes" {{
  count    = {count}
  range_id = data.netaddr_range_mac.macs.id
  name     = "node-{number}-${{count.index}}"
}}
"#
        );
        write(&terraform, &configuration);
        let resources: Vec<Json> = pairs
            .iter()
            .map(|(kind, instances)| resource(&terraform, kind, "nodes", instances, true))
            .collect();
        take_over(&terraform, &resources);
        let said = ran(&terraform, &["plan", "-no-color", "-detailed-exitcode"], 0);
        assert!(said.contains("No changes."), "state {number}: {said}");
    }
    assert_eq!(original.dump("/fleet/").unwrap(), keys, "not one key changed");
}

#[test]
fn ranges_and_addresses_of_every_kind_move_into_pools_of_netstead() {
    let Some(etcd) = Etcd::start(1) else { return };
    let Some(mut server) = Server::start() else { return };
    if server.terraform.is_opentofu() {
        skip_without(
            "OpenTofu 1.12.6 ends with `attribute \"name\" is required` when a resource moves to another type",
        );
        return;
    }
    let endpoint = etcd.endpoints()[0].clone();
    server.terraform.set("ETCDCTL_ENDPOINTS", &endpoint);
    let before = r#"
resource "netaddr_range_ipv4" "lan" {
  key_prefix    = "/ranges/lan/"
  first_address = "10.0.3.50"
  last_address  = "10.0.3.60"
}
resource "netaddr_range_mac" "macs" {
  key_prefix    = "/ranges/macs/"
  first_address = "52:54:00:00:00:01"
  last_address  = "52:54:00:00:00:ff"
}
resource "netaddr_address_ipv4" "web" {
  range_id = netaddr_range_ipv4.lan.id
  name     = "web-1"
}
resource "netaddr_address_ipv4_v2" "any" {
  range_ids  = [netaddr_range_ipv4.lan.id]
  name       = "any-1"
  depends_on = [netaddr_address_ipv4.web]
}
resource "netaddr_address_mac" "web" {
  range_id = netaddr_range_mac.macs.id
  name     = "web-1"
}
"#;
    write(&server.terraform, before);
    ran(&server.terraform, &["apply", "-auto-approve", "-no-color"], 0);
    for range in ["/ranges/lan/", "/ranges/macs/"] {
        server.does(&format!("import netaddr --endpoints {endpoint} --range {range} --yes"));
    }
    // As the import made the pools.
    let pool = |name: &str, range: &str| {
        format!(
            "resource \"netstead_pool\" \"{name}\" {{\n  provider = netaddr\n  name     = \"{name}\"\n  ranges   = [\"{range}\"]\n  \
             order    = \"freed-first\"\n  cooldown = \"0s\"\n}}\n"
        )
    };
    let address = |label: &str, pool: &str, key: &str| {
        format!(
            "resource \"netstead_address\" \"{label}\" {{\n  provider = netaddr\n  pool     = netstead_pool.{pool}.name\n  key      = \"{key}\"\n}}\n"
        )
    };
    let moves = [
        ("netaddr_range_ipv4.lan", "netstead_pool.lan"),
        ("netaddr_range_mac.macs", "netstead_pool.macs"),
        ("netaddr_address_ipv4.web", "netstead_address.web"),
        ("netaddr_address_ipv4_v2.any", "netstead_address.any"),
        ("netaddr_address_mac.web", "netstead_address.mac"),
    ];
    let moved = moves.map(|(from, to)| format!("moved {{\n  from = {from}\n  to   = {to}\n}}\n")).concat();
    let after = [
        moved,
        pool("lan", "10.0.3.50-10.0.3.60"),
        pool("macs", "52:54:00:00:00:01-52:54:00:00:00:ff"),
        address("web", "lan", "web-1"),
        address("any", "lan", "any-1"),
        address("mac", "macs", "web-1"),
        "output \"all\" {\n  value = join(\" \", [netstead_address.web.address, netstead_address.any.address, netstead_address.mac.address])\n}\n"
            .to_owned(),
    ];
    write(&server.terraform, &after.concat());
    let said = ran(&server.terraform, &["apply", "-auto-approve", "-no-color"], 0);
    assert!(said.contains("0 added, ") && said.contains(" 0 destroyed"), "{said}");
    let all = ran(&server.terraform, &["output", "-no-color", "-raw", "all"], 0);
    assert_eq!(all, "10.0.3.50 10.0.3.51 52:54:00:00:00:01");
    let said = ran(&server.terraform, &["plan", "-no-color", "-detailed-exitcode"], 0);
    assert!(said.contains("No changes."), "{said}");
    // What has no counterpart is refused.
    let wrong = "moved {\n  from = netstead_address.web\n  to   = netstead_record.web\n}\n\
                 resource \"netstead_record\" \"web\" {\n  provider = netaddr\n  name = \"a.test\"\n  type = \"A\"\n  values = [\"10.0.3.50\"]\n}\n";
    let rest = after
        .concat()
        .replace(&address("web", "lan", "web-1"), "")
        .replace("netstead_address.web.address, ", "");
    let rest =
        rest.replace("moved {\n  from = netaddr_address_ipv4.web\n  to   = netstead_address.web\n}\n", "");
    write(&server.terraform, &format!("{wrong}{rest}"));
    let said = ran(&server.terraform, &["plan", "-no-color"], 1);
    assert!(said.contains("a netstead_address cannot become a netstead_record"), "{said}");
}
