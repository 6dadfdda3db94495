//! The ledger as a source of names: a claim in a pool with a domain asks for its A, AAAA and PTR records.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use netstead_model::{
    Claim, Content, Ended, Event, EventKind, Ident, Interface, Key, Kind, Report, Source, SourceFlags,
    Subject, View, Wish, Workload,
};
use tokio::{
    sync::{
        Mutex as AsyncMutex,
        broadcast::{self, error::TryRecvError},
    },
    time::timeout,
};

use crate::{
    book::{Book, ClaimCursor, ClaimFilter, ClaimView},
    events::EventQuery,
    ledger::{Freshness, Ledger},
    refusal::LedgerError,
};

const PAGE: usize = 1000;

/// Events of a key looked through for its end: what came after it may be a place in the queue.
const LATEST: usize = 16;

/// How long the events may take to tell what became of claims; what they do not tell is asked again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Claims as workloads. The end of a claim is always among the events, so its names are removed at once, also if it was
/// released while no engine ran.
///
/// A claim that has no name and had none costs nothing here: there may be a million of them, and pools in which none has
/// one are passed over. One that lacks the name that its pool's domain would give it is a workload that says why.
#[derive(Debug)]
pub struct LedgerSource {
    name: Ident,
    ledger: Ledger,
    events: AsyncMutex<broadcast::Receiver<Arc<Event>>>,
    /// Claims that had a name in an earlier report, each with its end if that was heard: a lost name must be reported too.
    named: Mutex<HashMap<Key, Option<End>>>,
}

/// How a claim ended.
#[derive(Debug, Clone, Copy)]
struct End {
    /// An operator or a caller asked for it.
    asked: bool,
}

impl LedgerSource {
    pub fn new(name: Ident, ledger: Ledger) -> Self {
        let events = AsyncMutex::new(ledger.subscribe());
        Self { name, ledger, events, named: Mutex::default() }
    }

    /// Every claim of an address that has a name or had one.
    async fn workloads(&self) -> Result<Vec<Workload>, LedgerError> {
        let mut workloads = self.named_workloads().await?;
        let there: HashSet<&Key> = workloads.iter().map(|workload| &workload.id).collect();
        let mut missing: Vec<Key> = self.named().keys().filter(|id| !there.contains(id)).cloned().collect();
        missing.sort_unstable();
        // They ended, or are in pools that were passed over.
        for some in missing.chunks(PAGE) {
            let look = |book: &Book| -> Vec<Workload> {
                let places = some.iter().filter_map(pool_and_key_of);
                let claims = places.filter_map(|(pool, key)| book.claim(&pool, &key));
                claims.filter_map(|view| self.workload(book, &view)).collect()
            };
            workloads.extend(self.ledger.read(Freshness::Fresh, look).await?.value);
        }
        Ok(workloads)
    }

    /// Every claim of an address that has a name, in order of pool and address.
    async fn named_workloads(&self) -> Result<Vec<Workload>, LedgerError> {
        let filter = ClaimFilter { named: true, ..ClaimFilter::default() };
        let mut workloads = Vec::new();
        let mut after: Option<ClaimCursor> = None;
        loop {
            let look = |book: &Book| -> (Vec<Workload>, Option<ClaimCursor>) {
                let page = book.claims(&filter, after.as_ref(), PAGE);
                let next = page.last().filter(|_| page.len() == PAGE).map(cursor);
                (page.iter().filter_map(|view| self.workload(book, view)).collect(), next)
            };
            let (page, next) = self.ledger.read(Freshness::Fresh, look).await?.value;
            workloads.extend(page);
            match next {
                Some(next) => after = Some(next),
                None => return Ok(workloads),
            }
        }
    }

    fn workload(&self, book: &Book, view: &ClaimView) -> Option<Workload> {
        let claim = &view.claim;
        if claim.length.is_some() || claim.address.kind() == Kind::Mac {
            return None;
        }
        let found = claim.names(book.domain_of(&claim.pool)?);
        let id = id_of(&claim.pool, &claim.key)?;
        {
            let mut named = self.named();
            if found.names.is_empty() && !found.lacks && !named.contains_key(&id) {
                return None;
            }
            // Whatever ended was claimed anew.
            named.insert(id.clone(), None);
        }
        let wishes: Vec<Wish> = found
            .names
            .iter()
            .enumerate()
            .map(|(place, name)| Wish {
                name: name.clone(),
                content: Content::Addresses(vec![claim.address]),
                ttl: None,
                providers: Vec::new(),
                reason: format!("claim `{}` in pool `{}`: {}", claim.key, claim.pool, found.reason),
                adopt: false,
                share: false,
                main: place == 0,
                borrowed: false,
                moves: false,
                proxied: None,
                entrypoints: Vec::new(),
            })
            .collect();
        let why_not = if wishes.is_empty() { vec![found.reason.to_owned()] } else { Vec::new() };
        Some(Workload {
            owner: Some(claim.owner.to_string()),
            hostname: found.names.first().cloned(),
            interfaces: vec![Interface { addresses: vec![claim.address], ..Interface::default() }],
            wishes,
            why_not,
            ..Workload::new(self.name.clone(), id, "claim", claim.key.as_str())
        })
    }

