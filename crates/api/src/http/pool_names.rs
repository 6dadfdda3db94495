//! The names of a token that is limited to pools or VRFs and has no zones: those below the domains of its pools.
//!
//! Who may claim in a pool chooses the hostnames of the claim. Without this a token for one pool could put its addresses at
//! any name there is.

use netstead_ledger::{Book, Command};
use netstead_model::{ClaimNames, ClaimRef, Ident, Key, Name, NameSet, PoolChoice, PoolSpec};

use crate::{
    access::Scopes,
    http::{
        name_scope::{self, has_names},
        session::{out_of_pools, quoted},
    },
    problem::Failure,
};

/// Whether a command may give something a name that does not follow from its own pool.
pub(crate) fn concerns(command: &Command) -> bool {
    match command {
        Command::CreatePool(spec) | Command::UpdatePool { spec, .. } => spec.domain.is_some(),
        Command::Claim(request) => request.hostnames.as_ref().is_some_and(|names| !names.is_empty()),
        Command::Move { .. } => true,
        Command::Bulk(commands) => commands.iter().any(concerns),
        // What ends, or goes on as it is, gets no name.
        Command::DeletePool { .. }
        | Command::AbandonPool { .. }
        | Command::Draw(_)
        | Command::Release(_)
        | Command::Renew { .. }
        | Command::Reserve { .. }
        | Command::Unreserve { .. }
        | Command::Abandon { .. }
        | Command::Observe(_)
        | Command::SyncFilePools(_)
        | Command::Resume => false,
    }
}

/// The names that the pools of a token give it.
pub(crate) struct PoolNames<'a> {
    scopes: &'a Scopes,
    names: NameSet,
}

impl<'a> PoolNames<'a> {
    pub(crate) fn of(book: &Book, scopes: &'a Scopes) -> Self {
        Self { scopes, names: name_scope::of_pools(scopes, book.pools().map(|status| status.pool.spec)) }
    }

    /// Refuses a command by which something would get a name that is not below a domain of the token's pools.
    pub(crate) fn check(&self, book: &Book, command: &Command) -> Result<(), Failure> {
        match command {
            Command::CreatePool(spec) | Command::UpdatePool { spec, .. } if has_names(spec) => {
                spec.domain.as_ref().map_or(Ok(()), |domain| self.check_domain(domain))
            }
            Command::Claim(request) => {
                let hostnames = request.hostnames.as_deref().unwrap_or_default();
                let chosen: Vec<PoolSpec> = match &request.from {
                    PoolChoice::Pools(pools) => pools.iter().filter_map(|pool| spec_of(book, pool)).collect(),
                    PoolChoice::Select(selector) => {
                        let all = book.pools().map(|status| status.pool.spec);
                        let reached = all.filter(|spec| self.scopes.allows_pool(&spec.name, &spec.vrf));
                        reached.filter(|spec| selector.matches(&spec.labels)).collect()
                    }
                };
                chosen.iter().try_for_each(|spec| self.check_names(spec, &request.key, hostnames))
            }
            Command::Move { target, key, .. } => self.check_move(book, target, key),
            Command::Bulk(commands) => commands.iter().try_for_each(|command| self.check(book, command)),
            _ => Ok(()),
        }
    }

    /// A claim takes its hostnames along.
    fn check_move(&self, book: &Book, target: &ClaimRef, key: &Key) -> Result<(), Failure> {
        let Some(spec) = spec_of(book, &target.pool) else { return Ok(()) };
        let at = |key: &Key| book.claim(&target.pool, key).map(|view| view.claim);
        let meant = |id| target.id.is_none_or(|wanted| wanted == id);
        // A repeat finds it where it went.
        let there = || at(key).filter(|claim| target.id == Some(claim.id));
        match at(&target.key).filter(|claim| meant(claim.id)).or_else(there) {
            Some(claim) => self.check_names(&spec, key, &claim.details().hostnames),
            None => Ok(()),
        }
    }

    /// The hostnames of a claim, as the ledger's source reads them. A name made of the key lies in the pool's own domain.
    fn check_names(&self, pool: &PoolSpec, key: &Key, hostnames: &[Name]) -> Result<(), Failure> {
        if hostnames.is_empty() || !has_names(pool) {
            return Ok(());
        }
        let found = ClaimNames::of(key, hostnames, false, pool.domain.as_ref());
        found.names.iter().try_for_each(|name| self.check_name(name))
    }

    /// Neither the domain itself nor all of its names at once: both speak for more than one claim.
    fn check_name(&self, name: &Name) -> Result<(), Failure> {
        let whole = if name.is_wildcard() { name.parent() } else { Some(name.clone()) };
        let whole = whole.filter(|whole| self.names.domains().contains(whole));
        if whole.is_none() && self.names.is_in_a_domain(name) {
            return Ok(());
        }
        let zone = whole.or_else(|| name.parent()).unwrap_or_else(|| name.clone());
        Err(self.refusal(name, &zone))
    }

    fn check_domain(&self, domain: &Name) -> Result<(), Failure> {
        if self.names.is_in_a_domain(domain) { Ok(()) } else { Err(self.refusal(domain, domain)) }
    }

    fn refusal(&self, name: &Name, zone: &Name) -> Failure {
        let own = self.names.domains();
        let covered = if own.is_empty() {
            "which have no domain, so its claims and pools get no name".to_owned()
        } else {
            format!("so its claims and pools may have names below {}", quoted(own))
        };
        let told = format!("{covered}, and not `{name}`; a token that was made with `--zone {zone}` may");
        let domains: Vec<&str> = own.iter().map(Name::as_str).collect();
        out_of_pools(self.scopes, &told).fact("domains", domains.join(","))
    }
}

fn spec_of(book: &Book, pool: &Ident) -> Option<PoolSpec> {
    book.pool(pool).map(|status| status.pool.spec)
}
