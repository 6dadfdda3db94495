//! [`Visit`]: one request of a visitor that is logged in.

use std::{convert::Infallible, fmt::Write as _, sync::Arc, time::Duration};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse as _, Redirect, Response},
};
use jiff::Timestamp;
use netstead_client::types::{SessionOutput, TokenRole};
use serde_json::Value;

use crate::{
    calls::{Calls, Target, Trouble},
    shell::{self, Section, Shell, Theme},
    web::WebState,
};

/// The cookie with the session.
pub(crate) const SESSION: &str = "netstead_session";
/// The cookie with a sentence for the next page.
pub(crate) const SAID: &str = "netstead_said";
/// The cookie with the colours.
pub(crate) const THEME: &str = "netstead_theme";
/// The script asks for a page of which it will show parts.
const PART: HeaderName = HeaderName::from_static("netstead-part");
/// A session that was not noted as used for so long is noted again.
const NOTE_AFTER: Duration = Duration::from_mins(10);

/// One request of a visitor that is logged in.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    pub(crate) web: Arc<WebState>,
    pub(crate) calls: Calls,
    pub(crate) session: SessionOutput,
    pub(crate) now: Timestamp,
    /// Path and parameters, without the path of a proxy.
    pub(crate) place: String,
    theme: Theme,
    said: Option<String>,
    is_part: bool,
    is_post: bool,
}

impl FromRequestParts<Arc<WebState>> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<WebState>) -> Result<Self, Response> {
        let place = parts.uri.path_and_query().map_or("/", axum::http::uri::PathAndQuery::as_str);
        let below = place.strip_prefix(&web.base).filter(|below| below.starts_with('/'));
        let place = below.unwrap_or(place).to_owned();
        let is_part = parts.headers.contains_key(PART);
        let is_post = parts.method == axum::http::Method::POST;
        let agent = parts.headers.get(header::USER_AGENT).cloned();
        let credential = cookie(&parts.headers, SESSION);
        let calls = Calls::new(web.api.clone(), credential.as_deref(), agent);
        if credential.is_none() {
            return Err(to_login(web, &place, is_part, is_post));
        }
        let session: SessionOutput = match calls.get(Target::of(["session"])).await {
            Ok(session) => session,
            Err(problem) if matches!(problem.status, 401 | 404) => {
                return Err(to_login(web, &place, is_part, is_post));
            }
            Err(problem) => return Err(shell::bare_problem(&problem)),
        };
        let now = web.clock.wall();
        if now.duration_since(session.seen).unsigned_abs() > NOTE_AFTER {
            let calls = calls.clone();
            tokio::spawn(async move {
                let noted = calls.put::<Value>(Target::of(["session"]), &serde_json::json!({})).await;
                if let Err(problem) = noted {
                    tracing::debug!(detail = problem.detail, "The use of a session could not be noted.");
                }
            });
        }
        let theme = Theme::of(cookie(&parts.headers, THEME).as_deref());
        let said = cookie(&parts.headers, SAID).and_then(|text| decoded(&text));
        Ok(Self { web: Arc::clone(web), calls, session, now, place, theme, said, is_part, is_post })
    }
}

impl Visit {
    /// Whether the visitor may do what needs this role, here.
    pub(crate) fn may(&self, role: &TokenRole) -> bool {
        let writes = *role > TokenRole::Read;
        !(writes && self.web.options.read_only) && self.session.role >= *role
    }

    /// The answer to an act for which the visitor lacks this role; none if it may be tried.
    pub(crate) fn refusal(&self, role: &TokenRole) -> Option<Response> {
        if self.may(role) {
            return None;
        }
        let told = if self.web.options.read_only {
            "these pages are read-only (`[web] read_only`)".to_owned()
        } else {
            format!(
                "this needs the role `{role}`, and `{}` has `{}`",
                self.session.subject, self.session.role
            )
        };
        Some(self.refused(StatusCode::FORBIDDEN, &told))
    }

    /// Whether no scope limits the visitor.
    pub(crate) fn sees_all(&self) -> bool {
        let SessionOutput { vrfs, pools, zones, .. } = &self.session;
        vrfs.is_empty() && pools.is_empty() && zones.is_empty()
    }

