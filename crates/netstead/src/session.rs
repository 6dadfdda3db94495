//! [`Session`]: a client for a running server, or for one in this process with `--local`.

use std::time::Duration;

use netstead_client::{Client, Options, canonical_url};

use crate::{
    cli::{Global, REQUEST},
    config::Secret,
    credentials::Credentials,
    local_server::LocalServer,
    server_url,
    state_dir::{credentials_dirs, variable},
};

/// The client, and the server if it is ours.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    own: Option<LocalServer>,
}

impl Session {
    /// Connects to the server that was named, or opens the store itself with `--local`.
    pub(crate) async fn open(global: &Global) -> anyhow::Result<Self> {
        if global.local {
            let own = LocalServer::start(global).await?;
            let client = Client::new(own.url(), Some(own.token()), options(global))?;
            return Ok(Self { client, own: Some(own) });
        }
        Ok(Self { client: connect(global).await?, own: None })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Ends a server of our own and gives the store back.
    pub(crate) async fn close(self) {
        if let Some(own) = self.own {
            own.stop().await;
        }
    }
}

/// A client for the server that was named, or that is found here, with its token.
pub(crate) async fn connect(global: &Global) -> anyhow::Result<Client> {
    let url = server_url::find(global).await?;
    let url = url.as_str();
    let several = url.contains(',');
    if global.token.is_none() && global.token_file.is_none() && !several {
        await_start(global, url).await?;
    }
    let token = token(global, url)?;
    Ok(Client::new(url, token.as_deref(), options(global))?)
}

/// A server on this machine may have been started a moment ago: it leaves its token before it answers, so the token is
/// looked for once it does.
async fn await_start(global: &Global, url: &str) -> anyhow::Result<()> {
    if server_url::is_loopback(&canonical_url(url)?) {
        let options = Options { retries: 5, backoff: Duration::from_millis(50), ..options(global) };
        // That it answers is enough. That it does not is said by the command itself.
        let _ = Client::new(url, None, options)?.alive().await;
    }
    Ok(())
}

pub(crate) fn options(global: &Global) -> Options {
    let timeout = Duration::from(global.timeout.unwrap_or(REQUEST)).max(Duration::from_millis(1));
    Options {
        timeout,
        ca_file: global.ca_file.clone(),
        insecure: global.insecure,
        stale: global.stale,
        retries: 2,
        ..Options::default()
    }
}

/// The token that was given, else the one that a server of this user, or of the system, left for this URL.
fn token(global: &Global, url: &str) -> anyhow::Result<Option<String>> {
    let given = match (&global.token, &global.token_file) {
        (Some(token), _) => Some(Secret::Value(token.clone())),
        (None, Some(file)) => Some(Secret::File(file.clone())),
        (None, None) => None,
    };
    if let Some(secret) = given {
        let value = secret.reveal_with(&variable).map_err(anyhow::Error::msg)?;
        return Ok(Some(value.expose().to_owned()));
    }
    // All of several nodes have the same tokens.
    for url in url.split(',') {
        let url = canonical_url(url.trim())?;
        for dir in credentials_dirs(&variable) {
            if let Some(token) = Credentials::in_dir(dir).token(&url)? {
                return Ok(Some(token));
            }
        }
    }
    Ok(None)
}
