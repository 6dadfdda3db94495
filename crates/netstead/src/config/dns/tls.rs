//! Whom an HTTP provider trusts at the other end.

use std::path::{Path, PathBuf};

use netstead_providers::Tls;
use serde::Serialize;

use super::Section;

pub(super) const KEYS: &[&str] =
    &["ca_file", "client_cert", "client_key", "server_name", "fingerprint", "insecure"];

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct TlsSettings {
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) client_cert: Option<PathBuf>,
    pub(crate) client_key: Option<PathBuf>,
    pub(crate) server_name: Option<String>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) insecure: bool,
}

impl TlsSettings {
    pub(super) fn tls(&self) -> Tls {
        Tls {
            ca_file: self.ca_file.clone(),
            client_cert: self.client_cert.clone(),
            client_key: self.client_key.clone(),
            server_name: self.server_name.clone(),
            fingerprint: self.fingerprint.clone(),
            insecure: self.insecure,
        }
    }
}

pub(super) fn read(section: &mut Section<'_, '_>, dir: &Path) -> TlsSettings {
    let mut file = |key| section.text(key).map(|path| dir.join(path));
    let (ca_file, client_cert, client_key) = (file("ca_file"), file("client_cert"), file("client_key"));
    TlsSettings {
        ca_file,
        client_cert,
        client_key,
        server_name: section.text("server_name").map(str::to_owned),
        fingerprint: section.text("fingerprint").map(str::to_owned),
        insecure: section.flag("insecure").unwrap_or_default(),
    }
}
