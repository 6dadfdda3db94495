//! Commands of operators beside passes: adopt, recover, clean, rollback.

mod select_providers;

use futures::future::join_all;
use netstead_model::{Ident, ObjectKey};
use netstead_plan::{Digest, OwnerId};
use netstead_store::Write;

use self::select_providers::{answers_for, cannot_recover, cannot_recover_objects};
use super::{Engine, any_provider::AnyProvider, configure};
use crate::{
    Adoption, AdoptionReport, EngineError, PassReport, ProviderPlan, Scope,
    dns_pass::ProviderHandle,
    fenced_store::entries,
    history::{EngineEvent, EngineEventKind},
    ipam_pass::{IpamHandle, ObjectAdoption},
    keys::{self, Class},
    provider_loop::Undo,
};

/// The values to give up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cleaning {
    /// Names of a source that is no longer configured, everywhere.
    Source(Ident),
    /// Everything one scope of a source brought, if it is retired or cannot be seen.
    Scope(Ident, netstead_model::Scope),
    /// Everything of ours on a provider.
    Provider(Ident),
}

/// Changes that were taken back, or would be.
#[derive(Debug, Clone, Default)]
pub struct Undone {
    /// The hash over everything that is done: a caller that saw it can ask for exactly that.
    pub hash: String,
    pub plans: Vec<ProviderPlan>,
    /// Reports of the passes; empty if nothing was done.
    pub reports: Vec<PassReport>,
    /// Providers to which nothing is written until they are resumed.
    pub paused: Vec<Ident>,
    /// Parts that could not be done, one sentence each.
    pub notes: Vec<String>,
}

impl Engine {
    /// Adopts foreign values and runs a pass; or says what that would be.
    pub async fn adopt(
        &self,
        take: Adoption,
        provider: Option<&Ident>,
        dry: bool,
        by: &str,
    ) -> Result<Vec<AdoptionReport>, EngineError> {
        let handles = self.selected_providers(provider)?;
        let answers = |handle: &ProviderHandle| match &take {
            Adoption::Name { name, .. } => answers_for(handle, name),
            _ => true,
        };
        if let (Some(provider), Some(_), Adoption::Name { name, .. }) =
            (provider, handles.iter().find(|handle| !answers(handle)), &take)
        {
            let reason = format!("`{provider}` does not answer for {name}");
            return Err(EngineError::Invalid { field: "provider", reason });
        }
        let handles: Vec<ProviderHandle> = handles.into_iter().filter(answers).collect();
        self.adopt_on_all(&handles, &take, dry, by).await
    }

    /// Takes over an object of others on an IPAM system, or fields of ours that others changed, and runs a pass; or says
    /// what that would be. With `keep` the values of others stay.
    pub async fn adopt_object(
        &self,
        key: &ObjectKey,
        provider: Option<&Ident>,
        keep: bool,
        dry: bool,
        by: &str,
    ) -> Result<Vec<AdoptionReport>, EngineError> {
        let systems = self.selected_systems(provider)?;
        let take = ObjectAdoption::Object { key: key.clone(), keep };
        let mut taken = self.adopt_on_systems(&systems, &take, dry, by).await?;
        if taken.iter().all(|one| one.objects.is_empty() && one.error.is_none()) {
            let reason = format!("nothing of others is in the way of {key}, and none of its fields drifted");
            return Err(EngineError::Invalid { field: "object", reason });
        }
        taken.retain(|one| !one.objects.is_empty() || one.error.is_some());
        Ok(taken)
    }

    /// The IPAM system with this name, or all.
    fn selected_systems(&self, provider: Option<&Ident>) -> Result<Vec<IpamHandle>, EngineError> {
        let Some(name) = provider else { return Ok(self.shared.ipam().values().cloned().collect()) };
        if let Some(system) = self.ipam_called(name) {
            return Ok(vec![system]);
        }
        self.providers_called(name)?;
        let reason = format!("`{name}` is a DNS server: objects are on IPAM systems");
        Err(EngineError::Invalid { field: "provider", reason })
    }

    async fn adopt_on_systems(
        &self,
        systems: &[IpamHandle],
        take: &ObjectAdoption,
        dry: bool,
        by: &str,
    ) -> Result<Vec<AdoptionReport>, EngineError> {
        let taken =
            join_all(systems.iter().map(|system| system.request_adoption(take.clone(), dry, by))).await;
        let of = |taken: Result<AdoptionReport, EngineError>| match taken {
            Err(EngineError::Server { name, reason }) if systems.len() > 1 => {
                Ok(AdoptionReport::failed(name, reason))
            }
            taken => taken,
        };
        taken.into_iter().map(of).collect()
    }

