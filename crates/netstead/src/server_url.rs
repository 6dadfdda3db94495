//! Finds the server of a command that names none.

use std::time::Duration;

use netstead_client::{Client, Options};

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
pub(crate) async fn find(global: &Global) -> String {
    if let Some(url) = &global.url {
        return url.clone();
    }
    let listens = variable("NETSTEAD_LISTEN").and_then(|listen| url_of("http", &listen));
    if let Some(url) = listens.or_else(|| configured(global)) {
        return url;
    }
    for dir in credentials_dirs(&variable) {
        if let Some(url) = Credentials::in_dir(dir).last()
            && answers(&url).await
        {
            return url;
        }
    }
    URL.to_owned()
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
