//! Claims for workloads that ask for a pool: the address that a workload has is claimed there.
//!
//! The address is already in use, so nothing is taken from another holder: an address that another claim holds, or that is
//! reserved for another owner, stays as it is, and the workload's status says so.

use std::{collections::BTreeSet, sync::Arc};

use netstead_ledger::{
    AddressState, Book, Caller, ClaimFilter, Command, Freshness, Ledger, LedgerError, Refusal, Reply,
};
use netstead_model::{
    Address, Claim, ClaimRef, ClaimRequest, Ident, Key, Name, PoolChoice, PoolSpec, Waiting, Want, Workload,
};
use netstead_plan::Alive;

use super::{
    PATIENCE,
    backend_claims::{BackendRefusals, Draws, waits, waits_for},
};

/// The owner of the claims of a source.
pub(super) fn owner(source: &Ident) -> String {
    format!("source/{source}")
}

/// The claims of one source, by pool and key.
#[derive(Debug)]
pub(super) struct SourceClaims {
    source: Ident,
    keys: BTreeSet<(Ident, Key)>,
    refusals: BackendRefusals,
}

/// An address that a workload has in the pool it names.
struct WantedAddress<'a> {
    id: &'a Key,
    workload: &'a Workload,
    pool: &'a Ident,
    address: Address,
    present: bool,
    /// The pool draws from a backend.
    from_backend: bool,
}

impl SourceClaims {
    /// Looks for the claims of a source, and takes over those it had under its former names.
    pub(super) async fn load(
        ledger: &Ledger,
        source: &Ident,
        former: &BTreeSet<&Ident>,
    ) -> Result<Self, LedgerError> {
        let (keys, refusals) = (BTreeSet::new(), BackendRefusals::default());
        let mut held = Self { source: source.clone(), keys, refusals };
        for was in former {
            for (pool, key) in waiting_of(ledger, &owner(was)).await? {
                // It is claimed again under the new name.
                let caller = Caller::new(&self::owner(was));
                let target = ClaimRef { pool, key, id: None };
                drop(submit(ledger, caller, Command::Release(target)).await?);
            }
            for claim in of_owner(ledger, &owner(was)).await? {
                let key = claim.key.as_str();
                let rest = key.strip_prefix(was.as_ref()).and_then(|rest| rest.strip_prefix('/'));
                let Some(key) = rest.and_then(|rest| format!("{source}/{rest}").parse().ok()) else {
                    continue;
                };
                let (target, owner) = (target(&claim), Some(owner(source).into()));
                let caller = Caller::new(&self::owner(was));
                drop(submit(ledger, caller, Command::Move { target, key, owner }).await?);
            }
        }
        let found = of_owner(ledger, &owner(source)).await?;
        held.keys.extend(found.iter().map(|claim| (claim.pool.clone(), claim.key.clone())));
        held.keys.extend(waiting_of(ledger, &owner(source)).await?);
        Ok(held)
    }

