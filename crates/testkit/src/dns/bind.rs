//! BIND.

use std::{fmt::Write, net::SocketAddr, path::Path};

use super::{
    TsigKey,
    primary::{Primary, PrimaryKind},
};

/// A running `named`.
pub type Bind = Primary<Named>;

/// A BIND that refuses every zone transfer.
pub type SecretiveBind = Primary<SecretiveNamed>;

#[derive(Debug)]
pub enum Named {}

#[derive(Debug)]
pub enum SecretiveNamed {}

const ARGUMENTS: [&str; 4] = ["-g", "-n", "1", "-c"];

impl PrimaryKind for Named {
    const NAME: &'static str = "BIND";
    const PROGRAM: &'static str = "named";
    const FILE: &'static str = "named.conf";
    const READY: &'static str = "running";

    fn configuration(dir: &Path, address: SocketAddr, key: &TsigKey, zones: &[&str]) -> String {
        configuration(dir, address, key, zones, &format!("key \"{}\";", key.name))
    }

    fn arguments() -> &'static [&'static str] {
        &ARGUMENTS
    }
}

impl PrimaryKind for SecretiveNamed {
    const NAME: &'static str = Named::NAME;
    const PROGRAM: &'static str = Named::PROGRAM;
    const FILE: &'static str = Named::FILE;
    const READY: &'static str = Named::READY;

    fn configuration(dir: &Path, address: SocketAddr, key: &TsigKey, zones: &[&str]) -> String {
        configuration(dir, address, key, zones, "none;")
    }

    fn arguments() -> &'static [&'static str] {
        &ARGUMENTS
    }
}

fn configuration(dir: &Path, address: SocketAddr, key: &TsigKey, zones: &[&str], transfer: &str) -> String {
    let (host, port, path) = (address.ip(), address.port(), dir.display());
    let TsigKey { name, algorithm, secret } = key;
    let mut text = format!(
        "key \"{name}\" {{ algorithm {algorithm}; secret \"{secret}\"; }};\n\
         options {{ directory \"{path}\"; pid-file \"{path}/named.pid\"; session-keyfile \"{path}/session.key\";\n\
         lock-file none; managed-keys-directory \"{path}\"; listen-on port {port} {{ {host}; }};\n\
         listen-on-v6 {{ none; }}; recursion no; dnssec-validation no; notify no; }};\ncontrols {{ }};\n"
    );
    for zone in zones {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "zone \"{zone}\" {{ type primary; file \"{zone}.db\"; allow-transfer {{ {transfer} }}; \
             update-policy {{ grant {name} zonesub ANY; }}; }};"
        );
    }
    text
}
