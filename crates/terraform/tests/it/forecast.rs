//! Warnings and errors of a plan, before anything is made: a warning where the same apply may change it, else an error.

use crate::server::Bench;

/// One pool of each family, each with something in it already.
fn start() -> Option<Bench> {
    let bench = Bench::start()?;
    bench.does("pool create lan --network 10.0.3.0/24 --range 10.0.3.50-10.0.3.60");
    bench.does("pool create full --range 10.0.5.1-10.0.5.2");
    bench.does("pool create sites --prefix 10.8.0.0/23 --length 24");
    bench.does("claim lan web-1");
    bench.does("pool create full2 --range 10.0.6.1");
    bench.does("claim full2 other");
    bench.does("claim lan vm-2");
    bench.does("claim full a");
    bench.does("claim full b");
    bench.does("claim sites ams");
    bench.does("reserve lan dhcp 10.0.3.58-10.0.3.60");
    Some(bench)
}

/// The plan of this configuration says all of this.
fn says(bench: &Bench, code: i32, configuration: &str, expected: &[&str]) {
    bench.terraform.write(configuration).unwrap();
    let said = bench.ran(&["plan", "-no-color"], code);
    for one in expected {
        assert!(said.contains(one), "`{one}` is not said:\n{said}");
    }
}

#[test]
fn a_plan_warns_of_names_and_addresses_that_are_taken_and_of_pools_that_are_full() {
    let Some(bench) = start() else { return };
    let configuration = r#"
resource "netstead_address" "taken" {
  pool = "lan"
  key  = "web-1"
}
resource "netstead_address" "held" {
  pool    = "lan"
  key     = "web-2"
  address = "10.0.3.50"
}
resource "netstead_address" "full" {
  pool = "full"
  key  = "c"
}
resource "netstead_addresses" "many" {
  pool = "lan"
  keys = ["k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"]
}
resource "netstead_host" "taken" {
  name      = "vm-2"
  ipv4_pool = "lan"
}
resource "netstead_host" "full" {
  name      = "vm-1"
  ipv4_pool = "full2"
}
resource "netstead_prefix" "taken" {
  pool = "sites"
  key  = "ams"
}
resource "netstead_prefix" "held" {
  pool   = "sites"
  key    = "fra"
  prefix = "10.8.0.0/24"
}
resource "netstead_prefix" "large" {
  pool   = "sites"
  key    = "ber"
  length = 23
}
resource "netstead_reservation" "taken" {
  pool  = "lan"
  key   = "dhcp"
  range = "10.0.3.52"
}
resource "netstead_reservation" "overlaps" {
  pool  = "lan"
  key   = "lab"
  range = "10.0.3.57-10.0.3.58"
}
resource "netstead_pool" "taken" {
  name    = "lan"
  network = "10.0.3.0/24"
}
resource "netstead_pool" "overlaps" {
  name   = "other"
  ranges = ["10.0.3.55-10.0.3.99"]
}
"#;
    says(
        &bench,
        0,
        configuration,
        &[
            "`web-1` holds 10.0.3.50 of pool `lan` already",
            "with netstead_address.taken",
            "10.0.3.50 is held by `web-1`",
            "0 addresses are free in pool `full`",
            "6 addresses are free in pool `lan`",
            "`vm-2` holds 10.0.3.51 of pool `lan` already",
            "0 addresses are free in pool `full2`",
            "`ams` holds 10.8.0.0/24 of pool `sites` already",
            "10.8.0.0/24 is held by `ams`",
            "256 addresses are free in pool `sites`",
            "`dhcp` has 10.0.3.58-10.0.3.60 of pool `lan` reserved already",
            "10.0.3.58-10.0.3.60 of pool `lan` is reserved by `dhcp`",
            "there is a pool `lan` already",
            "the addresses overlap with those of pool `lan`",
        ],
    );
}

#[test]
fn a_plan_refuses_what_can_never_be() {
    let Some(bench) = start() else { return };
    let configuration = r#"
resource "netstead_address" "outside" {
  pool    = "lan"
  key     = "web-2"
  address = "10.0.9.9"
}
resource "netstead_prefix" "outside" {
  pool   = "sites"
  key    = "fra"
  prefix = "10.9.0.0/24"
}
resource "netstead_reservation" "outside" {
  pool  = "lan"
  key   = "lab"
  range = "10.0.3.60-10.0.3.70"
}
"#;
    says(
        &bench,
        1,
        configuration,
        &[
            "10.0.9.9 is not in pool `lan`",
            "10.9.0.0/24 is not in pool `sites`",
            "10.0.3.60-10.0.3.70 is not in pool `lan`",
        ],
    );
    let configuration = r#"
resource "netstead_host" "none" {
  name = "vm-1"
}
resource "netstead_prefix" "long" {
  pool   = "sites"
  key    = "fra"
  length = 129
}
resource "netstead_record" "empty" {
  name   = "www.home.test"
  type   = "A"
  values = []
}
"#;
    let expected = ["the host has no address", "`length` is not usable", "the record has no value"];
    says(&bench, 1, configuration, &expected);
}

#[test]
fn a_reservation_is_made_anew_for_another_range_and_loses_its_description_in_place() {
    let Some(bench) = start() else { return };
    let reservation = |range: &str, more: &str| {
        format!(
            "resource \"netstead_reservation\" \"lab\" {{\n  pool = \"lan\"\n  key = \"lab\"\n  range = \"{range}\"\n{more}}}\n"
        )
    };
    bench.apply(&reservation("10.0.3.52-10.0.3.53", "  description = \"a note\"\n"));
    bench.plan(0);
    let said = bench.apply(&reservation("10.0.3.52-10.0.3.53", ""));
    assert!(said.contains("0 added, 1 changed, 0 destroyed"), "{said}");
    bench.plan(0);
    let said = bench.apply(&reservation("10.0.3.54", ""));
    assert!(said.contains("1 added, 0 changed, 1 destroyed"), "{said}");
    bench.plan(0);
    // Another spelling of the same address is no other range.
    bench.apply(&reservation("10.0.3.54-10.0.3.54", ""));
    bench.plan(0);
}

/// Facts about values that are not known yet survive the plan: a pool's ranges are never null.
#[test]
fn unknown_values_keep_what_is_known_of_them() {
    let Some(bench) = start() else { return };
    let pool = |network: &str| {
        format!(
            "resource \"netstead_pool\" \"wide\" {{\n  name = \"wide\"\n  network = \"{network}\"\n}}\n\
             resource \"terraform_data\" \"seen\" {{\n  count = netstead_pool.wide.ranges != null ? 1 : 0\n}}\n\
             resource \"netstead_address\" \"named\" {{\n  pool = \"lan\"\n  key = \"k-${{terraform_data.id.id}}\"\n  prefer = \"10.0.3.55\"\n}}\n\
             resource \"terraform_data\" \"id\" {{\n}}\n"
        )
    };
    bench.apply(&pool("10.20.0.0/24"));
    // Their number can be planned although the ranges are known only after the apply.
    let said = bench.apply(&pool("10.21.0.0/24"));
    assert!(said.contains("0 added, 1 changed, 0 destroyed"), "{said}");
    bench.plan(0);
}
