//! dnsweaver's YAML file, as the variables that mean the same.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::Variables;

/// Keys of the file and the variables they stand for.
const NAMES: [(&str, &str); 33] = [
    ("logging.level", "LOG_LEVEL"),
    ("logging.format", "LOG_FORMAT"),
    ("logging.file", "LOG_FILE"),
    ("logging.rotation.max_size", "LOG_MAX_SIZE"),
    ("logging.rotation.max_backups", "LOG_MAX_BACKUPS"),
    ("logging.rotation.max_age", "LOG_MAX_AGE"),
    ("logging.rotation.compress", "LOG_COMPRESS"),
    ("reconciler.interval", "RECONCILE_INTERVAL"),
    ("reconciler.shutdown_timeout", "SHUTDOWN_TIMEOUT"),
    ("reconciler.dry_run", "DRY_RUN"),
    ("reconciler.cleanup_orphans", "CLEANUP_ORPHANS"),
    ("reconciler.cleanup_on_stop", "CLEANUP_ON_STOP"),
    ("reconciler.ownership_tracking", "OWNERSHIP_TRACKING"),
    ("reconciler.adopt_existing", "ADOPT_EXISTING"),
    ("reconciler.default_ttl", "DEFAULT_TTL"),
    ("reconciler.instance_id", "INSTANCE_ID"),
    ("platform", "PLATFORM"),
    ("instance_id", "INSTANCE_ID"),
    ("default_ttl", "DEFAULT_TTL"),
    ("docker.host", "DOCKER_HOST"),
    ("docker.mode", "DOCKER_MODE"),
    ("docker.connect_timeout", "DOCKER_CONNECT_TIMEOUT"),
    ("kubernetes.kubeconfig", "K8S_KUBECONFIG"),
    ("kubernetes.namespaces", "K8S_NAMESPACES"),
    ("kubernetes.watch_ingress", "K8S_WATCH_INGRESS"),
    ("kubernetes.watch_ingressroute", "K8S_WATCH_INGRESSROUTE"),
    ("kubernetes.watch_httproute", "K8S_WATCH_HTTPROUTE"),
    ("kubernetes.watch_services", "K8S_WATCH_SERVICES"),
    ("kubernetes.label_selector", "K8S_LABEL_SELECTOR"),
    ("kubernetes.annotation_filter", "K8S_ANNOTATION_FILTER"),
    ("server.port", "HEALTH_PORT"),
    ("server.address", "HEALTH_ADDRESS"),
    ("server.allow_network", "HEALTH_ALLOW_NETWORK"),
];

/// The variables of a file. What the file says beyond them keeps its own name, so that it is told and not lost.
pub(crate) fn variables(text: &str) -> anyhow::Result<Variables> {
    let root: Value = serde_saphyr::from_str(text).context("it is not YAML")?;
    let Value::Object(mut root) = root else { bail!("it is not a map of settings") };
    let mut found = BTreeMap::new();
    let (sources, providers) = (root.remove("sources"), root.remove("providers"));
    let mut names = Vec::new();
    for source in items(sources) {
        let name = source.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let discovery = source.get("file_discovery").cloned().unwrap_or(Value::Null);
        for (key, variable) in [
            ("paths", "FILE_PATHS"),
            ("pattern", "FILE_PATTERN"),
            ("poll_interval", "POLL_INTERVAL"),
            ("watch_method", "WATCH_METHOD"),
        ] {
            if let Some(value) = discovery.get(key) {
                found.insert(format!("SOURCE_{}_{variable}", upper(&name)), flat(value));
            }
        }
        names.push(name);
    }
    if !names.is_empty() {
        found.insert("SOURCES".into(), names.join(","));
    }
    let mut instances = Vec::new();
    for provider in items(providers) {
        let Some(name) = provider.get("name").and_then(Value::as_str) else {
            bail!("a provider has no name")
        };
        let own = provider
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| !matches!(key.as_str(), "name" | "config"));
        let free = provider.get("config").and_then(Value::as_object).into_iter().flatten();
        for (key, value) in own.chain(free) {
            found.insert(format!("{}_{}", upper(name), upper(key)), flat(value));
        }
        instances.push(name.to_owned());
    }
    found.insert("INSTANCES".into(), instances.join(","));
    let mut rest = Vec::new();
    flatten("", &Value::Object(root), &mut rest);
    for (path, value) in rest {
        let known = NAMES.iter().find(|(key, _)| *key == path).map(|(_, variable)| (*variable).to_owned());
        found.insert(known.unwrap_or(path), value);
    }
    let pairs = found.into_iter().map(|(name, value)| (format!("DNSWEAVER_{name}"), interpolated(&value)));
    Ok(Variables::new(pairs))
}

fn items(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn upper(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}

/// A value as a variable has it: lists with commas.
fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(flat).collect::<Vec<_>>().join(","),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn flatten(path: &str, value: &Value, into: &mut Vec<(String, String)>) {
    let Value::Object(map) = value else { return into.push((path.to_owned(), flat(value))) };
    for (key, value) in map {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        flatten(&path, value, into);
    }
}

/// `${NAME}` and `${NAME:-default}` replaced by our environment. What is nothing but `${NAME}` stays: it may be a
/// secret, which is pointed at.
fn interpolated(text: &str) -> String {
    let whole = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    if whole.is_some_and(|name| !name.contains([':', '{', '}'])) {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some((front, after)) = rest.split_once("${") {
        out.push_str(front);
        let Some((inner, behind)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        let (name, default) = inner.split_once(":-").unwrap_or((inner, ""));
        let value = std::env::var(name).ok().filter(|value| !value.is_empty());
        out.push_str(value.as_deref().unwrap_or(default));
        rest = behind;
    }
    out.push_str(rest);
    out
}
