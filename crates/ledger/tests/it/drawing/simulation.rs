//! Seeded histories of a pool with a backend: claims, releases, lost answers, a backend that is away, late requests, sightings
//! and new leaders. In the end the backend holds exactly what the ledger has account of.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use netstead_ledger::{Options, Sabotage, contract::FaultyBackend};
use netstead_store::{MemoryStore, Store};
use tokio::runtime::Builder;

use super::branch::{Branch, RANGE, upstream};
use crate::support::{House, create, observe};

/// Numbers that follow from the seed alone.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Plays one history in a time of its own. Returns what is wrong in the end, and everything that was done at the backend.
fn play(seed: u64, sabotage: Option<Sabotage>) -> (Result<(), String>, Vec<String>) {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(history(seed, sabotage))
}

async fn history(seed: u64, sabotage: Option<Sabotage>) -> (Result<(), String>, Vec<String>) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let options = Options { sabotage, ..Options::default() };
    let house = House::on(store, options).await;
    let made = create("lan", RANGE, |spec| {
        upstream(spec);
        spec.cooldown = netstead_model::Span::from_secs(5 * dice.roll(3));
    });
    house.ask("admin!", made).await.unwrap();
    let office = Arc::new(FaultyBackend::new(RANGE.parse().unwrap()));
    office.set(|faults| faults.duplicates = true);
    let mut branch = leading(house, &office);
    let delays = seed % 2 == 1;
    // Leaders that were deposed and do not know it.
    let mut former = Vec::new();
    let mut seen = BTreeSet::new();
    for _ in 0..60 {
        let key = format!("key-{}", dice.roll(5));
        match dice.roll(14) {
            0..=3 => branch.wants_if_it_can(&key).await,
            4..=5 => drop(branch.release(&key).await),
            6 => office.set(|faults| faults.lost_answers = 2),
            7 => office.set(|faults| faults.away = !faults.away),
            8 if seen.is_empty() => {
                let address = "10.0.3.51";
                let held = branch.account().await.iter().any(|line| line.contains(address));
                if !held && !office.held().iter().any(|line| line.starts_with(address)) {
                    branch.house.ask("admin!", observe("scan", false, &[address])).await.unwrap();
                    seen.insert(address);
                }
            }
            9 => {
                let next = leading(branch.house.successor().await, &office);
                former.push(std::mem::replace(&mut branch, next));
            }
            // A request takes effect within its time, whether its leader still leads or not.
            10 if delays => {
                let late = Duration::from_secs(dice.roll(9));
                office.set(|faults| faults.late = Some(late).filter(|late| !late.is_zero()));
            }
            _ => branch.pass(1 + dice.roll(6)).await,
        }
    }
    office.set(|faults| (faults.away, faults.lost_answers, faults.late) = (false, 0, None));
    branch.pass(60).await;
    for _ in 0..2 {
        branch.backends.reconcile_soon();
        branch.pass(20).await;
    }
    (judge(&branch, &office, &seen, delays).await, office.requests())
}

/// A branch whose worker has the same time as its ledger.
fn leading(house: House, office: &Arc<FaultyBackend>) -> Branch {
    let mut branch = Branch::idle(house, office.clone());
    branch.second = Duration::from_secs(1);
    branch.work();
    branch
}

