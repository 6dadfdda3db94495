//! `[notify]`: where a person hears that one must act.

use netstead_settings::{Secret, Section, Settings as _, choice, table};
use serde::Serialize;

use super::shown;

table! {
    pub(super) struct NotifyKeys {
        /// where a POST goes; a secret, because with many services a client that knows the URL may write there
        url: Option<Secret>, unset "no message is sent";
        /// `json`: `from`, `matter`, `text` and `command`; `line`: one line of text, for Slack and Discord in the object they
        /// want
        format: Option<NotifyFormat>, unset "by the host: `line` for ntfy, Slack and Discord, else `json`";
        /// a secret, sent as `Authorization: Bearer …`
        token: Option<Secret>, unset;
    }
}

choice! {
    /// The form of a message.
    #[derive(Serialize)]
    #[serde(rename_all = "lowercase")]
    pub(crate) enum NotifyFormat {
        /// An object for programs.
        Json = "json",
        /// One line for people.
        Line = "line",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NotifyConfig {
    /// Secret: with many services a client that knows the URL may write there.
    #[serde(serialize_with = "shown")]
    pub(crate) url: Secret,
    pub(crate) format: Option<NotifyFormat>,
    #[serde(serialize_with = "shown")]
    pub(crate) token: Option<Secret>,
}

pub(super) fn read(mut section: Section<'_, '_>) -> Option<NotifyConfig> {
    let keys = NotifyKeys::read(&mut section)?;
    if section.origin_of("url").is_none() && (keys.format.is_some() || keys.token.is_some()) {
        section.wrong("url", "it is missing", Some("write `url = \"https://ntfy.sh/my-topic\"`"));
    }
    if let Some(Secret::Value(url)) = &keys.url
        && !url.starts_with("https://")
        && !url.starts_with("http://")
    {
        section.wrong("url", "it begins with neither `http://` nor `https://`", None);
    }
    Some(NotifyConfig { url: keys.url?, format: keys.format, token: keys.token })
}
