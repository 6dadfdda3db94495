//! [`TlsListener`]: answers over TLS, with the newest certificate.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use netstead_wire::Acceptor;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::debug;

/// The API server keeps few connections; others wait in the kernel's queue.
const CONNECTIONS: usize = 256;
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may take for the head of a request.
const HEADERS: Duration = Duration::from_secs(30);
/// How long requests in progress may take to end.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct TlsListener {
    acceptor: Acceptor,
    /// None until there is a certificate.
    config: watch::Receiver<Option<Arc<ServerConfig>>>,
}

impl TlsListener {
    pub(super) async fn bind(
        address: SocketAddr,
        config: watch::Receiver<Option<Arc<ServerConfig>>>,
    ) -> io::Result<Self> {
        Ok(Self { acceptor: Acceptor::new("webhook", TcpListener::bind(address).await?), config })
    }

    pub(super) async fn serve(self, router: Router, stop: CancellationToken) {
        let mut http = Builder::new(TokioExecutor::new());
        http.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS);
        http.http2().timer(TokioTimer::new()).keep_alive_interval(HEADERS);
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let next = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, self.acceptor.accept().await)
            };
            let Some((place, (stream, _))) = stop.run_until_cancelled(next).await else { break };
            let config = self.config.borrow().clone();
            let (http, router, stop) = (http.clone(), router.clone(), stop.clone());
            connections.spawn(async move {
                let _place = place;
                // Without a certificate there is no answer; the API server asks again.
                if let Some(config) = config {
                    serve_connection(stream, config, &http, router, stop).await;
                }
            });
            while connections.try_join_next().is_some() {}
        }
        let _ = timeout(FAREWELL, async { while connections.join_next().await.is_some() {} }).await;
    }
}

async fn serve_connection(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    http: &Builder<TokioExecutor>,
    router: Router,
    stop: CancellationToken,
) {
    let handshake = timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream));
    let stream = match stop.run_until_cancelled(handshake).await {
        Some(Ok(Ok(stream))) => stream,
        Some(Ok(Err(error))) => {
            debug!(%error, "A TLS handshake with the webhook failed.");
            return;
        }
        Some(Err(_)) | None => return,
    };
    let serving = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "A connection to the webhook ended early.");
    }
}
