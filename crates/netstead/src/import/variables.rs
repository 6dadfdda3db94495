//! Settings as variables, with a note which of them were used.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use anyhow::bail;

/// The beginning of every name.
const PREFIX: &str = "DNSWEAVER_";
/// Names that end like this hold what must not be printed.
const SECRET: [&str; 9] = [
    "TOKEN",
    "API_KEY",
    "API_SECRET",
    "PASSWORD",
    "TSIG_SECRET",
    "APPLICATION_KEY",
    "APPLICATION_SECRET",
    "CONSUMER_KEY",
    "TOKEN_SECRET",
];

/// Variables by name, without the prefix.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    all: BTreeMap<String, String>,
    used: RefCell<BTreeSet<String>>,
    /// Secrets stay where they are and are pointed at, rather than copied.
    secrets_stay: bool,
}

impl Variables {
    pub(crate) fn of_environment() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let mut variables = Self::new(std::env::vars_os().filter_map(text));
        variables.secrets_stay = true;
        variables
    }

    /// A file of `NAME=value` lines, as `docker run --env-file` and Compose take it.
    pub(crate) fn of_file(text: &str) -> anyhow::Result<Self> {
        let mut pairs = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line = line.strip_prefix("export ").unwrap_or(line);
            let Some((name, value)) = line.split_once('=') else {
                bail!("line {}: there is no `=`", number + 1);
            };
            let value = value.trim();
            let quoted = ['"', '\''].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
            pairs.push((name.trim().to_owned(), quoted.unwrap_or(value).to_owned()));
        }
        let mut variables = Self::new(pairs);
        variables.secrets_stay = true;
        Ok(variables)
    }

    pub(crate) fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let ours = |(name, value): (String, String)| Some((name.strip_prefix(PREFIX)?.to_owned(), value));
        Self { all: pairs.into_iter().filter_map(ours).collect(), ..Self::default() }
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        self.all.get(name).is_some_and(|value| !value.trim().is_empty())
    }

    /// A setting that is not empty; from now on it counts as made use of.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = self.all.get(name)?;
        self.used.borrow_mut().insert(name.to_owned());
        Some(value.trim()).filter(|value| !value.is_empty())
    }

    pub(super) fn list(&self, name: &str) -> Vec<&str> {
        let value = self.get(name).unwrap_or_default();
        value.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        let value = self.get(name)?.to_ascii_lowercase();
        Some(matches!(value.as_str(), "true" | "1" | "yes" | "on"))
    }

    /// A secret as the configuration has it: pointed at, or written out. A file goes before a value.
    pub(super) fn secret(&self, name: &str) -> Option<String> {
        if let Some(path) = self.get(&format!("{name}_FILE")) {
            self.get(name);
            return Some(format!("{{ file = {} }}", super::draft::quoted(path)));
        }
        let value = self.get(name)?;
        if let Some(variable) = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
            return Some(format!("{{ env = {} }}", super::draft::quoted(variable)));
        }
        if self.secrets_stay {
            return Some(format!("{{ env = {} }}", super::draft::quoted(&format!("{PREFIX}{name}"))));
        }
        Some(super::draft::quoted(value))
    }

    /// The variables that were not used, as lines for people.
    pub(super) fn left(&self) -> Vec<String> {
        let used = self.used.borrow();
        let left = self.all.iter().filter(|(name, _)| !used.contains(*name));
        left.map(|(name, value)| Self::shown(name, value)).collect()
    }

    /// The names that begin with `prefix` and were not used.
    pub(super) fn left_below(&self, prefix: &str) -> Vec<String> {
        let used = self.used.borrow();
        let left = self.all.keys().filter(|name| name.starts_with(prefix) && !used.contains(*name));
        left.map(|name| format!("{PREFIX}{name}")).collect()
    }

    /// All that begin with `prefix`, made use of or not, as lines for people.
    pub(super) fn below(&self, prefix: &str) -> Vec<String> {
        let below: Vec<_> = self.all.iter().filter(|(name, _)| name.starts_with(prefix)).collect();
        self.used.borrow_mut().extend(below.iter().map(|(name, _)| (*name).clone()));
        below.into_iter().map(|(name, value)| Self::shown(name, value)).collect()
    }

    fn shown(name: &str, value: &str) -> String {
        let secret = SECRET.iter().any(|end| name.ends_with(end));
        let value = if secret { "(a secret)" } else { value };
        let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("{PREFIX}{name}={value}")
    }
}
