//! The container of external-dns in an object of Kubernetes.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::flags::FlagValue;

/// Where the Pods of an object are: of a Deployment and its like, of a `CronJob`, and of a Pod.
const PLACES: [&str; 3] =
    ["/spec/template/spec/containers", "/spec/jobTemplate/spec/template/spec/containers", "/spec/containers"];

/// The container that is external-dns: by its image, by its name, or because there is no other.
pub(super) fn container(object: &Value) -> anyhow::Result<&Value> {
    let items = object.get("items").and_then(Value::as_array);
    let objects: Vec<&Value> = items.map_or_else(|| vec![object], |items| items.iter().collect());
    let containers: Vec<&Value> = objects
        .into_iter()
        .flat_map(|object| PLACES.iter().filter_map(move |place| object.pointer(place)?.as_array()))
        .flatten()
        .collect();
    let has = |container: &&Value, key: &str| {
        container.get(key).and_then(Value::as_str).is_some_and(|text| text.contains("external-dns"))
    };
    let named = |key: &str| {
        let found: Vec<&Value> = containers.iter().copied().filter(|one| has(one, key)).collect();
        (found.len() == 1).then(|| found.first().copied()).flatten()
    };
    let only = || containers.first().copied().filter(|_| containers.len() == 1);
    match named("image").or_else(|| named("name")).or_else(only) {
        Some(container) => Ok(container),
        None if containers.is_empty() => bail!("there is no container in it"),
        None => bail!("it has {} containers, and not just one of them is external-dns", containers.len()),
    }
}

/// Its command and arguments.
pub(super) fn words(container: &Value) -> Vec<String> {
    let list = |key: &str| container.get(key).and_then(Value::as_array).into_iter().flatten();
    let text = |word: &Value| word.as_str().map(str::to_owned);
    list("command").chain(list("args")).filter_map(text).collect()
}

/// Its variables. What comes from a Secret stays there, and is known by its name.
pub(super) fn variables(container: &Value) -> anyhow::Result<BTreeMap<String, FlagValue>> {
    let mut found = BTreeMap::new();
    for variable in container.get("env").and_then(Value::as_array).into_iter().flatten() {
        let name = variable.get("name").and_then(Value::as_str).context("a variable has no name")?;
        let value = match variable.get("value").and_then(Value::as_str) {
            Some(text) => FlagValue::Text(text.to_owned()),
            None if variable.get("valueFrom").is_some() => FlagValue::Variable(name.to_owned()),
            None => FlagValue::Text(String::new()),
        };
        found.insert(name.to_owned(), value);
    }
    Ok(found)
}
