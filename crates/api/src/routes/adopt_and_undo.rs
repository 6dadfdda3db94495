//! `/adopt`, `/recover`, `/clean` and `/rollback`.

use netstead_client::types::{AdoptInput, CleanInput, RecoverInput, RollbackInput, TakeOutput, UndoOutput};
use netstead_engine::{Adoption, Cleaning, EngineError};
use netstead_ledger::Freshness;
use netstead_model::{Ident, Name, ObjectKey, RecordType, Scope};
use netstead_plan::{
    OwnerId,
    marks::{
        Tool,
        external_dns::{MarkKey, Naming},
    },
};

use super::scoped;
use crate::{
    convert,
    http::{
        answer::Answer,
        body::Json,
        query::{NoParams, Query},
        session::{Admin, RequestContext, Session, Write},
    },
    openapi::Changing,
    problem::Failure,
};

/// Takes over foreign records: those at a name, or those marked as another tool's. What is asked
/// for takes their place; what nothing asks for stays as it is. A token with scopes may take over names that it covers, and
/// what a tool marked in a `zone` in which it covers every name. On an IPAM system, an object is taken over, or fields of ours
/// that others changed.
#[utoipa::path(post, path = "/adopt", tag = "names", operation_id = "adopt", request_body = AdoptInput,
    responses((status = 200, description = "What is ours now", body = TakeOutput), Changing))]
pub(crate) async fn adopt(
    session: Session<Write>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<AdoptInput>,
) -> Result<Answer<TakeOutput>, Failure> {
    if input.object.is_some() {
        return adopt_object(&session, &input).await;
    }
    if input.keep {
        return Err(Failure::impossible("keep", "it goes with an `object`"));
    }
    let name: Option<Name> = convert::maybe("name", input.name.as_ref())?;
    let provider: Option<Ident> = convert::maybe("provider", input.provider.as_ref())?;
    let kind: Option<RecordType> = convert::maybe("type", input.kind.as_ref())?;
    let tool: Option<Tool> = convert::maybe("from", input.from.as_ref())?;
    let zone: Option<Name> = convert::maybe("zone", input.zone.as_ref())?;
    let scope = session.name_scope(Freshness::Fresh).await?;
    match (&name, &zone) {
        (Some(name), _) => scope.check(name)?,
        (None, Some(zone)) => scope.check_zone(zone)?,
        (None, None) => session.check_unscoped()?,
    }
    if let Some(provider) = &provider {
        scoped::check_provider(&session.engine()?, &scope, provider)?;
    }
    let key = input.txt_key.as_deref().map(MarkKey::parse).transpose();
    let naming = Naming {
        key: key.map_err(|why| Failure::impossible("txt_key", why))?,
        prefix: input.txt_prefix.unwrap_or_default(),
        suffix: input.txt_suffix.unwrap_or_default(),
        wildcard: input.txt_wildcard.unwrap_or_default(),
    };
    let take = match (name, tool) {
        (Some(name), None) => {
            if input.id.is_some() || zone.is_some() || naming != Naming::default() {
                return Err(Failure::impossible(
                    "from",
                    "without it, only a name and a type say what is meant",
                ));
            }
            Adoption::Name { name, kind }
        }
        (None, Some(tool)) => {
            if kind.is_some() {
                return Err(Failure::impossible("type", "it goes with a name"));
            }
            Adoption::Tool { tool, id: input.id, naming, zone }
        }
        _ => return Err(Failure::impossible("name", "either a name or `from` is needed, not both")),
    };
    let (engine, by, dry) = (session.engine()?, session.grant.by(), input.dry_run);
    let taken =
        finish(&session, async move { engine.adopt(take, provider.as_ref(), dry, &by).await }).await?;
    let now = session.app.clock.wall();
    let output = match scope.names() {
        None => convert::adopt_and_undo::adopted(&taken, now),
        Some(names) => convert::adopt_and_undo::adopted(&scoped::adopted(taken, names), now),
    };
    Ok(Answer::ok(output))
}

/// Takes over an object of an IPAM system, or fields of it.
async fn adopt_object(session: &Session<Write>, input: &AdoptInput) -> Result<Answer<TakeOutput>, Failure> {
    session.check_unscoped()?;
    let others = AdoptInput { object: None, keep: false, provider: None, dry_run: false, ..input.clone() };
    if others != AdoptInput::default() {
        return Err(Failure::impossible(
            "object",
            "with it, only `provider`, `keep` and `dry_run` are meant",
        ));
    }
    let object: Option<ObjectKey> = convert::maybe("object", input.object.as_ref())?;
    let provider: Option<Ident> = convert::maybe("provider", input.provider.as_ref())?;
    let Some(object) = object else { return Err(Failure::impossible("object", "it is missing")) };
    let (engine, by) = (session.engine()?, session.grant.by());
    let (keep, dry) = (input.keep, input.dry_run);
    let taking = async move { engine.adopt_object(&object, provider.as_ref(), keep, dry, &by).await };
    let taken = finish(session, taking).await?;
    Ok(Answer::ok(convert::adopt_and_undo::adopted(&taken, session.app.clock.wall())))
}

