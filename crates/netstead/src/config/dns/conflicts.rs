//! What only shows when providers are seen side by side.

use netstead_model::{Name, RecordType};
use netstead_plan::DomainMatch;

use super::{DnsConfig, ServerConfig};
use crate::config::{Problems, ValueOrigin};

/// Two providers that would write the same names to the same server undo each other's work.
pub(in crate::config) fn check(providers: &[(&ValueOrigin, DnsConfig)], problems: &mut Problems) {
    for (number, (place, one)) in providers.iter().enumerate() {
        for (_, other) in providers.iter().take(number) {
            let both = one.common.owner == other.common.owner && same_type(one, other);
            if !both || !same_server(&one.server, &other.server) {
                continue;
            }
            if let Some((mine, theirs)) = common_domain(one, other) {
                let message = format!(
                    "dns.{} and dns.{} mean the same server, and both answer for `{}`",
                    other.name,
                    one.name,
                    if mine == theirs { mine } else { format!("{theirs}` and `{mine}") },
                );
                let hint = "give them other `domains`, or one of them an `owner` of its own";
                problems.add(place, message, Some(hint.into()));
            }
        }
        if let Some(was) = &one.common.was
            && providers.iter().any(|(_, other)| other.name == *was)
        {
            let message = format!("dns.{}.was: dns.{was} is still there", one.name);
            problems.add(place, message, Some("leave out `was`, or the other table".into()));
        }
    }
}

fn same_type(one: &DnsConfig, other: &DnsConfig) -> bool {
    let kinds = |config: &DnsConfig| -> Vec<RecordType> {
        config.common.record_type.map_or_else(|| RecordType::ALL.to_vec(), |kind| vec![kind])
    };
    kinds(one).iter().any(|kind| kinds(other).contains(kind))
}

pub(super) fn same_server(one: &ServerConfig, other: &ServerConfig) -> bool {
    match (one, other) {
        (ServerConfig::Builtin, ServerConfig::Builtin) => true,
        (ServerConfig::PowerDns(one), ServerConfig::PowerDns(other)) => {
            let root = |url: &str| {
                let url = url.trim_end_matches('/').to_lowercase();
                url.strip_suffix("/api/v1").map(str::to_owned).unwrap_or(url)
            };
            root(&one.url) == root(&other.url) && one.server_id == other.server_id
        }
        (ServerConfig::Rfc2136(one), ServerConfig::Rfc2136(other)) => {
            let host = |server: &String| {
                let server = server.to_lowercase();
                server.strip_suffix(":53").map(str::to_owned).unwrap_or(server)
            };
            let theirs: Vec<_> = other.servers.iter().map(host).collect();
            one.servers.iter().any(|server| theirs.contains(&host(server)))
        }
        _ => false,
    }
}

/// A domain of each that the other takes as well.
fn common_domain(one: &DnsConfig, other: &DnsConfig) -> Option<(String, String)> {
    let (mine, theirs) = (not_excluded(one, other), not_excluded(other, one));
    let pairs = mine.iter().flat_map(|mine| theirs.iter().map(move |theirs| (mine, theirs)));
    let mut common = pairs.filter(|(mine, theirs)| meet(mine, theirs));
    common.next().map(|((mine, _), (theirs, _))| (mine.to_string(), theirs.to_string()))
}

/// A domain with the name below which all its names lie, where that is known.
type Placed<'a> = (&'a DomainMatch, Option<Name>);

/// The domains of a provider that the other one does not exclude.
fn not_excluded<'a>(config: &'a DnsConfig, other: &DnsConfig) -> Vec<Placed<'a>> {
    let excluded = |name: &Name| other.common.exclude_domains.iter().any(|exclude| exclude.matches(name));
    let placed = config.common.domains.iter().map(|domain| (domain, domain.domain()));
    placed.filter(|(_, inside)| !inside.as_ref().is_some_and(excluded)).collect()
}

/// Whether there may be a name that both take. Of regular expressions that is not known: they count as equal only to
/// themselves.
fn meet((one, mine): &Placed<'_>, (other, theirs): &Placed<'_>) -> bool {
    if one == other {
        return true;
    }
    match (mine, theirs) {
        (Some(mine), Some(theirs)) => mine.is_subdomain_of(theirs) || theirs.is_subdomain_of(mine),
        (None, Some(domain)) => one.matches(domain),
        (Some(domain), None) => other.matches(domain),
        (None, None) => false,
    }
}
