//! `[external_dns.NAME]`: a listener that external-dns writes its records to.

use std::{net::SocketAddr, path::PathBuf};

use netstead_model::{Ident, Name};
use netstead_settings::{Parsed, Problems, Secret, Section, Settings as _, Table, ValueOrigin, table};
use serde::Serialize;

use super::{Listen, SourceConfig, api::TlsConfig, shown};

/// The kind of source that such a listener is.
pub(super) const KIND: &str = "external-dns";

table! {
    pub(super) struct ExternalDnsKeys {
        /// address or name, and port
        listen: Parsed<Listen>, default "127.0.0.1:8888";
        /// the names that external-dns may write: these and all below them
        domains: Vec<Name>, required "[\"apps.example.com\"]";
        /// names that it may not write, with all below them
        exclude_domains: Vec<Name>, unset "none";
        /// the password in the URL of external-dns, a secret; needed unless it listens on loopback
        token: Option<Secret>, unset;
        /// certificate chain, PEM; read again when it changes
        tls_cert: Option<PathBuf>, unset "no TLS";
        /// the key of `tls_cert`, PEM; read again when it changes
        tls_key: Option<PathBuf>, unset "no TLS";
    }
}

/// One listener for external-dns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ExternalDnsConfig {
    pub(crate) name: Ident,
    pub(crate) listen: Listen,
    pub(crate) domains: Vec<Name>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) exclude_domains: Vec<Name>,
    #[serde(serialize_with = "shown")]
    pub(crate) token: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsConfig>,
}

/// The listener, unless what is written cannot be one.
pub(super) fn read(
    name: &str,
    place: &ValueOrigin,
    table: &Table,
    problems: &mut Problems,
) -> Option<ExternalDnsConfig> {
    let ident: Ident = problems.name(place, name, None)?;
    let path = format!("external_dns.{name}");
    let keys = ExternalDnsKeys::keys();
    let known: Vec<_> = keys.iter().map(|key| key.name).collect();
    let mut section = Section::new(&path, Some(table), &known, problems);
    let keys = ExternalDnsKeys::read(&mut section)?;
    if keys.domains.is_empty() {
        section.wrong("domains", "it names none", Some("write `domains = [\"apps.example.com\"]`"));
    }
    let tls = TlsConfig::of(keys.tls_cert, keys.tls_key, &mut section);
    let listen = keys.listen.0;
    if keys.token.is_none() && !is_loopback(&listen) {
        let hint = "write `token = { file = \"/run/secrets/external-dns\" }`, and the same token in the URL of external-dns";
        section.wrong(
            "token",
            "without it every machine may write, because it listens beyond loopback",
            Some(hint),
        );
    }
    let (domains, exclude_domains, token) = (keys.domains, keys.exclude_domains, keys.token);
    Some(ExternalDnsConfig { name: ident, listen, domains, exclude_domains, token, tls })
}

fn is_loopback(listen: &Listen) -> bool {
    let text = listen.to_string();
    text.starts_with("localhost:")
        || text.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
}

/// Refuses names that a source has too: both are sources.
pub(super) fn check_together(
    listeners: &[(&ValueOrigin, ExternalDnsConfig)],
    sources: &[(&ValueOrigin, SourceConfig)],
    problems: &mut Problems,
) {
    for (number, (place, one)) in listeners.iter().enumerate() {
        let name = one.name.as_str();
        if sources.iter().any(|(_, source)| source.name == one.name) || ["ledger", "manual"].contains(&name) {
            let message = format!("external_dns.{name} has the name of a source");
            problems.add(place, message, Some("give it another name".into()));
        }
        let same = |(_, other): &&(&ValueOrigin, ExternalDnsConfig)| {
            other.listen == one.listen && !other.listen.to_string().ends_with(":0")
        };
        if let Some((_, other)) = listeners.iter().take(number).find(same) {
            let message = format!("external_dns.{name}.listen: external_dns.{} listens there", other.name);
            problems.add(place, message, Some("give it another port".into()));
        }
    }
}
