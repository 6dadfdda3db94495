//! Claims of any free address. Those that wait at the same time share one transaction.
//!
//! 1. The first claim of a set of ranges starts a task. It takes the claims that wait, 42 at most.
//! 2. One transaction reads the ranges and the names (or a mirror has them).
//! 3. One transaction writes, if everything is as it was read. If not, the same answer brings what changed, and step 3 is tried again.
//! 4. If the answer is lost, the names are read: a name with the address it was to get has it.
//!
//! So a claim takes two round trips however full the range is, and a conflict takes one more. A claim whose caller no longer waits
//! is dropped before it is written.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};

use super::{
    error::NetaddrError,
    layout::{AddressList, RangeKeys, delete, exists, found, get, is_at, put},
    packing::{Decision, MOST_CLAIMS, Packed, PendingMark, ReadMore, pack},
    raw::{RangeType, RawAddress},
    session::{Session, Written, locked},
    view::{FixedFrom, Held, READS, RangeView, reads, views},
};

/// Ranges that one claim may choose from: all are read in one transaction.
pub const MOST_RANGES: usize = 20;
/// How long a claim is waited for after its time is over: a request may be under way.
const MARGIN: Duration = Duration::from_secs(30);
/// Reads of one transaction.
const MOST_READS: usize = 128;

/// The address of a name after a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    pub range: String,
    pub kind: RangeType,
    pub address: RawAddress,
    /// The revision at which the name was written. A later holder of the name has another.
    pub created: i64,
    /// It did not hold it before.
    pub made: bool,
}

type Answer = Result<Claimed, NetaddrError>;

/// Claims that wait for the same ranges.
#[derive(Debug, Default)]
pub(super) struct Queue(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    claims: VecDeque<Waiter>,
    running: bool,
}

#[derive(Debug)]
struct Waiter {
    name: String,
    kind: Option<RangeType>,
    deadline: Duration,
    answer: oneshot::Sender<Answer>,
    /// The address it was to get in a transaction whose answer was lost.
    tried: Option<RawAddress>,
}

impl Session {
    /// Gives `name` an address of the first of `ranges` with room, or the one it holds.
    pub(super) async fn claim(
        self: &Arc<Self>,
        ranges: &[String],
        kind: Option<RangeType>,
        name: &str,
    ) -> Answer {
        let (answer, wait) = oneshot::channel();
        let deadline = self.deadline();
        let waiter = Waiter { name: name.to_owned(), kind, deadline, answer, tried: None };
        let queue = Arc::clone(locked(&self.queues).entry(ranges.to_vec()).or_default());
        let start = {
            let mut waiting = locked(&queue.0);
            waiting.claims.push_back(waiter);
            !std::mem::replace(&mut waiting.running, true)
        };
        if start {
            let (session, ranges) = (Arc::clone(self), ranges.to_vec());
            tokio::spawn(async move { session.work(&queue, &ranges).await });
        }
        let longest = self.options.patience.saturating_add(MARGIN);
        timeout(longest, wait).await.ok().and_then(Result::ok).unwrap_or_else(|| {
            let reason = "the claim was not answered".to_owned();
            Err(NetaddrError::Unknown { url: self.client.url().to_owned(), reason })
        })
    }

    async fn work(&self, queue: &Queue, ranges: &[String]) {
        let keys: Vec<RangeKeys> = ranges.iter().map(|range| RangeKeys::new(range)).collect();
        let most = (MOST_READS / keys.len().max(1)).saturating_sub(READS).clamp(1, MOST_CLAIMS);
        loop {
            // Claims that arrive together go together.
            tokio::task::yield_now().await;
            let batch: Vec<Waiter> = {
                let mut waiting = locked(&queue.0);
                let count = most.min(waiting.claims.len());
                if count == 0 {
                    waiting.running = false;
                    return;
                }
                waiting.claims.drain(..count).collect()
            };
            let later = self.carry_out(&keys, batch).await;
            let mut waiting = locked(&queue.0);
            for waiter in later.into_iter().rev() {
                waiting.claims.push_front(waiter);
            }
        }
    }

