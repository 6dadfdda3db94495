//! `[web]`: the web page.

use netstead_settings::{Section, Settings as _, table};
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
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct WebConfig {
    pub(crate) enabled: bool,
    /// Without a slash at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    pub(crate) read_only: bool,
}

impl Default for WebConfig {
    fn default() -> Self {
        Self { enabled: true, url: None, read_only: false }
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
    WebConfig { enabled: keys.enabled, url, read_only: keys.read_only }
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
