//! Takes over objects and fields of others on an IPAM system, because an operator says so (`adopt`, `recover`).

use std::{collections::BTreeSet, sync::Arc};

use netstead_model::{Fields, ObjectKey};
use netstead_plan::{
    OwnerId,
    ipam::{IpamDesired, IpamPlan, OwnedField, OwnedObject},
};
use netstead_store::Write;

use super::IpamPass;
use crate::{
    AdoptedObject, AdoptionReport, EngineError,
    history::{EngineEvent, EngineEventKind},
    keys::{self, Class},
    provider_loop::{Stopped, StoredProvider, Worker},
};

/// The part that is taken over.
#[derive(Debug, Clone)]
pub(crate) enum ObjectAdoption {
    /// An object of others that is in the way of ours, or fields of ours that others changed. With `keep` their values
    /// stay; otherwise ours are written.
    Object { key: ObjectKey, keep: bool },
    /// All objects with the marks of an installation of Netstead. From now on it is this one.
    Marks(OwnerId),
}

impl Worker<IpamPass> {
    pub(super) async fn adopt_objects(
        &mut self,
        take: &ObjectAdoption,
        dry: bool,
        by: &str,
    ) -> Result<AdoptionReport, EngineError> {
        let name = self.name().clone();
        let stopped = |stopped: Stopped| EngineError::Server { name: name.clone(), reason: stopped.reason };
        self.rename_sources();
        self.persist().await?;
        self.read_objects().await.map_err(stopped)?;
        let before = (self.state.owned.clone(), self.state.settings.clone(), self.guard.clone());
        let desired = self.desired_objects(None).await.map_err(stopped)?;
        let mut taken = AdoptionReport::new(name.clone());
        taken.objects = match take {
            ObjectAdoption::Object { key, keep } => {
                let plan = self.diff_objects(desired.clone(), false).await.map_err(stopped)?;
                self.find_object(key, *keep, &desired, &plan).into_iter().collect()
            }
            ObjectAdoption::Marks(owner) => {
                Arc::make_mut(&mut self.state.settings).owner = owner.clone();
                self.guard.recovered = true;
                self.find_marked(owner)
            }
        };
        self.own(&taken.objects);
        if dry {
            let plan = self.diff_objects(desired, false).await;
            (self.state.owned, self.state.settings, self.guard) = before;
            taken.object_plan = Some(Arc::new(plan.map_err(stopped)?));
            return Ok(taken);
        }
        self.state.dirty.extend(taken.objects.iter().map(|one| one.key.clone()));
        self.guard_dirty |= self.guard != before.2;
        let owner = match take {
            ObjectAdoption::Marks(owner) => self.persist_object_owner(owner).await,
            ObjectAdoption::Object { .. } => Ok(()),
        };
        let stored = match owner {
            Ok(()) => self.persist().await,
            refused => refused,
        };
        if let Err(error) = stored {
            (self.state.owned, self.state.settings, self.guard) = before;
            self.state.dirty.clear();
            return Err(error);
        }
        self.record_object_adoption(take, taken.objects.len(), by).await;
        Ok(taken)
    }

    /// The object of others that blocks `key`, or the fields of `key` that others changed.
    fn find_object(
        &self,
        key: &ObjectKey,
        keep: bool,
        desired: &IpamDesired,
        plan: &IpamPlan,
    ) -> Option<AdoptedObject> {
        let blocked = plan.blocked.iter().find(|one| one.key == *key).and_then(|one| one.adopt.clone());
        if let Some(id) = blocked {
            let object = self.state.actual.iter().find(|one| one.kind == key.kind && one.id == id)?;
            let wanted = &desired.objects.get(key)?.fields;
            let differs = |name: &String, value| wanted.get(name).is_some_and(|want| want != value);
            let fields = object.fields.iter().filter(|(name, value)| differs(name, *value));
            let fields = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
            return Some(AdoptedObject { key: key.clone(), id: Some(id), fields, kept: keep });
        }
        let drift = plan.drift.iter().filter(|one| one.key == *key && one.wanted.is_some());
        let fields: Fields = drift.filter_map(|one| Some((one.field.clone()?, one.found.clone()?))).collect();
        (!fields.is_empty()).then(|| AdoptedObject { key: key.clone(), id: None, fields, kept: keep })
    }

    /// The objects with the marks of `owner`. Fields of them become ours as far as they have the wanted values.
    fn find_marked(&self, owner: &OwnerId) -> Vec<AdoptedObject> {
        let marks = self.state.actual.iter().filter_map(|object| Some((object, object.mark.as_ref()?)));
        let ours = marks.filter(|(_, mark)| mark.owner == owner.as_str());
        ours.map(|(object, mark)| AdoptedObject {
            key: mark.key.clone(),
            id: Some(object.id.clone()),
            fields: Fields::new(),
            kept: false,
        })
        .collect()
    }

    fn own(&mut self, objects: &[AdoptedObject]) {
        let owned = Arc::make_mut(&mut self.state.owned);
        let marks = self.state.actual.iter().filter_map(|one| Some((&one.mark.as_ref()?.key, &one.id)));
        let marked: BTreeSet<(&ObjectKey, &String)> = marks.collect();
        for one in objects {
            let object: &mut OwnedObject = owned.0.entry(one.key.clone()).or_default();
            if one.id.as_ref().is_some_and(|id| !marked.contains(&(&one.key, id))) {
                object.taken.clone_from(&one.id);
            }
            for (name, value) in &one.fields {
                if one.kept {
                    object.accepted.insert(name.clone(), value.clone());
                } else {
                    object.accepted.remove(name);
                    object.fields.insert(name.clone(), OwnedField::adopted(value.clone()));
                }
            }
        }
    }

    /// The store learns whose marks these are before it learns of the objects.
    async fn persist_object_owner(&self, owner: &OwnerId) -> Result<(), EngineError> {
        let (kind, server) = (self.setup.provider.kind().to_owned(), self.setup.provider.server());
        let known = StoredProvider { kind, server, owner: Some(owner.clone()) };
        let place = Class::Ipam.key(keys::PROVIDER, self.name());
        self.fenced_store.put(vec![Write::Put(place.into(), keys::encode(&known))]).await
    }

    async fn record_object_adoption(&self, take: &ObjectAdoption, count: usize, by: &str) {
        let provider = self.name();
        let (what, text) = match take {
            ObjectAdoption::Marks(owner) => (
                EngineEventKind::Recovered,
                format!("{count} objects of `{owner}` on {provider} are ours from now on"),
            ),
            ObjectAdoption::Object { key, keep: true } => {
                (EngineEventKind::Adopted, format!("{key} on {provider} keeps the values of others"))
            }
            ObjectAdoption::Object { key, keep: false } => {
                (EngineEventKind::Adopted, format!("{key} on {provider} is ours from now on"))
            }
        };
        tracing::info!(%provider, count, by, "Objects were taken over.");
        self.shared.record_event(EngineEvent::new(what, text).on(provider).by(by)).await;
    }
}
