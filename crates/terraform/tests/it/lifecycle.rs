//! Real Terraform against a real server.

use std::fs;

use crate::server::Bench;

const LAN: &str = r#"
resource "netstead_pool" "lan" {
  name    = "lan"
  network = "10.0.3.0/24"
  ranges  = ["10.0.3.50-10.0.3.60"]
  gateway = "10.0.3.1"
  domain  = "home.test"
}
"#;

fn address(more: &str) -> String {
    format!(
        "{LAN}\nresource \"netstead_address\" \"web\" {{\n  pool = netstead_pool.lan.name\n  key = \"web-1\"\n{more}\n}}\n\
         output \"web\" {{\n  value = \"${{netstead_address.web.address}}/${{netstead_address.web.prefix_length}}\"\n}}\n"
    )
}

#[test]
fn an_address_is_planned_applied_changed_in_place_replaced_and_destroyed() {
    let Some(bench) = Bench::start() else { return };
    bench.terraform.write(&address("")).unwrap();
    assert!(bench.plan(2).contains("2 to add, 0 to change, 0 to destroy"));
    bench.apply(&address(""));
    assert_eq!(bench.output("web"), "10.0.3.50/24");
    assert!(bench.plan(0).contains("No changes."));
    let said =
        bench.apply(&address("hostname = \"www\"\nlabels = { role = \"web\" }\ndescription = \"a note\""));
    assert!(said.contains("0 added, 1 changed, 0 destroyed"), "{said}");
    assert!(bench.plan(0).contains("No changes."));
    assert!(bench.claims().contains("\"role\":\"web\""));
    // Data that is no longer configured is removed.
    bench.apply(&address(""));
    bench.plan(0);
    assert!(!bench.claims().contains("\"role\""));
    let said = bench.apply(&address("address = \"10.0.3.55\""));
    assert!(said.contains("1 added, 0 changed, 1 destroyed"), "{said}");
    assert_eq!(bench.output("web"), "10.0.3.55/24");
    bench.plan(0);
    let said = bench.ran(&["destroy", "-auto-approve", "-no-color"], 0);
    assert!(said.contains("2 destroyed"), "{said}");
}

#[test]
fn every_resource_is_applied_planned_empty_imported_and_destroyed() {
    let Some(bench) = Bench::start() else { return };
    let all = format!(
        r#"{LAN}
resource "netstead_pool" "macs" {{
  name   = "macs"
  ranges = ["02:00:00:00:00:01-02:00:00:00:00:ff"]
}}
resource "netstead_pool" "sites" {{
  name    = "sites"
  family  = "prefix"
  network = "10.8.0.0/16"
  length  = 24
}}
resource "netstead_addresses" "workers" {{
  pool = netstead_pool.lan.name
  keys = ["worker-1", "worker-2", "worker-3"]
}}
resource "netstead_host" "vm" {{
  name      = "vm-1"
  ipv4_pool = netstead_pool.lan.name
  mac_pool  = netstead_pool.macs.name
}}
resource "netstead_prefix" "ams" {{
  pool = netstead_pool.sites.name
  key  = "ams"
}}
resource "netstead_record" "mail" {{
  name   = "mail.home.test"
  type   = "A"
  values = ["10.0.3.9", "10.0.3.8"]
}}
resource "netstead_reservation" "dhcp" {{
  pool  = netstead_pool.lan.name
  key   = "dhcp"
  range = "10.0.3.58-10.0.3.60"
}}
data "netstead_usage" "macs" {{
  pool = netstead_host.vm.mac_pool
}}
output "free" {{
  value = data.netstead_usage.macs.free
}}
output "prefix" {{
  value = netstead_prefix.ams.prefix
}}
output "mac" {{
  value = netstead_host.vm.mac
}}
"#
    );
    bench.apply(&all);
    assert_eq!(
        (bench.output("free").as_str(), bench.output("prefix").as_str(), bench.output("mac").as_str()),
        ("254", "10.8.0.0/24", "02:00:00:00:00:01")
    );
    assert!(bench.plan(0).contains("No changes."));
    for (address, id) in [
        ("netstead_pool.lan", "lan"),
        ("netstead_addresses.workers", "lan/worker-1,worker-2,worker-3"),
        ("netstead_host.vm", "lan,,macs/vm-1"),
        ("netstead_prefix.ams", "sites/ams"),
        ("netstead_record.mail", "mail.home.test/A"),
        ("netstead_reservation.dhcp", "lan/dhcp"),
    ] {
        bench.ran(&["state", "rm", address], 0);
        bench.ran(&["import", "-no-color", address, id], 0);
    }
    let said = bench.plan(0);
    assert!(said.contains("No changes."), "{said}");
    let wrong = bench.terraform.run(&["import", "-no-color", "netstead_address.web", "lan"]).unwrap();
    assert_ne!(wrong.code, 0);
    bench.ran(&["destroy", "-auto-approve", "-no-color"], 0);
    assert_eq!(bench.claims(), "[]");
}

