//! The one writer: it takes the requests that wait, runs them through the Book and makes all they did durable with one
//! commit, then answers them.

mod group;
mod recovery;
mod retention;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use netstead_model::Event;
use netstead_store::{Commit, Condition, StoreError, Version};
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};

use self::{
    group::{Group, last_of_each},
    retention::Retention,
};
use crate::{
    book::{Book, MOST_RECORDS, Moment},
    command::{Caller, Command, Outcome, Reply},
    ledger::{Done, Durable, Shared, State, deposed},
    record::{self, HEAD_KEY, Head, event_key},
    refusal::{LedgerError, Refusal},
};

/// One command on its way, with the one who asked for it.
#[derive(Debug)]
pub(crate) struct Request {
    pub caller: Caller,
    pub command: Command,
    /// Monotonic time after which nobody wants it any more.
    pub deadline: Duration,
    /// How long a claim may stay in the queue.
    pub wait: Duration,
    pub answer: oneshot::Sender<Result<Done, LedgerError>>,
}

/// A caller whose claim is in the queue.
#[derive(Debug)]
struct Waiter {
    request: Request,
    until: Duration,
    queued: Reply,
}

/// Requests looked at for one commit.
const GROUP: usize = 256;
/// How often the callers of waiting claims are counted as present.
const PRESENCE: Duration = Duration::from_secs(5);

pub(crate) struct Writer {
    shared: Arc<Shared>,
    inbox: mpsc::Receiver<Request>,
    /// Decided last time but one too many for the commit.
    put_off: VecDeque<Request>,
    head: Head,
    version: Version,
    /// Ledger time is `head_time` plus what the monotonic clock has moved since `head_mono`.
    head_time: u64,
    head_mono: Duration,
    last_commit: Duration,
    retention: Retention,
    waiters: HashMap<u64, Vec<Waiter>>,
}

impl Writer {
    pub fn new(shared: Arc<Shared>, inbox: mpsc::Receiver<Request>, head: Head, version: Version) -> Self {
        let now = shared.clock.monotonic();
        Self {
            put_off: VecDeque::new(),
            head_time: head.time,
            head_mono: now,
            last_commit: now,
            retention: Retention::default(),
            waiters: HashMap::new(),
            shared,
            inbox,
            head,
            version,
        }
    }

