//! `NETSTEAD_POOL_LAN_NETWORK` sets or creates `pool.lan.network`.

use std::collections::BTreeMap;

use super::{
    NAMED, SECTIONS,
    problem::{Problems, ValueOrigin, nearest},
    tree::{Entry, Node, Table, Value},
};

const PREFIX: &str = "NETSTEAD_";

/// The settings in the environment.
#[derive(Debug)]
pub(super) struct Environment {
    variables: BTreeMap<String, String>,
    own: Vec<String>,
}

/// What a variable sets.
#[derive(Debug, PartialEq, Eq)]
enum SettingPath {
    Plain {
        section: &'static str,
        key: &'static str,
    },
    /// `name` as the variable has it: lower case, with `_` for every other sign.
    Named {
        section: &'static str,
        name: String,
        key: &'static str,
    },
}

impl Environment {
    pub(super) fn new(variables: impl IntoIterator<Item = (String, String)>, own: &[String]) -> Self {
        let ours = |(name, _): &(String, String)| name.starts_with(PREFIX);
        Self { variables: variables.into_iter().filter(ours).collect(), own: own.to_vec() }
    }

    pub(super) fn overlay(&self, root: &mut Table, problems: &mut Problems) {
        for (variable, value) in &self.variables {
            if self.own.contains(variable) || is_kubernetes(variable, value) {
                continue;
            }
            let place = ValueOrigin::Variable(variable.clone());
            match setting_path(variable) {
                Some(SettingPath::Plain { section, key }) => {
                    if let Some(table) = child(root, section, &place) {
                        set(table, key, &place, value);
                    }
                }
                Some(SettingPath::Named { section, name, key }) => {
                    let Some(tables) = child(root, section, &place) else { continue };
                    match resolve(tables, &name) {
                        Ok(name) => {
                            if let Some(table) = child(tables, &name, &place) {
                                set(table, key, &place, value);
                            }
                        }
                        Err(names) => {
                            let message = format!("it could mean {}", names.join(" or "));
                            problems.add(&place, message, Some("set it in the file instead".into()));
                        }
                    }
                }
                None => problems.add(&place, "this variable means nothing", Some(self.hint(variable))),
            }
        }
    }

    /// The nearest name that would mean something.
    fn hint(&self, variable: &str) -> String {
        let mut known = self.own.clone();
        let upper = |section: &str, key: &str| format!("{PREFIX}{section}_{key}").to_uppercase();
        known.extend(SECTIONS.iter().flat_map(|(section, keys)| keys.iter().map(|key| upper(section, key))));
        let parts: Vec<_> = variable.split('_').collect();
        // With whatever stands where a name would: the part after the section.
        let name = parts.get(2).copied().unwrap_or("NAME");
        for (section, keys) in NAMED {
            known.extend(keys.iter().map(|key| upper(section, &format!("{name}_{key}"))));
        }
        // What all of them begin with says nothing about likeness.
        let short: Vec<_> = known.iter().filter_map(|name| name.strip_prefix(PREFIX)).collect();
        let hint = nearest(variable.strip_prefix(PREFIX).unwrap_or(variable), &short);
        if hint.starts_with("did you mean `") {
            return hint.replacen('`', &format!("`{PREFIX}"), 1);
        }
        "`netstead config check --help` lists the settings".into()
    }
}

fn setting_path(variable: &str) -> Option<SettingPath> {
    let rest = variable.strip_prefix(PREFIX)?.to_ascii_lowercase();
    for (section, keys) in SECTIONS {
        let key = rest.strip_prefix(section).and_then(|rest| rest.strip_prefix('_'));
        if let Some(key) = keys.iter().find(|known| Some(**known) == key) {
            return Some(SettingPath::Plain { section, key });
        }
    }
    for (section, keys) in NAMED {
        let Some(rest) = rest.strip_prefix(section).and_then(|rest| rest.strip_prefix('_')) else { continue };
        // The longest key first: `a_cooldown_min` is `cooldown_min` of `a`.
        let mut keys = keys.to_vec();
        keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
        for key in keys {
            let name = rest.strip_suffix(key).and_then(|name| name.strip_suffix('_'));
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                return Some(SettingPath::Named { section, name: name.to_owned(), key });
            }
        }
    }
    None
}

/// The name in the file that `name` stands for, or `name` itself if there is none.
fn resolve(tables: &Table, name: &str) -> Result<String, Vec<String>> {
    let flat = |written: &str| written.to_ascii_lowercase().replace(['-', '.'], "_");
    let meant: Vec<_> = tables.entries.keys().filter(|written| flat(written) == name).cloned().collect();
    match meant.as_slice() {
        [] => Ok(name.to_owned()),
        [one] => Ok(one.clone()),
        _ => Err(meant.iter().map(|name| format!("`{name}`")).collect()),
    }
}

/// The table `key` in `table`, made if need be; none if something else stands there, which is told elsewhere.
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

fn set(table: &mut Table, key: &str, place: &ValueOrigin, value: &str) {
    let node = Node { place: place.clone(), value: Value::Plain(value.to_owned()) };
    table.entries.insert(key.to_owned(), Entry { key: place.clone(), node });
}

/// What Kubernetes puts into every pod for a Service called `netstead`, or `netstead-…`.
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
mod tests {
    use super::*;

    #[test]
    fn a_variable_names_a_key() {
        assert_eq!(
            setting_path("NETSTEAD_API_TLS_CERT"),
            Some(SettingPath::Plain { section: "api", key: "tls_cert" })
        );
        let named = |name: &str, key| Some(SettingPath::Named { section: "pool", name: name.into(), key });
        assert_eq!(setting_path("NETSTEAD_POOL_LAN_NETWORK"), named("lan", "network"));
        assert_eq!(setting_path("NETSTEAD_POOL_A_B_COOLDOWN_MIN"), named("a_b", "cooldown_min"));
        assert_eq!(setting_path("NETSTEAD_POOL_NETWORK"), None);
        assert_eq!(setting_path("NETSTEAD_API"), None);
    }

    #[test]
    fn kubernetes_speaks_of_its_own_services() {
        for (name, value) in [
            ("NETSTEAD_SERVICE_HOST", "10.96.0.7"),
            ("NETSTEAD_SERVICE_PORT", "5301"),
            ("NETSTEAD_SERVICE_PORT_HTTP", "5301"),
            ("NETSTEAD_PORT", "tcp://10.96.0.7:5301"),
            ("NETSTEAD_PORT_5301_TCP", "tcp://10.96.0.7:5301"),
            ("NETSTEAD_PORT_5301_TCP_PROTO", "tcp"),
            ("NETSTEAD_API_PORT", "tcp://10.96.0.7:5301"),
        ] {
            assert!(is_kubernetes(name, value), "{name}");
        }
        for (name, value) in
            [("NETSTEAD_PORT", "5301"), ("NETSTEAD_PORT_X_TCP", ""), ("NETSTEAD_API_LISTEN", "tcp://x")]
        {
            assert!(!is_kubernetes(name, value), "{name}");
        }
    }
}