#[test]
fn what_was_removed_behind_terraform_is_planned_again_with_a_warning_and_comes_back_as_it_was() {
    let Some(bench) = Bench::start() else { return };
    bench.apply(&address(""));
    bench.does("release lan web-1");
    let said = bench.plan(2);
    assert!(said.contains("a netstead_address is gone"), "{said}");
    assert!(said.contains("1 to add, 0 to change, 0 to destroy"), "{said}");
    bench.apply(&address(""));
    assert_eq!(bench.output("web"), "10.0.3.50/24");
    bench.plan(0);
}

#[test]
fn a_wrong_configuration_names_the_attribute_and_a_server_that_is_down_loses_nothing() {
    let Some(mut bench) = Bench::start() else { return };
    bench.terraform.write(&address("prefer = \"10.0.3.300\"\npools = [\"lan\"]")).unwrap();
    let said = bench.ran(&["validate", "-no-color"], 1);
    assert!(
        said.contains("`prefer` is not usable") && said.contains("there is more than one choice of pools"),
        "{said}"
    );
    bench
        .terraform
        .write(&format!("provider \"netstead\" {{\n  timeout = \"soon\"\n}}\n{}", address("")))
        .unwrap();
    let said = bench.ran(&["plan", "-no-color"], 1);
    assert!(said.contains("`timeout` is not usable"), "{said}");
    bench.apply(&address(""));
    let before = fs::read_to_string(bench.terraform.path().join("terraform.tfstate")).unwrap();
    bench.terraform.set("NETSTEAD_RETRIES", "0");
    bench.kill_server();
    let said = bench.ran(&["plan", "-no-color"], 1);
    assert!(said.contains("Nothing answers at http://127.0.0.1:"), "{said}");
    assert_eq!(fs::read_to_string(bench.terraform.path().join("terraform.tfstate")).unwrap(), before);
    bench.serve();
    bench.plan(0);
}

pub(crate) fn many(count: usize) -> String {
    format!(
        "{LAN}\nresource \"netstead_address\" \"all\" {{\n  count = {count}\n  pool = netstead_pool.lan.name\n  key = \"n-${{count.index}}\"\n}}\n\
         output \"all\" {{\n  value = join(\",\", netstead_address.all[*].address)\n}}\n"
    )
}

#[test]
fn a_full_pool_fails_one_resource_each_and_applies_the_others() {
    let Some(bench) = Bench::start() else { return };
    // The pool has eleven.
    bench.terraform.write(&many(13)).unwrap();
    let said = bench.ran(&["apply", "-auto-approve", "-no-color"], 1);
    assert_eq!(said.matches("gets no address from pool `lan`").count(), 2, "{said}");
    let listed = bench.ran(&["state", "list"], 0);
    assert_eq!(listed.matches("netstead_address.all[").count(), 11, "{listed}");
    assert_eq!(bench.claims().matches("\"key\"").count(), 11);
}