    /// Makes what the marks of `owner` say is its own ours, after the store was lost. The first plan after it is parked.
    pub async fn recover(
        &self,
        owner: OwnerId,
        provider: Option<&Ident>,
        dry: bool,
        by: &str,
    ) -> Result<Vec<AdoptionReport>, EngineError> {
        let system = provider.and_then(|name| self.ipam_called(name));
        let (handles, systems) = match (system, provider) {
            (Some(system), _) => (Vec::new(), vec![system]),
            (None, Some(_)) => (self.selected_providers(provider)?, Vec::new()),
            (None, None) => (self.selected_providers(None)?, self.selected_systems(None)?),
        };
        let (mut able, mut unable) = (Vec::new(), Vec::new());
        let (mut able_systems, mut failed) = (Vec::new(), Vec::new());
        for system in systems {
            match cannot_recover_objects(&system, &owner) {
                None => able_systems.push(system),
                Some(reason) if provider.is_some() => {
                    return Err(EngineError::Invalid { field: "provider", reason });
                }
                Some(reason) => failed.push(AdoptionReport::failed(system.setup.name().clone(), reason)),
            }
        }
        for handle in handles {
            match cannot_recover(&handle, &owner) {
                None => able.push(handle),
                Some(reason) if provider.is_some() => {
                    return Err(EngineError::Invalid { field: "provider", reason });
                }
                Some(reason) => unable.push((handle, reason)),
            }
        }
        self.poll_all_sources().await;
        let mut taken = self.adopt_on_all(&able, &Adoption::Marks(owner.clone()), dry, by).await?;
        let marks = ObjectAdoption::Marks(owner.clone());
        taken.extend(self.adopt_on_systems(&able_systems, &marks, dry, by).await?);
        let any = taken.iter().any(|taken| taken.error.is_none());
        if !dry && any && provider.is_none() {
            let write = Write::Put(keys::OWNER.into(), keys::encode(&owner));
            self.shared.fenced_store("owner").put(vec![write]).await?;
        }
        // The zones of our own nameserver are in the store itself: nothing of it was left behind.
        let worth = unable.into_iter().filter(|(handle, _)| !handle.setup.is_builtin());
        taken.extend(
            worth.map(|(handle, reason)| AdoptionReport::failed(handle.setup.name().clone(), reason)),
        );
        taken.extend(failed);
        Ok(taken)
    }

    /// Removes what a detached source or a retired scope brought, or everything of ours on a provider, and pauses what it
    /// touches. With
    /// `expect`, only if that is still what would be done.
    pub async fn clean(
        &self,
        what: &Cleaning,
        dry: bool,
        expect: Option<&str>,
        by: &str,
    ) -> Result<Undone, EngineError> {
        let (handles, undo) = match what {
            Cleaning::Provider(name) => {
                if self.owned_on_detached(name).is_some() {
                    return Err(EngineError::Detached { name: name.clone() });
                }
                (vec![self.any_provider(name)?], Undo::All)
            }
            Cleaning::Source(name) => (self.providers_with_values_of(name)?, Undo::Source(name.clone())),
            Cleaning::Scope(name, scope) => {
                (self.providers_with_values_of_scope(name, scope)?, Undo::Scope(name.clone(), scope.clone()))
            }
        };
        let mut undone = self.undo(&handles, &undo, dry, expect, by).await?;
        if let Cleaning::Source(name) = what {
            undone.notes.extend(self.values_on_detached_providers(name));
            if !dry {
                self.forget_pushed(name).await?;
            }
        }
        if !dry {
            let told = |text: String| EngineEvent::new(EngineEventKind::Cleaned, text).by(by);
            self.shared
                .record_event(match what {
                    Cleaning::Provider(name) => {
                        told(format!("everything of ours on {name} was to go")).on(name)
                    }
                    Cleaning::Source(name) => {
                        told(format!("everything that {name} brought was to go")).of_source(name)
                    }
                    Cleaning::Scope(name, scope) => {
                        told(format!("everything that {scope} of {name} brought was to go")).of_source(name)
                    }
                })
                .await;
        }
        Ok(undone)
    }

    /// Deletes the records that another program sent into a source that is no longer configured.
    async fn forget_pushed(&self, source: &Ident) -> Result<(), EngineError> {
        if self.pushed(source).is_some() {
            return Ok(());
        }
        let found = entries(&*self.shared.store, &keys::pushed(source, "")).await?;
        if found.is_empty() {
            return Ok(());
        }
        let gone = found.into_iter().map(|entry| Write::Delete(entry.key)).collect();
        self.shared.fenced_store(&format!("pushed/{source}")).put(gone).await
    }

