//! Sessions: logins of browsers, each of them for one token.

use axum::http::{HeaderMap, StatusCode, header};
use netstead_client::types::{LoginLinkOutput, Page, SessionOutput};
use serde::Deserialize;
use utoipa::IntoParams;

use super::cut;
use crate::{
    access::{AccessError, Role},
    convert,
    http::{
        answer::Answer,
        path::TextPath,
        query::{NoParams, Query, limit},
        session::{Read, RequestContext, Session},
    },
    openapi::{Changing, Ending, Listing, Looking},
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

/// The session in which this is asked, with its subject and rights.
#[utoipa::path(get, path = "/session", tag = "server", operation_id = "get_session",
    responses((status = 200, description = "The session", body = SessionOutput), Looking))]
pub(crate) async fn current(
    session: Session<Read>,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<SessionOutput>, Failure> {
    let own = session.grant.session().ok_or_else(no_session)?;
    let output = convert::session::output(own, session.grant.token(), None);
    Ok(Answer::ok(SessionOutput { current: true, ..output }))
}

/// Notes that the session in which this is asked is in use, so that it does not end as idle.
#[utoipa::path(put, path = "/session", tag = "server", operation_id = "keep_session",
    responses((status = 200, description = "The session, with its new end", body = SessionOutput), Changing))]
pub(crate) async fn keep(
    session: Session<Read>,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<SessionOutput>, Failure> {
    session.grant.session().ok_or_else(no_session)?;
    let kept = session.app.tokens.keep_session(&session.grant).await?;
    let output = convert::session::output(&kept, session.grant.token(), None);
    Ok(Answer::ok(SessionOutput { current: true, ..output }))
}

/// Logs out: ends the session in which this is asked.
#[utoipa::path(delete, path = "/session", tag = "server", operation_id = "log_out",
    responses((status = 204, description = "It has ended"), Ending))]
pub(crate) async fn log_out(
    session: Session<Read>,
    Query(NoParams {}): Query<NoParams>,
) -> Result<StatusCode, Failure> {
    let own = session.grant.session().ok_or_else(no_session)?;
    session.app.tokens.end_session(&own.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists sessions: all of them for an admin, else those of the caller's own token.
#[utoipa::path(get, path = "/sessions", tag = "server", operation_id = "list_sessions", params(ListParams),
    responses((status = 200, description = "Sessions in order of id", body = Page<SessionOutput>), Listing))]
pub(crate) async fn list(
    session: Session<Read>,
    Query(params): Query<ListParams>,
) -> Result<Answer<Page<SessionOutput>>, Failure> {
    let limit = limit(params.limit.as_ref())?;
    let (all, own) = (sees_all(&session), session.grant.id().to_owned());
    let mut sessions: Vec<_> = session
        .app
        .tokens
        .sessions()
        .into_iter()
        .filter(|(login, _)| all || login.token == own)
        .filter(|(login, _)| params.after.as_ref().is_none_or(|after| login.id > *after))
        .take(limit + 1)
        .collect();
    let next = cut(&mut sessions, limit, |(last, _)| last.id.clone());
    let current = session.grant.session().map(|session| session.id.clone());
    let output = |(login, token): &(std::sync::Arc<_>, std::sync::Arc<_>)| {
        let output = convert::session::output(login, token, None);
        SessionOutput { current: current.as_ref() == Some(&output.id), ..output }
    };
    let items = sessions.iter().map(output).collect();
    Ok(Answer::ok(Page { items, next, seq: session.app.ledger.health().seq }))
}

/// Logs in: opens a session for the holder of this token or login link. Its secret is in this answer and never again.
#[utoipa::path(post, path = "/sessions", tag = "server", operation_id = "open_session",
    responses((status = 201, description = "The session with its secret, which is a credential like a token",
        body = SessionOutput), Changing))]
pub(crate) async fn open(
    session: Session<Read>,
    Query(NoParams {}): Query<NoParams>,
    headers: HeaderMap,
) -> Result<Answer<SessionOutput>, Failure> {
    check_not_in_session(&session)?;
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    let (login, token, secret) = session.app.tokens.open_session(&session.grant, agent).await?;
    let output = convert::session::output(&login, &token, Some(&secret));
    Ok(Answer::ok(output).status(StatusCode::CREATED))
}

/// Makes a link that opens one session, once, within a minute.
#[utoipa::path(post, path = "/sessions/link", tag = "server", operation_id = "create_login_link",
    responses((status = 201, description = "The link's secret", body = LoginLinkOutput), Changing))]
pub(crate) async fn link(
    session: Session<Read>,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<LoginLinkOutput>, Failure> {
    check_not_in_session(&session)?;
    let told = "this server serves no web page: `[web] enabled` is false, or it was built without";
    let pages = session.app.pages.as_ref().ok_or_else(|| Failure::not_found("no-web-page", told))?;
    let (link, secret) = session.app.tokens.create_login_link(&session.grant).await?;
    let output = LoginLinkOutput {
        secret: secret.expose().to_owned(),
        url: pages.url().map(str::to_owned),
        loopback: session.app.host_check.loopback,
        expires: link.until,
    };
    Ok(Answer::ok(output).status(StatusCode::CREATED))
}

/// Ends a session: any for an admin, else one of the caller's own token.
#[utoipa::path(delete, path = "/sessions/{id}", tag = "server", operation_id = "end_session",
    params(("id" = String, Path, description = "Its id")),
    responses((status = 204, description = "It has ended"), Ending))]
pub(crate) async fn end(
    session: Session<Read>,
    TextPath(id): TextPath,
    Query(NoParams {}): Query<NoParams>,
) -> Result<StatusCode, Failure> {
    let own = |(login, _): &(std::sync::Arc<crate::access::LoginSession>, _)| {
        login.id == id && login.token == session.grant.id()
    };
    if !sees_all(&session) && !session.app.tokens.sessions().iter().any(own) {
        return Err(AccessError::NoSuchSession { id }.into());
    }
    session.app.tokens.end_session(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn sees_all(session: &RequestContext) -> bool {
    session.grant.role() >= Role::Admin && session.scopes().is_all()
}

/// A session that could open another would never end.
fn check_not_in_session(session: &RequestContext) -> Result<(), Failure> {
    match session.grant.session() {
        Some(_) => Err(Failure::forbidden("a session cannot open another one: use a token")),
        None => Ok(()),
    }
}

fn no_session() -> Failure {
    Failure::not_found("no-such-session", "this was asked with a token, not in a session")
}