    /// Whether an event can change what anything is called.
    fn concerns_names(&self, event: &Event) -> bool {
        let mut subjects = event.before.iter().chain(&event.after);
        subjects.any(|subject| match subject {
            Subject::Claim(claim) => self.has_name(claim),
            Subject::Pool(_) => true,
            Subject::Reservation(_) | Subject::Waiting(_) => false,
        })
    }

    /// Whether a claim has a name, or had one.
    fn has_name(&self, claim: &Claim) -> bool {
        // The Book is let go of before the other lock is taken: a report takes that one while it looks into the Book.
        let has = match self.ledger.book().domain_of(&claim.pool) {
            Some(domain) => {
                let found = claim.names(domain);
                found.lacks || !found.names.is_empty()
            }
            None => true, // Its pool went meanwhile.
        };
        has || id_of(&claim.pool, &claim.key).is_some_and(|id| self.named().contains_key(&id))
    }

    fn named(&self) -> MutexGuard<'_, HashMap<Key, Option<End>>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, event: &Event) {
        if let Some((claim, end)) = ended_by(event)
            && self.has_name(claim)
            && let Some(id) = id_of(&claim.pool, &claim.key)
        {
            self.named().insert(id, Some(end));
        }
    }

    /// Takes in every event that is there, without waiting. What was missed is looked up when it is needed.
    async fn catch_up(&self) {
        let mut events = self.events.lock().await;
        loop {
            match events.try_recv() {
                Ok(event) => self.note(&event),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// The ends of all that had a name once and is not among `there`.
    async fn ends(&self, there: &HashSet<&Key>) -> Vec<Ended> {
        let missing: Vec<(Key, Option<End>)> = self
            .named()
            .iter()
            .filter(|(id, _)| !there.contains(id))
            .map(|(id, end)| (id.clone(), *end))
            .collect();
        let (mut ended, mut unheard) = (Vec::new(), Vec::new());
        for (id, end) in missing {
            match end {
                Some(End { asked }) => ended.push(Ended { id, asked }),
                None => unheard.push(id),
            }
        }
        let asking = async {
            for id in unheard {
                let Ok(end) = self.end_of(&id).await else { return };
                match end {
                    Some(End { asked }) => ended.push(Ended { id, asked }),
                    // It is unknown: the claim is merely absent.
                    None => drop(self.named().remove(&id)),
                }
            }
        };
        let _ = timeout(PATIENCE, asking).await;
        let mut named = self.named();
        for one in &ended {
            named.remove(&one.id);
        }
        ended
    }

    /// How the claim with this id ended, by the events.
    async fn end_of(&self, id: &Key) -> Result<Option<End>, LedgerError> {
        let Some((pool, key)) = pool_and_key_of(id) else { return Ok(None) };
        let (newest_first, limit) = (true, LATEST);
        let query = EventQuery {
            pool: Some(pool),
            key: Some(key.clone()),
            newest_first,
            limit,
            ..EventQuery::default()
        };
        let events = self.ledger.events(&query).await?.events;
        let concerns = |event: &Arc<Event>| {
            let ended = ended_by(event).filter(|(claim, _)| claim.key == key).map(|(_, end)| end);
            // It was claimed anew since: its end, if there is one, is yet to come.
            let began = matches!(&event.after, Some(Subject::Claim(claim)) if claim.key == key);
            (ended.is_some() || began).then_some(ended)
        };
        Ok(events.iter().find_map(concerns).flatten())
    }
}

/// The claim that ended with an event, if one did.
fn ended_by(event: &Event) -> Option<(&Arc<Claim>, End)> {
    let asked = match event.what {
        EventKind::Released | EventKind::Moved => true,
        EventKind::Expired => false,
        _ => return None,
    };
    match &event.before {
        Some(Subject::Claim(claim)) => Some((claim, End { asked })),
        _ => None,
    }
}

fn cursor(view: &ClaimView) -> ClaimCursor {
    ClaimCursor { pool: view.claim.pool.clone(), address: view.claim.address }
}

fn id_of(pool: &Ident, key: &Key) -> Option<Key> {
    // A long key of a long-named pool does not fit into an id; its end is then seen by its absence.
    format!("{pool}/{key}").parse().ok()
}

fn pool_and_key_of(id: &Key) -> Option<(Ident, Key)> {
    let (pool, key) = id.as_str().split_once('/')?;
    Some((pool.parse().ok()?, key.parse().ok()?))
}

#[async_trait]
impl Source for LedgerSource {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "ledger"
    }

    fn flags(&self) -> SourceFlags {
        SourceFlags { commanded: true, ..SourceFlags::default() }
    }

    async fn report(&self) -> Report {
        let begun = self.ledger.clock().wall();
        self.catch_up().await;
        let (view, workloads) = match self.workloads().await {
            Ok(workloads) => (View::Complete, workloads),
            Err(error) => (View::Failed { reason: error.to_string() }, Vec::new()),
        };
        let ended = match view {
            View::Complete => self.ends(&workloads.iter().map(|workload| &workload.id).collect()).await,
            _ => Vec::new(),
        };
        Report::whole(self.name.clone(), begun, view, workloads).with_ended(ended)
    }

    fn remember(&self, reported: Vec<Key>) {
        let mut named = self.named();
        for id in reported {
            named.entry(id).or_insert(None);
        }
    }

    async fn changed(&self) {
        let mut events = self.events.lock().await;
        // Who missed some looks at everything.
        while let Ok(event) = events.recv().await {
            self.note(&event);
            if self.concerns_names(&event) {
                return;
            }
        }
    }
}
