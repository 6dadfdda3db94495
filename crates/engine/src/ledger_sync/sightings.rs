//! Addresses that sources have seen in use: no generated claim gets them.

use std::{collections::BTreeMap, net::IpAddr};

use netstead_ledger::{Caller, Command, Ledger, LedgerError, Report, Sighting};
use netstead_model::{Address, Ident, Span, default_vrf};
use netstead_plan::Alive;

use super::PATIENCE;

/// What the ledger is told of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentSightings {
    /// With what has them, for people.
    seen: BTreeMap<Address, String>,
    /// Nothing else is in use.
    all: bool,
}

impl SentSightings {
    pub(super) fn nothing() -> Self {
        Self { seen: BTreeMap::new(), all: true }
    }

    /// What is to be told, if that is not what was told last.
    pub(super) fn if_changed(
        source: &Ident,
        alive: &[Alive<'_>],
        all: bool,
        last: Option<&Self>,
    ) -> Option<Self> {
        let mut seen = BTreeMap::new();
        for one in alive {
            let what = || format!("{} {} of {source}", one.workload.kind, one.workload.name);
            let around = one.workload.interfaces.iter().filter(|interface| !interface.local);
            for address in around.flat_map(|interface| &interface.addresses).copied() {
                if is_of_a_network(address) {
                    seen.entry(address).or_insert_with(what);
                }
            }
        }
        let news = Self { seen, all };
        // A source that never saw an address need not say so.
        let idle = last.is_none() && news.seen.is_empty() && !all;
        (!idle && last != Some(&news)).then_some(news)
    }
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
