//! [`Registration`]: lets the API server know the webhooks: their address, their authorities, and the kinds that they are for.
//!
//! Only kinds that are switched on are registered, so nothing of another provider is ever asked about; and definitions of another
//! provider are left as they are.

use serde_json::{Map, Value, json};

use super::{SERVICE, WebhookOptions};
use crate::{
    PoolKind,
    api::Api,
    conversion,
    kinds::{self, GROUP},
    object::ObjectName,
};

/// The name of both configurations.
const CONFIGURATION: &str = "netstead-operator";
/// The label with the provider that a definition belongs to.
const PROVIDER: &str = "cluster.x-k8s.io/provider";
const OURS: &str = "ipam-netstead";

pub(super) struct Registration<'a> {
    pub(super) api: &'a Api,
    pub(super) kinds: &'a [PoolKind],
    /// The only namespace that the operator looks at.
    pub(super) namespace: Option<&'a str>,
    pub(super) options: &'a WebhookOptions,
    /// None if another program tells the API server of them.
    pub(super) authorities: Option<&'a str>,
}

impl Registration<'_> {
    /// Writes what is not there yet. An error names the object; the others are written all the same.
    pub(super) async fn complete(&self) -> Result<(), String> {
        let mut problems = Vec::new();
        for (plural, kind, webhooks) in [
            (
                "validatingwebhookconfigurations",
                "ValidatingWebhookConfiguration",
                self.webhooks("validation", "/validate"),
            ),
            (
                "mutatingwebhookconfigurations",
                "MutatingWebhookConfiguration",
                self.webhooks("default", "/default"),
            ),
        ] {
            problems.extend(self.configure(plural, kind, webhooks).await.err());
        }
        for kind in self.kinds.iter().filter(|kind| conversion::has_old_version(**kind)) {
            problems.extend(self.convert(*kind).await.err());
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }

    async fn configure(&self, plural: &str, kind: &str, mut webhooks: Vec<Value>) -> Result<(), String> {
        let resource = kinds::resource("admissionregistration.k8s.io", "v1", plural, kind, false);
        let name = ObjectName::new("", CONFIGURATION);
        let wrong = |error| format!("the {kind} {CONFIGURATION}: {error}");
        let Some(found) = self.api.get::<Value>(&resource, &name).await.map_err(wrong)? else {
            let object = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": { "name": CONFIGURATION, "labels": { PROVIDER: OURS } }, "webhooks": webhooks,
            });
            return self.api.create::<Value>(&resource, "", &object).await.map(drop).map_err(wrong);
        };
        let before = found.get("webhooks").cloned().unwrap_or_else(|| json!([]));
        for webhook in &mut webhooks {
            let name = webhook.get("name").cloned();
            let same = before.as_array().into_iter().flatten().find(|one| one.get("name") == name.as_ref());
            let client = same.and_then(|same| same.get("clientConfig"));
            if let Some(own) = webhook.get_mut("clientConfig").and_then(Value::as_object_mut) {
                keep_authorities(own, client);
            }
        }
        let webhooks = Value::from(webhooks);
        if covers(&before, &webhooks) {
            return Ok(());
        }
        self.api
            .patch(&resource, &name, version(&found), json!({ "webhooks": webhooks }))
            .await
            .map_err(wrong)
    }

    async fn convert(&self, kind: PoolKind) -> Result<(), String> {
        let resource = kinds::resource(
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            false,
        );
        let name = ObjectName::new("", &format!("{}.{GROUP}", kind.plural()));
        let wrong = |error| format!("the definition {name}: {error}");
        let Some(found) = self.api.get::<Value>(&resource, &name).await.map_err(wrong)? else {
            return Err(format!(
                "the definition {name} is missing; `netstead crds --kinds {kind}` prints it"
            ));
        };
        let versions = found.pointer("/spec/versions").and_then(Value::as_array);
        let labels = found.pointer("/metadata/labels");
        let provider = labels.and_then(|labels| labels.get(PROVIDER)?.as_str());
        let is_single = versions.is_some_and(|versions| versions.len() < 2);
        if provider.is_none_or(|provider| provider != OURS) || is_single {
            return Ok(());
        }
        let mut client = self.client("/convert");
        let before = found.pointer("/spec/conversion");
        keep_authorities(&mut client, before.and_then(|before| before.pointer("/webhook/clientConfig")));
        let with = |client: &Map<String, Value>| {
            let webhook = json!({ "conversionReviewVersions": ["v1"], "clientConfig": client });
            json!({ "strategy": "Webhook", "webhook": webhook })
        };
        if before.is_some_and(|before| covers(before, &with(&client))) {
            return Ok(());
        }
        // A merge would keep the other of `service` and `url`.
        let other = if self.options.url.is_some() { "service" } else { "url" };
        client.insert(other.to_owned(), Value::Null);
        let patch = json!({ "spec": { "conversion": with(&client) } });
        self.api.patch(&resource, &name, version(&found), patch).await.map_err(wrong)
    }

    fn webhooks(&self, what: &str, path: &str) -> Vec<Value> {
        let kinds = self.kinds.iter().filter(|kind| !kind.is_external());
        kinds.map(|kind| self.webhook(*kind, what, path)).collect()
    }

    /// One webhook, as the in-cluster provider has it for the same kind.
    fn webhook(&self, kind: PoolKind, what: &str, path: &str) -> Value {
        let mut operations = vec!["CREATE", "UPDATE"];
        if what == "validation" {
            operations.push("DELETE");
        }
        let selector = match self.namespace.filter(|_| kind.is_namespaced()) {
            Some(namespace) => json!({ "matchExpressions": [
                { "key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace] } ] }),
            None => json!({}),
        };
        json!({
            "name": format!("{what}.{}.ipam.netstead.io", kind.plural().trim_end_matches('s')),
            "admissionReviewVersions": ["v1"],
            "clientConfig": self.client(path),
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 10,
            "namespaceSelector": selector,
            "rules": [{
                "apiGroups": [GROUP], "apiVersions": [kind.version()], "operations": operations, "resources": [kind.plural()],
                "scope": "*",
            }],
        })
    }

    fn client(&self, path: &str) -> Map<String, Value> {
        let mut client = Map::new();
        match &self.options.url {
            Some(url) => {
                client.insert("url".to_owned(), Value::from(format!("{}{path}", url.trim_end_matches('/'))))
            }
            None => client.insert(
                "service".to_owned(),
                json!({ "namespace": self.options.namespace, "name": SERVICE, "path": path, "port": 443 }),
            ),
        };
        if let Some(authorities) = self.authorities {
            let bundle = data_encoding::BASE64.encode(authorities.as_bytes());
            client.insert("caBundle".to_owned(), Value::from(bundle));
        }
        client
    }
}

/// Keeps the authorities that another program has put in, such as cert-manager, where we have none.
fn keep_authorities(client: &mut Map<String, Value>, before: Option<&Value>) {
    if let (false, Some(known)) =
        (client.contains_key("caBundle"), before.and_then(|before| before.get("caBundle")))
    {
        client.insert("caBundle".to_owned(), known.clone());
    }
}

fn version(object: &Value) -> &str {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default()
}

/// Whether `found` has all that is wanted; the API server adds defaults. An empty selector selects all, so it is equal to an empty
/// one only.
fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) if !wanted.is_empty() => {
            wanted.iter().all(|(key, wanted)| found.get(key).is_some_and(|found| covers(found, wanted)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| covers(found, wanted))
        }
        _ => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_the_server_are_no_difference_and_a_narrower_selector_is() {
        let wanted = json!([{ "name": "a", "rules": [{ "scope": "*" }], "namespaceSelector": {} }]);
        let with = |field: &str, value: Value| {
            let mut found = wanted.clone();
            found[0][field] = value;
            found
        };
        assert!(covers(&wanted, &wanted));
        assert!(covers(&with("reinvocationPolicy", json!("Never")), &wanted));
        assert!(!covers(&with("namespaceSelector", json!({ "matchLabels": { "a": "b" } })), &wanted));
        assert!(!covers(&with("rules", json!([])), &wanted));
        assert!(!covers(&json!([]), &wanted));
        assert!(!covers(&wanted, &json!([])));
    }
}
