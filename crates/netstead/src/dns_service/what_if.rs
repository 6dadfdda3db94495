//! Reads another configuration for what-if plans.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

use netstead_api::{ConfigReader, ParsedConfig};
use netstead_client::types::ConfigProblem;
use netstead_engine::{WhatIfConfig, WhatIfProvider, WhatIfSource};
use netstead_model::{Ident, PoolSpec, RecordData};
use netstead_plan::OwnerId;

use super::setup::{Parts, pointing_at, table_digest};
use crate::{
    config::{Config, DnsConfig, SourceConfig},
    loaded_config::LoadedConfig,
};

/// Compares files that are sent with what is in force.
#[derive(Debug, Clone)]
pub(crate) struct WhatIfReader {
    pub(super) parts: Arc<Parts>,
    pub(super) in_force: Arc<RwLock<Config>>,
}

impl ConfigReader for WhatIfReader {
    fn read_config(&self, name: &str, text: &str) -> Result<ParsedConfig, Vec<ConfigProblem>> {
        let config = LoadedConfig::read_what_if(Path::new(name), text).map_err(|problems| {
            let output = |problem: crate::config::Problem| ConfigProblem {
                at: problem.at,
                message: problem.message,
                hint: problem.hint,
            };
            problems.into_iter().map(output).collect::<Vec<_>>()
        })?;
        let in_force = self.in_force.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(owner) = self.parts.owner.get() else {
            let message = "the id of this installation is not known yet".to_owned();
            let hint = Some("ask again in a moment".to_owned());
            return Err(vec![ConfigProblem { at: String::new(), message, hint }]);
        };
        let mut understood = compare(&in_force, &config, owner);
        self.resolve(&config, &mut understood);
        Ok(understood)
    }
}

impl WhatIfReader {
    /// Dynamic targets have their current addresses. A new one is not looked up, so its provider is left out.
    fn resolve(&self, config: &Config, understood: &mut ParsedConfig) {
        for provider in config.providers.iter().filter(|provider| provider.common.moving.is_some()) {
            let known = self.parts.targets.last_known(&provider.name);
            let providers = &mut understood.imagined.providers;
            if known.is_empty() {
                providers.retain(|one| one.settings.provider != provider.name);
                understood.notes.push(format!(
                    "The target of `{}` is not known yet: what it would change is not shown.",
                    provider.name
                ));
            }
            for one in providers.iter_mut().filter(|one| one.settings.provider == provider.name) {
                one.settings.target_moves = true;
                one.settings.target = Some(pointing_at(&known));
            }
        }
    }
}

fn compare(old: &Config, new: &Config, owner: &OwnerId) -> ParsedConfig {
    let mut notes = Vec::new();
    let sources = sources(old, new, owner, &mut notes);
    let providers = providers(old, new, owner, &mut notes);
    let by_name = |config: &Config| -> BTreeMap<Ident, PoolSpec> {
        config.pools.iter().map(|pool| (pool.name.clone(), pool.clone())).collect()
    };
    for system in new.ipam.iter().filter(|system| !old.ipam.contains(system)) {
        notes.push(format!("ipam.{} is new or differs: what it would change is not shown.", system.name));
    }
    for system in old.ipam.iter().filter(|system| new.ipam.iter().all(|other| other.name != system.name)) {
        let renamed = new.ipam.iter().any(|other| other.was.as_ref() == Some(&system.name));
        if !renamed {
            notes.push(format!("ipam.{} is missing: its objects would stay.", system.name));
        }
    }
    let (before, after) = (by_name(old), by_name(new));
    for pool in new.pools.iter().filter(|pool| before.get(&pool.name) != Some(pool)) {
        let name = &pool.name;
        notes.push(match before.get(name) {
            None => format!("pool.{name} is new: no claim and no name comes of that alone."),
            Some(known) if known.domain != pool.domain => format!(
                "pool.{name} has another domain: its claims would get other names, which are not shown, and the \
                 names they have would be parked."
            ),
            Some(_) => format!("pool.{name} differs: what that means for its claims is not shown."),
        });
    }
    for pool in old.pools.iter().filter(|pool| !after.contains_key(&pool.name)) {
        notes.push(format!("pool.{} is missing: it would stay with its claims.", pool.name));
    }
    let imagined = WhatIfConfig { sources, domains: new.domains.clone(), providers };
    ParsedConfig { imagined, notes }
}

fn sources(old: &Config, new: &Config, owner: &OwnerId, notes: &mut Vec<String>) -> Vec<WhatIfSource> {
    let named = |name: &Ident| old.sources.iter().find(|other| other.name == *name);
    // As in force: the name it has, else the one it had before.
    let before = |source: &SourceConfig| named(&source.name).or_else(|| named(source.was.as_ref()?));
    for source in &old.sources {
        if !new.sources.iter().filter_map(before).any(|other| other.name == source.name) {
            notes.push(format!("source.{} is missing: what it brought would stay.", source.name));
        }
    }
    let imagined = |source: &SourceConfig| {
        let known = before(source);
        let changed = known.is_none_or(|known| known.table != source.table);
        if changed {
            let what = if known.is_some() { "differs" } else { "is new" };
            notes.push(format!(
                "source.{} {what}: it was not looked at, and what it would see is not shown.",
                source.name
            ));
        }
        let digest = || table_digest(Some(owner), &source.table.written);
        let was = known.map(|known| known.name.clone()).filter(|was| *was != source.name);
        let (name, rules) = (source.name.clone(), source.rules.clone());
        WhatIfSource { name, was, changed: changed.then(digest), rules }
    };
    new.sources.iter().map(imagined).collect()
}

fn providers(old: &Config, new: &Config, owner: &OwnerId, notes: &mut Vec<String>) -> Vec<WhatIfProvider> {
    let (old, new) = (old.all_providers(), new.all_providers());
    let before = |provider: &DnsConfig| {
        let named = |name: &Ident| old.iter().find(|other| other.name == *name);
        named(&provider.name).or_else(|| provider.common.was.as_ref().and_then(named))
    };
    for provider in &old {
        let stays = new.iter().filter_map(before).any(|other| other.name == provider.name);
        if !stays {
            notes.push(format!("dns.{} is missing: its records would stay.", provider.name));
        }
    }
    let imagined = |provider: &DnsConfig| {
        let running = before(provider);
        let can = (provider.server.kind.capabilities)();
        let mut settings = provider.common.settings(&provider.name, owner).within(&can);
        settings.companion = provider.server.companion().map(RecordData::Https);
        settings.lone_zones = provider.server.kind.name == "builtin";
        WhatIfProvider {
            settings,
            running: running.map(|running| running.name.clone()),
            same_server: running.is_some_and(|running| running.server.is_same_server(&provider.server)),
        }
    };
    new.iter().map(imagined).collect()
}
