//! Logging in, with a token or a one-use link, and out.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use askama::Template;
use axum::{
    Extension,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Redirect, Response},
};
use netstead_api::PeerAddress;
use netstead_client::types::{Problem, SessionOutput};
use netstead_model::Clock;

use crate::{
    assets,
    calls::{Calls, Target},
    form::Form,
    shell::{self, Theme},
    visit::{Params, SESSION, THEME, Visit, cookie, is_own_place},
    web::WebState,
};

/// How long the browser keeps the cookie: as long as a session can last.
const KEPT: u64 = 7 * 24 * 3600;
/// Refused logins of one client in [`WINDOW`].
const MOST_REFUSED: u32 = 10;
const WINDOW: Duration = Duration::from_mins(1);
/// Clients that are remembered.
const MOST_CLIENTS: usize = 10_000;

/// Refused logins, by client.
#[derive(Debug)]
pub(crate) struct Attempts {
    clock: Arc<dyn Clock>,
    /// How many, since when on the monotonic clock.
    refused: Mutex<HashMap<IpAddr, (u32, Duration)>>,
}

impl Attempts {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, refused: Mutex::default() }
    }

    /// Whether this client may try.
    fn allows(&self, client: IpAddr) -> bool {
        let now = self.clock.monotonic();
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|_, (_, since)| now.saturating_sub(*since) < WINDOW);
        refused.get(&network_of(client)).is_none_or(|(count, _)| *count < MOST_REFUSED)
            && refused.len() < MOST_CLIENTS
    }

    fn note(&self, client: IpAddr) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.entry(network_of(client)).or_insert((0, self.clock.monotonic())).0 += 1;
    }
}

/// One client may have all addresses of an IPv6 /64.
fn network_of(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_none() => {
            IpAddr::V6((u128::from(ip) & (u128::MAX << 64)).into())
        }
        other => other,
    }
}

#[derive(Debug, Template)]
#[template(path = "login.html")]
struct LoginPage {
    base: String,
    assets: String,
    theme: &'static str,
    next: String,
    error: String,
    /// The secret of a link, if one was opened.
    link: String,
}

impl LoginPage {
    fn new(web: &WebState, headers: &HeaderMap) -> Self {
        Self {
            base: web.base.clone(),
            assets: assets::root(&web.base),
            theme: Theme::of(cookie(headers, THEME).as_deref()).as_str(),
            next: String::new(),
            error: String::new(),
            link: String::new(),
        }
    }
}

pub(crate) async fn show(State(web): State<Arc<WebState>>, headers: HeaderMap, params: Params) -> Response {
    let next = params.text("next").to_owned();
    shell::render(StatusCode::OK, &LoginPage { next, ..LoginPage::new(&web, &headers) })
}

/// A link is opened by a button, so that a program that only looks at links does not use it up.
pub(crate) async fn show_link(
    State(web): State<Arc<WebState>>,
    Path(link): Path<String>,
    headers: HeaderMap,
) -> Response {
    shell::render(StatusCode::OK, &LoginPage { link, ..LoginPage::new(&web, &headers) })
}

pub(crate) async fn with_token(
    State(web): State<Arc<WebState>>,
    Extension(PeerAddress(peer)): Extension<PeerAddress>,
    headers: HeaderMap,
    form: Form,
) -> Response {
    log_in(&web, peer, &headers, form.text("token"), form.text("next")).await
}

pub(crate) async fn with_link(
    State(web): State<Arc<WebState>>,
    Extension(PeerAddress(peer)): Extension<PeerAddress>,
    Path(link): Path<String>,
    headers: HeaderMap,
) -> Response {
    log_in(&web, peer, &headers, &link, "/").await
}

async fn log_in(web: &WebState, peer: IpAddr, headers: &HeaderMap, secret: &str, next: &str) -> Response {
    let refuse = |status: StatusCode, error: &str| {
        let page =
            LoginPage { error: error.to_owned(), next: next.to_owned(), ..LoginPage::new(web, headers) };
        shell::render(status, &page)
    };
    if !web.attempts.allows(peer) {
        let told = "too many logins were refused: wait a minute and try again";
        return refuse(StatusCode::TOO_MANY_REQUESTS, told);
    }
    let agent = headers.get(header::USER_AGENT).cloned();
    let plain = !secret.is_empty() && secret.len() <= 300 && secret.bytes().all(|b| b.is_ascii_graphic());
    let opened: Result<SessionOutput, Box<Problem>> = if plain {
        let calls = Calls::new(web.api.clone(), Some(secret), agent);
        calls.post(Target::of(["sessions"]), &serde_json::json!({})).await
    } else {
        Err(Box::new(Problem {
            status: 401,
            detail: "type a token; it looks like `nst_<id>_<secret>`".to_owned(),
            ..Problem::default()
        }))
    };
    match opened {
        Ok(SessionOutput { secret: Some(secret), .. }) => {
            let next = if is_own_place(next) { next } else { "/" };
            let mut response = Redirect::to(&format!("{}{next}", web.base)).into_response();
            let cookie = web.cookie(SESSION, &secret, Some(KEPT), web.is_secure(headers));
            response.headers_mut().append(header::SET_COOKIE, cookie);
            response
        }
        Ok(_) => refuse(StatusCode::BAD_GATEWAY, "the server opened no session"),
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_GATEWAY);
            if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
                web.attempts.note(peer);
            }
            refuse(status, &problem.detail)
        }
    }
}

pub(crate) async fn log_out(visit: Visit) -> Response {
    if let Err(problem) = visit.calls.delete(Target::of(["session"])).await
        && problem.status != 404
    {
        return visit.trouble(&problem);
    }
    let mut response = Redirect::to(&format!("{}/login", visit.base())).into_response();
    let cookie = visit.web.cookie(SESSION, "", Some(0), false);
    response.headers_mut().append(header::SET_COOKIE, cookie);
    response
}

pub(crate) async fn theme(State(web): State<Arc<WebState>>, form: Form) -> Response {
    let theme = Theme::of(Some(form.text("theme")));
    let place = form.text("place");
    let place = if is_own_place(place) { place } else { "/" };
    let mut response = Redirect::to(&format!("{}{place}", web.base)).into_response();
    let cookie = web.cookie(THEME, theme.as_str(), Some(365 * 24 * 3600), false);
    response.headers_mut().append(header::SET_COOKIE, cookie);
    response
}

#[cfg(test)]
mod tests {
    use netstead_model::ManualClock;

    use super::*;

    #[test]
    fn logins_of_one_client_are_limited_for_a_minute() {
        let clock = Arc::new(ManualClock::at(jiff::Timestamp::UNIX_EPOCH));
        let attempts = Attempts::new(clock.clone());
        let (one, other) = ("2001:db8::1".parse().unwrap(), "10.0.0.7".parse().unwrap());
        for _ in 0..MOST_REFUSED {
            assert!(attempts.allows(one));
            attempts.note(one);
        }
        assert!(!attempts.allows(one));
        assert!(!attempts.allows("2001:db8::2".parse().unwrap()), "the same network");
        assert!(attempts.allows(other));
        clock.advance(WINDOW);
        assert!(attempts.allows(one));
    }
}
