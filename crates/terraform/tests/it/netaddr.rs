//! The resources of terraform-provider-netaddr, by real Terraform on a real etcd.

use std::{fs, process::Stdio, thread, time::Duration};

use netstead_testkit::{Etcd, NetaddrClient, Terraform, TerraformRun, netaddr_ipv4, wait_until};

const SOON: Duration = Duration::from_mins(2);
/// As users of the original write it, with another source.
const REQUIREMENT: &str = "terraform {\n  required_providers {\n    netaddr = {\n      source = \"netstead/netstead\"\n    }\n  }\n}\n";

pub(crate) const LAN: &str = r#"
resource "netaddr_range_ipv4" "lan" {
  key_prefix    = "/ranges/lan/"
  first_address = "10.0.3.50"
  last_address  = "10.0.3.60"
}
"#;

pub(crate) struct Bench {
    pub(crate) etcd: Etcd,
    pub(crate) terraform: Terraform,
}

pub(crate) fn terraform(etcd: &Etcd) -> Option<Terraform> {
    let provider = env!("CARGO_BIN_EXE_terraform-provider-netstead");
    let mut terraform = Terraform::new(provider.as_ref())?;
    terraform.set("ETCDCTL_ENDPOINTS", &etcd.endpoints().join(","));
    Some(terraform)
}

impl Bench {
    pub(crate) fn start() -> Option<Self> {
        let etcd = Etcd::start(1)?;
        let terraform = terraform(&etcd)?;
        Some(Self { etcd, terraform })
    }

    pub(crate) fn original(&self) -> NetaddrClient {
        NetaddrClient::connect(&self.etcd.endpoints()[0]).unwrap()
    }

    pub(crate) fn write(&self, configuration: &str) {
        write(&self.terraform, configuration);
    }

    pub(crate) fn ran(&self, arguments: &[&str], code: i32) -> String {
        ran(&self.terraform, arguments, code)
    }

    pub(crate) fn apply(&self, configuration: &str) -> String {
        self.write(configuration);
        self.ran(&["apply", "-auto-approve", "-no-color", "-parallelism=10"], 0)
    }

    pub(crate) fn plan(&self, code: i32) -> String {
        self.ran(&["plan", "-no-color", "-detailed-exitcode"], code)
    }

    pub(crate) fn destroy(&self) {
        self.ran(&["destroy", "-auto-approve", "-no-color"], 0);
    }

    pub(crate) fn output(&self, name: &str) -> String {
        self.ran(&["output", "-no-color", "-raw", name], 0)
    }

    pub(crate) fn names(&self, prefix: &str) -> usize {
        self.original().dump(&format!("{prefix}data/name/")).unwrap().len()
    }

    fn state(&self) -> String {
        fs::read_to_string(self.terraform.path().join("terraform.tfstate")).unwrap()
    }
}

pub(crate) fn write(terraform: &Terraform, configuration: &str) {
    fs::write(terraform.path().join("main.tf"), format!("{REQUIREMENT}{configuration}")).unwrap();
}

