//! The configuration as a command gets it: the file, the environment and the flags together.

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;

use crate::{
    cli::{Cli, Global},
    config::{self, BACKUPS, Config, Found, Problem, RaftConfig, SourceConfig, StoreConfig},
    discovery::Discovery,
    failure::{Told, tell},
    state_dir::{state_dir, variable},
    store_place::StorePlace,
};

/// What was understood, and where it came from.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) found: Found,
    /// What was looked for because nothing is configured.
    pub(crate) discovery: Discovery,
}

impl Settings {
    /// Reads what `--config` or the usual places hold. Everything wrong with it is told before this returns.
    pub(crate) fn read(named: Option<&Path>) -> anyhow::Result<Self> {
        match Self::understand(config::find(named, variable)?) {
            Ok(settings) => Ok(settings),
            Err(problems) => {
                for problem in problems {
                    tell(&problem.to_string(), problem.hint.as_deref());
                }
                Err(Told.into())
            }
        }
    }

    /// The same, and nothing is told: somebody reads again and tells.
    pub(crate) fn read_silently(named: Option<&Path>) -> Option<Self> {
        Self::understand(config::find(named, variable).ok()?).ok()
    }

    /// What a text that somebody else sent would say together with the environment. No file it names is looked at.
    pub(crate) fn imagine(name: &Path, text: &str) -> Result<Config, Vec<Problem>> {
        config::read_foreign(name, text, environment(), &own_variables())
    }

    /// What a file and the environment say together, or everything that is wrong with it.
    pub(crate) fn understand(found: Found) -> Result<Self, Vec<Problem>> {
        let file = match &found {
            Found::File { path, text } => Some((path.as_path(), text.as_str())),
            Found::Nothing { .. } => None,
        };
        let mut config = config::read(file, environment(), &own_variables())?;
        let discovery = match &found {
            Found::Nothing { .. } if config.sources.is_empty() => Discovery::look(variable),
            _ => Discovery::Off,
        };
        config.sources.extend(SourceConfig::discovered(&discovery));
        Ok(Self { config, found, discovery })
    }

    /// Where the store is: `--data-dir`, the file, or the user's state directory.
    pub(crate) fn store(&self, global: &Global) -> StorePlace {
        if let Some(dir) = &global.data_dir {
            return StorePlace::Local(dir.clone());
        }
        self.place()
    }

    /// The directory of a local store and of how many days backups are kept beside it, if of any.
    pub(crate) fn backups(&self, place: &StorePlace) -> Option<(PathBuf, usize)> {
        let StorePlace::Local(dir) = place else { return None };
        let keep = match self.config.store {
            StoreConfig::Local { backups, .. } => backups,
            // `--data-dir` goes before a store elsewhere.
            StoreConfig::Memory | StoreConfig::Etcd(_) | StoreConfig::Raft(_) => BACKUPS,
        };
        (keep > 0).then(|| (dir.clone(), keep))
    }

    /// Where the file alone has the store.
    pub(crate) fn place(&self) -> StorePlace {
        match &self.config.store {
            StoreConfig::Local { path, .. } => {
                StorePlace::Local(path.clone().unwrap_or_else(|| state_dir(&variable)))
            }
            StoreConfig::Memory => StorePlace::Memory,
            StoreConfig::Etcd(etcd) => StorePlace::Etcd(etcd.clone()),
            StoreConfig::Raft(raft) => {
                let path = raft.path.clone().unwrap_or_else(|| state_dir(&variable).join("raft"));
                StorePlace::Raft(RaftConfig { path: Some(path), ..raft.clone() })
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
