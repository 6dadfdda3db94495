//! Servers that are configured with the lines of their guides.

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::Command,
};

use netstead_testkit::{Process, Sshd, free_port, has_commands};

use super::{Reader, ZONES};
use crate::sandbox::SOON;

/// A running server.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    /// Where its API is, if it has one.
    pub(super) api: SocketAddr,
    _process: Process,
}

/// A list as it stands in a file of TOML.
pub(super) fn in_toml(words: &[String]) -> String {
    format!("{words:?}")
}

/// An sshd whose key is known.
pub(super) fn known_sshd() -> Option<Sshd> {
    let ssh = Sshd::start(&[])?;
    ssh.make_known().unwrap();
    Some(ssh)
}

fn own_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port().unwrap()).into()
}

fn start(name: &str, command: &mut Command, address: SocketAddr, api: SocketAddr) -> Server {
    let mut process = Process::start(name, command).unwrap();
    for one in [address, api] {
        process.wait_for_port(one, SOON).unwrap();
    }
    Server { address, api, _process: process }
}

/// PowerDNS with the lines of its guide for `pdns.conf`; its zones are made with the commands of the guide.
pub(super) fn powerdns(reader: &Reader) -> Option<Server> {
    const SCHEMA: &str = "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql";
    if !has_commands(&["pdns_server", "pdnsutil", "sqlite3"]) {
        return None;
    }
    let (address, api) = (own_port(), own_port());
    let dir = reader.sandbox.path().display().to_string();
    let lines = reader.block(
        "ini",
        0,
        &[
            ("webserver-address=192.0.2.53", "webserver-address=127.0.0.1"),
            ("8081", &api.port().to_string()),
            ("192.0.2.10", "127.0.0.1"),
        ],
    );
    let base = format!(
        "launch=gsqlite3\ngsqlite3-database={dir}/p.db\ngsqlite3-dnssec=yes\nlocal-address=127.0.0.1\n\
         local-port={}\nsocket-dir={dir}\ndaemon=no\nguardian=no\n",
        address.port()
    );
    reader.file("pdns.conf", &format!("{base}{lines}"));
    let zones = reader.block("sh", 0, &[]);
    let made = reader.types(&format!(
        "sqlite3 p.db < {SCHEMA}\npdnsutil() {{ command pdnsutil --config-dir={dir} \"$@\"; }}\n{zones}"
    ));
    assert_eq!(made.code, 0, "{}{}", made.out, made.err);
    Some(start("PowerDNS", Command::new("pdns_server").arg(format!("--config-dir={dir}")), address, api))
}

/// Empty zones, in files as the guide's configuration names them.
fn zone_files(reader: &Reader) {
    for zone in ZONES {
        let text = format!(
            "$TTL 3600\n@ IN SOA ns1.{zone}. hostmaster.{zone}. 1 10800 3600 604800 300\n@ IN NS ns1.{zone}.\n\
             ns1 IN A 127.0.0.1\n"
        );
        reader.file(&format!("{zone}.db"), &text);
    }
}

/// The secret that the guide's command makes.
fn secret(reader: &Reader) -> String {
    let made = reader.types(&reader.block("sh", 0, &[]));
    assert_eq!(made.code, 0, "{}", made.err);
    let secret = made.out.split("secret \"").nth(1).and_then(|rest| rest.split('"').next());
    secret.unwrap_or_else(|| panic!("no secret in {}", made.out)).to_owned()
}

/// BIND with the key and zone of its guide, and the secret that the guide's command made.
pub(super) fn bind(reader: &Reader) -> Option<(Server, String)> {
    if !has_commands(&["named", "tsig-keygen"]) {
        return None;
    }
    let (secret, address) = (secret(reader), own_port());
    let dir = reader.sandbox.path().display().to_string();
    let part = reader.block("text", 0, &[("…", &secret), ("/var/lib/bind", &dir)]);
    let (key, zone) = part.split_once("\n\n").unwrap();
    let text = format!(
        "{key}\n{zone}\n{}\noptions {{ directory \"{dir}\"; pid-file none; session-keyfile \"{dir}/session.key\";\n\
         lock-file none; managed-keys-directory \"{dir}\"; listen-on port {} {{ 127.0.0.1; }};\n\
         listen-on-v6 {{ none; }}; recursion no; dnssec-validation no; notify no; }};\ncontrols {{ }};\n",
        zone.replace(ZONES[0], ZONES[1]),
        address.port()
    );
    zone_files(reader);
    let file = reader.file("named.conf", &text);
    Some((
        start("BIND", Command::new("named").args(["-g", "-n", "1", "-c", &file]), address, address),
        secret,
    ))
}

/// Knot with the key, rule and zone of its guide.
pub(super) fn knot(reader: &Reader) -> Option<(Server, String)> {
    if !has_commands(&["knotd", "tsig-keygen"]) {
        return None;
    }
    let (secret, address) = (secret(reader), own_port());
    let dir = reader.sandbox.path().display().to_string();
    let part = reader.block("yaml", 0, &[("…", &secret)]);
    let zone = part.split("zone:\n").nth(1).unwrap().replace(ZONES[0], ZONES[1]);
    let text = format!(
        "server:\n  rundir: \"{dir}\"\n  user: root:root\n  listen: 127.0.0.1@{}\ndatabase:\n  storage: \"{dir}\"\n\
         template:\n  - id: default\n    storage: \"{dir}\"\n    file: \"%s.db\"\n{part}{zone}",
        address.port()
    );
    zone_files(reader);
    let file = reader.file("knot.conf", &text);
    Some((start("Knot", Command::new("knotd").args(["-c", &file]), address, address), secret))
}
