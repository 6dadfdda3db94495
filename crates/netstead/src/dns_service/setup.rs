//! Builds the engine's setup from the configuration: sources, providers and their settings.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use netstead_api::Meter;
use netstead_engine::{IpamSetup, ProviderSetup, PushedSetup, Setup, SourceSetup};
use netstead_ledger::Ledger;
#[cfg(feature = "kubernetes")]
use netstead_ledger::{Caller, LedgerBackend};
use netstead_model::{Address, Ident, Name, Source};
use netstead_nameserver::builtin::OwnDomains;
use netstead_plan::{Digest, DomainMatch, OwnerId, ProviderTarget, SourceRules};
use netstead_settings::BuildContext;
use netstead_sources::dynamic_target::TargetResolvers;
#[cfg(feature = "kubernetes")]
use netstead_sources::kubernetes::{LoadBalancerPool, LoadBalancerPools};
use netstead_store::Store;

use super::{
    call_metrics::{CallMetrics, SourceCallMetrics},
    provider_without_target::ProviderWithoutTarget,
    source_target_resolver::SourceTargetResolvers,
    target_follower::{TargetFollower, TargetOwner},
};
use crate::{
    config::{Config, DnsConfig, ExternalDnsConfig, IpamConfig, LoadBalancerConfig, Problem, SourceConfig},
    state_dir::variable,
};

/// The owner of the addresses of load balancers.
#[cfg(feature = "kubernetes")]
const LOAD_BALANCER_OWNER: &str = "kubernetes";
/// How long a claim for a load balancer may take.
#[cfg(feature = "kubernetes")]
const LOAD_BALANCER_PATIENCE: Duration = Duration::from_secs(5);

/// Sources by name, with what they were built from.
type Built = BTreeMap<Ident, (Digest, Arc<dyn Source>)>;

/// Parts that stay the same under any configuration.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) store: Arc<dyn Store>,
    /// The installation's id, once it is known: the first leader draws it.
    pub(super) owner: OnceLock<OwnerId>,
    pub(super) ledger: Arc<dyn Source>,
    /// The ledger that load balancers get their addresses from.
    pub(super) claims: OnceLock<Ledger>,
    pub(super) meter: Meter,
    pub(super) targets: Arc<TargetFollower>,
    /// Sources as they were built, with what they hold open: they outlive a change of leader.
    pub(super) built: Mutex<Built>,
}

impl Parts {
    pub(super) fn new(
        store: Arc<dyn Store>,
        ledger: Arc<dyn Source>,
        meter: Meter,
        targets: Arc<TargetFollower>,
    ) -> Self {
        Self {
            store,
            owner: OnceLock::new(),
            ledger,
            claims: OnceLock::new(),
            meter,
            targets,
            built: Mutex::default(),
        }
    }

    /// The sources of the file, each built once for as long as its table stays the same.
    pub(super) fn sources(&self, config: &Config) -> anyhow::Result<Vec<SourceSetup>> {
        let mut setups = Vec::with_capacity(config.sources.len());
        for source in &config.sources {
            let setup =
                self.source_setup(source, config).with_context(|| format!("source.{}", source.name))?;
            setups.push(setup);
        }
        let configured = |name: &Ident| config.sources.iter().any(|source| source.name == *name);
        self.built.lock().unwrap_or_else(PoisonError::into_inner).retain(|name, _| configured(name));
        Ok(setups)
    }

    pub(super) async fn setup(&self, config: &Config) -> anyhow::Result<Setup> {
        let mut setup = Setup { domains: config.domains.clone(), ..Setup::default() };
        setup.sources.push(SourceSetup::new(Arc::clone(&self.ledger), domains_of_claims(config)));
        setup.sources.extend(self.sources(config)?);
        setup.pushed.extend(config.external_dns.iter().map(pushed_setup));
        self.targets.retain(|whose| match whose {
            TargetOwner::Provider(name) => {
                config.providers.iter().any(|one| one.name == *name && one.common.moving.is_some())
            }
            TargetOwner::Source(name, _) => config.sources.iter().any(|one| one.name == *name),
        });
        for system in &config.ipam {
            let built = self.ipam_setup(system);
            setup.ipam.push(built.with_context(|| format!("ipam.{}", system.name))?);
        }
        for provider in &config.all_providers() {
            let built = self.provider_setup(provider, config).await;
            setup.providers.push(built.with_context(|| format!("dns.{}", provider.name))?);
        }
        Ok(setup)
    }

