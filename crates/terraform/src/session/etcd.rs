//! The part of the provider's configuration that terraform-provider-netaddr has: where the etcd is.

use std::{path::PathBuf, time::Duration};

use netstead_providers::netaddr::{Netaddr, NetaddrOptions, endpoint_url};
use netstead_wire::{Tls, etcd::EtcdConnection};

use super::origin::origin;
use crate::protocol::{Attribute, Diagnostic, Fields as _, Kind, Object, sentence};

/// As the original has it.
const SECONDS: i64 = 10;
const RETRIES: u32 = 10;
const MOST_SECONDS: i64 = 3600;

pub(super) fn attributes() -> Vec<Attribute> {
    let text = |name, description| Attribute::optional(name, Kind::Text, description);
    let number = |name, description| Attribute::optional(name, Kind::Number, description);
    vec![
        text(
            "endpoints",
            "The members of the etcd that `netaddr_*` use, with commas between them: `etcd-1:2379,etcd-2:2379`. One without `http://` means \
             TLS. Variable: `ETCDCTL_ENDPOINTS`.",
        ),
        text("username", "A user of etcd. A client certificate names one too. Variable: `ETCDCTL_USERNAME`."),
        text("password", "The password of `username`. Variable: `ETCDCTL_PASSWORD`.").sensitive(),
        text(
            "ca_cert",
            "A file with the certificates (PEM) that sign those of etcd, instead of the system's. Variable: `ETCDCTL_CACERT`.",
        ),
        text("cert", "A file with a client certificate (PEM). Variable: `ETCDCTL_CERT`."),
        text("key", "A file with the key of `cert` (PEM). Variable: `ETCDCTL_KEY`."),
        number(
            "connection_timeout",
            "How many seconds a connection to etcd may take to come up, `10` by default.",
        ),
        number("request_timeout", "How many seconds one request to etcd may take, `10` by default."),
        Attribute::optional(
            "strict",
            Kind::Bool,
            "`false`: a creation of `netaddr_*` takes over what is there, and overlapping ranges are a warning. `true` by default.",
        ),
    ]
}

pub(super) fn validate(config: &Object) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for name in ["connection_timeout", "request_timeout"] {
        if config.int(name).is_some_and(|seconds| !(1..=MOST_SECONDS).contains(&seconds)) {
            let detail = format!("It is a number of seconds from 1 to {MOST_SECONDS}.");
            found.push(Diagnostic::error(format!("`{name}` is not usable"), detail).at(name));
        }
    }
    found
}

/// `None` without endpoints.
pub(super) fn open(
    config: &Object,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Netaddr>, Diagnostic> {
    let setting = |attribute: &str, name: &str| {
        config.owned(attribute).or_else(|| variable(name)).filter(|value| !value.is_empty())
    };
    let Some(endpoints) = setting("endpoints", "ETCDCTL_ENDPOINTS") else { return Ok(None) };
    let (cert, key) = (setting("cert", "ETCDCTL_CERT"), setting("key", "ETCDCTL_KEY"));
    for (one, other, name, variable) in
        [(&cert, &key, "key", "ETCDCTL_KEY"), (&key, &cert, "cert", "ETCDCTL_CERT")]
    {
        if one.is_some() && other.is_none() {
            let detail = format!("Set it, or {variable}: a certificate and its key go together.");
            return Err(Diagnostic::error(format!("`{name}` is missing"), detail).at(name));
        }
    }
    let tls = Tls {
        ca_file: setting("ca_cert", "ETCDCTL_CACERT").map(PathBuf::from),
        client_cert: cert.map(PathBuf::from),
        client_key: key.map(PathBuf::from),
        ..Tls::default()
    };
    let user = setting("username", "ETCDCTL_USERNAME");
    let user = user.map(|user| (user, setting("password", "ETCDCTL_PASSWORD").unwrap_or_default()));
    let seconds = |name: &str| {
        let seconds = config.int(name).unwrap_or(SECONDS).clamp(1, MOST_SECONDS);
        Duration::from_secs(seconds.unsigned_abs())
    };
    let urls = endpoints.split(',').map(str::trim).filter(|one| !one.is_empty()).map(endpoint_url);
    let connection = EtcdConnection {
        user,
        tls,
        timeout: seconds("request_timeout"),
        connect_timeout: seconds("connection_timeout"),
        ..EtcdConnection::new(urls)
    };
    let retries = config.int("retries").and_then(|retries| u32::try_from(retries).ok()).unwrap_or(RETRIES);
    let options = NetaddrOptions { retries, origin: Some(origin()), ..NetaddrOptions::new(connection) };
    Netaddr::new(options).map(Some).map_err(|error| {
        let text = error.to_string();
        let names = ["ca_file", "client_cert", "client_key"].into_iter().zip(["ca_cert", "cert", "key"]);
        let at = names.into_iter().find(|(key, _)| text.starts_with(&format!("{key}:")));
        let (at, text) = match at {
            Some((key, name)) => (name, text.replacen(key, name, 1)),
            None => ("endpoints", text),
        };
        Diagnostic::error("the provider cannot use its configuration", sentence(&text)).at(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(variables: &[(&str, &str)]) -> String {
        let variable =
            |name: &str| variables.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned());
        open(&Object::new(), &variable).unwrap_err().summary
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let said = refused(&[("ETCDCTL_ENDPOINTS", "a:2379"), ("ETCDCTL_CERT", "/c.pem")]);
        assert_eq!(said, "`key` is missing");
        let said = refused(&[("ETCDCTL_ENDPOINTS", "a:2379"), ("ETCDCTL_CACERT", "/nowhere.pem")]);
        assert_eq!(said, "the provider cannot use its configuration");
    }
}
