//! How the address of a claim is to be called in DNS: as its annotation says, else after the Machine that it is for, else like
//! the claim itself.
//!
//! A Machine does not own its claims itself: an infrastructure provider puts objects of its own in between
//! (`IPAddressClaim` ◄ `VSphereVM` ◄ `VSphereMachine` ◄ `Machine`). So the owners are followed, a few steps up.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use netstead_wire::kubernetes::{KubernetesError, Resource};
use serde::Deserialize;
use serde_json::Value;
use tracing::debug;

use crate::{
    Naming,
    events::EventKind,
    kinds,
    object::{Claim, HOSTNAME, Metadata, ObjectName, PoolKey},
    shared::Shared,
};

/// A Machine is at most this many steps above its claim.
const MOST_STEPS: usize = 5;
const MACHINE_GROUP: &str = "cluster.x-k8s.io";
const MACHINE: &str = "Machine";

/// The kinds of owners as the API server serves them, by API version and kind. What it does not serve is asked for again.
#[derive(Debug, Default)]
pub(crate) struct OwnerKinds(Mutex<HashMap<(String, String), Resource>>);

/// An owner of an object, in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    api_version: String,
    kind: String,
    name: String,
    #[serde(default)]
    controller: Option<bool>,
}

impl Owner {
    fn is_machine(&self) -> bool {
        self.kind == MACHINE
            && self.api_version.split_once('/').is_some_and(|(group, _)| group == MACHINE_GROUP)
    }
}

/// The Machine among some owners, or the owner to go on with: the one that controls the object, else the first.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Machine(String),
    Up(Owner),
    End,
}

fn next_of(references: &[Value]) -> Next {
    let owners: Vec<Owner> = references.iter().filter_map(|one| Owner::deserialize(one).ok()).collect();
    if let Some(machine) = owners.iter().find(|owner| owner.is_machine()) {
        return Next::Machine(machine.name.clone());
    }
    let controller = owners.iter().find(|owner| owner.controller == Some(true));
    controller.or(owners.first()).cloned().map_or(Next::End, Next::Up)
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    resources: Vec<Served>,
}

#[derive(Deserialize)]
struct Served {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
}

#[derive(Deserialize)]
struct Owned {
    #[serde(default)]
    metadata: Metadata,
}

impl Shared {
    /// How the address of a claim is to be called; none in a pool of a kind that gives no names.
    pub(crate) async fn naming(
        &self,
        claim: &Claim,
        pool: &PoolKey,
    ) -> Result<Option<Naming>, KubernetesError> {
        if !pool.kind.gives_names() {
            return Ok(None);
        }
        let namespace = &claim.metadata.namespace;
        let text = claim.metadata.annotations.get(HOSTNAME).map_or("", String::as_str);
        let asked = text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        let machine = match self.machine_of(claim).await {
            Err(error @ KubernetesError::Forbidden(_)) => {
                let note = format!(
                    "the owners of the claim cannot be read, so its address is not called after its Machine: {error}"
                );
                let claims = crate::api::claims();
                self.event((&claims, &claim.metadata), EventKind::Warning, "OwnerNotRead", &note).await;
                None
            }
            machine => machine?,
        };
        Ok(Some(Naming {
            asked: asked.collect(),
            own: machine.clone().unwrap_or_else(|| claim.metadata.name.clone()),
            machine: machine.map(|name| format!("{namespace}/{name}")),
            cluster: claim.cluster().map(|cluster| cluster.to_string()),
        }))
    }

    /// The name of the Machine that a claim is for. An owner that is gone ends the chain.
    async fn machine_of(&self, claim: &Claim) -> Result<Option<String>, KubernetesError> {
        let mut references = claim.metadata.owner_references.clone();
        for step in 1..=MOST_STEPS {
            let owner = match next_of(&references) {
                Next::Machine(name) => return Ok(Some(name)),
                Next::Up(owner) if step < MOST_STEPS => owner,
                Next::Up(_) | Next::End => return Ok(None),
            };
            let Some(resource) = self.owner_kind(&owner).await? else { return Ok(None) };
            let namespace = if resource.namespaced { claim.metadata.namespace.as_str() } else { "" };
            let name = ObjectName::new(namespace, &owner.name);
            let Some(object) = self.api.get::<Owned>(&resource, &name).await? else {
                debug!(claim = %claim.metadata.key(), owner = %name, kind = owner.kind, "An owner is gone.");
                return Ok(None);
            };
            references = object.metadata.owner_references;
        }
        Ok(None)
    }

    /// The plural of a kind is in no reference: the API server is asked for it once.
    async fn owner_kind(&self, owner: &Owner) -> Result<Option<Resource>, KubernetesError> {
        let key = (owner.api_version.clone(), owner.kind.clone());
        let known = || self.owner_kinds.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(resource) = known().get(&key) {
            return Ok(Some(resource.clone()));
        }
        let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        let path = kinds::resource(group, version, "", &owner.kind, true).group_path();
        let group_list: Group = match self.api.cluster.get(&path).await {
            Ok(found) => found,
            Err(KubernetesError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        // `machines/status` is a part of another.
        let served =
            group_list.resources.into_iter().find(|one| one.kind == owner.kind && !one.name.contains('/'));
        let Some(served) = served else { return Ok(None) };
        let resource = kinds::resource(group, version, &served.name, &owner.kind, served.namespaced);
        known().insert(key, resource.clone());
        Ok(Some(resource))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_machine_is_found_among_owners_and_the_controller_leads_on() {
        let owner = |group: &str, kind: &str, controller: bool| json!({ "apiVersion": format!("{group}/v1beta2"), "kind": kind, "name": "x-1", "uid": "u", "controller": controller });
        let machine = owner("cluster.x-k8s.io", "Machine", false);
        let (first, second) = (owner("a.example", "First", false), owner("b.example", "Second", true));
        assert_eq!(next_of(&[first.clone(), machine]), Next::Machine("x-1".to_owned()));
        let up = |references: &[Value]| match next_of(references) {
            Next::Up(owner) => owner.kind,
            next => panic!("{next:?}"),
        };
        assert_eq!(up(&[first.clone(), second]), "Second");
        assert_eq!(up(&[first, json!({ "kind": 7 })]), "First");
        // A kind of this name in another group is none of Cluster API.
        assert_eq!(up(&[owner("machine.example", "Machine", true)]), "Machine");
        assert_eq!(next_of(&[]), Next::End);
    }
}
