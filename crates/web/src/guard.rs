//! Around every page: the headers that browsers go by, and where writes may come from.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::Response,
};

use crate::{shell, web::WebState};

/// Only what this server serves; nothing inline; inside no other page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses writes that come from elsewhere, and adds the headers.
pub(crate) async fn around(State(web): State<Arc<WebState>>, request: Request, next: Next) -> Response {
    let looks = matches!(*request.method(), Method::GET | Method::HEAD);
    let response = if looks || comes_from_our_page(request.headers()) {
        next.run(request).await
    } else {
        let told = "This form was not sent by a page of this server. Nothing was changed.";
        shell::bare(&web, StatusCode::FORBIDDEN, "Not done", told)
    };
    protected(response)
}

/// With the headers of every page.
pub(crate) fn protected(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A browser says where a form comes from. `Origin` was compared with `Host` before; without either nothing is believed.
fn comes_from_our_page(headers: &HeaderMap) -> bool {
    match headers.get(FETCH_SITE) {
        Some(site) => site == "same-origin",
        None => headers.contains_key(header::ORIGIN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_must_say_that_it_comes_from_here() {
        let from = |pairs: &[(HeaderName, &'static str)]| {
            let pairs = pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            comes_from_our_page(&pairs.collect())
        };
        assert!(from(&[(FETCH_SITE, "same-origin")]));
        assert!(from(&[(header::ORIGIN, "http://localhost:5301")]), "an older browser");
        assert!(!from(&[(FETCH_SITE, "cross-site"), (header::ORIGIN, "http://localhost:5301")]));
        assert!(!from(&[(FETCH_SITE, "same-site")]));
        assert!(!from(&[(FETCH_SITE, "none")]));
        assert!(!from(&[]));
    }
}
