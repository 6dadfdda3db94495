//! `[web]`: the web page.

use netstead_model::Range;
use netstead_settings::{Section, Settings as _, choice, table};
use serde::Serialize;

table! {
    pub(super) struct WebKeys {
        /// whether there are pages; the API stays either way
        enabled: bool, default true;
        /// the URL under which people open them, where a proxy is in front, also below a path: `https://net.example.com/ipam`.
        /// Its host is a name of the server as those in `[api] hosts` are
        url: Option<String>, unset "where the API listens";
        /// no page changes anything, whatever the role of its visitor
        read_only: bool, default false;
        /// addresses or networks of proxies that are believed: `X-Forwarded-For` says which client a login comes from
        trusted_proxies: Vec<Range>, unset "none";
        /// the header in which such a proxy names the user that it has verified, as `Remote-User`. The user has the rights of
        /// the newest token with that subject. The proxy must remove the header from what its clients send
        trust_header: Option<String>, unset "none";
        /// `read`: visitors without a login see everything that a token of the role `read` sees, and change nothing
        anonymous: Option<Anonymous>, unset "a login is needed";
    }
}

choice! {
    /// Rights of visitors without a login.
    pub(crate) enum Anonymous {
        Read = "read",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct WebConfig {
    pub(crate) enabled: bool,
    /// Without a slash at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    pub(crate) read_only: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) trusted_proxies: Vec<Range>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trust_header: Option<String>,
    /// Visitors without a login may look.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) anonymous: bool,
}

impl Default for WebConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            url: None,
            read_only: false,
            trusted_proxies: Vec::new(),
            trust_header: None,
            anonymous: false,
        }
    }
}

pub(super) fn read(mut section: Section<'_, '_>) -> WebConfig {
    let Some(keys) = WebKeys::read(&mut section) else { return WebConfig::default() };
    let url = keys.url.map(|url| url.trim_end_matches('/').to_owned());
    if let Some(url) = &url
        && let Err(reason) = checked(url)
    {
        section.wrong("url", &reason, Some("write `url = \"https://net.example.com\"`"));
    }
    if let Some(header) = &keys.trust_header {
        if reqwest::header::HeaderName::try_from(header.as_str()).is_err() {
            let reason = format!("`{header}` is no name of a header");
            section.wrong("trust_header", &reason, Some("write `trust_header = \"Remote-User\"`"));
        } else if keys.trusted_proxies.is_empty() {
            let hint = "name the proxy: `trusted_proxies = [\"127.0.0.1\"]`";
            section.wrong("trust_header", "without `trusted_proxies` it is never believed", Some(hint));
        }
    }
    WebConfig {
        enabled: keys.enabled,
        url,
        read_only: keys.read_only,
        trusted_proxies: keys.trusted_proxies,
        trust_header: keys.trust_header.map(|header| header.to_ascii_lowercase()),
        anonymous: keys.anonymous.is_some(),
    }
}

/// A URL that browsers can open.
fn checked(text: &str) -> Result<(), String> {
    let url = reqwest::Url::parse(text).map_err(|error| format!("`{text}` is no URL: {error}"))?;
    let plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    let path = url.path().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte));
    match url.scheme() {
        "http" | "https" if plain && path && url.host_str().is_some_and(|host| !host.is_empty()) => Ok(()),
        _ => Err(format!("`{text}` is not the URL of a page: a scheme, a host, and a path if there is one")),
    }
}
