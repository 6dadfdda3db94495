//! Claims of workloads in pools with a backend: they wait in the ledger until the backend gives the address, and no pass waits
//! for them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use netstead_ledger::Book;
use netstead_model::{Address, Draw, Ident, Key, Waiting, Want};

/// After a backend's refusal an address is asked for again in this time.
const REFUSED_PAUSE: Duration = Duration::from_mins(5);

/// The claims of one owner that wait for backends, and those that backends refused, by pool and key.
#[derive(Debug, Default)]
pub(super) struct Draws {
    live: HashMap<(Ident, Key), Arc<Waiting>>,
    refused: HashMap<(Ident, Key), Arc<Waiting>>,
}

impl Draws {
    pub(super) fn of(book: &Book, owner: &str) -> Self {
        let mut draws = Self::default();
        for waiting in book.waitings().filter(|waiting| *waiting.owner == *owner) {
            let (Some(draw), Some(pool)) = (waiting.draw.as_deref(), waiting.pools.first()) else { continue };
            let place = (pool.clone(), waiting.key.clone());
            if draw.is_live() {
                draws.live.insert(place, waiting.clone());
            } else if draw.is_withdrawn() && draw.why.is_some() {
                draws.refused.insert(place, waiting.clone());
            }
        }
        draws
    }

    /// The keys under which a claim waits.
    pub(super) fn places(&self) -> impl Iterator<Item = &(Ident, Key)> {
        self.live.keys()
    }

    pub(super) fn live(&self, pool: &Ident, key: &Key) -> Option<&Waiting> {
        self.live.get(&(pool.clone(), key.clone())).map(AsRef::as_ref)
    }

    /// Why a backend refused this address for this key, if its claim has just ended so.
    fn refusal(&self, pool: &Ident, key: &Key, address: Address) -> Option<String> {
        let waiting = self.refused.get(&(pool.clone(), key.clone()))?;
        let why = draw_of(waiting, address)?.why.as_ref()?;
        Some(why.message.clone())
    }
}

/// The part of a claim that concerns its backend, if the claim waits for this address.
fn draw_of(waiting: &Waiting, address: Address) -> Option<&Draw> {
    waiting.draw.as_deref().filter(|draw| draw.want == Want::Exact(address))
}

pub(super) fn waits_for(waiting: &Waiting, address: Address) -> bool {
    draw_of(waiting, address).is_some()
}

/// The sentence for a workload whose claim waits.
pub(super) fn waits(waiting: &Waiting, address: Address) -> String {
    let why = waiting.draw.as_deref().and_then(|draw| draw.why.as_ref());
    let why = why.map(|why| format!(" ({})", why.message)).unwrap_or_default();
    let pool = waiting.pools.first().map(ToString::to_string).unwrap_or_default();
    format!("netstead.pool: {address} waits for the backend of pool `{pool}`{why}")
}

/// The refusals of backends, so that an address is not asked for again in every pass.
#[derive(Debug, Default)]
pub(super) struct BackendRefusals(BTreeMap<(Ident, Address), (Duration, String)>);

impl BackendRefusals {
    /// Why this address is not asked for now. `now` is the ledger's clock.
    pub(super) fn of(
        &mut self,
        draws: &Draws,
        pool: &Ident,
        keys: [&Key; 2],
        address: Address,
        now: Duration,
    ) -> Option<String> {
        self.0.retain(|_, (until, _)| *until > now);
        let place = (pool.clone(), address);
        if let Some((_, sentence)) = self.0.get(&place) {
            return Some(sentence.clone());
        }
        let message = keys.into_iter().find_map(|key| draws.refusal(pool, key, address))?;
        let sentence = format!("netstead.pool: the backend of pool `{pool}` refuses {address}: {message}");
        self.0.insert(place, (now.saturating_add(REFUSED_PAUSE), sentence.clone()));
        Some(sentence)
    }
}
