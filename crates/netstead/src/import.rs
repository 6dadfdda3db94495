//! Turns another tool's settings into a configuration.

mod dnsweaver;
mod draft;
pub(crate) mod external_dns;
pub(crate) mod ipam;
pub(crate) mod netaddr;
pub(crate) mod pipam;
mod variables;
mod yaml;

#[cfg(test)]
pub(crate) use self::dnsweaver::kinds as dnsweaver_kinds;
#[cfg(test)]
pub(crate) use self::external_dns::kinds as external_dns_kinds;
#[cfg(test)]
pub(crate) use self::pipam::KINDS as PIPAM_KINDS;
pub(crate) use self::{dnsweaver::convert, variables::Variables, yaml::variables as from_yaml};

use crate::config::Problem;

/// Set when the environment is dnsweaver's.
pub(crate) const DNSWEAVER: &str = "DNSWEAVER_INSTANCES";

/// Another tool's settings as a configuration.
#[derive(Debug)]
pub(crate) struct Converted {
    /// The configuration, with comments.
    pub(crate) text: String,
    /// Settings that are not carried over as they are; each has its comment, too.
    pub(crate) warnings: Vec<Problem>,
}

/// The configuration that dnsweaver's variables in our own environment mean; none when there are none.
pub(crate) fn from_environment() -> Option<Converted> {
    let variables = Variables::of_environment();
    variables.is_set(DNSWEAVER).then(|| convert(&variables))
}
