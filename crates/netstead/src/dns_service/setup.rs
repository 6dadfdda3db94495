//! From the configuration to what the engine is told.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use netstead_api::Meter;
use netstead_engine::{ProviderSetup, Setup, SourceSetup};
use netstead_model::{Address, DnsProvider, Ident, Name, Source, SystemClock};
use netstead_nameserver::{Builtin, zone_of};
use netstead_plan::{Digest, DomainMatch, OwnerId, ProviderTarget};
use netstead_providers::dns::{PowerDns, Rfc2136};
use netstead_sources::{Hosts, TraefikFiles, dynamic_target::TargetResolver, hosts};
use netstead_store::Store;

use super::{
    call_metrics::CallMetrics,
    provider_without_target::ProviderWithoutTarget,
    source_target_resolver::SourceTargetResolver,
    target_follower::{TargetFollower, TargetOwner},
};
use crate::{
    config::{Config, DnsConfig, LookupSettings, Secret, ServerConfig, SourceConfig, SourceKind},
    state_dir::variable,
};

/// Sources by name, with what they were built from.
type Built = BTreeMap<Ident, (Digest, Arc<dyn Source>)>;

/// What stays the same whatever the configuration.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) store: Arc<dyn Store>,
    /// The installation's id, once it is known: whoever leads first draws it.
    pub(super) owner: OnceLock<OwnerId>,
    pub(super) ledger: Arc<dyn Source>,
    pub(super) meter: Meter,
    pub(super) targets: Arc<TargetFollower>,
    /// Sources as they were built, with what they hold open: they outlive a change of leader.
    pub(super) built: Mutex<Built>,
}

/// A server with its secret, and all that makes it another one.
struct Server {
    provider: Arc<dyn DnsProvider>,
    secret: String,
    /// The domains of the zones it makes by itself.
    makes: Option<Vec<Name>>,
}

impl Parts {
    pub(super) fn new(
        store: Arc<dyn Store>,
        ledger: Arc<dyn Source>,
        meter: Meter,
        targets: Arc<TargetFollower>,
    ) -> Self {
        Self { store, owner: OnceLock::new(), ledger, meter, targets, built: Mutex::default() }
    }

