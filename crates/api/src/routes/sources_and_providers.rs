//! Sources, providers, workloads and zones, and the explanation of a name.

use netstead_client::types::{NameOutput, Page, ProviderOutput, SourceOutput, WorkloadOutput, ZoneOutput};
use netstead_engine::{ExplainLimits, RecordQuery, Scope, WorkloadView};
use netstead_ledger::Freshness;
use netstead_model::Ident;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{cut, page_of, scoped, visible};
use crate::{
    convert,
    http::{
        answer::Answer,
        path::NamePath,
        query::{NoParams, Query, limit, maybe},
        session::{Read, Session},
    },
    openapi::Listing,
    problem::Failure,
};

/// A page of a list that has no filters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParams {
    /// The `next` of the page before.
    pub(crate) after: Option<String>,
    /// 1 to 1000; default 100.
    pub(crate) limit: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WorkloadParams {
    /// Only those of this source.
    source: Option<String>,
    /// Only those that ask for a name and do not get it: `true`.
    #[param(inline, value_type = Option<bool>)]
    problems: Option<String>,
    /// Only those with this in the name, the id, a name they ask for or an address, whatever its case.
    text: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ZoneParams {
    /// Only those of this provider.
    provider: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

/// Lists the places names come from, with how much their newest report says.
#[utoipa::path(get, path = "/sources", tag = "names", operation_id = "list_sources", params(PageParams),
    responses((status = 200, description = "Sources by name", body = Page<SourceOutput>), Listing))]
pub(crate) async fn sources(
    session: Session<Read>,
    Query(params): Query<PageParams>,
) -> Result<Answer<Page<SourceOutput>>, Failure> {
    let (engine, scope) = (session.engine()?, session.name_scope(Freshness::Stale).await?);
    let sources = scoped::status(&engine, &scope).sources.iter().map(convert::dns::source).collect();
    page_of(
        &session,
        sources,
        |one: &SourceOutput| one.name.clone(),
        params.after.as_ref(),
        params.limit.as_ref(),
    )
}

/// Lists the DNS servers that are kept in line, with how they stand.
#[utoipa::path(get, path = "/providers", tag = "names", operation_id = "list_providers", params(PageParams),
    responses((status = 200, description = "Providers by name", body = Page<ProviderOutput>), Listing))]
pub(crate) async fn providers(
    session: Session<Read>,
    Query(params): Query<PageParams>,
) -> Result<Answer<Page<ProviderOutput>>, Failure> {
    let (engine, scope) = (session.engine()?, session.name_scope(Freshness::Stale).await?);
    let providers = convert::dns::providers(&scoped::status(&engine, &scope), session.app.clock.wall());
    page_of(
        &session,
        providers,
        |one: &ProviderOutput| one.name.clone(),
        params.after.as_ref(),
        params.limit.as_ref(),
    )
}

/// Lists what runs, as the sources see it, with the names it asks for.
#[utoipa::path(get, path = "/workloads", tag = "names", operation_id = "list_workloads", params(WorkloadParams),
    responses((status = 200, description = "Workloads by source and id", body = Page<WorkloadOutput>), Listing))]
pub(crate) async fn workloads(
    session: Session<Read>,
    Query(params): Query<WorkloadParams>,
) -> Result<Answer<Page<WorkloadOutput>>, Failure> {
    session.check_unscoped()?;
    let source: Option<Ident> = maybe("source", params.source.as_ref())?;
    let views = session.engine()?.workloads();
    let lacking = maybe::<bool>("problems", params.problems.as_ref())?.unwrap_or(false);
    let wanted = views.iter().filter(|view| {
        let of_source = source.as_ref().is_none_or(|source| *source == view.workload.source);
        of_source && (!lacking || !view.problems.is_empty())
    });
    let place = |view: &&WorkloadView| format!("{}/{}", view.workload.source, view.workload.id);
    let text = params.text.map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
    let mut wanted: Vec<&WorkloadView> = wanted
        .filter(|view| params.after.as_ref().is_none_or(|after| place(view) > *after))
        .filter(|view| text.as_ref().is_none_or(|text| has_text(&convert::dns::workload(view), text)))
        .collect();
    wanted.sort_by_cached_key(place);
    let next = cut(&mut wanted, limit(params.limit.as_ref())?, place);
    // Of thousands only those that are shown are made into answers.
    let items = wanted.into_iter().map(convert::dns::workload).collect();
    let seq = session.app.ledger.health().seq;
    Ok(Answer::ok(Page { items, next, seq }).at(seq))
}

fn has_text(workload: &WorkloadOutput, text: &str) -> bool {
    let told = [&workload.name, &workload.id].into_iter().chain(&workload.names).chain(&workload.addresses);
    told.into_iter().any(|field| field.to_lowercase().contains(text))
}

/// Lists the zones of all providers.
#[utoipa::path(get, path = "/zones", tag = "names", operation_id = "list_zones", params(ZoneParams),
    responses((status = 200, description = "Zones by name and provider", body = Page<ZoneOutput>), Listing))]
pub(crate) async fn zones(
    session: Session<Read>,
    Query(params): Query<ZoneParams>,
) -> Result<Answer<Page<ZoneOutput>>, Failure> {
    let provider: Option<Ident> = maybe("provider", params.provider.as_ref())?;
    let (engine, scope) = (session.engine()?, session.name_scope(Freshness::Stale).await?);
    let status = scoped::status(&engine, &scope);
    let counts = engine.count_zones(scope.names());
    let mut zones = Vec::new();
    for one in status.providers.iter().filter(|one| provider.as_ref().is_none_or(|name| *name == one.name)) {
        for zone in &one.zones {
            let (records, pending) =
                counts.get(&(one.name.clone(), zone.name.clone())).copied().unwrap_or_default();
            let of_it = Scope::Zone(one.name.clone(), zone.name.clone());
            let paused = one.paused.is_some() || status.pauses.iter().any(|pause| pause.scope == of_it);
            let (provider, zone) = (one.name.to_string(), zone.name.to_string());
            zones.push(ZoneOutput { provider, zone, records, pending, paused });
        }
    }
    let place = |one: &ZoneOutput| format!("{} {}", one.zone, one.provider);
    page_of(&session, zones, place, params.after.as_ref(), params.limit.as_ref())
}

/// Explains a name: what stands there, why, and why not something else.
#[utoipa::path(get, path = "/names/{name}", tag = "names", operation_id = "explain_name",
    params(("name" = String, Path, description = "The full name")),
    responses((status = 200, description = "What is known of it", body = NameOutput), Listing))]
pub(crate) async fn explain(
    session: Session<Read>,
    NamePath(name): NamePath,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<NameOutput>, Failure> {
    let scope = session.name_scope(Freshness::Stale).await?;
    scope.check(&name)?;
    let engine = session.engine()?;
    let query = RecordQuery { name: Some(name.clone()), ..RecordQuery::default() };
    let records = engine.list_records(&query).iter().map(convert::dns::record).collect();
    let limits = if scope.names().is_some() {
        let scopes = session.scopes();
        let pools = session.read(Freshness::Stale, |book| visible(book, scopes)).await?.value;
        let shown = scoped::status(&engine, &scope).providers.into_iter().filter(|one| !one.ipam);
        Some(ExplainLimits { providers: shown.map(|one| one.name).collect(), pools })
    } else {
        None
    };
    let why = engine.explain(&name, limits.as_ref()).await;
    Ok(Answer::ok(NameOutput { name: name.to_string(), why, records }))
}
