//! Random claims, releases, answers and rests in a pool with a backend, beside a naive model of them: a list of
//! everything that the backend may hold.

use std::{collections::BTreeSet, sync::Arc};

use netstead_ledger::{Command, DrawStep, Freshness, OwedPlace, contract::FaultyBackend};
use netstead_model::{
    Address, BackendErrorKind, BackendObject, DrawFailure, DrawState, Ident, Span, Waiting,
};
use proptest::{collection::vec, prelude::*};
use tokio::runtime::Builder;

use super::branch::{Branch, RANGE, upstream};
use crate::support::{House, create, observe};

const COOLDOWN: u64 = 10;

#[derive(Debug, Clone)]
enum Step {
    Claim(u8),
    Release(u8),
    /// Of the claims that wait, one is about to be asked for.
    Ask(usize),
    /// The backend answers one that was asked for.
    Answer(usize, u8),
    Refuse(usize),
    /// The backend holds nothing for an ended claim.
    End(usize),
    Tick(u64),
    GiveBack(usize),
    Confirm(usize),
    See(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_u8).prop_map(Step::Claim),
        3 => (0..4_u8).prop_map(Step::Release),
        4 => (0..4_usize).prop_map(Step::Ask),
        5 => (0..4_usize, 0..6_u8).prop_map(|(which, address)| Step::Answer(which, address)),
        1 => (0..4_usize).prop_map(Step::Refuse),
        2 => (0..4_usize).prop_map(Step::End),
        2 => (1..8_u64).prop_map(Step::Tick),
        2 => (0..4_usize).prop_map(Step::GiveBack),
        2 => (0..4_usize).prop_map(Step::Confirm),
        1 => (0..5_u8).prop_map(Step::See),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Waiting { asked: bool },
    Withdrawn,
    Stray,
    Bound(Address),
    Resting { address: Address, until: u64 },
    Giving(Address),
}

/// Something that the backend may hold, under the key that it was asked with: `~` stands for any number behind it.
#[derive(Debug, Clone)]
struct Entry {
    key: String,
    remote: String,
    state: State,
}

#[derive(Debug, Default)]
struct Model {
    entries: Vec<Entry>,
    now: u64,
    seen: BTreeSet<Address>,
}

fn address(number: u8) -> Address {
    // The last one is of another pool.
    if number == 5 {
        "10.0.9.1"
    } else {
        ["10.0.3.50", "10.0.3.51", "10.0.3.52", "10.0.3.53", "10.0.3.54"][number as usize]
    }
    .parse()
    .unwrap()
}

impl Model {
    fn nth(&self, which: usize, wanted: impl Fn(&State) -> bool) -> Option<usize> {
        let found: Vec<usize> =
            (0..self.entries.len()).filter(|place| wanted(&self.entries[*place].state)).collect();
        (!found.is_empty()).then(|| found[which % found.len()])
    }

    fn of_key(&self, key: &str, wanted: impl Fn(&State) -> bool) -> Option<usize> {
        self.entries.iter().position(|entry| entry.key == key && wanted(&entry.state))
    }

    fn wait(&mut self, key: &str) {
        let base = format!("own/lan/{key}");
        let used = self.entries.iter().any(|entry| entry.remote == base);
        let remote = if used { format!("{base}~") } else { base };
        self.entries.push(Entry { key: key.to_owned(), remote, state: State::Waiting { asked: false } });
    }

    fn claim(&mut self, key: &str) {
        if self.of_key(key, |state| matches!(state, State::Bound(_) | State::Waiting { .. })).is_some() {
            return;
        }
        // An address that was seen in use comes back only to a claim that adopts it.
        let (now, seen) = (self.now, &self.seen);
        let returns = |state: &State| matches!(state, State::Resting { address, until } if *until > now && !seen.contains(address));
        match self.of_key(key, returns) {
            Some(place) => {
                let State::Resting { address, .. } = self.entries[place].state else { unreachable!() };
                self.entries[place].state = State::Bound(address);
            }
            None => self.wait(key),
        }
    }

