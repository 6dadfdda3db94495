//! The Book and the naive model get the same random commands and must give the same answers.
//!
//! `PROPTEST_CASES=5000 cargo test -p netstead-ledger --test it properties` looks longer.

use std::sync::Arc;

use jiff::Timestamp;
use netstead_ledger::{
    AddressFilter, AddressView, Book, Caller, ClaimFilter, ClaimView, Command, Moment, Refusal, Reply,
    book::{Batch, Served},
    record::Head,
};
use netstead_model::{
    ClaimId, Event, EventKind, Family, Ident, Observation, Order, PoolStatus, Reservation, Usage, Waiting,
};
use proptest::{
    prelude::*,
    test_runner::{TestCaseError, TestRunner},
};

use crate::{
    model::Model,
    random_commands::{Run, Setting, Step, run, tussle},
    random_pools,
    rebuild::{BlockingStore, Stored, face},
    store_under_test::StoreFactory,
};

pub(crate) const LEDGER: u32 = 0x1f0c_22ab;

/// Book and model side by side, and what the store would hold.
pub(crate) struct Pair {
    pub book: Book,
    pub model: Model,
    pub stored: Stored,
    now: u64,
    random: u64,
    ids: Vec<ClaimId>,
    /// Commands and answers, to find out why a run failed.
    trail: Vec<String>,
}

pub(crate) fn wall() -> Timestamp {
    Timestamp::from_second(1_000_000_000).unwrap()
}

impl Pair {
    fn new(paused: bool, stored: Stored) -> Self {
        let head =
            Head { ledger: LEDGER, seq: 0, epoch: 1, batch: 1, time: 0, paused, oldest: 0, calendar: None };
        Self {
            book: Book::new(&head),
            model: Model::new(LEDGER, wall(), paused),
            stored,
            now: 0,
            random: 1,
            ids: Vec::new(),
            trail: Vec::new(),
        }
    }

    fn moment(&self) -> Moment {
        Moment { now: self.now, wall: wall(), random: self.random }
    }

    fn command(&self, run: &Run, step: &Step) -> Option<(Caller, Command)> {
        Setting { theme: &run.theme, ids: &self.ids, seq: self.model.seq, keys: run.keys }.command(step)
    }

    /// Time goes on, and what is due happens.
    fn housekeep(&mut self, by: u64) -> Result<(), TestCaseError> {
        self.now += by;
        let mut batch = Batch::default();
        let served = self.book.housekeep(&mut batch, self.moment());
        self.stored.commit_batch(&batch, &self.book);
        self.compare_askers(&batch, &served)?;
        let expected = self.model.housekeep(self.now, &served);
        let got: Vec<_> =
            served.iter().map(|Served { waiting, claim }| (*waiting, (**claim).clone())).collect();
        prop_assert_eq!(&got, &expected, "the queue moved otherwise");
        self.ids.extend(got.iter().map(|(_, claim)| claim.id));
        self.compare()
    }

    /// The event of a claim that waited says who asked for it, with which request.
    fn compare_askers(&self, batch: &Batch, served: &[Served]) -> Result<(), TestCaseError> {
        for Served { waiting, claim } in served {
            let waiting = self.model.queue.iter().map(|q| &q.waiting).find(|w| w.seq == *waiting).unwrap();
            let claimed = |event: &&Arc<Event>| {
                event.what == EventKind::Claimed && event.claim().is_some_and(|of| of.id == claim.id)
            };
            let event = batch.events().iter().find(claimed).unwrap();
            prop_assert_eq!((Some(&event.by), &event.request), (waiting.by.as_ref(), &waiting.request));
        }
        Ok(())
    }

    fn ask(&mut self, caller: &Caller, command: &Command) -> Result<(), TestCaseError> {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut batch = Batch::default();
        let got = self.book.run(&mut batch, self.moment(), caller, command);
        let who = format!("{}{}", caller.owner(), if caller.manager { "!" } else { "" });
        self.trail.push(format!("{:>7} {who}: {command:?} -> {got:?}", self.now));
        prop_assert!(got.is_ok() || batch.is_empty(), "a refusal wrote something");
        self.stored.commit_batch(&batch, &self.book);
        let random = || self.model.pools.values().any(|pool| pool.spec.order == Order::Random);
        if got.is_err() && matches!(command, Command::Bulk(_)) && random() {
            // The draws before a refusal are not known.
            return self.compare();
        }
        let expected = self.model.run(caller, command, got.as_ref().ok());
        prop_assert_eq!(plain(&got), plain(&expected));
        self.note_ids(got.as_ref().ok());
        self.compare()
    }

