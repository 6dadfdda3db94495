//! The table of routes.

pub(crate) mod addresses;
pub(crate) mod bulk;
pub(crate) mod changes;
pub(crate) mod claiming;
pub(crate) mod claims;
pub(crate) mod cluster;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod names;
pub(crate) mod observations;
pub(crate) mod page;
pub(crate) mod pauses;
pub(crate) mod plans;
pub(crate) mod pools;
pub(crate) mod probes;
pub(crate) mod records;
pub(crate) mod reservations;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod stream;
pub(crate) mod tokens;
pub(crate) mod verbs;
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
    access::Scopes,
    app::Shared,
    http::{answer::Answer, auth, door, forward, frame, query::limit, session::Asker},
    openapi::Document,
    problem::Failure,
};

/// All routes with everything around them.
pub(crate) fn router(app: &Shared) -> Router {
    let (api, document) = documented().split_for_parts();
    // The last one is the first to see a request.
    let api = api
        .route_layer(middleware::from_fn_with_state(Arc::clone(app), forward::to_leader))
        .route_layer(middleware::from_fn_with_state(Arc::clone(app), auth::authenticate));
    let open = Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .merge(page::routes(&document));
    api.merge(open)
        .fallback(frame::nothing_here)
        .method_not_allowed_fallback(frame::not_that_way)
        .layer(middleware::from_fn_with_state(Arc::clone(app), door::guard))
        .layer(CatchPanicLayer::custom(frame::panicked))
        .layer(middleware::from_fn_with_state(Arc::clone(app), frame::frame))
        .with_state(Arc::clone(app))
}

/// What needs a token, and is in the `OpenAPI` document.
pub(crate) fn documented() -> OpenApiRouter<Shared> {
    let v1 = OpenApiRouter::new()
        .routes(routes!(status::get))
        .routes(routes!(doctor::get))
        .routes(routes!(cluster::get))
        .routes(routes!(cluster::remove))
        .routes(routes!(cluster::nodes::add))
        .routes(routes!(cluster::nodes::remove))
        .routes(routes!(pools::list))
        .routes(routes!(pools::get, pools::put, pools::delete))
        .routes(routes!(claims::get, claiming::put, claiming::release))
        .routes(routes!(claiming::renew))
        .routes(routes!(claiming::transfer))
        .routes(routes!(claims::list, claiming::post))
        .routes(routes!(bulk::post))
        .routes(routes!(addresses::list))
        .routes(routes!(addresses::explain))
        .routes(routes!(reservations::list_of_pool))
        .routes(routes!(reservations::put, reservations::delete))
        .routes(routes!(reservations::list))
        .routes(routes!(events::list))
        .routes(routes!(stream::follow))
        .routes(routes!(observations::put))
        .routes(routes!(observations::list))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(pauses::pause))
        .routes(routes!(pauses::resume))
        .routes(routes!(names::sources))
        .routes(routes!(names::providers))
        .routes(routes!(names::workloads))
        .routes(routes!(names::zones))
        .routes(routes!(names::explain))
        .routes(routes!(plans::list))
        .routes(routes!(plans::get))
        .routes(routes!(what_if::case))
        .routes(routes!(what_if::what_if))
        .routes(routes!(plans::apply))
        .routes(routes!(plans::approve))
        .routes(routes!(verbs::adopt))
        .routes(routes!(verbs::recover))
        .routes(routes!(verbs::clean))
        .routes(routes!(verbs::rollback))
        .routes(routes!(changes::list))
        .routes(routes!(records::list))
        .routes(routes!(records::put, records::delete))
        .routes(routes!(records::delete_all))
        .routes(routes!(store::backup))
        .routes(routes!(store::check));
    OpenApiRouter::with_openapi(Document::openapi()).nest("/api/v1", v1)
}

/// The pools a token may look at, unless that is all of them. Pools that are gone count as far as they can be known.
fn visible(book: &Book, scopes: &Scopes) -> Option<Vec<Ident>> {
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
    session: &Asker,
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
