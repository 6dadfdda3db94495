//! `[source.NAME]` with `type = "docker"`.

use std::{path::PathBuf, sync::Arc};

use netstead_model::Source;
use netstead_settings::{BuildContext, Configured, Identity, Kind, OneOrMore, Parsed, SettingsError, table};
use netstead_wire::Tls;

use super::{Config, Docker, DockerHost, Mode};
use crate::{
    SourceKind, SourceTraits,
    dialects::{DefaultRule, Dialect, Reader, TargetSpec, TraefikSettings},
    dynamic_target::{LookupSettings, TargetResolvers},
    source_target::SourceTarget,
};

pub const KIND: SourceKind =
    Kind::new::<DockerSettings>("docker", "containers and swarm services of one Docker host", || {
        SourceTraits { labels: true }
    });

table! {
    /// One Docker host as the file has it.
    pub struct DockerSettings {
        /// `unix:///PATH`, `tcp://HOST:PORT`, or `ssh://USER@HOST` through the `ssh` program of this machine, with its keys
        /// and known hosts
        host: Parsed<DockerHost>, default "unix:///var/run/docker.sock";
        /// whose labels are read: `netstead`, `dnsweaver`, `external-dns`, `traefik`, `caddy`, `nginx-proxy`
        dialects: Option<Vec<Dialect>>, unset "all";
        /// `standalone`: containers; `swarm`: services, of a manager; `auto`: containers, and services where the host manages
        /// a swarm
        mode: Mode, default "auto";
        /// where names point that do not say it themselves: `auto`, `host`, addresses, `network:NAME`, `public` (the address
        /// the world sees) or `interface:NAME` (of the machine Netstead runs on)
        target: SourceTarget, default "auto";
        lookup: LookupSettings, all;
        /// a container that does not run keeps its names
        keep_stopped: bool, default false;
        /// addresses on bridge and overlay networks count as addresses of the network around, not of the host alone: no pool
        /// hands them out
        observe: bool, default false;
        /// Traefik's labels count without `traefik.enable=true`, as `exposedByDefault` of Traefik's provider
        exposed_by_default: bool, default true;
        /// only Traefik's routers on one of these give names
        entrypoints: OneOrMore<String>, unset "all";
        /// where routers are that name no entrypoint; without it such a router counts
        default_entrypoints: OneOrMore<String>, unset "none";
        /// the rule of containers and routers that have none, as `defaultRule` of Traefik's provider:
        /// ``Host(`{{ normalize .Name }}.home.example.com`)``
        default_rule: Option<Parsed<DefaultRule>>, unset;
        /// speak TLS to a `tcp://` host
        tls: Option<bool>, unset "`true` if a key of TLS is set";
        tls_settings: Tls, all;
    }
}

impl DockerSettings {
    /// The settings of TLS, if it is on: when it is asked for, or a key of it is set.
    fn tls_in_use(&self) -> Option<&Tls> {
        let on = self.tls.unwrap_or(self.tls_settings.is_set() || self.host.wants_tls());
        on.then_some(&self.tls_settings)
    }
}

impl Configured<dyn Source> for DockerSettings {
    fn identity(&self) -> Identity {
        Identity::own(&self.host.to_string())
    }

    fn server(&self) -> String {
        format!("{}, target {}", *self.host, *self.target)
    }

    fn check(&self) -> Result<(), SettingsError> {
        self.tls_settings.check()?;
        if self.tls_in_use().is_some() && !matches!(*self.host, DockerHost::Tcp { .. }) {
            let key = if self.tls.is_some() { "tls" } else { self.tls_settings.first_set() };
            return Err(SettingsError::new(key, "only a `tcp://` host speaks TLS").hint("leave it out"));
        }
        if matches!(*self.target, TargetSpec::Name(_)) {
            let problem =
                "a source points at addresses, `auto`, `host`, `network:NAME`, `public` or `interface:NAME`";
            let hint = "set a name at the provider, as `target` of its `[dns.NAME]`";
            return Err(SettingsError::new("target", problem).hint(hint));
        }
        self.lookup.check()
    }

    fn local_sockets(&self) -> Vec<PathBuf> {
        match &*self.host {
            DockerHost::Unix(socket) => vec![socket.clone()],
            DockerHost::Tcp { .. } | DockerHost::Ssh(_) => Vec::new(),
        }
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn Source>, SettingsError> {
        let traefik = TraefikSettings {
            exposed_by_default: self.exposed_by_default,
            entrypoints: self.entrypoints.to_vec(),
            default_entrypoints: self.default_entrypoints.to_vec(),
            default_rule: self.default_rule.as_ref().map(|rule| rule.0.clone()),
        };
        let dialects = self.dialects.clone().unwrap_or_else(|| Dialect::ALL.to_vec());
        let resolvers = context.part::<Arc<dyn TargetResolvers>>();
        let config = Config {
            host: self.host.0.clone(),
            tls: self.tls_in_use().cloned(),
            mode: self.mode,
            reader: Reader::new(dialects).with_traefik(traefik),
            target: self.target.0.clone(),
            keep_stopped: self.keep_stopped,
            observe: self.observe,
            places: resolvers.map(|resolvers| resolvers.of_source(&context.name, &self.lookup)),
        };
        Ok(Arc::new(Docker::new(config, context)?))
    }
}
