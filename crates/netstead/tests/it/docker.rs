//! Containers of a real Docker, and the names they get.

mod dialects;
mod guide;
mod lan_addresses;
mod many_containers;
mod pools;
mod power_loss;
mod remote;

use std::{
    net::UdpSocket,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use netstead_testkit::Dockerd;

use crate::{
    resolve::{Stopwatch, a, until},
    sandbox::{SOON, Sandbox},
};

/// One Docker for every test that leaves it alone.
fn shared() -> Option<&'static Dockerd> {
    static DOCKER: OnceLock<Option<Dockerd>> = OnceLock::new();
    DOCKER.get_or_init(Dockerd::start).as_ref()
}

/// The card `docker0`: one network of the type macvlan may be on it at a time.
fn card() -> MutexGuard<'static, ()> {
    static CARD: Mutex<()> = Mutex::new(());
    CARD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name that no other container has.
fn fresh(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{what}{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// This machine's address on its default route, where names of containers point by themselves.
fn machine() -> String {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("203.0.113.1:9").unwrap();
    socket.local_addr().unwrap().ip().to_string()
}

/// A sandbox that looks at this Docker, with more lines in its source's table.
fn sandbox(docker: &Dockerd, more: &str) -> Sandbox {
    let mut sandbox = Sandbox::empty();
    let text = format!("[source.dock]\ntype = \"docker\"\nhost = \"{}\"\n{more}\n", docker.host());
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    sandbox.start(&[]);
    sandbox
}

#[test]
fn with_nothing_configured_a_running_container_is_answered_for() {
    let Some(docker) = shared() else { return };
    let mut sandbox = Sandbox::empty();
    sandbox.set("DOCKER_HOST", &docker.host());
    sandbox.start(&[]);
    assert!(sandbox.server().log().contains("; Docker is looked at through "), "{}", sandbox.server().log());
    let name = fresh("web");
    let host = format!("{name}.example.test");
    docker.docker(&["run", "-d", "--name", &name, "--label", &format!("netstead.hostname={host}"), "tiny:1"]);
    until(&[&machine()], || a(sandbox.dns(), &host));
    let seen = sandbox.does("get workloads");
    assert!(seen.contains(&name) && seen.contains("docker"), "{seen}");
    docker.docker(&["rm", "-f", &name]);
}

#[test]
fn docker_that_starts_after_netstead_is_looked_at_as_soon_as_it_is_there() {
    let Some(docker) = shared() else { return };
    let name = fresh("late");
    let host = format!("{name}.example.test");
    docker.docker(&["run", "-d", "--name", &name, "--label", &format!("netstead.hostname={host}"), "tiny:1"]);
    let mut sandbox = Sandbox::empty();
    let socket = sandbox.path().join("docker.sock");
    sandbox.set("DOCKER_HOST", &format!("unix://{}", socket.display()));
    sandbox.start(&[]);
    assert!(sandbox.does("doctor").contains("Docker is looked at as soon as it is there"));
    std::os::unix::fs::symlink(docker.host().trim_start_matches("unix://"), &socket).unwrap();
    until(&[&machine()], || a(sandbox.dns(), &host));
    docker.docker(&["rm", "-f", &name]);
}

/// Starts a container that asks for a name in our own dialect.
fn run(docker: &Dockerd, name: &str, host: &str, more: &[&str]) {
    let label = format!("netstead.hostname={host}");
    let mut words = vec!["run", "-d", "--name", name, "--label", &label];
    words.extend_from_slice(more);
    words.push("tiny:1");
    docker.docker(&words);
}

/// Whether the answer stays as it is for this long.
fn stays(wanted: &[&str], sandbox: &Sandbox, host: &str, long: Duration) {
    let begun = Stopwatch::start();
    while begun.elapsed() < long {
        assert_eq!(a(sandbox.dns(), host).values, wanted, "after {:?}", begun.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
}

const QUICK: &str =
    "\n[dns.own]\ntype = \"builtin\"\ngrace = \"1s\"\nended_grace = \"1s\"\ninterval = \"1s\"\n";

#[test]
fn a_container_keeps_its_name_through_restart_rename_and_recreation_and_loses_it_when_it_is_removed() {
    let Some(docker) = shared() else { return };
    let sandbox = sandbox(docker, "target = \"198.51.100.7\"");
    let (name, other) = (fresh("life"), fresh("life"));
    let host = format!("{name}.example.test");
    run(docker, &name, &host, &[]);
    until(&["198.51.100.7"], || a(sandbox.dns(), &host));
    docker.docker(&["restart", "-t", "0", &name]);
    stays(&["198.51.100.7"], &sandbox, &host, Duration::from_millis(700));
    docker.docker(&["rename", &name, &other]);
    stays(&["198.51.100.7"], &sandbox, &host, Duration::from_millis(700));
    docker.docker(&["rm", "-f", &other]);
    stays(&["198.51.100.7"], &sandbox, &host, Duration::from_millis(500));
    run(docker, &other, &host, &[]);
    stays(&["198.51.100.7"], &sandbox, &host, Duration::from_millis(700));
    docker.docker(&["stop", "-t", "0", &other]);
    stays(&["198.51.100.7"], &sandbox, &host, Duration::from_millis(500));
    let begun = Stopwatch::start();
    let seen = || sandbox.does("get workloads");
    while !seen().lines().any(|line| line.contains(&other) && line.contains("absent")) {
        assert!(begun.elapsed() < SOON, "{}", seen());
    }
    docker.docker(&["rm", "-f", &other]);
}

#[test]
fn what_is_removed_goes_after_its_short_grace() {
    let Some(docker) = shared() else { return };
    let sandbox = sandbox(docker, &format!("target = \"198.51.100.7\"{QUICK}"));
    let name = fresh("gone");
    let host = format!("{name}.example.test");
    run(docker, &name, &host, &[]);
    until(&["198.51.100.7"], || a(sandbox.dns(), &host));
    docker.docker(&["rm", "-f", &name]);
    until(&[], || a(sandbox.dns(), &host));
}

#[test]
fn a_name_follows_its_container_onto_a_network_and_off_it() {
    let Some(docker) = shared() else { return };
    let network = fresh("appnet");
    docker.docker(&["network", "create", "--subnet", "10.250.7.0/24", &network]);
    let sandbox = sandbox(docker, &format!("target = \"network:{network}\"{QUICK}"));
    let name = fresh("moves");
    let host = format!("{name}.example.test");
    run(docker, &name, &host, &[]);
    let why = || sandbox.does(&format!("explain {host}"));
    let begun = Stopwatch::start();
    while !why().contains(&format!("it is not on the network {network}")) {
        assert!(begun.elapsed() < SOON, "{}", why());
    }
    docker.docker(&["network", "connect", "--ip", "10.250.7.9", &network, &name]);
    until(&["10.250.7.9"], || a(sandbox.dns(), &host));
    docker.docker(&["network", "disconnect", &network, &name]);
    let begun = Stopwatch::start();
    while !why().contains(&format!("it is not on the network {network}")) {
        assert!(begun.elapsed() < SOON, "{}", why());
    }
    docker.docker(&["rm", "-f", &name]);
    docker.docker(&["network", "rm", &network]);
}

#[test]
fn a_stack_goes_up_and_down() {
    let Some(docker) = shared() else { return };
    let sandbox = sandbox(docker, &format!("target = \"198.51.100.7\"{QUICK}"));
    let project = fresh("stack");
    let host = |service: &str| format!("{service}.{project}.example.test");
    let service = |name: &str| {
        format!("  {name}:\n    image: tiny:1\n    labels:\n      netstead.hostname: {}\n", host(name))
    };
    let text = format!("version: \"3\"\nservices:\n{}{}", service("web"), service("db"));
    let file = sandbox.path().join("docker-compose.yml");
    std::fs::write(&file, text).unwrap();
    let compose = |words: &[&str]| {
        let mut command = docker.command("docker-compose");
        command.arg("-f").arg(&file).args(["-p", &project]).args(words);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    compose(&["up", "-d"]);
    for service in ["web", "db"] {
        until(&["198.51.100.7"], || a(sandbox.dns(), &host(service)));
    }
    compose(&["up", "-d", "--force-recreate", "-t", "0"]);
    stays(&["198.51.100.7"], &sandbox, &host("web"), Duration::from_millis(500));
    compose(&["down", "-t", "0"]);
    for service in ["web", "db"] {
        until(&[], || a(sandbox.dns(), &host(service)));
    }
}

#[test]
fn when_docker_dies_its_names_stay_and_another_hosts_go_on() {
    let Some(docker) = shared() else { return };
    let Some(mut other) = Dockerd::start() else { return };
    let mut sandbox = Sandbox::empty();
    let source = |name: &str, docker: &Dockerd, address: &str| {
        format!("[source.{name}]\ntype = \"docker\"\nhost = \"{}\"\ntarget = \"{address}\"\n", docker.host())
    };
    let text = source("one", docker, "198.51.100.1") + &source("two", &other, "198.51.100.2") + QUICK;
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    sandbox.start(&[]);
    let (here, there, late) = (fresh("here"), fresh("there"), fresh("late"));
    let host = |name: &str| format!("{name}.example.test");
    run(docker, &here, &host(&here), &[]);
    run(&other, &there, &host(&there), &["--restart", "always"]);
    until(&["198.51.100.1"], || a(sandbox.dns(), &host(&here)));
    until(&["198.51.100.2"], || a(sandbox.dns(), &host(&there)));

    other.kill().unwrap();
    let begun = Stopwatch::start();
    let failed = |line: &str| line.starts_with("two ") && line.contains(" failed ");
    while !sandbox.does("get sources").lines().any(failed) {
        assert!(begun.elapsed() < SOON, "{}", sandbox.does("get sources"));
    }
    run(docker, &late, &host(&late), &[]);
    until(&["198.51.100.1"], || a(sandbox.dns(), &host(&late)));
    stays(&["198.51.100.2"], &sandbox, &host(&there), Duration::from_secs(2));

    other.resume().unwrap();
    let after = fresh("after");
    run(&other, &after, &host(&after), &[]);
    until(&["198.51.100.2"], || a(sandbox.dns(), &host(&after)));
    stays(&["198.51.100.2"], &sandbox, &host(&there), Duration::from_millis(500));
    docker.docker(&["rm", "-f", &here, &late]);
}

#[test]
fn a_service_of_a_swarm_has_its_name_as_long_as_it_exists() {
    let Some(docker) = Dockerd::start() else { return };
    docker.docker(&["swarm", "init", "--advertise-addr", "127.0.0.1", "--data-path-addr", "127.0.0.1"]);
    let sandbox = sandbox(&docker, &format!("target = \"198.51.100.7\"{QUICK}"));
    docker.docker(&["network", "create", "-d", "overlay", "--subnet", "10.251.0.0/24", "ov"]);
    let create = ["service", "create", "--detach", "--name", "web", "--network", "ov", "--no-resolve-image"];
    docker.docker(&[&create[..], &["--label", "netstead.hostname=web.example.test", "tiny:1"]].concat());
    until(&["198.51.100.7"], || a(sandbox.dns(), "web.example.test"));
    let update = ["service", "update", "--detach", "--no-resolve-image"];
    let label = "netstead.hostnames=web.example.test,www.example.test";
    docker.docker(&[&update[..], &["--label-rm", "netstead.hostname", "--label-add", label, "web"]].concat());
    until(&["198.51.100.7"], || a(sandbox.dns(), "www.example.test"));
    docker.docker(&["service", "scale", "--detach", "web=2"]);
    stays(&["198.51.100.7"], &sandbox, "web.example.test", Duration::from_millis(700));
    let seen = sandbox.does("get workloads");
    assert!(seen.contains("service") && !seen.contains("web.1."), "{seen}");
    docker.docker(&["service", "rm", "web"]);
    until(&[], || a(sandbox.dns(), "web.example.test"));
}
