//! Writes the fixture of this release: `cargo xtask fixture`.

use std::{fs, path::Path};

use netstead_client::types::{ObservationInput, SightingInput};
use netstead_testkit::{PowerDns, Process};

use super::{
    home::{Home, Kind, fixtures},
    said::{self, SAID},
};
use crate::{
    sandbox::{SOON, Sandbox},
    shared_store::run,
};

/// A pool and a source that the configuration has at first and later has no more.
const ONCE: &str = "\n[pool.retired]\nnetwork = \"10.50.0.0/29\"\n\n\
                    [source.retired]\ntype = \"hosts\"\npath = \"retired\"\n";

/// Commands, one per line, in the order in which they are typed. `|` stands between words that have blanks in them.
const COMMANDS: &str = include_str!("commands.txt");

#[test]
#[ignore = "`cargo xtask fixture` runs it"]
fn the_fixture_of_this_release() {
    let at = fixtures().join(env!("CARGO_PKG_VERSION"));
    for kind in [Kind::Local, Kind::Raft] {
        let server = PowerDns::start(&["racks.test"]).expect("a fixture needs PowerDNS");
        let home = Home::prepare(&at, kind, &server.api_url());
        make(&home, &at, kind);
    }
}

fn make(home: &Home, at: &Path, kind: Kind) {
    let Home { sandbox } = home;
    let path = sandbox.path();
    let config = fs::read_to_string(path.join("netstead.toml")).unwrap();
    fs::write(path.join("netstead.toml"), format!("{config}{ONCE}")).unwrap();
    fs::write(path.join("retired"), "10.20.0.3 printer.gone.test\n").unwrap();
    let racks = fs::read_to_string(path.join("hosts")).unwrap();
    fs::write(path.join("hosts"), racks.replace("10.22.", "10.21.")).unwrap();
    let server = start(sandbox);
    type_commands(sandbox, "at first");
    home.until("plan", |said| said.code == 0);
    stop(server);

    fs::write(path.join("netstead.toml"), config).unwrap();
    fs::write(path.join("hosts"), racks).unwrap();
    let mut server = start(sandbox);
    type_commands(sandbox, "later");
    observe(sandbox);
    home.until("plan", |said| said.code == 3);
    type_commands(sandbox, "at last");
    sandbox.does("apply");
    said::record(home);
    match kind {
        Kind::Local => {
            sandbox.does("store backup whole.backup");
            server.kill().unwrap();
            home.pack(&["data"], &at.join("killed.tar.xz"));
            stop(start(sandbox));
            home.pack(&["data", SAID, "whole.backup"], &at.join("local.tar.xz"));
        }
        Kind::Raft => {
            stop(server);
            home.pack(&["data", SAID], &at.join("raft.tar.xz"));
        }
    }
}

fn start(sandbox: &Sandbox) -> Process {
    let mut server = run(sandbox);
    server.wait_for_line("is ready", SOON).unwrap();
    server.wait_for_line("This node leads", SOON).unwrap();
    server
}

fn stop(mut server: Process) {
    server.terminate().unwrap();
    assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
}

/// Types the commands below this heading.
fn type_commands(sandbox: &Sandbox, heading: &str) {
    let lines = COMMANDS.lines().skip_while(|line| *line != format!("# {heading}")).skip(1);
    for line in lines.take_while(|line| !line.starts_with('#')).filter(|line| !line.is_empty()) {
        // A claim that waits ends with 2.
        let (code, line) = line.strip_prefix("waits ").map_or((0, line), |line| (2, line));
        let words: Vec<&str> =
            if line.contains('|') { line.split('|').collect() } else { line.split(' ').collect() };
        let said = sandbox.netstead(&words);
        assert_eq!(said.code, code, "`netstead {line}`:\n{}{}", said.out, said.err);
        if let ["token", "create", subject, ..] = words[..] {
            fs::write(sandbox.path().join(format!("{subject}.token")), said.out).unwrap();
        }
    }
}

/// Reports addresses that a scan and a switch have seen.
fn observe(sandbox: &Sandbox) {
    let seen = |address: &str, note: Option<&str>| SightingInput {
        address: address.to_owned(),
        note: note.map(str::to_owned),
    };
    let scan = ObservationInput {
        seen: vec![seen("10.20.0.95", None), seen("10.20.0.96", Some("answers on port 22"))],
        ttl: Some("4000d".into()),
        ..ObservationInput::default()
    };
    let switch = ObservationInput {
        vrf: Some("red".into()),
        complete: true,
        seen: vec![seen("10.20.0.52", Some("port 7"))],
        ..ObservationInput::default()
    };
    let client = sandbox.client();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        client.observe("scan", &scan).await.unwrap();
        client.observe("switch", &switch).await.unwrap();
    });
}