/// Makes what the marks of an owner id say is its own ours, after the store was lost. From then on this installation has
/// that id, and its first plan is parked as a whole.
#[utoipa::path(post, path = "/recover", tag = "names", operation_id = "recover", request_body = RecoverInput,
    responses((status = 200, description = "What is ours again", body = TakeOutput), Changing))]
pub(crate) async fn recover(
    session: Session<Admin>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<RecoverInput>,
) -> Result<Answer<TakeOutput>, Failure> {
    session.check_unscoped()?;
    let owner: OwnerId = convert::parse("owner", &input.owner)?;
    let provider: Option<Ident> = convert::maybe("provider", input.provider.as_ref())?;
    let (engine, by, dry) = (session.engine()?, session.grant.by(), input.dry_run);
    let recovering = async move { engine.recover(owner, provider.as_ref(), dry, &by).await };
    let taken = finish(&session, recovering).await?;
    Ok(Answer::ok(convert::adopt_and_undo::adopted(&taken, session.app.clock.wall())))
}

/// Removes what a source brought that is no longer configured, what a scope brought that is retired or cannot be seen, or
/// everything of ours on a provider, and pauses the providers it touches. Or forgets what is ours on a provider that is no longer configured.
#[utoipa::path(post, path = "/clean", tag = "names", operation_id = "clean", request_body = CleanInput,
    responses((status = 200, description = "What is gone", body = UndoOutput), Changing))]
pub(crate) async fn clean(
    session: Session<Admin>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<CleanInput>,
) -> Result<Answer<UndoOutput>, Failure> {
    session.check_unscoped()?;
    let source: Option<Ident> = convert::maybe("source", input.source.as_ref())?;
    let provider: Option<Ident> = convert::maybe("provider", input.provider.as_ref())?;
    let scope: Option<Scope> = convert::maybe("scope", input.scope.as_ref())?;
    let (engine, by, dry) = (session.engine()?, session.grant.by(), input.dry_run);
    let what = match (source, provider) {
        (None, _) if scope.is_some() => {
            return Err(Failure::impossible("scope", "a scope is part of a source: `source` is needed, too"));
        }
        (Some(_), None) if input.forget => {
            return Err(Failure::impossible("forget", "only what is on a provider can be forgotten"));
        }
        (None, Some(provider)) if input.forget => {
            let forgetting = async move { engine.forget(&provider, dry, &by).await };
            let count = finish(&session, forgetting).await?;
            let mut output = convert::adopt_and_undo::undone(
                &netstead_engine::Undone::default(),
                session.app.clock.wall(),
            );
            output.forgotten = convert::dns::count(count);
            return Ok(Answer::ok(output));
        }
        (Some(source), None) => match scope {
            Some(scope) => Cleaning::Scope(source, scope),
            None => Cleaning::Source(source),
        },
        (None, Some(provider)) => Cleaning::Provider(provider),
        _ => return Err(Failure::impossible("source", "either a source or a provider is needed, not both")),
    };
    let cleaning = async move { engine.clean(&what, dry, input.expect.as_deref(), &by).await };
    let undone = finish(&session, cleaning).await?;
    Ok(Answer::ok(convert::adopt_and_undo::undone(&undone, session.app.clock.wall())))
}

/// Brings a provider back to what one of its last generations had, as a new generation, and pauses it.
#[utoipa::path(post, path = "/rollback", tag = "names", operation_id = "rollback", request_body = RollbackInput,
    responses((status = 200, description = "What was taken back", body = UndoOutput), Changing))]
pub(crate) async fn rollback(
    session: Session<Write>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<RollbackInput>,
) -> Result<Answer<UndoOutput>, Failure> {
    session.check_unscoped()?;
    let provider: Option<Ident> = convert::maybe("provider", input.provider.as_ref())?;
    let (engine, by) = (session.engine()?, session.grant.by());
    let RollbackInput { to, dry_run, expect, .. } = input;
    let rolling =
        async move { engine.rollback(to, provider.as_ref(), dry_run, expect.as_deref(), &by).await };
    let undone = finish(&session, rolling).await?;
    Ok(Answer::ok(convert::adopt_and_undo::undone(&undone, session.app.clock.wall())))
}

/// Waits for as long as the request may. What was begun goes on to its end whatever becomes of the caller.
async fn finish<T: Send + 'static>(
    session: &RequestContext,
    work: impl Future<Output = Result<T, EngineError>> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::time::timeout(session.time_left(), tokio::spawn(work)).await;
    match done {
        Ok(Ok(answer)) => Ok(answer?),
        Ok(Err(_)) => Err(Failure::internal("it failed half way; this is a bug".to_owned())),
        Err(_) => Err(Failure::still_running()),
    }
}
