//! One connection: its handshake, its first request in time, its requests.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    response::Response,
};
use hyper::{
    body::{Frame, Incoming, SizeHint},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use netstead_wire::{ActiveConnection, RequestInProgress};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Notify,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;
use tracing::debug;

use super::listener::Shared;
use crate::PeerAddress;

pub(super) struct Connection {
    place: Arc<ActiveConnection>,
    shared: Arc<Shared>,
    asked: Arc<Notify>,
}

impl Connection {
    pub(super) fn new(place: ActiveConnection, shared: Arc<Shared>) -> Self {
        Self { place: Arc::new(place), shared, asked: Arc::default() }
    }

    /// Serves it until either end, or a limit, ends it.
    pub(super) async fn run(self, stream: TcpStream) {
        let peer = self.place.peer();
        tokio::select! {
            biased;
            () = self.silent_too_long() => {
                self.place.note_silent();
                debug!(%peer, "A connection was closed: its first request did not come in time.");
            }
            () = self.place.displaced() => {
                debug!(%peer, "A connection was closed: it was idle longest, and others wanted its place.");
            }
            () = self.serve(stream) => {}
        }
    }

    /// Never ends once a request has come.
    async fn silent_too_long(&self) {
        if timeout(self.shared.first_request, self.asked.notified()).await.is_ok() {
            std::future::pending::<()>().await;
        }
    }

    async fn serve(&self, stream: TcpStream) {
        // It only delays small answers if it cannot be set.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.shared.tls else { return self.serve_http(stream).await };
        let handshake = TlsAcceptor::from(tls.config()).accept(stream);
        match self.shared.stopping.run_until_cancelled(handshake).await {
            Some(Ok(stream)) => self.serve_http(stream).await,
            Some(Err(error)) => debug!(peer = %self.place.peer(), %error, "A TLS handshake failed."),
            None => {}
        }
    }

    async fn serve_http(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let in_progress = self.place.begin_request();
            self.asked.notify_one();
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(PeerAddress(self.place.peer()));
            answer(self.shared.router.clone(), request, in_progress)
        });
        let serving = self.shared.http.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(serving);
        let ended = tokio::select! {
            ended = &mut serving => ended,
            () = self.shared.stopping.cancelled() => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
        if let Err(error) = ended {
            debug!(peer = %self.place.peer(), %error, "A connection ended early.");
        }
    }
}

async fn answer(
    router: axum::Router,
    request: Request,
    in_progress: RequestInProgress,
) -> Result<Response, Infallible> {
    let answer = router.oneshot(request).await?;
    Ok(answer.map(|body| Body::new(HeldBody { body, _in_progress: in_progress })))
}

/// The body of an answer. The request is in progress until the last byte of it is sent.
struct HeldBody {
    body: Body,
    _in_progress: RequestInProgress,
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
