//! Addresses of servers, and paths below them.

use std::path::PathBuf;

use netstead_settings::SettingsError;
use reqwest::Url;

/// The address of a server, taken apart.
#[derive(Debug)]
pub(super) struct BaseUrl {
    pub(super) base: Url,
    /// The address for people.
    pub(super) server: String,
    /// The socket of this machine that leads there.
    pub(super) socket: Option<PathBuf>,
}

/// Refuses what cannot be the address of a server. Connects to nothing.
pub fn check_url(text: &str) -> Result<(), SettingsError> {
    parse(text).map(drop)
}

pub(super) fn parse(text: &str) -> Result<BaseUrl, SettingsError> {
    let wrong = |problem: String| SettingsError::new("url", problem);
    let url = Url::parse(text).map_err(|error| wrong(format!("`{text}` is no URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("a secret does not belong in it".into()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong(format!("leave out what follows `?` or `#` in `{text}`")));
    }
    match url.scheme() {
        "http" | "https" => {
            let server = url.as_str().trim_end_matches('/').to_owned();
            Ok(BaseUrl { base: url, server, socket: None })
        }
        "unix" => {
            let path = text.strip_prefix("unix://").filter(|path| path.starts_with('/'));
            let path = path.ok_or_else(|| wrong(format!("write `{text}` as `unix:///PATH`")))?;
            let base = Url::parse("http://localhost").map_err(|error| wrong(error.to_string()))?;
            Ok(BaseUrl { base, server: text.to_owned(), socket: Some(path.into()) })
        }
        _ => Err(wrong(format!("`{text}` begins with neither `http://` nor `https://`"))),
    }
}

/// A path of these segments, each of which may hold any character: `/zones/a%2Fb`.
pub fn path(segments: &[&str]) -> String {
    segments.iter().fold(String::new(), |path, segment| {
        let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let encoded = segment
            .bytes()
            .map(|byte| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
        path + "/" + &encoded.collect::<String>()
    })
}

/// Whether a segment of `path` is `.` or `..`, also as `%2E`: the path would lead to another object.
pub(super) fn has_dot_segment(path: &str) -> bool {
    let is_dots =
        |segment: &str| matches!(segment.replace("%2E", ".").replace("%2e", ".").as_str(), "." | "..");
    path.split(['/', '\\']).any(is_dots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_a_secret_is_refused_without_showing_it() {
        let error = check_url("http://me:hunter2@ns1:8081").unwrap_err();
        assert_eq!(error.to_string(), "url: a secret does not belong in it");
        for text in ["ftp://ns1", "http://ns1/?key=1", "unix://run/x.sock"] {
            assert!(check_url(text).is_err(), "{text}");
        }
        for text in ["https://ns1.example.net:8081/pdns", "unix:///run/x.sock"] {
            assert!(check_url(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_segment_never_becomes_two() {
        assert_eq!(path(&["zones", "a/b?c#ä", "d.e"]), "/zones/a%2Fb%3Fc%23%C3%A4/d.e");
        for (path, dots) in [("/zones/../x", true), ("/zones/%2e.", true), ("/a..b/.c", false)] {
            assert_eq!(has_dot_segment(path), dots, "{path}");
        }
    }
}
