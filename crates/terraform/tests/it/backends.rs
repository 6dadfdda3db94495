//! Pools whose addresses come from another system: here from another Netstead.

use std::{fs, process::Stdio, time::Duration};

use netstead_testkit::wait_until;

use crate::server::Bench;

const SOON: Duration = Duration::from_mins(1);

const LAN: &str = r#"
resource "netstead_pool" "lan" {
  name         = "lan"
  backend      = "head-office"
  backend_pool = "branch-7"
  cooldown     = "0s"
}
"#;

fn address(timeouts: &str) -> String {
    format!(
        "{LAN}\nresource \"netstead_address\" \"web\" {{\n  pool = netstead_pool.lan.name\n  key = \"web-1\"\n{timeouts}\n}}\n\
         output \"web\" {{\n  value = netstead_address.web.address\n}}\n\
         output \"gateway\" {{\n  value = netstead_pool.lan.gateway\n}}\n\
         output \"order\" {{\n  value = netstead_pool.lan.order\n}}\n"
    )
}

/// A head office with a pool of two addresses, and a branch office that knows it as a backend.
fn offices() -> Option<(Bench, Bench)> {
    let head = Bench::start()?;
    head.does("pool create branch-7 --range 10.7.0.10-10.7.0.11 --gateway 10.7.0.1 --cooldown 0");
    let token = head.does("token create branch-7 --role claim --pool branch-7");
    let file = format!(
        "[backend.head-office]\ntype = \"netstead\"\nurl = \"{}\"\ntoken = \"{}\"\n",
        head.url(),
        token.trim()
    );
    let mut branch = Bench::start_with(&file)?;
    // One call ends soon, so that a test need not wait for ten seconds.
    branch.terraform.set("NETSTEAD_TIMEOUT", "3s");
    Some((head, branch))
}

fn until_empty(bench: &Bench) {
    let empty = wait_until(SOON, || (bench.claims() == "[]").then_some(()));
    assert!(empty.is_some(), "{}", bench.claims());
}

#[test]
fn a_pool_with_a_backend_is_made_changed_imported_and_destroyed_with_its_addresses() {
    let Some((head, branch)) = offices() else { return };
    branch
        .terraform
        .write(&address("").replace("cooldown     =", "order        = \"next\"\n  cooldown ="))
        .unwrap();
    let said = branch.ran(&["validate", "-no-color"], 1);
    assert!(said.contains("`order` cannot be set in a pool with a backend"), "{said}");
    branch.terraform.write(&address("").replace("  backend_pool = \"branch-7\"\n", "")).unwrap();
    let said = branch.ran(&["validate", "-no-color"], 1);
    assert!(said.contains("`backend_pool` is missing"), "{said}");

    branch.apply(&address(""));
    let told = ["web", "gateway", "order"].map(|output| branch.output(output));
    assert_eq!(told, ["10.7.0.10", "10.7.0.1", "lowest"]);
    assert!(branch.plan(0).contains("No changes."));
    assert!(head.claims().contains("/lan/web-1\""), "{}", head.claims());
    let changed = address("").replace("cooldown     =", "description = \"a note\"\n  cooldown =");
    let said = branch.apply(&changed);
    assert!(said.contains("0 added, 1 changed, 0 destroyed"), "{said}");
    assert!(branch.plan(0).contains("No changes."));
    for (resource, id) in [("netstead_pool.lan", "lan"), ("netstead_address.web", "lan/web-1")] {
        branch.ran(&["state", "rm", resource], 0);
        branch.ran(&["import", "-no-color", resource, id], 0);
    }
    assert!(branch.plan(0).contains("No changes."));
    let said = branch.ran(&["destroy", "-auto-approve", "-no-color"], 0);
    assert!(said.contains("2 destroyed"), "{said}");
    assert_eq!((branch.does("get pools -o name").as_str(), head.claims().as_str()), ("", "[]"));
}

#[test]
fn a_creation_asks_until_its_timeout_and_then_leaves_neither_state_nor_address() {
    let Some((mut head, branch)) = offices() else { return };
    branch.apply(LAN);
    head.kill_server();
    branch.terraform.write(&address("timeouts = { create = \"soon\" }")).unwrap();
    let said = branch.ran(&["validate", "-no-color"], 1);
    assert!(said.contains("`create` is not usable"), "{said}");

    branch.terraform.write(&address("timeouts = { create = \"8s\" }")).unwrap();
    let said = branch.ran(&["apply", "-auto-approve", "-no-color"], 1);
    assert!(said.contains("`web-1` gets no address from pool `lan`"), "{said}");
    assert!(said.contains("The time of `timeouts` is over"), "{said}");
    assert_eq!(branch.ran(&["state", "list"], 0), "netstead_pool.lan");
    head.serve();
    until_empty(&branch);
    until_empty(&head);

    // The head office comes back in the middle of the next creation.
    head.kill_server();
    branch.terraform.write(&address("timeouts = { create = \"60s\" }")).unwrap();
    let mut command = branch.terraform.command(&["apply", "-auto-approve", "-no-color"]);
    let out = fs::File::create(branch.terraform.path().join("apply.out")).unwrap();
    let mut apply = command.stdout(Stdio::from(out)).stderr(Stdio::null()).spawn().unwrap();
    let waits = wait_until(SOON, || branch.claims().contains("\"waiting\"").then_some(()));
    assert!(waits.is_some(), "{}", branch.claims());
    std::thread::sleep(Duration::from_secs(4));
    head.serve();
    assert!(
        apply.wait().unwrap().success(),
        "{:?}",
        fs::read_to_string(branch.terraform.path().join("apply.out"))
    );
    assert_eq!(branch.output("web"), "10.7.0.10");
    assert!(branch.plan(0).contains("No changes."));
    assert_eq!(head.claims().matches("\"key\"").count(), 1);
}

#[test]
fn a_backend_that_refuses_is_an_error_at_once() {
    let Some((head, branch)) = offices() else { return };
    head.does("claim branch-7 own-1");
    head.does("claim branch-7 own-2");
    branch.terraform.write(&address("timeouts = { create = \"10m\" }")).unwrap();
    let said = branch.ran(&["apply", "-auto-approve", "-no-color"], 1);
    assert!(said.contains("has no free address"), "{said}");
    assert_eq!(branch.ran(&["state", "list"], 0), "netstead_pool.lan");
    until_empty(&branch);
    assert_eq!(head.claims().matches("\"key\"").count(), 2);
}
