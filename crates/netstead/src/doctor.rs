//! Checks of the host for the doctor: the file, the nameserver, and whether the machine's resolvers ask it.

mod soa_query;

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use async_trait::async_trait;
use netstead_api::HostDoctor;
use netstead_client::types::FindingOutput;
use netstead_model::Name;
use netstead_plan::DomainMatch;
use netstead_wire::files;

use crate::{
    config::{self, Config, FoundConfig},
    dns_service::RefusedConfig,
    docker_discovery::Discovery,
    external_dns_listeners::ExternalDnsListeners,
    loaded_config::LoadedConfig,
    state_dir::variable,
};

const RESOLVERS: &str = "/etc/resolv.conf";
/// So many domains are asked for.
const MOST_DOMAINS: usize = 10;

/// Checks of the file, the sockets and the resolvers of the machine.
#[derive(Debug)]
pub(crate) struct HostChecks {
    /// As `--config` named it.
    pub(crate) named: Option<PathBuf>,
    pub(crate) in_force: Arc<RwLock<Config>>,
    pub(crate) refused: RefusedConfig,
    /// Where the nameserver answers.
    pub(crate) nameserver: Vec<SocketAddr>,
    /// Why it does not.
    pub(crate) silent: Option<String>,
    pub(crate) external_dns: Arc<ExternalDnsListeners>,
}

#[async_trait]
impl HostDoctor for HostChecks {
    async fn diagnose(&self) -> Vec<FindingOutput> {
        let in_force = self.in_force.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut findings = vec![self.file(&in_force)];
        findings.extend(self.docker(&in_force));
        findings.extend(in_force.warnings.iter().map(|warning| {
            let hint = warning.hint.as_deref().unwrap_or("`netstead config check` shows it too");
            FindingOutput::note("config", warning.to_string(), hint)
        }));
        findings.extend(self.nameserver(&in_force).await);
        findings.extend(self.external_dns.diagnose(&in_force).await);
        findings
    }

    fn warnings(&self) -> Vec<String> {
        let in_force = self.in_force.read().unwrap_or_else(PoisonError::into_inner);
        in_force.warnings.iter().map(|warning| format!("{warning}.")).collect()
    }

    fn refused_config(&self) -> Option<String> {
        self.refused.reason()
    }
}

impl HostChecks {
    /// Where nothing is configured, Docker is looked at once it is there.
    fn docker(&self, in_force: &Config) -> Option<FindingOutput> {
        let found = config::find(self.named.as_deref(), variable).ok()?;
        let unconfigured = matches!(found, FoundConfig::Nothing { .. }) && in_force.sources.is_empty();
        match Discovery::detect(variable) {
            Discovery::Nothing { why } if unconfigured => {
                let text = format!("{why}; Docker is looked at as soon as it is there");
                Some(FindingOutput::ok("docker", text))
            }
            _ => None,
        }
    }

    fn file(&self, in_force: &Config) -> FindingOutput {
        let about = "config";
        let found = match config::find(self.named.as_deref(), variable) {
            Ok(found) => found,
            Err(error) => {
                let hint = "what it said stays in force until the next start; put it back";
                return FindingOutput::problem(about, format!("{error:#}"), hint);
            }
        };
        let shown = match &found {
            FoundConfig::File { path, .. } => path.display().to_string(),
            FoundConfig::Nothing { .. } => "no file, the defaults".to_owned(),
        };
        match LoadedConfig::understand(found) {
            Ok(settings) if settings.config == *in_force => {
                FindingOutput::ok(about, format!("{shown}: in force"))
            }
            Ok(_) if self.refused.reason().is_some() => {
                let reason = self.refused.reason().unwrap_or_default();
                let text = format!("{shown} cannot be used, and what was in force before stays: {reason}");
                FindingOutput::problem(
                    about,
                    text,
                    "mend what it names; it is tried again every few seconds, and on SIGHUP",
                )
            }
            Ok(_) => {
                let text = format!("{shown}: not all of it is in force");
                FindingOutput::note(
                    about,
                    text,
                    "it is read again by itself; `[store]`, `[api]`, `[log]`, `[ledger]` and `[nameserver]` take a restart",
                )
            }
            Err(problems) => {
                let first = problems.first().map(ToString::to_string).unwrap_or_default();
                let text = format!("the file is wrong, and what was in force before stays: {first}");
                FindingOutput::problem(about, text, "`netstead config check` says everything that is wrong")
            }
        }
    }

