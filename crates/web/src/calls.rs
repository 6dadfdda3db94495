//! [`Calls`]: asks the API in this process, as the visitor.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderValue, Method, StatusCode, header},
    response::Response,
};
use netstead_client::types::Problem;
use serde::{Serialize, de::DeserializeOwned};
use tower::ServiceExt as _;
use url::{Position, Url};

/// Most bytes of an answer that a page reads. Lists come in pages, so answers stay far below it.
const MOST: usize = 32 << 20;
/// Time for an answer from what is so now, before what this node knew last has to do.
const FRESH: Duration = Duration::from_secs(3);
/// Time for a part of a page without which the rest is worth as much.
const ASIDE: Duration = Duration::from_secs(2);

/// Why the API did not do what a page asked for.
pub(crate) type Trouble = Box<Problem>;

/// Calls of one visitor.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    api: Router,
    credential: Option<Arc<str>>,
    agent: Option<HeaderValue>,
    /// Something that was answered may be out of date, because the store cannot be asked.
    stale: Arc<AtomicBool>,
}

/// A path and its parameters, each part encoded.
#[derive(Debug, Clone)]
pub(crate) struct Target(Url);

impl Target {
    /// The path below `/api/v1` with these parts.
    pub(crate) fn of<'p>(parts: impl IntoIterator<Item = &'p str>) -> Self {
        #[expect(clippy::expect_used, reason = "a constant, which a test parses")]
        let mut url = Url::parse("http://localhost/api/v1").expect("a URL");
        if let Ok(mut path) = url.path_segments_mut() {
            path.extend(parts);
        }
        Self(url)
    }

    /// With a parameter, unless it is empty.
    pub(crate) fn with(mut self, name: &str, value: impl AsRef<str>) -> Self {
        if !value.as_ref().is_empty() {
            self.0.query_pairs_mut().append_pair(name, value.as_ref());
        }
        self
    }

    pub(crate) fn uri(&self) -> &str {
        &self.0[Position::BeforePath..Position::AfterQuery]
    }
}

impl Calls {
    pub(crate) fn new(api: Router, credential: Option<&str>, agent: Option<HeaderValue>) -> Self {
        Self { api, credential: credential.map(Into::into), agent, stale: Arc::default() }
    }

