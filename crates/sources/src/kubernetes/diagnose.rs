//! Checks for `netstead doctor`: does the cluster answer, which kinds does it have, may they be read.

use netstead_model::Diagnosis;
use netstead_wire::kubernetes::{Cluster, KubernetesError};
use serde::Deserialize;
use serde_json::json;

use super::{
    kinds::{ObjectKind, Served},
    settings::KubernetesSettings,
};

const REVIEW: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

#[derive(Debug, Deserialize)]
struct Review {
    status: ReviewStatus,
}

#[derive(Debug, Deserialize)]
struct ReviewStatus {
    #[serde(default)]
    allowed: bool,
}

#[derive(Debug, Deserialize)]
struct KindList {
    #[serde(default)]
    resources: Vec<Named>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

pub(super) async fn diagnose(cluster: &Cluster, settings: &KubernetesSettings) -> Vec<Diagnosis> {
    let place = cluster.access().describe();
    let version = match cluster.version().await {
        Ok(version) => version,
        Err(error) => return vec![Diagnosis::problem(format!("{place}: {error}"), hint(&error))],
    };
    let mut found = vec![Diagnosis::fine(format!("{place} answers and is Kubernetes {version}"))];
    let kinds = settings.wanted_kinds();
    let gateways = kinds.iter().any(|kind| kind.is_route()).then_some(ObjectKind::Gateway);
    let namespaces: Vec<Option<&str>> = if settings.namespaces.is_empty() {
        vec![None]
    } else {
        settings.namespaces.iter().map(|namespace| Some(namespace.as_str())).collect()
    };
    let (mut present, mut absent) = (Vec::new(), Vec::new());
    for kind in kinds.into_iter().chain(gateways) {
        let served = kind.served();
        match is_served(cluster, kind, &served).await {
            Ok(true) => present.push(served.plural),
            Ok(false) => {
                absent.push(served.plural);
                continue;
            }
            Err(error) => {
                found.push(Diagnosis::problem(format!("{}: {error}", served.plural), hint(&error)));
                continue;
            }
        }
        for namespace in &namespaces {
            let namespace = namespace.filter(|_| served.namespaced);
            found.extend(missing_rights(cluster, &served, namespace).await);
        }
    }
    if !present.is_empty() {
        found.push(Diagnosis::fine(format!("it has {}", present.join(", "))));
    }
    if !absent.is_empty() {
        let text = format!("it does not have {}", absent.join(", "));
        found.push(Diagnosis::note(
            text,
            "they are read once their definitions are installed; `kinds` leaves them out",
        ));
    }
    found
}

async fn is_served(cluster: &Cluster, kind: ObjectKind, served: &Served) -> Result<bool, KubernetesError> {
    if kind.is_built_in() {
        return Ok(true);
    }
    for version in served.versions {
        match cluster.get::<KindList>(&format!("/apis/{}/{version}", served.group)).await {
            Ok(list) if list.resources.iter().any(|one| one.name == served.plural) => return Ok(true),
            Ok(_) | Err(KubernetesError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// The rights that reading a kind needs and that are not given.
async fn missing_rights(cluster: &Cluster, served: &Served, namespace: Option<&str>) -> Option<Diagnosis> {
    let mut missing = Vec::new();
    for verb in ["list", "watch"] {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "verb": verb, "group": served.group, "resource": served.plural,
                "namespace": namespace.unwrap_or_default(),
            }},
        });
        let asked =
            cluster.send::<Review>("POST", REVIEW, "application/json", review.to_string().into_bytes()).await;
        match asked {
            Ok(review) if review.status.allowed => {}
            Ok(_) => missing.push(verb),
            Err(error) => {
                return Some(Diagnosis::problem(format!("{}: {error}", served.plural), hint(&error)));
            }
        }
    }
    if missing.is_empty() {
        return None;
    }
    let place = namespace.map_or(String::new(), |namespace| format!(" in the namespace {namespace}"));
    let text = format!("its role may not {} {}{place}", missing.join(" and "), served.plural);
    let group = if served.group.is_empty() { "\"\"" } else { served.group };
    let rule = format!(
        "add a rule to its role: apiGroups [{group}], resources [{}], verbs [get, list, watch]",
        served.plural
    );
    Some(Diagnosis::problem(text, rule))
}

fn hint(error: &KubernetesError) -> &'static str {
    match error {
        KubernetesError::Settings(_) => "mend `kubeconfig` and `context` of the source, or the file itself",
        KubernetesError::Unauthorized => {
            "renew the credentials in the kubeconfig, or the token of the service account"
        }
        KubernetesError::Forbidden(_) => "give its role the right that is missing",
        _ => "check the address of the cluster and the network between",
    }
}
