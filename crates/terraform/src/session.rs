//! The provider's own configuration: where the server is, and how patiently it is asked.

mod etcd;
mod origin;

use std::{
    env,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use netstead_client::{Client, ClientError, Options};
use netstead_model::Span;
use netstead_providers::netaddr::Netaddr;
use netstead_wire::files;
use serde::{Deserialize, Serialize};

use crate::protocol::{Attribute, Diagnostic, Failed, Fields as _, Kind, Object, Schema, Value, sentence};

const MOST_RETRIES: i64 = 100;

/// A configured provider.
#[derive(Debug)]
pub struct Session {
    client: Option<Client>,
    netaddr: Option<Netaddr>,
    strict: bool,
    /// Claims of ephemeral resources that were opened and not closed yet.
    open: Mutex<Vec<OpenClaim>>,
}

/// A claim that ends with the run of Terraform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenClaim {
    pub pool: String,
    pub key: String,
    pub id: String,
    pub ttl: Span,
}

impl Session {
    /// The client of the REST API.
    pub fn client(&self) -> Result<&Client, Diagnostic> {
        self.client.as_ref().ok_or_else(|| {
            Diagnostic::error(
                "the provider does not know where Netstead is",
                "Set `endpoint` in the provider block, or the variable NETSTEAD_URL.",
            )
        })
    }
}

impl Session {
    /// The ranges in an etcd.
    pub fn netaddr(&self) -> Result<&Netaddr, Diagnostic> {
        self.netaddr.as_ref().ok_or_else(|| {
            Diagnostic::error(
                "the provider does not know where etcd is",
                "Set `endpoints` in the provider block, or the variable ETCDCTL_ENDPOINTS.",
            )
        })
    }

    /// Whether creations in an etcd refuse what is there already.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Ends well: also what an interrupted Terraform did not close.
    pub async fn close(&self) {
        if let Some(netaddr) = &self.netaddr {
            netaddr.close().await;
        }
        let left = std::mem::take(&mut *self.open_claims());
        for claim in left {
            // Without an answer it ends by itself.
            let _ = self.release(&claim).await;
        }
    }

    /// Remembers a claim until it is released.
    pub fn remember(&self, claim: OpenClaim) {
        self.open_claims().push(claim);
    }

    /// Releases a claim of an ephemeral resource. One that is gone already is fine.
    pub async fn release(&self, claim: &OpenClaim) -> Result<(), Failed> {
        let OpenClaim { pool, key, id, .. } = claim;
        match self.client()?.release(pool, key, id).await {
            Ok(_) => {}
            Err(error) if error.is("no-such-pool") => {}
            Err(error) => {
                let said = told(format!("`{key}` of pool `{pool}` cannot be released"), &error);
                let detail = format!("{}\n\nIt ends by itself after its `ttl`.", said.detail);
                return Err(Diagnostic { detail, ..said }.into());
            }
        }
        self.open_claims().retain(|open| open != claim);
        Ok(())
    }

    fn open_claims(&self) -> MutexGuard<'_, Vec<OpenClaim>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub fn schema() -> Schema {
    let text = || Kind::Text;
    let mut schema = Schema::new(
        "Addresses, pools and DNS records of [Netstead](https://github.com/netstead/netstead), through its REST API. Every \
         attribute can also be set by a variable of the environment, so the block may be empty. The resources `netaddr_*` are those of \
         terraform-provider-netaddr, on the same keyspace of an etcd; they need `endpoints` and no Netstead.",
        vec![
            Attribute::optional(
                "endpoint",
                text(),
                "Where the server is: `https://ipam.example.net:5301`. For a cluster, several URLs with commas between them: \
                 when one takes no connection, the next is asked. Variable: `NETSTEAD_URL`.",
            ),
            Attribute::optional(
                "token",
                text(),
                "The token, as `netstead token create` prints it. Role `claim` is enough for addresses and prefixes; pools, \
                 reservations and records need `write`. Variable: `NETSTEAD_TOKEN`.",
            )
            .sensitive(),
            Attribute::optional("token_file", text(), "A file with the token in it. Variable: `NETSTEAD_TOKEN_FILE`."),
            Attribute::optional(
                "ca_file",
                text(),
                "Certificates (PEM) to trust instead of the system's. Variable: `NETSTEAD_CA_FILE`.",
            ),
            Attribute::optional(
                "timeout",
                text(),
                "How long one call may take with all its repetitions, `30s` by default. Variable: `NETSTEAD_TIMEOUT`.",
            )
            .check(span),
            Attribute::optional(
                "connect_timeout",
                text(),
                "How long a connection may take to come up, `5s` by default. Variable: `NETSTEAD_CONNECT_TIMEOUT`.",
            )
            .check(span),
            Attribute::optional(
                "retries",
                Kind::Number,
                "How often a call that may safely be repeated is repeated, `3` by default, and `10` to an etcd. Variable: \
                 `NETSTEAD_RETRIES`.",
            ),
        ],
    );
    schema.attributes.extend(etcd::attributes());
    schema
}

