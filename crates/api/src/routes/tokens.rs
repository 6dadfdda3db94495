//! Tokens.

use std::sync::Arc;

use axum::http::StatusCode;
use netstead_client::types::{Page, TokenInput, TokenOutput};
use serde::Deserialize;
use utoipa::IntoParams;

use super::cut;
use crate::{
    access::Token,
    convert,
    http::{
        answer::Answer,
        body::Json,
        path::TextPath,
        query::{NoParams, Query, limit},
        session::{Admin, Session},
    },
    openapi::{Changing, Ending, Listing},
    problem::Failure,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

/// Lists tokens, without their secrets, which only their holders know.
#[utoipa::path(get, path = "/tokens", tag = "server", operation_id = "list_tokens", params(ListParams),
    responses((status = 200, description = "Tokens in order of id", body = Page<TokenOutput>), Listing))]
pub(crate) async fn list(
    session: Session<Admin>,
    Query(params): Query<ListParams>,
) -> Result<Answer<Page<TokenOutput>>, Failure> {
    session.check_unscoped()?;
    let limit = limit(params.limit.as_ref())?;
    let behind = |token: &Arc<Token>| params.after.as_ref().is_none_or(|after| token.id > *after);
    let mut tokens: Vec<_> = session.app.tokens.list().into_iter().filter(behind).take(limit + 1).collect();
    let next = cut(&mut tokens, limit, |last| last.id.clone());
    let items = tokens.iter().map(|token| convert::token::output(token, None)).collect();
    Ok(Answer::ok(Page { items, next, seq: session.app.ledger.health().seq }))
}

/// Makes a token. Its secret is in this answer and never again, so a repeat makes another one.
#[utoipa::path(post, path = "/tokens", tag = "server", operation_id = "create_token", request_body = TokenInput,
    responses((status = 201, description = "The token with its secret", body = TokenOutput), Changing))]
pub(crate) async fn create(
    session: Session<Admin>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<TokenInput>,
) -> Result<Answer<TokenOutput>, Failure> {
    session.check_unscoped()?;
    let (token, secret) = session.app.tokens.create(convert::token::new(input)?).await?;
    Ok(Answer::ok(convert::token::output(&token, Some(&secret))).status(StatusCode::CREATED))
}

/// Revokes a token.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "server", operation_id = "revoke_token",
    params(("id" = String, Path, description = "Its id: the part between `nst_` and the secret")),
    responses((status = 204, description = "It is not valid any more"), Ending))]
pub(crate) async fn revoke(
    session: Session<Admin>,
    TextPath(id): TextPath,
    Query(NoParams {}): Query<NoParams>,
) -> Result<StatusCode, Failure> {
    session.check_unscoped()?;
    session.app.tokens.revoke(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
