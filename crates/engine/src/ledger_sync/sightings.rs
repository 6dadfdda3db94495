//! Addresses that sources have seen in use: no generated claim gets them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use netstead_ledger::{Caller, Command, Freshness, Ledger, LedgerError, Report, Sighting};
use netstead_model::{Address, Ident, Scope, Span, default_vrf};
use netstead_plan::{Alive, SourceState};

use super::PATIENCE;

/// The sightings of one source, as the ledger gets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentSightings {
    /// With what has them, for people.
    seen: BTreeMap<Address, String>,
    /// The scopes that showed each.
    scopes: BTreeMap<Address, BTreeSet<Scope>>,
    /// Nothing else is in use.
    all: bool,
}

impl SentSightings {
    pub(super) fn nothing() -> Self {
        Self { seen: BTreeMap::new(), scopes: BTreeMap::new(), all: true }
    }

    /// Sightings to send, if they are not those that were sent last. With `unsure`, some scopes show everything: then all ends
    /// that is neither alive nor unsure.
    pub(super) fn if_changed(
        source: &Ident,
        alive: &[Alive<'_>],
        all: bool,
        unsure: Option<BTreeMap<Address, Unsure>>,
        last: Option<&Self>,
    ) -> Option<Self> {
        let mut seen = BTreeMap::new();
        let mut scopes: BTreeMap<Address, BTreeSet<Scope>> = BTreeMap::new();
        for one in alive {
            let what = || format!("{} {} of {source}", one.workload.kind, one.workload.name);
            let around = one.workload.interfaces.iter().filter(|interface| !interface.local);
            for address in around.flat_map(|interface| &interface.addresses).copied() {
                if is_of_a_network(address) {
                    seen.entry(address).or_insert_with(what);
                    scopes.entry(address).or_default().insert(one.scope.clone());
                }
            }
        }
        let all = all || unsure.is_some();
        for (address, unsure) in unsure.into_iter().flatten() {
            seen.entry(address).or_insert(unsure.note);
            scopes.entry(address).or_default().extend(unsure.scopes);
        }
        let news = Self { seen, scopes, all };
        // A source that never saw an address need not say so.
        let idle = last.is_none() && news.seen.is_empty() && !all;
        (!idle && last != Some(&news)).then_some(news)
    }
}

/// An address that the ledger was told of by a scope that does not show everything now.
pub(super) struct Unsure {
    note: String,
    scopes: BTreeSet<Scope>,
}

/// The addresses that must not end yet: those of scopes that do not show everything, and those of an unknown scope.
pub(super) async fn unsure(
    ledger: &Ledger,
    source: &Ident,
    known: &SourceState,
    told: Option<&SentSightings>,
) -> Result<BTreeMap<Address, Unsure>, LedgerError> {
    let vrf = default_vrf();
    let look = |book: &netstead_ledger::Book| -> Vec<(Address, String)> {
        let own = book.observations().filter(|one| one.source == *source && one.vrf == vrf);
        own.map(|one| (one.address, one.note.clone().unwrap_or_default())).collect()
    };
    let held = ledger.read(Freshness::Stale, look).await?.value;
    let unsure = held.into_iter().filter_map(|(address, note)| {
        let scopes = told.and_then(|told| told.scopes.get(&address)).cloned().unwrap_or_default();
        let sure = !scopes.is_empty() && scopes.iter().all(|scope| known.says_all_of(scope));
        (!sure).then_some((address, Unsure { note, scopes }))
    });
    Ok(unsure.collect())
}

/// Whether it means the same machine to everybody on the network.
fn is_of_a_network(address: Address) -> bool {
    match address.to_ip() {
        Some(IpAddr::V4(ip)) => !ip.is_loopback() && !ip.is_link_local() && !ip.is_unspecified(),
        Some(IpAddr::V6(ip)) => !ip.is_loopback() && !ip.is_unicast_link_local() && !ip.is_unspecified(),
        None => false,
    }
}

pub(super) async fn send_sightings(
    ledger: &Ledger,
    source: &Ident,
    told: &SentSightings,
) -> Result<(), LedgerError> {
    let seen = told.seen.iter();
    let report = Report {
        source: source.clone(),
        vrf: default_vrf(),
        complete: told.all,
        seen: seen.map(|(address, what)| Sighting { address: *address, note: Some(what.clone()) }).collect(),
        // Grace has run out before it is told.
        grace: Span::ZERO,
        ttl: None,
    };
    let caller = Caller::new(&super::workload_claims::owner(source));
    ledger.submit(caller, Command::Observe(report), PATIENCE).await.map(drop)
}