    /// Works until each claim is answered. Returns those that found no room in the transaction.
    async fn carry_out(&self, ranges: &[RangeKeys], mut batch: Vec<Waiter>) -> Vec<Waiter> {
        let mut later = Vec::new();
        let mut known: Option<Vec<RangeView>> = None;
        let (mut round, mut fresh) = (0, false);
        loop {
            batch = self.drop_ended(batch);
            if batch.is_empty() {
                return later;
            }
            let names: Vec<String> = batch.iter().map(|waiter| waiter.name.clone()).collect();
            let copied = if round == 0 && !fresh { self.mirrored(ranges, &names) } else { None };
            // A copy may be behind. What it says of a name is not told to a caller; it is read.
            let copied = copied.filter(|views| views.iter().all(|view| view.names.is_empty()));
            let is_copy = known.is_none() && copied.is_some();
            let seen = match known.take().or(copied) {
                Some(views) => Ok(views),
                None => self.read_views(ranges, &names).await,
            };
            let seen = match seen {
                Ok(seen) => seen,
                Err(error) => {
                    fail(batch, &error);
                    return later;
                }
            };
            batch = refuse_other_types(&seen, batch);
            let names: Vec<String> = batch.iter().map(|waiter| waiter.name.clone()).collect();
            let mark = self.pending_mark().await;
            let packed = match pack(&seen, &names, mark.as_ref()) {
                Ok(packed) => packed,
                Err(ReadMore(at)) => {
                    if let Some(keys) = ranges.get(at) {
                        self.forget_pointer(keys.prefix());
                    }
                    match self.read_views(ranges, &names).await {
                        Ok(views) => known = Some(views),
                        Err(error) => {
                            fail(batch, &error);
                            return later;
                        }
                    }
                    continue;
                }
            };
            if is_copy && packed.decisions.contains(&Decision::Full) {
                fresh = true;
                continue;
            }
            let (writing, more) = answer_known(&seen, batch, &packed);
            later.extend(more);
            if writing.is_empty() {
                return later;
            }
            let names: Vec<String> = writing.iter().map(|(waiter, ..)| waiter.name.clone()).collect();
            let from = self.fixed_from(ranges);
            let failure = reads(ranges, &from, &names);
            let result = self.write(packed.compare.clone(), packed.success.clone(), failure).await;
            batch = match result {
                Ok(written) if written.succeeded => {
                    self.note_written(ranges, &packed, &written);
                    self.put_back(ranges, &packed, &written).await;
                    answer_written(&seen, writing, written.revision);
                    return later;
                }
                Ok(written) => {
                    round += 1;
                    let changed = match views(ranges, &from, &names, written.responses, written.revision) {
                        Ok(Some(views)) => views,
                        Ok(None) => Vec::new(),
                        Err(error) => {
                            fail(waiters(writing), &error);
                            return later;
                        }
                    };
                    if changed.is_empty() {
                        for keys in ranges {
                            self.forget_pointer(keys.prefix());
                        }
                    } else if !self.remove_stale(&changed, &packed).await {
                        known = Some(changed);
                    }
                    Self::step_back(round).await;
                    waiters(writing)
                }
                Err(error @ (NetaddrError::Unknown { .. } | NetaddrError::LeaseEnded { .. })) => {
                    round += 1;
                    Self::step_back(round).await;
                    tried(writing, &error)
                }
                Err(error) => {
                    fail(waiters(writing), &error);
                    return later;
                }
            };
        }
    }

    pub(super) async fn read_views(
        &self,
        ranges: &[RangeKeys],
        names: &[String],
    ) -> Result<Vec<RangeView>, NetaddrError> {
        loop {
            let from = self.fixed_from(ranges);
            let Written { responses, revision, .. } = self.read(reads(ranges, &from, names)).await?;
            if let Some(views) = views(ranges, &from, names, responses, revision)? {
                for view in &views {
                    self.note_pointer(view.keys.prefix(), &view.next);
                }
                return Ok(views);
            }
            // A range that was made anew: its pointer went back.
            for keys in ranges {
                self.forget_pointer(keys.prefix());
            }
        }
    }

    fn fixed_from(&self, ranges: &[RangeKeys]) -> Vec<FixedFrom> {
        ranges.iter().map(|keys| FixedFrom(self.pointer(keys.prefix()))).collect()
    }

    pub(super) async fn pending_mark(&self) -> Option<PendingMark> {
        let lease = self.pending_lease().await?;
        self.options.origin.clone().map(|origin| PendingMark { lease, origin })
    }

    /// Answers claims whose time is over, and drops those that no caller waits for.
    fn drop_ended(&self, batch: Vec<Waiter>) -> Vec<Waiter> {
        let mut kept = Vec::new();
        for waiter in batch {
            if waiter.answer.is_closed() {
                continue;
            }
            if Self::is_over(waiter.deadline) {
                let error = self.too_busy();
                let _ = waiter.answer.send(Err(after(waiter.tried.as_ref(), &error)));
            } else {
                kept.push(waiter);
            }
        }
        kept
    }

    fn note_written(&self, ranges: &[RangeKeys], packed: &Packed, written: &Written) {
        for (at, pointer) in &packed.pointers {
            if let Some(keys) = ranges.get(*at) {
                self.note_pointer(keys.prefix(), pointer);
            }
        }
        for keys in ranges {
            self.note_revision(keys.prefix(), written.revision);
        }
    }

    /// Gives back fixed addresses that were released while the pointer passed them: they are free, and behind it.
    async fn put_back(&self, ranges: &[RangeKeys], packed: &Packed, written: &Written) {
        for (at, skipped, response) in &packed.read_back {
            let Some(keys) = ranges.get(*at) else { continue };
            let there = found(written.responses.get(*response).cloned());
            let is_there = |address: &&RawAddress| {
                let key = keys.address(AddressList::Hardcoded, address);
                !there.kvs.iter().any(|kv| kv.key == key)
            };
            for address in skipped.iter().filter(is_there) {
                let lists = [AddressList::Hardcoded, AddressList::Generated, AddressList::Deleted];
                let compare = lists.map(|list| is_at(keys.address(list, address), 0)).to_vec();
                let freed = put(keys.address(AddressList::Deleted, address), Vec::new());
                if let Err(error) = self.write(compare, vec![freed], Vec::new()).await {
                    tracing::warn!(%error, ?address, "A free address could not be given back to its range.");
                }
            }
        }
    }

