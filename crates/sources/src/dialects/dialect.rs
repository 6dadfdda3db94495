//! The dialects there are.

use std::{fmt, str::FromStr};

use netstead_model::ParseError;

/// One tool's way of writing names into labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// `netstead.*`: our own.
    Netstead,
    /// `dnsweaver.*`.
    Dnsweaver,
    /// The annotations of external-dns, written as labels.
    ExternalDns,
    /// The routers of Traefik.
    Traefik,
    /// The sites of caddy-docker-proxy.
    Caddy,
    /// `VIRTUAL_HOST` of nginx-proxy.
    NginxProxy,
}

impl Dialect {
    /// In the order in which they win: what was written for the DNS before what was written for a proxy.
    pub const ALL: [Self; 6] =
        [Self::Netstead, Self::Dnsweaver, Self::ExternalDns, Self::Traefik, Self::Caddy, Self::NginxProxy];

    /// As it is written in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Netstead => "netstead",
            Self::Dnsweaver => "dnsweaver",
            Self::ExternalDns => "external-dns",
            Self::Traefik => "traefik",
            Self::Caddy => "caddy",
            Self::NginxProxy => "nginx-proxy",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl netstead_settings::TextShape for Dialect {}

impl FromStr for Dialect {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::ALL.into_iter().find(|dialect| dialect.as_str() == text).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|dialect| dialect.as_str()).collect();
            ParseError::new("label dialect", text, None, format!("use one of {}", known.join(", ")))
        })
    }
}

impl serde::Serialize for Dialect {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