    /// Forgets what is ours on a provider that is no longer configured. Its records stay as they are, as foreign ones.
    pub async fn forget(&self, provider: &Ident, dry: bool, by: &str) -> Result<usize, EngineError> {
        let _turn = self.reconfigure_lock.lock().await;
        let Some(owned) = self.owned_on_detached(provider) else {
            self.any_provider(provider)?;
            let reason = format!("`{provider}` is in the configuration: take it out first");
            return Err(EngineError::Invalid { field: "provider", reason });
        };
        if dry {
            return Ok(owned);
        }
        let mut gone: Vec<Vec<u8>> = Vec::new();
        for class in [Class::Dns, Class::Ipam] {
            for prefix in [keys::OWNED, keys::PLAN, keys::LATELY] {
                let prefix = class.key(prefix, &format!("{provider}/"));
                gone.extend(entries(&*self.shared.store, &prefix).await?.into_iter().map(|entry| entry.key));
            }
        }
        for class in [Class::Dns, Class::Ipam] {
            gone.extend([keys::GUARD, keys::PROVIDER].map(|prefix| class.key(prefix, provider).into()));
        }
        let fenced_store = self.shared.fenced_store(&format!("provider/{provider}"));
        fenced_store.put(gone.into_iter().map(Write::Delete).collect()).await?;
        configure::find_detached_providers(&self.shared).await?;
        let text = format!("{owned} values on {provider}, which is no longer configured, are forgotten");
        self.shared.record_event(EngineEvent::new(EngineEventKind::Cleaned, text).on(provider).by(by)).await;
        Ok(owned)
    }

    /// Brings a provider back to what a generation had, as a new generation, and pauses it.
    pub async fn rollback(
        &self,
        to: u64,
        provider: Option<&Ident>,
        dry: bool,
        expect: Option<&str>,
        by: &str,
    ) -> Result<Undone, EngineError> {
        let handle = match provider {
            Some(name) => self.any_provider(name)?,
            None => self.only_provider_with_history().await?,
        };
        let name = handle.name().clone();
        let undone = self.undo(&[handle], &Undo::To(to), dry, expect, by).await?;
        if !dry {
            let text = format!("{name} was brought back to generation {to}");
            self.shared
                .record_event(EngineEvent::new(EngineEventKind::RolledBack, text).on(&name).by(by))
                .await;
        }
        Ok(undone)
    }

    /// The provider of either kind with this name.
    fn any_provider(&self, name: &Ident) -> Result<AnyProvider, EngineError> {
        match self.ipam_called(name) {
            Some(system) => Ok(AnyProvider::Ipam(system)),
            None => Ok(AnyProvider::Dns(self.provider(name)?)),
        }
    }

    /// Shows what would be taken back; then pauses, and does it.
    async fn undo(
        &self,
        handles: &[AnyProvider],
        undo: &Undo,
        dry: bool,
        expect: Option<&str>,
        by: &str,
    ) -> Result<Undone, EngineError> {
        let mut undone = Undone::default();
        let shown = join_all(handles.iter().map(|handle| handle.undo(undo.clone(), true))).await;
        for plan in shown {
            undone.plans.push(plan?.0);
        }
        undone.hash = hash(&undone.plans).to_string();
        if dry {
            return Ok(undone);
        }
        if expect.is_some_and(|expect| expect != undone.hash) {
            return Err(EngineError::NotAsShown);
        }
        for plan in undone.plans.iter().filter(|plan| plan.steps() > 0) {
            let reason = match undo {
                Undo::All => "it was cleaned".to_owned(),
                Undo::Source(source) => format!("what {source} brought was cleaned"),
                Undo::Scope(source, scope) => format!("what {scope} of {source} brought was cleaned"),
                Undo::To(to) => format!("it was brought back to generation {to}"),
            };
            self.pause(Scope::Provider(plan.provider().clone()), None, Some(reason), by).await?;
            undone.paused.push(plan.provider().clone());
        }
        match undo {
            Undo::Source(source) => self.shared.change_inventory(|all, _| _ = all.clean(source)).await,
            Undo::Scope(source, scope) => {
                self.shared.change_inventory(|all, _| _ = all.clean_scope(source, scope)).await;
            }
            Undo::All | Undo::To(_) => {}
        }
        let done = join_all(handles.iter().map(|handle| handle.undo(undo.clone(), false))).await;
        undone.plans.clear();
        for (handle, done) in handles.iter().zip(done) {
            match done {
                Ok((plan, report)) => {
                    undone.plans.push(plan);
                    undone.reports.extend(report);
                }
                Err(error) => undone.notes.push(format!("{}: {error}", handle.name())),
            }
        }
        Ok(undone)
    }

    async fn adopt_on_all(
        &self,
        handles: &[ProviderHandle],
        take: &Adoption,
        dry: bool,
        by: &str,
    ) -> Result<Vec<AdoptionReport>, EngineError> {
        let taken =
            join_all(handles.iter().map(|handle| handle.request_adoption(take.clone(), dry, by))).await;
        let of = |(handle, taken): (&ProviderHandle, Result<AdoptionReport, EngineError>)| match taken {
            Err(EngineError::Server { name, reason }) if handles.len() > 1 => {
                Ok(AdoptionReport::failed(name, reason))
            }
            Err(error) => Err(error),
            Ok(taken) => {
                debug_assert_eq!(taken.provider, *handle.setup.name());
                Ok(taken)
            }
        };
        handles.iter().zip(taken).map(of).collect()
    }
}

fn hash(plans: &[ProviderPlan]) -> Digest {
    let texts = |plan: &ProviderPlan| {
        let provider = plan.provider().clone();
        plan.step_texts().into_iter().map(move |text| format!("{provider} {text}"))
    };
    Digest::of(plans.iter().flat_map(texts))
}