    /// Removes from the list of free addresses those that are held: the original provider leaves them there when a fixed address is
    /// taken at the moment in which it is given back. Returns whether there were any.
    async fn remove_stale(&self, seen: &[RangeView], packed: &Packed) -> bool {
        let mut removed = false;
        for (at, address, revision) in &packed.reused {
            let Some(view) = seen.get(*at) else { continue };
            if !view.freed.iter().any(|freed| freed.0 == *address && freed.1 == *revision) {
                continue;
            }
            for list in [AddressList::Hardcoded, AddressList::Generated] {
                let key = view.keys.address(AddressList::Deleted, address);
                let compare = vec![is_at(key.clone(), *revision), exists(view.keys.address(list, address))];
                let written = self.write(compare, vec![delete(key)], Vec::new()).await;
                removed |= written.is_ok_and(|written| written.succeeded);
            }
        }
        removed
    }

    /// The mark of a creation of this origin that was cut off, if the name has one of another process.
    pub(super) async fn was_cut_off(&self, range: &str, name: &str) -> Result<bool, NetaddrError> {
        let Some(origin) = &self.options.origin else { return Ok(false) };
        let keys = RangeKeys::new(range);
        let answer = self.read(vec![get(keys.pending(name))]).await?;
        let mark = found(answer.responses.into_iter().next()).one();
        let Some(mark) = mark.filter(|kv| kv.value == origin.as_bytes()) else { return Ok(false) };
        Ok(!self.is_own_mark(mark.lease).await)
    }
}

fn fail(batch: Vec<Waiter>, error: &NetaddrError) {
    for waiter in batch {
        let _ = waiter.answer.send(Err(after(waiter.tried.as_ref(), error)));
    }
}

fn waiters(writing: Vec<Writing>) -> Vec<Waiter> {
    writing.into_iter().map(|(waiter, ..)| waiter).collect()
}

/// Claims that are tried again: the answer to their transaction was lost, or it did nothing because its lease had ended.
fn tried(writing: Vec<Writing>, error: &NetaddrError) -> Vec<Waiter> {
    let lost = matches!(error, NetaddrError::Unknown { .. });
    let again = |(waiter, _, address): Writing| {
        let tried = if lost { Some(address) } else { waiter.tried };
        Waiter { tried, ..waiter }
    };
    writing.into_iter().map(again).collect()
}

/// The error for a claim, when it may have been done earlier.
fn after(tried: Option<&RawAddress>, error: &NetaddrError) -> NetaddrError {
    match (tried, error) {
        (Some(_), NetaddrError::Unavailable { url, reason }) => {
            NetaddrError::Unknown { url: url.clone(), reason: reason.clone() }
        }
        _ => error.clone(),
    }
}

fn refuse_other_types(seen: &[RangeView], batch: Vec<Waiter>) -> Vec<Waiter> {
    let mut kept = Vec::new();
    for waiter in batch {
        let wrong =
            waiter.kind.and_then(|kind| seen.iter().find_map(|view| view.info.is(&view.keys, kind).err()));
        match wrong {
            Some(error) => drop(waiter.answer.send(Err(error))),
            None => kept.push(waiter),
        }
    }
    kept
}

type Writing = (Waiter, usize, RawAddress);

/// Answers what is known without writing. Returns what is written, and what must wait for another transaction.
fn answer_known(seen: &[RangeView], batch: Vec<Waiter>, packed: &Packed) -> (Vec<Writing>, Vec<Waiter>) {
    let (mut writing, mut later) = (Vec::new(), Vec::new());
    for (waiter, decision) in batch.into_iter().zip(&packed.decisions) {
        match decision {
            Decision::Has(at, Held { address, created, .. }) => {
                let Some(view) = seen.get(*at) else { continue };
                let (range, kind) = (view.keys.prefix().to_owned(), view.info.kind);
                let made = waiter.tried.as_ref() == Some(address);
                let (address, created) = (address.clone(), *created);
                let _ = waiter.answer.send(Ok(Claimed { range, kind, address, created, made }));
            }
            Decision::Gets(at, address) => writing.push((waiter, *at, address.clone())),
            Decision::Full => {
                let ranges = seen.iter().map(|view| view.keys.prefix().to_owned()).collect();
                let _ = waiter.answer.send(Err(NetaddrError::Full { ranges }));
            }
            Decision::Later => later.push(waiter),
        }
    }
    (writing, later)
}

fn answer_written(seen: &[RangeView], writing: Vec<Writing>, revision: i64) {
    for (waiter, at, address) in writing {
        let Some(view) = seen.get(at) else { continue };
        let (range, kind) = (view.keys.prefix().to_owned(), view.info.kind);
        let _ = waiter.answer.send(Ok(Claimed { range, kind, address, created: revision, made: true }));
    }
}
