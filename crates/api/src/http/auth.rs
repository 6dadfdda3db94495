//! Tokens in requests.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{
    access::{Denied, Grant, Tokens},
    app::Shared,
    cluster::Stand,
    problem::Failure,
};

/// Lets nobody pass without a token. Handlers find the [`Grant`] with the request.
pub(crate) async fn authenticate(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    let known = match grant(&app.tokens, request.headers()) {
        // On a node that follows, news of a token that was just made may be on its way.
        Err(Denied::Unknown) if follows(&app) => {
            app.tokens.look().await;
            grant(&app.tokens, request.headers())
        }
        known => known,
    };
    match known {
        Ok(grant) => {
            request.extensions_mut().insert(grant);
            next.run(request).await
        }
        Err(denied) => Failure::from(denied).into_response(),
    }
}

fn follows(app: &Shared) -> bool {
    app.cluster.as_ref().is_some_and(|(cluster, _)| cluster.stand() == Stand::Following)
}

pub(crate) fn grant(tokens: &Tokens, headers: &HeaderMap) -> Result<Grant, Denied> {
    let sent = headers.get(header::AUTHORIZATION).ok_or(Denied::Missing)?;
    let sent = sent.to_str().map_err(|_| Denied::Malformed)?;
    let (scheme, token) = sent.trim().split_once(' ').ok_or(Denied::Malformed)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Denied::Missing);
    }
    tokens.verify(token.trim())
}
