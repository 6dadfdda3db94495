//! Several machines with a ledger each, on one store over a network that misbehaves, with clients that never give up:
//! all of it in one thread, from one seed, in a time of its own. A judge who sees every commit compares what everybody
//! is told with what the store holds.
//!
//! `cargo xtask simulate --seeds 1000` plays many, `cargo xtask simulate --seed 17 --trace` shows one. What once went
//! wrong stands in `simulation/seeds.txt` and is played each time.
//!
//! A judge who finds nothing may be blind. So stores break their promises, and ledgers leave out what their promises stand
//! on (`Sabotage`), and each time a check must find it.

mod chaos;
mod client;
mod fault;
mod history;
mod judge;
mod machine;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use netstead_ledger::{Command, Options, Sabotage, check};
use netstead_model::Span;
use netstead_store::simulated::{Broken, Dice, Network, Rules, Weather};
use tokio::{runtime::Builder, time::sleep};

use self::{
    chaos::Chaos,
    client::{Client, Directory},
    fault::{Fault, kept},
    judge::{ADDRESSES, Judge},
    machine::Machine,
};
use crate::support::create;

/// How long things go wrong.
const TROUBLE: Duration = Duration::from_secs(40);
/// How long it may take until all is well again.
const CALM: Duration = Duration::from_mins(2);
const CLIENTS: u64 = 5;

/// How a run went.
struct Outcome {
    wrong: Option<String>,
    trace: Vec<String>,
    answers: u64,
    commits: usize,
}

struct World {
    now: Duration,
    dice: Dice,
    network: Network,
    machines: Vec<Machine>,
    directory: Directory,
    judge: Arc<Mutex<Judge>>,
    chaos: Chaos,
    /// Where clients live.
    outside: tokio::runtime::Runtime,
}

impl World {
    fn new(seed: u64, fault: Option<Fault>) -> Self {
        let mut dice = Dice::new(seed);
        let count = usize::try_from(2 + dice.below(2)).unwrap();
        let rules = Rules {
            lease: dice.hits(800).then(|| Duration::from_secs(1 + dice.below(3))),
            fenced: dice.hits(500),
            patience: Duration::from_millis([300, 1000, 2500][usize::try_from(dice.below(3)).unwrap()]),
            broken: fault.and_then(Fault::of_store),
        };
        let options = Options {
            learn_timeout: Duration::from_millis([0, 200, 5000][usize::try_from(dice.below(3)).unwrap()]),
            max_events: if dice.hits(300) { 20 } else { 1_000_000 },
            sabotage: fault.and_then(Fault::of_ledger),
            ..Options::default()
        };
        // Where no rule decides between two nodes, one of them waits.
        let humility = Duration::from_millis(if rules.lease.is_some() { 50 } else { 3000 });
        let network = Network::new(dice.number(), count, rules);
        let judge = Arc::new(Mutex::new(Judge::new(fault == Some(Fault::Judge))));
        let witness = judge.clone();
        network.set_witness(Box::new(move |at, machine, commit, _| {
            witness.lock().unwrap().committed(at, machine, commit);
        }));
        let mut chaos = Chaos::new(seed, Dice::new(dice.number()), network.clone());
        let mut machines: Vec<Machine> = (0..count)
            .map(|number| Machine::new(number, network.clone(), judge.clone(), options.clone(), humility))
            .collect();
        let directory = machines.iter_mut().map(|machine| chaos.start(machine)).collect();
        let outside = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let directory = Arc::new(Mutex::new(directory));
        Self { now: Duration::ZERO, dice, network, machines, directory, judge, chaos, outside }
    }

    /// A few milliseconds, in which machines work in any order.
    fn step(&mut self) {
        let by = 1 + self.dice.below(12);
        self.now += Duration::from_millis(by);
        self.judge.lock().unwrap().now = self.now;
        self.network.advance(self.now);
        let first = usize::try_from(self.dice.below(self.machines.len() as u64)).unwrap();
        let (before, behind) = self.machines.split_at_mut(first);
        for machine in behind.iter_mut().chain(before) {
            machine.tick(by);
        }
        for machine in &self.machines {
            machine.answers.bring();
        }
        self.outside.block_on(async { sleep(Duration::from_millis(by)).await });
    }

    fn client(&mut self, name: String, end: Duration) -> Client {
        let dice = Dice::new(self.dice.number());
        Client::new(name, dice, self.judge.clone(), self.directory.clone(), end)
    }

    /// Steps until this is done. `None`: something is wrong, or it takes too long.
    fn until<T: Send + 'static>(&mut self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let end = self.now + CALM;
        let work = self.outside.spawn(work);
        while !work.is_finished() {
            if self.judge.lock().unwrap().wrong.is_some() {
                return None;
            }
            if self.now > end {
                self.judge.lock().unwrap().wrong("nobody serves, though all is well".into());
                return None;
            }
            self.step();
        }
        Some(self.outside.block_on(work).unwrap())
    }

    fn play(&mut self) -> Option<()> {
        let mut admin = self.client("admin".into(), Duration::MAX);
        let cooldown = Span::from_secs(self.dice.below(4));
        let range = format!("10.0.0.1-10.0.0.{ADDRESSES}");
        let pool = create("lan", &range, |spec| (spec.cooldown, spec.cooldown_min) = (cooldown, Span::ZERO));
        self.until(async move { admin.insist(&pool).await.is_some() })?;
        let end = self.now + TROUBLE;
        let weather = self.chaos.weather();
        self.network.set_weather(weather);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let client = self.client(format!("c{number}"), end);
                self.outside.spawn(client.live())
            })
            .collect();
        while self.now < end {
            let now = self.now;
            if let Some(what) = self.chaos.stir(now, &mut self.machines) {
                self.judge.lock().unwrap().note(|| what);
            }
            self.chaos.heal(now, false, &mut self.machines, &self.directory);
            self.step();
            if self.judge.lock().unwrap().wrong.is_some() {
                return None;
            }
        }
        self.chaos.heal(self.now, true, &mut self.machines, &self.directory);
        self.judge.lock().unwrap().note(|| "all is well again".into());
        self.until(async move {
            for client in clients {
                client.await.unwrap();
            }
        })?;
        self.settle()
    }

    /// In the end a node leads, and agrees with every answer that was given.
    fn settle(&mut self) -> Option<()> {
        let mut last = self.client("last".into(), Duration::MAX);
        let seen = self.until(async move {
            last.insist(&Command::Resume).await;
            last.see_all().await
        })?;
        self.judge.lock().unwrap().settle(seen.0, &seen.1);
        let store = self.network.process(0);
        let problems = self.until(async move {
            loop {
                if let Ok(report) = check::check(&*store).await {
                    break report.problems;
                }
            }
        })?;
        if !problems.is_empty() {
            self.judge.lock().unwrap().wrong(format!("the store is not sound: {problems:?}"));
        }
        Some(())
    }
}