    pub async fn run(mut self) {
        let stop = self.shared.stop.clone();
        loop {
            let pause = self.pause();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = std::future::ready(()), if !self.put_off.is_empty() => {}
                request = self.inbox.recv() => match request {
                    Some(request) => self.put_off.push_back(request),
                    None => break,
                },
                () = sleep(pause) => {}
            }
            self.turn().await;
        }
        self.shared.state.send_replace(State::Closed);
        self.refuse_all("it is shutting down");
    }

    /// How long nothing needs to happen if nobody asks.
    fn pause(&self) -> Duration {
        if *self.shared.state.borrow() == State::Deposed {
            return Duration::from_hours(1);
        }
        let book = self.shared.book();
        let now = self.ledger_time();
        let due = book.next_due().map(|due| Duration::from_millis(due.saturating_sub(now).max(1)));
        let due = due.unwrap_or(Duration::from_hours(1)).min(self.until_tick(book.depends_on_time()));
        let first_wait = self.waiters.values().flatten().map(|waiter| waiter.until).min();
        let wait = first_wait.map(|until| until.saturating_sub(self.shared.clock.monotonic()).min(PRESENCE));
        due.min(wait.unwrap_or(Duration::from_hours(1))).max(Duration::from_millis(1))
    }

    fn until_tick(&self, depends: bool) -> Duration {
        if !depends {
            return Duration::from_hours(1);
        }
        let since = self.shared.clock.monotonic().saturating_sub(self.last_commit);
        self.shared.options.time_interval.saturating_sub(since)
    }

    fn ledger_time(&self) -> u64 {
        let passed = self.shared.clock.monotonic().saturating_sub(self.head_mono);
        self.head_time.saturating_add(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
    }

    fn moment(&self) -> Moment {
        Moment { now: self.ledger_time(), wall: self.shared.clock.wall(), random: rand::random() }
    }

    /// One group: decide, commit, answer.
    async fn turn(&mut self) {
        while self.put_off.len() < GROUP {
            match self.inbox.try_recv() {
                Ok(request) => self.put_off.push_back(request),
                Err(_) => break,
            }
        }
        if *self.shared.state.borrow() == State::Deposed {
            return self.refuse_all("another Netstead leads this store now");
        }
        let before = self.shared.book().seq();
        let group = self.decide();
        let tick = self.until_tick(self.shared.book().depends_on_time()).is_zero();
        if group.writes.is_empty() && group.batch.is_empty() && !tick {
            return self.confirm(group).await;
        }
        self.commit(group, before).await;
        self.trim_if_due().await;
    }

    /// Runs what waits through the Book, as much as one commit can hold.
    fn decide(&mut self) -> Group {
        let mut group = Group::default();
        let moment = self.moment();
        let clock_now = self.shared.clock.monotonic();
        let shared = self.shared.clone();
        let mut book = shared.book_mut();
        self.waiters.retain(|_, waiters| {
            waiters.retain(|waiter| !waiter.request.answer.is_closed());
            !waiters.is_empty()
        });
        // However long the last commit took: who is still here now has been here all the time.
        book.advance(moment.now);
        for seq in self.waiters.keys() {
            book.hear(*seq);
        }
        housekeep(&mut book, &mut group, moment);
        self.time_out(&mut book, &mut group, moment, clock_now);
        while let Some(request) = self.put_off.pop_front() {
            if request.deadline < clock_now {
                let _ = request.answer.send(Err(LedgerError::TooLate));
                continue;
            }
            let (mark, size) = (book.mark(&group.batch), group.size());
            let moment = Moment { random: rand::random(), ..moment };
            let result = book.run(&mut group.batch, moment, &request.caller, &request.command);
            group.encode_new(&size);
            if group.fits() {
                group.answers.push((request, result));
                continue;
            }
            book.rewind(&mut group.batch, mark);
            group.shrink(&size);
            if group.batch.is_empty() {
                let refusal = Refusal::invalid(
                    "request",
                    "it changes more than one commit can hold; send less at once",
                );
                group.answers.push((request, Err(refusal)));
                continue;
            }
            self.put_off.push_front(request);
            break;
        }
        group
    }

    /// Takes claims out of the queue whose callers have waited long enough.
    fn time_out(&mut self, book: &mut Book, group: &mut Group, moment: Moment, now: Duration) {
        let late: Vec<u64> = self
            .waiters
            .iter()
            .filter(|(_, ws)| ws.iter().any(|w| w.until <= now))
            .map(|(seq, _)| *seq)
            .collect();
        for seq in late {
            if group.served.iter().any(|served| served.waiting == seq) {
                continue;
            }
            let Some(waiters) = self.waiters.remove(&seq) else { continue };
            let (late, early): (Vec<_>, Vec<_>) = waiters.into_iter().partition(|waiter| waiter.until <= now);
            let (mark, size) = (book.mark(&group.batch), group.size());
            let last = late.last().filter(|_| early.is_empty());
            if let Some(Waiter { request, queued: Reply::Queued(waiting), .. }) = last
                && let Some(pool) = waiting.pools.first().filter(|_| !waiting.keep)
            {
                let command = Command::Abandon { pool: pool.clone(), key: waiting.key.clone() };
                // Only its own owner is asked for, so it cannot be refused; if it were, it would lapse.
                let _ = book.run(&mut group.batch, moment, &request.caller, &command);
                group.encode_new(&size);
            }
            if !group.fits() {
                book.rewind(&mut group.batch, mark);
                group.shrink(&size);
                self.waiters.insert(seq, late);
                break;
            }
            if !early.is_empty() {
                self.waiters.insert(seq, early);
            }
            let refused = |waiter: Waiter| waiter.refusal(book).map(|refusal| (waiter, refusal));
            group.timed_out.extend(late.into_iter().filter_map(refused));
        }
    }

    /// Nothing was written, but the answers are still only true if this process leads: ask the store.
    async fn confirm(&mut self, group: Group) {
        if group.answers.is_empty() && group.timed_out.is_empty() {
            return;
        }
        match self.shared.store.get(HEAD_KEY.as_bytes()).await {
            Ok(Some(entry)) if entry.version == self.version => {
                self.shared.confirmed.send_replace(self.shared.clock.monotonic());
                self.answer(group);
            }
            Ok(_) => drop(self.recover(None, group, "the head changed under us").await),
            Err(error) => drop(self.recover(None, group, &plain(&error)).await),
        }
    }

    async fn commit(&mut self, mut group: Group, before: u64) {
        let (seq, paused) = {
            let mut book = self.shared.book_mut();
            if group.batch.events().is_empty() {
                book.count_silent_commit();
            }
            (book.seq(), book.paused())
        };
        let head = Head {
            seq,
            epoch: self.shared.epoch,
            batch: rand::random(),
            time: self.ledger_time(),
            paused,
            ..self.head.clone()
        };
        let mut commit = Commit::new()
            .when(Condition::Version(HEAD_KEY.into(), self.version))
            .put(HEAD_KEY, record::encode(&head));
        commit.writes.append(&mut last_of_each(std::mem::take(&mut group.writes)));
        if let Some(first) = group.batch.events().first() {
            commit = commit.put(event_key(first.seq), record::event_group(&group.events));
        }
        match self.shared.store.commit(commit).await {
            Ok(committed) => {
                self.version = committed.version;
                self.landed(head);
                self.shared.counters.requests.fetch_add(group.answers.len() as u64, Relaxed);
                self.publish(group.batch.events());
                self.answer(group);
            }
            Err(error) => {
                use StoreError::{Refused, Unknown};
                group.unsure = matches!(error, Unknown { .. });
                match &error {
                    Refused { .. } => self.shared.counters.refused_commits.fetch_add(1, Relaxed),
                    Unknown { .. } => self.shared.counters.unknown_commits.fetch_add(1, Relaxed),
                    _ => 0,
                };
                self.take_back(&mut group, before);
                self.recover(Some(head.batch), group, &plain(&error)).await;
            }
        }
    }

    /// A commit of ours is durable: this is where the ledger stands now.
    fn landed(&mut self, head: Head) {
        self.last_commit = self.shared.clock.monotonic();
        self.shared.confirmed.send_replace(self.last_commit);
        self.shared.counters.commits.fetch_add(1, Relaxed);
        self.shared.oldest.send_replace(head.oldest);
        self.shared.durable.send_modify(|durable| durable.seq = head.seq);
        self.head = head;
    }

    fn publish(&self, events: &[Arc<Event>]) {
        self.shared.index.add(events);
        for event in events {
            // Nobody may be listening.
            let _ = self.shared.events.send(event.clone());
        }
    }

    /// The Book goes back to what is known to be durable, so that nobody reads what may never have been.
    fn take_back(&self, group: &mut Group, seq: u64) {
        let mut book = self.shared.book_mut();
        book.rewind_all(&mut group.batch, seq);
        self.shared.durable.send_modify(|durable| durable.rewinds += 1);
    }

    fn answer(&mut self, group: Group) {
        let seq = self.head.seq;
        for served in group.served {
            for waiter in self.waiters.remove(&served.waiting).into_iter().flatten() {
                let reply = Reply::Claimed { claim: served.claim.clone(), outcome: Outcome::Created };
                let _ = waiter.request.answer.send(Ok(Done { reply, seq }));
            }
        }
        for (waiter, refusal) in group.timed_out {
            let keep = matches!(&waiter.queued, Reply::Queued(waiting) if waiting.keep);
            let result = if keep { Ok(Done { reply: waiter.queued, seq }) } else { Err(refusal.into()) };
            let _ = waiter.request.answer.send(result);
        }
        let now = self.shared.clock.monotonic();
        for (request, result) in group.answers {
            match result {
                Ok(queued @ Reply::Queued(_)) if !request.wait.is_zero() => {
                    if let Reply::Queued(waiting) = &queued {
                        let until = now.saturating_add(request.wait);
                        let waiter = Waiter { until, queued: queued.clone(), request };
                        self.waiters.entry(waiting.seq).or_default().push(waiter);
                    }
                }
                result => {
                    // A caller that is gone will ask again.
                    let _ = request
                        .answer
                        .send(result.map(|reply| Done { reply, seq }).map_err(LedgerError::from));
                }
            }
        }
        self.dismiss(seq);
    }

    /// Answers those who wait for a place in the queue that is gone: somebody gave it up for them, or its pool went, or
    /// the key got its address another way.
    fn dismiss(&mut self, seq: u64) {
        let book = self.shared.book();
        let gone = self.waiters.extract_if(|place, _| !book.is_waiting(*place));
        for waiter in gone.flat_map(|(_, waiters)| waiters) {
            let Reply::Queued(waiting) = &waiter.queued else { continue };
            let claims = waiting.pools.iter().filter_map(|pool| book.claim(pool, &waiting.key));
            let claim = claims.map(|view| view.claim).find(|claim| claim.owner == waiting.owner);
            let result = match (claim, waiter.refusal(&book)) {
                (Some(claim), _) => {
                    Ok(Done { reply: Reply::Claimed { claim, outcome: Outcome::Repeated }, seq })
                }
                (None, Some(refusal)) => Err(refusal.into()),
                (None, None) => continue,
            };
            let _ = waiter.request.answer.send(result);
        }
    }

    fn refuse_all(&mut self, reason: &str) {
        let error = LedgerError::Unavailable { reason: reason.to_owned() };
        while let Ok(request) = self.inbox.try_recv() {
            self.put_off.push_back(request);
        }
        for request in self.put_off.drain(..) {
            let _ = request.answer.send(Err(error.clone()));
        }
        for waiter in self.waiters.drain().flat_map(|(_, waiters)| waiters) {
            let _ = waiter.request.answer.send(Err(error.clone()));
        }
    }
}

