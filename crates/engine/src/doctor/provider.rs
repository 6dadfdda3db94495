//! The checks of one provider: can it be reached, are its zones there, may they be written.

use std::{collections::BTreeSet, time::Duration};

use netstead_model::{Marks, Name, ProviderError, RecordType, Span, Zone};
use netstead_plan::{DomainMatch, Mode};
use tokio::time::timeout;

use super::{Finding, Grade, many};
use crate::{EngineStatus, ProviderStatus, dns_pass::ProviderHandle};

/// A server that is asked by hand has this long.
const PATIENCE: Duration = Duration::from_secs(15);
/// So many zones are asked whether they take changes.
const MOST_ZONES: usize = 20;

pub(super) async fn diagnose_provider(handle: &ProviderHandle, status: &EngineStatus) -> Vec<Finding> {
    let about = format!("dns.{}", handle.setup.name());
    let mut findings = Vec::new();
    let late = |_| {
        let reason = format!("no answer within {} s", PATIENCE.as_secs());
        Err(ProviderError::Unreachable { server: handle.setup.provider.server(), reason })
    };
    match timeout(PATIENCE, handle.zones()).await.unwrap_or_else(late) {
        Err(error) => findings.push(unreadable_server(&about, handle, &error)),
        Ok(zones) => {
            findings.extend(missing_zones(&about, handle, &zones));
            findings.extend(reverse_zones(&about, handle, &zones));
            if !status.dry_run && handle.setup.settings.mode != Mode::Observe {
                findings.extend(unwritable(&about, handle, &zones).await);
            }
        }
    }
    let Some(one) = status.providers.iter().find(|one| one.name == *handle.setup.name()) else {
        return findings;
    };
    let asked = !findings.iter().any(|finding| finding.grade == Grade::Problem);
    findings.extend(pass_findings(&about, one, asked));
    if !findings.iter().any(|finding| finding.grade == Grade::Problem) {
        let state = if one.in_sync { "all is in line" } else { "it answers" };
        let text = format!(
            "{state}: {}, {} of ours on {}",
            many(one.zones.len(), "zone"),
            many(one.owned, "value"),
            one.server
        );
        findings.insert(0, Finding::fine(&about, text));
    }
    findings.extend(marks(&about, handle));
    findings.extend(budget(&about, handle));
    findings
}

/// Where ownership is marked, if not as TXT.
fn marks(about: &str, handle: &ProviderHandle) -> Option<Finding> {
    let text = match handle.setup.provider.capabilities().marks {
        Marks::None if handle.setup.is_builtin() => return None,
        Marks::None => {
            "it has no place for marks: only the store knows what is ours there, so keep its backups; without one, \
             `netstead adopt` takes over what stands there"
        }
        Marks::Comment => "what is ours there is marked in the comments of its records",
        Marks::Txt | Marks::TxtOrComment => return None,
    };
    Some(Finding::fine(about, text.to_owned()))
}

/// A server that allows no more requests for now.
fn budget(about: &str, handle: &ProviderHandle) -> Option<Finding> {
    let budget = handle.setup.provider.budget()?;
    let wait = budget.wait?;
    let window = Span::from_secs(budget.window.as_secs());
    let text = format!(
        "{} of {} requests in {window} are made; none is made for {}",
        budget.made,
        budget.limit,
        Span::from_secs(wait.as_secs().max(1))
    );
    let hint = "other programs with this token count too; a longer `interval` takes fewer".to_owned();
    Some(Finding::note(about, text, hint))
}

fn unreadable_server(about: &str, handle: &ProviderHandle, error: &ProviderError) -> Finding {
    let table = format!("`[dns.{}]`", handle.setup.name());
    if let (true, ProviderError::Unreachable { reason, .. }) = (handle.setup.is_builtin(), error) {
        // It is here and answers; what is away is the store in which its zones are.
        let text = format!("its zones cannot be read or changed: {reason}");
        let hint = "it keeps answering what it knows; see what is said of the store".to_owned();
        return Finding::problem(about, text, hint);
    }
    let hint = match error {
        ProviderError::Denied { .. } => {
            format!("correct the key in {table}, or give it the right on the server")
        }
        ProviderError::Unreachable { .. } => format!("is it running, and is its address in {table} right?"),
        ProviderError::Busy { .. } => "wait; it is asked less often until then".to_owned(),
        ProviderError::Malformed { .. } => {
            format!("does {table} point to a server of type `{}`?", handle.setup.provider.kind())
        }
        _ => "see the log".to_owned(),
    };
    Finding::problem(about, error.to_string(), hint)
}

