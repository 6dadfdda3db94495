//! Taking connections until the end, and the end itself.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioTimer},
    server::conn::auto::Builder,
};
use netstead_model::SystemClock;
use netstead_wire::{Acceptor, Connections, LogLimit};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::warn;

use super::{ServeOptions, connection::Connection, tls::ServerTls};

/// How long a client may take for the head of each request after the first.
const HEADERS: Duration = Duration::from_secs(30);
/// One line about refused connections in this time.
const SAID: Duration = Duration::from_secs(30);

pub(super) struct Listener {
    acceptor: Acceptor,
    connections: Connections,
    shared: Arc<Shared>,
}

/// Common to all connections.
pub(super) struct Shared {
    pub(super) http: Builder<TokioExecutor>,
    pub(super) router: Router,
    pub(super) tls: Option<ServerTls>,
    pub(super) first_request: Duration,
    /// Requests in progress end, and no more are taken.
    pub(super) stopping: CancellationToken,
}

impl Listener {
    pub(super) fn new(
        acceptor: Acceptor,
        router: Router,
        tls: Option<ServerTls>,
        options: &ServeOptions,
    ) -> Self {
        let mut http = Builder::new(TokioExecutor::new());
        http.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS);
        http.http2().timer(TokioTimer::new()).keep_alive_interval(HEADERS);
        let (first_request, stopping) = (options.first_request, CancellationToken::new());
        let shared = Arc::new(Shared { http, router, tls, first_request, stopping });
        Self { acceptor, connections: options.connections.clone(), shared }
    }

    /// Serves until `last_call`; after that requests in progress have `grace` to end.
    pub(super) async fn run(self, last_call: impl Future<Output = ()>, grace: Duration) {
        let Self { acceptor, connections, shared } = self;
        let (tasks, cut_off) = (TaskTracker::new(), CancellationToken::new());
        let refusals = LogLimit::new(SAID, SystemClock::shared());
        tokio::pin!(last_call);
        loop {
            let (stream, peer) = tokio::select! {
                biased;
                () = &mut last_call => break,
                accepted = acceptor.accept() => accepted,
            };
            match connections.admit(peer.ip()) {
                Ok(place) => {
                    let connection = Connection::new(place, Arc::clone(&shared));
                    tasks.spawn(cut_off.clone().run_until_cancelled_owned(connection.run(stream)));
                }
                Err(refused) => {
                    if let Some(held_back) = refusals.pass() {
                        let limits = connections.limits();
                        warn!(
                            peer = %peer.ip(), in_all = limits.in_all, per_peer = limits.per_peer, held_back,
                            "A connection to the API was refused: {refused}."
                        );
                    }
                }
            }
        }
        // New connections are refused from here on instead of waiting for an answer.
        drop(acceptor);
        shared.stopping.cancel();
        tasks.close();
        if timeout(grace, tasks.wait()).await.is_err() {
            cut_off.cancel();
            tasks.wait().await;
        }
    }
}