    /// Whether an answer so far may be out of date.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Relaxed)
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, target: Target) -> Result<T, Trouble> {
        self.ask(Method::GET, &target, None).await
    }

    /// As [`Calls::get`], of something that every node knows. While the store cannot be asked, what this node knows will do.
    pub(crate) async fn look<T: DeserializeOwned>(&self, target: Target) -> Result<T, Trouble> {
        if self.is_stale() {
            // It did not answer a moment ago: one part of a page that waits is enough.
            return self.get(target.with("stale", "ok")).await;
        }
        let late = || trouble(StatusCode::GATEWAY_TIMEOUT, "the store does not answer".to_owned());
        let fresh = tokio::time::timeout(FRESH, self.get(target.clone())).await;
        match fresh.unwrap_or_else(|_| Err(late())) {
            Err(problem) if problem.status == 503 || problem.status == 504 => {
                let answer = self.get(target.with("stale", "ok")).await?;
                self.stale.store(true, Ordering::Relaxed);
                Ok(answer)
            }
            other => other,
        }
    }

    /// As [`Calls::get`], of something without which the page is worth as much: a leader is not waited for.
    pub(crate) async fn aside<T: DeserializeOwned>(&self, target: Target) -> Result<T, Trouble> {
        let late = || trouble(StatusCode::GATEWAY_TIMEOUT, "no leader answers now".to_owned());
        tokio::time::timeout(ASIDE, self.get(target)).await.unwrap_or_else(|_| Err(late()))
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        target: Target,
        body: &impl Serialize,
    ) -> Result<T, Trouble> {
        self.ask(Method::POST, &target, Some(serde_json::to_vec(body).unwrap_or_default())).await
    }

    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        target: Target,
        body: &impl Serialize,
    ) -> Result<T, Trouble> {
        self.ask(Method::PUT, &target, Some(serde_json::to_vec(body).unwrap_or_default())).await
    }

    /// Makes something that is not there yet.
    pub(crate) async fn create<T: DeserializeOwned>(
        &self,
        target: Target,
        body: &impl Serialize,
    ) -> Result<T, Trouble> {
        let body = serde_json::to_vec(body).unwrap_or_default();
        let mut request = self.request(Method::PUT, &target, Some(body))?;
        request.headers_mut().insert(header::IF_NONE_MATCH, HeaderValue::from_static("*"));
        decoded(self.send(request).await).await
    }

    /// Ends something; what the answer says of it is not looked at.
    pub(crate) async fn delete(&self, target: Target) -> Result<(), Trouble> {
        self.ask::<serde_json::Value>(Method::DELETE, &target, None).await.map(drop)
    }

    /// As [`Calls::get`], with the tag of the version that was answered.
    pub(crate) async fn get_tagged<T: DeserializeOwned>(
        &self,
        target: Target,
    ) -> Result<(T, String), Trouble> {
        let response = self.send(self.request(Method::GET, &target, None)?).await;
        let tag = response.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok());
        let tag = tag.unwrap_or_default().to_owned();
        Ok((decoded(response).await?, tag))
    }

    /// Replaces something, if it still is the version of this tag.
    pub(crate) async fn replace<T: DeserializeOwned>(
        &self,
        target: Target,
        body: &impl Serialize,
        tag: &str,
    ) -> Result<T, Trouble> {
        let body = serde_json::to_vec(body).unwrap_or_default();
        let request = self.request(Method::PUT, &target, Some(body))?;
        decoded(self.send(matching(request, tag)?).await).await
    }

    /// Deletes something, if it still is the version of this tag.
    pub(crate) async fn delete_tagged<T: DeserializeOwned>(
        &self,
        target: Target,
        tag: &str,
    ) -> Result<T, Trouble> {
        let request = self.request(Method::DELETE, &target, None)?;
        decoded(self.send(matching(request, tag)?).await).await
    }

    /// An answer as it comes, for streams.
    pub(crate) async fn stream(
        &self,
        target: &Target,
        last: Option<HeaderValue>,
    ) -> Result<Response, Trouble> {
        let mut request = self.request(Method::GET, target, None)?;
        if let Some(last) = last {
            request.headers_mut().insert("last-event-id", last);
        }
        let response = self.send(request).await;
        if response.status().is_success() { Ok(response) } else { Err(problem_of(response).await) }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        target: &Target,
        body: Option<Vec<u8>>,
    ) -> Result<T, Trouble> {
        decoded(self.send(self.request(method, target, body)?).await).await
    }

    fn request(&self, method: Method, target: &Target, body: Option<Vec<u8>>) -> Result<Request, Trouble> {
        let wrong = |error| trouble(StatusCode::BAD_REQUEST, format!("this cannot be asked: {error}"));
        let mut request =
            Request::builder().method(method).uri(target.uri()).header(header::HOST, "localhost");
        if let Some(credential) = &self.credential {
            request = request.header(header::AUTHORIZATION, format!("Bearer {credential}"));
        }
        if let Some(agent) = &self.agent {
            request = request.header(header::USER_AGENT, agent);
        }
        let body = match body {
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Body::from(body)
            }
            None => Body::empty(),
        };
        request.body(body).map_err(wrong)
    }

    async fn send(&self, request: Request) -> Response {
        match self.api.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// A request for one version only. Without a tag none is meant.
fn matching(mut request: Request, tag: &str) -> Result<Request, Trouble> {
    let told = "the form does not say which version it is about: open it again";
    let tag = HeaderValue::try_from(tag).ok().filter(|tag| !tag.is_empty());
    let tag = tag.ok_or_else(|| trouble(StatusCode::UNPROCESSABLE_ENTITY, told.to_owned()))?;
    request.headers_mut().insert(header::IF_MATCH, tag);
    Ok(request)
}

async fn decoded<T: DeserializeOwned>(response: Response) -> Result<T, Trouble> {
    if !response.status().is_success() {
        return Err(problem_of(response).await);
    }
    let unusable = |reason: String| trouble(StatusCode::BAD_GATEWAY, reason);
    let bytes = to_bytes(response.into_body(), MOST).await;
    let bytes = bytes.map_err(|error| unusable(format!("the answer broke off: {error}")))?;
    let json: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
    serde_json::from_slice(json).map_err(|error| unusable(format!("the answer cannot be read: {error}")))
}

async fn problem_of(response: Response) -> Trouble {
    let status = response.status();
    let bytes = to_bytes(response.into_body(), MOST).await.unwrap_or_default();
    serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| trouble(status, format!("the server answered {status}")))
}

fn trouble(status: StatusCode, detail: String) -> Trouble {
    Box::new(Problem {
        kind: "urn:netstead:web".to_owned(),
        title: status.canonical_reason().unwrap_or_default().to_owned(),
        status: status.as_u16(),
        detail,
        ..Problem::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_parameters_are_encoded() {
        let target =
            Target::of(["pools", "a b", "claims", "x/y"]).with("within", "10.0.0.0/8").with("key", "");
        assert_eq!(target.uri(), "/api/v1/pools/a%20b/claims/x%2Fy?within=10.0.0.0%2F8");
        assert_eq!(Target::of(["status"]).uri(), "/api/v1/status");
    }
}
