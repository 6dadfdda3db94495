//! Explains a name: why it has its records, and why it lacks others.

mod ipam;

use std::net::IpAddr;

use netstead_ledger::{Book, Freshness};
use netstead_model::{Address, Ident, Key, Kind, Name, Workload};
use netstead_plan::{DomainRule, Domains, WhyNot};

use crate::{
    dns_pass::ProviderHandle, engine_state::EngineState, ipam_pass::IpamHandle, records::reason_text,
};

/// Limits of an explanation for a caller that may see the name, but not everything else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExplainLimits {
    /// Only providers that are among these.
    pub providers: Vec<Ident>,
    /// Only claims in these pools; none means in all.
    pub pools: Option<Vec<Ident>>,
}

impl ExplainLimits {
    fn shows_pool(&self, pool: &Ident) -> bool {
        self.pools.as_ref().is_none_or(|pools| pools.contains(pool))
    }
}

/// One sentence for everything that is known about `name`, within `limits` if there are any.
pub(crate) async fn explain(
    shared: &EngineState,
    name: &Name,
    limits: Option<&ExplainLimits>,
) -> Vec<String> {
    let handles: Vec<ProviderHandle> = shared.providers().values().cloned().collect();
    let shown =
        |handle: &&ProviderHandle| limits.is_none_or(|limits| limits.providers.contains(handle.setup.name()));
    let mut said = Vec::new();
    for handle in handles.iter().filter(shown) {
        of_provider(shared, handle, name, limits.is_none(), &mut said);
    }
    let systems: Vec<IpamHandle> = shared.ipam().values().cloned().collect();
    let shown =
        |handle: &&IpamHandle| limits.is_none_or(|limits| limits.providers.contains(handle.setup.name()));
    for handle in systems.iter().filter(shown) {
        ipam::of_system(shared, handle, name, limits.is_none(), &mut said);
    }
    let (newest, domains) = (shared.inventory.borrow().clone(), shared.domains());
    for (source, state) in newest.inventory.sources() {
        for (id, entry) in &state.entries {
            let workload = &entry.workload;
            let asks = workload.hostname.as_ref() == Some(name)
                || workload.wishes.iter().any(|wish| wish.name == *name);
            // One that is merely called like the name may be anyone's.
            let own = || limits.is_none() && is_called(workload, name, &domains);
            let refused = format!("{name}: ");
            if asks || own() {
                said.extend(workload.why_not.iter().map(|why| format!("{source}/{id}: {why}.")));
                let troubles = shared.ledger_sync.troubles(source, id);
                said.extend(troubles.iter().map(|why| format!("{source}/{id}: {why}.")));
            } else if limits.is_none() {
                // Its source did not let it ask for the name.
                let about = workload.why_not.iter().filter(|why| why.starts_with(&refused));
                said.extend(about.map(|why| format!("{source}/{id}: {why}.")));
            }
        }
    }
    for why in nameless_claims(shared, name, limits).await {
        if !said.contains(&why) {
            said.push(why);
        }
    }
    if said.is_empty() {
        said.push(format!("No source asks for {name}, and we have no record there."));
    }
    said
}

/// Whether a workload would have the name if it had an address for it: by its first label, or by the rules of a domain.
fn is_called(workload: &Workload, name: &Name, domains: &Domains) -> bool {
    let first = name.labels().next();
    let hostname = workload.hostname.as_ref().and_then(|hostname| hostname.labels().next());
    let would_have = |rule: &DomainRule| {
        name.is_subdomain_of(&rule.domain) && rule.template.fill(workload, &rule.domain).as_ref() == Ok(name)
    };
    first == Some(workload.name.as_str()) || first == hostname || domains.0.iter().any(would_have)
}

/// Why sources leave an address out: the sentences of all workloads in which it stands.
pub(crate) fn why_left_out(shared: &EngineState, address: Address) -> Vec<String> {
    let Some(ip) = address.to_ip() else { return Vec::new() };
    let is_it = |word: &str| {
        let word = word.trim_matches(|letter: char| "`'\"(),;.".contains(letter));
        word.parse::<IpAddr>().is_ok_and(|found| found == ip)
    };
    let newest = shared.inventory.borrow().clone();
    let mut said = Vec::new();
    for (source, state) in newest.inventory.sources() {
        for (id, entry) in &state.entries {
            let workload = &entry.workload;
            let about = workload.why_not.iter().filter(|why| why.split_whitespace().any(is_it));
            said.extend(about.map(|why| format!("{source}/{id} (`{}`): {why}.", workload.name)));
        }
    }
    said
}

