//! [`WebOptions`]: how the pages are served.

use std::net::IpAddr;

use axum::http::HeaderMap;
use netstead_model::{Address, Range};

/// The header to which each proxy adds the address of its client.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// How the pages are served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebOptions {
    /// The URL under which people open them, where a proxy is in front; it may have a path.
    pub url: Option<String>,
    /// No page changes anything.
    pub read_only: bool,
    /// Proxies that are believed about the address and the name of their client.
    pub trusted_proxies: Vec<Range>,
    /// The header in which such a proxy names the user that it has verified.
    pub trust_header: Option<String>,
    /// Visitors without a session see everything that a token of the role `read` sees.
    pub anonymous: bool,
}

impl WebOptions {
    /// The path below which a proxy shows the pages; empty without one.
    pub(crate) fn base(&self) -> String {
        let url = self.url.as_deref().and_then(|url| url::Url::parse(url).ok());
        url.map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default()
    }

    /// Whether the page that a request calls `host` is reached through TLS of a proxy.
    pub(crate) fn is_tls_for(&self, host: &str) -> bool {
        let url = self.url.as_deref().and_then(|url| url::Url::parse(url).ok());
        url.is_some_and(|url| {
            let name = host.rsplit_once(':').map_or(host, |(name, port)| {
                if port.bytes().all(|digit| digit.is_ascii_digit()) { name } else { host }
            });
            url.scheme() == "https" && url.host_str().is_some_and(|own| own.eq_ignore_ascii_case(name))
        })
    }

    fn trusts(&self, peer: IpAddr) -> bool {
        let address = Address::from(peer.to_canonical());
        self.trusted_proxies.iter().any(|proxy| proxy.contains(address))
    }

    /// The address of the client: of the peer, or the last one that trusted proxies add and that is none of theirs. What a
    /// client itself writes into the header stands before that and is not looked at.
    pub(crate) fn client_of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        let lines: Vec<&str> =
            headers.get_all(FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok()).collect();
        let mut hops = lines.iter().rev().flat_map(|line| line.rsplit(','));
        while self.trusts(client) {
            let hop = hops.next().map(str::trim).unwrap_or_default();
            let Some(before) = parsed(hop) else { break };
            client = before;
        }
        client
    }

    /// The user that a trusted proxy names.
    pub(crate) fn user_of(&self, peer: IpAddr, headers: &HeaderMap) -> Option<String> {
        let header = self.trust_header.as_deref().filter(|_| self.trusts(peer))?;
        let mut values = headers.get_all(header).iter();
        let (user, more) = (values.next()?, values.next());
        // Two names are none: one of them may be the client's own.
        let user = user.to_str().ok().filter(|_| more.is_none())?.trim();
        Some(user.to_owned()).filter(|user| !user.is_empty())
    }
}

/// An address, perhaps with a port behind it.
fn parsed(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|hop| hop.split(']').next()).unwrap_or(hop);
    let address = bare.parse().ok();
    address.or_else(|| hop.parse::<std::net::SocketAddr>().ok().map(|socket| socket.ip()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_url_says_the_path_and_the_tls_of_a_proxy() {
        let options = |url: &str| WebOptions { url: Some(url.to_owned()), ..WebOptions::default() };
        assert_eq!(options("https://ipam.test/netstead/").base(), "/netstead");
        assert_eq!(options("https://ipam.test").base(), "");
        assert_eq!(WebOptions::default().base(), "");
        assert!(options("https://ipam.test").is_tls_for("IPAM.test:443"));
        assert!(!options("https://ipam.test").is_tls_for("127.0.0.1:5301"));
        assert!(!options("http://ipam.test").is_tls_for("ipam.test"));
    }

    fn behind_proxies() -> WebOptions {
        WebOptions {
            trusted_proxies: vec!["10.0.0.5".parse().unwrap(), "fd00::/64".parse().unwrap()],
            trust_header: Some("remote-user".to_owned()),
            ..WebOptions::default()
        }
    }

    #[test]
    fn only_trusted_proxies_say_what_the_address_of_their_client_is() {
        let client = |peer: &str, lines: &[&'static str]| {
            let lines = lines.iter().map(|line| {
                (axum::http::HeaderName::from_static(FORWARDED_FOR), HeaderValue::from_static(line))
            });
            behind_proxies().client_of(peer.parse().unwrap(), &lines.collect()).to_string()
        };
        assert_eq!(client("10.0.0.5", &["192.0.2.7"]), "192.0.2.7");
        assert_eq!(client("::ffff:10.0.0.5", &["192.0.2.7:4711"]), "192.0.2.7");
        assert_eq!(client("10.0.0.5", &["198.51.100.1, 192.0.2.7"]), "192.0.2.7", "the client's own word");
        assert_eq!(client("10.0.0.5", &["198.51.100.1", "192.0.2.7, fd00::9"]), "192.0.2.7", "two proxies");
        assert_eq!(client("10.0.0.6", &["192.0.2.7"]), "10.0.0.6", "no proxy of ours");
        assert_eq!(client("10.0.0.5", &[]), "10.0.0.5");
        assert_eq!(client("10.0.0.5", &["unknown"]), "10.0.0.5");
        assert_eq!(client("fd00::1", &["[2001:db8::1]:80"]), "2001:db8::1");
    }

    #[test]
    fn only_trusted_proxies_name_a_user() {
        let user = |peer: &str, names: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for name in names {
                headers.append("remote-user", HeaderValue::from_static(name));
            }
            behind_proxies().user_of(peer.parse().unwrap(), &headers)
        };
        assert_eq!(user("10.0.0.5", &[" ann "]).as_deref(), Some("ann"));
        assert_eq!(user("10.0.0.6", &["ann"]), None);
        assert_eq!(user("10.0.0.5", &["ann", "bob"]), None, "two names are none");
        assert_eq!(user("10.0.0.5", &[""]), None);
    }
}
