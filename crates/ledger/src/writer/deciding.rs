//! Decides requests with the Book, as many as fit into one commit.

use std::time::Duration;

use super::{Waiter, Writer, commit_group::Group};
use crate::{
    book::{Book, MOST_RECORDS, Moment},
    command::{Command, Reply},
    refusal::{LedgerError, Refusal},
};

impl Writer {
    /// A new group, with what is due without a request: ends of leases, rests and waits.
    pub(super) fn begin_group(&mut self) -> Group {
        let moment = self.moment();
        let clock_now = self.shared.clock.monotonic();
        let shared = self.shared.clone();
        let mut book = shared.book_mut();
        let mut group = Group { before: book.seq(), ..Group::default() };
        self.waiters.retain(|_, waiters| {
            waiters.retain(|waiter| !waiter.request.answer.is_closed());
            !waiters.is_empty()
        });
        // However long the last commit took: a caller that is still connected was there all the time.
        book.advance(moment.now);
        for seq in self.waiters.keys() {
            book.note_caller_present(*seq);
        }
        housekeep(&mut book, &mut group, moment);
        self.time_out(&mut book, &mut group, moment, clock_now);
        group
    }

    /// Runs what waits through the Book, until `most` requests are in the group or no other fits into its commit.
    pub(super) fn decide_requests(&mut self, group: &mut Group, most: usize) {
        let moment = self.moment();
        let clock_now = self.shared.clock.monotonic();
        let shared = self.shared.clone();
        let mut book = shared.book_mut();
        while group.answers.len() < most
            && let Some(request) = self.put_off.pop_front()
        {
            if request.deadline < clock_now {
                let _ = request.answer.send(Err(LedgerError::TooLate));
                continue;
            }
            let (mark, size) = (book.savepoint(&group.batch), group.size());
            let moment = Moment { random: shared.options.randomness.number(), ..moment };
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
    }

    /// Takes claims out of the queue whose callers have waited long enough, unless they keep their place. Whether they
    /// do is what the Book knows: who asked again may have changed it since.
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
            let (mark, size) = (book.savepoint(&group.batch), group.size());
            let waiting = book.waiting_at(seq).cloned();
            // A claim at a backend goes on: it lapses only when its caller stays away.
            let kept = waiting.clone().filter(|waiting| waiting.keep || waiting.draw.is_some());
            let last = late.last().filter(|_| early.is_empty() && kept.is_none());
            if let (Some(Waiter { request, .. }), Some(waiting)) = (last, waiting)
                && let Some(pool) = waiting.pools.first()
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
            let heard = |waiter: Waiter| match &kept {
                Some(waiting) => Some((waiter, Ok(Reply::Queued(waiting.clone())))),
                None => waiter.refusal(book).map(|refusal| (waiter, Err(refusal))),
            };
            group.timed_out.extend(late.into_iter().filter_map(heard));
        }
    }
}

/// Does what is due, as far as it fits into one commit: things of many words come a few at a time.
fn housekeep(book: &mut Book, group: &mut Group, moment: Moment) {
    let mut most = MOST_RECORDS;
    loop {
        let (mark, size) = (book.savepoint(&group.batch), group.size());
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
