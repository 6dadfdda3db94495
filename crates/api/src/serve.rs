//! Listening, with or without TLS, and ending well.

mod starting;
mod tls;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum_server::{
    Handle,
    accept::NoDelayAcceptor,
    tls_rustls::{RustlsAcceptor, RustlsConfig},
};
use hyper_util::rt::TokioTimer;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{Api, http::host_check::HostCheck};

/// How long a client may take to say what it wants.
const HEADERS: Duration = Duration::from_secs(30);

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
    /// How long connections are still taken after the call to end, so that somebody can see `/readyz` fail.
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
    work: JoinHandle<Result<(), ServeError>>,
}

impl Server {
    /// Where it listens, with the port it got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for its end, which the `shutdown` of [`serve`] brings about.
    pub async fn ended(self) -> Result<(), ServeError> {
        match self.work.await {
            Ok(result) => result,
            Err(error) => Err(ServeError::Broken(std::io::Error::other(error))),
        }
    }
}

/// An address that is ours. Whoever connects waits until [`Bound::serve`].
#[derive(Debug)]
pub struct Bound {
    options: ServeOptions,
    tls: Option<RustlsConfig>,
    listener: std::net::TcpListener,
    address: SocketAddr,
}

/// Takes the address, and answers nobody yet: what callers need to know can be left for them first.
pub async fn bind(options: ServeOptions) -> Result<Bound, ServeError> {
    let failed = |source| ServeError::Bind { listen: options.listen.clone(), source };
    let tls = match &options.tls {
        Some(files) => Some(tls::load(files).await?),
        None => None,
    };
    let listener = TcpListener::bind(&options.listen).await.map_err(failed)?;
    let listener = listener.into_std().map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Bound { options, tls, listener, address })
}

/// [`bind`] and [`Bound::serve`] in one.
pub async fn serve(
    options: ServeOptions,
    api: Api,
    shutdown: CancellationToken,
) -> Result<Server, ServeError> {
    bind(options).await?.serve(&api, shutdown)
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
    pub fn serve(self, api: &Api, shutdown: CancellationToken) -> Result<Server, ServeError> {
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
        let listener = self.listener.try_clone().map_err(failed)?;
        let options =
            ServeOptions { linger: Duration::ZERO, grace: Duration::from_secs(1), ..self.options.clone() };
        let clone = Self { options, tls: self.tls.clone(), listener, address: self.address };
        clone.answer(starting::router(Arc::new(reason)), done)
    }

    /// Answers those who ask as they asked dnsweaver: `/health`, `/ready` and `/metrics`, and nothing else.
    pub fn serve_probes(self, api: &Api, shutdown: CancellationToken) -> Result<Server, ServeError> {
        let router = api.probes(self.host_check(), shutdown.clone());
        self.answer(router, shutdown)
    }

    fn host_check(&self) -> HostCheck {
        let Self { options, tls, address, .. } = self;
        HostCheck::new(&options.names, &options.listen, tls.is_some(), address.ip().is_loopback())
    }

    fn answer(self, router: axum::Router, shutdown: CancellationToken) -> Result<Server, ServeError> {
        let Self { options, tls, listener, address } = self;
        let service = router.into_make_service();
        let handle = Handle::new();
        let failed = |source| ServeError::Bind { listen: options.listen.clone(), source };
        let mut server = axum_server::from_tcp(listener).map_err(failed)?.handle(handle.clone());
        server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEADERS);
        server.http_builder().http2().timer(TokioTimer::new()).keep_alive_interval(HEADERS);

        let ended = CancellationToken::new();
        if let Some((files, config)) = options.tls.zip(tls.clone()) {
            tokio::spawn(ended.clone().run_until_cancelled_owned(tls::reload(files, config)));
        }
        tokio::spawn(ended.clone().run_until_cancelled_owned(async move {
            shutdown.cancelled().await;
            tokio::time::sleep(options.linger).await;
            handle.graceful_shutdown(Some(options.grace));
        }));
        info!(%address, tls = tls.is_some(), "Listening.");
        let work = tokio::spawn(async move {
            let _ended = ended.drop_guard();
            match tls {
                Some(config) => server.acceptor(tls_acceptor(config)).serve(service).await,
                None => server.acceptor(NoDelayAcceptor::new()).serve(service).await,
            }
            .map_err(ServeError::Broken)
        });
        Ok(Server { address, work })
    }
}

fn tls_acceptor(config: RustlsConfig) -> RustlsAcceptor<NoDelayAcceptor> {
    RustlsAcceptor::new(config).acceptor(NoDelayAcceptor::new())
}