    async fn nameserver(&self, in_force: &Config) -> Vec<FindingOutput> {
        let about = "nameserver";
        let Some(own) = self.nameserver.first() else {
            let why = self.silent.clone().unwrap_or_else(|| "it was not started".to_owned());
            let hint = "choose another place with `--dns-listen` or `[nameserver] listen`";
            return vec![FindingOutput::note(about, format!("no nameserver here: {why}"), hint)];
        };
        let mut findings = Vec::new();
        let domains = own_domains(in_force);
        for domain in domains.iter().take(MOST_DOMAINS) {
            let asked = reachable(*own);
            match soa_query::query_soa(asked, domain).await {
                Err(reason) => {
                    let hint = "is the port open, and is nothing else listening there?";
                    let text = format!("it does not answer at {asked}: {reason}");
                    return vec![FindingOutput::problem(about, text, hint)];
                }
                Ok(None) => {
                    let text = format!("it holds no zone {domain} yet");
                    findings.push(FindingOutput::note(about, text, "it comes with the first name in it"));
                }
                Ok(Some(ours)) => findings.extend(delegation(asked, domain, &ours, &resolvers()).await),
            }
        }
        let places: Vec<_> = self.nameserver.iter().map(ToString::to_string).collect();
        findings.insert(0, FindingOutput::ok(about, format!("it answers on {}", places.join(", "))));
        findings
    }
}

/// The domains that the built-in provider is named for.
fn own_domains(config: &Config) -> BTreeSet<Name> {
    let own = config.providers.iter().filter(|provider| provider.server.kind.name == "builtin");
    let domains = own.flat_map(|provider| &provider.common.domains);
    domains
        .filter_map(|domain| match domain {
            DomainMatch::Domain(name) => Some(name.clone()),
            _ => None,
        })
        .collect()
}

/// Where a socket is asked from this machine.
pub(crate) fn reachable(socket: SocketAddr) -> SocketAddr {
    let ip = match socket.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => std::net::Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, socket.port())
}

/// The resolvers of this machine.
fn resolvers() -> Vec<SocketAddr> {
    let text = files::read_text(Path::new(RESOLVERS), files::MOST_OF_CONFIG).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines.filter_map(|rest| rest.trim().parse().ok()).map(|ip| SocketAddr::new(ip, 53)).take(3).collect()
}

/// Whether the first resolver that answers gets the domain from us.
async fn delegation(
    own: SocketAddr,
    domain: &Name,
    ours: &soa_query::Soa,
    resolvers: &[SocketAddr],
) -> Option<FindingOutput> {
    let about = "delegation";
    for resolver in resolvers {
        let Ok(answer) = soa_query::query_soa(*resolver, domain).await else { continue };
        if answer.is_some_and(|theirs| theirs.primary == ours.primary) {
            return Some(FindingOutput::ok(about, format!("{} asks Netstead for {domain}", resolver.ip())));
        }
        let text = format!("{} does not ask Netstead for {domain}", resolver.ip());
        let hint = format!(
            "forward the domain there, for example `server=/{domain}/{}#{}` in dnsmasq",
            own.ip(),
            own.port()
        );
        return Some(FindingOutput::note(about, text, hint));
    }
    None
}

#[cfg(test)]
mod tests {
    use netstead_client::types::FindingState;

    use super::*;

    #[tokio::test]
    async fn a_resolver_that_asks_us_is_told_from_one_that_does_not() {
        let own = SocketAddr::from(([127, 0, 0, 1], 5300));
        let domain: Name = "home.test".parse().unwrap();
        let ours = soa_query::Soa { primary: "ns1.home.test".into() };
        let good = soa_query::tests::server("ns1.home.test").await;
        let bad = soa_query::tests::server("a.root-servers.net").await;
        let state = async |resolver| delegation(own, &domain, &ours, &[resolver]).await.unwrap().state;
        assert_eq!(state(good).await, FindingState::Ok);
        assert_eq!(state(bad).await, FindingState::Note);
        assert_eq!(delegation(own, &domain, &ours, &[]).await, None);
    }
}