    fn note_ids(&mut self, reply: Option<&Reply>) {
        match reply {
            Some(Reply::Claimed { claim, .. }) => self.ids.push(claim.id),
            Some(Reply::Bulk(replies)) => replies.iter().for_each(|reply| self.note_ids(Some(reply))),
            _ => {}
        }
    }

    /// Everything that can be seen is the same.
    fn compare(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.book.seq(), self.model.seq, "events were counted otherwise");
        let usages: Vec<(Ident, Usage)> =
            self.book.pools().map(|status| (status.pool.spec.name, status.usage)).collect();
        let expected: Vec<_> =
            self.model.pools.keys().map(|name| (name.clone(), self.model.usage(name))).collect();
        prop_assert_eq!(usages, expected);
        let claims = self.book.claims(&ClaimFilter::default(), None, usize::MAX);
        let got: Vec<_> =
            claims.iter().map(|v| ((*v.claim).clone(), v.left.map(|left| left.as_millis()))).collect();
        let mut expected: Vec<_> = self.model.held.iter().collect();
        expected.sort_by_key(|held| (held.claim.pool.clone(), held.claim.address));
        let left = |ends: u64| u128::from(ends.saturating_sub(self.now));
        let expected: Vec<_> =
            expected.iter().map(|held| (held.claim.clone(), held.ends.map(left))).collect();
        prop_assert_eq!(got, expected);
        let waiting: Vec<Waiting> = self.book.waitings().map(|waiting| (**waiting).clone()).collect();
        let expected: Vec<_> = self.model.queue.iter().map(|queued| queued.waiting.clone()).collect();
        prop_assert_eq!(waiting, expected);
        let mut reserved: Vec<Reservation> = self.book.reservations().map(|r| (**r).clone()).collect();
        let mut expected = self.model.reservations.clone();
        reserved.sort_by_key(|r| (r.pool.clone(), r.range));
        expected.sort_by_key(|r| (r.pool.clone(), r.range));
        prop_assert_eq!(reserved, expected);
        let mut seen: Vec<Observation> = self.book.observations().map(|seen| (**seen).clone()).collect();
        let mut expected = self.model.sightings.clone();
        seen.sort_by_key(|seen| (seen.vrf.clone(), seen.address, seen.source.clone()));
        expected.sort_by_key(|seen| (seen.vrf.clone(), seen.address, seen.source.clone()));
        prop_assert_eq!(seen, expected);
        check_rows(&self.book)?;
        check_holders(&self.book, &claims)
    }

    /// Doing the next commands and taking them back leaves no trace.
    fn there_and_back(&mut self, run: &Run, steps: &[Step]) -> Result<(), TestCaseError> {
        let before = face(&self.book, true);
        let mut batch = Batch::default();
        let mark = self.book.savepoint(&batch);
        // A report that is taken back may leave when something was first missed: its source did miss it.
        for step in steps.iter().filter(|step| !matches!(step, Step::Observe { .. })) {
            if let Some((caller, command)) = self.command(run, step) {
                let _ = self.book.run(&mut batch, self.moment(), &caller, &command);
            }
        }
        self.book.rewind(&mut batch, mark);
        prop_assert!(batch.is_empty());
        prop_assert_eq!(face(&self.book, true), before, "going back left something");
        Ok(())
    }
}

/// A list of a pool of single addresses shows what its counters count, each address once.
fn check_rows(book: &Book) -> Result<(), TestCaseError> {
    for PoolStatus { pool, usage } in book.pools().filter(|status| status.pool.spec.family != Family::Prefix)
    {
        let filter = AddressFilter { pool: Some(pool.name().clone()), ..AddressFilter::default() };
        let rows = book.addresses(&filter, None, usize::MAX);
        let ends = |row: &AddressView| (row.address, row.through.unwrap_or(row.address));
        prop_assert!(rows.iter().map(ends).is_sorted_by(|one, next| one.1 < next.0), "{rows:?}");
        let count = |state: &str| -> u128 {
            let rows = rows.iter().filter(|row| row.state.as_str() == state);
            let usable = rows.filter(|row| pool.spec.withheld(row.address).is_none()).map(ends);
            usable.map(|(first, last)| last.number() - first.number() + 1).sum()
        };
        let counted = [count("held"), count("resting"), count("reserved"), count("observed")];
        prop_assert_eq!(counted, [usage.held, usage.resting, usage.reserved, usage.observed]);
        let sum: u128 = counted.iter().sum();
        prop_assert_eq!(sum + usage.free, usage.size);
    }
    Ok(())
}