/// Claims that might have had this name, and why they have none. The inventory does not know them.
async fn nameless_claims(shared: &EngineState, name: &Name, limits: Option<&ExplainLimits>) -> Vec<String> {
    let key = name.labels().next().and_then(|label| label.parse::<Key>().ok());
    let (Some(ledger), Some(key)) = (&shared.options.ledger, key) else { return Vec::new() };
    let look = |book: &Book| -> Vec<String> {
        let pools = book.pools().map(|status| status.pool.spec);
        let pools = pools.filter(|pool| limits.is_none_or(|limits| limits.shows_pool(&pool.name)));
        let nameless = pools.filter_map(|pool| {
            let claim = book.claim(&pool.name, &key)?.claim;
            let found = claim.names(pool.domain.as_ref());
            let has_none = found.names.is_empty() && claim.address.kind() != Kind::Mac;
            has_none.then(|| format!("ledger/{}/{key}: {}.", pool.name, found.reason))
        });
        nameless.collect()
    };
    ledger.read(Freshness::Stale, look).await.map(|seen| seen.value).unwrap_or_default()
}

/// An error of the server may be about another zone, so it is said only if `errors`.
fn of_provider(
    shared: &EngineState,
    handle: &ProviderHandle,
    name: &Name,
    errors: bool,
    said: &mut Vec<String>,
) {
    let provider = handle.setup.name();
    let seen = handle.snapshot.read().clone();
    let known = said.len();
    for set in seen.desired.of(name) {
        for value in &set.values {
            let whys: Vec<String> = value.reasons.iter().map(reason_text).collect();
            let wait = value
                .waiting
                .as_ref()
                .map(|why| format!(" It only stays for now: {}.", why.at(shared.now())))
                .unwrap_or_default();
            said.push(format!(
                "{provider}: {} {} because of {}.{wait}",
                set.kind,
                value.data,
                whys.join(" and ")
            ));
        }
    }
    for value in seen.owned.of(name) {
        let place = if value.pending { "is on its way" } else { "is ours there" };
        said.push(format!("{provider}: {} {} {place}.", value.data.kind(), value.data));
    }
    let no_record =
        |one: &WhyNot| format!("{provider}: {}/{} gave no record: {}.", one.source, one.workload, one.why);
    let meant = |one: &&WhyNot| one.name.as_ref() == Some(name);
    let mut refused = seen.desired.why_not.iter().filter(meant).peekable();
    if refused.peek().is_some() || !seen.desired.of(name).is_empty() {
        said.extend(refused.map(no_record));
    } else {
        // Of a workload that asks for too many names not every one is told by itself.
        let newest = shared.inventory.borrow().inventory.clone();
        let asks = |one: &&WhyNot| {
            let entry = newest.entry(&one.source, &one.workload);
            entry.is_some_and(|entry| entry.workload.wishes.iter().any(|wish| wish.name == *name))
        };
        let whole = seen.desired.why_not.iter().filter(|one| one.refused && one.name.is_none());
        said.extend(whole.filter(asks).map(no_record));
    }
    if let Some(plan) = &seen.plan {
        for blocked in plan.blocked.iter().filter(|blocked| blocked.name == *name) {
            said.push(format!("{provider}: blocked: {}.", blocked.why));
        }
        for kept in plan.kept.iter().filter(|kept| kept.name == *name) {
            said.push(format!("{provider}: kept: {}.", kept.why.at(shared.now())));
        }
        for change in
            plan.parked.iter().flat_map(|parked| &parked.changes).filter(|change| change.name == *name)
        {
            said.push(format!("{provider}: parked because {}.", change.guard));
        }
    }
    for (_, why) in seen.rejected.iter().filter(|((_, other), _)| other == name) {
        said.push(format!("{provider}: the server rejects it: {why}."));
    }
    let asked = said.len() > known;
    if !asked && !handle.setup.settings.answers_for(name) {
        said.push(format!("{provider}: it does not answer for {name}."));
    }
    if asked
        && let Some(pause) =
            shared.pauses.of(handle.setup.name(), handle.setup.settings.group.as_ref(), shared.now())
    {
        said.push(format!("{provider}: {pause}; `{}` ends that.", pause.resume_command()));
    }
    if asked
        && errors
        && let Some(error) = &seen.error
    {
        said.push(format!("{provider}: {error}."));
    }
}
