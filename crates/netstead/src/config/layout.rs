//! The sections of the file with their keys: what the environment, the JSON Schema and the reference page are made of.

use netstead_settings::{
    KeyDefault, KeyInfo, Kinds, NamedKeys, PlainKeys, Settings as _, Shape, VariableKey, object_schema,
};
use serde_json::{Map, Value as Json, json};

use super::{
    api::ApiKeys, backend, dns, domain, external_dns, ipam, nameserver, notify, pool, source, store, web,
};

/// A section whose keys stand in it: `[api]`.
pub(crate) struct PlainSection {
    pub(crate) name: &'static str,
    pub(crate) keys: Vec<KeyInfo>,
    /// Its types, each with its own keys; `keys` has those of all. For the reference page.
    #[cfg_attr(not(test), expect(dead_code, reason = "the reference page is written by a test"))]
    pub(crate) types: Vec<(&'static str, Vec<KeyInfo>)>,
}

/// A section of named tables: `[dns.NAME]`.
pub(crate) struct NamedSection {
    pub(crate) name: &'static str,
    /// Keys of every table.
    pub(crate) shared: Vec<KeyInfo>,
    /// Kinds with their title and keys; empty if there are none.
    pub(crate) kinds: Vec<(&'static str, &'static str, Vec<KeyInfo>)>,
}

pub(crate) fn plain_sections() -> Vec<PlainSection> {
    let section = |name, keys| PlainSection { name, keys, types: Vec::new() };
    let types: Vec<_> = store::TYPES.iter().map(|(name, keys)| (*name, keys())).collect();
    let mut store = vec![type_key(
        "`local`: files on this machine; `memory`: nothing is kept, for trying things out; `etcd`: in an etcd; `raft`: kept \
         by several nodes together",
        types.iter().map(|(name, _)| *name).collect(),
        KeyDefault::Value("local".into()),
    )];
    for key in types.iter().flat_map(|(_, keys)| keys) {
        if !store.iter().any(|known| known.name == key.name) {
            store.push(key.clone());
        }
    }
    #[cfg_attr(not(feature = "kubernetes"), expect(unused_mut, reason = "with the feature one more follows"))]
    let mut sections = vec![
        PlainSection { name: "store", keys: store, types },
        section("api", ApiKeys::keys()),
        section("web", web::WebKeys::keys()),
        section("log", super::LogKeys::keys()),
        section("ledger", super::LedgerKeys::keys()),
        section("nameserver", nameserver::NameserverKeys::keys()),
        section("notify", notify::NotifyKeys::keys()),
    ];
    #[cfg(feature = "kubernetes")]
    sections.extend([section("operator", super::operator::OperatorKeys::keys())]);
    sections
}

pub(crate) fn named_sections() -> Vec<NamedSection> {
    vec![
        NamedSection { name: "pool", shared: pool::PoolKeys::keys(), kinds: Vec::new() },
        kinds_section(&backend::kinds(), Vec::new(), "the table's name, if it is one of these"),
        kinds_section(
            &source::kinds(),
            source::CommonKeys::keys(),
            "the table's name, if it is one of these",
        ),
        kinds_section(&dns::kinds(), dns::CommonKeys::keys(), "the table's name, if it is one of these"),
        kinds_section(&ipam::kinds(), ipam::CommonKeys::keys(), "the table's name, if it is one of these"),
        NamedSection { name: "domain", shared: domain::keys(), kinds: Vec::new() },
        NamedSection {
            name: "external_dns",
            shared: external_dns::ExternalDnsKeys::keys(),
            kinds: Vec::new(),
        },
    ]
}

fn kinds_section<B: ?Sized + 'static, C: 'static>(
    kinds: &Kinds<B, C>,
    shared: Vec<KeyInfo>,
    default: &'static str,
) -> NamedSection {
    let words: Vec<String> =
        kinds.kinds.iter().map(|kind| format!("`{}`: {}", kind.name, kind.title)).collect();
    let default = KeyDefault::Unset { meaning: default };
    let mut all = vec![type_key(&words.join("; "), kinds.names(), default)];
    all.extend(shared);
    let own = kinds.kinds.iter().map(|kind| (kind.name, kind.title, kind.keys())).collect();
    NamedSection { name: kinds.section, shared: all, kinds: own }
}

fn type_key(help: &str, names: Vec<&'static str>, default: KeyDefault) -> KeyInfo {
    KeyInfo { name: "type", help: help.to_owned(), shape: Shape::Choice(names), default }
}

/// The keys of the sections without kinds, for the help of `config check`.
pub(crate) fn settings_help() -> String {
    let mut lines: Vec<String> = Vec::new();
    let pool = named_sections().into_iter().find(|section| section.name == "pool");
    let pool = pool.map(|section| ("pool.NAME".to_owned(), section.shared));
    let plain = plain_sections().into_iter().map(|section| (section.name.to_owned(), section.keys));
    for (name, keys) in plain.chain(pool) {
        let mut line = format!("  {:<14}", format!("[{name}]"));
        for (number, key) in keys.iter().enumerate() {
            let last = number + 1 == keys.len();
            let word = format!(" {}{}", key.name, if last { "" } else { "," });
            if line.len() + word.len() > 108 {
                lines.push(std::mem::replace(&mut line, " ".repeat(16)));
            }
            line.push_str(&word);
        }
        lines.push(line);
    }
    lines.join("\n")
}

fn variables(keys: &[KeyInfo]) -> Vec<VariableKey> {
    keys.iter().map(|key| VariableKey { name: key.name, secret: key.shape == Shape::Secret }).collect()
}

pub(super) fn plain_variables() -> Vec<PlainKeys> {
    let of = |section: PlainSection| PlainKeys { section: section.name, keys: variables(&section.keys) };
    plain_sections().into_iter().map(of).collect()
}

pub(super) fn named_variables() -> Vec<NamedKeys> {
    let of = |section: NamedSection| NamedKeys {
        section: section.name,
        shared: variables(&section.shared),
        kinds: section.kinds.iter().map(|(name, _, keys)| (*name, variables(keys))).collect(),
    };
    named_sections().into_iter().map(of).collect()
}

/// The JSON Schema of the whole file. It demands nothing but `type`, and that only of a table that is not called like a
/// kind: the rest may come from the environment.
pub(crate) fn schema() -> Json {
    let (mut properties, mut definitions) = (Map::new(), Map::new());
    for section in plain_sections() {
        properties.insert(section.name.to_owned(), object_schema(&section.keys, &[]));
    }
    for section in named_sections() {
        let tables = if section.kinds.is_empty() {
            json!({ "type": "object", "additionalProperties": object_schema(&section.shared, &[]) })
        } else {
            tables_of_kinds(&section, &mut definitions)
        };
        properties.insert(section.name.to_owned(), tables);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "netstead.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "$defs": definitions,
    })
}

/// The tables of a section with kinds. The schema of each kind is written once, among the definitions.
fn tables_of_kinds(section: &NamedSection, definitions: &mut Map<String, Json>) -> Json {
    let reference = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let any = reference(section.name);
    let (mut with_type, mut called_like_kinds) = (Vec::new(), Map::new());
    for (name, title, own) in &section.kinds {
        let keys: Vec<_> = section.shared.iter().chain(own).cloned().collect();
        let mut schema = object_schema(&keys, &[]);
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("title".into(), Json::from(*title));
        }
        if let Some(kind) = schema.pointer_mut("/properties/type") {
            *kind = json!({ "const": name });
        }
        let definition = format!("{}.{name}", section.name);
        // Beside a reference, older drafts read nothing else: so it has an object of its own.
        with_type.push(json!({ "allOf": [reference(&definition)], "required": ["type"] }));
        called_like_kinds
            .insert((*name).to_owned(), json!({ "anyOf": [reference(&definition), any.clone()] }));
        definitions.insert(definition, schema);
    }
    definitions.insert(section.name.to_owned(), json!({ "anyOf": with_type }));
    json!({ "type": "object", "properties": called_like_kinds, "additionalProperties": any })
}
