//! Plans that are only shown (*what-if*): what the current or another configuration would change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use netstead_model::{Content, Ident, Name, RecordSet, RecordType, Workload};
use netstead_plan::{
    Actual, ActualZone, Case, Digest, DomainMatch, Domains, Guard, Inventory, Now, Owned, Plan, Settings,
    SourceConfig, SourceRules, desired,
};

use crate::{
    Engine, EngineError,
    dns_pass::{Overrides, ProviderHandle},
    engine_state::EngineState,
};

/// Another configuration, as far as plans are made of it.
#[derive(Debug, Clone, Default)]
pub struct WhatIfConfig {
    pub sources: Vec<WhatIfSource>,
    pub domains: Domains,
    pub providers: Vec<WhatIfProvider>,
}

#[derive(Debug, Clone)]
pub struct WhatIfSource {
    pub name: Ident,
    /// The name it had before.
    pub was: Option<Ident>,
    /// Its table differs from the one in force; it is not looked at anew all the same.
    pub changed: Option<Digest>,
    /// Limits of the names and records the source may ask for.
    pub rules: SourceRules,
}

#[derive(Debug, Clone)]
pub struct WhatIfProvider {
    pub settings: Settings,
    /// The running provider whose values are its own: of the same name, or of the name it had before.
    pub running: Option<Ident>,
    /// It has the same server. Any other server is not asked, and its zones are taken to be empty.
    pub same_server: bool,
}

/// The changes of one provider.
#[derive(Debug, Clone)]
pub struct WhatIfPlan {
    pub plan: Plan,
    /// Whether its server was asked what it holds.
    pub asked: bool,
}

impl Engine {
    /// Everything the provider's plan is made of now, with the plan it gives. Nothing is written. What plans do not
    /// need, and what may hold secrets (labels and tags), is left out.
    pub async fn case(&self, provider: &Ident) -> Result<Case, EngineError> {
        let handle = self.provider(provider)?;
        let mut case = handle.what_if_case(Overrides::default()).await?;
        let server = handle.setup.provider.clone();
        let can = server.capabilities();
        let adjust = move |workload: &mut Workload| redact(workload, |set| server.adjust(set, &can));
        case.inventory = case.inventory.with_each(adjust);
        let (mut case, plan) = plan_case(case).await?;
        case.expect = plan.to_string().lines().map(str::to_owned).collect();
        Ok(case)
    }

    /// Plans for another configuration, from what is known now. Nothing is written, no source is looked at, and
    /// no server is asked but those of running providers.
    pub async fn plan_what_if(&self, imagined: WhatIfConfig) -> Result<Vec<WhatIfPlan>, EngineError> {
        let shared = self.shared();
        let renames: Vec<(Ident, Ident)> = imagined
            .sources
            .iter()
            .filter_map(|source| Some((source.was.clone()?, source.name.clone())))
            .collect();
        let inventory = what_if_inventory(shared, &imagined.sources, &renames);
        let (renames, domains) = (Arc::new(renames), Arc::new(imagined.domains));
        // One after the other: each has a copy of the inventory, and there may be many.
        let mut plans = Vec::with_capacity(imagined.providers.len());
        for provider in imagined.providers {
            let running = match &provider.running {
                Some(name) => Some(self.provider(name)?),
                None => None,
            };
            let asked = provider.same_server && running.is_some();
            let (inventory, domains) = (inventory.clone(), domains.clone());
            let case = if let Some(handle) = running {
                let ask = Overrides {
                    inventory: Some(inventory),
                    domains: Some(domains),
                    renames: renames.clone(),
                    settings: Some(provider.settings),
                    elsewhere: !provider.same_server,
                };
                handle.what_if_case(ask).await?
            } else {
                let now = shared.now();
                blocking(move || case_of_new_provider(provider.settings, &inventory, &domains, now)).await?
            };
            let (_, plan) = plan_case(case).await?;
            plans.push(WhatIfPlan { plan, asked });
        }
        Ok(plans)
    }
}

