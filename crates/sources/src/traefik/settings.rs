//! `[source.NAME]` with `type = "traefik"`.

use std::sync::Arc;

use netstead_model::{Source, Span};
use netstead_settings::{BuildContext, Configured, Identity, Kind, OneOrMore, Paths, SettingsError, table};

use super::{Config, FilePattern, TraefikFiles};
use crate::{
    SourceKind, SourceTraits,
    dialects::TargetSpec,
    dynamic_target::{LookupSettings, TargetResolvers},
    source_target::SourceTarget,
};

pub const KIND: SourceKind = Kind::new::<TraefikFileSettings>(
    "traefik",
    "the routers in Traefik's dynamic configuration files",
    || SourceTraits { labels: true },
);

/// Files are looked at this often at most.
const MOST_OFTEN: Span = Span::from_secs(1);

table! {
    /// Traefik's files as the file has them.
    pub struct TraefikFileSettings {
        /// files, and directories with all below them; hidden files are left aside; watched where the system can
        paths: Paths, required "[\"/etc/traefik/dynamic\"]";
        /// the names of files in directories
        pattern: Vec<FilePattern>, default ["*.yml", "*.yaml", "*.toml"];
        /// how often the files are looked at though no change was noticed
        poll: Span, default "1m";
        /// only routers on one of these give names
        entrypoints: OneOrMore<String>, unset "all";
        /// where routers are that name no entrypoint; without it such a router counts
        default_entrypoints: OneOrMore<String>, unset "none";
        /// where the names point, for providers without a target of their own: addresses, one name, `public` or
        /// `interface:NAME`
        target: Option<SourceTarget>, unset;
        lookup: LookupSettings, all;
    }
}

impl Configured<dyn Source> for TraefikFileSettings {
    fn identity(&self) -> Identity {
        self.paths.iter().fold(Identity::default(), |identity, path| identity.and_path(path))
    }

    fn server(&self) -> String {
        self.paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
    }

    fn check(&self) -> Result<(), SettingsError> {
        if self.paths.is_empty() {
            return Err(
                SettingsError::new("paths", "it names none").hint("write `[\"/etc/traefik/dynamic\"]`")
            );
        }
        if self.poll < MOST_OFTEN {
            return Err(SettingsError::new("poll", "it is under a second").hint("write `1s` or more"));
        }
        if let Some(TargetSpec::Source | TargetSpec::Host | TargetSpec::Network(_)) = self.target.as_deref() {
            let hint = "write addresses, one name, `public` or `interface:NAME`";
            return Err(SettingsError::new("target", "files know no such target").hint(hint));
        }
        self.lookup.check()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn Source>, SettingsError> {
        let resolvers = context.part::<Arc<dyn TargetResolvers>>();
        let config = Config {
            paths: self.paths.to_vec(),
            patterns: self.pattern.clone(),
            poll: self.poll.into(),
            entrypoints: self.entrypoints.to_vec(),
            default_entrypoints: self.default_entrypoints.to_vec(),
            target: self.target.as_deref().cloned(),
            places: resolvers.map(|resolvers| resolvers.of_source(&context.name, &self.lookup)),
        };
        Ok(Arc::new(TraefikFiles::new(context.name.clone(), config, Arc::clone(&context.clock))))
    }
}
