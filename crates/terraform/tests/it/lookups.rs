//! Data sources, choices of pools, names in DNS, and imports by identity.

use std::{process::Stdio, time::Duration};

use netstead_testkit::{has_command, wait_until};

use crate::server::Bench;

const SOON: Duration = Duration::from_mins(1);

/// All data sources, and one output with what they found.
const EVERY: &str = r#"
data "netstead_address" "web" {
  pool = "lan"
  key  = "web-1"
}
data "netstead_addresses" "web" {
  selector = "role=web"
}
data "netstead_addresses" "lan" {
  pool = "lan"
}
data "netstead_host" "web" {
  name      = "web-1"
  ipv4_pool = "lan"
  mac_pool  = "macs"
}
data "netstead_pool" "lan" {
  name = "lan"
}
data "netstead_pools" "fra" {
  selector = "site=fra"
}
data "netstead_prefix" "ams" {
  pool = "sites"
  key  = "ams"
}
data "netstead_record" "mail" {
  name = "mail.home.test"
  type = "A"
}
data "netstead_records" "web" {
  name = "web-1.home.test"
}
data "netstead_reservation" "dhcp" {
  pool = "lan"
  key  = "dhcp"
}
data "netstead_reservations" "lab" {
  pool = "lab"
}
data "netstead_reservations" "all" {
}
data "netstead_usage" "lan" {
  pool = "lan"
}
output "seen" {
  value = jsonencode([
    "${data.netstead_address.web.address}/${data.netstead_address.web.prefix_length} ${data.netstead_address.web.fqdn}",
    data.netstead_address.web.labels,
    [for one in data.netstead_addresses.web.addresses : "${one.pool}/${one.key}"],
    [for one in data.netstead_addresses.lan.addresses : one.address],
    [data.netstead_host.web.ipv4, data.netstead_host.web.mac, data.netstead_host.web.gateway],
    [data.netstead_pool.lan.network, data.netstead_pool.lan.free, data.netstead_pool.lan.order],
    [for one in data.netstead_pools.fra.pools : one.name],
    [data.netstead_prefix.ams.prefix, data.netstead_prefix.ams.length],
    data.netstead_record.mail.values,
    [for one in data.netstead_records.web.records : "${one.type} ${one.value}"],
    data.netstead_reservation.dhcp.range,
    [for one in data.netstead_reservations.lab.reservations : one.key],
    length(data.netstead_reservations.all.reservations),
    [data.netstead_usage.lan.size, data.netstead_usage.lan.held, data.netstead_usage.lan.reserved],
  ])
}
"#;

