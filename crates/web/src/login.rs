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
use netstead_api::{PeerAddress, access::AccessError};
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
/// Time to open a session for a user of a trusted proxy.
const OPENING: Duration = Duration::from_secs(5);

/// Logins that were refused or are being tried, by client.
#[derive(Debug)]
pub(crate) struct Attempts {
    clock: Arc<dyn Clock>,
    /// How many, since when on the monotonic clock.
    counted: Mutex<HashMap<IpAddr, (u32, Duration)>>,
}

impl Attempts {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, counted: Mutex::default() }
    }

    /// Counts a try of this client, unless it has too many. It is counted before its outcome is known, so that tries at the
    /// same time are no more than tries one after the other.
    fn begin(&self, client: IpAddr) -> bool {
        let (now, client) = (self.clock.monotonic(), network_of(client));
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.retain(|_, (_, since)| now.saturating_sub(*since) < WINDOW);
        if !counted.contains_key(&client) && counted.len() >= MOST_CLIENTS {
            // Room for this one: those who came long ago must not shut out all others.
            let oldest = counted.iter().min_by_key(|(_, (_, since))| *since).map(|(client, _)| *client);
            oldest.map(|oldest| counted.remove(&oldest));
        }
        let (count, _) = counted.entry(client).or_insert((0, now));
        let allowed = *count < MOST_REFUSED;
        *count += u32::from(allowed);
        allowed
    }

    /// Takes a try back that was not refused.
    fn forgive(&self, client: IpAddr) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((count, _)) = counted.get_mut(&network_of(client)) {
            *count = count.saturating_sub(1);
        }
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

pub(crate) async fn show(
    State(web): State<Arc<WebState>>,
    Extension(PeerAddress(peer)): Extension<PeerAddress>,
    headers: HeaderMap,
    params: Params,
) -> Response {
    let next = params.text("next").to_owned();
    if let Some(user) = web.options.user_of(peer, &headers) {
        return let_in(&web, &headers, &user, next).await;
    }
    shell::render(StatusCode::OK, &LoginPage { next, ..LoginPage::new(&web, &headers) })
}

/// Lets a user in that a trusted proxy has verified, with the rights of a token of that name.
async fn let_in(web: &WebState, headers: &HeaderMap, user: &str, next: String) -> Response {
    let refuse = |status, error: String| {
        let page = LoginPage { next: next.clone(), error, ..LoginPage::new(web, headers) };
        shell::render(status, &page)
    };
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    match tokio::time::timeout(OPENING, web.tokens.open_session_of(user, agent)).await {
        Ok(Ok(secret)) => logged_in(web, headers, secret.expose(), &next),
        Ok(Err(error @ AccessError::NoSuchSubject { .. })) => {
            refuse(StatusCode::FORBIDDEN, error.to_string())
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, user, "A user of a trusted proxy cannot be let in.");
            refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                "no session can be opened now: try again in a moment".to_owned(),
            )
        }
        Err(_) => refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "the store does not answer: try again in a moment".to_owned(),
        ),
    }
}

/// Goes on to `next` with a session.
fn logged_in(web: &WebState, headers: &HeaderMap, secret: &str, next: &str) -> Response {
    let next = if is_own_place(next) { next } else { "/" };
    let mut response = Redirect::to(&format!("{}{next}", web.base)).into_response();
    let cookie = web.cookie(SESSION, secret, Some(KEPT), web.is_secure(headers));
    response.headers_mut().append(header::SET_COOKIE, cookie);
    response
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
    let client = web.options.client_of(peer, headers);
    if !web.attempts.begin(client) {
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
    let was_refused = opened.as_ref().is_err_and(|problem| matches!(problem.status, 401 | 403));
    if !was_refused {
        web.attempts.forgive(client);
    }
    match opened {
        Ok(SessionOutput { secret: Some(secret), .. }) => logged_in(web, headers, &secret, next),
        Ok(_) => refuse(StatusCode::BAD_GATEWAY, "the server opened no session"),
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_GATEWAY);
            refuse(status, &problem.detail)
        }
    }
}

pub(crate) async fn log_out(visit: Visit) -> Response {
    if visit.is_anonymous() {
        return Redirect::to(&visit.login_address()).into_response();
    }
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

    fn attempts() -> (Arc<ManualClock>, Attempts) {
        let clock = Arc::new(ManualClock::at(jiff::Timestamp::UNIX_EPOCH));
        (clock.clone(), Attempts::new(clock))
    }

    #[test]
    fn logins_of_one_client_are_limited_for_a_minute() {
        let (clock, attempts) = attempts();
        let (one, other) = ("2001:db8::1".parse().unwrap(), "10.0.0.7".parse().unwrap());
        // None of them has an answer yet.
        for _ in 0..MOST_REFUSED {
            assert!(attempts.begin(one));
        }
        assert!(!attempts.begin(one));
        assert!(!attempts.begin("2001:db8::2".parse().unwrap()), "the same network");
        assert!(attempts.begin(other));
        attempts.forgive(one);
        assert!(attempts.begin(one), "one of them was let in");
        clock.advance(WINDOW);
        assert!(attempts.begin(one));
    }

    #[test]
    fn many_clients_do_not_shut_out_the_others() {
        let (clock, attempts) = attempts();
        for client in 0..u32::try_from(MOST_CLIENTS).unwrap() {
            assert!(attempts.begin(std::net::Ipv4Addr::from(0x0b00_0000 + client).into()));
            clock.advance(Duration::from_micros(1));
        }
        assert!(attempts.begin("10.0.0.7".parse().unwrap()));
        assert!(attempts.begin("10.0.0.8".parse().unwrap()));
    }
}
