//! What the README and the guide show is what happens.

use std::{net::SocketAddr, path::Path, process::Command, time::Duration};

use netstead_testkit::{Process, Transcript, free_port, has_command, skip};

const SOON: Duration = Duration::from_mins(1);

#[test]
fn the_readme_works_as_typed() {
    typed("README.md");
}

#[test]
fn the_first_ten_minutes_work_as_typed() {
    typed("docs/guide/first-pool.md");
}

/// Types a document's commands against a server of their own.
fn typed(document: &str) {
    if let Some(missing) = ["bash", "curl", "jq"].into_iter().find(|name| !has_command(name)) {
        return skip(&format!("`{missing}` is not installed"));
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_netstead"));
    let home = tempfile::tempdir().unwrap();
    let listen = SocketAddr::from(([127, 0, 0, 1], free_port().unwrap()));
    let own = |command: &mut Command| {
        command
            .current_dir(&home)
            .env("HOME", home.path())
            .env("XDG_STATE_HOME", home.path().join("state"))
            .env("DOCKER_HOST", format!("unix://{}", home.path().join("docker.sock").display()));
    };
    let mut run = Command::new(binary);
    own(run
        .arg("run")
        .arg("--data-dir")
        .arg(home.path().join("data"))
        .arg("--listen")
        .arg(listen.to_string()));
    let mut server = Process::start("netstead", &mut run).unwrap();
    server.wait_for_line("is ready", SOON).unwrap();

    let path = std::env::var("PATH").unwrap_or_default();
    let transcript =
        Transcript::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document)).unwrap();
    let done = transcript.run(
        |bash| {
            own(bash);
            bash.env("PATH", format!("{}:{path}", binary.parent().unwrap().display()))
                .env("NETSTEAD_URL", format!("http://{listen}"));
        },
        SOON,
    );
    if let Err(error) = done {
        panic!("{document}:\n{error}");
    }
}
