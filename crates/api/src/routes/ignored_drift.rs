//! Drift that is ignored: list, ignore, report again.

use netstead_client::types::{IgnoreDriftInput, IgnoredDriftOutput, Page};
use netstead_engine::IgnoredDrift;
use netstead_ledger::Freshness;
use netstead_model::{Ident, Name, RecordType};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{page_of, scoped};
use crate::{
    convert,
    http::{
        answer::Answer,
        body::Json,
        query::{NoParams, Query, maybe, parse},
        session::{Read, RequestContext, Session, Write},
    },
    openapi::{Changing, Ending, Listing},
    problem::Failure,
};

/// Longest reason, in characters.
const LONGEST: usize = 1000;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AgainParams {
    /// The name.
    name: String,
    /// Only values of this type.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Only on this provider.
    provider: Option<String>,
}

/// Lists the drift that is ignored, and why.
#[utoipa::path(get, path = "/drift/ignored", tag = "names", operation_id = "list_ignored_drift", params(ListParams),
    responses((status = 200, description = "In order of provider and name", body = Page<IgnoredDriftOutput>), Listing))]
pub(crate) async fn list(
    session: Session<Read>,
    Query(params): Query<ListParams>,
) -> Result<Answer<Page<IgnoredDriftOutput>>, Failure> {
    let scope = session.name_scope(Freshness::Stale).await?;
    let mut ignored = session.engine()?.ignored_drift();
    ignored.retain(|one| scope.covers(&one.name));
    let items = ignored.iter().map(output).collect();
    let place = |one: &IgnoredDriftOutput| {
        format!("{}/{}/{}/{}/{}", one.provider, one.name, one.kind, one.drift, one.value)
    };
    page_of(&session, items, place, params.after.as_ref(), params.limit.as_ref())
}

/// Ignores the drift at a name, with a reason, until it changes: values of others beside ours, and marks. A token with scopes may do
/// so for names that it covers.
#[utoipa::path(post, path = "/drift/ignored", tag = "names", operation_id = "ignore_drift", request_body = IgnoreDriftInput,
    responses((status = 200, description = "What is ignored now", body = Vec<IgnoredDriftOutput>), Changing))]
pub(crate) async fn ignore(
    session: Session<Write>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<IgnoreDriftInput>,
) -> Result<Answer<Vec<IgnoredDriftOutput>>, Failure> {
    let name: Name = convert::parse("name", &input.name)?;
    let kind: Option<RecordType> = convert::maybe("type", input.kind.as_ref())?;
    let provider: Option<Ident> = convert::maybe("provider", input.provider.as_ref())?;
    let reason = input.reason.trim();
    if reason.is_empty() || reason.chars().count() > LONGEST {
        return Err(Failure::impossible("reason", format!("give a reason of 1 to {LONGEST} characters")));
    }
    check(&session, &name, provider.as_ref()).await?;
    let (engine, by) = (session.engine()?, session.grant.by());
    let ignored = engine.ignore_drift(provider.as_ref(), &name, kind, reason, &by).await?;
    Ok(Answer::ok(ignored.iter().map(output).collect()))
}

/// Reports the drift at a name again, and answers what was ignored there. Asking twice is fine.
#[utoipa::path(delete, path = "/drift/ignored", tag = "names", operation_id = "report_drift_again", params(AgainParams),
    responses((status = 200, description = "What is ignored no longer", body = Vec<IgnoredDriftOutput>), Ending))]
pub(crate) async fn report_again(
    session: Session<Write>,
    Query(params): Query<AgainParams>,
) -> Result<Answer<Vec<IgnoredDriftOutput>>, Failure> {
    let name: Name = parse("name", &params.name)?;
    let kind: Option<RecordType> = maybe("type", params.kind.as_ref())?;
    let provider: Option<Ident> = maybe("provider", params.provider.as_ref())?;
    check(&session, &name, provider.as_ref()).await?;
    let (engine, by) = (session.engine()?, session.grant.by());
    let ended = engine.report_drift_again(provider.as_ref(), &name, kind, &by).await?;
    Ok(Answer::ok(ended.iter().map(output).collect()))
}

async fn check(session: &RequestContext, name: &Name, provider: Option<&Ident>) -> Result<(), Failure> {
    let scope = session.name_scope(Freshness::Fresh).await?;
    scope.check(name)?;
    provider.map_or(Ok(()), |provider| scoped::check_provider(&session.engine()?, &scope, provider))
}

fn output(one: &IgnoredDrift) -> IgnoredDriftOutput {
    IgnoredDriftOutput {
        provider: one.provider.to_string(),
        name: one.name.to_string(),
        kind: one.value.kind().into(),
        value: one.value.to_string(),
        drift: convert::plan::drift_kind(one.kind),
        reason: one.reason.clone(),
        by: one.by.clone(),
        at: one.at,
    }
}
