//! Knot DNS.

use std::{fmt::Write, net::SocketAddr, path::Path};

use super::{
    TsigKey,
    primary::{Primary, PrimaryKind},
};

/// A running `knotd`.
pub type Knot = Primary<Knotd>;

#[derive(Debug)]
pub enum Knotd {}

impl PrimaryKind for Knotd {
    const NAME: &'static str = "Knot";
    const PROGRAM: &'static str = "knotd";
    const FILE: &'static str = "knot.conf";
    const READY: &'static str = "loaded, serial";

    fn configuration(dir: &Path, address: SocketAddr, key: &TsigKey, zones: &[&str]) -> String {
        let (host, port, path) = (address.ip(), address.port(), dir.display());
        let TsigKey { name, algorithm, secret } = key;
        let mut text = format!(
            "server:\n  rundir: \"{path}\"\n  user: root:root\n  listen: {host}@{port}\n\
             log:\n  - target: stdout\n    any: info\n\
             database:\n  storage: \"{path}\"\n\
             key:\n  - id: {name}\n    algorithm: {algorithm}\n    secret: {secret}\n\
             acl:\n  - id: ours\n    key: {name}\n    action: [update, transfer]\n\
             template:\n  - id: default\n    storage: \"{path}\"\n    acl: ours\nzone:\n"
        );
        for zone in zones {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  - domain: {zone}\n    file: \"{zone}.db\"");
        }
        text
    }

    fn arguments() -> &'static [&'static str] {
        &["-c"]
    }
}
