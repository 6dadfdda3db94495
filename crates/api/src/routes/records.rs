//! Records: what exists at each name, and what people set by hand.

use netstead_client::types::{self, ManualOutput, Page, RecordInput, RecordOutput};
use netstead_engine::{RecordQuery, RecordState, RecordView};
use netstead_ledger::Freshness;
use netstead_model::{Ident, Name, RecordData, RecordType};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::cut;
use crate::{
    convert,
    http::{
        answer::Answer,
        body::Json,
        path::{NamePath, RecordPath},
        query::{NoParams, Query, limit, maybe},
        session::{Read, RequestContext, Session, Write},
    },
    openapi::{Changing, Ending, Listing, Looking},
    problem::Failure,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Only records in this zone.
    zone: Option<String>,
    /// Only records at this name.
    name: Option<String>,
    /// Only records of this provider.
    provider: Option<String>,
    /// Only records in this state.
    #[param(inline, value_type = Option<types::RecordState>)]
    state: Option<String>,
    /// Only records with this in the name or the value, whatever its case.
    text: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// 1 to 1000; default 100.
    limit: Option<String>,
}

/// The result of a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deleted {
    /// Whether there was something.
    deleted: bool,
}

/// Lists the records that matter here: ours, those that shall be, and those that stand in their way.
#[utoipa::path(get, path = "/records", tag = "names", operation_id = "list_records", params(ListParams),
    responses((status = 200, description = "Records by name, type, value and provider", body = Page<RecordOutput>), Listing))]
pub(crate) async fn list(
    session: Session<Read>,
    Query(params): Query<ListParams>,
) -> Result<Answer<Page<RecordOutput>>, Failure> {
    let zone: Option<Name> = maybe("zone", params.zone.as_ref())?;
    let name: Option<Name> = maybe("name", params.name.as_ref())?;
    let provider: Option<Ident> = maybe("provider", params.provider.as_ref())?;
    let state = params.state.as_deref().map(state).transpose()?;
    let most = limit(params.limit.as_ref())?;
    let within = session.name_scope(Freshness::Stale).await?.names().cloned();
    let after = params.after;
    let text = params.text.map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
    // What a text leaves out does not count.
    let limit = text.is_none().then_some(most + 1);
    let query = RecordQuery { provider, zone, name, state, within, after, limit };
    let mut records = session.engine()?.list_records(&query);
    if let Some(text) = text {
        records.retain(|view| has_text(view, &text));
    }
    let next = cut(&mut records, most, RecordView::sort_key);
    let items = records.iter().map(convert::dns::record).collect();
    let seq = session.app.ledger.health().seq;
    Ok(Answer::ok(Page { items, next, seq }).at(seq))
}

fn has_text(view: &RecordView, text: &str) -> bool {
    [view.name.to_string(), view.value.to_string()].iter().any(|field| field.to_lowercase().contains(text))
}

fn state(text: &str) -> Result<RecordState, Failure> {
    let known = RecordState::ALL.into_iter().find(|state| state.to_string() == text);
    known.ok_or_else(|| {
        let names: Vec<String> = RecordState::ALL.iter().map(ToString::to_string).collect();
        Failure::unreadable("state", format!("it is one of {}", names.join(", ")))
    })
}

/// Shows what was set by hand of one type at a name.
#[utoipa::path(get, path = "/records/{name}/{type}", tag = "names", operation_id = "get_record",
    params(("name" = String, Path, description = "The full name"), ("type" = inline(types::RecordType), Path, description = "Type of the records")),
    responses((status = 200, description = "The record as it was set", body = ManualOutput), Looking))]
pub(crate) async fn get(
    session: Session<Read>,
    RecordPath { name, kind }: RecordPath,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<ManualOutput>, Failure> {
    session.check_name(&name).await?;
    let all = session.engine()?.manual().list();
    let found = all.iter().find(|record| record.name == name && record.kind == kind);
    let record = found.ok_or_else(|| {
        let told = format!("no {kind} record of `{name}` was set by hand");
        Failure::not_found("no-such-record", told).fact("name", &name).fact("type", kind)
    })?;
    Ok(Answer::ok(convert::dns::manual(record)))
}

/// Sets all values of one type at a name, in place of those set by hand before. A repeat changes nothing.
#[utoipa::path(put, path = "/records/{name}/{type}", tag = "names", operation_id = "put_record", request_body = RecordInput,
    params(("name" = String, Path, description = "The full name"), ("type" = inline(types::RecordType), Path, description = "Type of the records")),
    responses((status = 200, description = "It is set", body = ManualOutput), Changing))]
pub(crate) async fn put(
    session: Session<Write>,
    RecordPath { name, kind }: RecordPath,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<RecordInput>,
) -> Result<Answer<ManualOutput>, Failure> {
    session.check_name(&name).await?;
    let values = input.values.iter().enumerate().map(|(place, text)| {
        RecordData::parse(kind, text).map_err(|error| Failure::unreadable(format!("values[{place}]"), error))
    });
    let values = values.collect::<Result<Vec<_>, _>>()?;
    let engine = session.engine()?;
    let manual = engine.manual();
    // Before it is set: what is there already decides whether it comes into being.
    let warnings = engine.doubts_about_record(&name, kind);
    let set = manual.set(name, kind, values, input.ttl, &session.grant.by()).await?;
    Ok(Answer::ok(ManualOutput { warnings, ..convert::dns::manual(&set) }))
}

/// Takes away what was set by hand of one type at a name. Nothing there is fine.
#[utoipa::path(delete, path = "/records/{name}/{type}", tag = "names", operation_id = "delete_record",
    params(("name" = String, Path, description = "The full name"), ("type" = inline(types::RecordType), Path, description = "Type of the records")),
    responses((status = 200, description = "It is gone", body = Deleted), Ending))]
pub(crate) async fn delete(
    session: Session<Write>,
    RecordPath { name, kind }: RecordPath,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<Deleted>, Failure> {
    delete_manual(&session, &name, Some(kind)).await
}

/// Takes away everything that was set by hand at a name. Nothing there is fine.
#[utoipa::path(delete, path = "/records/{name}", tag = "names", operation_id = "delete_records",
    params(("name" = String, Path, description = "The full name")),
    responses((status = 200, description = "It is gone", body = Deleted), Ending))]
pub(crate) async fn delete_all(
    session: Session<Write>,
    NamePath(name): NamePath,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<Deleted>, Failure> {
    delete_manual(&session, &name, None).await
}

async fn delete_manual(
    session: &RequestContext,
    name: &Name,
    kind: Option<RecordType>,
) -> Result<Answer<Deleted>, Failure> {
    session.check_name(name).await?;
    let deleted = session.engine()?.manual().delete(name, kind, &session.grant.by()).await?;
    Ok(Answer::ok(Deleted { deleted }))
}
