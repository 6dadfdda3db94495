//! Authentication: reads and verifies the token of a request.

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{
    access::{Denied, Grant, Tokens},
    app::AppState,
    cluster::NodeRole,
    problem::Failure,
};

/// Refuses requests without a token. Handlers find the [`Grant`] with the request.
pub(crate) async fn authenticate(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let known = match let_in(&app.tokens, &request) {
        // On a node that follows, news of a token or a session that was just made may be on its way.
        Err(Denied::Unknown | Denied::SessionEnded | Denied::LinkEnded) if follows(&app) => {
            app.tokens.refresh().await;
            let_in(&app.tokens, &request)
        }
        known => known,
    };
    match known {
        Ok(grant) => {
            let answered_here = follows(&app) && is_fresh_read(&request);
            request.extensions_mut().insert(grant.clone());
            if !answered_here {
                return next.run(request).await;
            }
            // News of a revocation may be on its way as well. Beside the answer, which asks the store too.
            let (answer, revoked) = tokio::join!(next.run(request), app.tokens.was_revoked_meanwhile(&grant));
            if revoked { Failure::from(Denied::Unknown).into_response() } else { answer }
        }
        Err(denied) => Failure::from(denied).into_response(),
    }
}

/// Whether this changes nothing and is to be answered from what is so now. All that changes something is for the leader,
/// who knows.
fn is_fresh_read(request: &Request) -> bool {
    let stale = |query: &str| query.split('&').any(|part| part == "stale=ok");
    matches!(*request.method(), Method::GET | Method::HEAD) && !request.uri().query().is_some_and(stale)
}

fn follows(app: &AppState) -> bool {
    app.cluster.as_ref().is_some_and(|(cluster, _)| cluster.role() == NodeRole::Following)
}

/// The grant of a request. A login link is let in where it becomes a session, and nowhere else.
fn let_in(tokens: &Tokens, request: &Request) -> Result<Grant, Denied> {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let opens_session = *request.method() == Method::POST && path == Some("/api/v1/sessions");
    match presented(request.headers())? {
        presented if opens_session => {
            tokens.verify_link(presented).unwrap_or_else(|| tokens.verify(presented))
        }
        presented => tokens.verify(presented),
    }
}

pub(crate) fn grant(tokens: &Tokens, headers: &HeaderMap) -> Result<Grant, Denied> {
    tokens.verify(presented(headers)?)
}

fn presented(headers: &HeaderMap) -> Result<&str, Denied> {
    let sent = headers.get(header::AUTHORIZATION).ok_or(Denied::Missing)?;
    let sent = sent.to_str().map_err(|_| Denied::Malformed)?;
    let (scheme, token) = sent.trim().split_once(' ').ok_or(Denied::Malformed)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Denied::Missing);
    }
    Ok(token.trim())
}