pub(crate) fn ran(terraform: &Terraform, arguments: &[&str], code: i32) -> String {
    let TerraformRun { code: ended, out, err } = terraform.run(arguments).unwrap();
    assert_eq!(ended, code, "terraform {arguments:?}:\n{out}\n{err}");
    let words = format!("{out}\n{err}");
    words.replace(['│', '╷', '╵'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn address(name: &str, more: &str) -> String {
    format!(
        "resource \"netaddr_address_ipv4\" \"{name}\" {{\n  range_id = netaddr_range_ipv4.lan.id\n  name     = \"{name}\"\n{more}\n}}\n\
         output \"{name}\" {{\n  value = netaddr_address_ipv4.{name}.address\n}}\n"
    )
}

fn all() -> String {
    format!(
        r#"{LAN}
resource "netaddr_range_mac" "macs" {{
  key_prefix    = "/ranges/macs/"
  first_address = "52:54:00:00:00:01"
  last_address  = "52:54:00:00:00:ff"
}}
resource "netaddr_range_ipv4" "lab" {{
  key_prefix    = "/ranges/lab/"
  first_address = "10.0.4.1"
  last_address  = "10.0.4.9"
}}
resource "netaddr_address_ipv4" "web" {{
  range_id = netaddr_range_ipv4.lan.id
  name     = "web"
}}
resource "netaddr_address_ipv4" "dns" {{
  range_id          = netaddr_range_ipv4.lan.id
  name              = "dns"
  hardcoded_address = "10.0.3.53"
}}
resource "netaddr_address_mac" "web" {{
  range_id = netaddr_range_mac.macs.id
  name     = "web"
}}
resource "netaddr_address_mac" "dns" {{
  range_id          = netaddr_range_mac.macs.id
  name              = "dns"
  hardcoded_address = "52:54:00:00:00:53"
}}
resource "netaddr_address_ipv4_v2" "any" {{
  range_ids = [netaddr_range_ipv4.lan.id, netaddr_range_ipv4.lab.id]
  name      = "any"
}}
"#
    )
}

const DATA: &str = r#"
locals {
  made = [netaddr_address_ipv4.web.id, netaddr_address_ipv4.dns.id, netaddr_address_mac.web.id, netaddr_address_mac.dns.id,
    netaddr_address_ipv4_v2.any.id]
}
data "netaddr_range_ipv4" "lan" {
  key_prefix = "/ranges/lan/"
  depends_on = [netaddr_range_ipv4.lan]
}
data "netaddr_range_mac" "macs" {
  key_prefix = "/ranges/macs/"
  depends_on = [netaddr_range_mac.macs]
}
data "netaddr_address_ipv4" "dns" {
  range_id = data.netaddr_range_ipv4.lan.id
  name     = netaddr_address_ipv4.dns.id
}
data "netaddr_address_mac" "dns" {
  range_id = data.netaddr_range_mac.macs.id
  name     = netaddr_address_mac.dns.id
}
data "netaddr_address_ipv4_v2" "web" {
  range_ids = [netaddr_range_ipv4.lab.id, netaddr_range_ipv4.lan.id]
  name      = netaddr_address_ipv4.web.id
}
data "netaddr_address_list_ipv4" "lab" {
  range_id   = "/ranges/lab/"
  depends_on = [netaddr_range_ipv4.lab, netaddr_address_ipv4_v2.any]
}
data "netaddr_address_list_mac" "macs" {
  range_id   = "/ranges/macs/"
  depends_on = [netaddr_address_mac.web, netaddr_address_mac.dns]
}
data "netaddr_range_usage_ipv4" "lan" {
  range_id   = "/ranges/lan/"
  depends_on = [netaddr_address_ipv4.web, netaddr_address_ipv4.dns]
}
data "netaddr_range_keyspace_ipv4" "lan" {
  range_id   = "/ranges/lan/"
  depends_on = [netaddr_address_ipv4.web, netaddr_address_ipv4.dns]
}
data "netaddr_range_keyspace_mac" "macs" {
  range_id   = "/ranges/macs/"
  depends_on = [netaddr_address_mac.web, netaddr_address_mac.dns]
}
output "seen" {
  value = jsonencode([
    data.netaddr_range_ipv4.lan.last_address, data.netaddr_range_mac.macs.first_address,
    data.netaddr_address_ipv4.dns.address, data.netaddr_address_mac.dns.address,
    data.netaddr_address_ipv4_v2.web.found_in_range, data.netaddr_address_list_ipv4.lab.addresses,
    data.netaddr_address_list_mac.macs.addresses, data.netaddr_range_usage_ipv4.lan.free_capacity,
    data.netaddr_range_keyspace_ipv4.lan.next_address, data.netaddr_range_keyspace_ipv4.lan.hardcoded_addresses,
    data.netaddr_range_keyspace_mac.macs.generated_addresses,
  ])
}
"#;

#[test]
fn every_resource_and_data_source_is_applied_planned_empty_imported_and_destroyed() {
    let Some(bench) = Bench::start() else { return };
    bench.apply(&all());
    assert!(bench.plan(0).contains("No changes."));
    // The lab comes first in the order of names.
    assert_eq!(
        bench.original().look_up("/ranges/lab/", "any").unwrap().unwrap(),
        netaddr_ipv4([10, 0, 4, 1])
    );
    bench.apply(&format!("{}{DATA}", all()));
    assert_eq!(
        bench.output("seen"),
        "[\"10.0.3.60\",\"52:54:00:00:00:01\",\"10.0.3.53\",\"52:54:00:00:00:53\",\"/ranges/lan/\",\
         [{\"address\":\"10.0.4.1\",\"name\":\"any\"}],\
         [{\"address\":\"52:54:00:00:00:53\",\"name\":\"dns\"},{\"address\":\"52:54:00:00:00:01\",\"name\":\"web\"}],9,\
         \"10.0.3.51\",[{\"address\":\"10.0.3.53\",\"name\":\"dns\"}],[{\"address\":\"52:54:00:00:00:01\",\"name\":\"web\"}]]"
    );
    assert!(bench.plan(0).contains("No changes."));
    for (resource, id) in [
        ("netaddr_range_ipv4.lan", "/ranges/lan/"),
        ("netaddr_range_mac.macs", "/ranges/macs/"),
        ("netaddr_address_ipv4.web", "/ranges/lan/|web"),
        ("netaddr_address_ipv4.dns", "/ranges/lan/|dns"),
        ("netaddr_address_mac.web", "/ranges/macs/|web"),
        ("netaddr_address_mac.dns", "/ranges/macs/|dns"),
        ("netaddr_address_ipv4_v2.any", "/ranges/lab/|any"),
    ] {
        bench.ran(&["state", "rm", resource], 0);
        bench.ran(&["import", "-no-color", resource, id], 0);
    }
    let said = bench.plan(2);
    assert!(
        said.contains("0 to add, 1 to change, 0 to destroy"),
        "only the set of ranges is completed: {said}"
    );
    bench.apply(&all());
    assert!(bench.plan(0).contains("No changes."));
    bench.destroy();
    assert!(bench.original().dump("/ranges/").unwrap().is_empty());
}

#[test]
fn an_outage_takes_nothing_out_of_the_state_and_a_removed_address_is_planned_again() {
    let Some(mut bench) = Bench::start() else { return };
    let configuration = |strict: bool| {
        format!(
            "provider \"netaddr\" {{\n  strict = {strict}\n  retries = 0\n}}\n{LAN}{}",
            address("web", "")
        )
    };
    bench.apply(&configuration(false));
    let before = bench.state();
    bench.etcd.member(0).kill().unwrap();
    let said = bench.ran(&["plan", "-no-color"], 1);
    assert!(said.contains("Is etcd running"), "{said}");
    assert_eq!(bench.state(), before);
    bench.etcd.restart(0).unwrap();
    assert!(bench.plan(0).contains("No changes."));
    // Removed by hand, also with `strict`: the plan makes it again.
    bench.original().delete_generated("/ranges/lan/", "web", &netaddr_ipv4([10, 0, 3, 50])).unwrap();
    bench.write(&configuration(true));
    let said = bench.plan(2);
    assert!(said.contains("a netaddr_address_ipv4 is gone"), "{said}");
    assert!(said.contains("1 to add, 0 to change, 0 to destroy"), "{said}");
    bench.apply(&configuration(true));
    assert_eq!(bench.output("web"), "10.0.3.50");
}

#[test]
fn what_cannot_be_is_refused_with_the_attribute() {
    let Some(mut bench) = Bench::start() else { return };
    let wrong = LAN.replace("10.0.3.60", "10.0.3.40");
    bench.write(&wrong);
    let said = bench.ran(&["validate", "-no-color"], 1);
    assert!(said.contains("The range begins at 10.0.3.50, after its end 10.0.3.40"), "{said}");
    bench.write(&format!("{LAN}{}", address("web", "  hardcoded_address = \"10.0.3.300\"")));
    let said = bench.ran(&["validate", "-no-color"], 1);
    assert!(said.contains("`hardcoded_address` is not usable"), "{said}");
    bench.apply(&format!("{LAN}{}", address("web", "")));
    // Another range of the same path with the same addresses.
    let twice = LAN.replace("\"lan\"", "\"other\"").replace("/ranges/lan/", "/ranges/other/");
    bench.write(&format!("{LAN}{}{twice}", address("web", "")));
    let said = bench.ran(&["plan", "-no-color"], 1);
    assert!(said.contains("overlaps with `/ranges/lan/`"), "{said}");
    // A name that is taken, and an address outside.
    bench.original().create_generated(&["/ranges/lan/"], "db").unwrap().unwrap();
    bench.write(&format!("{LAN}{}{}", address("web", ""), address("db", "")));
    let said = bench.ran(&["plan", "-no-color"], 0);
    assert!(said.contains("`db` has 10.0.3.51 already"), "{said}");
    let said = bench.ran(&["apply", "-auto-approve", "-no-color"], 1);
    assert!(said.contains("The name `db` has 10.0.3.51"), "{said}");
    bench.apply(&format!("{LAN}{}{}", address("web", ""), address("db", "  manage_existing = true")));
    assert_eq!(bench.output("db"), "10.0.3.51");
    bench.write(&format!("{LAN}{}", address("far", "  hardcoded_address = \"10.9.9.9\"")));
    let said = bench.ran(&["plan", "-no-color"], 1);
    assert!(said.contains("10.9.9.9 is in none of the ranges"), "{said}");
    // A wrong provider block; and without a scheme it is TLS.
    bench.write(&format!("provider \"netaddr\" {{\n  request_timeout = 0\n}}\n{LAN}"));
    let said = bench.ran(&["plan", "-no-color"], 1);
    assert!(said.contains("`request_timeout` is not usable"), "{said}");
    let bare = bench.etcd.endpoints()[0].replace("http://", "");
    bench.terraform.set("ETCDCTL_ENDPOINTS", &bare);
    bench.write(&format!("provider \"netaddr\" {{\n  retries = 0\n}}\n{LAN}"));
    let said = bench.ran(&["plan", "-no-color"], 1);
    assert!(said.contains(&format!("at https://{bare}")), "{said}");
    bench.terraform.set("ETCDCTL_ENDPOINTS", "");
    let said = bench.ran(&["plan", "-no-color"], 1);
    assert!(said.contains("Set `endpoints` in the provider block"), "{said}");
}

#[test]
fn the_two_flags_change_in_place_and_a_retained_address_stays() {
    let Some(bench) = Bench::start() else { return };
    bench.apply(&format!("{LAN}{}", address("web", "")));
    let said = bench.apply(&format!("{LAN}{}", address("web", "  retain_on_delete = true")));
    assert!(said.contains("0 added, 1 changed, 0 destroyed"), "{said}");
    bench.apply(LAN);
    assert_eq!(bench.names("/ranges/lan/"), 1);
    let said = bench.apply(&format!("{LAN}{}", address("web", "  manage_existing = true")));
    assert!(said.contains("1 added"), "{said}");
    let said = bench.apply(&format!("{LAN}{}", address("web", "  hardcoded_address = \"10.0.3.55\"")));
    assert!(said.contains("1 added, 0 changed, 1 destroyed"), "{said}");
    assert_eq!(bench.output("web"), "10.0.3.55");
}

fn many(name: &str, count: usize) -> String {
    format!(
        "data \"netaddr_range_ipv4\" \"lan\" {{\n  key_prefix = \"/ranges/wide/\"\n}}\n\
         resource \"netaddr_address_ipv4\" \"all\" {{\n  count    = {count}\n  range_id = data.netaddr_range_ipv4.lan.id\n  \
         name     = \"{name}-${{count.index}}\"\n}}\n"
    )
}

fn wide(bench: &Bench) {
    let (first, last) = (netaddr_ipv4([10, 1, 0, 0]), netaddr_ipv4([10, 1, 255, 255]));
    assert!(bench.original().create_range("/ranges/wide/", "ipv4", &first, &last).unwrap());
}

/// The addresses of all names, each once.
fn distinct(bench: &Bench) -> usize {
    let names = bench.original().dump("/ranges/wide/data/name/").unwrap();
    let mut addresses: Vec<_> = names.values().collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), names.len(), "an address has two names");
    names.len()
}

#[test]
fn two_applies_at_once_make_a_thousand_addresses_that_are_all_different() {
    let Some(bench) = Bench::start() else { return };
    wide(&bench);
    let applies: Vec<_> = ["red", "blue"]
        .into_iter()
        .map(|name| {
            let terraform = terraform(&bench.etcd).unwrap();
            write(&terraform, &many(name, 500));
            thread::spawn(move || {
                ran(&terraform, &["apply", "-auto-approve", "-no-color", "-parallelism=10"], 0);
                ran(&terraform, &["plan", "-no-color", "-detailed-exitcode"], 0);
            })
        })
        .collect();
    for apply in applies {
        apply.join().unwrap();
    }
    assert_eq!(distinct(&bench), 1000);
}

#[test]
fn an_apply_that_is_killed_with_its_provider_is_taken_up_by_the_next_one() {
    let Some(bench) = Bench::start() else { return };
    wide(&bench);
    bench.write(&many("n", 300));
    let mut command = bench.terraform.command(&["apply", "-auto-approve", "-no-color", "-lock=false"]);
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut apply = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until(SOON, || (bench.names("/ranges/wide/") > 30).then_some(())).unwrap();
    // Terraform and the provider that it started, at once.
    let killed =
        std::process::Command::new("kill").args(["-s", "KILL", "--", &format!("-{}", apply.id())]).status();
    assert!(killed.unwrap().success());
    apply.wait().unwrap();
    let held = bench.names("/ranges/wide/");
    assert!(held < 300, "it was killed too late to tell anything");
    bench.ran(&["apply", "-auto-approve", "-no-color", "-lock=false"], 0);
    assert_eq!(distinct(&bench), 300);
    assert!(bench.plan(0).contains("No changes."));
}
