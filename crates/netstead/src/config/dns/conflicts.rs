//! Providers that get in each other's way.

use netstead_model::{Name, RecordType};
use netstead_plan::DomainMatch;

use netstead_settings::{Problems, ValueOrigin};

use super::DnsConfig;

/// Two providers that would write the same names to the same server undo each other's work.
pub(in crate::config) fn check(providers: &[(&ValueOrigin, DnsConfig)], problems: &mut Problems) {
    for (number, (place, one)) in providers.iter().enumerate() {
        for (_, other) in providers.iter().take(number) {
            if one.common.owner != other.common.owner || !same_type(one, other) {
                continue;
            }
            let Some((mine, theirs)) = common_domain(one, other) else { continue };
            let domains = if mine == theirs { mine } else { format!("{theirs}` and `{mine}") };
            let hint = "give them other `domains`, or one of them an `owner` of its own".to_owned();
            if one.server.is_same_server(&other.server) {
                let message = format!(
                    "dns.{} and dns.{} mean the same server, and both answer for `{domains}`",
                    other.name, one.name,
                );
                problems.add(place, message, Some(hint));
            } else if let Some(host) = one.server.common_host(&other.server) {
                let message = format!(
                    "dns.{} ({}) and dns.{} ({}) are both at {host}, and both answer for `{domains}`: if that is one \
                     server, they undo each other's work",
                    other.name, other.server.kind.name, one.name, one.server.kind.name,
                );
                problems.warn(place, message, Some(hint));
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
