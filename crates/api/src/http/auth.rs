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
    problem::Failure,
};

/// Lets nobody pass without a token. Handlers find the [`Grant`] with the request.
pub(crate) async fn authenticate(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    match grant(&app.tokens, request.headers()) {
        Ok(grant) => {
            request.extensions_mut().insert(grant);
            next.run(request).await
        }
        Err(denied) => Failure::from(denied).into_response(),
    }
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
