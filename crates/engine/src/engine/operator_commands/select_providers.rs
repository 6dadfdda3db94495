//! Selects the providers that an operator's command is about.

use std::sync::PoisonError;

use netstead_model::{Ident, Key, Name, Scope};
use netstead_plan::{OwnerId, Step, ipam::IpamStep};

use crate::{
    Engine, EngineError, dns_pass::ProviderHandle, engine::any_provider::AnyProvider, history,
    ipam_pass::IpamHandle, keys::Class,
};

impl Engine {
    pub(super) fn selected_providers(
        &self,
        provider: Option<&Ident>,
    ) -> Result<Vec<ProviderHandle>, EngineError> {
        match provider {
            Some(name) => self.providers_called(name),
            None => Ok(self.shared.providers().values().cloned().collect()),
        }
    }

    /// The providers on which something is ours because of a source that is no longer configured.
    pub(super) fn providers_with_values_of(&self, source: &Ident) -> Result<Vec<AnyProvider>, EngineError> {
        if self.shared.sources().contains_key(source) {
            return Err(EngineError::Attached { name: source.clone() });
        }
        let mut handles = AnyProvider::all(&self.shared);
        handles.retain(|handle| handle.holds(|name, _| name == source));
        let known = self.shared.inventory.borrow().inventory.source(source).is_some();
        if handles.is_empty() && !known && self.values_on_detached_providers(source).is_empty() {
            return Err(EngineError::NoSuchSource { name: source.clone() });
        }
        Ok(handles)
    }

    /// The providers on which something is ours because of a scope that can be ended by hand.
    pub(super) fn providers_with_values_of_scope(
        &self,
        source: &Ident,
        scope: &Scope,
    ) -> Result<Vec<AnyProvider>, EngineError> {
        let newest = self.shared.inventory.borrow().inventory.clone();
        let Some(state) = newest.source(source) else {
            return Err(EngineError::NoSuchSource { name: source.clone() });
        };
        let (field, names) = ("scope", || state.scopes.keys().map(ToString::to_string).collect::<Vec<_>>());
        if !state.scopes.contains_key(scope) {
            let known = names();
            let known = if known.iter().all(String::is_empty) { "none".to_owned() } else { known.join(", ") };
            let reason = format!("source `{source}` has no scope `{scope}`; its scopes: {known}");
            return Err(EngineError::Invalid { field, reason });
        }
        if !state.may_clean(scope) {
            let reason = format!(
                "scope `{scope}` of source `{source}` is looked at, so its workloads would be back at once: take it out \
                 of the configuration first"
            );
            return Err(EngineError::Invalid { field, reason });
        }
        let of_it = |id: &Key| state.entries.get(id).is_some_and(|entry| entry.scope == *scope);
        let mut handles = AnyProvider::all(&self.shared);
        handles.retain(|handle| handle.holds(|name, id| name == source && of_it(id)));
        Ok(handles)
    }

    /// Names of a source on providers that are no longer configured themselves.
    pub(super) fn values_on_detached_providers(&self, source: &Ident) -> Vec<String> {
        let detached = self.shared.detached.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |reasons: &[(Ident, Key)]| reasons.iter().filter(|(name, _)| name == source).count();
        let told =
            detached.iter().map(|one| (&one.name, count(&one.reasons))).filter(|(_, count)| *count > 0);
        told.map(|(name, count)| {
            format!("{name} is no longer configured: {count} values that {source} brought stay there")
        })
        .collect()
    }

    /// How many values are ours on a provider that is no longer configured.
    pub(super) fn owned_on_detached(&self, provider: &Ident) -> Option<usize> {
        let detached = self.shared.detached.lock().unwrap_or_else(PoisonError::into_inner);
        detached.iter().find(|one| one.name == *provider).map(|one| one.owned)
    }

    /// The one provider that has a past.
    pub(super) async fn only_provider_with_history(&self) -> Result<AnyProvider, EngineError> {
        let fenced_store = self.shared.fenced_store("reader");
        let mut with_past = Vec::new();
        for handle in AnyProvider::all(&self.shared) {
            let name = handle.name();
            let empty = match handle {
                AnyProvider::Dns(_) => {
                    history::plans::<Step>(Class::Dns, &fenced_store, name).await?.is_empty()
                }
                AnyProvider::Ipam(_) => {
                    history::plans::<IpamStep>(Class::Ipam, &fenced_store, name).await?.is_empty()
                }
            };
            if !empty {
                with_past.push(handle);
            }
        }
        let names: Vec<String> = with_past.iter().map(|handle| handle.name().to_string()).collect();
        match with_past.len() {
            1 => with_past.pop().ok_or(EngineError::Closed),
            0 => {
                let reason = "nothing was carried out on any provider yet".to_owned();
                Err(EngineError::Invalid { field: "to", reason })
            }
            _ => {
                let reason =
                    format!("each provider counts its own generations: name one of {}", names.join(", "));
                Err(EngineError::Invalid { field: "provider", reason })
            }
        }
    }
}

/// The name of an address belongs to every provider that keeps those.
pub(super) fn answers_for(handle: &ProviderHandle, name: &Name) -> bool {
    let settings = &handle.setup.settings;
    let reverse = settings.reverse && name.labels().next_back() == Some("arpa");
    settings.answers_for(name) || reverse
}

pub(super) fn cannot_recover(handle: &ProviderHandle, owner: &OwnerId) -> Option<String> {
    let (setup, name) = (&handle.setup, handle.setup.name());
    if !setup.effective().marks {
        if setup.is_builtin() {
            return Some(format!(
                "nothing can be recovered from `{name}`: its zones are in the store itself"
            ));
        }
        let table = setup.settings.group.as_ref().unwrap_or(name);
        return Some(format!(
            "nothing can be recovered from `{name}`, because no marks stand there: only the lost store knew what was ours; \
             `netstead adopt NAME --provider {name}` takes over one name, `adopt = true` in [dns.{table}] every record \
             that is equal to what is asked for"
        ));
    }
    let other = setup.fixed_owner && setup.settings.owner != *owner;
    other.then(|| written_owner("dns", name, &setup.settings.owner, owner))
}

/// Why the marks of `owner` cannot be recovered on an IPAM system.
pub(super) fn cannot_recover_objects(handle: &IpamHandle, owner: &OwnerId) -> Option<String> {
    let other = handle.setup.fixed_owner && handle.setup.settings.owner != *owner;
    other.then(|| written_owner("ipam", handle.setup.name(), &handle.setup.settings.owner, owner))
}

fn written_owner(section: &str, name: &Ident, written: &OwnerId, owner: &OwnerId) -> String {
    format!("the configuration says `owner = \"{written}\"` in {section}.{name}; write `{owner}` there first")
}