    pub(crate) fn base(&self) -> &str {
        &self.web.base
    }

    /// The frame of a page.
    pub(crate) fn shell(&self, section: Section, title: impl Into<String>) -> Shell {
        Shell::new(self, section, title.into())
    }

    pub(crate) fn theme(&self) -> Theme {
        self.theme
    }

    pub(crate) fn said(&self) -> Option<&str> {
        self.said.as_deref().filter(|_| !self.is_part)
    }

    /// Sends a page; the sentence for it was said with it.
    pub(crate) fn page(&self, page: &impl askama::Template) -> Response {
        self.page_as(StatusCode::OK, page)
    }

    pub(crate) fn page_as(&self, status: StatusCode, page: &impl askama::Template) -> Response {
        let mut response = shell::render(status, page);
        if self.said().is_some() && !self.is_post {
            response.headers_mut().append(header::SET_COOKIE, self.web.cookie(SAID, "", Some(0), false));
        }
        response
    }

    /// A page that says why there is none.
    pub(crate) fn trouble(&self, trouble: &Trouble) -> Response {
        if trouble.status == 401 {
            return to_login(&self.web, &self.place, self.is_part, self.is_post);
        }
        let status = StatusCode::from_u16(trouble.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.refused(status, &trouble.detail)
    }

    fn refused(&self, status: StatusCode, told: &str) -> Response {
        let page = shell::ProblemPage { shell: self.shell(Section::None, "Not done"), told };
        self.page_as(status, &page)
    }

    /// Goes on to another page, which says what was done.
    pub(crate) fn done(&self, place: &str, said: &str) -> Response {
        let mut response = Redirect::to(&format!("{}{place}", self.base())).into_response();
        let text = data_encoding::BASE64URL_NOPAD.encode(said.as_bytes());
        response.headers_mut().append(header::SET_COOKIE, self.web.cookie(SAID, &text, Some(60), false));
        response
    }

    /// Goes back to the page that a form names, if that is one of ours, else to `place`.
    pub(crate) fn back(&self, named: &str, place: &str, said: &str) -> Response {
        self.done(if is_own_place(named) { named } else { place }, said)
    }
}

impl WebState {
    /// A cookie for all pages, with the seconds it is kept; without them it ends with the browser.
    pub(crate) fn cookie(&self, name: &str, value: &str, kept: Option<u64>, secure: bool) -> HeaderValue {
        let path = if self.base.is_empty() { "/" } else { &self.base };
        let mut text = format!("{name}={value}; Path={path}; HttpOnly; SameSite=Strict");
        if let Some(seconds) = kept {
            let _ = write!(text, "; Max-Age={seconds}");
        }
        if secure {
            text += "; Secure";
        }
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
    }

    /// Whether cookies of this request go through TLS only.
    pub(crate) fn is_secure(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        self.tls || self.options.is_tls_for(host)
    }
}

/// Whether this is the path of one of our pages, and no other site.
pub(crate) fn is_own_place(place: &str) -> bool {
    place.starts_with('/')
        && !place.starts_with("//")
        && place.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

pub(crate) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value.to_owned())
}

fn decoded(text: &str) -> Option<String> {
    let bytes = data_encoding::BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

fn to_login(web: &WebState, place: &str, is_part: bool, is_post: bool) -> Response {
    if is_part {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let next = if is_post { "/" } else { place };
    let query: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
    Redirect::to(&format!("{}/login?next={query}", web.base)).into_response()
}

/// Parameters of a page: those that it does not know are left out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params(std::collections::BTreeMap<String, String>);

impl Params {
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |text| text.trim())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_server_are_gone_back_to() {
        for own in ["/", "/pools/lan?at=10.0.3.0%2F24", "/names/a.test#x"] {
            assert!(is_own_place(own), "{own}");
        }
        for other in ["", "//evil.example/", "/\\evil.example", "https://evil.example", "/a\r\nb", "evil"] {
            assert!(!is_own_place(other), "{other}");
        }
    }

    #[test]
    fn cookies_are_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=1; netstead_session=nss_x_y; b=2"));
        assert_eq!(cookie(&headers, SESSION).as_deref(), Some("nss_x_y"));
        assert_eq!(cookie(&headers, SAID), None);
    }
}
