//! The watch of a reflector.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use netstead_wire::kubernetes::{KubernetesError, Resource, Watched};
use tokio::time::{sleep, timeout};

use super::{
    super::{
        discovery::Discovered,
        object::{Object, ObjectName},
    },
    Condition, FIRST_PAUSE, LONGEST_PAUSE, Reflector,
};

/// How long deletions wait until it is asked whether the definition of their kind is being removed: the server removes all
/// objects of a definition first.
const DOUBT: Duration = Duration::from_secs(2);

impl Reflector {
    /// Watches until the list must begin anew.
    pub(super) async fn follow(
        &self,
        resource: &Resource,
        version: &mut String,
        pause: &mut Duration,
    ) -> Result<(), KubernetesError> {
        loop {
            let begun = self.shared.clock.monotonic();
            match self.watch(resource, version).await {
                Ok(()) => {}
                Err(error @ (KubernetesError::Expired | KubernetesError::NotFound(_))) => return Err(error),
                Err(error) => {
                    self.fail(&error);
                    sleep(*pause).await;
                    *pause = (*pause * 2).min(LONGEST_PAUSE);
                    continue;
                }
            }
            *pause = FIRST_PAUSE;
            // A server that ends every watch at once must not keep a core busy.
            if self.shared.clock.monotonic().saturating_sub(begun) < FIRST_PAUSE {
                sleep(FIRST_PAUSE).await;
            }
        }
    }

    /// One watch, until the server ends it.
    async fn watch(&self, resource: &Resource, version: &mut String) -> Result<(), KubernetesError> {
        let mut events = self.shared.cluster.watch::<Object>(resource, &self.selection, version).await?;
        self.set(Condition::Watching);
        loop {
            let next = if self.state().doubtful.is_empty() {
                events.next().await
            } else if let Ok(next) = timeout(DOUBT, events.next()).await {
                next
            } else {
                self.settle_deletions().await?;
                continue;
            };
            match next {
                None => return Ok(()),
                Some(Ok(Watched::Bookmark(mark))) => *version = mark,
                Some(Ok(Watched::Changed(object))) => {
                    version.clone_from(&object.metadata.resource_version);
                    self.changed(object);
                }
                Some(Ok(Watched::Deleted(object))) => {
                    version.clone_from(&object.metadata.resource_version);
                    self.deleted(object.name());
                }
                Some(Err(error)) => return Err(error),
            }
        }
    }

    fn changed(&self, object: Object) {
        let status = self.status_of(&object);
        let stored = self.stored(object);
        let mut state = self.state();
        state.statuses.extend(status);
        self.note_generation(state.objects.get(&stored.name), &stored);
        let back = state.doubtful.remove(&stored.name);
        let same = state.objects.get(&stored.name).is_some_and(|known| **known == stored);
        if same && !back {
            return;
        }
        let name = stored.name.clone();
        state.ended.remove(&name);
        state.objects.insert(name.clone(), Arc::new(stored));
        state.dirty.names.insert(name);
        drop(state);
        self.wake();
    }

    fn deleted(&self, name: ObjectName) {
        let mut state = self.state();
        if !self.definition.is_built_in() {
            state.doubtful.insert(name);
            return;
        }
        state.objects.remove(&name);
        state.statuses.remove(&name);
        state.ended.insert(name.clone());
        state.dirty.names.insert(name);
        drop(state);
        self.wake();
    }

    /// Believes deletions, unless the definition of the kind is being removed.
    async fn settle_deletions(&self) -> Result<(), KubernetesError> {
        if !matches!(self.discover().await?, Discovered::Served(_)) {
            self.state().doubtful.clear();
            return Err(KubernetesError::NotFound(String::new()));
        }
        let mut state = self.state();
        for name in std::mem::take(&mut state.doubtful) {
            state.objects.remove(&name);
            state.statuses.remove(&name);
            state.ended.insert(name.clone());
            state.dirty.names.insert(name);
        }
        drop(state);
        self.wake();
        Ok(())
    }
}
