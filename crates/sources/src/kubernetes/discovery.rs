//! Asks the API server which version of a kind it has.

use netstead_wire::kubernetes::{Cluster, KubernetesError, Resource};
use serde::Deserialize;

use super::kinds::definition::Definition;

/// The server's answer about a kind.
#[derive(Debug)]
pub(super) enum Discovered {
    Served(Resource),
    /// Its definition is being removed.
    Vanishing,
    Missing,
}

/// A group of kinds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(default)]
    versions: Vec<GroupVersion>,
    preferred_version: Option<GroupVersion>,
}

#[derive(Debug, Deserialize)]
struct GroupVersion {
    version: String,
}

#[derive(Debug, Deserialize)]
struct ResourceList {
    #[serde(default)]
    resources: Vec<ServedResource>,
}

#[derive(Debug, Deserialize)]
struct ServedResource {
    name: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

/// The first version of the kind that the server has.
pub(super) async fn discover(cluster: &Cluster, wanted: &Definition) -> Result<Discovered, KubernetesError> {
    let versions = if wanted.versions.is_empty() {
        served_versions(cluster, &wanted.group).await?
    } else {
        wanted.versions.clone()
    };
    for version in versions {
        let mut resource = Resource {
            group: wanted.group.clone(),
            version,
            plural: wanted.plural.clone(),
            kind: wanted.name.clone(),
            namespaced: wanted.namespaced,
        };
        let list: ResourceList = match cluster.get(&resource.group_path()).await {
            Ok(list) => list,
            Err(KubernetesError::NotFound(_)) => continue,
            Err(error) => return Err(error),
        };
        let Some(found) = list.resources.into_iter().find(|one| one.name == wanted.plural) else {
            continue;
        };
        // A definition that is being removed lets nothing be created any more.
        if !found.verbs.iter().any(|verb| verb == "create") {
            return Ok(Discovered::Vanishing);
        }
        if resource.kind.is_empty() {
            resource.kind = found.kind;
        }
        resource.namespaced = found.namespaced;
        return Ok(Discovered::Served(resource));
    }
    Ok(Discovered::Missing)
}

/// The versions of a group, the server's preferred one first; none if the server does not have the group.
async fn served_versions(cluster: &Cluster, group: &str) -> Result<Vec<String>, KubernetesError> {
    let group: Group = match cluster.get(&format!("/apis/{group}")).await {
        Ok(group) => group,
        Err(KubernetesError::NotFound(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let all = group.preferred_version.into_iter().chain(group.versions);
    let mut versions: Vec<String> = Vec::new();
    for GroupVersion { version } in all {
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    Ok(versions)
}
