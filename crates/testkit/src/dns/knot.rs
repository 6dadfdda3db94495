//! Knot DNS.

use std::{fmt::Write, path::Path};

use super::{
    TsigKey,
    primary::{Make, Primary},
};

/// A running `knotd`.
pub type Knot = Primary<Knotd>;

#[derive(Debug)]
pub enum Knotd {}

impl Make for Knotd {
    const NAME: &'static str = "Knot";
    const PROGRAM: &'static str = "knotd";
    const FILE: &'static str = "knot.conf";
    const READY: &'static str = "loaded, serial";

    fn configuration(dir: &Path, port: u16, key: &TsigKey, zones: &[&str]) -> String {
        let path = dir.display();
        let TsigKey { name, algorithm, secret } = key;
        let mut text = format!(
            "server:\n  rundir: \"{path}\"\n  user: root:root\n  listen: 127.0.0.1@{port}\n\
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
