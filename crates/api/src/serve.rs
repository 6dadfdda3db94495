//! Listens, with or without TLS, and shuts down gracefully.

mod connection;
mod listener;
mod starting;
mod tls;

use std::{net::SocketAddr, os::fd::AsFd as _, path::PathBuf, sync::Arc, time::Duration};

use netstead_model::Ident;
use netstead_wire::{Acceptor, ConnectionLimits, Connections};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::info;

use self::{listener::Listener, tls::ServerTls};
use crate::{Api, ExternalDns, http::host_check::HostCheck};

/// Connections at one time, unless the number of files is smaller than such a number needs.
pub const CONNECTIONS: usize = 4096;
/// How long a new connection may take until its first request is there, with the handshake of TLS.
const FIRST_REQUEST: Duration = Duration::from_secs(10);

/// Where to listen, and how.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// `127.0.0.1:5301`, `[::]:5301`, `ipam.example.net:5301`; port 0 takes a free one.
    pub listen: String,
    /// Names beside the listen host that clients may call us by.
    pub names: Vec<String>,
    pub tls: Option<TlsFiles>,
    /// Most bytes of a request's body.
    pub max_body: usize,
    /// How many connections there may be. Several listeners may share one value.
    pub connections: Connections,
    /// How long a new connection may take until the head of its first request is there.
    pub first_request: Duration,
    /// How long connections are still taken after the call to end, so that a load balancer can see `/readyz` fail.
    pub linger: Duration,
    /// How long running requests have to end after that.
    pub grace: Duration,
}

/// A certificate chain and its key, both PEM. They are read again when they change.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// How often the files are looked at.
    pub interval: Duration,
}

impl ServeOptions {
    pub fn new(listen: impl Into<String>) -> Self {
        Self {
            listen: listen.into(),
            names: Vec::new(),
            tls: None,
            max_body: crate::http::body::BULK,
            connections: Connections::new(ConnectionLimits::new(CONNECTIONS)),
            first_request: FIRST_REQUEST,
            linger: Duration::from_millis(250),
            grace: Duration::from_secs(30),
        }
    }
}

impl TlsFiles {
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate: certificate.into(), key: key.into(), interval: Duration::from_secs(10) }
    }
}

/// Why a listener does not listen: one variant per thing a person does next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    #[error("`{listen}` cannot be listened on")]
    Bind { listen: String, source: std::io::Error },
    #[error("the TLS file {} cannot be used: {reason}", path.display())]
    Tls { path: PathBuf, reason: String },
    #[error("the listener broke")]
    Broken(#[source] std::io::Error),
}

/// A listener at work.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    work: JoinHandle<()>,
}

impl Server {
    /// Where it listens, with the port it got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for its end, which the `shutdown` of [`serve`] brings about.
    pub async fn ended(self) -> Result<(), ServeError> {
        self.work.await.map_err(|error| ServeError::Broken(std::io::Error::other(error)))
    }
}

/// A bound address. Clients that connect wait until [`Bound::serve`].
#[derive(Debug)]
pub struct Bound {
    options: ServeOptions,
    tls: Option<ServerTls>,
    listener: TcpListener,
    address: SocketAddr,
}

/// Binds the address and answers no request yet: tokens can be left for callers first.
pub async fn bind(options: ServeOptions) -> Result<Bound, ServeError> {
    let failed = |source| ServeError::Bind { listen: options.listen.clone(), source };
    let tls = match &options.tls {
        Some(files) => Some(ServerTls::load(files).await?),
        None => None,
    };
    let listener = TcpListener::bind(&options.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Bound { options, tls, listener, address })
}

/// [`bind`] and [`Bound::serve`] in one.
pub async fn serve(
    options: ServeOptions,
    api: Api,
    shutdown: CancellationToken,
) -> Result<Server, ServeError> {
    Ok(bind(options).await?.serve(&api, shutdown))
}

impl Bound {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers to this name too.
    #[must_use]
    pub fn also_called(mut self, name: Option<String>) -> Self {
        self.options.names.extend(name);
        self
    }

    /// Answers, from now on.
    ///
    /// Once `shutdown` is cancelled, `/readyz` fails at once, streams and waiting claims end, and running requests
    /// have [`ServeOptions::grace`] to do so.
    pub fn serve(self, api: &Api, shutdown: CancellationToken) -> Server {
        let router = api.router(self.host_check(), self.options.max_body, shutdown.clone());
        self.answer(router, shutdown)
    }

    /// Answers while there is no ledger yet, until `done`: `/healthz` says that the process lives, and everything else
    /// is `503 not-ready` with the reason. The address stays ours.
    pub fn serve_starting(
        &self,
        reason: impl Fn() -> String + Send + Sync + 'static,
        done: CancellationToken,
    ) -> Result<Server, ServeError> {
        let failed = |source| ServeError::Bind { listen: self.options.listen.clone(), source };
        let socket = self.listener.as_fd().try_clone_to_owned().map_err(failed)?;
        let listener = TcpListener::from_std(socket.into()).map_err(failed)?;
        let options =
            ServeOptions { linger: Duration::ZERO, grace: Duration::from_secs(1), ..self.options.clone() };
        let clone = Self { options, tls: self.tls.clone(), listener, address: self.address };
        Ok(clone.answer(starting::router(Arc::new(reason)), done))
    }

    /// Answers those who ask as they asked dnsweaver: `/health`, `/ready` and `/metrics`, and nothing else.
    pub fn serve_probes(self, api: &Api, shutdown: CancellationToken) -> Server {
        let router = api.probes(self.host_check(), shutdown.clone());
        self.answer(router, shutdown)
    }

    /// Answers external-dns, which writes its endpoints into this source of the engine.
    pub fn serve_external_dns(
        self,
        tables: &ExternalDns,
        source: &Ident,
        shutdown: CancellationToken,
    ) -> Server {
        self.answer(tables.listener_routes(source), shutdown)
    }

    fn host_check(&self) -> HostCheck {
        let Self { options, tls, address, .. } = self;
        HostCheck::new(&options.names, &options.listen, tls.is_some(), address.ip().is_loopback())
    }

    fn answer(self, router: axum::Router, shutdown: CancellationToken) -> Server {
        let Self { options, tls, listener, address } = self;
        let reloading = CancellationToken::new();
        if let Some((files, tls)) = options.tls.clone().zip(tls.clone()) {
            tokio::spawn(reloading.clone().run_until_cancelled_owned(tls.reload(files)));
        }
        info!(%address, tls = tls.is_some(), "Listening.");
        let acceptor = Acceptor::new("API", listener);
        let listener = Listener::new(acceptor, router, tls, &options);
        let work = tokio::spawn(async move {
            let _reloading = reloading.drop_guard();
            let last_call = async {
                shutdown.cancelled().await;
                tokio::time::sleep(options.linger).await;
            };
            listener.run(last_call, options.grace).await;
        });
        Server { address, work }
    }
}
