//! Applies beside each other, interrupted, and killed: what was made is in the state, or the next apply takes it up.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use netstead_testkit::{Terraform, TerraformRun, wait_until};

use crate::{lifecycle::many, server::Bench};

const SOON: Duration = Duration::from_mins(2);

/// So many addresses of a wide pool.
fn wide(count: usize) -> String {
    many(count).replace("10.0.3.0/24", "10.0.0.0/16").replace("10.0.3.50-10.0.3.60", "10.0.4.0-10.0.9.255")
}

/// An apply in a group of processes of its own.
fn begin(bench: &Bench, configuration: &str) -> Child {
    bench.terraform.write(configuration).unwrap();
    let mut command = bench.terraform.command(&["apply", "-auto-approve", "-no-color", "-lock=false"]);
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn signal(name: &str, target: &str) {
    let sent = Command::new("kill").args(["-s", name, "--", target]).status().unwrap();
    assert!(sent.success(), "{name} to {target}");
}

/// Waits until so many addresses more are held.
fn wait_for(bench: &Bench, more: usize) {
    let before = bench.held();
    assert!(wait_until(SOON, || (bench.held() >= before + more).then_some(())).is_some(), "nothing is made");
}

fn in_state(bench: &Bench) -> usize {
    bench.ran(&["state", "list"], 0).matches("netstead_address.all[").count()
}

#[test]
fn ctrl_c_reaches_the_whole_group_and_everything_that_was_made_is_in_the_state() {
    let Some(bench) = Bench::start() else { return };
    let mut apply = begin(&bench, &wide(300));
    wait_for(&bench, 20);
    // As a terminal does: Terraform and its provider get it at once.
    signal("INT", &format!("-{}", apply.id()));
    apply.wait().unwrap();
    let made = bench.held();
    assert!(made < 300, "the apply was not interrupted in the middle");
    assert_eq!(in_state(&bench), made);
    bench.apply(&wide(300));
    bench.plan(0);
    assert_eq!(bench.held(), 300);
}

#[test]
fn a_terraform_that_is_killed_and_applied_again_converges() {
    let Some(bench) = Bench::start() else { return };
    let mut apply = begin(&bench, &wide(300));
    wait_for(&bench, 20);
    signal("KILL", &format!("-{}", apply.id()));
    apply.wait().unwrap();
    assert!(bench.held() < 300, "it was killed too late to tell anything");
    bench.apply(&wide(300));
    bench.plan(0);
    assert_eq!(bench.held(), 300);
}

/// The processes of the provider that this process started.
fn providers_of(parent: u32) -> Vec<u32> {
    let stat = |pid: u32| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let parent_of =
        |pid: u32| -> Option<u32> { stat(pid).rsplit(") ").next()?.split(' ').nth(1)?.parse().ok() };
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| stat(*pid).contains("(terraform-prov") && parent_of(*pid) == Some(parent)).collect()
}

#[test]
fn a_provider_that_is_killed_in_the_middle_is_an_error_and_the_next_apply_takes_up_what_it_made() {
    let Some(bench) = Bench::start() else { return };
    let mut apply = begin(&bench, &wide(300));
    wait_for(&bench, 20);
    let providers = providers_of(apply.id());
    assert!(!providers.is_empty(), "no provider runs");
    for provider in providers {
        signal("KILL", &provider.to_string());
    }
    assert!(!apply.wait().unwrap().success());
    let made = bench.held();
    assert!(made < 300, "it was killed too late to tell anything");
    bench.apply(&wide(300));
    bench.plan(0);
    assert_eq!(bench.held(), 300);
}

#[test]
fn a_server_that_is_killed_in_the_middle_loses_nothing_and_the_next_apply_converges() {
    let Some(mut bench) = Bench::start() else { return };
    bench.terraform.set("NETSTEAD_TIMEOUT", "3s");
    let mut apply = begin(&bench, &wide(300));
    wait_for(&bench, 20);
    bench.kill_server();
    // Whatever was under way fails, and so does what has its turn before the server is back.
    thread::sleep(Duration::from_secs(1));
    bench.serve();
    apply.wait().unwrap();
    let (made, known) = (bench.held(), in_state(&bench));
    assert!(known <= made, "{known} are in the state, and {made} are held");
    bench.apply(&wide(300));
    bench.plan(0);
    assert_eq!(bench.held(), 300);
}

#[test]
fn two_applies_at_once_make_a_thousand_addresses_of_one_pool_that_are_all_different() {
    let Some(bench) = Bench::start() else { return };
    bench.does("pool create lan --network 10.0.0.0/16 --range 10.0.4.0-10.0.9.255");
    let provider = env!("CARGO_BIN_EXE_terraform-provider-netstead");
    let applies: Vec<_> = ["red", "blue"]
        .map(|name| {
            let mut terraform = Terraform::new(provider.as_ref()).unwrap();
            terraform.set("NETSTEAD_URL", &bench.url());
            terraform.set("NETSTEAD_TOKEN", &bench.token());
            let configuration = format!(
                "resource \"netstead_address\" \"all\" {{\n  count = 500\n  pool  = \"lan\"\n  key   = \"{name}-${{count.index}}\"\n}}\n\
                 output \"all\" {{\n  value = join(\",\", netstead_address.all[*].address)\n}}\n"
            );
            terraform.write(&configuration).unwrap();
            thread::spawn(move || {
                let ran = |arguments: &[&str]| {
                    let TerraformRun { code, out, err } = terraform.run(arguments).unwrap();
                    assert_eq!(code, 0, "{arguments:?}: {out}\n{err}");
                    out
                };
                ran(&["apply", "-auto-approve", "-no-color", "-parallelism=10"]);
                ran(&["plan", "-no-color", "-detailed-exitcode"]);
                ran(&["output", "-no-color", "-raw", "all"])
            })
        })
        .into_iter()
        .collect();
    let all: Vec<String> = applies.into_iter().map(|apply| apply.join().unwrap()).collect();
    let distinct: BTreeSet<&str> = all.iter().flat_map(|all| all.split(',')).collect();
    assert_eq!((distinct.len(), bench.held()), (1000, 1000));
}
