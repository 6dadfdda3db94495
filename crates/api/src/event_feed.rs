//! [`EventFeed`]: reads events from a cursor on, without gaps and without repeats.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use netstead_engine::{Change, Engine, LiveChanges};
use netstead_ledger::{Book, EventQuery, Freshness, LedgerError};
use netstead_model::{Event, Ident};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tracing::debug;

use crate::{
    access::Grant,
    app::AppState,
    http::{cursor::EventCursor, name_scope::NameScope},
    routes::visible,
};

/// Events read from the store at a time.
const PAGE: usize = 500;
/// How often it is checked that the reader may still read, while nothing happens.
const CHECK: Duration = Duration::from_secs(1);

/// One message of the stream.
#[derive(Debug)]
pub(crate) enum FeedItem {
    Ledger(Arc<Event>),
    Engine(Box<Change>),
}

/// Changes of the engine on their way to one reader.
#[derive(Debug)]
struct EngineFeed {
    live: Receiver<LiveChanges>,
    ready: VecDeque<Change>,
}

/// Reads what is stored, then what happens. It listens before it reads, and lets numbers decide what is new; so what
/// happens between the two is neither lost nor told twice.
#[derive(Debug)]
pub(crate) struct EventFeed {
    app: AppState,
    grant: Grant,
    live: Receiver<Arc<Event>>,
    /// Read from the store until it has nothing newer.
    behind: bool,
    read: VecDeque<Arc<Event>>,
    /// The number of the last event that was looked at.
    last: u64,
    engine: Option<EngineFeed>,
}

impl EventFeed {
    /// Begins behind `after`, or now. What an `engine` does is added as it happens.
    pub(crate) async fn open(
        app: &AppState,
        grant: Grant,
        after: Option<u64>,
        engine: Option<&Engine>,
    ) -> Result<Self, LedgerError> {
        let live = app.ledger.subscribe();
        let engine = engine.map(|engine| EngineFeed { live: engine.subscribe(), ready: VecDeque::new() });
        let last = match after {
            Some(after) => after,
            None => app.ledger.read(Freshness::Stale, |_| ()).await?.seq,
        };
        Ok(Self {
            app: Arc::clone(app),
            grant,
            live,
            behind: after.is_some(),
            read: VecDeque::new(),
            last,
            engine,
        })
    }

    /// Where a reader that comes again goes on.
    pub(crate) fn cursor(&self) -> String {
        EventCursor { ledger: self.app.ledger.id(), seq: self.last }.to_string()
    }

    /// The next event the token may see; none once the server is about to end, the token is no longer valid, or this node
    /// no longer runs the engine that is followed.
    pub(crate) async fn next(&mut self) -> Option<FeedItem> {
        loop {
            if self.app.stopping.is_cancelled() || !self.app.tokens.still_valid(&self.grant) {
                return None;
            }
            if self.engine.is_some() && self.app.engine_slot.engine().is_none() {
                return None;
            }
            if let Some(change) = self.engine.as_mut().and_then(|engine| engine.ready.pop_front()) {
                if self.covers(&change).await {
                    return Some(FeedItem::Engine(Box::new(change)));
                }
                continue;
            }
            if let Some(event) = self.read.pop_front() {
                if event.seq > self.last {
                    self.last = event.seq;
                    if self.sees(&event).await {
                        return Some(FeedItem::Ledger(event));
                    }
                }
            } else if self.behind {
                self.catch_up().await?;
            } else {
                self.wait().await?;
            }
        }
    }

    /// The pools the token may see, unless that is all of them. While that cannot be known, it sees none.
    pub(crate) async fn visible_pools(&self) -> Option<Vec<Ident>> {
        let scopes = self.grant.scopes();
        if !scopes.limits_pools() {
            return None;
        }
        let seen = self.app.ledger.read(Freshness::Stale, |book| visible(book, scopes)).await;
        seen.map_or_else(|_| Some(Vec::new()), |seen| seen.value)
    }

    async fn catch_up(&mut self) -> Option<()> {
        let query =
            EventQuery { after: Some(self.last), newest_first: false, limit: PAGE, ..EventQuery::default() };
        match self.app.ledger.events(&query).await {
            Ok(page) => {
                self.behind = page.next.is_some();
                if page.events.is_empty() {
                    self.last = page.next.map_or(self.last, |next| next.max(self.last));
                }
                self.read.extend(page.events);
                Some(())
            }
            Err(error) => {
                // The reader comes again with its cursor and is told what is wrong.
                debug!(%error, "A stream of events ends.");
                None
            }
        }
    }

    async fn wait(&mut self) -> Option<()> {
        let stopping = self.app.stopping.clone();
        let engine = &mut self.engine;
        tokio::select! {
            () = stopping.cancelled() => None,
            changes = next_changes(engine) => {
                // A reader that was too slow lost some. A new stream tells it to look.
                self.engine.as_mut()?.ready.extend(changes?.iter().cloned());
                Some(())
            }
            () = tokio::time::sleep(CHECK) => Some(()),
            event = self.live.recv() => match event {
                Ok(event) => {
                    self.read.push_back(event);
                    Some(())
                }
                Err(RecvError::Lagged(_)) => {
                    self.behind = true;
                    Some(())
                }
                Err(RecvError::Closed) => None,
            },
        }
    }

    /// Whether the token covers the place of a change. While that cannot be known, it does not.
    async fn covers(&self, change: &Change) -> bool {
        let scopes = self.grant.scopes();
        if !NameScope::depends_on_pools(scopes) {
            return change.is_within(NameScope::new(scopes, []).names());
        }
        let look = |book: &Book| NameScope::new(scopes, book.pools().map(|status| status.pool.spec));
        let scope = self.app.ledger.read(Freshness::Stale, look).await;
        scope.is_ok_and(|scope| change.is_within(scope.value.names()))
    }

    async fn sees(&self, event: &Event) -> bool {
        let scopes = self.grant.scopes();
        if scopes.pools.is_empty() && scopes.vrfs.is_empty() {
            return true;
        }
        let Some(pool) = event.pool() else { return false };
        if !scopes.allows_pool_name(pool) {
            return false;
        }
        if scopes.vrfs.is_empty() {
            return true;
        }
        let seen = self
            .app
            .ledger
            .read(Freshness::Stale, |book| book.vrf_of(pool).is_some_and(|vrf| scopes.allows_vrf(vrf)));
        seen.await.is_ok_and(|seen| seen.value)
    }
}

/// The next changes of the engine, if it is followed; none if some were lost.
async fn next_changes(engine: &mut Option<EngineFeed>) -> Option<LiveChanges> {
    match engine {
        Some(engine) => engine.live.recv().await.ok(),
        None => std::future::pending().await,
    }
}
