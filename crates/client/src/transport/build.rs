//! Builds a transport: checks the URL, the certificates and the token before anything is sent.

use std::{sync::Arc, time::Duration};

use netstead_wire::{Redactor, Tls, http::ClientSettings};
use reqwest::{
    Method, Url,
    header::{HeaderMap, HeaderValue},
};

use super::{Call, Repeat, Transport};
use crate::{ClientError, Options};

impl Transport {
    /// `urls` is one URL, or several with commas between them.
    pub(crate) fn new(urls: &str, token: Option<&str>, options: Options) -> Result<Self, ClientError> {
        let bases = urls.split(',').map(|url| base(url.trim())).collect::<Result<Vec<_>, _>>()?;
        let http = http(&bases, &options)?;
        let redactor = Redactor::new(token);
        let token = token.map(bearer).transpose()?;
        let (bases, current) = (bases.into(), Arc::default());
        Ok(Self { http, bases, current, token, redactor, age: Arc::default(), options: Arc::new(options) })
    }

    /// Splitting a text gives at least one part.
    #[expect(clippy::indexing_slicing, reason = "there is always a first one")]
    pub(super) fn first(&self) -> &Url {
        &self.bases[0]
    }

    /// The URL of a call, at another node.
    pub(super) fn moved(&self, url: &Url, base: &Url) -> Result<Url, ClientError> {
        let first = self.first();
        if base == first {
            return Ok(url.clone());
        }
        let rest = url.as_str().strip_prefix(first.as_str().trim_end_matches('/')).unwrap_or_default();
        let moved = format!("{}{rest}", base.as_str().trim_end_matches('/'));
        Url::parse(&moved).map_err(|error| ClientError::unusable(error.to_string()))
    }

    /// A call of `/api/v1/` and these segments, each of which may hold any character.
    pub(crate) fn call(
        &self,
        method: Method,
        segments: &[&str],
        repeat: Repeat,
    ) -> Result<Call, ClientError> {
        if let Some(wrong) = segments.iter().find(|segment| matches!(**segment, "" | "." | "..")) {
            return Err(ClientError::unusable(format!("`{wrong}` cannot be a name in a request")));
        }
        self.call_below(&[&["api", "v1"], segments].concat(), method, repeat)
    }

    /// A call of a path from the server's own.
    pub(super) fn call_below(
        &self,
        path: &[&str],
        method: Method,
        repeat: Repeat,
    ) -> Result<Call, ClientError> {
        let mut url = self.first().clone();
        match url.path_segments_mut() {
            Ok(mut segments) => segments.pop_if_empty().extend(path),
            Err(()) => return Err(ClientError::unusable(format!("`{}` has no path", self.first()))),
        };
        Ok(Call { method, url, repeat, headers: HeaderMap::new(), body: None, wait: Duration::ZERO })
    }
}

/// The one form of a URL under which a token for it is kept: `http://localhost:5301/` is `http://127.0.0.1:5301`.
pub fn canonical_url(url: &str) -> Result<String, ClientError> {
    let mut url = base(url)?;
    if matches!(url.host_str(), Some("localhost" | "[::1]")) {
        url.set_host(Some("127.0.0.1")).map_err(|error| ClientError::unusable(error.to_string()))?;
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn base(text: &str) -> Result<Url, ClientError> {
    let wrong =
        |reason: String| ClientError::unusable(format!("`{text}` is not a URL of a server: {reason}"));
    // `localhost:5301` alone would be a URL of the scheme `localhost`.
    if !text.contains("://") {
        return Err(wrong(format!("write `http://{text}`, or `https://` if it has a certificate")));
    }
    let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it begins with neither `http://` nor `https://`".into()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("leave out what follows `?` or `#`".into()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("a token does not belong in it".into()));
    }
    Ok(url)
}

/// The client comes from `wire`, where timeouts, redirects and TLS are set. What is sent with it is not [`Http`]'s business:
/// a call moves between several nodes, carries its deadline and its id, may stream its answer, and says whether a claim was made.
///
/// [`Http`]: netstead_wire::http::Http
fn http(bases: &[Url], options: &Options) -> Result<reqwest::Client, ClientError> {
    let tls = Tls { ca_file: options.ca_file.clone(), insecure: options.insecure, ..Tls::default() };
    let plain = bases.iter().all(|base| base.scheme() == "http");
    let settings = ClientSettings {
        user_agent: &options.user_agent,
        connect_timeout: options.connect_timeout,
        // A file that was named is read even if no server needs it.
        tls: (!plain || options.ca_file.is_some()).then_some(&tls),
        ..ClientSettings::default()
    };
    settings.build().map_err(|error| ClientError::unusable(error.problem))
}

fn bearer(token: &str) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
        .map_err(|_| ClientError::unusable("the token has characters that no token has"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_one_canonical_form() {
        for (url, form) in [
            ("http://localhost:5301/", "http://127.0.0.1:5301"),
            ("HTTP://127.0.0.1:5301", "http://127.0.0.1:5301"),
            ("http://[::1]:5301", "http://127.0.0.1:5301"),
            ("https://Netstead.example.com:443/", "https://netstead.example.com"),
            ("https://example.com/netstead/", "https://example.com/netstead"),
        ] {
            assert_eq!(canonical_url(url).unwrap(), form);
        }
    }
}
