//! `NETSTEAD_POOL_LAN_NETWORK` sets or creates `pool.lan.network`.
//!
//! A variable is matched in this order, so that a kind or key that comes with a later version changes the meaning of none:
//!
//! 1. a key of a section without names (`NETSTEAD_API_LISTEN`)
//! 2. a key of a table that exists, by the keys of its kind
//! 3. a new table: a key that all kinds of the section share, else the longest key of any kind
//!
//! `NETSTEAD_…_FILE` names a file for every key that is a secret.

mod matching;

use std::collections::BTreeMap;

use self::matching::{Meaning, meanings, new_table};
use crate::{
    problem::{Problems, ValueOrigin, nearest},
    tree::{Entry, Node, Table, Value},
};

const PREFIX: &str = "NETSTEAD_";

/// One key as a variable can set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariableKey {
    pub name: &'static str,
    /// `NETSTEAD_…_FILE` names a file with its value.
    pub secret: bool,
}

/// A section whose keys stand in it: `[api]`.
#[derive(Debug, Clone)]
pub struct PlainKeys {
    pub section: &'static str,
    pub keys: Vec<VariableKey>,
}

/// A section of named tables: `[dns.NAME]`.
#[derive(Debug, Clone)]
pub struct NamedKeys {
    pub section: &'static str,
    /// Keys that all its tables have.
    pub shared: Vec<VariableKey>,
    /// Keys of each kind; empty where the section has no kinds.
    pub kinds: Vec<(&'static str, Vec<VariableKey>)>,
}

/// The settings in the environment.
#[derive(Debug)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    own: Vec<String>,
}

impl Environment {
    /// `own` are the `NETSTEAD_` names that are not settings.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>, own: &[String]) -> Self {
        let ours = |(name, _): &(String, String)| name.starts_with(PREFIX);
        Self { variables: variables.into_iter().filter(ours).collect(), own: own.to_vec() }
    }

    /// Lays the variables over the file.
    pub fn overlay(
        &self,
        root: &mut Table,
        plain: &[PlainKeys],
        named: &[NamedKeys],
        problems: &mut Problems,
    ) {
        let settings = || {
            let is_setting =
                |(name, value): &(&String, &String)| !self.own.contains(name) && !is_kubernetes(name, value);
            self.variables.iter().filter(is_setting)
        };
        // The types of new tables first: by them the other variables of these tables are understood.
        let (types, others): (Vec<_>, Vec<_>) = settings().partition(|(name, _)| name.ends_with("_TYPE"));
        for (variable, value) in types.into_iter().chain(others) {
            let Some(rest) = variable.strip_prefix(PREFIX).map(str::to_ascii_lowercase) else { continue };
            let place = ValueOrigin::Variable(variable.clone());
            let found = meanings(&rest, root, plain, named);
            match found.as_slice() {
                [] => {
                    if let Some(meaning) = new_table(&rest, named) {
                        set(root, &meaning, &place, value);
                    } else {
                        let hint = self.hint(variable, plain, named);
                        problems.add(&place, "this variable means nothing", Some(hint));
                    }
                }
                [one] => set(root, one, &place, value),
                several => {
                    let meant: Vec<_> = several.iter().map(|one| format!("`{one}`")).collect();
                    let message = format!("it could mean {}", meant.join(" or "));
                    problems.add(&place, message, Some("set it in the file instead".into()));
                }
            }
        }
    }

    /// The nearest name that would mean something.
    fn hint(&self, variable: &str, plain: &[PlainKeys], named: &[NamedKeys]) -> String {
        let mut known = self.own.clone();
        let upper = |section: &str, key: &str| format!("{PREFIX}{section}_{key}").to_uppercase();
        for section in plain {
            known.extend(section.keys.iter().map(|key| upper(section.section, key.name)));
        }
        // With the part after the section in the place of the name.
        let name = variable.split('_').nth(2).unwrap_or("NAME");
        for section in named {
            let keys = section.shared.iter().chain(section.kinds.iter().flat_map(|(_, keys)| keys));
            known.extend(keys.map(|key| upper(section.section, &format!("{name}_{}", key.name))));
        }
        // The prefix that all of them share says nothing about likeness.
        let short: Vec<_> = known.iter().filter_map(|name| name.strip_prefix(PREFIX)).collect();
        let hint = nearest(variable.strip_prefix(PREFIX).unwrap_or(variable), &short);
        if hint.starts_with("did you mean `") {
            return hint.replacen('`', &format!("`{PREFIX}"), 1);
        }
        "`netstead config check --help` lists the settings".into()
    }
}

fn set(root: &mut Table, meaning: &Meaning, place: &ValueOrigin, value: &str) {
    let Some(section) = child(root, meaning.section, place) else { return };
    let table = match &meaning.table {
        Some(name) => child(section, name, place),
        None => Some(section),
    };
    let Some(table) = table else { return };
    let plain = Node { place: place.clone(), value: Value::Plain(value.to_owned()) };
    let node = if meaning.file {
        let file = Entry { key: place.clone(), node: plain };
        let table = Table { place: place.clone(), entries: BTreeMap::from([("file".to_owned(), file)]) };
        Node { place: place.clone(), value: Value::Table(table) }
    } else {
        plain
    };
    table.entries.insert(meaning.key.to_owned(), Entry { key: place.clone(), node });
}

/// The table `key` in `table`, made if need be; `None` if something else has its name, which is reported elsewhere.
fn child<'a>(table: &'a mut Table, key: &str, place: &ValueOrigin) -> Option<&'a mut Table> {
    let fresh = || {
        let table = Table { place: place.clone(), entries: BTreeMap::new() };
        Entry { key: place.clone(), node: Node { place: place.clone(), value: Value::Table(table) } }
    };
    match &mut table.entries.entry(key.to_owned()).or_insert_with(fresh).node.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

/// Whether Kubernetes put it into the pod, for a Service called `netstead`, or `netstead-…`.
fn is_kubernetes(variable: &str, value: &str) -> bool {
    let url = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    if variable.ends_with("_SERVICE_HOST")
        || variable.ends_with("_SERVICE_PORT")
        || variable.contains("_SERVICE_PORT_")
    {
        return true;
    }
    if variable.ends_with("_PORT") && url {
        return true;
    }
    // NETSTEAD_PORT_5301_TCP, NETSTEAD_PORT_5301_TCP_ADDR and so on.
    let Some((_, after)) = variable.split_once("_PORT_") else { return false };
    let mut parts = after.split('_');
    let port = parts.next().is_some_and(|port| port.parse::<u16>().is_ok());
    port && parts.next().is_some_and(|protocol| matches!(protocol, "TCP" | "UDP" | "SCTP"))
}

#[cfg(test)]
mod tests;
