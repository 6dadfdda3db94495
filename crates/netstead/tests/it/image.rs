//! The image and the stacks that use it.

use std::{
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
};

use netstead_testkit::{Dockerd, has_command, skip, wait_until};
use serde_json::Value;

use crate::sandbox::SOON;

/// A group that nothing on the machine has.
const GROUP: u32 = 47_321;
/// As the compose files have it.
const LOCKED: [&str; 10] = [
    "--cap-drop",
    "ALL",
    "--cap-add",
    "SETUID",
    "--cap-add",
    "SETGID",
    "--cap-add",
    "CHOWN",
    "--security-opt",
    "no-new-privileges",
];

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// The image `netstead:test`, from what `cargo xtask test` laid out.
fn build(docker: &Dockerd, files: &Path) {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let program = files.join(arch).join("netstead");
    let libraries = Command::new("ldd").arg(&program).output().unwrap();
    let said = String::from_utf8_lossy(&libraries.stdout) + String::from_utf8_lossy(&libraries.stderr);
    assert!(said.contains("statically linked") || said.contains("not a dynamic executable"), "{said}");
    let mut build = docker.command("docker");
    build.env("DOCKER_BUILDKIT", "0").args(["build", "--build-arg", &format!("TARGETARCH={arch}")]);
    build.args(["--tag", "netstead:test", "--file"]).arg(deploy().join("Dockerfile")).arg(files);
    let built = build.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// One field of a process' status, as its kernel tells it.
fn of_process(docker: &Dockerd, container: &str, field: &str) -> String {
    let pid = docker.docker(&["inspect", "-f", "{{.State.Pid}}", container]);
    let status = docker.inside("cat").arg(format!("/proc/{pid}/status")).output().unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {field} in\n{status}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_image_runs_as_an_ordinary_user_and_answers_for_its_neighbour() {
    let Some(files) = std::env::var_os("NETSTEAD_TEST_IMAGE").map(PathBuf::from) else {
        return skip("there is nothing to build the image from; `cargo xtask test` lays it out");
    };
    let Some(docker) = Dockerd::start() else { return };
    build(&docker, &files);
    chown(docker.socket(), None, Some(GROUP)).unwrap();
    docker.docker(&["network", "create", "--subnet", "10.250.9.0/24", "lan"]);
    let rule = "traefik.http.routers.n.rule=Host(`neighbour.home.test`)";
    let neighbour = ["run", "-d", "--name", "neighbour", "--network", "lan", "--ip", "10.250.9.20"];
    docker.docker(&[&neighbour[..], &["--label", rule, "tiny:1"]].concat());

    // A directory that Docker makes, so it is root's; and port 53, as an ordinary user.
    let (socket, state) = (docker.socket(), docker.dir().join("state"));
    let socket = format!("{}:/var/run/docker.sock:ro", socket.display());
    let state = format!("{}:/var/lib/netstead", state.display());
    let start = [
        &["run", "-d", "--name", "netstead", "--network", "lan", "--ip", "10.250.9.10"][..],
        &LOCKED[..],
        &["--read-only", "-v", &socket, "-v", &state, "--health-interval", "1s"][..],
        &["-e", "NETSTEAD_DNS_LISTEN=0.0.0.0:53", "-e", "NETSTEAD_LOG_LEVEL=info"][..],
        &["-e", "NETSTEAD_SOURCE_DOCKER_TARGET=network:lan", "netstead:test"][..],
    ];
    docker.docker(&start.concat());
    let log = || docker.docker(&["logs", "netstead"]);
    let asked = wait_until(SOON, || {
        let said =
            docker.try_docker(&["exec", "neighbour", "nslookup", "neighbour.home.test", "10.250.9.10"]);
        said.ok().filter(|said| said.contains("10.250.9.20"))
    });
    assert!(asked.is_some(), "{}", log());

    assert_eq!(of_process(&docker, "netstead", "Uid"), "1000 1000 1000 1000");
    assert_eq!(of_process(&docker, "netstead", "Gid"), "1000 1000 1000 1000");
    assert_eq!(of_process(&docker, "netstead", "Groups"), GROUP.to_string());
    assert_eq!(of_process(&docker, "netstead", "CapEff"), "0000000000000000");
    let health = || docker.docker(&["inspect", "-f", "{{.State.Health.Status}}", "netstead"]);
    assert!(wait_until(SOON, || (health() == "healthy").then_some(())).is_some(), "{}\n{}", health(), log());
    let workloads = docker.docker(&["exec", "netstead", "netstead", "get", "workloads"]);
    assert!(workloads.contains("neighbour"), "{workloads}");

    // The name of a server is looked up though nothing but the program is there.
    let elsewhere = ["exec", "netstead", "netstead", "--url", "http://neighbour:81", "status", "--ready"];
    let refused = docker.try_docker(&elsewhere).unwrap_err().to_string();
    assert!(refused.contains("Connection refused"), "{refused}");

    docker.docker(&["stop", "-t", "20", "netstead"]);
    assert_eq!(docker.docker(&["inspect", "-f", "{{.State.ExitCode}}", "netstead"]), "0", "{}", log());

    // With a volume, no Docker to look at, and as a user from the start.
    let volume = ["-v", "data:/var/lib/netstead", "netstead:test"];
    docker.docker(
        &[&["run", "-d", "--name", "again", "--user", "1000", "--cap-drop", "ALL"], &volume[..]].concat(),
    );
    let ready = || docker.try_docker(&["exec", "again", "netstead", "status", "--ready"]).ok();
    assert!(wait_until(SOON, ready).is_some(), "{}", docker.docker(&["logs", "again"]));
}

#[test]
fn the_stacks_are_sound_and_give_netstead_what_it_needs_and_no_more() {
    for stack in ["traefik", "caddy"] {
        let file = deploy().join("compose").join(stack).join("compose.yaml");
        let text = std::fs::read_to_string(&file).unwrap();
        let all: Value = serde_saphyr::from_str(&text).unwrap();
        let netstead = &all["services"]["netstead"];
        let has = |key: &str, wanted: &str| {
            netstead[key].as_array().unwrap().iter().any(|value| value.as_str() == Some(wanted))
        };
        assert_eq!(netstead["image"], "netstead:latest");
        assert_eq!(netstead["network_mode"], "host");
        assert!(has("volumes", "/var/run/docker.sock:/var/run/docker.sock:ro"), "{text}");
        assert!(
            has("volumes", "netstead:/var/lib/netstead") && all["volumes"]["netstead"].is_object(),
            "{text}"
        );
        assert!(has("cap_drop", "ALL") && netstead["cap_add"].as_array().unwrap().len() == 3, "{text}");
        assert!(
            all["services"][stack].is_object() && all["services"]["whoami"]["labels"].is_object(),
            "{text}"
        );
        if !has_command("docker-compose") {
            skip("`docker-compose` is not installed");
            continue;
        }
        let checked =
            Command::new("docker-compose").arg("-f").arg(&file).args(["config", "-q"]).output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}