    fn release(&mut self, key: &str) {
        let Some(place) = self.of_key(key, |state| matches!(state, State::Bound(_) | State::Waiting { .. }))
        else {
            return;
        };
        match self.entries[place].state {
            State::Bound(address) => {
                self.entries[place].state = State::Resting { address, until: self.now + COOLDOWN };
            }
            State::Waiting { asked: true } => self.entries[place].state = State::Withdrawn,
            _ => drop(self.entries.remove(place)),
        }
    }

    fn answer(&mut self, place: usize, address: Address) {
        let now = self.now;
        let there = self.entries.iter().find_map(|entry| match entry.state {
            State::Bound(held) if held == address => Some(false),
            State::Resting { address: resting, until } if resting == address => Some(until <= now),
            State::Giving(giving) if giving == address => Some(true),
            _ => None,
        });
        let outside = address == self::address(5);
        match there {
            // It is being given back: later.
            Some(true) => {}
            None if !outside && !self.seen.contains(&address) => {
                self.entries[place].state = State::Bound(address);
            }
            _ => {
                self.entries[place].state = State::Stray;
                let key = self.entries[place].key.clone();
                self.wait(&key);
            }
        }
    }

    fn account(&self) -> Vec<String> {
        let line = |Entry { remote, state, .. }: &Entry| match state {
            State::Waiting { .. } => format!("waiting {remote}"),
            State::Withdrawn => format!("withdrawn {remote}"),
            State::Stray => format!("stray {remote}"),
            State::Bound(address) => format!("bound {address} {remote}"),
            State::Resting { address, until } if *until > self.now => format!("resting {address} {remote}"),
            State::Resting { address, .. } | State::Giving(address) => {
                format!("giving-back {address} {remote}")
            }
        };
        let mut lines: Vec<String> = self.entries.iter().map(line).collect();
        lines.sort();
        lines
    }
}

/// Without the number that a second key at the backend gets.
fn without_number(remote: &str) -> String {
    remote.split_once('~').map_or_else(|| remote.to_owned(), |(base, _)| format!("{base}~"))
}

/// The stored claim of an entry that has no address.
async fn stored(branch: &Branch, entry: &Entry) -> Arc<Waiting> {
    let (remote, wanted) = (entry.remote.clone(), entry.state);
    let found = branch.house.ledger.read(Freshness::Fresh, |book| {
        let fits = |waiting: &&Arc<Waiting>| {
            let draw = waiting.draw.as_deref().unwrap();
            without_number(&draw.key) == remote
                && match wanted {
                    State::Waiting { asked } => draw.state == DrawState::Waiting && draw.asked == asked,
                    _ => draw.state == DrawState::Withdrawn,
                }
        };
        book.waitings().find(fits).cloned().unwrap()
    });
    found.await.unwrap().value
}

/// The key at the backend of an address that rests.
async fn place_of(branch: &Branch, address: Address) -> OwedPlace {
    let pool: Ident = "lan".parse().unwrap();
    let key = branch.house.ledger.read(Freshness::Fresh, |book| {
        book.owned_objects(&pool).into_iter().find(|owned| owned.address == address).unwrap().key
    });
    OwedPlace { pool: "lan".parse().unwrap(), number: address.number(), key: key.await.unwrap().value }
}

async fn tell(branch: &Branch, step: DrawStep) {
    branch.house.ask("netstead!", Command::Draw(Box::new(step))).await.unwrap();
}

