//! [`ExternalDnsListeners`]: the listeners of all `[external_dns.NAME]`, which follow the configuration while the server runs.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use netstead_api::{Bound, ExternalDns, ExternalDnsOptions, ServeOptions, Server, TlsFiles};
use netstead_client::types::FindingOutput;
use netstead_model::{Ident, Name};
use netstead_wire::Connections;
use tokio::{net::TcpStream, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::{
    config::{Config, ExternalDnsConfig},
    doctor::reachable,
    failure::Failure,
    state_dir::variable,
};

/// How long a running call may take to end.
const GRACE: Duration = Duration::from_secs(5);
/// How long the doctor waits for a connection to a listener.
const CONNECT: Duration = Duration::from_secs(2);

/// The listeners of this node.
#[derive(Debug)]
pub(crate) struct ExternalDnsListeners {
    tables: ExternalDns,
    connections: Connections,
    stop: CancellationToken,
    open: tokio::sync::Mutex<BTreeMap<Ident, OpenListener>>,
    /// Why a table has no listener.
    failed: Mutex<BTreeMap<Ident, String>>,
}

#[derive(Debug)]
struct OpenListener {
    config: ExternalDnsConfig,
    stop: CancellationToken,
    server: Server,
}

/// Listeners for another configuration, which are bound and answer no request yet.
pub(crate) struct PreparedListeners {
    options: Vec<ExternalDnsOptions>,
    bound: Vec<(ExternalDnsConfig, Bound)>,
    /// Tables whose address one of our listeners has, which must end first.
    waiting: Vec<ExternalDnsConfig>,
}

impl ExternalDnsListeners {
    /// With no listener yet.
    pub(crate) fn new(tables: ExternalDns, connections: Connections, stop: &CancellationToken) -> Self {
        let (open, failed) = (tokio::sync::Mutex::default(), Mutex::default());
        Self { tables, connections, stop: stop.clone(), open, failed }
    }

    pub(crate) fn tables(&self) -> &ExternalDns {
        &self.tables
    }

    /// Binds the addresses that are new, and changes nothing else yet.
    pub(crate) async fn prepare(&self, configs: &[ExternalDnsConfig]) -> anyhow::Result<PreparedListeners> {
        let open = self.open.lock().await;
        let mut prepared = PreparedListeners { options: Vec::new(), bound: Vec::new(), waiting: Vec::new() };
        for config in configs {
            prepared.options.push(options(config)?);
            if open.get(&config.name).is_some_and(|open| listens_alike(&open.config, config)) {
                continue;
            }
            if open.values().any(|open| open.config.listen == config.listen) {
                prepared.waiting.push(config.clone());
            } else {
                prepared.bound.push((config.clone(), self.bind(config).await?));
            }
        }
        Ok(prepared)
    }

    /// Makes the prepared tables the ones in force: ends listeners that are no longer configured, and opens the others.
    pub(crate) async fn commit(&self, prepared: PreparedListeners) {
        let mut open = self.open.lock().await;
        let PreparedListeners { options, bound, waiting } = prepared;
        let replaced = |name: &Ident| {
            bound.iter().map(|(config, _)| config).chain(&waiting).any(|config| config.name == *name)
        };
        let ending: Vec<Ident> = open
            .keys()
            .filter(|name| replaced(name) || !options.iter().any(|one| one.source == **name))
            .cloned()
            .collect();
        self.tables.configure(options);
        for name in ending {
            let Some(listener) = open.remove(&name) else { continue };
            listener.stop.cancel();
            let _ = listener.server.ended().await;
            info!(table = %name, "The listener for external-dns is closed.");
        }
        let mut failed = BTreeMap::new();
        let mut ready = bound;
        for config in waiting {
            match self.bind(&config).await {
                Ok(bound) => ready.push((config, bound)),
                Err(cause) => {
                    let cause = format!("{cause:#}");
                    error!(table = %config.name, error = cause, "The listener for external-dns cannot be opened.");
                    failed.insert(config.name.clone(), cause);
                }
            }
        }
        for (config, bound) in ready {
            let stop = self.stop.child_token();
            let server = bound.serve_external_dns(&self.tables, &config.name, stop.clone());
            open.insert(config.name.clone(), OpenListener { config, stop, server });
        }
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
    }

    async fn bind(&self, config: &ExternalDnsConfig) -> anyhow::Result<Bound> {
        let options = ServeOptions {
            tls: config.tls.as_ref().map(|tls| TlsFiles::new(&tls.cert, &tls.key)),
            grace: GRACE,
            connections: self.connections.clone(),
            ..ServeOptions::new(config.listen.to_string())
        };
        let bound = netstead_api::bind(options).await;
        bound.with_context(|| format!("[external_dns.{}] cannot be served", config.name))
    }

    /// Waits for the end of all listeners, which the end of the server brings about.
    pub(crate) async fn ended(&self) {
        let open = std::mem::take(&mut *self.open.lock().await);
        for listener in open.into_values() {
            let _ = listener.server.ended().await;
        }
    }

    /// Checks every table: its listener, whether external-dns calls, and whether its names are published.
    pub(crate) async fn diagnose(&self, in_force: &Config) -> Vec<FindingOutput> {
        let mut findings = Vec::new();
        for config in &in_force.external_dns {
            let about = format!("external_dns.{}", config.name);
            findings.push(self.diagnose_listener(&about, config).await);
            for domain in config.domains.iter().filter(|domain| !is_published(in_force, domain)) {
                let text = format!("no `[dns.NAME]` answers for {domain}: its names are published nowhere");
                findings.push(FindingOutput::note(&about, text, "add it to the `domains` of a `[dns.NAME]`"));
            }
        }
        findings
    }

    async fn diagnose_listener(&self, about: &str, config: &ExternalDnsConfig) -> FindingOutput {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).get(&config.name).cloned();
        let address = self.open.lock().await.get(&config.name).map(|open| open.server.address());
        let Some(address) = address else {
            let why = failed.unwrap_or_else(|| "it has not been opened yet".to_owned());
            let hint = "free the address or choose another `listen`; it is tried again when the file changes";
            return FindingOutput::problem(about, format!("it does not listen: {why}"), hint);
        };
        if let Err(why) = connect(reachable(address)).await {
            let text = format!("no connection to its own listener at {address}: {why}");
            return FindingOutput::problem(about, text, "does a firewall of this machine forbid it?");
        }
        match self.tables.last_call(&config.name) {
            Some(at) => {
                FindingOutput::ok(about, format!("it listens on {address}; external-dns called at {at:.0}"))
            }
            None => FindingOutput::note(
                about,
                format!("it listens on {address}; external-dns has not called since the start"),
                "is `--webhook-provider-url` of external-dns this address, with the token as the password?",
            ),
        }
    }
}

