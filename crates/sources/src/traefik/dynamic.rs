//! The routers of one file.

use std::path::Path;

use netstead_model::{Key, ParseError};
use serde_json::{Map, Value};

use crate::dialects::{
    Reading, TraefikSettings,
    diagnostics::{Diagnostics, excerpt},
    traefik::Router,
};

/// One router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileRouter {
    /// Kind and name: the same when it moves to another file.
    pub(super) id: Key,
    pub(super) name: String,
    pub(super) reading: Reading,
}

/// The routers of a file, or why it says nothing that can be believed: it may be half written, so a file that is empty,
/// no YAML or TOML, or ends in the middle of a rule is believed in nothing. Any other rule that cannot be read is a matter
/// of its router alone.
pub(super) fn read(path: &Path, text: &str, settings: &TraefikSettings) -> Result<Vec<FileRouter>, String> {
    if text.trim().is_empty() {
        return Err("it is empty".into());
    }
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let root = parse(path, text)?;
    let mut all = Vec::new();
    for kind in ["http", "tcp"] {
        let Some(routers) = get(&root, kind).and_then(|kind| get(kind, "routers")) else { continue };
        let Some(routers) = routers.as_object() else {
            if routers.is_null() {
                continue;
            }
            return Err(format!("{kind}.routers is no table"));
        };
        for (name, entry) in routers {
            let place = format!("{}: {kind}.routers.{}.rule", excerpt(&file), excerpt(name));
            let mut notes = Diagnostics::default();
            let router = router(place, entry);
            let mut asks = match router.name_requests(settings, None, &mut notes) {
                Ok(asks) => asks,
                Err(trouble) => {
                    let trouble = format!("{kind}.routers.{}: {trouble}", excerpt(name));
                    if is_cut_off(text, router.rule) {
                        return Err(trouble);
                    }
                    notes.unreadable(trouble);
                    Vec::new()
                }
            };
            asks.sort_by(|a, b| a.name.cmp(&b.name));
            asks.dedup_by(|a, b| a.name == b.name);
            let unclear = notes.is_unclear();
            let reading =
                Reading { requests: asks, why_not: notes.into_sentences(), unclear, ..Reading::default() };
            let id = format!("{kind}/{name}").parse().map_err(|error: ParseError| error.to_string())?;
            all.push(FileRouter { id, name: name.clone(), reading });
        }
    }
    Ok(all)
}

/// Whether the file ends with this rule: the rest of it, and more routers, may be still to come.
fn is_cut_off(text: &str, rule: Option<&str>) -> bool {
    rule.is_some_and(|rule| text.trim_end().ends_with(rule.trim_end()))
}

fn parse(path: &Path, text: &str) -> Result<Value, String> {
    let toml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    let parsed: Result<Value, String> = if toml {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    } else {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    };
    parsed.map_err(|error| {
        let error = excerpt(error.lines().next().unwrap_or_default());
        if text.contains("{{") {
            format!("it is a template, which only Traefik fills in ({error})")
        } else {
            error
        }
    })
}

fn router(place: String, entry: &Value) -> Router<'_> {
    let mut router = Router::new(place);
    router.rule = get(entry, "rule").and_then(Value::as_str);
    router.entrypoints = texts(get(entry, "entrypoints"));
    let domains = get(entry, "tls").and_then(|tls| get(tls, "domains")).and_then(Value::as_array);
    for domain in domains.into_iter().flatten() {
        router.domains.extend(get(domain, "main").and_then(Value::as_str));
        router.domains.extend(texts(get(domain, "sans")));
    }
    router
}

/// A field in any case, as Traefik reads its files.
fn get<'a>(value: &'a Value, field: &str) -> Option<&'a Value> {
    let map: &Map<String, Value> = value.as_object()?;
    map.get(field)
        .or_else(|| map.iter().find(|(key, _)| key.eq_ignore_ascii_case(field)).map(|(_, value)| value))
}

fn texts(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
