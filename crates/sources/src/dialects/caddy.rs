//! The sites of caddy-docker-proxy: `caddy` and `caddy_<n>`.

use netstead_model::Name;

use super::{
    NameRequest, WorkloadLabels,
    diagnostics::{Diagnostics, excerpt},
    list,
};

pub(super) fn reads(label: &str) -> bool {
    label.strip_prefix("caddy").is_some_and(is_site)
}

pub(super) fn read(told: &WorkloadLabels<'_>, notes: &mut Diagnostics) -> Vec<NameRequest> {
    let mut asks = Vec::new();
    for (label, value) in told.labels.range("caddy".to_owned()..) {
        let Some(rest) = label.strip_prefix("caddy") else { break };
        if !is_site(rest) {
            continue;
        }
        // A snippet, or a named route: for others to import, and no site itself.
        if value.trim_start().starts_with('(') || value.trim_start().starts_with("&(") {
            continue;
        }
        for address in list::words(value) {
            match host(address.trim_matches('"')) {
                Ok(Some(name)) => asks.push(NameRequest::new(name, excerpt(label))),
                Ok(None) => {}
                Err(why) => notes.add(format!("{}: {why}", excerpt(label))),
            }
        }
    }
    asks
}

/// Nothing, or `_` and a number, follows.
fn is_site(rest: &str) -> bool {
    let number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    rest.is_empty() || rest.strip_prefix('_').is_some_and(number)
}

/// The host of a site's address, which may have a scheme, a port and a path. `:443` has none.
fn host(address: &str) -> Result<Option<Name>, String> {
    if address.contains(['{', '}']) {
        return Err(format!("`{}` has a placeholder that only Caddy knows", excerpt(address)));
    }
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let rest = rest.split('/').next().unwrap_or_default();
    if rest.starts_with('[') {
        return Err(format!("`{}` is an address, not a name", excerpt(address)));
    }
    let host = rest.split(':').next().unwrap_or_default();
    match host {
        "" | "*" => Ok(None),
        "localhost" => Err("localhost is no name for others".into()),
        host => host.parse().map(Some).map_err(|error: netstead_model::ParseError| error.to_string()),
    }
}