async fn judge(
    branch: &Branch,
    office: &FaultyBackend,
    seen: &BTreeSet<&str>,
    delays: bool,
) -> Result<(), String> {
    let account = branch.account().await;
    let (mut known, mut strays) = (BTreeSet::new(), BTreeSet::new());
    for line in &account {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["stray", key] => drop(strays.insert(key.to_owned())),
            ["withdrawn" | "waiting", _] => {}
            [state, address, key] => {
                if state == "bound" && seen.contains(address) {
                    return Err(format!("{address} was bound although it was seen in use: {account:?}"));
                }
                known.insert(format!("{address} {key}"));
            }
            _ => return Err(format!("`{line}` cannot be read")),
        }
    }
    let held: BTreeSet<String> = office.held().into_iter().collect();
    let leaked: Vec<_> = held
        .difference(&known)
        .filter(|line| !strays.iter().any(|key| line.ends_with(&format!(" {key}"))))
        .filter(|line| {
            !account.iter().any(|known| *known == format!("waiting {}", line.split(' ').nth(1).unwrap()))
        })
        .collect();
    if !leaked.is_empty() {
        return Err(format!("the backend holds {leaked:?}, of which the ledger knows nothing: {account:?}"));
    }
    let lost: Vec<_> = known.difference(&held).collect();
    if !lost.is_empty() {
        return Err(format!("the ledger counts on {lost:?}, which the backend does not hold"));
    }
    match office.duplicates_made() {
        // A late request of a former leader may make a second object, which is given back.
        _ if delays => Ok(()),
        0 => Ok(()),
        many => Err(format!("{many} keys were claimed again while the backend had an object for them")),
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The rule that `cargo xtask simulate --sabotage` names, if it concerns backends.
fn sabotage() -> Option<Sabotage> {
    let name = std::env::var("SIMULATION_SABOTAGE").ok()?;
    Sabotage::BACKENDS.into_iter().find(|sabotage| format!("{sabotage:?}") == name)
}

#[test]
fn whatever_happens_the_backend_holds_exactly_what_the_ledger_has_account_of() {
    if std::env::var_os("SIMULATION_SABOTAGE").is_some() && sabotage().is_none() {
        return;
    }
    let (from, many) = (number("SIMULATION_FROM").unwrap_or(0), number("SIMULATION_SEEDS").unwrap_or(40));
    let mut requests = 0;
    for seed in from..from + many {
        let (result, done) = play(seed, sabotage());
        if result.is_err() || std::env::var_os("SIMULATION_TRACE").is_some() {
            println!("{}", done.join("\n"));
        }
        if let Err(wrong) = result {
            panic!("seed {seed}: {wrong}\n`cargo xtask simulate --seed {seed} --trace` plays it again");
        }
        requests += done.len();
    }
    println!("{many} histories with {requests} requests to a backend");
}

#[test]
fn a_seed_gives_the_same_requests_each_time() {
    for seed in 0..6 {
        assert_eq!(play(seed, None).1, play(seed, None).1, "seed {seed}");
    }
}

/// Plays until the judge notices.
#[cfg(debug_assertions)]
fn is_noticed(rule: Sabotage) {
    let found = (0..100).find_map(|seed| play(seed, Some(rule)).0.err().map(|wrong| (seed, wrong)));
    let (seed, wrong) = found.unwrap_or_else(|| panic!("without {rule:?} nothing goes wrong"));
    println!("{rule:?}, seed {seed}: {wrong}");
}

/// One test per rule that can be left out. A release build leaves nothing out.
#[cfg(debug_assertions)]
mod left_out {
    use super::{Sabotage, is_noticed};

    #[test]
    fn a_key_that_changes_is_noticed() {
        is_noticed(Sabotage::DrawKey);
    }

    #[test]
    fn a_request_before_it_is_stored_is_noticed() {
        is_noticed(Sabotage::DrawAsked);
    }

    #[test]
    fn a_claim_without_a_look_up_is_noticed() {
        is_noticed(Sabotage::DrawLookUp);
    }

    #[test]
    fn an_address_that_is_freed_before_the_backend_confirms_is_noticed() {
        is_noticed(Sabotage::DrawGiveBack);
    }

    #[test]
    fn an_ended_claim_that_is_forgotten_is_noticed() {
        is_noticed(Sabotage::DrawWithdrawn);
    }

    #[test]
    fn an_answer_that_is_bound_unseen_is_noticed() {
        is_noticed(Sabotage::DrawBindable);
    }
}
