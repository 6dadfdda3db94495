//! Finds the server of a command that names none.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use anyhow::bail;
use netstead_client::{Client, Options, canonical_url};

use crate::{
    cli::{Global, URL},
    config::{ApiConfig, FoundConfig, Listen},
    credentials::Credentials,
    loaded_config::LoadedConfig,
    state_dir::{credentials_dirs, variable},
};

/// How long the server that was started last may take to say that it lives.
const LIVES: Duration = Duration::from_secs(1);

/// The first of these that there is: `--url`, the server of this environment, that of the configuration, the last one that
/// was started here if it answers, and the default.
pub(crate) async fn find(global: &Global) -> anyhow::Result<String> {
    if let Some(url) = &global.url {
        return Ok(url.clone());
    }
    if let Some(url) = variable("NETSTEAD_LISTEN").and_then(|listen| url_of("http", &listen)) {
        return Ok(url);
    }
    if let Some(url) = configured(global) {
        // The file may lie in a directory of others: it does not decide where a token is sent.
        let given = global.token.is_some() || global.token_file.is_some();
        if given && !is_trusted(&url)? {
            bail!(
                "the configuration here names the server at {url}, and your token is sent only to a server that \
                 you name: add `--url {url}`"
            );
        }
        return Ok(url);
    }
    for dir in credentials_dirs(&variable) {
        if let Some(url) = Credentials::in_dir(dir).last()
            && answers(&url).await
        {
            return Ok(url);
        }
    }
    Ok(URL.to_owned())
}

/// Whether the server is on this machine, or left its token for this user.
fn is_trusted(url: &str) -> anyhow::Result<bool> {
    let url = canonical_url(url)?;
    if is_loopback(&url) {
        return Ok(true);
    }
    for dir in credentials_dirs(&variable) {
        if Credentials::in_dir(dir).token(&url)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a URL in its canonical form leads to this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let place = rest.split('/').next().unwrap_or_default();
    let address = place.parse::<SocketAddr>().map(|address| address.ip());
    let address = address.or_else(|_| place.trim_matches(['[', ']']).parse::<IpAddr>());
    address.is_ok_and(|address| address.is_loopback())
}

/// Where the configuration has the server listen. A file that `plan --config` tries out is not that of the server.
fn configured(global: &Global) -> Option<String> {
    let named = global.config.as_deref().filter(|_| !global.config_typed);
    let settings = LoadedConfig::read_silently(named)?;
    matches!(settings.found, FoundConfig::File { .. }).then_some(())?;
    let ApiConfig { listen, hosts, tls, .. } = &settings.config.api;
    let listen = listen.to_string();
    let Some(name) = hosts.first().filter(|_| tls.is_some()) else {
        return url_of(if tls.is_some() { "https" } else { "http" }, &listen);
    };
    // A certificate is for a name.
    let (_, port) = listen.rsplit_once(':').filter(|(_, port)| *port != "0")?;
    Some(format!("https://{name}:{port}"))
}

/// Where a server that is told to listen there is asked.
fn url_of(scheme: &str, listen: &str) -> Option<String> {
    let listen = listen.parse::<Listen>().ok()?.to_string();
    let (host, port) = listen.rsplit_once(':')?;
    let host = if matches!(host, "0.0.0.0" | "[::]") { "127.0.0.1" } else { host };
    (port != "0").then(|| format!("{scheme}://{host}:{port}"))
}

async fn answers(url: &str) -> bool {
    // Any certificate will do: nothing is sent, and the command itself looks at it.
    let options = Options { timeout: LIVES, retries: 0, insecure: true, ..Options::default() };
    match Client::new(url, None, options) {
        Ok(client) => client.alive().await.is_ok(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_loopback() {
        for url in ["http://127.0.0.1:5301", "https://127.9.9.9", "http://[::1]:5301/below", "http://[::1]"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["http://127.0.0.1.example.com:5301", "http://10.0.0.1:5301", "https://ns.example.com"] {
            assert!(!is_loopback(url), "{url}");
        }
    }

    #[test]
    fn a_server_is_asked_where_it_listens() {
        for (listen, url) in [
            ("0.0.0.0:6301", Some("http://127.0.0.1:6301")),
            ("[::]:6301", Some("http://127.0.0.1:6301")),
            ("10.0.3.1:6301", Some("http://10.0.3.1:6301")),
            ("0.0.0.0:0", None),
            ("nonsense", None),
        ] {
            assert_eq!(url_of("http", listen).as_deref(), url, "{listen}");
        }
    }
}
