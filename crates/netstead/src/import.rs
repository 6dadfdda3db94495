//! Turns another tool's settings into a configuration.

mod dnsweaver;
mod draft;
mod variables;
mod yaml;

#[cfg(test)]
pub(crate) use self::dnsweaver::kinds as dnsweaver_kinds;
pub(crate) use self::{dnsweaver::convert, variables::Variables, yaml::variables as from_yaml};

/// Set when the environment is dnsweaver's.
pub(crate) const DNSWEAVER: &str = "DNSWEAVER_INSTANCES";

/// The configuration that dnsweaver's variables in our own environment mean; none when there are none.
pub(crate) fn from_environment() -> Option<String> {
    let variables = Variables::of_environment();
    variables.is_set(DNSWEAVER).then(|| convert(&variables))
}
