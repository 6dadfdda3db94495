//! Pauses: plans are made and shown, and nothing is written.

use netstead_client::types::{PauseInput, PauseOutput, ResumeInput};
use netstead_engine::Scope;
use netstead_ledger::{Command, Freshness};
use netstead_model::{Ident, Name, Span};

use super::{scoped, store::Empty};
use crate::{
    access::Role,
    convert,
    http::{
        answer::Answer,
        body::Json,
        query::{NoParams, Query},
        session::{Read, RequestContext, Session, Write},
    },
    openapi::Changing,
    problem::Failure,
};

/// Stops writing to every DNS server (`"all": true`), to one, or to one of its zones. Plans are still made. A token with scopes
/// may stop zones in which it covers every name.
#[utoipa::path(post, path = "/pause", tag = "names", operation_id = "pause", request_body = PauseInput,
    responses((status = 200, description = "Nothing is written there", body = PauseOutput), Changing))]
pub(crate) async fn pause(
    session: Session<Write>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<PauseInput>,
) -> Result<Answer<PauseOutput>, Failure> {
    let scope = scope(input.provider.as_ref(), input.zone.as_ref(), input.backend.as_ref())?;
    if let Scope::Backend(name) = &scope
        && session.app.backends.get(name).is_none()
    {
        return Err(Failure::impossible("backend", format!("there is no backend `{name}`")));
    }
    match (&scope, input.all) {
        (Scope::All, false) => return Err(Failure::impossible("all", WHAT)),
        (Scope::All, true) | (_, false) => {}
        (_, true) => return Err(Failure::impossible("all", "it goes without `provider` and `zone`")),
    }
    check_scope(&session, &scope).await?;
    let lasts: Option<Span> = convert::maybe("for", input.span.as_ref())?;
    let engine = session.engine()?;
    engine.pause(scope.clone(), lasts, input.reason, &session.grant.by()).await?;
    let status = engine.status();
    let pause = status.pauses.iter().find(|pause| pause.scope == scope);
    let now = session.app.clock.wall();
    let output = pause.map(|pause| convert::dns::pause(pause, status.time, now)).unwrap_or(PauseOutput {
        provider: input.provider,
        zone: input.zone,
        backend: input.backend,
        until: None,
        reason: None,
        by: None,
    });
    Ok(Answer::ok(output))
}

/// Ends a pause. Without a provider all of them end, and a restored ledger hands out addresses again; that needs the
/// role `admin` and no scopes. A token with scopes may resume zones in which it covers every name. Resuming twice is fine.
#[utoipa::path(post, path = "/resume", tag = "names", operation_id = "resume", request_body = ResumeInput,
    responses((status = 200, description = "It is resumed", body = Empty), Changing))]
pub(crate) async fn resume(
    session: Session<Read>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<ResumeInput>,
) -> Result<Answer<Empty>, Failure> {
    let scope = scope(input.provider.as_ref(), input.zone.as_ref(), input.backend.as_ref())?;
    if scope != Scope::All {
        session.check_role(Role::Write)?;
        check_scope(&session, &scope).await?;
        session.engine()?.resume(scope, &session.grant.by()).await?;
        return Ok(Answer::ok(Empty {}));
    }
    session.check_role(Role::Admin)?;
    session.check_unscoped()?;
    if let Some(engine) = session.app.engine_slot.engine() {
        engine.resume(Scope::All, &session.grant.by()).await?;
    }
    let done = session.submit(Command::Resume).await?;
    Ok(Answer::ok(Empty {}).at(done.seq))
}

/// Refusal of a request to pause that names nothing to pause.
const WHAT: &str = "say what to pause: `\"all\": true`, or a `provider`, or a `provider` and a `zone` of it";

/// Refuses a pause that reaches further than the token: only that of one zone can be within its scopes.
async fn check_scope(session: &RequestContext, scope: &Scope) -> Result<(), Failure> {
    let Scope::Zone(provider, zone) = scope else { return session.check_unscoped() };
    let names = session.name_scope(Freshness::Fresh).await?;
    names.check_zone(zone)?;
    scoped::check_provider(&session.engine()?, &names, provider)
}

fn scope(
    provider: Option<&String>,
    zone: Option<&String>,
    backend: Option<&String>,
) -> Result<Scope, Failure> {
    if let Some(backend) = convert::maybe("backend", backend)? {
        if provider.is_some() || zone.is_some() {
            return Err(Failure::impossible("backend", "it goes without `provider` and `zone`"));
        }
        return Ok(Scope::Backend(backend));
    }
    let provider: Option<Ident> = convert::maybe("provider", provider)?;
    let zone: Option<Name> = convert::maybe("zone", zone)?;
    match (provider, zone) {
        (Some(provider), Some(zone)) => Ok(Scope::Zone(provider, zone)),
        (Some(provider), None) => Ok(Scope::Provider(provider)),
        (None, None) => Ok(Scope::All),
        (None, Some(_)) => Err(Failure::impossible("zone", "a zone is one of a provider: name that too")),
    }
}
