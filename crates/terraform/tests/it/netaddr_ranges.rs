//! Ranges of terraform-provider-netaddr that grow, overlap, and are made together with their addresses.

use crate::netaddr::{Bench, LAN, address};

#[test]
fn a_range_grows_in_place_and_one_in_use_is_neither_destroyed_nor_replaced_by_wiping() {
    let Some(bench) = Bench::start() else { return };
    bench.apply(&format!("{LAN}{}", address("web", "")));
    let wide = LAN.replace("10.0.3.60", "10.0.3.200");
    let said = bench.apply(&format!("{wide}{}", address("web", "")));
    assert!(said.contains("0 added, 1 changed, 0 destroyed"), "{said}");
    assert!(bench.plan(0).contains("No changes."));
    // Another client holds an address of it.
    bench.original().create_generated(&["/ranges/lan/"], "theirs").unwrap().unwrap();
    let said = bench.ran(&["destroy", "-auto-approve", "-no-color"], 1);
    assert!(said.contains("has 1 addresses in use, such as `theirs`"), "{said}");
    assert_eq!(bench.names("/ranges/lan/"), 1);
    assert!(bench.ran(&["state", "list"], 0).contains("netaddr_range_ipv4.lan"));
}

#[test]
fn fixed_addresses_and_generated_ones_of_one_apply_need_no_order() {
    let Some(bench) = Bench::start() else { return };
    // Every second address of the range is fixed, and all are made at once, with the range itself.
    let many = format!(
        r#"{LAN}
resource "netaddr_address_ipv4" "generated" {{
  count    = 5
  range_id = netaddr_range_ipv4.lan.id
  name     = "generated-${{count.index}}"
}}
resource "netaddr_address_ipv4" "fixed" {{
  count             = 6
  range_id          = netaddr_range_ipv4.lan.id
  name              = "fixed-${{count.index}}"
  hardcoded_address = "10.0.3.${{50 + 2 * count.index}}"
}}
"#
    );
    bench.apply(&many);
    assert_eq!(bench.names("/ranges/lan/"), 11);
    assert!(bench.plan(0).contains("No changes."));
}

/// Neither plan sees the range of the other: both are made by the same apply.
#[test]
fn of_two_ranges_of_one_apply_that_overlap_one_is_made_and_the_other_is_an_error() {
    let Some(bench) = Bench::start() else { return };
    let twice = LAN.replace("\"lan\"", "\"other\"").replace("/ranges/lan/", "/ranges/other/");
    bench.write(&format!("{LAN}{twice}"));
    let said = bench.ran(&["apply", "-auto-approve", "-no-color"], 1);
    assert!(said.contains("overlaps with `/ranges/"), "{said}");
    assert_eq!(bench.ran(&["state", "list"], 0).matches("netaddr_range_ipv4.").count(), 1);
    let keys = bench.original().dump("/ranges/").unwrap();
    assert_eq!(keys.len(), 4, "nothing of the other is left");
    // A range that grows into another one is an error too.
    bench.apply("");
    let above = twice.replace("10.0.3.50", "10.0.3.70").replace("10.0.3.60", "10.0.3.80");
    bench.apply(&format!("{LAN}{above}"));
    bench.write(&format!("{}{above}", LAN.replace("10.0.3.60", "10.0.3.75")));
    let said = bench.ran(&["plan", "-no-color"], 1);
    assert!(said.contains("overlaps with `/ranges/other/`"), "{said}");
}
