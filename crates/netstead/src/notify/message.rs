//! The text of an alert, and the services it is sent to.

use std::time::Duration;

use netstead_model::Ident;
use netstead_settings::BuildContext;
use netstead_wire::{
    Tls,
    http::{Endpoint, HttpError, Method, StatusCode},
};
use reqwest::Url;
use serde_json::json;

use super::Alert;
use crate::{
    config::{NotifyConfig, NotifyFormat},
    state_dir::variable,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// The format that a service expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// An object with all there is to know.
    Json,
    /// The line itself: ntfy and the like.
    Plain,
    /// The line in an object with this key: Slack, Discord.
    Keyed(&'static str),
}

/// One place to send to.
#[derive(Debug)]
pub(super) struct Messenger {
    endpoint: Endpoint,
    shape: Shape,
}

impl Messenger {
    /// With its secrets, read now: a file may have been replaced. An error names no secret.
    pub(super) fn new(config: &NotifyConfig) -> Result<Self, String> {
        let reveal = |key: &str, secret: &crate::config::Secret| {
            secret.reveal_with(&variable).map_err(|problem| format!("notify.{key}: {problem}"))
        };
        let url = reveal("url", &config.url)?;
        let token = config.token.as_ref().map(|token| reveal("token", token)).transpose()?;
        let parsed = Url::parse(url.expose()).map_err(|error| format!("notify.url: {error}"))?;
        let context = BuildContext::new(Ident::from_static("notify"));
        let endpoint = Endpoint::open(url.expose(), &Tls::default(), &context)
            .and_then(|endpoint| {
                endpoint.with(|http| match &token {
                    Some(token) => http.timeout(PATIENCE).bearer("token", token),
                    None => Ok(http.timeout(PATIENCE)),
                })
            })
            .map_err(|error| format!("notify.{error}"))?;
        Ok(Self { endpoint, shape: shape(&parsed, config.format) })
    }

    pub(super) async fn send(&self, matter: &Alert) -> Result<(), String> {
        let request = self.endpoint.request(Method::POST);
        let request = match self.shape {
            Shape::Json => {
                let Alert { id, text, command, .. } = matter;
                request.json(&json!({ "from": "netstead", "matter": id, "text": text, "command": command }))
            }
            Shape::Plain => request.body("text/plain; charset=utf-8", line(matter)),
            Shape::Keyed(key) => request.json(&json!({ key: line(matter) })),
        };
        let reply = request.send().await.map_err(reason)?;
        if reply.is_success() { Ok(()) } else { Err(format!("it answers {}", reply.status)) }
    }
}

/// Why a service did not take an alert, without its address, which may be the secret.
fn reason(error: HttpError) -> String {
    match error {
        HttpError::Denied { status, .. } => {
            StatusCode::from_u16(status).map_or_else(|_| status.to_string(), |s| format!("it answers {s}"))
        }
        HttpError::Busy { .. } => "it asks to slow down".to_owned(),
        HttpError::Unreachable { reason, .. }
        | HttpError::Unknown { reason, .. }
        | HttpError::Malformed { reason, .. } => reason,
        other => other.to_string(),
    }
}

fn line(matter: &Alert) -> String {
    let text: String = matter.text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{text}. {}", matter.command)
}

fn shape(url: &Url, format: Option<NotifyFormat>) -> Shape {
    let host = url.host_str().unwrap_or_default();
    let keyed = match host {
        "hooks.slack.com" => Some("text"),
        "discord.com" | "discordapp.com" => Some("content"),
        _ => None,
    };
    match (format, keyed) {
        (Some(NotifyFormat::Json), _) => Shape::Json,
        (_, Some(key)) => Shape::Keyed(key),
        (Some(NotifyFormat::Line), None) => Shape::Plain,
        (None, None) if host.starts_with("ntfy.") => Shape::Plain,
        (None, None) => Shape::Json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_known_by_their_host_unless_said_otherwise() {
        let shape = |url: &str, format| super::shape(&Url::parse(url).unwrap(), format);
        assert_eq!(shape("https://hooks.slack.com/services/T/B/x", None), Shape::Keyed("text"));
        assert_eq!(shape("https://discord.com/api/webhooks/1/x", None), Shape::Keyed("content"));
        assert_eq!(shape("https://ntfy.sh/topic", None), Shape::Plain);
        assert_eq!(shape("https://ntfy.home.test/topic", None), Shape::Plain);
        assert_eq!(shape("https://example.com/hook", None), Shape::Json);
        assert_eq!(shape("https://example.com/hook", Some(NotifyFormat::Line)), Shape::Plain);
        assert_eq!(shape("https://hooks.slack.com/services/T/B/x", Some(NotifyFormat::Json)), Shape::Json);
    }
}
