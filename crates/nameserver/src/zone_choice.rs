//! [`zone_of`]: the zone that a name belongs to.

use netstead_model::Name;

/// The zone for `name`: the longest of `domains` it lies in, else a zone of its own.
///
/// A zone denies every name in it that it does not know. So that we never deny a name that another server may have, a name
/// under no configured domain is alone in its zone; a wildcard, which needs something to stand under, is in the zone of
/// its parent. The same holds for the names of PTR records and configured reverse zones.
pub fn zone_of(name: &Name, domains: &[Name]) -> Name {
    let configured = domains.iter().filter(|domain| name.is_subdomain_of(domain));
    match configured.max_by_key(|domain| domain.as_str().len()) {
        Some(domain) => domain.clone(),
        None if name.is_wildcard() => name.parent().unwrap_or_else(|| name.clone()),
        None => name.clone(),
    }
}