/// Does what is due, as far as it fits into one commit: things of many words come a few at a time.
fn housekeep(book: &mut Book, group: &mut Group, moment: Moment) {
    let mut most = MOST_RECORDS;
    loop {
        let (mark, size) = (book.mark(&group.batch), group.size());
        group.served = book.housekeep_up_to(most, &mut group.batch, moment);
        group.encode_new(&size);
        // One waiting claim that is served takes three records.
        if group.fits() || most <= 3 {
            return;
        }
        book.rewind(&mut group.batch, mark);
        group.shrink(&size);
        most /= 2;
    }
}

impl Waiter {
    /// What it hears when it gets no address.
    fn refusal(&self, book: &Book) -> Option<Refusal> {
        let Reply::Queued(waiting) = &self.queued else { return None };
        waiting.pools.first().map(|pool| book.exhausted(pool))
    }
}

/// What the caller of an unfinished request hears.
fn unlearned(reason: &str) -> LedgerError {
    LedgerError::Unknown { reason: reason.to_owned() }
}

impl Writer {
    fn deposed(&mut self, group: Group) {
        self.shared.state.send_replace(State::Deposed);
        // Whoever leads now replaced the head, so whether our last commit landed before that cannot be learned here.
        let error = if group.unsure { unlearned("another Netstead leads this store now") } else { deposed() };
        group.fail(&error);
        self.refuse_all("another Netstead leads this store now");
        // Readers wait for a Book that is durable; this one is as durable as it will get.
        let seq = self.shared.book().seq();
        self.shared.durable.send_modify(|durable: &mut Durable| durable.seq = seq);
    }
}

/// Only the reason: what became of the commit is learned first.
fn plain(error: &StoreError) -> String {
    match error {
        StoreError::Unknown { reason } | StoreError::Unavailable { reason } => reason.clone(),
        other => other.to_string(),
    }
}
