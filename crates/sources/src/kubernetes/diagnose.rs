//! Checks for `netstead doctor`: does the cluster answer, which kinds does it have, may they be read.

use netstead_model::Diagnosis;
use netstead_wire::kubernetes::{Cluster, KubernetesError};
use serde::Deserialize;
use serde_json::json;

use super::{
    discovery::{self, Discovered},
    kinds::{ObjectKind, definition::Definition},
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

pub(super) async fn diagnose(
    cluster: &Cluster,
    settings: &KubernetesSettings,
    balances: bool,
) -> Vec<Diagnosis> {
    let place = cluster.access().describe();
    let version = match cluster.version().await {
        Ok(version) => version,
        Err(error) => return vec![Diagnosis::problem(format!("{place}: {error}"), hint(&error))],
    };
    let mut found = vec![Diagnosis::fine(format!("{place} answers and is Kubernetes {version}"))];
    let kinds = settings.definitions();
    let routes = kinds.iter().any(|of| of.kind.is_route());
    let gateways = routes.then(|| Definition::of(ObjectKind::Gateway));
    let unread = balances && !kinds.iter().any(|of| of.kind == ObjectKind::Service);
    let services = unread.then(|| Definition::of(ObjectKind::Service));
    let namespaces: Vec<Option<&str>> = if settings.namespaces.is_empty() {
        vec![None]
    } else {
        settings.namespaces.iter().map(|namespace| Some(namespace.as_str())).collect()
    };
    let (mut present, mut absent) = (Vec::new(), Vec::new());
    for kind in kinds.into_iter().chain(gateways).chain(services) {
        let namespaced = match is_served(cluster, &kind).await {
            Ok(Some(namespaced)) => namespaced,
            Ok(None) => {
                absent.push(kind.plural);
                continue;
            }
            Err(error) => {
                found.push(Diagnosis::problem(format!("{}: {error}", kind.plural), hint(&error)));
                continue;
            }
        };
        for namespace in &namespaces {
            let namespace = namespace.filter(|_| namespaced);
            found.extend(missing_rights(cluster, &kind, namespace).await);
        }
        present.push(kind);
    }
    if !present.is_empty() {
        let plurals: Vec<&str> = present.iter().map(|kind| kind.plural.as_str()).collect();
        found.push(Diagnosis::fine(format!("it has {}", plurals.join(", "))));
    }
    for namespace in &namespaces {
        found.extend(missing_rights_to_write(cluster, settings, &present, *namespace).await);
        if balances {
            found.extend(missing_rights_to_balance(cluster, *namespace).await);
        }
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

/// Whether the cluster has a kind; then whether its objects live in namespaces.
async fn is_served(cluster: &Cluster, kind: &Definition) -> Result<Option<bool>, KubernetesError> {
    if kind.is_built_in() {
        return Ok(Some(kind.namespaced));
    }
    Ok(match discovery::discover(cluster, kind).await? {
        Discovered::Served(resource) => Some(resource.namespaced),
        Discovered::Vanishing | Discovered::Missing => None,
    })
}

/// The rights that reading a kind needs and that are not given.
async fn missing_rights(cluster: &Cluster, kind: &Definition, namespace: Option<&str>) -> Option<Diagnosis> {
    let mut missing = Vec::new();
    for verb in ["list", "watch"] {
        match may(cluster, verb, &kind.group, &kind.plural, "", namespace).await {
            Ok(true) => {}
            Ok(false) => missing.push(verb),
            Err(error) => {
                return Some(Diagnosis::problem(format!("{}: {error}", kind.plural), hint(&error)));
            }
        }
    }
    if missing.is_empty() {
        return None;
    }
    let text = format!("its role may not {} {}{}", missing.join(" and "), kind.plural, inside(namespace));
    Some(Diagnosis::problem(text, rule(&kind.group, &kind.plural, "list, watch")))
}

/// The rights that writing needs and that are not given. Without them names are published all the same.
async fn missing_rights_to_write(
    cluster: &Cluster,
    settings: &KubernetesSettings,
    present: &[Definition],
    namespace: Option<&str>,
) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    let records = present.iter().filter(|kind| settings.status && kind.kind.is_record());
    let statuses = records.map(|kind| ("patch", kind.group.as_str(), kind.plural.as_str(), "status"));
    let events = settings.events.then_some(("create", "events.k8s.io", "events", ""));
    for (verb, group, plural, part) in statuses.chain(events) {
        if let Ok(false) = may(cluster, verb, group, plural, part, namespace).await {
            let whole = if part.is_empty() { plural.to_owned() } else { format!("{plural}/{part}") };
            let text = format!("its role may not {verb} {whole}{}", inside(namespace));
            let key = if part.is_empty() { "events" } else { "status" };
            found.push(Diagnosis::note(
                text,
                format!("{}; or set `{key} = false`", rule(group, &whole, verb)),
            ));
        }
    }
    found
}

/// The rights that load balancers need and that are not given: to write an address, and to see that a Service is gone before
/// its address is another's.
async fn missing_rights_to_balance(cluster: &Cluster, namespace: Option<&str>) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    for (verb, part, whole) in [("patch", "status", "services/status"), ("get", "", "services")] {
        if let Ok(false) = may(cluster, verb, "", "services", part, namespace).await {
            let text = format!("its role may not {verb} {whole}{}", inside(namespace));
            found.push(Diagnosis::problem(text, rule("", whole, verb)));
        }
    }
    found
}

async fn may(
    cluster: &Cluster,
    verb: &str,
    group: &str,
    plural: &str,
    part: &str,
    namespace: Option<&str>,
) -> Result<bool, KubernetesError> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": {
            "verb": verb, "group": group, "resource": plural, "subresource": part,
            "namespace": namespace.unwrap_or_default(),
        }},
    });
    let body = review.to_string().into_bytes();
    let review = cluster.send::<Review>("POST", REVIEW, "application/json", body).await?;
    Ok(review.status.allowed)
}

fn inside(namespace: Option<&str>) -> String {
    namespace.map_or(String::new(), |namespace| format!(" in the namespace {namespace}"))
}

fn rule(group: &str, resource: &str, verbs: &str) -> String {
    let group = if group.is_empty() { "\"\"" } else { group };
    format!("add a rule to its role: apiGroups [{group}], resources [{resource}], verbs [{verbs}]")
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
