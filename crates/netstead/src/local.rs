//! The store on this machine, and a server of our own on top of it for `--local`.

use std::{path::Path, sync::Arc};

use netstead_api::{
    Api, ServeOptions, Server,
    access::{NewToken, Role, Tokens},
};
use netstead_ledger::{Ledger, Options};
use netstead_model::{Span, SystemClock};
use netstead_store::{LocalStore, MemoryStore, Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::{
    admin_token,
    cli::Global,
    config::LedgerConfig,
    credentials::Credentials,
    failure::Failure,
    settings::Settings,
    state_dir::{credentials_dirs, make_private, variable},
};

/// Opens the store in `dir`, or one in memory. Only one process can have it.
pub(crate) async fn open_store(dir: Option<&Path>) -> anyhow::Result<Arc<dyn Store>> {
    let Some(dir) = dir else { return Ok(Arc::new(MemoryStore::new())) };
    let wrong =
        |reason: String| Failure::new(format!("the store in {} cannot be opened: {reason}", dir.display()));
    make_private(dir)
        .map_err(|error| wrong(error.to_string()).hint("name another directory with `--data-dir`"))?;
    match LocalStore::open(dir).await {
        Ok(store) => Ok(Arc::new(store)),
        Err(error @ StoreError::Locked { .. }) => {
            let hint = "a server runs on it: talk to that one (leave out `--local`), or stop it first";
            Err(wrong(error.to_string()).hint(hint).into())
        }
        Err(error @ StoreError::Damaged { .. }) => {
            let hint = "restore a backup into another directory with `netstead store restore`";
            Err(wrong(error.to_string()).hint(hint).into())
        }
        Err(error) => Err(wrong(error.to_string()).into()),
    }
}

/// Opens an existing store; to look at one that is not there would make it.
pub(crate) async fn open_existing(global: &Global) -> anyhow::Result<Arc<dyn Store>> {
    let dir = Settings::read(global.config.as_deref())?.data_dir(global);
    let Some(dir) = dir else { return Err(Failure::new("a store in memory ends with its server").into()) };
    // The user's state directory may hold credentials and no store.
    let of_a_store = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| !entry.file_name().to_string_lossy().contains("credentials"))
    };
    let there = std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.any(of_a_store));
    if !there {
        let message = format!("there is no store in {}", dir.display());
        return Err(Failure::new(message).hint("name its directory with `--data-dir`").into());
    }
    open_store(Some(&dir)).await
}

/// The ledger in a store.
pub(crate) async fn open_ledger(store: &Arc<dyn Store>, config: &LedgerConfig) -> anyhow::Result<Ledger> {
    let options =
        Options { retention: config.retention, max_events: config.max_events, ..Options::default() };
    Ok(Ledger::open(Arc::clone(store), SystemClock::shared(), options).await?)
}

/// The API on a port of loopback that nobody knows, for one command: the same path as with a server that runs.
#[derive(Debug)]
pub(crate) struct LocalServer {
    store: Arc<dyn Store>,
    ledger: Ledger,
    tokens: Tokens,
    server: Server,
    stop: CancellationToken,
    url: String,
    token: String,
    /// The token was made for this one command.
    made: Option<String>,
}

impl LocalServer {
    pub(crate) async fn start(global: &Global) -> anyhow::Result<Self> {
        let settings = Settings::read(global.config.as_deref())?;
        let dir = settings.data_dir(global);
        let store = open_store(dir.as_deref()).await?;
        let ledger = open_ledger(&store, &settings.config.ledger).await?;
        let tokens = Tokens::open(Arc::clone(&store), SystemClock::shared()).await?;
        let (token, made) = token(&tokens).await?;
        let stop = CancellationToken::new();
        let kind = dir.map_or_else(|| "memory".to_owned(), |dir| format!("local in {}", dir.display()));
        let api = Api::new(ledger.clone(), tokens.clone(), SystemClock::shared(), &kind);
        let options = ServeOptions { linger: std::time::Duration::ZERO, ..ServeOptions::new("127.0.0.1:0") };
        let server = netstead_api::serve(options, api, stop.clone()).await?;
        let url = format!("http://{}", server.address());
        Ok(Self { store, ledger, tokens, server, stop, url, token, made })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.server.ended().await {
            tracing::warn!(%error, "The server in this process ended badly.");
        }
        if let Some(id) = self.made
            && let Err(error) = self.tokens.revoke(&id).await
        {
            tracing::warn!(%error, "The token of this command could not be revoked; it ends by itself.");
        }
        self.ledger.close().await;
        self.store.close().await;
    }
}

/// A token of this user that works here, else a new one with its id.
async fn token(tokens: &Tokens) -> anyhow::Result<(String, Option<String>)> {
    let kept: Vec<_> = credentials_dirs(&variable).into_iter().map(Credentials::in_dir).collect();
    if let Some(token) = admin_token::find(tokens, &kept) {
        return Ok((token, None));
    }
    let new = NewToken {
        lifetime: Some(Span::from_secs(3600)),
        description: Some("of one command with --local".into()),
        ..NewToken::new(admin_token::SUBJECT, Role::Admin)
    };
    let (token, secret) = tokens.create(new).await?;
    Ok((secret.expose().to_owned(), Some(token.id)))
}
