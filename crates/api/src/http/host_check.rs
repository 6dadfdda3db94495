//! Checks `Host` and `Origin`: a defence against DNS rebinding and cross-site requests.
//!
//! A web page can make a browser send requests to any name that its owner points at our address. It cannot make the browser
//! send a wrong `Host` header. So requests to names that are not ours are refused.

use std::{
    collections::HashSet,
    net::{IpAddr, Ipv6Addr},
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{app::AppState, problem::Failure};

/// One listener, as far as requests care.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostCheck {
    /// Names people gave us beside `localhost` and literal addresses, in lower case.
    names: HashSet<String>,
    /// The host in the listen address.
    listen: String,
    pub(crate) tls: bool,
    /// Only this machine can knock.
    pub(crate) loopback: bool,
}

impl HostCheck {
    pub(crate) fn new(names: &[String], listen: &str, tls: bool, loopback: bool) -> Self {
        let plain = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
        let host = name_of(listen).unwrap_or_default();
        Self { names: names.iter().map(|name| plain(name)).collect(), listen: plain(host), tls, loopback }
    }

    /// Checks `Host` (or HTTP/2's `:authority`) and `Origin`.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Failure> {
        let mut authorities =
            headers.get_all(header::HOST).iter().map(|value| value.to_str().unwrap_or_default());
        let authority = uri.authority().map(axum::http::uri::Authority::as_str);
        let host = match (authority, authorities.next(), authorities.next()) {
            (None, Some(host), None) => host,
            (Some(authority), None, None) => authority,
            (Some(authority), Some(host), None) if authority.eq_ignore_ascii_case(host) => authority,
            _ => return Err(bad_host("the request names no host, or several")),
        };
        if !self.knows(host) {
            let told =
                format!("`{}` is no name of this server; add it to the names it answers to", shown(host));
            return Err(bad_host(&told));
        }
        match headers.get(header::ORIGIN) {
            Some(origin) => self.check_origin(origin.to_str().unwrap_or_default(), host),
            None => Ok(()),
        }
    }

    fn knows(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else { return false };
        if let Some(inner) = name.strip_prefix('[') {
            return inner.strip_suffix(']').is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok());
        }
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        name == "localhost"
            || name.parse::<IpAddr>().is_ok()
            || name == self.listen
            || self.names.contains(&name)
    }

    /// An origin is ours if it is what the browser calls us. A name we were given may also be that of a proxy that
    /// speaks TLS for us.
    fn check_origin(&self, origin: &str, host: &str) -> Result<(), Failure> {
        let scheme = if self.tls { "https" } else { "http" };
        let (theirs, place) = origin.split_once("://").unwrap_or_default();
        let same_place = place.eq_ignore_ascii_case(host);
        let behind_proxy = || {
            let named =
                |text| name_of(text).is_some_and(|name| self.names.contains(&name.to_ascii_lowercase()));
            theirs == "https" && named(place) && named(host)
        };
        if (same_place && theirs == scheme) || behind_proxy() {
            return Ok(());
        }
        let told = format!("requests from pages of `{}` are not taken here", shown(origin));
        Err(Failure::new(StatusCode::FORBIDDEN, "bad-origin", told))
    }
}

/// The name in `name:port`, if the port is one.
fn name_of(host: &str) -> Option<&str> {
    let port_at = match host.rfind(']') {
        Some(bracket) => host.get(bracket..)?.find(':').map(|colon| bracket + colon),
        None => host.find(':'),
    };
    let Some(at) = port_at else { return Some(host).filter(|host| !host.is_empty()) };
    let (name, port) = (host.get(..at)?, host.get(at + 1..)?);
    port.parse::<u16>().ok().filter(|_| !name.is_empty()).map(|_| name)
}

fn bad_host(reason: &str) -> Failure {
    Failure::new(StatusCode::MISDIRECTED_REQUEST, "bad-host", reason)
}

/// At most 80 harmless characters of a client's text.
fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

pub(crate) async fn check_host(State(app): State<AppState>, request: Request, next: Next) -> Response {
    match app.host_check.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> HostCheck {
        HostCheck::new(&["Ipam.Home.test.".to_owned()], "ns1.home.test:5301", false, true)
    }

    fn ask(door: &HostCheck, host: &str, origin: Option<&str>) -> u16 {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        door.check(&Uri::from_static("/"), &headers)
            .map_or_else(|failure| failure.status().as_u16(), |()| 200)
    }

    #[test]
    fn literal_addresses_localhost_and_our_own_names_come_in() {
        let door = door();
        assert_eq!(ask(&door, "ns1.home.test", None), 200);
        for host in [
            "127.0.0.1",
            "127.0.0.1:5301",
            "[::1]:5301",
            "[::1]",
            "localhost:5301",
            "LOCALHOST",
            "ipam.home.test:80",
        ] {
            assert_eq!(ask(&door, host, None), 200, "{host}");
        }
    }

    #[test]
    fn names_of_others_are_turned_away() {
        let door = door();
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[::1].evil",
            "[evil]",
            "a:b",
            "::1",
            "127.0.0.1:",
            "127.0.0.1:99999",
        ] {
            assert_eq!(ask(&door, host, None), 421, "{host}");
        }
    }

    #[test]
    fn an_origin_must_be_what_the_browser_calls_us() {
        let door = door();
        let origins = [
            ("localhost:5301", "http://localhost:5301", 200),
            ("localhost:5301", "https://localhost:5301", 403),
            ("localhost:5301", "http://localhost:8080", 403),
            ("localhost:5301", "http://evil.example", 403),
            ("localhost:5301", "null", 403),
            ("ipam.home.test", "https://ipam.home.test", 200),
            ("ipam.home.test", "https://evil.example", 403),
            ("ns1.home.test:5301", "http://ns1.home.test:5301", 200),
            ("ns1.home.test:5301", "https://ns1.home.test:5301", 403),
            ("127.0.0.1:5301", "https://127.0.0.1:5301", 403),
        ];
        for (host, origin, status) in origins {
            assert_eq!(ask(&door, host, Some(origin)), status, "{host} {origin}");
        }
    }

    #[test]
    fn two_hosts_are_no_host() {
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, "localhost".parse().unwrap());
        headers.append(header::HOST, "evil.example".parse().unwrap());
        assert!(HostCheck::default().check(&Uri::from_static("/"), &headers).is_err());
        assert!(HostCheck::default().check(&Uri::from_static("/"), &HeaderMap::new()).is_err());
    }
}
