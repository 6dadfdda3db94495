//! BIND.

use std::{fmt::Write, path::Path};

use super::{
    TsigKey,
    primary::{Make, Primary},
};

/// A running `named`.
pub type Bind = Primary<Named>;

#[derive(Debug)]
pub enum Named {}

impl Make for Named {
    const NAME: &'static str = "BIND";
    const PROGRAM: &'static str = "named";
    const FILE: &'static str = "named.conf";
    const READY: &'static str = "running";

    fn configuration(dir: &Path, port: u16, key: &TsigKey, zones: &[&str]) -> String {
        let path = dir.display();
        let TsigKey { name, algorithm, secret } = key;
        let mut text = format!(
            "key \"{name}\" {{ algorithm {algorithm}; secret \"{secret}\"; }};\n\
             options {{ directory \"{path}\"; pid-file \"{path}/named.pid\"; session-keyfile \"{path}/session.key\";\n\
             lock-file none; managed-keys-directory \"{path}\"; listen-on port {port} {{ 127.0.0.1; }};\n\
             listen-on-v6 {{ none; }}; recursion no; dnssec-validation no; notify no; }};\ncontrols {{ }};\n"
        );
        for zone in zones {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "zone \"{zone}\" {{ type primary; file \"{zone}.db\"; allow-transfer {{ key \"{name}\"; }}; \
                 update-policy {{ grant {name} zonesub ANY; }}; }};"
            );
        }
        text
    }

    fn arguments() -> &'static [&'static str] {
        &["-g", "-n", "1", "-c"]
    }
}
