//! Selects the providers that an operator's command is about.

use std::sync::PoisonError;

use netstead_model::{Ident, Key, Name};
use netstead_plan::{OwnerId, Step};

use crate::{Engine, EngineError, dns_pass::ProviderHandle, history, keys::Class};

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
    pub(super) fn providers_with_values_of(
        &self,
        source: &Ident,
    ) -> Result<Vec<ProviderHandle>, EngineError> {
        if self.shared.sources().contains_key(source) {
            return Err(EngineError::Attached { name: source.clone() });
        }
        let brought = |handle: &ProviderHandle| {
            let owned = handle.snapshot.read().owned.clone();
            owned.workloads().any(|(name, _)| name == source)
        };
        let all: Vec<ProviderHandle> = self.shared.providers().values().cloned().collect();
        let handles: Vec<ProviderHandle> = all.into_iter().filter(brought).collect();
        let known = self.shared.inventory.borrow().inventory.source(source).is_some();
        if handles.is_empty() && !known && self.values_on_detached_providers(source).is_empty() {
            return Err(EngineError::NoSuchSource { name: source.clone() });
        }
        Ok(handles)
    }

    /// What a source brought to providers that are no longer configured themselves.
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
    pub(super) async fn only_provider_with_history(&self) -> Result<ProviderHandle, EngineError> {
        let fenced_store = self.shared.fenced_store("reader");
        let all: Vec<ProviderHandle> = self.shared.providers().values().cloned().collect();
        let mut with_past = Vec::new();
        for handle in all {
            if !history::plans::<Step>(Class::Dns, &fenced_store, handle.setup.name()).await?.is_empty() {
                with_past.push(handle);
            }
        }
        let names: Vec<String> = with_past.iter().map(|handle| handle.setup.name().to_string()).collect();
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
        return Some(format!(
            "`{name}` holds no marks, so only the store knows what is ours there; `netstead adopt --provider {name}` takes \
             over what stands there"
        ));
    }
    let other = setup.fixed_owner && setup.settings.owner != *owner;
    other.then(|| {
        format!(
            "the configuration says `owner = \"{}\"` in dns.{name}; write `{owner}` there first",
            setup.settings.owner
        )
    })
}
