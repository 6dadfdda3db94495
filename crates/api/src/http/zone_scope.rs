//! Zone scopes of a token: a claim is in the zones of its names, a pool in the zone of its domain.

use netstead_ledger::{Book, ClaimFilter, Command};
use netstead_model::{
    Claim, ClaimNames, ClaimRef, ClaimRequest, Family, Ident, Key, Name, PoolChoice, PoolSpec,
};

use crate::{access::Scopes, problem::Failure};

/// Refuses a name that is in none of the token's zones.
pub(crate) fn check_dns_name(scopes: &Scopes, name: &Name) -> Result<(), Failure> {
    if scopes.allows_zone(name) { Ok(()) } else { Err(out_of_zones(scopes, &format!("`{name}`"))) }
}

/// Refusal of something that is in none of the token's zones; `what` names it.
pub(crate) fn out_of_zones(scopes: &Scopes, what: &str) -> Failure {
    let zones: Vec<String> = scopes.zones.iter().map(|zone| format!("`{zone}`")).collect();
    let told = format!("your token is for the zones {} and not for {what}", zones.join(", "));
    Failure::forbidden(told).fact("scope", "zones")
}

/// Refuses a change by which a name comes, changes or goes in none of the token's zones. The Book knows nothing of
/// tokens, so this is looked at before; what others change in between they change in their own right.
pub(crate) fn check_command(book: &Book, scopes: &Scopes, command: &Command) -> Result<(), Failure> {
    if scopes.zones.is_empty() {
        return Ok(());
    }
    match command {
        Command::CreatePool(spec) | Command::UpdatePool { spec, .. } => {
            let before = spec_of(book, &spec.name);
            check_domain(scopes, spec)
                .and_then(|()| before.map_or(Ok(()), |before| check_domain(scopes, &before)))
        }
        Command::DeletePool { name, force: None, .. } => {
            spec_of(book, name).map_or(Ok(()), |spec| check_domain(scopes, &spec))
        }
        Command::DeletePool { name, .. } | Command::AbandonPool { name, .. } => {
            let Some(spec) = spec_of(book, name) else { return Ok(()) };
            check_domain(scopes, &spec)?;
            let filter = ClaimFilter { pool: Some(name.clone()), ..ClaimFilter::default() };
            let claims = book.claims(&filter, None, usize::MAX);
            claims.iter().try_for_each(|view| check_held(scopes, &spec, &view.claim))
        }
        Command::Claim(request) => match &request.from {
            PoolChoice::Pools(pools) => {
                pools.iter().try_for_each(|pool| check_claim(book, scopes, request, pool))
            }
            PoolChoice::Select(selector) => {
                let matching = book.pools().map(|status| status.pool.spec);
                let mut matching = matching.filter(|spec| selector.matches(&spec.labels));
                matching.try_for_each(|spec| check_claim(book, scopes, request, &spec.name))
            }
        },
        Command::Release(target) | Command::Renew { target, .. } => {
            let held = spec_of(book, &target.pool).zip(book.claim(&target.pool, &target.key));
            match held.filter(|(_, view)| is_meant(target, &view.claim)) {
                Some((spec, view)) => check_held(scopes, &spec, &view.claim),
                None => Ok(()),
            }
        }
        Command::Move { target, key, .. } => check_move(book, scopes, target, key),
        Command::Bulk(commands) => {
            commands.iter().try_for_each(|command| check_command(book, scopes, command))
        }
        Command::Draw(_)
        | Command::Reserve { .. }
        | Command::Unreserve { .. }
        | Command::Abandon { .. }
        | Command::Observe(_)
        | Command::SyncFilePools(_)
        | Command::Resume => Ok(()),
    }
}

/// A claim of `pool` as it would be if it were new, and as it is.
///
/// Both, even if it is there: it may end before the ledger sees the request, or by an entry of the same bulk before
/// this one, and the request then makes a new one.
pub(crate) fn check_claim(
    book: &Book,
    scopes: &Scopes,
    request: &ClaimRequest,
    pool: &Ident,
) -> Result<(), Failure> {
    let Some(spec) = spec_of(book, pool) else { return Ok(()) };
    check_names(scopes, &spec, &request.key, request.hostnames.as_deref().unwrap_or_default())?;
    book.claim(pool, &request.key).map_or(Ok(()), |view| check_held(scopes, &spec, &view.claim))
}

/// A claim takes its hostnames along; without them, the new key gives it another name.
fn check_move(book: &Book, scopes: &Scopes, target: &ClaimRef, key: &Key) -> Result<(), Failure> {
    let Some(spec) = spec_of(book, &target.pool) else { return Ok(()) };
    let at = |key: &Key| book.claim(&target.pool, key).map(|view| view.claim);
    // A repeat finds it where it went.
    let there = || at(key).filter(|claim| target.id.is_some_and(|id| id == claim.id));
    match at(&target.key).filter(|claim| is_meant(target, claim)).or_else(there) {
        Some(claim) => {
            check_held(scopes, &spec, &claim)?;
            check_names(scopes, &spec, key, &claim.details().hostnames)
        }
        None => check_names(scopes, &spec, key, &[]),
    }
}

fn is_meant(target: &ClaimRef, claim: &Claim) -> bool {
    target.id.is_none_or(|id| id == claim.id)
}

fn spec_of(book: &Book, pool: &Ident) -> Option<PoolSpec> {
    book.pool(pool).map(|status| status.pool.spec)
}

fn check_domain(scopes: &Scopes, pool: &PoolSpec) -> Result<(), Failure> {
    pool.domain.as_ref().map_or(Ok(()), |domain| check_dns_name(scopes, domain))
}

fn check_held(scopes: &Scopes, pool: &PoolSpec, claim: &Claim) -> Result<(), Failure> {
    check_names(scopes, pool, &claim.key, &claim.details().hostnames)
}

/// The names of a claim, as the ledger's source reads them.
fn check_names(scopes: &Scopes, pool: &PoolSpec, key: &Key, hostnames: &[Name]) -> Result<(), Failure> {
    if matches!(pool.family, Family::Mac | Family::Prefix) {
        // They have no records, whatever they are called.
        return Ok(());
    }
    let found = ClaimNames::of(key, hostnames, false, pool.domain.as_ref());
    found.names.iter().try_for_each(|name| check_dns_name(scopes, name))
}