#[test]
fn every_data_source_looks_up_lists_and_filters() {
    let Some(bench) = Bench::start() else { return };
    bench.does("pool create lan --network 10.0.3.0/24 --range 10.0.3.50-10.0.3.60 --gateway 10.0.3.1 --domain home.test --label site=ams");
    bench.does("pool create lab --range 10.0.4.1-10.0.4.9 --label site=fra");
    bench.does("pool create macs --range 02:00:00:00:00:01-02:00:00:00:00:ff");
    bench.does("pool create sites --prefix 10.8.0.0/16 --length 24");
    bench.does("claim lan web-1 --label role=web");
    bench.does("claim lan db-1 --label role=db");
    bench.does("claim lab web-1");
    bench.does("claim macs web-1");
    bench.does("claim sites ams");
    bench.does("reserve lan dhcp 10.0.3.58-10.0.3.60");
    bench.does("reserve lab spare 10.0.4.9");
    bench.does("record set mail.home.test A 10.0.3.9");
    let shown = wait_until(SOON, || {
        bench.does("get records --output json").contains("web-1.home.test").then_some(())
    });
    assert!(shown.is_some());
    bench.apply(EVERY);
    let seen: serde_json::Value = serde_json::from_str(&bench.output("seen")).unwrap();
    let expected = serde_json::json!([
        "10.0.3.50/24 web-1.home.test",
        { "role": "web" },
        ["lan/web-1"],
        ["10.0.3.51", "10.0.3.50"],
        ["10.0.3.50", "02:00:00:00:00:01", "10.0.3.1"],
        ["10.0.3.0/24", "6", "lowest"],
        ["lab"],
        ["10.8.0.0/24", 24],
        ["10.0.3.9"],
        ["A 10.0.3.50"],
        "10.0.3.58-10.0.3.60",
        ["spare"],
        2,
        ["11", "2", "3"],
    ]);
    assert_eq!(seen, expected);
    for (kind, more, said) in [
        ("address", "pool = \"lan\"\n  key = \"no\"", "`no` holds nothing in pool `lan`"),
        ("host", "name = \"no\"\n  ipv4_pool = \"lan\"", "there is no host `no`"),
        ("pool", "name = \"no\"", "the pool `no` cannot be read"),
        ("record", "name = \"no.home.test\"\n  type = \"A\"", "`no.home.test` has no record of type A"),
        ("reservation", "pool = \"lan\"\n  key = \"no\"", "pool `lan` has no reservation `no`"),
    ] {
        bench.terraform.write(&format!("data \"netstead_{kind}\" \"no\" {{\n  {more}\n}}\n")).unwrap();
        let told = bench.ran(&["plan", "-no-color"], 1);
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn hosts_and_addresses_are_found_by_their_names_and_by_their_addresses() {
    if !has_command("dig") {
        netstead_testkit::skip("`dig` is not installed");
        return;
    }
    let Some(bench) = Bench::start() else { return };
    let configuration = r#"
resource "netstead_pool" "lan" {
  name    = "lan"
  network = "10.0.3.0/24"
  domain  = "home.test"
}
resource "netstead_pool" "six" {
  name    = "six"
  network = "2001:db8:3::/64"
  domain  = "home.test"
}
resource "netstead_pool" "macs" {
  name   = "macs"
  ranges = ["02:00:00:00:00:01-02:00:00:00:00:ff"]
}
resource "netstead_host" "vm" {
  name      = "vm-1"
  ipv4_pool = netstead_pool.lan.name
  ipv6_pool = netstead_pool.six.name
  mac_pool  = netstead_pool.macs.name
  hostname  = "vm"
  aliases   = ["shop"]
}
resource "netstead_address" "web" {
  pool     = netstead_pool.lan.name
  key      = "web-1"
  hostname = "www"
  aliases  = ["blog", "wiki.home.test"]
}
output "all" {
  value = join(" ", [netstead_host.vm.ipv4, netstead_host.vm.ipv6, netstead_host.vm.mac, netstead_host.vm.fqdn,
    netstead_address.web.address])
}
"#;
    bench.apply(configuration);
    let all = bench.output("all");
    let [four, six, mac, fqdn, web] = all.split(' ').collect::<Vec<_>>().try_into().unwrap();
    assert!(six.starts_with("2001:db8:3:") && mac.starts_with("02:00:") && fqdn == "vm.home.test", "{all}");
    for (question, expected) in [
        (vec!["vm.home.test", "A"], four),
        (vec!["vm.home.test", "AAAA"], six),
        (vec!["shop.home.test", "AAAA"], six),
        (vec!["-x", four], "vm.home.test."),
        (vec!["-x", six], "vm.home.test."),
        (vec!["www.home.test", "A"], web),
        (vec!["blog.home.test", "A"], web),
        (vec!["wiki.home.test", "A"], web),
        (vec!["-x", web], "www.home.test."),
    ] {
        let answered = wait_until(SOON, || (bench.resolves(&question) == [expected]).then_some(()));
        assert!(answered.is_some(), "{question:?}: {:?}, not {expected}", bench.resolves(&question));
    }
    bench.plan(0);
    bench.ran(&["destroy", "-auto-approve", "-no-color"], 0);
    let gone = wait_until(SOON, || bench.resolves(&["vm.home.test", "AAAA"]).is_empty().then_some(()));
    assert!(gone.is_some());
}

/// A host with one pool that is gone gives the addresses of the other pools back all the same.
#[test]
fn a_host_with_a_pool_that_is_gone_gives_its_other_addresses_back() {
    let Some(bench) = Bench::start() else { return };
    bench.does("pool create lan --range 10.0.3.50-10.0.3.60");
    bench.does("pool create macs --range 02:00:00:00:00:01-02:00:00:00:00:ff");
    bench.apply("resource \"netstead_host\" \"vm\" {\n  name = \"vm-1\"\n  ipv4_pool = \"lan\"\n  mac_pool = \"macs\"\n}\n");
    assert_eq!(bench.held(), 2);
    bench.does("pool delete macs --force gone");
    bench.ran(&["destroy", "-auto-approve", "-no-color", "-refresh=false"], 0);
    assert_eq!(bench.claims(), "[]");
}

#[test]
fn a_choice_of_pools_a_wish_and_a_wait_give_what_they_say() {
    let Some(bench) = Bench::start() else { return };
    bench.does("pool create a --range 10.0.1.1 --label site=ams --cooldown 0");
    bench.does("pool create b --range 10.0.2.1-10.0.2.9 --label site=ams");
    bench.does("claim a other");
    let configuration = |pools: &str| {
        format!(
            r#"
resource "netstead_address" "any" {{
  pools = [{pools}]
  key   = "any"
}}
resource "netstead_address" "labels" {{
  selector   = "site=ams"
  key        = "labels"
  depends_on = [netstead_address.any]
}}
resource "netstead_address" "wish" {{
  pool   = "b"
  key    = "wish"
  prefer = "10.0.2.7"
}}
resource "netstead_address" "other_wish" {{
  pool       = "b"
  key        = "other-wish"
  prefer     = "10.0.2.7"
  depends_on = [netstead_address.wish, netstead_address.labels]
}}
output "all" {{
  value = join(" ", [netstead_address.any.address, netstead_address.any.found_in_pool, netstead_address.labels.address,
    netstead_address.wish.address, netstead_address.other_wish.address])
}}
"#
        )
    };
    bench.apply(&configuration("\"a\", \"b\""));
    assert_eq!(bench.output("all"), "10.0.2.1 b 10.0.2.2 10.0.2.7 10.0.2.3");
    bench.plan(0);
    // The pool it is from is still among them.
    let said = bench.apply(&configuration("\"b\""));
    assert!(said.contains("0 added, 1 changed, 0 destroyed"), "{said}");
    bench.plan(0);
    let said =
        bench.apply(&configuration("\"a\", \"b\"").replace("prefer = \"10.0.2.7\"", "prefer = \"10.0.2.8\""));
    assert!(said.contains("1 added, 1 changed, 1 destroyed"), "{said}");
    bench.plan(0);

    // One that waits gets the address that becomes free.
    let waiting = "resource \"netstead_address\" \"late\" {\n  pool = \"a\"\n  key = \"late\"\n  wait = \"2m\"\n}\n\
                   output \"late\" {\n  value = netstead_address.late.address\n}\n";
    bench.terraform.write(waiting).unwrap();
    let mut command =
        bench.terraform.command(&["apply", "-auto-approve", "-no-color", "-target=netstead_address.late"]);
    let mut apply = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let waits = wait_until(SOON, || bench.claims().contains("\"waiting\"").then_some(()));
    assert!(waits.is_some(), "{}", bench.claims());
    bench.does("release a other");
    assert!(apply.wait().unwrap().success());
    bench.apply(waiting);
    assert_eq!(bench.output("late"), "10.0.1.1");
    // And one that waits too long is an error, with nothing left in the queue.
    let short = waiting.replace("late", "later").replace("2m", "1s");
    bench.terraform.write(&format!("{waiting}{short}")).unwrap();
    let said = bench.ran(&["apply", "-auto-approve", "-no-color"], 1);
    assert!(said.contains("`later` gets no address from pool `a`"), "{said}");
    assert_eq!(bench.held(), 1, "{}", bench.claims());
}

#[test]
fn every_resource_is_imported_by_its_identity_without_a_change() {
    let Some(bench) = Bench::start() else { return };
    if !bench.has_minor(12, None, "resource identity") {
        return;
    }
    bench.does("pool create lan --range 10.0.3.50-10.0.3.60");
    bench.does("pool create macs --range 02:00:00:00:00:01-02:00:00:00:00:ff");
    bench.does("pool create sites --prefix 10.8.0.0/16 --length 24");
    for claim in ["lan web-1", "lan w-1", "lan w-2", "lan vm-1", "macs vm-1", "sites ams"] {
        bench.does(&format!("claim {claim}"));
    }
    bench.does("reserve lan dhcp 10.0.3.58-10.0.3.60");
    bench.does("record set mail.home.test A 10.0.3.9");
    let imported = [
        ("pool", "name = \"lan\"\n  ranges = [\"10.0.3.50-10.0.3.60\"]", "name = \"lan\""),
        ("address", "pool = \"lan\"\n  key = \"web-1\"", "found_in_pool = \"lan\"\n    key = \"web-1\""),
        ("addresses", "pool = \"lan\"\n  keys = [\"w-1\", \"w-2\"]", "id = \"lan/w-1,w-2\""),
        ("host", "name = \"vm-1\"\n  ipv4_pool = \"lan\"\n  mac_pool = \"macs\"", "id = \"lan,,macs/vm-1\""),
        ("prefix", "pool = \"sites\"\n  key = \"ams\"", "found_in_pool = \"sites\"\n    key = \"ams\""),
        (
            "record",
            "name = \"mail.home.test\"\n  type = \"A\"\n  values = [\"10.0.3.9\"]",
            "name = \"mail.home.test\"\n    type = \"A\"",
        ),
        (
            "reservation",
            "pool = \"lan\"\n  key = \"dhcp\"\n  range = \"10.0.3.58-10.0.3.60\"",
            "pool = \"lan\"\n    key = \"dhcp\"",
        ),
    ];
    let block = |(kind, attributes, identity): &(&str, &str, &str)| {
        format!(
            "resource \"netstead_{kind}\" \"it\" {{\n  {attributes}\n}}\n\
             import {{\n  to = netstead_{kind}.it\n  identity = {{\n    {identity}\n  }}\n}}\n"
        )
    };
    let said = bench.apply(&imported.iter().map(block).collect::<String>());
    assert!(said.contains("7 imported, 0 added, 0 changed, 0 destroyed"), "{said}");
    bench.plan(0);
}
