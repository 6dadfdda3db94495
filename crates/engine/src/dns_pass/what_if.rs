//! Builds the input of a what-if plan: a pass that writes nothing, perhaps with another configuration.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use netstead_model::{Ident, Name, ProviderError, Zone};
use netstead_plan::{Actual, ActualZone, Case, Desired, Domains, Inventory, Settings, desired};

use super::{
    DnsPass, DnsRequest, ProviderHandle,
    names_to_read::names_by_zone,
    zone_cache::{domains_to_list, needed_zones, with_timeout},
};
use crate::{
    EngineError, ProviderSetup,
    provider_loop::Worker,
    what_if::{blocking, empty_zones},
};

/// Overrides for a what-if plan. `Default` overrides nothing.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) inventory: Option<Arc<Inventory>>,
    pub(crate) domains: Option<Arc<Domains>>,
    pub(crate) settings: Option<Settings>,
    /// Sources that are called otherwise: their former name and the new one.
    pub(crate) renames: Arc<Vec<(Ident, Ident)>>,
    /// The server is another one, and is not asked.
    pub(crate) elsewhere: bool,
}

impl ProviderHandle {
    /// Asks the loop, between its passes, what a plan in this world would be made of.
    pub(crate) async fn request_case(&self, world: Overrides) -> Result<Result<Case, String>, EngineError> {
        self.ask(|done| DnsRequest::WhatIf(Box::new(world), done)).await
    }
}

impl Worker<DnsPass> {
    /// Looks at the server as a pass would, and changes nothing, here or there.
    pub(super) async fn assemble_case(&self, world: Overrides) -> Result<Case, String> {
        let settings = match world.settings {
            Some(settings) => ProviderSetup { settings, ..self.setup.clone() }.effective(),
            None => (*self.state.settings).clone(),
        };
        let inventory = world.inventory.unwrap_or_else(|| self.shared.inventory.borrow().inventory.clone());
        let rules = world.domains.unwrap_or_else(|| self.shared.domains());
        let now = self.shared.now();
        let mut owned = (*self.state.owned).clone();
        for (was, name) in world.renames.iter() {
            owned.rename_source(was, name);
        }
        let work = {
            let (inventory, settings, rules) = (inventory.clone(), settings.clone(), rules.clone());
            move || (desired(&inventory, &settings, &rules, &BTreeSet::new(), &owned, now), owned)
        };
        let (wanted, owned) = blocking(work).await.map_err(|error| error.to_string())?;
        let actual = if world.elsewhere {
            let names = wanted.sets.iter().map(|set| set.name.clone());
            empty_zones(&settings, &names.chain(owned.iter().map(|(name, _)| name.clone())).collect())
        } else {
            self.read_needed_zones(&settings, &wanted).await.map_err(|error| error.to_string())?
        };
        let (inventory, domains) = ((*inventory).clone(), (*rules).clone());
        let guard = self.guard.clone();
        let (looks, clean, expect) = (Vec::new(), false, Vec::new());
        Ok(Case { settings, domains, inventory, looks, actual, owned, guard, now, clean, expect })
    }

    /// Reads every zone that matters under these settings.
    async fn read_needed_zones(
        &self,
        settings: &Settings,
        wanted: &Desired,
    ) -> Result<Actual, ProviderError> {
        let provider = &self.setup.provider;
        let server = provider.server();
        let listed =
            with_timeout(&server, provider.zones(&domains_to_list(settings, &self.state.owned, wanted)))
                .await?;
        let (listed, fresh) = self.with_new_zones(listed, wanted);
        let needed: BTreeSet<Name> = needed_zones(&listed, wanted, &self.state.owned);
        let mut names = if provider.reads_by_name() {
            names_by_zone(&listed, wanted, &self.state.owned, settings)
        } else {
            BTreeMap::default()
        };
        let mut zones = Vec::with_capacity(listed.len());
        for Zone { name, sign } in listed {
            let asked = names.remove(&name).unwrap_or_default();
            let (sign, sets) = if fresh.contains(&name) {
                (None, Some(Vec::new()))
            } else if needed.contains(&name) {
                // As in a pass: a zone that cannot be read is left out of the plan, and said to be.
                match with_timeout(&server, provider.read_names(&name, &asked)).await {
                    Ok(content) => (content.sign, Some(content.sets)),
                    Err(_) => (sign, None),
                }
            } else {
                (sign, None)
            };
            zones.push(ActualZone::new(name, sign, sets));
        }
        Ok(Actual { zones })
    }
}