    /// The sources of the file, each built once for as long as its table stays the same.
    pub(super) fn sources(&self, config: &Config) -> anyhow::Result<Vec<SourceSetup>> {
        let mut setups = Vec::with_capacity(config.sources.len());
        for source in &config.sources {
            let setup = self.source_setup(source).with_context(|| format!("source.{}", source.name))?;
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
        self.targets.retain(|whose| match whose {
            TargetOwner::Provider(name) => {
                config.providers.iter().any(|one| one.name == *name && one.common.moving.is_some())
            }
            TargetOwner::Source(name, _) => config.sources.iter().any(|one| one.name == *name),
        });
        for provider in &config.all_providers() {
            let built = self.provider_setup(provider, config).await;
            setup.providers.push(built.with_context(|| format!("dns.{}", provider.name))?);
        }
        Ok(setup)
    }

    fn source_setup(&self, config: &SourceConfig) -> anyhow::Result<SourceSetup> {
        // Without its names: what is called otherwise now looks at the same.
        let digest = Digest::of([serde_json::to_string(&config.kind)?]);
        let interval = match &config.kind {
            SourceKind::Traefik(traefik) => Some(Duration::from(traefik.poll)),
            _ => None,
        };
        let known = self.built.lock().unwrap_or_else(PoisonError::into_inner).get(&config.name).cloned();
        let source = match known.filter(|(of, _)| *of == digest) {
            Some((_, source)) => source,
            None => self.build(config)?,
        };
        self.built
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(config.name.clone(), (digest, Arc::clone(&source)));
        let mut setup = SourceSetup::new(source, digest);
        setup.was.clone_from(&config.was);
        setup.rules = config.rules.clone().into();
        setup.interval = interval.unwrap_or(setup.interval);
        Ok(setup)
    }

    fn build(&self, config: &SourceConfig) -> anyhow::Result<Arc<dyn Source>> {
        let name = config.name.clone();
        Ok(match &config.kind {
            SourceKind::Hosts { path } => {
                Arc::new(Hosts::new(name, hosts::Config { path: path.clone() }, SystemClock::shared()))
            }
            #[cfg(feature = "docker")]
            SourceKind::Docker(docker) => {
                let places = self.target_resolver(&name, &docker.finding);
                let config = docker.build(places)?;
                let built = netstead_sources::Docker::new(name, config, SystemClock::shared());
                Arc::new(built.map_err(anyhow::Error::msg)?)
            }
            SourceKind::Traefik(traefik) => {
                let places = self.target_resolver(&name, &traefik.finding);
                Arc::new(TraefikFiles::new(name, traefik.source(places), SystemClock::shared()))
            }
        })
    }

    fn owner(&self) -> anyhow::Result<&OwnerId> {
        self.owner.get().context("the id of this installation is not known yet")
    }

    /// Who follows the targets that move for this source.
    fn target_resolver(&self, source: &Ident, finding: &LookupSettings) -> Arc<dyn TargetResolver> {
        Arc::new(SourceTargetResolver::new(source.clone(), finding.clone(), &self.targets))
    }

    async fn provider_setup(&self, config: &DnsConfig, whole: &Config) -> anyhow::Result<ProviderSetup> {
        let Server { mut provider, secret, makes } = self.server(config, whole).await?;
        let mut settings = config.common.settings(&config.name, self.owner()?);
        // Its zones are in the same store as what is known of them: a mark there would say nothing more.
        settings.marks = config.server != ServerConfig::Builtin;
        if let Some(moving) = &config.common.moving {
            settings.target_moves = true;
            let found = self.targets.addresses_of(&TargetOwner::Provider(config.name.clone()), moving).await;
            settings.target = Some(pointing_at(found.as_deref().unwrap_or_default()));
            if let Err(reason) = found {
                provider =
                    Arc::new(ProviderWithoutTarget { provider, target: moving.place.to_string(), reason });
            }
        }
        // With its secret: another one is another connection.
        let digest = Digest::of([serde_json::to_string(config)?, secret]);
        let mut setup = ProviderSetup::new(settings, provider, digest);
        setup.interval = Duration::from(config.common.interval);
        setup.full_interval = Duration::from(config.common.full_interval);
        setup.was.clone_from(&config.common.was);
        setup.fixed_owner = config.common.owner.is_some();
        setup.zone_of = makes.map(|domains| Arc::new(move |name: &Name| zone_of(name, &domains)) as _);
        Ok(setup)
    }

    async fn server(&self, config: &DnsConfig, whole: &Config) -> anyhow::Result<Server> {
        let calls = || Arc::new(CallMetrics { provider: config.name.clone(), meter: self.meter.clone() });
        let reveal = |key: &'static str, secret: &Secret| secret.reveal(variable).context(key);
        match &config.server {
            ServerConfig::Builtin => {
                let domains = self.domains(config, whole)?;
                let builtin = Builtin::new(Arc::clone(&self.store), SystemClock::shared(), domains.clone());
                builtin.prepare().await?;
                let secret = format!("{domains:?}");
                Ok(Server { provider: Arc::new(builtin), secret, makes: Some(domains) })
            }
            ServerConfig::PowerDns(server) => {
                let secret = reveal("api_key", &server.api_key)?;
                let provider = Arc::new(PowerDns::observed(
                    server.with_key(secret.clone()),
                    calls(),
                    SystemClock::shared(),
                )?);
                Ok(Server { provider, secret, makes: None })
            }
            ServerConfig::Rfc2136(server) => {
                let secret =
                    server.tsig_secret.as_ref().map(|secret| reveal("tsig_secret", secret)).transpose()?;
                let provider = Arc::new(Rfc2136::observed(
                    server.with_key(secret.clone()),
                    calls(),
                    SystemClock::shared(),
                )?);
                Ok(Server { provider, secret: secret.unwrap_or_default(), makes: None })
            }
        }
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
