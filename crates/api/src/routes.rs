//! The table of routes.

pub(crate) mod addresses;
pub(crate) mod adopt_and_undo;
pub(crate) mod api_docs;
pub(crate) mod backend_drift;
pub(crate) mod bulk;
pub(crate) mod changes;
pub(crate) mod claiming;
pub(crate) mod claims;
pub(crate) mod cluster;
pub(crate) mod doctor;
pub(crate) mod event_stream;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod ignored_drift;
pub(crate) mod observations;
pub(crate) mod pauses;
pub(crate) mod plans;
pub(crate) mod pools;
pub(crate) mod probes;
pub(crate) mod records;
pub(crate) mod reservations;
pub(crate) mod scoped;
pub(crate) mod sessions;
pub(crate) mod sources_and_providers;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod tokens;
pub(crate) mod usage;
pub(crate) mod what_if;

use std::sync::Arc;

use axum::{Router, middleware, routing::get};
use netstead_client::types::Page;
use netstead_ledger::Book;
use netstead_model::Ident;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi as _;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    KindNames,
    access::Scopes,
    app::AppState,
    http::{answer::Answer, auth, envelope, forward, host_check, query::limit, session::RequestContext},
    openapi::{self, Document},
    problem::Failure,
};

/// All routes with everything around them.
pub(crate) fn router(app: &AppState, kinds: &KindNames) -> Router {
    let (api, mut document) = documented().split_for_parts();
    openapi::name_kinds(&mut document, kinds);
    // The last one is the first to see a request.
    let api = api
        .route_layer(middleware::from_fn_with_state(Arc::clone(app), forward::to_leader))
        .route_layer(middleware::from_fn_with_state(Arc::clone(app), auth::authenticate));
    let open = Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .merge(api_docs::routes(&document));
    api.merge(open)
        .fallback(envelope::not_found)
        .method_not_allowed_fallback(envelope::method_not_allowed)
        .layer(middleware::from_fn_with_state(Arc::clone(app), host_check::check_host))
        .layer(CatchPanicLayer::custom(envelope::panicked))
        .layer(middleware::from_fn_with_state(Arc::clone(app), envelope::wrap_request))
        .with_state(Arc::clone(app))
}

/// Routes that have a form of their own, for callers that name this server.
pub(crate) fn behind_host_check(routes: Router, app: &AppState) -> Router {
    routes.layer(middleware::from_fn_with_state(Arc::clone(app), host_check::check_host))
}

/// Routes that need a token, and are in the `OpenAPI` document.
pub(crate) fn documented() -> OpenApiRouter<AppState> {
    let v1 = OpenApiRouter::new()
        .routes(routes!(status::get))
        .routes(routes!(doctor::get))
        .routes(routes!(cluster::get))
        .routes(routes!(cluster::remove))
        .routes(routes!(cluster::nodes::add))
        .routes(routes!(cluster::nodes::remove))
        .routes(routes!(pools::list))
        .routes(routes!(pools::get, pools::put, pools::delete))
        .routes(routes!(pools::blocks::list))
        .routes(routes!(usage::of_pool))
        .routes(routes!(usage::all))
        .routes(routes!(claims::get, claiming::put, claiming::release))
        .routes(routes!(claiming::renew))
        .routes(routes!(claiming::transfer))
        .routes(routes!(claims::list, claiming::post))
        .routes(routes!(bulk::post))
        .routes(routes!(backend_drift::list))
        .routes(routes!(backend_drift::restore))
        .routes(routes!(backend_drift::release))
        .routes(routes!(ignored_drift::list, ignored_drift::ignore, ignored_drift::report_again))
        .routes(routes!(addresses::list))
        .routes(routes!(addresses::explain))
        .routes(routes!(reservations::list_of_pool))
        .routes(routes!(reservations::put, reservations::delete))
        .routes(routes!(reservations::list))
        .routes(routes!(events::list))
        .routes(routes!(event_stream::follow))
        .routes(routes!(observations::put))
        .routes(routes!(observations::list))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(pauses::pause))
        .routes(routes!(pauses::resume))
        .routes(routes!(sources_and_providers::sources))
        .routes(routes!(sources_and_providers::providers))
        .routes(routes!(sources_and_providers::workloads))
        .routes(routes!(sources_and_providers::zones))
        .routes(routes!(sources_and_providers::explain))
        .routes(routes!(plans::list))
        .routes(routes!(plans::get))
        .routes(routes!(what_if::case))
        .routes(routes!(what_if::what_if))
        .routes(routes!(plans::apply))
        .routes(routes!(plans::approve))
        .routes(routes!(adopt_and_undo::adopt))
        .routes(routes!(adopt_and_undo::recover))
        .routes(routes!(sessions::current, sessions::keep, sessions::log_out))
        .routes(routes!(sessions::list, sessions::open))
        .routes(routes!(sessions::link))
        .routes(routes!(sessions::end))
        .routes(routes!(adopt_and_undo::clean))
        .routes(routes!(adopt_and_undo::rollback))
        .routes(routes!(changes::list))
        .routes(routes!(records::list))
        .routes(routes!(records::get, records::put, records::delete))
        .routes(routes!(records::delete_all))
        .routes(routes!(store::backup))
        .routes(routes!(store::check));
    let mut router = OpenApiRouter::with_openapi(Document::openapi()).nest("/api/v1", v1);
    openapi::mark_optional_bodies(router.get_openapi_mut());
    router
}

/// The pools a token may look at, unless that is all of them. Pools that are gone count as far as they can be known.
pub(crate) fn visible(book: &Book, scopes: &Scopes) -> Option<Vec<Ident>> {
    let in_vrf =
        |pool: &Ident| scopes.vrfs.is_empty() || book.vrf_of(pool).is_some_and(|vrf| scopes.allows_vrf(vrf));
    if !scopes.pools.is_empty() {
        return Some(scopes.pools.iter().filter(|pool| in_vrf(pool)).cloned().collect());
    }
    if scopes.vrfs.is_empty() {
        return None;
    }
    let all = book.pools().map(|status| status.pool.spec);
    Some(all.filter(|spec| scopes.allows_vrf(&spec.vrf)).map(|spec| spec.name).collect())
}

/// Cuts a list that has one thing too many, and says where the next page begins.
fn cut<T>(items: &mut Vec<T>, limit: usize, cursor: impl FnOnce(&T) -> String) -> Option<String> {
    let more = items.len() > limit;
    items.truncate(limit);
    items.last().filter(|_| more).map(cursor)
}

/// One page of a list that is all in memory, in the order of what `place` says of each thing; its cursor is the last
/// place.
fn page_of<T>(
    session: &RequestContext,
    mut items: Vec<T>,
    place: impl Fn(&T) -> String,
    after: Option<&String>,
    most: Option<&String>,
) -> Result<Answer<Page<T>>, Failure> {
    let limit = limit(most)?;
    if let Some(after) = after {
        items.retain(|item| place(item) > *after);
    }
    items.sort_by_cached_key(&place);
    let next = cut(&mut items, limit, place);
    let seq = session.app.ledger.health().seq;
    Ok(Answer::ok(Page { items, next, seq }).at(seq))
}