fn span(text: &str) -> Result<(), String> {
    text.parse::<Span>().map(drop).map_err(|error| error.to_string())
}

pub fn validate(config: &Object) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if config.text("token").is_some() && config.text("token_file").is_some() {
        found.push(
            Diagnostic::error("`token` and `token_file` cannot both be set", "Remove one of them.")
                .at("token_file"),
        );
    }
    if config.int("retries").is_some_and(|retries| !(0..=MOST_RETRIES).contains(&retries)) {
        found.push(
            Diagnostic::error("`retries` is not usable", format!("It is a number from 0 to {MOST_RETRIES}."))
                .at("retries"),
        );
    }
    found.extend(etcd::validate(config));
    found
}

pub fn configure(config: &Object) -> Result<Session, Vec<Diagnostic>> {
    open(config, |name| env::var(name).ok().filter(|value| !value.is_empty())).map_err(|wrong| vec![wrong])
}

fn open(config: &Object, variable: impl Fn(&str) -> Option<String>) -> Result<Session, Diagnostic> {
    let setting = |attribute: &str, name: &str| config.owned(attribute).or_else(|| variable(name));
    let netaddr = etcd::open(config, &variable)?;
    let strict = config.flag("strict").unwrap_or(true);
    let Some(endpoint) = setting("endpoint", "NETSTEAD_URL") else {
        return Ok(Session { client: None, netaddr, strict, open: Mutex::default() });
    };
    let mut options = Options {
        user_agent: concat!("terraform-provider-netstead/", env!("CARGO_PKG_VERSION")).to_owned(),
        ca_file: setting("ca_file", "NETSTEAD_CA_FILE").map(PathBuf::from),
        ..Options::default()
    };
    let patience = |attribute: &str, name: &str, otherwise: Duration| match setting(attribute, name) {
        None => Ok(otherwise),
        Some(text) => text.parse::<Span>().map(Duration::from).map_err(|error| {
            let detail = format!("`{text}`, from `{attribute}` or {name}: {error}.");
            Diagnostic::error(format!("`{attribute}` is not usable"), detail).at(attribute)
        }),
    };
    options.timeout = patience("timeout", "NETSTEAD_TIMEOUT", options.timeout)?;
    options.connect_timeout =
        patience("connect_timeout", "NETSTEAD_CONNECT_TIMEOUT", options.connect_timeout)?;
    let retries =
        config.int("retries").map(|retries| retries.to_string()).or_else(|| variable("NETSTEAD_RETRIES"));
    if let Some(retries) = retries {
        options.retries = retries.trim().parse().map_err(|_| {
            let detail = format!(
                "`{retries}`, from `retries` or NETSTEAD_RETRIES, is no number from 0 to {MOST_RETRIES}."
            );
            Diagnostic::error("`retries` is not usable", detail).at("retries")
        })?;
    }
    let token = token(config, &variable)?;
    let client = Client::new(&endpoint, token.as_deref(), options).map_err(|error| {
        let attribute = if error.to_string().contains("certificate") { "ca_file" } else { "endpoint" };
        Diagnostic::error("the provider cannot use its configuration", sentence(&error.to_string()))
            .at(attribute)
    })?;
    Ok(Session { client: Some(client), netaddr, strict, open: Mutex::default() })
}

