//! [`Visit`]: one request of a visitor that is logged in.

use std::{convert::Infallible, fmt::Write as _, sync::Arc, time::Duration};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse as _, Redirect, Response},
};
use jiff::Timestamp;
use netstead_api::{PeerAddress, access::Tokens};
use netstead_client::types::{SessionOutput, TokenRole};
use serde_json::Value;
use url::Position;

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

/// Time for an act of a page to open a session.
const OPENING: Duration = Duration::from_secs(5);

/// One request of a visitor that is logged in, or need not be.
#[allow(clippy::struct_excessive_bools, reason = "each is a question of its own")]
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    pub(crate) web: Arc<WebState>,
    pub(crate) calls: Calls,
    pub(crate) session: SessionOutput,
    pub(crate) now: Timestamp,
    /// Path and parameters, without the path of a proxy; of the page before, while a form is answered.
    pub(crate) place: String,
    host: String,
    secure: bool,
    theme: Theme,
    said: Option<String>,
    is_part: bool,
    is_post: bool,
    is_anonymous: bool,
}

/// The session of all visitors without a login, where they may come in.
#[derive(Debug, Default)]
pub(crate) struct Anonymous(tokio::sync::Mutex<Option<String>>);

impl Anonymous {
    /// The secret of the session: another one than `ended`, which was refused.
    async fn secret(&self, tokens: &Tokens, ended: Option<&str>) -> Option<String> {
        let mut kept = self.0.lock().await;
        if let Some(secret) = kept.as_ref().filter(|secret| Some(secret.as_str()) != ended) {
            return Some(secret.clone());
        }
        *kept = None;
        match tokio::time::timeout(OPENING, tokens.open_anonymous_session()).await {
            Ok(Ok(secret)) => *kept = Some(secret.expose().to_owned()),
            Ok(Err(error)) => tracing::warn!(%error, "Visitors without a login cannot be let in."),
            Err(_) => tracing::warn!("Visitors without a login cannot be let in: the store does not answer."),
        }
        kept.clone()
    }
}

/// How a request came in.
#[derive(Debug)]
struct Entry {
    calls: Calls,
    session: SessionOutput,
    is_anonymous: bool,
}

/// Lets a request in: with its own session, or without one where that is allowed. None if a login is needed.
async fn enter(web: &WebState, headers: &HeaderMap, user: Option<&str>) -> Result<Option<Entry>, Trouble> {
    let agent = headers.get(header::USER_AGENT).cloned();
    let ask = async |secret: &str| {
        let calls = Calls::new(web.api.clone(), Some(secret), agent.clone());
        let session = calls.get::<SessionOutput>(Target::of(["session"])).await;
        (calls, session)
    };
    if let Some(secret) = cookie(headers, SESSION) {
        match ask(&secret).await {
            // The proxy knows another user by now.
            (_, Ok(session)) if user.is_some_and(|user| user != session.subject) => return Ok(None),
            (calls, Ok(session)) => return Ok(Some(Entry { calls, session, is_anonymous: false })),
            (_, Err(problem)) if matches!(problem.status, 401 | 404) => {}
            (_, Err(problem)) => return Err(problem),
        }
    }
    if user.is_some() || !web.options.anonymous {
        return Ok(None);
    }
    let mut ended: Option<String> = None;
    for _ in 0..2 {
        let Some(secret) = web.anonymous.secret(&web.tokens, ended.as_deref()).await else { break };
        match ask(&secret).await {
            (calls, Ok(session)) => return Ok(Some(Entry { calls, session, is_anonymous: true })),
            (_, Err(problem)) if matches!(problem.status, 401 | 404) => ended = Some(secret),
            (_, Err(problem)) => return Err(problem),
        }
    }
    Ok(None)
}

impl FromRequestParts<Arc<WebState>> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<WebState>) -> Result<Self, Response> {
        let headers = &parts.headers;
        let is_part = headers.contains_key(PART);
        let is_post = parts.method == axum::http::Method::POST;
        let place = if is_post {
            page_before(web, headers)
        } else {
            parts.uri.path_and_query().map_or("/", axum::http::uri::PathAndQuery::as_str).to_owned()
        };
        let peer = parts.extensions.get::<PeerAddress>().map(|peer| peer.0);
        let user = peer.and_then(|peer| web.options.user_of(peer, headers));
        let entry = enter(web, headers, user.as_deref()).await.map_err(|problem| {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            shell::bare(web, status, "Not available now", &problem.detail)
        })?;
        let Some(Entry { calls, session, is_anonymous }) = entry else {
            return Err(to_login(web, &place, is_part));
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
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| parts.uri.authority().map(axum::http::uri::Authority::as_str));
        Ok(Self {
            theme: Theme::of(cookie(headers, THEME).as_deref()),
            said: cookie(headers, SAID).and_then(|text| decoded(&text)),
            host: host.unwrap_or("localhost").to_owned(),
            secure: web.is_secure(headers),
            web: Arc::clone(web),
            calls,
            session,
            now,
            place,
            is_part,
            is_post,
            is_anonymous,
        })
    }
}

