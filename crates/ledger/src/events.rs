//! The log of events: finds events by address, key and time without reading all of them.

mod index;
mod postings;
mod unread;

use std::sync::Arc;

use jiff::Timestamp;
use netstead_model::{Address, Cidr, Event, EventKind, Ident, Key, Range};
use netstead_store::{Snapshot, Store, StoreError};

pub(crate) use self::index::EventIndex;
use crate::{
    load::damaged,
    record::{self, EVENT, EventGroup, HEAD_KEY, Head, event_key, event_seq},
    refusal::LedgerError,
};

/// Which events are asked for; every field narrows.
#[derive(Debug, Clone, Default)]
pub struct EventQuery {
    /// Of this address, be it as a part of a prefix.
    pub address: Option<Address>,
    /// Of anything in this range, or around it.
    pub within: Option<Range>,
    pub key: Option<Key>,
    pub pool: Option<Ident>,
    /// Only pools of this list: what the caller may see. Events of no pool are left out then.
    pub pools: Option<Vec<Ident>>,
    pub what: Option<EventKind>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Go on behind this number; below it when the newest come first.
    pub after: Option<u64>,
    pub newest_first: bool,
    pub limit: usize,
}

/// A page of events, and where the next one begins if there may be one.
#[derive(Debug, Clone, Default)]
pub struct EventPage {
    pub events: Vec<Arc<Event>>,
    pub next: Option<u64>,
}

/// Groups looked at for one page when nothing but a scan can find what is asked for.
const SCANNED_AT_MOST: usize = 20_000;
const GROUPS: usize = 256;

impl EventQuery {
    fn wants(&self, event: &Event) -> bool {
        let pool = event.pool();
        let position = match self.after {
            Some(after) if self.newest_first => event.seq < after,
            Some(after) => event.seq > after,
            None => true,
        };
        position
            && self.address.is_none_or(|address| concerns(event, Range::single(address)))
            && self.within.is_none_or(|range| concerns(event, range))
            && self.key.as_ref().is_none_or(|key| event.keys().any(|one| one == key))
            && self.pool.as_ref().is_none_or(|name| pool == Some(name))
            && self.pools.as_ref().is_none_or(|names| pool.is_some_and(|name| names.contains(name)))
            && self.what.is_none_or(|what| what == event.what)
            && self.since.is_none_or(|since| event.at >= since)
            && self.until.is_none_or(|until| event.at <= until)
    }
}

/// Whether an event is of an address or a prefix that has something of `range`.
fn concerns(event: &Event, range: Range) -> bool {
    let prefix = event.claim().and_then(|claim| claim.prefix()).map(Range::from);
    event.address().map(Range::single).into_iter().chain(prefix).any(|of| of.overlaps(range))
}

/// One page of what `query` asks for, out of the store. Where events that may belong to it cannot be read, that is an
/// error at once: a page never leaves them out.
pub(crate) async fn find(
    index: &EventIndex,
    store: &dyn Store,
    query: &EventQuery,
) -> Result<EventPage, LedgerError> {
    if !index.is_ready() {
        // A store that is away says so, and is not waited for.
        store.snapshot().await?;
    }
    let numbers = match (query.address, &query.key) {
        (Some(address), _) => {
            index.ready().await;
            Some(events_around(index, address))
        }
        (None, Some(key)) => {
            index.ready().await;
            Some(index.of_key(key))
        }
        (None, None) => None,
    };
    let snapshot = store.snapshot().await?;
    let Some(numbers) = numbers else {
        // Only a scan can tell.
        return scan(index, &*snapshot, query).await;
    };
    let page = by_number(&*snapshot, numbers, query).await?;
    let (first, last) = covered(query, &page);
    index.ready().await.check(first, last)?;
    Ok(page)
}

/// The numbers that a page says something about: which of them belong to it, and which do not.
fn covered(query: &EventQuery, page: &EventPage) -> (u64, u64) {
    if query.newest_first {
        let last = query.after.map_or(u64::MAX, |after| after.saturating_sub(1));
        (page.next.unwrap_or(0), last)
    } else {
        let first = query.after.map_or(0, |after| after.saturating_add(1));
        (first, page.next.unwrap_or(u64::MAX))
    }
}

