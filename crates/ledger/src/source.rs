//! The ledger as one of the places names come from: a claim with a domain asks for its A, AAAA and PTR.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use netstead_model::{
    Claim, Content, Ended, Event, EventKind, Ident, Interface, Key, Kind, Report, Source, Subject, View,
    Wish, Workload,
};
use tokio::sync::{Mutex as AsyncMutex, broadcast};

use crate::{
    book::{Book, ClaimCursor, ClaimFilter, ClaimView},
    ledger::{Freshness, Ledger},
    refusal::LedgerError,
};

const PAGE: usize = 1000;

/// Claims as workloads. Their ends are seen, so a released claim's names go at once.
///
/// A claim that has no name and had none costs nothing here: there may be a million of them.
#[derive(Debug)]
pub struct LedgerSource {
    name: Ident,
    ledger: Ledger,
    events: AsyncMutex<broadcast::Receiver<Arc<Event>>>,
    ended: Mutex<Vec<Ended>>,
    /// What had a name in an earlier report: that it has none any more has to be told.
    named: Mutex<HashSet<Key>>,
}

impl LedgerSource {
    pub fn new(name: Ident, ledger: Ledger) -> Self {
        let events = AsyncMutex::new(ledger.subscribe());
        Self { name, ledger, events, ended: Mutex::default(), named: Mutex::default() }
    }

    /// Every claim of an address that has a name or had one, in order of pool and address.
    async fn workloads(&self) -> Result<Vec<Workload>, LedgerError> {
        let filter = ClaimFilter::default();
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
            let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
            if !found.names.is_empty() {
                named.insert(id.clone());
            } else if !named.contains(&id) {
                return None;
            }
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
            })
            .collect();
        let why_not = if wishes.is_empty() { vec![found.reason.to_owned()] } else { Vec::new() };
        Some(Workload {
            id,
            source: self.name.clone(),
            kind: "claim".into(),
            name: claim.key.to_string(),
            hostname: found.names.first().cloned(),
            labels: BTreeMap::new(),
            tags: Vec::new(),
            interfaces: vec![Interface { addresses: vec![claim.address], ..Interface::default() }],
            wishes,
            why_not,
            unclear: false,
            pool: None,
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
            Some(domain) => !claim.names(domain).names.is_empty(),
            None => true, // Its pool went meanwhile.
        };
        has || id_of(&claim.pool, &claim.key)
            .is_some_and(|id| self.named.lock().unwrap_or_else(PoisonError::into_inner).contains(&id))
    }

    fn note(&self, event: &Event) {
        let asked = match event.what {
            EventKind::Released | EventKind::Moved => true,
            EventKind::Expired => false,
            _ => return,
        };
        if let Some(Subject::Claim(claim)) = &event.before
            && self.has_name(claim)
            && let Some(id) = id_of(&claim.pool, &claim.key)
        {
            self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(Ended { id, asked });
        }
    }

    /// Takes in every event that is there, without waiting.
    async fn catch_up(&self) {
        let mut events = self.events.lock().await;
        while let Ok(event) = events.try_recv() {
            self.note(&event);
        }
    }
}

fn cursor(view: &ClaimView) -> ClaimCursor {
    ClaimCursor { pool: view.claim.pool.clone(), address: view.claim.address }
}

fn id_of(pool: &Ident, key: &Key) -> Option<Key> {
    // A long key of a long-named pool does not fit into an id; its end is then seen by its absence.
    format!("{pool}/{key}").parse().ok()
}

#[async_trait]
impl Source for LedgerSource {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "ledger"
    }

    async fn report(&self) -> Report {
        let begun = self.ledger.clock().wall();
        self.catch_up().await;
        let mut ended = std::mem::take(&mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner));
        let (view, workloads) = match self.workloads().await {
            Ok(workloads) => (View::Complete, workloads),
            Err(error) => (View::Failed { reason: error.to_string() }, Vec::new()),
        };
        // What is there again was claimed anew: its end is no longer news.
        if !ended.is_empty() {
            let there: HashSet<&Key> = workloads.iter().map(|workload| &workload.id).collect();
            ended.retain(|ended| !there.contains(&ended.id));
            let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
            for one in &ended {
                named.remove(&one.id);
            }
        }
        Report { source: self.name.clone(), view, begun, workloads, ended }
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