fn token(config: &Object, variable: impl Fn(&str) -> Option<String>) -> Result<Option<String>, Diagnostic> {
    if let Some(token) = config.owned("token") {
        return Ok(Some(token));
    }
    let file = match config.owned("token_file") {
        Some(file) => Some(file),
        None => match variable("NETSTEAD_TOKEN") {
            Some(token) => return Ok(Some(token)),
            None => variable("NETSTEAD_TOKEN_FILE"),
        },
    };
    let Some(file) = file else { return Ok(None) };
    let wrong = |reason: String| {
        let detail = format!("{file}, from `token_file` or NETSTEAD_TOKEN_FILE: {reason}.");
        Diagnostic::error("the file with the token cannot be used", detail).at("token_file")
    };
    let token = files::read_text(Path::new(&file), files::MOST_OF_SECRET)
        .map_err(|error| wrong(error.to_string()))?;
    if token.trim().is_empty() {
        return Err(wrong("it is empty".into()));
    }
    Ok(Some(token.trim().to_owned()))
}

/// The message about a call that failed. `what` is the sentence about the resource, and names it.
pub fn told(what: impl Into<String>, error: &ClientError) -> Diagnostic {
    let mut detail = sentence(&error.to_string());
    let mut cause = std::error::Error::source(error);
    while let Some(reason) = cause {
        detail = format!("{detail} Because: {reason}.");
        cause = reason.source();
    }
    let next = match error {
        ClientError::Unreachable { .. } => {
            "\n\nIs the server running, and is `endpoint` (NETSTEAD_URL) right? Nothing was changed: apply again when it answers."
        }
        ClientError::Denied { .. } => {
            "\n\nSee `token` (NETSTEAD_TOKEN) of the provider, and `netstead token list` for its role."
        }
        ClientError::Unknown { .. } => {
            "\n\nIt may have been done. Apply again: with the same key the answer is the same, and nothing is made twice."
        }
        ClientError::Unavailable { .. } => "\n\nNothing was changed: apply again later.",
        ClientError::Untrusted { .. } => {
            "\n\nName the authority that signed it in `ca_file` (NETSTEAD_CA_FILE)."
        }
        ClientError::Foreign { .. } => "\n\nIs `endpoint` (NETSTEAD_URL) the address of a Netstead?",
        _ => "",
    };
    detail.push_str(next);
    let said = Diagnostic::error(what, detail);
    match error.problem().and_then(|problem| problem.field.clone()) {
        Some(field) => said.at(field.split(['[', '.']).next().unwrap_or_default()),
        None => said,
    }
}

/// Keeps `stated` where it means the same as `found`, so that spelling is no drift.
pub fn keep(stated: &Value, found: Value, same: impl Fn(&str, &str) -> bool) -> Value {
    match (stated, &found) {
        (Value::Text(stated_text), Value::Text(text)) if same(stated_text, text) => stated.clone(),
        (Value::List(items), Value::List(others)) if items.len() == others.len() => {
            let pairs = items.iter().zip(others);
            let equal = pairs.into_iter().all(|pair| match pair {
                (Value::Text(one), Value::Text(other)) => same(one, other),
                (one, other) => one == other,
            });
            if equal { stated.clone() } else { found }
        }
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_what_the_block_does_not() {
        let set = |name: &str| match name {
            "NETSTEAD_URL" => Some("http://127.0.0.1:5301".to_owned()),
            "NETSTEAD_TIMEOUT" => Some("soon".to_owned()),
            _ => None,
        };
        let wrong = open(&Object::new(), set).unwrap_err();
        assert_eq!(wrong.summary, "`timeout` is not usable");
        let stated: Object = [("timeout".to_owned(), "7s".into())].into();
        let session = open(&stated, set).unwrap();
        assert_eq!(session.client().unwrap().url().as_str(), "http://127.0.0.1:5301/");
        let nothing = open(&Object::new(), |_| None).unwrap();
        assert_eq!(
            nothing.client().unwrap_err().detail,
            "Set `endpoint` in the provider block, or the variable NETSTEAD_URL."
        );
    }
}
