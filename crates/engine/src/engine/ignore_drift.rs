//! Ignoring drift, and reporting it again.

use futures::future::join_all;
use netstead_model::{Ident, Name, RecordType};
use netstead_plan::DriftKind;

use super::Engine;
use crate::{
    EngineError, IgnoredDrift,
    dns_pass::ProviderHandle,
    history::{EngineEvent, EngineEventKind},
};

impl Engine {
    /// Drift that is ignored, by provider and name.
    pub fn ignored_drift(&self) -> Vec<IgnoredDrift> {
        self.shared.ignored.all()
    }

    /// Ignores the drift at a name, as the newest plans have it, until it changes: values of others that stand there. Returns
    /// what is ignored now.
    pub async fn ignore_drift(
        &self,
        provider: Option<&Ident>,
        name: &Name,
        kind: Option<RecordType>,
        reason: &str,
        by: &str,
    ) -> Result<Vec<IgnoredDrift>, EngineError> {
        let handles = self.providers_at(provider)?;
        let at = self.shared.clock.wall();
        let (mut found, mut missing) = (Vec::new(), false);
        for handle in &handles {
            let provider = handle.setup.name();
            let plan = handle.snapshot.read().plan.clone();
            let drift = plan.iter().flat_map(|plan| &plan.drift);
            let meant =
                drift.filter(|one| one.name == *name && kind.is_none_or(|kind| kind == one.value.kind()));
            for one in meant {
                if one.kind == DriftKind::Missing {
                    missing = true;
                    continue;
                }
                found.push(IgnoredDrift {
                    provider: provider.clone(),
                    name: one.name.clone(),
                    value: one.value.clone(),
                    kind: one.kind,
                    reason: reason.to_owned(),
                    by: by.to_owned(),
                    at,
                });
            }
        }
        if found.is_empty() {
            let reason = if missing {
                format!(
                    "others removed what is ours at {name}, and the next pass sets it again: there is nothing to ignore"
                )
            } else {
                format!("nothing at {name} drifted")
            };
            return Err(EngineError::Invalid { field: "name", reason });
        }
        self.shared.ignored.add(&found).await?;
        for one in &found {
            let text = format!("drift is ignored: {} {}: {reason}", one.value.kind(), one.value);
            let event = EngineEvent::new(EngineEventKind::Set, text).on(&one.provider).at_name(name).by(by);
            self.shared.record_event(event).await;
        }
        Self::pass_on(&handles).await?;
        Ok(found)
    }

    /// Reports what is ignored at a name as drift again. Returns what that is.
    pub async fn report_drift_again(
        &self,
        provider: Option<&Ident>,
        name: &Name,
        kind: Option<RecordType>,
        by: &str,
    ) -> Result<Vec<IgnoredDrift>, EngineError> {
        let handles = self.providers_at(provider)?;
        let ended = self.shared.ignored.remove(provider, name, kind).await?;
        for one in &ended {
            let text = format!("drift is no longer ignored: {} {}", one.value.kind(), one.value);
            let event =
                EngineEvent::new(EngineEventKind::Deleted, text).on(&one.provider).at_name(name).by(by);
            self.shared.record_event(event).await;
        }
        if !ended.is_empty() {
            Self::pass_on(&handles).await?;
        }
        Ok(ended)
    }

    /// The DNS server with this name, or all.
    fn providers_at(&self, provider: Option<&Ident>) -> Result<Vec<ProviderHandle>, EngineError> {
        match provider {
            Some(name) => self.providers_called(name),
            None => Ok(self.shared.providers().values().cloned().collect()),
        }
    }

    async fn pass_on(handles: &[ProviderHandle]) -> Result<(), EngineError> {
        let passes = join_all(handles.iter().map(ProviderHandle::pass)).await;
        passes.into_iter().try_for_each(|pass| pass.map(drop))
    }
}
