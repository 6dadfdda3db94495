//! [`LoadedConfig`]: the configuration as a command gets it, from the file, the environment and the flags.

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;

use crate::{
    cli::{Cli, Global},
    config::{self, BACKUPS, Config, FoundConfig, Problem, RaftConfig, SourceConfig, StoreConfig},
    docker_discovery::Discovery,
    failure::{AlreadyReported, print_error},
    state_dir::{state_dir, variable},
    store_location::StoreLocation,
};

/// The configuration, and where it came from.
#[derive(Debug)]
pub(crate) struct LoadedConfig {
    pub(crate) config: Config,
    pub(crate) found: FoundConfig,
    /// The search that is made because nothing is configured.
    pub(crate) discovery: Discovery,
}

impl LoadedConfig {
    /// Reads what `--config` or the usual places hold. Everything wrong with it is told before this returns.
    pub(crate) fn read(named: Option<&Path>) -> anyhow::Result<Self> {
        match Self::understand(config::find(named, variable)?) {
            Ok(settings) => Ok(settings),
            Err(problems) => {
                for problem in problems {
                    print_error(&problem.to_string(), problem.hint.as_deref());
                }
                Err(AlreadyReported.into())
            }
        }
    }

    /// The same without reporting problems: the caller reads again and reports them.
    pub(crate) fn read_silently(named: Option<&Path>) -> Option<Self> {
        Self::understand(config::find(named, variable).ok()?).ok()
    }

    /// The settings that a text from a client would give, together with the environment. No file it names is read.
    pub(crate) fn read_what_if(name: &Path, text: &str) -> Result<Config, Vec<Problem>> {
        config::read(Some((name, text)), environment(), &own_variables())
    }

    /// Reads a file and the environment together, or returns everything that is wrong with it.
    pub(crate) fn understand(found: FoundConfig) -> Result<Self, Vec<Problem>> {
        let file = match &found {
            FoundConfig::File { path, text, .. } => Some((path.as_path(), text.as_str())),
            FoundConfig::Nothing { .. } => None,
        };
        let mut config = config::read(file, environment(), &own_variables())?;
        if let FoundConfig::File { warnings, .. } = &found {
            config.warnings.splice(0..0, warnings.iter().cloned());
        }
        let discovery = match &found {
            FoundConfig::Nothing { .. } if config.sources.is_empty() => Discovery::detect(variable),
            _ => Discovery::Off,
        };
        config.sources.extend(SourceConfig::discovered(&discovery));
        Ok(Self { config, found, discovery })
    }

    /// Where the store is: `--data-dir`, the file, or the user's state directory.
    pub(crate) fn store(&self, global: &Global) -> StoreLocation {
        if let Some(dir) = &global.data_dir {
            return StoreLocation::Local(dir.clone());
        }
        self.configured_store()
    }

    /// The directory of a local store and of how many days backups are kept beside it, if of any.
    pub(crate) fn backups(&self, place: &StoreLocation) -> Option<(PathBuf, usize)> {
        let StoreLocation::Local(dir) = place else { return None };
        let keep = match self.config.store {
            StoreConfig::Local { backups, .. } => backups,
            // `--data-dir` goes before a store elsewhere.
            StoreConfig::Memory | StoreConfig::Etcd(_) | StoreConfig::Raft(_) => BACKUPS,
        };
        (keep > 0).then(|| (dir.clone(), keep))
    }

    /// Where the file alone has the store.
    pub(crate) fn configured_store(&self) -> StoreLocation {
        match &self.config.store {
            StoreConfig::Local { path, .. } => {
                StoreLocation::Local(path.clone().unwrap_or_else(|| state_dir(&variable)))
            }
            StoreConfig::Memory => StoreLocation::Memory,
            StoreConfig::Etcd(etcd) => StoreLocation::Etcd(etcd.clone()),
            StoreConfig::Raft(raft) => {
                let path = raft.path.clone().unwrap_or_else(|| state_dir(&variable).join("raft"));
                StoreLocation::Raft(RaftConfig { path: Some(path), ..raft.clone() })
            }
        }
    }
}

fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The `NETSTEAD_` variables that stand for a flag.
pub(crate) fn own_variables() -> Vec<String> {
    fn walk(command: &clap::Command, names: &mut Vec<String>) {
        let of = |arg: &clap::Arg| arg.get_env().and_then(|name| name.to_str()).map(str::to_owned);
        names.extend(command.get_arguments().filter_map(of));
        for command in command.get_subcommands() {
            walk(command, names);
        }
    }
    let mut names = Vec::new();
    walk(&Cli::command(), &mut names);
    names.sort_unstable();
    names.dedup();
    names
}