    /// Makes what is missing, and ends the claims that nothing alive asks for if they `may_end`. Returns what cannot be,
    /// by workload.
    pub(super) async fn sync_claims(
        &mut self,
        ledger: &Ledger,
        alive: &[Alive<'_>],
        may_end: impl Fn(&Key) -> bool,
    ) -> Result<Vec<(Key, String)>, LedgerError> {
        let asks = |one: &&Alive<'_>| one.workload.pool.is_some();
        if self.keys.is_empty() && !alive.iter().any(|one| asks(&one)) {
            return Ok(Vec::new());
        }
        let mut troubles = Vec::new();
        let (mut wanted, mut draws) = (Vec::new(), Draws::default());
        let mine = owner(&self.source);
        let look = |book: &Book| {
            (troubles, wanted) = (Vec::new(), Vec::new());
            for one in alive.iter().filter(asks) {
                collect_wanted(book, *one, &mut wanted, &mut troubles);
            }
            if wanted.iter().any(|one| one.from_backend) {
                draws = Draws::of(book, &mine);
            }
        };
        ledger.read(Freshness::Stale, look).await?;
        for one in &wanted {
            if let Some(why) = self.ensure_claim(ledger, one, &wanted, &draws).await? {
                troubles.push((one.id.clone(), why));
            }
        }
        self.release(ledger, &wanted, may_end).await?;
        Ok(troubles)
    }

    /// Sees to one address; a sentence if that cannot be.
    async fn ensure_claim(
        &mut self,
        ledger: &Ledger,
        one: &WantedAddress<'_>,
        all: &[WantedAddress<'_>],
        draws: &Draws,
    ) -> Result<Option<String>, LedgerError> {
        let Some((plain, numbered)) = self.keys_of(one) else {
            return Ok(Some(format!("netstead.pool: its name is too long for a key of {}", one.pool)));
        };
        let look = |book: &Book| {
            let own = |key: &Key| book.claim(one.pool, key).map(|view| view.claim);
            (own(&plain), own(&numbered), holder(book, one.pool, one.address))
        };
        let (at_plain, at_numbered, holder) = ledger.read(Freshness::Stale, look).await?.value;
        let mine = owner(&self.source);
        let fits = |claim: &&Arc<Claim>| *claim.owner == *mine && claim.address == one.address;
        let there = at_plain.as_ref().filter(fits).or(at_numbered.as_ref().filter(fits));
        if let Some(claim) = there {
            self.keys.insert((claim.pool.clone(), claim.key.clone()));
            if !one.present || says_the_same(claim, one, &self.source) {
                return Ok(None);
            }
            return self.claim(ledger, claim.key.clone(), one).await;
        }
        if !one.present {
            // Of what may be gone nothing new is made.
            return Ok(None);
        }
        if one.from_backend {
            let now = ledger.clock().monotonic();
            for key in [&plain, &numbered] {
                if let Some(waiting) = draws.live(one.pool, key).filter(|at| waits_for(at, one.address)) {
                    self.keys.insert((one.pool.clone(), key.clone()));
                    return Ok(Some(waits(waiting, one.address)));
                }
            }
            let refused = self.refusals.of(draws, one.pool, [&plain, &numbered], one.address, now);
            if refused.is_some() {
                return Ok(refused);
            }
        }
        let is_free = at_plain.is_none() && draws.live(one.pool, &plain).is_none();
        let key = if is_free { plain } else { numbered };
        // The same address under another name: the container was renamed, or made anew as another.
        if let Some(claim) = holder.filter(|claim| *claim.owner == *mine) {
            let still = |other: &WantedAddress<'_>| {
                let keys = self.keys_of(other);
                let is = keys.is_some_and(|(a, b)| a == claim.key || b == claim.key);
                other.present && other.address == one.address && is
            };
            if !all.iter().any(still) {
                let command = Command::Move { target: target(&claim), key: key.clone(), owner: None };
                if let Err(refusal) = submit(ledger, Caller::new(&mine), command).await? {
                    return Ok(Some(sentence(&refusal)));
                }
                self.keys.insert((one.pool.clone(), key.clone()));
            }
        }
        self.claim(ledger, key, one).await
    }

    async fn claim(
        &mut self,
        ledger: &Ledger,
        key: Key,
        one: &WantedAddress<'_>,
    ) -> Result<Option<String>, LedgerError> {
        let request = ClaimRequest {
            // A backend may be away for an hour, and other workloads and sources do not wait for it.
            keep: one.from_backend,
            from: PoolChoice::Pools(vec![one.pool.clone()]),
            want: Want::Exact(one.address),
            hostnames: Some(hostnames(one.workload)),
            description: Some(description(one, &self.source)),
            // It was seen in use, by us; and it is in use, so that it rests is no longer true.
            adopt: true,
            force: true,
            ..ClaimRequest::any(one.pool.clone(), key.clone())
        };
        let command = Command::Claim(Box::new(request));
        Ok(match submit(ledger, Caller::new(&owner(&self.source)), command).await? {
            Ok(reply) => {
                self.keys.insert((one.pool.clone(), key));
                match reply {
                    Reply::Queued(waiting) => Some(waits(&waiting, one.address)),
                    _ => None,
                }
            }
            Err(refusal) => Some(sentence(&refusal)),
        })
    }

    /// Ends the claims that nothing alive asks for.
    async fn release(
        &mut self,
        ledger: &Ledger,
        wanted: &[WantedAddress<'_>],
        may_end: impl Fn(&Key) -> bool,
    ) -> Result<(), LedgerError> {
        let mine = owner(&self.source);
        for (pool, key) in self.keys.clone().into_iter().filter(|(_, key)| may_end(key)) {
            let kept = wanted
                .iter()
                .any(|one| *one.pool == pool && self.keys_of(one).is_some_and(|(a, b)| a == key || b == key));
            let look = |book: &Book| (book.claim(&pool, &key), book.waiting_claim(&pool, &key));
            let (held, waiting) = ledger.read(Freshness::Stale, look).await?.value;
            let held = held.map(|view| view.claim).filter(|claim| *claim.owner == *mine);
            let Some(claim) = held else {
                let waiting = waiting.filter(|waiting| *waiting.owner == *mine && waiting.draw.is_some());
                let still = |waiting: &Waiting| {
                    let asked =
                        |one: &&WantedAddress<'_>| *one.pool == pool && waits_for(waiting, one.address);
                    kept && wanted.iter().any(|one| asked(&one))
                };
                if waiting.as_deref().is_some_and(still) {
                    continue;
                }
                if waiting.is_some() {
                    let target = ClaimRef { pool: pool.clone(), key: key.clone(), id: None };
                    drop(submit(ledger, Caller::new(&mine), Command::Release(target)).await?);
                }
                // Otherwise another caller was faster.
                self.keys.remove(&(pool, key));
                continue;
            };
            let used = wanted.iter().any(|one| *one.pool == pool && one.address == claim.address);
            if kept && used {
                continue;
            }
            match submit(ledger, Caller::new(&mine), Command::Release(target(&claim))).await? {
                Ok(_) => drop(self.keys.remove(&(pool, key))),
                Err(refusal) => tracing::warn!(%pool, %key, %refusal, "A claim of a workload cannot end."),
            }
        }
        Ok(())
    }

    /// The key of a workload's address, and the one it has while that belongs to another of its addresses.
    fn keys_of(&self, one: &WantedAddress<'_>) -> Option<(Key, Key)> {
        let plain = format!("{}/{}", self.source, one.id);
        let numbered = format!("{plain}/{}", one.address);
        Some((plain.parse().ok()?, numbered.parse().ok()?))
    }
}

/// The addresses of one version that lie in its pool, the network's own before those of its host alone.
fn collect_wanted<'a>(
    book: &Book,
    one: Alive<'a>,
    wanted: &mut Vec<WantedAddress<'a>>,
    troubles: &mut Vec<(Key, String)>,
) {
    let Alive { id, workload, present, .. } = one;
    let Some(pool) = &workload.pool else { return };
    let mut trouble = |why: String| {
        if present {
            troubles.push((id.clone(), format!("netstead.pool: {why}")));
        }
    };
    let Some(known) = book.pool(pool) else { return trouble(format!("there is no pool `{pool}`")) };
    let spec = &known.pool.spec;
    let inside = |local: bool| {
        let interfaces = workload.interfaces.iter().filter(move |interface| interface.local == local);
        let addresses = interfaces.flat_map(|interface| &interface.addresses).copied();
        addresses.filter(|address| lies_in(spec, *address)).collect::<BTreeSet<Address>>()
    };
    let mut addresses = inside(false);
    if addresses.is_empty() {
        addresses = inside(true);
    }
    if addresses.is_empty() {
        return trouble(format!("none of its addresses lies in pool `{pool}`"));
    }
    let new = |address: &Address| !wanted.iter().any(|other| other.id == id && other.address == *address);
    let addresses: Vec<Address> = addresses.into_iter().filter(new).collect();
    let from_backend = spec.upstream.is_some();
    wanted.extend(addresses.into_iter().map(|address| WantedAddress {
        id,
        workload,
        pool,
        address,
        present,
        from_backend,
    }));
}

fn lies_in(spec: &PoolSpec, address: Address) -> bool {
    spec.network.is_some_and(|network| network.contains(address))
        || spec.ranges.iter().any(|range| range.contains(address))
}

/// The holder of this address of the pool.
fn holder(book: &Book, pool: &Ident, address: Address) -> Option<Arc<Claim>> {
    let views = book.explain(address);
    views.into_iter().filter(|view| view.pool.as_ref() == Some(pool)).find_map(|view| match view.state {
        AddressState::Held(view) => Some(view.claim),
        _ => None,
    })
}

/// A workload that asks for no name by itself is called by its own in the pool's domain.
fn hostnames(workload: &Workload) -> Vec<Name> {
    if !workload.wishes.is_empty() {
        return Vec::new();
    }
    workload.name.parse().ok().into_iter().collect()
}

fn description(one: &WantedAddress<'_>, source: &Ident) -> String {
    format!("{} {} of {source}", one.workload.kind, one.workload.name)
}

fn says_the_same(claim: &Claim, one: &WantedAddress<'_>, source: &Ident) -> bool {
    let details = claim.details();
    details.hostnames == hostnames(one.workload)
        && details.description.as_deref() == Some(&description(one, source))
}

fn target(claim: &Claim) -> ClaimRef {
    ClaimRef { pool: claim.pool.clone(), key: claim.key.clone(), id: Some(claim.id) }
}

async fn of_owner(ledger: &Ledger, owner: &str) -> Result<Vec<Arc<Claim>>, LedgerError> {
    let filter = ClaimFilter { owner: Some(owner.into()), ..ClaimFilter::default() };
    let look = |book: &Book| book.claims(&filter, None, usize::MAX);
    let found = ledger.read(Freshness::Stale, look).await?.value;
    Ok(found.into_iter().map(|view| view.claim).collect())
}

/// The keys under which an owner's claims wait for a backend, with their pools.
async fn waiting_of(ledger: &Ledger, owner: &str) -> Result<Vec<(Ident, Key)>, LedgerError> {
    let look = |book: &Book| Draws::of(book, owner).places().cloned().collect();
    Ok(ledger.read(Freshness::Stale, look).await?.value)
}

/// Submits a command and returns its reply; an error if there was none.
async fn submit(
    ledger: &Ledger,
    caller: Caller,
    command: Command,
) -> Result<Result<Reply, Refusal>, LedgerError> {
    match ledger.submit(caller, command, PATIENCE).await {
        Ok(done) => Ok(Ok(done.reply)),
        Err(LedgerError::Refused(refusal)) => Ok(Err(refusal)),
        Err(error) => Err(error),
    }
}

/// The text of a refusal for the author of a label, without advice for callers that claim by hand.
fn sentence(refusal: &Refusal) -> String {
    let text = match refusal {
        Refusal::ForceDenied { address, pool, key, owner } => {
            format!("{address} is reserved for `{key}` of `{owner}` in pool `{pool}`")
        }
        Refusal::KeyHeld { pool, key, owner, .. } => {
            format!("the key `{key}` in pool `{pool}` belongs to `{owner}`")
        }
        other => other.to_string(),
    };
    format!("netstead.pool: {text}")
}