/// No address has two holders in a VRF, save that a pool lies inside of a prefix that is held.
fn check_holders(book: &Book, claims: &[ClaimView]) -> Result<(), TestCaseError> {
    let carriers = |pool: &Ident| {
        let mut ids = Vec::new();
        let mut pool = book.pool(pool).unwrap().pool;
        while let Some(id) = pool.within {
            ids.push(id);
            let holder =
                claims.iter().find(|view| view.claim.id == id).expect("a carried pool has its prefix");
            pool = book.pool(&holder.claim.pool).unwrap().pool;
        }
        ids
    };
    for (place, one) in claims.iter().enumerate() {
        for other in &claims[..place] {
            let (a, b) = (&one.claim, &other.claim);
            let range =
                |c: &netstead_model::Claim| c.prefix().map_or(c.address.into(), netstead_model::Range::from);
            if book.vrf_of(&a.pool) != book.vrf_of(&b.pool) || !range(a).overlaps(range(b)) {
                continue;
            }
            let nested = carriers(&a.pool).contains(&b.id) || carriers(&b.pool).contains(&a.id);
            prop_assert!(nested, "{} and {} are both held", a.held(), b.held());
        }
    }
    Ok(())
}

/// The answer without what only people read.
fn plain(answer: &Result<Reply, Refusal>) -> Result<Reply, Refusal> {
    let mut answer = answer.clone();
    if let Err(refusal) = &mut answer {
        hush(refusal);
    }
    answer
}

fn hush(refusal: &mut Refusal) {
    match refusal {
        Refusal::Invalid { reason, .. } => reason.clear(),
        Refusal::HoldsAnother { asked, .. } => asked.clear(),
        Refusal::Withheld { reason, .. } => *reason = "",
        Refusal::AlreadyGone { now, .. } => *now = "",
        Refusal::Entry { refusal, .. } => hush(refusal),
        _ => {}
    }
}

fn play(run: &Run, stored: Stored) -> Result<(), TestCaseError> {
    let mut pair = Pair::new(run.paused, stored);
    let told = |error, trail: &[String]| TestCaseError::fail(format!("{error}\nafter\n{}", trail.join("\n")));
    play_on(run, &mut pair).map_err(|error| told(error, &pair.trail))
}

fn play_on(run: &Run, pair: &mut Pair) -> Result<(), TestCaseError> {
    for (pool, shape) in run.theme.iter().zip(&run.shapes) {
        let command = Command::CreatePool(random_pools::spec(*pool, *shape).into());
        pair.ask(&Caller::new("admin"), &command)?;
    }
    for (number, step) in run.steps.iter().enumerate() {
        pair.housekeep(if let Step::Pass(by) = step { *by } else { 0 })?;
        if number % 7 == 0 {
            let end = run.steps.len().min(number + 4);
            pair.there_and_back(run, &run.steps[number..end])?;
        }
        if let Some((caller, command)) = pair.command(run, step) {
            pair.ask(&caller, &command)?;
        }
        if number % 16 == 15 || number + 1 == run.steps.len() {
            pair.stored.check(&pair.book, pair.moment())?;
        }
    }
    Ok(())
}

/// Every step is stored where `ground` makes stores, and the Book is built anew from there.
pub(crate) fn the_book_comes_back_from(ground: &StoreFactory, cases: u32) {
    let runtime = Arc::new(tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap());
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let done = TestRunner::new(config).run(&prop_oneof![run(), tussle()], |run| {
        let store = runtime.block_on(ground.handles(1)).remove(0);
        let place = BlockingStore { runtime: runtime.clone(), store: store.clone() };
        let done = play(&run, Stored::on(place));
        runtime.block_on(store.close());
        done
    });
    if let Err(error) = done {
        panic!("{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_book_answers_as_a_naive_ledger_does(run in run()) {
        play(&run, Stored::default())?;
    }

    #[test]
    fn prefixes_that_are_fought_over_have_one_holder(run in tussle()) {
        play(&run, Stored::default())?;
    }
}
