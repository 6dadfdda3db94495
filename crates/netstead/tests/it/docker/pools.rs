//! Containers and the ledger.

use super::*;
use crate::resolve::ptr;

/// Waits until these words print something with this in it, or without it.
fn says(sandbox: &Sandbox, line: &str, wanted: &str, there: bool) -> String {
    let begun = Stopwatch::start();
    loop {
        let said = sandbox.does(line);
        if said.contains(wanted) == there {
            return said;
        }
        assert!(begun.elapsed() < SOON, "`{wanted}` in `{line}`: {there}\n{said}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_container_that_names_a_pool_holds_its_address_there() {
    let Some(docker) = shared() else { return };
    let network = fresh("poolnet");
    docker.docker(&["network", "create", "--subnet", "10.250.8.0/24", &network]);
    let pool = "\n[pool.lan]\nnetwork = \"10.250.8.0/24\"\ndomain = \"home.test\"\n";
    let sandbox = sandbox(docker, &format!("target = \"198.51.100.7\"{QUICK}{pool}"));
    let (name, other) = (fresh("pooled"), fresh("pooled"));
    let at = |name: &str, address: &str| {
        let label = ["--label", "netstead.pool=lan"];
        let words = ["run", "-d", "--name", name, "--network", &network, "--ip", address];
        docker.docker(&[&words[..], &label, &["tiny:1"]].concat());
    };
    at(&name, "10.250.8.9");
    let claims = says(&sandbox, "get claims", "10.250.8.9", true);
    let line = claims.lines().find(|line| line.contains("10.250.8.9")).unwrap();
    assert!(line.contains(&format!("dock/{name}")) && line.contains("source/dock"), "{claims}");
    // A claim gets its names at once.
    let host = format!("{name}.home.test");
    until(&["10.250.8.9"], || a(sandbox.dns(), &host));
    until(&[&format!("{host}.")], || ptr(sandbox.dns(), "10.250.8.9".parse().unwrap()));

    // A held address stays with its holder.
    sandbox.does("claim lan printer --address 10.250.8.10");
    at(&other, "10.250.8.10");
    let why =
        says(&sandbox, "get workloads -o json", "netstead.pool: 10.250.8.10 is held by `printer`", true);
    assert!(why.contains(&other));
    let explained = sandbox.does(&format!("explain {other}.home.test"));
    assert!(explained.contains("10.250.8.10 is held by `printer`"), "{explained}");
    assert!(!sandbox.does("get claims").contains(&format!("dock/{other}")));

    docker.docker(&["rm", "-f", &name]);
    says(&sandbox, "get claims", "10.250.8.9", false);
    until(&[], || a(sandbox.dns(), &host));
    docker.docker(&["rm", "-f", &other]);
    docker.docker(&["network", "rm", &network]);
}

#[test]
fn addresses_of_bridges_are_seen_by_the_ledger_only_if_that_is_asked_for() {
    let Some(docker) = shared() else { return };
    let network = fresh("seen");
    docker.docker(&["network", "create", "--subnet", "10.250.9.0/24", &network]);
    let name = fresh("seen");
    docker.docker(&["run", "-d", "--name", &name, "--network", &network, "--ip", "10.250.9.2", "tiny:1"]);
    let pool =
        format!("{QUICK}\n[pool.lan]\nnetwork = \"10.250.9.0/24\"\nranges = [\"10.250.9.2-10.250.9.9\"]\n");
    let closed = sandbox(docker, &pool);
    says(&closed, "get workloads", &name, true);
    closed.does("apply");
    assert!(closed.does("claim lan web -o json").contains("10.250.9.2\""), "that is its host's alone");

    let open = sandbox(docker, &format!("observe = true{pool}"));
    let seen = says(&open, "get addresses", "10.250.9.2", true);
    assert!(seen.contains("observed"), "{seen}");
    assert!(open.does("claim lan web -o json").contains("10.250.9.3\""));
    assert!(open.does("explain 10.250.9.2").contains(&format!("container {name} of dock")));
    docker.docker(&["rm", "-f", &name]);
    says(&open, "get addresses", "10.250.9.2 ", false);
    docker.docker(&["network", "rm", &network]);
}

#[test]
fn a_label_may_name_an_interface_of_this_machine() {
    let Some(docker) = shared() else { return };
    let sandbox = sandbox(docker, "target = \"interface:lo\"");
    let (name, other) = (fresh("moving"), fresh("moving"));
    let host = |name: &str| format!("{name}.example.test");
    run(docker, &name, &host(&name), &[]);
    until(&["127.0.0.1"], || a(sandbox.dns(), &host(&name)));
    run(docker, &other, &host(&other), &["--label", "netstead.target=interface:nowhere"]);
    let why = says(&sandbox, &format!("explain {}", host(&other)), "there is no interface `nowhere`", true);
    assert!(why.contains("dock/"), "{why}");
    docker.docker(&["rm", "-f", &name, &other]);
}