    fn source_setup(&self, config: &SourceConfig, whole: &Config) -> anyhow::Result<SourceSetup> {
        let balancers: Vec<&LoadBalancerConfig> = whole
            .load_balancers
            .iter()
            .filter(|one| one.source.as_ref().is_none_or(|source| *source == config.name))
            .filter(|_| config.table.kind.name == "kubernetes")
            .collect();
        // Without its names: a source that has another name now looks at the same things.
        let built_of = Digest::of([config.table.written.clone(), format!("{balancers:?}")]);
        let known = self.built.lock().unwrap_or_else(PoisonError::into_inner).get(&config.name).cloned();
        let source = if let Some((_, source)) = known.filter(|(of, _)| *of == built_of) {
            source
        } else {
            let resolvers: Arc<dyn TargetResolvers> =
                Arc::new(SourceTargetResolvers(Arc::clone(&self.targets)));
            let calls = SourceCallMetrics { source: config.name.clone(), meter: self.meter.clone() };
            let context = context(&config.name).with_calls(Arc::new(calls)).with_part(resolvers);
            #[cfg(feature = "kubernetes")]
            let context = self.with_load_balancers(context, &balancers);
            config
                .table
                .build(&format!("source.{}", config.name), &context)
                .map_err(|problem| as_error(&problem))?
        };
        self.built
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(config.name.clone(), (built_of, Arc::clone(&source)));
        let mut setup = SourceSetup::new(source, self.digest(&config.table.written));
        setup.was.clone_from(&config.was);
        setup.rules = config.rules.clone();
        Ok(setup)
    }

    /// With the pools that Services of the cluster get addresses from.
    #[cfg(feature = "kubernetes")]
    fn with_load_balancers(&self, context: BuildContext, balancers: &[&LoadBalancerConfig]) -> BuildContext {
        let Some(ledger) = self.claims.get().filter(|_| !balancers.is_empty()) else { return context };
        let pool = |one: &&LoadBalancerConfig| LoadBalancerPool {
            name: one.pool.clone(),
            class: one.class.clone(),
            family: one.family,
            grace: one.grace,
        };
        let backend = LedgerBackend {
            ledger: ledger.clone(),
            caller: Caller::new(LOAD_BALANCER_OWNER),
            patience: LOAD_BALANCER_PATIENCE,
        };
        context.with_part(LoadBalancerPools {
            pools: balancers.iter().map(pool).collect(),
            backend: Arc::new(backend),
            owner: LOAD_BALANCER_OWNER.to_owned(),
        })
    }

    /// The digest of a table as the store keeps it: with the id of the installation, so that it tells nothing of a secret.
    fn digest(&self, written: &str) -> Digest {
        table_digest(self.owner.get(), written)
    }

    fn owner(&self) -> anyhow::Result<&OwnerId> {
        self.owner.get().context("the id of this installation is not known yet")
    }

    fn ipam_setup(&self, config: &IpamConfig) -> anyhow::Result<IpamSetup> {
        let calls = CallMetrics { provider: config.name.clone(), meter: self.meter.clone() };
        let context = context(&config.name).with_calls(Arc::new(calls));
        let path = format!("ipam.{}", config.name);
        let provider = config.server.build(&path, &context).map_err(|problem| as_error(&problem))?;
        // With its secrets: others are another connection.
        let digest = Digest::of([config.server.written.clone(), context.revealed()]);
        let mut setup = IpamSetup::new(config.settings(self.owner()?), provider, digest);
        setup.interval = Duration::from(config.interval);
        setup.was.clone_from(&config.was);
        setup.fixed_owner = config.owner.is_some();
        Ok(setup)
    }

