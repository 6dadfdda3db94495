//! Counts the calls of a client, and limits how much of an answer is read.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http_body_util::Limited;
use hyper::{Method, Request, Response};
use kube::client::{Body, DynBody};
use netstead_model::{Call, CallObserver, Clock, Outcome};
use tower::{BoxError, Layer, Service};

/// The most of an answer: a page of 500 objects, each as large as etcd takes one, does not come near.
const MOST_BYTES: usize = 256 << 20;

#[derive(Debug, Clone)]
pub(super) struct ObserveLayer {
    pub(super) observer: Arc<dyn CallObserver>,
    pub(super) clock: Arc<dyn Clock>,
}

#[derive(Debug)]
pub(super) struct Observe<S> {
    inner: S,
    layer: ObserveLayer,
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Observe<S> {
        Observe { inner, layer: self.clone() }
    }
}

impl<S> Service<Request<Body>> for Observe<S>
where
    S: Service<Request<Body>, Response = Response<Box<DynBody>>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<Limited<Box<DynBody>>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let operation = operation(&request);
        let ObserveLayer { observer, clock } = self.layer.clone();
        let begun = clock.monotonic();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let outcome = match &answer {
                Ok(response) if response.status().is_success() => Outcome::Answered,
                Ok(response) if response.status().is_client_error() => Outcome::Refused,
                _ => Outcome::Failed,
            };
            observer.called(Call { operation, outcome, took: clock.monotonic().saturating_sub(begun) });
            // A watch goes on for minutes; each of its events is small.
            let most = if operation == "watch" { usize::MAX } else { MOST_BYTES };
            answer.map(|response| response.map(|body| Limited::new(body, most)))
        })
    }
}

/// The label of metrics.
fn operation(request: &Request<Body>) -> &'static str {
    let watch = request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"));
    match *request.method() {
        Method::GET if watch => "watch",
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
