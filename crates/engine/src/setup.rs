//! The configuration of the engine: sources, providers, domains and options.

use std::{fmt, sync::Arc, time::Duration};

use netstead_ledger::Ledger;
use netstead_model::{DnsProvider, Ident, IpamProvider, Source};
use netstead_plan::{Digest, Domains, Settings, SourceRules, ipam::IpamSettings};

use crate::Observer;

/// The type of our own nameserver.
const BUILTIN: &str = "builtin";

/// The configuration of the engine.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    pub sources: Vec<SourceSetup>,
    /// Sources that other programs write into.
    pub pushed: Vec<PushedSetup>,
    pub providers: Vec<ProviderSetup>,
    pub ipam: Vec<IpamSetup>,
    pub domains: Domains,
}

/// A source that another program writes into: the engine keeps it in the store.
#[derive(Debug, Clone)]
pub struct PushedSetup {
    pub name: Ident,
    pub rules: SourceRules,
}

/// One source and how to treat it.
#[derive(Debug, Clone)]
pub struct SourceSetup {
    pub source: Arc<dyn Source>,
    /// Over everything in the source's table: another one means another configuration.
    pub config: Digest,
    /// People say what is in it: what it changes was asked for.
    pub commanded: bool,
    /// Limits of the names and records the source may ask for. A changed rule needs no new look at the source.
    pub rules: SourceRules,
    /// How often it is looked at anyway.
    pub interval: Duration,
    /// How long it must be quiet after a change; `None` takes the engine's.
    pub debounce_quiet: Option<Duration>,
    pub debounce_most: Option<Duration>,
    /// The name it had before.
    pub was: Option<Ident>,
}

impl SourceSetup {
    /// The defaults. What people command (`ledger`, `manual`) is looked at almost at once.
    pub fn new(source: Arc<dyn Source>, config: Digest) -> Self {
        let commanded = source.flags().commanded;
        let interval = source.poll_interval().unwrap_or(Duration::from_mins(1));
        Self {
            source,
            config,
            commanded,
            rules: SourceRules::default(),
            interval,
            debounce_quiet: commanded.then_some(Duration::from_millis(5)),
            debounce_most: commanded.then_some(Duration::from_millis(20)),
            was: None,
        }
    }

    /// Whether `other` would do the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let plain = |one: &Self| {
            (
                one.config,
                one.commanded,
                one.interval,
                one.debounce_quiet,
                one.debounce_most,
                one.source.kind(),
            )
        };
        plain(self) == plain(other)
    }
}

/// One provider and how to treat it.
#[derive(Clone)]
pub struct ProviderSetup {
    pub settings: Settings,
    pub provider: Arc<dyn DnsProvider>,
    /// Over everything in the provider's table.
    pub config: Digest,
    /// How often it is looked at anyway.
    pub interval: Duration,
    /// How old what was read may be while the serial stays.
    pub full_interval: Duration,
    /// The name it had before.
    pub was: Option<Ident>,
    /// The configuration names its owner id: `recover` cannot give it another.
    pub fixed_owner: bool,
}

impl ProviderSetup {
    /// The defaults.
    pub fn new(settings: Settings, provider: Arc<dyn DnsProvider>, config: Digest) -> Self {
        let (interval, full_interval) = (Duration::from_mins(1), Duration::from_hours(1));
        let (was, fixed_owner) = (None, false);
        Self { settings, provider, config, interval, full_interval, was, fixed_owner }
    }

    pub fn name(&self) -> &Ident {
        &self.settings.provider
    }

    /// Whether this is our own nameserver, whose zones are in the store.
    pub(crate) fn is_builtin(&self) -> bool {
        self.provider.kind() == BUILTIN
    }

    /// The settings as far as the server can follow them.
    pub(crate) fn effective(&self) -> Settings {
        let mut settings = self.settings.clone().within(&self.provider.capabilities());
        settings.lone_zones |= self.provider.makes_zones();
        settings
    }

    /// Whether `other` would do the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.settings == other.settings
            && self.config == other.config
            && self.fixed_owner == other.fixed_owner
            && (self.interval, self.full_interval) == (other.interval, other.full_interval)
            && self.provider.kind() == other.provider.kind()
    }
}

/// One IPAM provider and how to treat it.
#[derive(Debug, Clone)]
pub struct IpamSetup {
    pub settings: IpamSettings,
    pub provider: Arc<dyn IpamProvider>,
    /// Over everything in the provider's table.
    pub config: Digest,
    /// How often it is looked at anyway.
    pub interval: Duration,
    /// The name it had before.
    pub was: Option<Ident>,
    /// The configuration names its owner id: `recover` cannot give it another.
    pub fixed_owner: bool,
}

impl IpamSetup {
    /// The defaults.
    pub fn new(settings: IpamSettings, provider: Arc<dyn IpamProvider>, config: Digest) -> Self {
        let (interval, was, fixed_owner) = (Duration::from_mins(1), None, false);
        Self { settings, provider, config, interval, was, fixed_owner }
    }

    pub fn name(&self) -> &Ident {
        &self.settings.provider
    }

    /// Whether `other` would do the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.settings == other.settings
            && (self.config, self.interval) == (other.config, other.interval)
            && self.fixed_owner == other.fixed_owner
            && self.provider.kind() == other.provider.kind()
    }
}

impl fmt::Debug for ProviderSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSetup")
            .field("settings", &self.settings)
            .field("provider", &self.provider)
            .field("interval", &self.interval)
            .field("full_interval", &self.full_interval)
            .finish_non_exhaustive()
    }
}

/// How the engine works, whatever is configured.
#[derive(Debug, Clone)]
pub struct Options {
    /// Plans and never writes.
    pub dry_run: bool,
    /// Writes only what a person commands: the passes plan, and leave everything as it is.
    pub only_by_hand: bool,
    /// How long a source must be quiet after a change before it is looked at…
    pub debounce_quiet: Duration,
    /// …and how long it may keep everybody waiting.
    pub debounce_most: Duration,
    /// Gets the report of every pass.
    pub observer: Option<Arc<dyn Observer>>,
    /// The ledger, which learns which addresses are in use, and keeps the claims that workloads ask for.
    pub ledger: Option<Ledger>,
    /// The epoch in which this process leads. Without it, the store's current epoch is used.
    pub epoch: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dry_run: false,
            only_by_hand: false,
            debounce_quiet: Duration::from_millis(100),
            debounce_most: Duration::from_secs(1),
            observer: None,
            ledger: None,
            epoch: None,
        }
    }
}
