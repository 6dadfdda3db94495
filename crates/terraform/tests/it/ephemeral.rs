//! The ephemeral `netstead_address`: held while Terraform runs, and in no state.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    time::Duration,
};

use netstead_testkit::wait_until;

use crate::server::Bench;

const SOON: Duration = Duration::from_mins(1);

/// A step that writes the address down and goes on when there is a file `go`.
const BUILD: &str = r#"
ephemeral "netstead_address" "build" {
  pool   = "lan"
  key    = "image-build"
  ttl    = "10s"
  labels = { role = "build" }
}
resource "terraform_data" "image" {
  provisioner "local-exec" {
    command = <<-END
      echo ${ephemeral.netstead_address.build.address}/${ephemeral.netstead_address.build.prefix_length} > held.new
      mv held.new held
      for second in $(seq 1 600); do if [ -e go ]; then exit 0; fi; sleep 0.1; done
      exit 1
    END
  }
}
"#;

fn start() -> Option<Bench> {
    let bench = Bench::start()?;
    if !bench.has_minor(10, Some(11), "ephemeral resources") {
        return None;
    }
    bench.does("pool create lan --network 10.0.3.0/24 --range 10.0.3.50-10.0.3.51");
    Some(bench)
}

fn begin(bench: &Bench) -> Child {
    bench.terraform.write(BUILD).unwrap();
    let mut command = bench.terraform.command(&["apply", "-auto-approve", "-no-color"]);
    let apply = command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let held = bench.terraform.path().join("held");
    assert!(wait_until(SOON, || held.is_file().then_some(())).is_some(), "the step did not begin");
    assert_eq!(fs::read_to_string(held).unwrap().trim(), "10.0.3.50/24");
    apply
}

/// When the claim ends unless it is renewed.
fn until(bench: &Bench) -> String {
    let claims = bench.claims();
    assert!(claims.contains("\"key\":\"run/image-build\""), "{claims}");
    assert!(claims.contains("\"role\":\"build\""), "{claims}");
    let until = claims.split("\"until\":\"").nth(1).and_then(|rest| rest.split('"').next());
    until.unwrap_or_else(|| panic!("it has no end: {claims}")).to_owned()
}

#[test]
fn an_ephemeral_address_is_held_and_renewed_during_the_apply_and_is_in_no_state_afterwards() {
    let Some(bench) = start() else { return };
    let mut apply = begin(&bench);
    let first = until(&bench);
    let renewed = wait_until(SOON, || (until(&bench) != first).then_some(()));
    assert!(renewed.is_some(), "it was not renewed");
    fs::write(bench.terraform.path().join("go"), "").unwrap();
    assert!(apply.wait().unwrap().success());
    assert_eq!(bench.claims(), "[]");
    let state = fs::read_to_string(bench.terraform.path().join("terraform.tfstate")).unwrap();
    assert!(!state.contains("10.0.3.50") && !state.contains("image-build"), "{state}");
    assert!(bench.plan(0).contains("No changes."));
    assert_eq!(bench.claims(), "[]", "a plan holds it only while it runs");
}

#[test]
fn an_interrupted_run_gives_its_ephemeral_address_back() {
    let Some(bench) = start() else { return };
    let mut apply = begin(&bench);
    let sent = Command::new("kill").args(["-s", "INT", "--", &format!("-{}", apply.id())]).status().unwrap();
    assert!(sent.success());
    assert!(!apply.wait().unwrap().success());
    assert_eq!(bench.claims(), "[]");
}

#[test]
fn an_ephemeral_address_in_use_a_full_pool_and_a_short_lease_are_refused() {
    let Some(bench) = start() else { return };
    bench.does("claim lan run/image-build --ttl 1h");
    bench.terraform.write(BUILD).unwrap();
    let said = bench.ran(&["plan", "-no-color"], 1);
    assert!(said.contains("`run/image-build` holds 10.0.3.50 of pool `lan` already"), "{said}");
    assert!(said.contains("`netstead release lan run/image-build`"), "{said}");
    assert_eq!(bench.held(), 1, "it is left as it was");
    bench.does("release lan run/image-build");
    bench.does("pool create tiny --range 10.0.4.1");
    bench.does("claim tiny other");
    bench.terraform.write(&BUILD.replace("\"lan\"", "\"tiny\"")).unwrap();
    let said = bench.ran(&["plan", "-no-color"], 1);
    assert!(said.contains("`run/image-build` gets no address from pool `tiny`"), "{said}");
    bench.terraform.write(&BUILD.replace("\"10s\"", "\"9s\"")).unwrap();
    let said = bench.ran(&["validate", "-no-color"], 1);
    assert!(said.contains("`ttl` is not usable") && said.contains("shorter than 10s"), "{said}");
    assert_eq!(bench.held(), 1);
}
