//! Reads the configuration again while the server runs: on SIGHUP, and when the file changed.
//!
//! A wrong file changes nothing. Of a right one, only what differs is applied.

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use netstead_ledger::Ledger;
use netstead_model::{Clock as _, SystemClock};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::DnsService;
use crate::{
    config::{self, Config, FoundConfig},
    docker_discovery::Discovery,
    external_dns_listeners::ExternalDnsListeners,
    leadership::sync_pools,
    loaded_config::LoadedConfig,
    state_dir::variable,
};

/// How often the file is looked at.
const OFTEN: Duration = Duration::from_secs(1);
/// A file must stay the same for this long before it is believed: an editor may be in the middle of it.
const SETTLE: Duration = Duration::from_millis(300);
/// How often a refused configuration is tried again: the secret that it lacked may be there now.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Why the configuration that was read last is not in force; none if it is. Shared with everything that shows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RefusedConfig(Arc<RwLock<Option<String>>>);

impl RefusedConfig {
    /// The reason: a sentence without its full stop.
    pub(crate) fn reason(&self) -> Option<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, reason: Option<String>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}

/// The configuration of a running server, and where it came from.
#[derive(Debug)]
pub(crate) struct Reload {
    hangup: Signal,
    /// As `--config` named it.
    named: Option<PathBuf>,
    /// The file as it was last read, right or wrong.
    seen: FoundConfig,
    /// The configuration in force.
    config: Config,
    refused: RefusedConfig,
    /// When a configuration was last tried, by the monotonic clock.
    tried: Duration,
}

impl Reload {
    pub(crate) fn new(named: Option<PathBuf>, settings: &LoadedConfig) -> anyhow::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        let (seen, config) = (settings.found.clone(), settings.config.clone());
        Ok(Self {
            hangup,
            named,
            seen,
            config,
            refused: RefusedConfig::default(),
            tried: SystemClock.monotonic(),
        })
    }

    /// The place where it says what it refused.
    pub(crate) fn refused(&self) -> RefusedConfig {
        self.refused.clone()
    }

    /// Follows the file until `stop`.
    pub(crate) async fn follow(
        mut self,
        names: &DnsService,
        ledger: &Ledger,
        listeners: &ExternalDnsListeners,
        stop: &CancellationToken,
    ) {
        loop {
            let told = tokio::select! {
                () = stop.cancelled() => return,
                _ = self.hangup.recv() => true,
                () = sleep(OFTEN) => false,
            };
            let found = match self.read_settled().await {
                Ok(found) if told || found != self.seen => found,
                Ok(found) if self.refused.reason().is_some() => {
                    if SystemClock.monotonic().saturating_sub(self.tried) < TRY_AGAIN {
                        continue;
                    }
                    found
                }
                Ok(found) if self.finds_docker(&found) => {
                    info!("Docker is there now.");
                    found
                }
                Ok(_) => continue,
                Err(cause) => {
                    if told {
                        error!(
                            error = format!("{cause:#}"),
                            "The configuration cannot be read; the old one stays."
                        );
                    }
                    continue;
                }
            };
            self.apply(found, names, ledger, listeners).await;
        }
    }

    /// Whether the Docker of this machine came after the start, and nothing is configured: it is looked at from now on.
    fn finds_docker(&self, found: &FoundConfig) -> bool {
        matches!(found, FoundConfig::Nothing { .. })
            && self.config.sources.is_empty()
            && Discovery::detect(variable).docker_host().is_some()
    }

    /// The file as it is, once it keeps still.
    async fn read_settled(&self) -> anyhow::Result<FoundConfig> {
        let mut found = self.find().await?;
        while found != self.seen {
            sleep(SETTLE).await;
            let again = self.find().await?;
            if again == found {
                break;
            }
            found = again;
        }
        Ok(found)
    }

    async fn find(&self) -> anyhow::Result<FoundConfig> {
        let named = self.named.clone();
        tokio::task::spawn_blocking(move || config::find(named.as_deref(), variable)).await?
    }

    async fn apply(
        &mut self,
        found: FoundConfig,
        names: &DnsService,
        ledger: &Ledger,
        listeners: &ExternalDnsListeners,
    ) {
        let vanished =
            matches!((&self.seen, &found), (FoundConfig::File { .. }, FoundConfig::Nothing { .. }));
        self.seen = found.clone();
        self.tried = SystemClock.monotonic();
        if vanished {
            self.refused.set(None);
            warn!("The configuration file is gone; the configuration that was in force stays.");
            return;
        }
        let discovered = matches!(found, FoundConfig::Nothing { .. });
        let settings = match LoadedConfig::understand(found) {
            // What was found at the start is looked at for as long as the server runs.
            Ok(settings) if discovered && settings.config.sources.is_empty() => {
                let sources = self.config.sources.clone();
                LoadedConfig { config: Config { sources, ..settings.config }, ..settings }
            }
            Ok(settings) => settings,
            Err(problems) => {
                let reason = problems.first().map(|problem| with_rest(&problem.to_string(), problems.len()));
                if reason != self.refused.reason() {
                    for problem in &problems {
                        error!(
                            hint = problem.hint,
                            "The configuration is wrong, and the old one stays: {problem}"
                        );
                    }
                }
                self.refused.set(reason);
                return;
            }
        };
        match self.put_in_force(&settings, names, ledger, listeners).await {
            Ok(()) => {
                self.log_reloaded(&settings.config);
                self.config = settings.config;
                self.refused.set(None);
            }
            Err(cause) => {
                let reason = Some(format!("{cause:#}"));
                // It is tried again every few seconds; the log says each reason once.
                if reason != self.refused.reason() {
                    error!(error = reason, "The configuration cannot be used; the old one stays.");
                }
                self.refused.set(reason);
            }
        }
    }

    async fn put_in_force(
        &self,
        settings: &LoadedConfig,
        names: &DnsService,
        ledger: &Ledger,
        listeners: &ExternalDnsListeners,
    ) -> anyhow::Result<()> {
        let prepared = listeners.prepare(&settings.config.external_dns).await?;
        if settings.config.pools == self.config.pools {
            names.reconfigure(&settings.config).await?;
        } else {
            let pools = &settings.config.pools;
            names.reconfigure_around(&settings.config, async || sync_pools(ledger, pools).await).await?;
        }
        listeners.commit(prepared).await;
        Ok(())
    }

    /// Says what takes another start.
    fn log_reloaded(&self, new: &Config) {
        new.log_warnings();
        let old = &self.config;
        let parts = [
            ("store", old.store != new.store),
            ("api", old.api != new.api),
            ("log", old.log != new.log),
            ("ledger", old.ledger != new.ledger),
            ("nameserver", old.nameserver != new.nameserver),
            #[cfg(feature = "kubernetes")]
            ("operator", old.operator != new.operator),
        ];
        let waiting: Vec<_> = parts.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
        if waiting.is_empty() {
            info!("Configuration read again; it is in force.");
        } else {
            warn!(tables = ?waiting, "Configuration read again; these tables take effect with the next start.");
        }
    }
}

/// The first problem, and how many more there are.
fn with_rest(first: &str, all: usize) -> String {
    match all {
        0 | 1 => first.to_owned(),
        all => format!("{first} (and {} more)", all - 1),
    }
}
