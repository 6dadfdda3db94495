//! Sends requests to the endpoints of an etcd.
//!
//! A read is sent to the next endpoint when one fails, and also when one is silent. A write is sent once: after that only etcd
//! knows whether it landed.

use std::{
    future::Future,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt as _, stream::FuturesUnordered};
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::time::{sleep, timeout};
use tokio_stream::Stream;
use tonic::{
    Code, Request, Status, Streaming,
    client::Grpc,
    codegen::http::uri::{PathAndQuery, Uri},
    metadata::MetadataValue,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

use super::{
    messages::{AuthenticateRequest, AuthenticateResponse},
    options::EtcdConnection,
};
use crate::{ConnectError, Stream as ByteStream, TlsClient, connect_tcp};

/// Room for a page of the largest values.
const MAX_MESSAGE: usize = 512 << 20;

/// The port of an endpoint that names none.
const HTTPS_PORT: u16 = 443;

/// A connection whose other end is silent for this long is dead, whatever TCP believes.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// An endpoint that is silent for this long is not waited for alone.
const SILENT: Duration = Duration::from_millis(300);
/// The same where every moment counts.
const URGENT: Duration = Duration::from_millis(100);

/// Requests to an etcd.
#[derive(Debug)]
pub struct EtcdClient {
    ends: Vec<EtcdEndpoint>,
    /// The endpoint that answered last.
    current: AtomicUsize,
    user: Option<(String, String)>,
    token: Mutex<Option<String>>,
    timeout: Duration,
}

#[derive(Debug)]
struct EtcdEndpoint {
    url: String,
    channel: Channel,
}

impl EtcdClient {
    /// Checks the options; connects when something is asked.
    pub fn new(options: &EtcdConnection) -> Result<Self, EtcdOptionsError> {
        let wrong = |reason: String| EtcdOptionsError { reason };
        if options.endpoints.is_empty() {
            return Err(wrong("no endpoint of etcd is named".into()));
        }
        let is_tls = options.endpoints.iter().any(|url| url.starts_with("https:"));
        let tls = is_tls.then(|| options.tls.client(&[b"h2"])).transpose();
        let tls = tls.map_err(|error| wrong(error.to_string()))?;
        let ends = options
            .endpoints
            .iter()
            .map(|url| {
                let channel = channel(url, options.connect_timeout, tls.as_ref()).map_err(|error| {
                    wrong(format!("`{url}` cannot be an endpoint of etcd: {}", whole(&error)))
                })?;
                Ok(EtcdEndpoint { url: url.clone(), channel })
            })
            .collect::<Result<_, EtcdOptionsError>>()?;
        Ok(Self {
            ends,
            current: AtomicUsize::new(0),
            user: options.user.clone(),
            token: Mutex::new(None),
            timeout: options.timeout,
        })
    }

    /// Asks the endpoints, the last good one first, until one answers. What is asked may be asked twice.
    pub async fn read<Q, A>(&self, path: &'static str, question: Q) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.of_any(SILENT, path, question).await
    }

    /// As [`EtcdClient::read`], of all endpoints almost at once. Which endpoint is first says nothing about the others.
    pub async fn read_urgently<Q, A>(&self, path: &'static str, question: Q) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.of_any(URGENT, path, question).await
    }

    async fn of_any<Q, A>(&self, silent: Duration, path: &'static str, question: Q) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        loop {
            let had_token = self.have_token().await?;
            let ask = |end| {
                let request = self.request(question.clone());
                async move { unary(end, path, request?).await }
            };
            let answer = self.first_answer(silent, ask).await;
            if !(had_token && self.forget_old_token(&answer)) {
                return answer;
            }
        }
    }

    /// The first answer of any endpoint. The next one is asked when those before it failed, or were silent for so long.
    async fn first_answer<'a, A, F>(
        &'a self,
        silent: Duration,
        ask: impl Fn(&'a EtcdEndpoint) -> F,
    ) -> Result<A, Status>
    where
        F: Future<Output = Result<A, Status>>,
    {
        let first = self.current_endpoint();
        let mut ends = (0..self.ends.len()).filter_map(|more| {
            let at = first.wrapping_add(more);
            self.ends.get(at % self.ends.len()).map(|end| (at, end))
        });
        let asked_of = |(at, end)| {
            let answer = bounded(self.timeout, ask(end));
            async move { (at, answer.await) }
        };
        let mut asked: FuturesUnordered<_> = ends.next().map(asked_of).into_iter().collect();
        let mut last = Status::unavailable("no endpoint");
        loop {
            let answered = tokio::select! {
                biased;
                answered = asked.next() => answered,
                // No endpoint may be left to ask; then this only comes round again.
                () = sleep(silent) => {
                    asked.extend(ends.next().map(asked_of));
                    continue;
                }
            };
            let Some((at, answer)) = answered else { return Err(last) };
            match answer {
                Err(status) if another_may_answer(&status) => {
                    self.leave(at);
                    last = status;
                    asked.extend(ends.next().map(asked_of));
                }
                answer => {
                    // An endpoint that was silent is not asked first again.
                    if silent >= SILENT {
                        self.move_on(first, at);
                    }
                    return answer;
                }
            }
        }
    }

    /// Asks every endpoint the same; each answers for itself.
    pub async fn each<Q, A>(
        &self,
        path: &'static str,
        question: Q,
    ) -> Vec<(String, Channel, Result<A, Status>)>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut answers = Vec::new();
        for end in &self.ends {
            let answer = async {
                self.have_token().await?;
                bounded(self.timeout, unary(end, path, self.request(question.clone())?)).await
            };
            answers.push((end.url.clone(), end.channel.clone(), answer.await));
        }
        answers
    }

    /// Asks this endpoint, once.
    pub async fn once_at<Q, A>(&self, at: usize, path: &'static str, question: Q) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        loop {
            let had_token = self.have_token().await?;
            let end = self.end(at)?;
            let answer = bounded(self.timeout, unary(end, path, self.request(question.clone())?)).await;
            if !(had_token && self.forget_old_token(&answer)) {
                return answer;
            }
        }
    }

    /// Opens a stream both ways with the endpoint at this place. It ends by itself when that loses its etcd leader.
    pub async fn stream<Q, A>(
        &self,
        at: usize,
        path: &'static str,
        questions: impl Stream<Item = Q> + Send + Clone + 'static,
    ) -> Result<Streaming<A>, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        loop {
            let had_token = self.have_token().await?;
            let end = self.end(at)?;
            let mut request = self.request(questions.clone())?;
            request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
            let opened = bounded(self.timeout, open(end, path, request)).await;
            self.note(at, &opened);
            if !(had_token && self.forget_old_token(&opened)) {
                return opened;
            }
        }
    }

    /// Where the next request goes, for messages.
    pub fn url(&self) -> &str {
        self.end(self.current_endpoint()).map_or("", |end| &end.url)
    }

    /// Which endpoint is asked first at the moment.
    pub fn current_endpoint(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    fn end(&self, at: usize) -> Result<&EtcdEndpoint, Status> {
        let end = self.ends.get(at % self.ends.len().max(1));
        end.ok_or_else(|| Status::unavailable("no endpoint"))
    }

    /// The next call goes elsewhere if this one failed.
    pub fn note<T>(&self, at: usize, outcome: &Result<T, Status>) {
        if outcome.as_ref().is_err_and(another_may_answer) {
            self.leave(at);
        }
    }

    /// The endpoint at this place stopped making sense.
    pub fn leave(&self, at: usize) {
        self.move_on(at, at.wrapping_add(1));
    }

    /// Only the first of many that find one place bad together moves on.
    fn move_on(&self, from: usize, to: usize) {
        let _ = self.current.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn request<T>(&self, message: T) -> Result<Request<T>, Status> {
        let mut request = Request::new(message);
        if let Some(token) = &*self.token.lock().unwrap_or_else(PoisonError::into_inner) {
            let token = token.parse().map_err(|_| Status::internal("etcd gave a token that is no text"))?;
            request.metadata_mut().insert("token", token);
        }
        Ok(request)
    }

    /// Gets a token if there is a user and no token. Whether there was one already: it may have grown old.
    async fn have_token(&self) -> Result<bool, Status> {
        let Some(user) = &self.user else { return Ok(false) };
        if self.token.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Ok(true);
        }
        self.authenticate(user).await?;
        Ok(false)
    }

    /// Whether the request is to be sent again with a new token. etcd does nothing of one whose token it refuses.
    fn forget_old_token<T>(&self, outcome: &Result<T, Status>) -> bool {
        let old = outcome.as_ref().is_err_and(token_is_old);
        if old {
            *self.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        old
    }

    async fn authenticate(&self, (name, password): &(String, String)) -> Result<(), Status> {
        let question = AuthenticateRequest { name: name.clone(), password: password.clone() };
        let path = "/etcdserverpb.Auth/Authenticate";
        let ask = |end| unary(end, path, Request::new(question.clone()));
        let answer: Result<AuthenticateResponse, _> = self.first_answer(SILENT, ask).await;
        match answer {
            Ok(answer) => {
                *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer.token);
                Ok(())
            }
            Err(status) if another_may_answer(&status) => Err(status),
            // Without this the error would be etcd's own `authentication is not enabled`, without a subject.
            Err(status) => {
                let message = format!("the user `{name}` is refused: {}", status.message());
                Err(Status::new(Code::PermissionDenied, message))
            }
        }
    }
}