async fn plan_case(case: Case) -> Result<(Case, Plan), EngineError> {
    blocking(move || {
        let plan = case.plan();
        (case, plan)
    })
    .await
}

/// Long work beside the loops, so that it holds up nothing else.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| EngineError::Closed)
}

/// Labels and tags may hold secrets, and no plan is made of them: what they ask for is in the wishes. Values are as the
/// server would have them.
fn redact(workload: &mut Workload, adjust: impl Fn(RecordSet) -> RecordSet) {
    workload.labels.clear();
    workload.tags.clear();
    workload.why_not.clear();
    for wish in &mut workload.wishes {
        if let Content::Records { kind, values } = &mut wish.content {
            let ttl = wish.ttl.unwrap_or(300);
            let set = RecordSet::new(wish.name.clone(), *kind, ttl, std::mem::take(values));
            *values = adjust(set).values.into_iter().collect();
        }
    }
}

/// The inventory as other tables would have it.
fn what_if_inventory(
    shared: &EngineState,
    sources: &[WhatIfSource],
    renames: &[(Ident, Ident)],
) -> Arc<Inventory> {
    let mut newest = (*shared.inventory.borrow().inventory).clone();
    for (was, name) in renames {
        newest.rename(was, name);
    }
    let config = |source: &WhatIfSource| {
        let state = newest.source(&source.name)?;
        let (config, rules) = (source.changed.unwrap_or(state.config), source.rules.clone());
        Some((
            source.name.clone(),
            SourceConfig { config, commanded: state.commanded, movable: state.movable, rules },
        ))
    };
    let mut configs: BTreeMap<Ident, SourceConfig> = sources.iter().filter_map(config).collect();
    // What people command is there in every configuration.
    configs.extend(newest.sources().filter(|(_, state)| state.commanded && !state.detached).map(
        |(name, state)| {
            let (config, rules) = (state.config, state.rules.clone());
            (name.clone(), SourceConfig { config, commanded: true, movable: state.movable, rules })
        },
    ));
    newest.configure(&configs, shared.now());
    Arc::new(newest)
}

/// A provider that does not run yet: nothing is ours there, and its zones are taken to be empty.
fn case_of_new_provider(
    settings: Settings,
    inventory: &Arc<Inventory>,
    domains: &Arc<Domains>,
    now: Now,
) -> Case {
    let owned = Owned::default();
    let names: BTreeSet<Name> = {
        let wanted = desired(inventory, &settings, domains, &BTreeSet::new(), &owned, now);
        wanted.sets.iter().filter(|set| set.kind != RecordType::Ptr).map(|set| set.name.clone()).collect()
    };
    let actual = empty_zones(&settings, &names);
    let (inventory, domains) = ((**inventory).clone(), (**domains).clone());
    let guard = Guard::default();
    let (looks, clean, expect) = (Vec::new(), false, Vec::new());
    Case { settings, domains, inventory, looks, actual, owned, guard, now, clean, expect }
}

/// Empty zones for these names: the domains that are configured, and where patterns leave that open, whatever is above a
/// name.
pub(crate) fn empty_zones(settings: &Settings, names: &BTreeSet<Name>) -> Actual {
    let mut zones: BTreeSet<Name> = settings.domains.iter().filter_map(DomainMatch::domain).collect();
    for name in names {
        if !zones.iter().any(|zone| name.is_subdomain_of(zone)) {
            zones.extend(name.parent());
        }
    }
    let zone = |name| ActualZone { name, sign: None, sets: Some(Vec::new()) };
    Actual { zones: zones.into_iter().map(zone).collect() }
}

impl ProviderHandle {
    async fn what_if_case(&self, world: Overrides) -> Result<Case, EngineError> {
        let provider = self.setup.name().clone();
        self.request_case(world).await?.map_err(|reason| EngineError::Unread { provider, reason })
    }
}
