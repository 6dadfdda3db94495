//! The server in this process that `--local` uses, on the same store and the same API.

use std::{sync::Arc, time::Duration};

use netstead_api::{
    Api, ServeOptions, Server,
    access::{NewToken, Role, Tokens},
};
use netstead_ledger::{Ledger, LedgerError, Options};
use netstead_model::{Span, SystemClock};
use netstead_store::Store;
use tokio_util::sync::CancellationToken;

use crate::{
    admin_token,
    cli::Global,
    config::LedgerConfig,
    credentials::Credentials,
    failure::Failure,
    loaded_config::LoadedConfig,
    node,
    state_dir::{credentials_dirs, variable},
    store_location::with_server_hint,
};

/// How long a server that just ended may keep the lead of a shared store.
const PATIENCE: Duration = Duration::from_secs(10);

/// The ledger in a store, led by this process.
async fn lead_ledger(store: &Arc<dyn Store>, config: &LedgerConfig) -> anyhow::Result<Ledger> {
    let ledger = follow_ledger(store, config, false).await?;
    let led = async {
        let epoch = store.lead().await.map_err(LedgerError::from)?;
        // While this process waited, the others may have agreed on a format that it does not understand. They can no
        // longer, now that it leads, and it has written nothing yet.
        node::check_format(&*store.snapshot().await?).await?;
        Ok(ledger.lead_in(epoch).await?)
    };
    match led.await {
        Ok(()) => Ok(ledger),
        Err(error) => {
            ledger.close().await;
            Err(error)
        }
    }
}

/// The ledger in a store, without taking the lead. The store is `exclusive` if no other process can have it open.
pub(crate) async fn follow_ledger(
    store: &Arc<dyn Store>,
    config: &LedgerConfig,
    exclusive: bool,
) -> anyhow::Result<Ledger> {
    let LedgerConfig { retention, max_events } = *config;
    let options = Options { retention, max_events, exclusive, ..Options::default() };
    Ok(Ledger::follow(Arc::clone(store), SystemClock::shared(), options).await?)
}

/// The API on a random port of loopback, for one command: the same path as with a running server.
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
        let settings = LoadedConfig::read(global.config.as_deref())?;
        let place = settings.store(global);
        // A slip in the name of a directory must not make a store there.
        let store = place.open_existing().await.map_err(with_server_hint)?;
        node::check_format(&*store.snapshot().await?).await?;
        let led = tokio::time::timeout(PATIENCE, lead_ledger(&store, &settings.config.ledger)).await;
        let ledger = match led {
            Ok(Ok(ledger)) => ledger,
            Ok(Err(error)) => {
                // It may lead, and others wait for that.
                store.close().await;
                return Err(error);
            }
            Err(_) => {
                let hint = "talk to that one: leave out `--local`, and name it with `--url`";
                return Err(Failure::new(format!("a server leads the store ({place})")).hint(hint).into());
            }
        };
        let tokens = Tokens::open(Arc::clone(&store), SystemClock::shared()).await?;
        let (token, made) = token(&tokens).await?;
        let stop = CancellationToken::new();
        let api = Api::new(ledger.clone(), tokens.clone(), SystemClock::shared(), &place.to_string());
        let options = ServeOptions { linger: Duration::ZERO, ..ServeOptions::new("127.0.0.1:0") };
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
pub(crate) async fn token(tokens: &Tokens) -> anyhow::Result<(String, Option<String>)> {
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
