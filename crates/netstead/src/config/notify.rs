//! `[notify]`: who is told when a person must act.

use std::path::Path;

use serde::Serialize;

use super::{Secret, Section};

pub(super) const KEYS: &[&str] = &["url", "format", "token"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NotifyConfig {
    /// Secret: in the URLs of many services whoever knows them may write.
    pub(crate) url: Secret,
    pub(crate) format: Option<NotifyFormat>,
    pub(crate) token: Option<Secret>,
}

/// How it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NotifyFormat {
    /// An object for programs.
    Json,
    /// One line for people.
    Line,
}

pub(super) fn read(mut section: Section<'_, '_>, dir: &Path) -> Option<NotifyConfig> {
    let url = section.secret("url", dir);
    let format = section.choice("format", &["json", "line"]).map(|format| match format {
        "json" => NotifyFormat::Json,
        _ => NotifyFormat::Line,
    });
    let token = section.secret("token", dir);
    if section.origin_of("url").is_none() && (format.is_some() || token.is_some()) {
        section.wrong("url", "it is missing", Some("write `url = \"https://ntfy.sh/my-topic\"`"));
    }
    if let Some(Secret::Value(url)) = &url
        && !url.starts_with("https://")
        && !url.starts_with("http://")
    {
        section.wrong("url", "it begins with neither `http://` nor `https://`", None);
    }
    Some(NotifyConfig { url: url?, format, token })
}