/// The page from which a form was sent, below the base.
fn page_before(web: &WebState, headers: &HeaderMap) -> String {
    let before = headers.get(header::REFERER).and_then(|referer| referer.to_str().ok());
    let before = before.and_then(|before| url::Url::parse(before).ok());
    let place = before.map(|url| url[Position::BeforePath..Position::AfterQuery].to_owned());
    let place = place.unwrap_or_default();
    let below = place.strip_prefix(&web.base).unwrap_or(&place);
    if is_own_place(below) { below.to_owned() } else { "/".to_owned() }
}

impl Visit {
    /// Whether the visitor may do what needs this role, here.
    pub(crate) fn may(&self, role: &TokenRole) -> bool {
        let writes = *role > TokenRole::Read;
        !(writes && (self.web.options.read_only || self.is_anonymous)) && self.session.role >= *role
    }

    /// Whether the visitor came in without a login.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.is_anonymous
    }

    /// Whether this is the answer to a form.
    pub(crate) fn is_post(&self) -> bool {
        self.is_post
    }

    /// The same visit, whose answer is the page at `place` with what was typed.
    pub(crate) fn at(&self, place: impl Into<String>) -> Self {
        Self { place: place.into(), ..self.clone() }
    }

    /// The URL under which the visitor sees this server.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        self.web.options.url.clone().unwrap_or_else(|| format!("{scheme}://{}", self.host))
    }

    /// Where one logs in, to come back here.
    pub(crate) fn login_address(&self) -> String {
        login_address(&self.web, &self.place)
    }

    /// The answer to an act for which the visitor lacks this role; none if it may be tried.
    pub(crate) fn refusal(&self, role: &TokenRole) -> Option<Response> {
        if self.may(role) {
            return None;
        }
        let told = if self.is_anonymous {
            "this needs a login: you look at these pages without one".to_owned()
        } else if self.web.options.read_only {
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

    /// A page that says why there is none, or why an act was refused.
    pub(crate) fn trouble(&self, trouble: &Trouble) -> Response {
        if trouble.status == 401 {
            return to_login(&self.web, &self.place, self.is_part);
        }
        let status = StatusCode::from_u16(trouble.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // An act whose end is not known may have been done.
        let is_unknown = matches!(trouble.slug(), "unknown" | "still-running") || trouble.status == 502;
        self.problem(status, &trouble.detail, is_unknown)
    }

    fn refused(&self, status: StatusCode, told: &str) -> Response {
        self.problem(status, told, false)
    }

    fn problem(&self, status: StatusCode, told: &str, is_unknown: bool) -> Response {
        let is_away = matches!(status.as_u16(), 502..=504);
        let (heading, outcome) = match (self.is_post, status) {
            (true, _) if is_unknown => ("Perhaps done", "Look whether it was done before you try it again."),
            (true, _) => ("Not done", "Nothing was changed."),
            (false, StatusCode::NOT_FOUND) => ("Not found", ""),
            (false, StatusCode::FORBIDDEN) => ("Not allowed", ""),
            (false, _) if is_away => ("Not available now", ""),
            (false, _) => ("Not shown", ""),
        };
        let shell = self.shell(Section::None, heading);
        let comes_back = is_away && !self.is_post;
        self.page_as(status, &shell::ProblemPage { shell, heading, told, outcome, comes_back })
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

fn to_login(web: &WebState, place: &str, is_part: bool) -> Response {
    if is_part {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    Redirect::to(&login_address(web, place)).into_response()
}

fn login_address(web: &WebState, place: &str) -> String {
    let query: String = url::form_urlencoded::byte_serialize(place.as_bytes()).collect();
    format!("{}/login?next={query}", web.base)
}

/// Parameters of a page: those that it does not know are left out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params(std::collections::BTreeMap<String, String>);

impl Params {
    pub(crate) fn of<const N: usize>(pairs: [(&str, &str); N]) -> Self {
        Self(pairs.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect())
    }

    /// All of them as they stand behind the `?`, with some replaced or, if empty, left out.
    pub(crate) fn query(&self, replaced: &[(&str, &str)]) -> String {
        let mut all = self.0.clone();
        for (name, text) in replaced {
            all.insert((*name).to_owned(), (*text).to_owned());
        }
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(all.iter().filter(|(_, text)| !text.is_empty()));
        query.finish()
    }

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
