//! The TOML style: `[hosts."nas.home.test"]` with `addresses`, `aliases` and other records.

use std::collections::BTreeMap;

use netstead_model::{Address, Content as Values, Ident, Name, RecordData, RecordType, Wish};
use serde::Deserialize;

use super::{Content, Host};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    hosts: BTreeMap<Name, Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    addresses: Vec<Address>,
    /// Further names with the same addresses.
    #[serde(default)]
    aliases: Vec<Name>,
    /// Other records at the name: `records = { MX = ["10 mail.home.test"] }`.
    #[serde(default)]
    records: BTreeMap<RecordType, Vec<String>>,
    ttl: Option<u32>,
    #[serde(default)]
    providers: Vec<Ident>,
    #[serde(default)]
    share: bool,
    #[serde(default)]
    adopt: bool,
}

/// A file that is not valid says nothing at all: it may be half written.
pub(super) fn read(text: &str) -> Result<Content, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut content = Content::default();
    for (name, entry) in file.hosts {
        let wish = |name: Name, content: Values, main: bool| Wish {
            reason: format!("hosts.\"{name}\""),
            name,
            content,
            ttl: entry.ttl,
            providers: entry.providers.clone(),
            adopt: entry.adopt,
            share: entry.share,
            main,
            borrowed: false,
            moves: false,
            proxied: None,
            entrypoints: Vec::new(),
        };
        let mut wishes = Vec::new();
        if !entry.addresses.is_empty() {
            wishes.push(wish(name.clone(), Values::Addresses(entry.addresses.clone()), true));
            let aliases = entry.aliases.iter().cloned();
            wishes
                .extend(aliases.map(|alias| wish(alias, Values::Addresses(entry.addresses.clone()), false)));
        }
        for (kind, texts) in &entry.records {
            let parse = |text: &String| {
                RecordData::parse(*kind, text).map_err(|e| format!("hosts.\"{name}\".records.{kind}: {e}"))
            };
            let values = texts.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
            wishes.push(wish(name.clone(), Values::Records { kind: *kind, values }, false));
        }
        if wishes.is_empty() {
            return Err(format!("hosts.\"{name}\": it has neither `addresses` nor `records`"));
        }
        content.hosts.push(Host { name: name.to_string(), wishes });
    }
    Ok(content)
}
