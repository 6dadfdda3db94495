//! The `OpenAPI` document and the page that shows it. All files are inside the binary.

use std::sync::Arc;

use axum::{
    Extension, Router,
    body::Body,
    extract::Path,
    http::{HeaderValue, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use utoipa::openapi::OpenApi;
use utoipa_swagger_ui::{Config, serve};

use crate::{app::AppState, http::envelope::not_found, problem::Failure};

const DOCUMENT: &str = "/api/v1/openapi.json";
const RELATIVE: &str = "v1/openapi.json";
/// The page runs its own scripts only, talks to us only, and is shown inside no other page.
const POLICY: &str =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'";

pub(crate) fn routes(document: &OpenApi) -> Router<AppState> {
    let text: Arc<str> = document.to_json().unwrap_or_default().into();
    // Relative to the page, which a proxy may show below a path.
    let config =
        Config::from(RELATIVE).try_it_out_enabled(true).persist_authorization(false).validator_url("none");
    Router::new()
        .route(DOCUMENT, get(async move || ([(header::CONTENT_TYPE, "application/json")], text.to_string())))
        .route("/", get(async || Redirect::temporary("/api/")))
        .route("/api", get(async || Redirect::permanent("/api/")))
        .route("/api/", get(async |config| file("index.html".to_owned(), config).await))
        .route("/api/{file}", get(async |Path(name): Path<String>, config| file(name, config).await))
        .layer(Extension(Arc::new(config)))
}

async fn file(name: String, Extension(config): Extension<Arc<Config<'static>>>) -> Result<Response, Failure> {
    let found = serve(&name, config).map_err(|error| Failure::internal(error.to_string()))?;
    let Some(found) = found else { return Err(not_found().await) };
    let mut response = Body::from(found.bytes.into_owned()).into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::try_from(found.content_type).map_err(Failure::internal)?;
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Ok(response)
}