async fn act(branch: &Branch, model: &mut Model, made: u64, step: &Step) {
    let key = |number: &u8| format!("key-{number}");
    match step {
        Step::Claim(number) => {
            model.claim(&key(number));
            branch.wants(&key(number)).await;
        }
        Step::Release(number) => {
            model.release(&key(number));
            branch.release(&key(number)).await;
        }
        Step::Ask(which) => {
            let Some(place) = model.nth(*which, |state| *state == State::Waiting { asked: false }) else {
                return;
            };
            let waiting = stored(branch, &model.entries[place]).await;
            model.entries[place].state = State::Waiting { asked: true };
            let key = waiting.draw.as_deref().unwrap().key.clone();
            tell(branch, DrawStep::Asking { seq: waiting.seq, key }).await;
        }
        Step::Answer(which, number) => {
            let Some(place) = model.nth(*which, |state| *state == State::Waiting { asked: true }) else {
                return;
            };
            let waiting = stored(branch, &model.entries[place]).await;
            model.answer(place, address(*number));
            let key = waiting.draw.as_deref().unwrap().key.clone();
            let object = Box::new(BackendObject {
                reference: format!("object-{made}"),
                key: key.to_string(),
                holder: None,
                address: address(*number),
                length: None,
                since: None,
            });
            tell(branch, DrawStep::Bind { seq: waiting.seq, key, object, checked: true }).await;
        }
        Step::Refuse(which) => {
            let Some(place) = model.nth(*which, |state| *state == State::Waiting { asked: true }) else {
                return;
            };
            let waiting = stored(branch, &model.entries[place]).await;
            model.entries[place].state = State::Withdrawn;
            let key = waiting.draw.as_deref().unwrap().key.clone();
            let failure = DrawFailure { kind: BackendErrorKind::Held, message: "it is held".into() };
            tell(branch, DrawStep::Failed { seq: waiting.seq, key, failure, over: true }).await;
        }
        Step::End(which) => {
            let Some(place) = model.nth(*which, |state| *state == State::Withdrawn) else { return };
            let waiting = stored(branch, &model.entries[place]).await;
            model.entries.remove(place);
            let key = waiting.draw.as_deref().unwrap().key.clone();
            tell(branch, DrawStep::Gone { seq: waiting.seq, key, gave: false }).await;
        }
        Step::Tick(seconds) => {
            model.now += seconds;
            branch.house.pass(*seconds).await;
        }
        Step::GiveBack(which) => {
            let Some(place) = model.nth(*which, |state| matches!(state, State::Resting { .. })) else {
                return;
            };
            let State::Resting { address, until } = model.entries[place].state else { return };
            let at = place_of(branch, address).await;
            if until <= model.now {
                model.entries[place].state = State::Giving(address);
            }
            tell(branch, DrawStep::GiveBack { place: at, early: false }).await;
        }
        Step::Confirm(which) => {
            let Some(place) = model.nth(*which, |state| matches!(state, State::Giving(_))) else { return };
            let State::Giving(address) = model.entries.remove(place).state else { return };
            let at = place_of(branch, address).await;
            tell(branch, DrawStep::GaveBack { place: at }).await;
        }
        Step::See(number) => {
            model.seen.insert(address(*number));
            let seen = observe("scan", false, &[&address(*number).to_string()]);
            branch.house.ask("admin!", seen).await.unwrap();
        }
    }
}

async fn play(steps: &[Step]) {
    let house = House::new().await;
    let made = create("lan", RANGE, |spec| {
        upstream(spec);
        spec.cooldown = Span::from_secs(COOLDOWN);
    });
    house.ask("admin!", made).await.unwrap();
    let branch = Branch::idle(house, Arc::new(FaultyBackend::new(RANGE.parse().unwrap())));
    let mut model = Model::default();
    for (made, step) in (0..).zip(steps) {
        act(&branch, &mut model, made, step).await;
        let mut account: Vec<String> =
            branch.account().await.iter().map(|line| without_number(line)).collect();
        account.sort();
        assert_eq!(account, model.account(), "after {step:?}, step {made}");
    }
    // A process that reads everything from the store knows the same. How long an address has rested is known to the last
    // commit only.
    let again = Branch::idle(branch.house.successor().await, branch.office.clone());
    let known = |lines: Vec<String>| -> BTreeSet<String> {
        lines.iter().map(|line| without_number(line).replace("giving-back", "resting")).collect()
    };
    assert_eq!(known(again.account().await), known(model.account()), "after a restart");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_backend_may_hold_is_as_a_naive_model_has_it(steps in vec(step(), 1..60)) {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(play(&steps));
    }
}
