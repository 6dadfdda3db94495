//! Plans: list, show, apply, approve.

use std::{collections::BTreeMap, time::Duration};

use axum::http::StatusCode;
use netstead_client::types::{ApplyInput, ApplyOutput, Page, PlanOutput};
use netstead_engine::{EngineError, ProviderStatus};
use netstead_ledger::Freshness;
use netstead_model::Ident;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{page_of, scoped, store::Empty};
use crate::{
    convert,
    http::{
        answer::Answer,
        body::Json,
        name_scope::NameScope,
        path::{ProviderPath, TextPath},
        query::{NoParams, Query, maybe},
        session::{Read, RequestContext, Session, Write},
    },
    openapi::{Changing, Listing, Looking},
    problem::Failure,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlanListParams {
    /// `true`: the text of each plan has every parked change and every note, however many they are.
    #[param(inline, value_type = Option<bool>)]
    all: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlanParams {
    /// `true`: the text of the plan has every parked change and every note, however many they are.
    #[param(inline, value_type = Option<bool>)]
    all: Option<String>,
}

fn in_full(all: Option<&String>) -> Result<bool, Failure> {
    Ok(maybe("all", all)?.unwrap_or(false))
}

/// Lists the newest plan of each provider.
#[utoipa::path(get, path = "/plans", tag = "names", operation_id = "list_plans", params(PlanListParams),
    responses((status = 200, description = "Plans by provider", body = Page<PlanOutput>), Listing))]
pub(crate) async fn list(
    session: Session<Read>,
    Query(params): Query<PlanListParams>,
) -> Result<Answer<Page<PlanOutput>>, Failure> {
    let scope = session.name_scope(Freshness::Stale).await?;
    let plans = plans(&session, &scope, None, in_full(params.all.as_ref())?)?;
    page_of(
        &session,
        plans,
        |plan: &PlanOutput| plan.provider.clone(),
        params.after.as_ref(),
        params.limit.as_ref(),
    )
}

/// Shows the newest plan of a provider.
#[utoipa::path(get, path = "/plans/{provider}", tag = "names", operation_id = "get_plan",
    params(("provider" = String, Path, description = "The provider"), PlanParams),
    responses((status = 200, description = "Its newest plan", body = PlanOutput), Looking))]
pub(crate) async fn get(
    session: Session<Read>,
    ProviderPath(provider): ProviderPath,
    Query(params): Query<PlanParams>,
) -> Result<Answer<PlanOutput>, Failure> {
    let (engine, scope) = (session.engine()?, session.name_scope(Freshness::Stale).await?);
    scoped::check_provider(&engine, &scope, &provider)?;
    let status = engine.status().providers.into_iter().find(|one| one.name == provider);
    let Some(status) = status else { return Err(EngineError::NoSuchProvider { name: provider }.into()) };
    match plans(&session, &scope, Some(&provider), in_full(params.all.as_ref())?)?.into_iter().next() {
        Some(plan) if status.last.is_some() || !plan.hash.is_empty() => Ok(Answer::ok(plan)),
        _ => {
            let said = format!("`{provider}` is being read for the first time");
            let failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", said);
            Err(failure.retry_after(Duration::from_secs(1)))
        }
    }
}

fn plans(
    session: &RequestContext,
    scope: &NameScope,
    provider: Option<&Ident>,
    full: bool,
) -> Result<Vec<PlanOutput>, Failure> {
    let engine = session.engine()?;
    let now = engine.now();
    let status = scoped::status(&engine, scope);
    let plans = scoped::plans(&engine, &status, scope).into_iter();
    let plans = plans.filter(|(name, _)| provider.is_none_or(|provider| provider == name));
    let shown = |name: &Ident| status.providers.iter().find(|one| one.name == *name);
    let output = |(name, plan): (Ident, netstead_plan::Plan)| {
        let output = convert::plan::output(plan, shown(&name), now, full);
        (name, output)
    };
    let mut outputs: BTreeMap<Ident, PlanOutput> = plans.map(output).collect();
    outputs.extend(scoped::ipam_plans(&engine, &status, scope).into_iter().map(|(name, plan)| {
        let output = convert::ipam::output(plan, shown(&name), now, full);
        (name, output)
    }));
    // A server that cannot be read has no plan, or an old one: that is said, not passed over.
    let meant = status.providers.iter().filter(|one| provider.is_none_or(|provider| *provider == one.name));
    let with_state = |one: &ProviderStatus| {
        let plan = outputs.remove(&one.name);
        let plan = plan.unwrap_or_else(|| convert::plan::never_read(one, status.dry_run));
        convert::plan::with_state(plan, one)
    };
    Ok(meant.map(with_state).collect())
}

/// Looks at the sources, brings the providers in line, and answers when that is done.
#[utoipa::path(post, path = "/apply", tag = "names", operation_id = "apply", request_body = ApplyInput,
    responses((status = 200, description = "What was done", body = ApplyOutput), Changing))]
pub(crate) async fn apply(
    session: Session<Write>,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<ApplyInput>,
) -> Result<Answer<ApplyOutput>, Failure> {
    session.check_unscoped()?;
    let provider: Option<Ident> = convert::maybe("provider", input.provider.as_ref())?;
    let engine = session.engine()?;
    let applying = engine.apply(provider.as_ref());
    let passes =
        tokio::time::timeout(session.time_left(), applying).await.map_err(|_| Failure::still_running())??;
    let now = session.app.clock.wall();
    let passes = passes.iter().map(|(_, report)| convert::dns::pass(report, now)).collect();
    Ok(Answer::ok(ApplyOutput { passes }))
}

/// Does exactly the parked changes with this hash, once, within a day of their being planned. A token with scopes may do so
/// if it covers the names of all of them.
#[utoipa::path(post, path = "/apply/{hash}", tag = "names", operation_id = "apply_parked", request_body = Empty,
    params(("hash" = String, Path, description = "The hash of what is parked")),
    responses((status = 200, description = "What was done", body = ApplyOutput), Changing))]
pub(crate) async fn approve(
    session: Session<Write>,
    TextPath(hash): TextPath,
    Query(NoParams {}): Query<NoParams>,
    Json(Empty {}): Json<Empty>,
) -> Result<Answer<ApplyOutput>, Failure> {
    let (engine, scope) = (session.engine()?, session.name_scope(Freshness::Fresh).await?);
    scoped::check_parked(&engine, &scope, &hash)?;
    let parked = |status: &netstead_engine::ProviderStatus| {
        status.parked.as_ref().is_some_and(|parked| parked.hash == hash)
    };
    let meant: Vec<Ident> =
        engine.status().providers.into_iter().filter(parked).map(|one| one.name).collect();
    let by = session.grant.by();
    let approving = engine.approve(&hash, &by);
    tokio::time::timeout(session.time_left(), approving).await.map_err(|_| Failure::still_running())??;
    let status = engine.status();
    let passes = status.providers.iter().filter(|one| meant.contains(&one.name));
    let passes = passes.filter_map(convert::dns::last_pass);
    let passes = passes.map(|pass| if scope.names().is_none() { pass } else { scoped::pass(pass) });
    Ok(Answer::ok(ApplyOutput { passes: passes.collect() }))
}