fn run(seed: u64, fault: Option<Fault>) -> Outcome {
    let mut world = World::new(seed, fault);
    let _ = world.play();
    let World { machines, outside, judge, network, .. } = world;
    drop((machines, outside));
    network.set_weather(Weather::fair());
    let mut judge = judge.lock().unwrap();
    Outcome {
        wrong: judge.wrong.take(),
        trace: std::mem::take(&mut judge.trace),
        answers: judge.answers,
        commits: judge.history.states.len(),
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn holds(seed: u64) -> Outcome {
    let fault = std::env::var("SIMULATION_SABOTAGE").ok();
    let outcome = run(seed, fault.as_deref().map(Fault::named));
    let trace = std::env::var_os("SIMULATION_TRACE").is_some();
    if trace || outcome.wrong.is_some() {
        let shown = if trace { 0 } else { outcome.trace.len().saturating_sub(60) };
        println!("{}", outcome.trace[shown..].join("\n"));
    }
    if let Some(wrong) = outcome.wrong {
        panic!("seed {seed}: {wrong}\n`cargo xtask simulate --seed {seed} --trace` plays it again");
    }
    outcome
}

#[test]
fn whatever_happens_to_machines_and_network_the_promises_hold() {
    // What concerns pool backends is looked for by `drawing::simulation`.
    let named = std::env::var("SIMULATION_SABOTAGE").ok();
    let of_backends = |name: &String| Sabotage::BACKENDS.iter().any(|known| format!("{known:?}") == *name);
    if named.as_ref().is_some_and(of_backends) {
        return;
    }
    let (from, many) = (number("SIMULATION_FROM").unwrap_or(0), number("SIMULATION_SEEDS").unwrap_or(40));
    let (mut answers, mut commits) = (0, 0);
    for outcome in (from..from + many).map(holds) {
        (answers, commits) = (answers + outcome.answers, commits + outcome.commits);
    }
    println!("{many} histories with {answers} answers and {commits} commits");
}

#[test]
fn what_once_went_wrong_does_not() {
    for (seed, _) in kept() {
        holds(seed);
    }
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "a release build leaves nothing out")]
fn what_once_went_wrong_would_do_so_again_without_its_fix() {
    for (seed, fault) in kept() {
        let wrong = run(seed, Some(fault)).wrong;
        let wrong = wrong.unwrap_or_else(|| panic!("seed {seed} does not find {fault:?} any more"));
        println!("{fault:?}, seed {seed}: {wrong}");
    }
}

#[test]
fn a_seed_gives_the_same_history_each_time() {
    for seed in 0..4 {
        let (first, second) = (run(seed, None).trace, run(seed, None).trace);
        let other = first.iter().zip(&second).position(|(one, two)| one != two);
        if let Some(place) = other {
            panic!("seed {seed}, line {place}: {} and {}", first[place], second[place]);
        }
        assert_eq!(first.len(), second.len(), "seed {seed}");
        assert!(first.len() > 100, "seed {seed} has hardly any history");
    }
}

/// Plays until the judge notices.
fn is_noticed(fault: Fault, seeds: u64) {
    let found = (0..seeds).find_map(|seed| run(seed, Some(fault)).wrong.map(|wrong| (seed, wrong)));
    let (seed, wrong) = found.unwrap_or_else(|| panic!("{fault:?} went unnoticed"));
    println!("{fault:?}, seed {seed}: {wrong}");
}

#[test]
fn the_judge_notices_each_promise_a_store_breaks() {
    for broken in [Broken::Conditions, Broken::Durability, Broken::Atomicity, Broken::Freshness] {
        is_noticed(Fault::Store(broken), 20);
    }
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "a release build leaves nothing out")]
fn the_judge_notices_whatever_a_ledger_leaves_out() {
    let kept = kept();
    for fault in Sabotage::ALL.map(Fault::Ledger) {
        // What takes hundreds of seeds to find has one of its own.
        if !kept.iter().any(|(_, other)| *other == fault) {
            is_noticed(fault, 40);
        }
    }
}

/// Numbers leave nothing out, so a follower notices with the next commit that it missed one: the one promise of a store
/// that may be broken.
#[test]
fn a_store_whose_watches_miss_commits_is_survived() {
    let fault = Fault::Store(Broken::Watching);
    for seed in 0..10 {
        assert_eq!(run(seed, Some(fault)).wrong, None, "seed {seed}");
    }
    if cfg!(debug_assertions) {
        is_noticed(Fault::Deafness, 10);
    }
}