    async fn provider_setup(&self, config: &DnsConfig, whole: &Config) -> anyhow::Result<ProviderSetup> {
        let domains = OwnDomains(self.domains(config, whole)?);
        let own = format!("{domains:?}");
        let calls = CallMetrics { provider: config.name.clone(), meter: self.meter.clone() };
        let context = context(&config.name)
            .with_calls(Arc::new(calls))
            .with_part(Arc::clone(&self.store))
            .with_part(domains);
        let path = format!("dns.{}", config.name);
        let mut provider = config.server.build(&path, &context).map_err(|problem| as_error(&problem))?;
        provider.prepare().await?;
        let mut settings = config.common.settings(&config.name, self.owner()?);
        if let Some(moving) = &config.common.moving {
            settings.target_moves = true;
            let found = self.targets.addresses_of(&TargetOwner::Provider(config.name.clone()), moving).await;
            settings.target = Some(pointing_at(found.as_deref().unwrap_or_default()));
            if let Err(reason) = found {
                provider =
                    Arc::new(ProviderWithoutTarget { provider, target: moving.place.to_string(), reason });
            }
        }
        // With its secrets: others are another connection.
        let digest = Digest::of([config.server.written.clone(), context.revealed(), own]);
        let mut setup = ProviderSetup::new(settings, provider, digest);
        setup.interval = Duration::from(config.common.interval);
        setup.full_interval = Duration::from(config.common.full_interval);
        setup.was.clone_from(&config.common.was);
        setup.fixed_owner = config.common.owner.is_some();
        Ok(setup)
    }

    /// The zones of the built-in server: the domains that the file names. Any other name is alone in its zone.
    fn domains(&self, config: &DnsConfig, whole: &Config) -> anyhow::Result<Vec<Name>> {
        let own = config.common.domains.iter().filter_map(|domain| match domain {
            DomainMatch::Domain(name) => Some(name.clone()),
            DomainMatch::Glob(_) | DomainMatch::Regex(_) => None,
        });
        let settings = config.common.settings(&config.name, self.owner()?);
        let rules =
            whole.domains.0.iter().map(|rule| rule.domain.clone()).filter(|name| settings.answers_for(name));
        let mut domains: Vec<Name> = own.chain(rules).collect();
        domains.sort();
        domains.dedup();
        Ok(domains)
    }
}

/// The context in which the table `name` is built.
/// The source that external-dns writes into.
fn pushed_setup(config: &ExternalDnsConfig) -> PushedSetup {
    let domains = config.domains.iter().cloned().map(DomainMatch::Domain).collect();
    PushedSetup { name: config.name.clone(), rules: SourceRules { domains, ..SourceRules::default() } }
}

fn context(name: &Ident) -> BuildContext {
    BuildContext::new(name.clone()).with_variables(Arc::new(variable))
}

fn as_error(problem: &Problem) -> anyhow::Error {
    let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    anyhow::anyhow!("{problem}{hint}")
}

/// The digest of a table as it was written, for the store.
pub(super) fn table_digest(owner: Option<&OwnerId>, written: &str) -> Digest {
    Digest::of([owner.map(ToString::to_string).unwrap_or_default().as_str(), written])
}

/// The addresses as a target.
pub(super) fn pointing_at(found: &[IpAddr]) -> ProviderTarget {
    ProviderTarget::Addresses(found.iter().map(|ip| Address::from(*ip)).collect())
}

/// The ledger's part of the file: what its claims are called. A name that a typo there takes away was not asked for.
fn domains_of_claims(config: &Config) -> Digest {
    let named = config
        .pools
        .iter()
        .filter_map(|pool| Some([pool.name.to_string(), pool.domain.as_ref()?.to_string()]));
    Digest::of(["ledger".to_owned()].into_iter().chain(named.flatten()))
}
