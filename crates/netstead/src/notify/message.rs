//! The text of an alert, and the services it is sent to.

use std::time::Duration;

use reqwest::Url;
use serde_json::json;

use super::Alert;
use crate::{
    config::{NotifyConfig, NotifyFormat},
    state_dir::variable,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// What a service wants to be sent.
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
    client: reqwest::Client,
    url: Url,
    token: Option<String>,
    shape: Shape,
}

impl Messenger {
    /// With its secrets, read now: a file may have been replaced. An error names no secret.
    pub(super) fn new(config: &NotifyConfig) -> Result<Self, String> {
        let reveal = |key: &str, secret: &crate::config::Secret| {
            let value =
                secret.reveal_with(&variable).map_err(|problem| format!("notify.{key}: {problem}"))?;
            Ok::<_, String>(value.expose().to_owned())
        };
        let url = Url::parse(&reveal("url", &config.url)?).map_err(|error| format!("notify.url: {error}"))?;
        let token = config.token.as_ref().map(|token| reveal("token", token)).transpose()?;
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("netstead/", env!("CARGO_PKG_VERSION")))
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none());
        if url.scheme() == "http" {
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| format!("the HTTP client cannot start: {error}"))?;
        let shape = shape(&url, config.format);
        Ok(Self { client, url, token, shape })
    }

    pub(super) async fn send(&self, matter: &Alert) -> Result<(), String> {
        let mut request = self.client.post(self.url.clone());
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        request = match self.shape {
            Shape::Json => {
                let Alert { id, text, command, .. } = matter;
                request.json(&json!({ "from": "netstead", "matter": id, "text": text, "command": command }))
            }
            Shape::Plain => request.header("Content-Type", "text/plain; charset=utf-8").body(line(matter)),
            Shape::Keyed(key) => request.json(&json!({ key: line(matter) })),
        };
        // The URL may be the secret.
        let response = request.send().await.map_err(|error| error.without_url().to_string())?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("it answers {status}")),
        }
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