async fn connect(address: SocketAddr) -> Result<(), String> {
    match timeout(CONNECT, TcpStream::connect(address)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", CONNECT.as_secs())),
    }
}

/// The table as the API needs it, with its secret.
fn options(config: &ExternalDnsConfig) -> anyhow::Result<ExternalDnsOptions> {
    let token = config.token.as_ref().map(|token| token.reveal_with(&variable)).transpose();
    let token =
        token.map_err(|problem| Failure::new(format!("external_dns.{}.token: {problem}", config.name)))?;
    Ok(ExternalDnsOptions {
        source: config.name.clone(),
        token: token.map(|token| token.expose().to_owned()),
        domains: config.domains.clone(),
        exclude: config.exclude_domains.clone(),
    })
}

/// Whether an open listener serves the other table as well: certificates are read again by themselves.
fn listens_alike(one: &ExternalDnsConfig, other: &ExternalDnsConfig) -> bool {
    (&one.listen, &one.tls) == (&other.listen, &other.tls)
}

/// Whether a provider answers for a domain, or for names in it.
fn is_published(config: &Config, domain: &Name) -> bool {
    let inside = Name::join("x", domain).ok();
    let matches = |name: &Name| {
        config.providers.iter().any(|provider| provider.common.domains.iter().any(|one| one.matches(name)))
    };
    matches(domain) || inside.as_ref().is_some_and(matches)
}
