//! [`WebOptions`]: how the pages are served.

/// How the pages are served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebOptions {
    /// The URL under which people open them, where a proxy is in front; it may have a path.
    pub url: Option<String>,
    /// No page changes anything.
    pub read_only: bool,
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
}

#[cfg(test)]
mod tests {
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
}