/// The events that begin where `address` is, or where a prefix around it begins.
fn events_around(index: &EventIndex, address: Address) -> Vec<u64> {
    let around = (0..address.kind().bits())
        .filter_map(|length| Cidr::containing(address, length).ok())
        .map(|c| c.first());
    let mut starts: Vec<Address> = around.chain([address]).collect();
    starts.sort_unstable();
    starts.dedup();
    let mut numbers: Vec<u64> = starts.into_iter().flat_map(|start| index.of_address(start)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The events behind number `after`, and whether those are all: of very many only the first come.
pub(crate) async fn behind(
    snapshot: &dyn Snapshot,
    after: u64,
) -> Result<(Vec<Arc<Event>>, bool), LedgerError> {
    let mut position = event_key(after).into_bytes();
    let mut events = Vec::new();
    loop {
        let groups = snapshot.range(EVENT.as_bytes(), Some(&position), GROUPS).await?;
        events.extend(decode_groups(&groups)?);
        match groups.last() {
            Some(last) if groups.len() == GROUPS => position.clone_from(&last.key),
            _ => return Ok((events, true)),
        }
        if events.len() >= SCANNED_AT_MOST {
            return Ok((events, false));
        }
    }
}

/// The time of the newest event.
pub(crate) async fn newest(snapshot: &dyn Snapshot) -> Result<Option<Timestamp>, LedgerError> {
    let groups = snapshot.range_back(EVENT.as_bytes(), None, 1).await?;
    Ok(decode_groups(&groups)?.last().map(|event| event.at))
}

async fn by_number(
    snapshot: &dyn Snapshot,
    mut numbers: Vec<u64>,
    query: &EventQuery,
) -> Result<EventPage, LedgerError> {
    if query.newest_first {
        numbers.reverse();
    }
    let mut page = EventPage::default();
    let mut group: Vec<Arc<Event>> = Vec::new();
    for seq in numbers {
        if query.after.is_some_and(|after| if query.newest_first { seq >= after } else { seq <= after }) {
            continue;
        }
        // Neighbours are often in one group.
        if !group.iter().any(|event| event.seq == seq) {
            let before = event_key(seq.saturating_add(1));
            group = decode_groups(&snapshot.range_back(EVENT.as_bytes(), Some(before.as_bytes()), 1).await?)?;
        }
        page.events.extend(group.iter().find(|event| event.seq == seq && query.wants(event)).cloned());
        if page.events.len() >= query.limit {
            page.next = page.events.last().map(|event| event.seq);
            break;
        }
    }
    Ok(page)
}

async fn scan(
    index: &EventIndex,
    snapshot: &dyn Snapshot,
    query: &EventQuery,
) -> Result<EventPage, LedgerError> {
    let mut page = EventPage::default();
    let first = match query.since {
        Some(since) => match index.ready().await.first_possible(index.first_since(since)) {
            Some(first) => first,
            None => return Ok(page),
        },
        None => 0,
    };
    // A group stands under its first number, so the one that `after` lies in may begin before it.
    let mut position: Option<Vec<u8>> = if query.newest_first {
        // Groups that begin below it; the number of the last one is known, which spares a store to look for it.
        let below = match query.after {
            Some(after) => Some(after),
            None => last_event(snapshot).await?.map(|last| last.saturating_add(1)),
        };
        below.map(|below| event_key(below).into_bytes())
    } else {
        let from = query.after.map_or(first, |after| first.max(after.saturating_add(1)));
        let before = event_key(from.saturating_add(1));
        let around = snapshot.range_back(EVENT.as_bytes(), Some(before.as_bytes()), 1).await?;
        around
            .first()
            .and_then(|entry| event_seq(&entry.key))
            .and_then(|seq| seq.checked_sub(1))
            .map(|seq| event_key(seq).into_bytes())
    };
    let (mut scanned, mut most) = (0, GROUPS);
    loop {
        let read = if query.newest_first {
            snapshot.range_back(EVENT.as_bytes(), position.as_deref(), most).await
        } else {
            snapshot.range(EVENT.as_bytes(), position.as_deref(), most).await
        };
        let groups = match read {
            // The page may be full before the damage is reached.
            Err(StoreError::Damaged { .. }) if most > 1 => {
                most /= 2;
                continue;
            }
            read => read?,
        };
        for entry in &groups {
            let mut events = decode_groups(std::slice::from_ref(entry))?;
            if query.newest_first {
                events.reverse();
            }
            for event in events {
                scanned += 1;
                if query.newest_first && event.seq < first {
                    return Ok(page);
                }
                let reached = event.seq;
                if query.wants(&event) {
                    page.events.push(event);
                }
                if page.events.len() >= query.limit || scanned >= SCANNED_AT_MOST {
                    page.next = Some(reached);
                    return Ok(page);
                }
            }
        }
        match groups.last() {
            Some(last) if groups.len() == most => position = Some(last.key.clone()),
            _ => return Ok(page),
        }
    }
}

/// The number of the last event there may be.
async fn last_event(snapshot: &dyn Snapshot) -> Result<Option<u64>, LedgerError> {
    let Some(entry) = snapshot.get(HEAD_KEY.as_bytes()).await? else { return Ok(None) };
    let head: Head = record::decode(&entry.key, &entry.value).map_err(damaged)?;
    Ok(Some(head.seq))
}

fn decode_groups(entries: &[netstead_store::Entry]) -> Result<Vec<Arc<Event>>, LedgerError> {
    let mut events = Vec::new();
    for entry in entries {
        let group: EventGroup = record::decode(&entry.key, &entry.value).map_err(damaged)?;
        events.extend(group.events);
    }
    Ok(events)
}
