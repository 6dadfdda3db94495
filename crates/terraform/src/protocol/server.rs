//! Serves the socket: connections, gRPC methods by their path, and the end.
//!
//! Stop and Shutdown are two things. `StopProvider` asks for nothing to be begun any more, and the calls that run end by
//! themselves: their results belong into Terraform's state. `Shutdown` comes when Terraform needs nothing more; the process ends
//! after the calls that still run.

use std::{
    convert::Infallible,
    future::Future,
    io::{self, Write as _},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use prost::Message;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixListener,
    signal::unix::{SignalKind, signal},
    time::{interval, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::{
    Request, Response, Status,
    body::Body,
    codegen::http,
    server::{Grpc, UnaryService},
};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::{
    handshake::{Handshake, HandshakeError, first_line},
    messages::{HealthAnswer, Nothing, StopAnswer},
    plugin::Plugin,
};

/// The largest message either side may send. A plan of one resource with many thousand addresses fits.
const MAX_MESSAGE: usize = 256 << 20;

/// How long the provider may take to end what it has.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// Seconds without a connection after which Terraform is gone: after it had one, and before.
const AFTER_LAST: u32 = 5;
const BEFORE_FIRST: u32 = 60;

/// Serves `plugin` until Terraform ends it.
pub async fn serve<S: Send + Sync + 'static>(
    plugin: Plugin<S>,
    handshake: Handshake,
) -> Result<(), HandshakeError> {
    // The directory is for its owner alone, and is removed with the socket in it.
    let dir = match &handshake.socket_dir {
        Some(parent) => tempfile::Builder::new().prefix("netstead-tf").tempdir_in(parent),
        None => tempfile::Builder::new().prefix("netstead-tf").tempdir(),
    };
    let dir = dir.map_err(HandshakeError::Socket)?;
    let socket = dir.path().join("s");
    let listener = UnixListener::bind(&socket).map_err(HandshakeError::Socket)?;
    let tls = handshake.tls()?;
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", first_line(&socket, tls.as_ref()))
        .and_then(|()| stdout.flush())
        .map_err(HandshakeError::Socket)?;
    let acceptor = tls.map(|tls| TlsAcceptor::from(tls.config));
    let (end, tasks) = (CancellationToken::new(), TaskTracker::new());
    let methods = Methods { plugin: Arc::new(plugin), end: end.clone() };
    // Ctrl-C reaches the whole group of processes. Terraform itself says what it means for us.
    let mut interrupts = signal(SignalKind::interrupt()).map_err(HandshakeError::Socket)?;
    let mut terminations = signal(SignalKind::terminate()).map_err(HandshakeError::Socket)?;
    let mut seconds = interval(Duration::from_secs(1));
    let mut idle = Idle::default();
    loop {
        let accepted = tokio::select! {
            () = end.cancelled() => break,
            _ = seconds.tick() => if idle.is_over(tasks.len()) { break } else { continue },
            _ = interrupts.recv() => continue,
            _ = terminations.recv() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else { continue };
        let (methods, acceptor, end) = (methods.clone(), acceptor.clone(), end.clone());
        tasks.spawn(async move {
            match acceptor {
                None => connection(stream, methods, end).await,
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => connection(stream, methods, end).await,
                    Err(error) => eprintln!("[WARN] a client of the provider's socket was refused: {error}"),
                },
            }
        });
    }
    end.cancel();
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// A Terraform that was killed sends no Shutdown. It has one connection, so the end of that is the end of it.
#[derive(Debug, Default)]
struct Idle {
    connected: bool,
    seconds: u32,
}

impl Idle {
    /// Asked once a second with the number of connections.
    fn is_over(&mut self, connections: usize) -> bool {
        if connections > 0 {
            *self = Self { connected: true, seconds: 0 };
            return false;
        }
        self.seconds += 1;
        self.seconds > if self.connected { AFTER_LAST } else { BEFORE_FIRST }
    }
}

async fn connection<S: Send + Sync + 'static>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    methods: Methods<S>,
    end: CancellationToken,
) {
    let service = service_fn(move |request| methods.clone().answer(request));
    let builder = auto::Builder::new(TokioExecutor::new()).http2_only();
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = end.cancelled() => None,
    };
    if ended.is_none() {
        // Answers to running calls still leave.
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

struct Methods<S: Sync> {
    plugin: Arc<Plugin<S>>,
    end: CancellationToken,
}

impl<S: Sync> Clone for Methods<S> {
    fn clone(&self) -> Self {
        Self { plugin: Arc::clone(&self.plugin), end: self.end.clone() }
    }
}

impl<S: Send + Sync + 'static> Methods<S> {
    async fn answer(self, request: http::Request<Incoming>) -> Result<http::Response<Body>, Infallible> {
        let request = request.map(Body::new);
        let plugin = self.plugin;
        Ok(match request.uri().path() {
            "/tfplugin6.Provider/GetMetadata" => {
                unary(request, async move |_: Nothing| plugin.metadata()).await
            }
            "/tfplugin6.Provider/GetProviderSchema" => {
                unary(request, async move |_: Nothing| plugin.schema()).await
            }
            "/tfplugin6.Provider/GetResourceIdentitySchemas" => {
                unary(request, async move |_: Nothing| plugin.identity_schemas()).await
            }
            "/tfplugin6.Provider/UpgradeResourceIdentity" => {
                unary(request, async move |asked| plugin.upgrade_identity(&asked)).await
            }
            "/tfplugin6.Provider/ValidateProviderConfig" => {
                unary(request, async move |asked| plugin.validate_provider(&asked)).await
            }
            "/tfplugin6.Provider/ValidateResourceConfig" => {
                unary(request, async move |asked| plugin.validate_resource(&asked)).await
            }
            "/tfplugin6.Provider/ValidateDataResourceConfig" => {
                unary(request, async move |asked| plugin.validate_data_source(&asked)).await
            }
            "/tfplugin6.Provider/UpgradeResourceState" => {
                unary(request, async move |asked| plugin.upgrade(&asked)).await
            }
            "/tfplugin6.Provider/ConfigureProvider" => {
                unary(request, async move |asked| plugin.configure(&asked)).await
            }
            "/tfplugin6.Provider/ReadResource" => {
                unary(request, async move |asked| plugin.read(asked).await).await
            }
            "/tfplugin6.Provider/PlanResourceChange" => {
                unary(request, async move |asked| plugin.plan(asked).await).await
            }
            "/tfplugin6.Provider/ApplyResourceChange" => {
                unary(request, async move |asked| plugin.apply(asked).await).await
            }
            "/tfplugin6.Provider/ImportResourceState" => {
                unary(request, async move |asked| plugin.import(&asked)).await
            }
            "/tfplugin6.Provider/MoveResourceState" => {
                unary(request, async move |asked| plugin.move_state(&asked)).await
            }
            "/tfplugin6.Provider/ReadDataSource" => {
                unary(request, async move |asked| plugin.read_data(asked).await).await
            }
            "/tfplugin6.Provider/ValidateEphemeralResourceConfig" => {
                unary(request, async move |asked| plugin.validate_ephemeral(&asked)).await
            }
            "/tfplugin6.Provider/OpenEphemeralResource" => {
                unary(request, async move |asked| plugin.open_ephemeral(asked).await).await
            }
            "/tfplugin6.Provider/RenewEphemeralResource" => {
                unary(request, async move |asked| plugin.renew_ephemeral(asked).await).await
            }
            "/tfplugin6.Provider/CloseEphemeralResource" => {
                unary(request, async move |asked| plugin.close_ephemeral(asked).await).await
            }
            "/tfplugin6.Provider/GetFunctions" => {
                unary(request, async move |_: Nothing| plugin.functions()).await
            }
            "/tfplugin6.Provider/CallFunction" => {
                unary(request, async move |asked| plugin.call(&asked)).await
            }
            "/tfplugin6.Provider/StopProvider" => {
                unary(request, async move |_: Nothing| {
                    plugin.stop();
                    StopAnswer::default()
                })
                .await
            }
            "/plugin.GRPCController/Shutdown" => {
                let end = self.end;
                unary(request, async move |_: Nothing| {
                    // Terraform ends a process that takes longer than two seconds.
                    let _closed = timeout(CLOSE_TIME, plugin.close()).await;
                    end.cancel();
                    Nothing {}
                })
                .await
            }
            "/grpc.health.v1.Health/Check" => {
                unary(request, async move |_: Nothing| HealthAnswer { status: 1 }).await
            }
            _ => Status::unimplemented("this provider has no such method").into_http(),
        })
    }
}

/// One method: a message in, a message out.
async fn unary<Q, A, F, Fut>(request: http::Request<Body>, method: F) -> http::Response<Body>
where
    Q: Message + Default + 'static,
    A: Message + Default + 'static,
    F: FnOnce(Q) -> Fut + Send + 'static,
    Fut: Future<Output = A> + Send + 'static,
{
    let mut grpc = Grpc::new(ProstCodec::<A, Q>::default())
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    grpc.unary(Once(Some(method)), request).await
}

/// A method as tonic wants it. It is called once.
struct Once<F>(Option<F>);

impl<Q, A, F, Fut> UnaryService<Q> for Once<F>
where
    F: FnOnce(Q) -> Fut,
    Fut: Future<Output = A> + Send + 'static,
    A: Send + 'static,
{
    type Response = A;
    type Future = Pin<Box<dyn Future<Output = Result<Response<A>, Status>> + Send>>;

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let Some(method) = self.0.take() else {
            return Box::pin(async { Err(Status::internal("a method was called twice")) });
        };
        // A task of its own: a call ends as it should also when Terraform no longer waits for its answer.
        let task = tokio::spawn(method(request.into_inner()));
        Box::pin(async move {
            task.await
                .map(Response::new)
                .map_err(|error| Status::internal(format!("the provider failed: {error}")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_ends_a_few_seconds_after_its_last_connection() {
        let mut idle = Idle::default();
        assert!((0..BEFORE_FIRST).all(|_| !idle.is_over(0)));
        assert!(idle.is_over(0));
        assert!(!idle.is_over(1));
        assert!((0..AFTER_LAST).all(|_| !idle.is_over(0)));
        assert!(idle.is_over(0));
    }
}