/// Domains for which the server holds no zone.
fn missing_zones(about: &str, handle: &ProviderHandle, zones: &[Zone]) -> Vec<Finding> {
    if handle.setup.provider.makes_zones() {
        return Vec::new();
    }
    let domains = handle.setup.settings.domains.iter().filter_map(|one| match one {
        DomainMatch::Domain(domain) => Some(domain),
        _ => None,
    });
    let near = |domain: &Name, zone: &Name| domain.is_subdomain_of(zone) || zone.is_subdomain_of(domain);
    let missing = domains.filter(|domain| !zones.iter().any(|zone| near(domain, &zone.name)));
    let finding = |domain: &Name| {
        let text = format!("the server holds no zone for {domain}");
        Finding::problem(about, text, format!("make the zone {domain} there, or take it out of `domains`"))
    };
    missing.map(finding).collect()
}

/// Addresses that would have a PTR if there was a zone for it.
fn reverse_zones(about: &str, handle: &ProviderHandle, zones: &[Zone]) -> Option<Finding> {
    if handle.setup.provider.makes_zones() {
        return None;
    }
    let desired = handle.snapshot.read().desired.clone();
    let pointers = desired.sets.iter().filter(|set| set.kind == RecordType::Ptr);
    let lost: Vec<&Name> = pointers
        .map(|set| &set.name)
        .filter(|name| !zones.iter().any(|zone| name.is_subdomain_of(&zone.name)))
        .collect();
    let parents: BTreeSet<Name> = lost.iter().filter_map(|name| name.parent()).collect();
    let first = parents.first()?;
    let count =
        if lost.len() == 1 { "1 address gets".to_owned() } else { format!("{} addresses get", lost.len()) };
    let text = format!("{count} no PTR: the server holds no zone such as {first}");
    let hint = format!("make {first} there and list it in `domains`, or set `reverse = false`");
    Some(Finding::note(about, text, hint))
}

/// Zones in which something is wanted or ours, and that take no changes.
async fn unwritable(about: &str, handle: &ProviderHandle, zones: &[Zone]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let used = handle.used_zones(zones);
    for zone in used.iter().take(MOST_ZONES) {
        let Ok(answer) = timeout(PATIENCE, handle.setup.provider.may_write(zone)).await else { break };
        if let Err(error) = answer {
            let hint = format!("let the key change {zone} on the server");
            findings.push(Finding::problem(about, format!("{zone} takes no changes: {error}"), hint));
        }
    }
    findings
}

/// Findings of its passes.
pub(super) fn pass_findings(about: &str, one: &ProviderStatus, asked: bool) -> Vec<Finding> {
    let name = &one.name;
    let mut findings = Vec::new();
    if let Some(error) = one.error.as_ref().filter(|_| asked) {
        let hint = format!("it is tried again; `netstead apply --provider {name}` tries now");
        findings.push(Finding::problem(about, format!("the last look failed: {error}"), hint));
    }
    if let Some(parked) = &one.parked {
        let text = format!("a guard holds back {}", many(parked.count, "change"));
        let hint = format!("`netstead plan {name}` shows them, `netstead apply {}` does them", parked.hash);
        findings.push(Finding::problem(about, text, hint));
    }
    if one.blocked > 0 {
        let text = format!(
            "blocked by foreign values there: {}",
            many(one.blocked, if one.ipam { "object" } else { "name" })
        );
        let hint = format!("`netstead plan {name}` shows the ways out of each");
        findings.push(Finding::problem(about, text, hint));
    }
    for (_, rejected, why) in one.rejected.iter().take(5) {
        let text = format!("the server rejects {rejected}: {why}");
        let hint = format!("`netstead explain {rejected}` says who asks for it");
        findings.push(Finding::problem(about, text, hint));
    }
    for (key, why) in one.rejected_objects.iter().take(5) {
        let text = format!("the system rejects {key}: {why}");
        let hint = format!("it is tried again; `netstead plan {name}` shows it");
        findings.push(Finding::problem(about, text, hint));
    }
    if let Some(pause) = &one.paused {
        let hint = format!("`{}` ends that", pause.resume_command());
        findings.push(Finding::note(about, pause.to_string(), hint));
    }
    findings
}