fn channel(
    url: &str,
    connect_timeout: Duration,
    tls: Option<&TlsClient>,
) -> Result<Channel, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(url.to_owned())?
        .connect_timeout(connect_timeout)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .tcp_nodelay(true);
    Ok(match tls {
        Some(tls) if url.starts_with("https:") => {
            endpoint.connect_with_connector_lazy(tls_connector(tls, connect_timeout))
        }
        _ => endpoint.connect_lazy(),
    })
}

/// Opens TLS connections with the settings that all servers share.
fn tls_connector(
    tls: &TlsClient,
    connect_timeout: Duration,
) -> impl Service<Uri, Response = TokioIo<Box<dyn ByteStream>>, Error = ConnectError, Future: Send> + Send + use<>
{
    let tls = tls.clone();
    service_fn(move |uri: Uri| {
        let tls = tls.clone();
        async move {
            let host = uri.host().unwrap_or_default();
            // An address of IPv6 stands in brackets.
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let port = uri.port_u16().unwrap_or(HTTPS_PORT);
            connect_tcp(host, port, Some(&tls), connect_timeout).await.map(TokioIo::new)
        }
    })
}

async fn unary<Q, A>(end: &EtcdEndpoint, path: &'static str, request: Request<Q>) -> Result<A, Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = Grpc::new(end.channel.clone()).max_decoding_message_size(MAX_MESSAGE);
    grpc.ready().await.map_err(|error| Status::unavailable(whole(&error)))?;
    let codec = ProstCodec::<Q, A>::default();
    Ok(grpc.unary(request, PathAndQuery::from_static(path), codec).await?.into_inner())
}

async fn open<S, Q, A>(
    end: &EtcdEndpoint,
    path: &'static str,
    request: Request<S>,
) -> Result<Streaming<A>, Status>
where
    S: Stream<Item = Q> + Send + 'static,
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = Grpc::new(end.channel.clone()).max_decoding_message_size(MAX_MESSAGE);
    grpc.ready().await.map_err(|error| Status::unavailable(whole(&error)))?;
    let codec = ProstCodec::<Q, A>::default();
    Ok(grpc.streaming(request, PathAndQuery::from_static(path), codec).await?.into_inner())
}

async fn bounded<T>(limit: Duration, work: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    timeout(limit, work)
        .await
        .unwrap_or_else(|_| Err(Status::deadline_exceeded(format!("no answer within {limit:?}"))))
}

/// Whether this endpoint is the trouble rather than what was asked.
fn another_may_answer(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown)
}

fn token_is_old(status: &Status) -> bool {
    status.code() == Code::Unauthenticated
        || (status.code() == Code::InvalidArgument && status.message().contains("auth store is old"))
}

/// Options that cannot lead to an etcd.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct EtcdOptionsError {
    pub reason: String,
}

/// An error with everything below it: the outermost says only `transport error`.
pub fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        next = error.source();
    }
    text
}
