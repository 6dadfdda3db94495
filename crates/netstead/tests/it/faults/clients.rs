//! Sixteen clients, and the notes they make.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use netstead_client::{
    ClaimQuery, Client, ClientError,
    types::{ClaimInput, ClaimOutput, PoolInput},
};
use netstead_testkit::history::{Action, Held, History, Outcome, Pool};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tokio::{task::JoinHandle, time::sleep};

use super::cluster::{Cluster, PATIENCE};

const CLIENTS: usize = 16;

/// How long a request may take before its client goes elsewhere.
const REQUEST: Duration = Duration::from_secs(3);

/// A breath before the next try, so that an outage is not a storm.
const BREATH: Duration = Duration::from_millis(40);

/// Large enough for every key, and so small that addresses are had by one after the other all the time.
const POOLS: [(&str, &str); 2] = [("wide", "10.9.0.1-10.9.1.254"), ("tight", "10.8.0.1-10.8.0.12")];
const TIGHT: u32 = 12;
const WIDE: usize = 510;

/// How many addresses they have, for the judgement of who was told that there is none left.
pub(crate) fn sizes() -> [Pool; 2] {
    [Pool::new("wide/", WIDE), Pool::new("tight/", TIGHT as usize)]
}

/// Clients at work.
pub(crate) struct Load {
    pub(crate) history: Arc<History>,
    shared: Arc<LoadState>,
    workers: Vec<JoinHandle<()>>,
}

struct LoadState {
    history: Arc<History>,
    stop: AtomicBool,
    /// Answered, or unanswered after they were sent; what never reached a node does not count.
    done: AtomicUsize,
    /// The address that each key was last seen to hold.
    known: Mutex<HashMap<Arc<str>, Held>>,
}

impl Load {
    /// With a `domain`, what is claimed has a name in it.
    pub(crate) async fn begin(cluster: &Cluster, domain: Option<&str>) -> Self {
        let client = cluster.clients(PATIENCE).remove(cluster.leader().await);
        for (name, range) in POOLS {
            let pool = PoolInput {
                ranges: vec![range.into()],
                domain: domain.map(str::to_owned),
                cooldown: Some("0".into()),
                ..PoolInput::default()
            };
            client.create_pool(name, &pool).await.unwrap();
        }
        let history = Arc::new(History::new());
        let shared = Arc::new(LoadState {
            history: Arc::clone(&history),
            stop: AtomicBool::new(false),
            done: AtomicUsize::new(0),
            known: Mutex::default(),
        });
        let workers = (0..CLIENTS)
            .map(|number| {
                let client = Caller {
                    number,
                    nodes: cluster.clients(REQUEST),
                    at: number,
                    shared: Arc::clone(&shared),
                    dice: StdRng::seed_from_u64(number as u64),
                };
                tokio::spawn(client.work())
            })
            .collect();
        Self { history, shared, workers }
    }

    pub(crate) fn done(&self) -> usize {
        self.shared.done.load(Ordering::Relaxed)
    }

    /// Waits until so many operations are done.
    pub(crate) async fn reach(&self, count: usize) {
        let (mut before, mut still) = (self.done(), 0);
        while self.done() < count {
            sleep(Duration::from_millis(20)).await;
            still = if self.done() > before { 0 } else { still + 1 };
            before = self.done();
            assert!(still < 50 * 60, "nothing happens any more after {before} operations");
        }
    }

    /// The first change accepted that was asked for after `moment`.
    pub(crate) fn first_change_after(&self, moment: Duration) -> Option<Duration> {
        let operations = self.history.operations();
        let changes = operations.iter().filter(|operation| {
            operation.start >= moment
                && match (&operation.action, &operation.outcome) {
                    (Action::Claim { .. }, Outcome::Holds(_)) => true,
                    (Action::Release { .. }, outcome) => *outcome == Outcome::Released,
                    _ => false,
                }
        });
        changes.map(|operation| operation.end).min()
    }

    /// Waits for it; how long after `moment` it was.
    pub(crate) async fn next_change_after(&self, moment: Duration) -> Duration {
        loop {
            if let Some(change) = self.first_change_after(moment) {
                return change.saturating_sub(moment);
            }
            assert!(self.history.now().saturating_sub(moment) < PATIENCE, "no change is accepted any more");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Repeats the claims of keys that hold something, all at once and of this node, and looks at what it says.
    pub(crate) async fn repeat_at(&self, node: &Client) {
        let known: Vec<Held> = self.shared.known.lock().unwrap().values().cloned().collect();
        let repeats = known.into_iter().take(60).enumerate().map(|(number, held)| {
            let mut caller = Caller {
                number: CLIENTS + number,
                nodes: vec![node.clone()],
                at: 0,
                shared: Arc::clone(&self.shared),
                dice: StdRng::seed_from_u64(number as u64),
            };
            async move {
                let action = match number % 3 {
                    0 => Action::ReadKey { key: held.key },
                    _ => Action::Claim { key: held.key, exact: None },
                };
                caller.once(&action).await;
            }
        });
        futures::future::join_all(repeats).await;
    }

    /// Lets all of them finish; then everything is read through every node.
    pub(crate) async fn end(mut self, cluster: &Cluster) -> Arc<History> {
        self.shared.stop.store(true, Ordering::Relaxed);
        for worker in std::mem::take(&mut self.workers) {
            worker.await.unwrap();
        }
        for (node, client) in cluster.clients(PATIENCE).into_iter().enumerate() {
            let mut last = Caller {
                number: CLIENTS + node,
                nodes: vec![client],
                at: 0,
                shared: Arc::clone(&self.shared),
                dice: StdRng::seed_from_u64(0),
            };
            for (pool, _) in POOLS {
                last.until_answered(&Action::List { prefix: format!("{pool}/").into() }).await;
            }
            for number in 0..TIGHT {
                last.until_answered(&Action::ReadAddress { address: tight(number) }).await;
            }
        }
        Arc::clone(&self.history)
    }
}

impl Drop for Load {
    /// After a failure no client may go on asking: the nodes and their network are removed next.
    fn drop(&mut self) {
        self.workers.iter().for_each(JoinHandle::abort);
    }
}

fn tight(number: u32) -> Arc<str> {
    format!("10.8.0.{}", 1 + number % TIGHT).into()
}

/// One client, with its preferred node.
struct Caller {
    number: usize,
    nodes: Vec<Client>,
    at: usize,
    shared: Arc<LoadState>,
    dice: StdRng,
}

/// The next step after an answer.
#[derive(PartialEq, Eq)]
enum NextStep {
    GoOn,
    /// Ask the same of another node.
    AskAgain,
}

impl Caller {
    async fn work(mut self) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            // Everybody has a node of their own: if all were where the fault is, it would be longer for them than for others.
            if self.dice.random_range(0..4) == 0 {
                self.at = self.number;
            }
            let action = self.choose();
            while self.once(&action).await == NextStep::AskAgain {
                if self.shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                // By chance: if all of them took the next one, they would come to the fault together.
                self.at += self.dice.random_range(1..self.nodes.len().max(2));
                sleep(BREATH).await;
            }
        }
    }

    async fn until_answered(&mut self, action: &Action) {
        for _ in 0..600 {
            if self.once(action).await == NextStep::GoOn {
                return;
            }
            sleep(BREATH * 3).await;
        }
        panic!("{} does not answer {action:?}", self.nodes[0].url());
    }

    fn choose(&mut self) -> Action {
        let key: Arc<str> = match self.dice.random_range(0..10) {
            // Only we use it.
            0..3 => format!("wide/client-{}-{}", self.number, self.dice.random_range(0..6)),
            3..5 => format!("wide/shared-{}", self.dice.random_range(0..12)),
            // More keys than addresses.
            _ => format!("tight/key-{}", self.dice.random_range(0..TIGHT + 8)),
        }
        .into();
        let held = self.shared.known.lock().unwrap().get(&key).cloned();
        let address = tight(self.dice.random_range(0..TIGHT));
        match (self.dice.random_range(0..100), held) {
            (0..12, _) if key.starts_with("tight/") => Action::Claim { key, exact: Some(address) },
            (36..60, Some(held)) => Action::Release { key, id: held.id },
            (60..66, Some(held)) => Action::Renew { key, id: held.id },
            (66..82, _) => Action::ReadKey { key },
            (82..95, _) => Action::ReadAddress { address },
            (95..97, _) => Action::List { prefix: "tight/".into() },
            (97, _) => Action::List { prefix: "wide/".into() },
            // Anything else, or nothing is known to release.
            _ => Action::Claim { key, exact: None },
        }
    }

    /// Asks once, notes it, and learns from it.
    async fn once(&mut self, action: &Action) -> NextStep {
        let node = self.nodes[self.at % self.nodes.len()].clone();
        let begun = self.shared.history.begin(self.number, action.clone());
        let answer = ask(&node, action).await;
        let (outcome, then) = match answer {
            Ok(outcome) => (outcome, NextStep::GoOn),
            Err(error) => understand(action, &error),
        };
        if outcome != Outcome::Failed {
            self.shared.done.fetch_add(1, Ordering::Relaxed);
        }
        self.learn(action, &outcome);
        begun.end(outcome);
        then
    }

    fn learn(&self, action: &Action, outcome: &Outcome) {
        let mut known = self.shared.known.lock().unwrap();
        match (action, outcome) {
            (_, Outcome::Holds(held)) => {
                known.insert(Arc::clone(&held.key), held.clone());
            }
            (Action::Release { key, id } | Action::Renew { key, id }, Outcome::Released | Outcome::Gone)
                if known.get(key).is_some_and(|held| held.id == *id) =>
            {
                known.remove(key);
            }
            _ => {}
        }
    }
}

async fn ask(node: &Client, action: &Action) -> Result<Outcome, ClientError> {
    Ok(match action {
        Action::Claim { key, exact } => {
            let (pool, key) = split(key);
            // Half an hour: a clock that is an hour off must not end it.
            let ttl = (key.len() % 2 == 0).then(|| "30m".to_owned());
            let input =
                ClaimInput { address: exact.as_deref().map(str::to_owned), ttl, ..ClaimInput::default() };
            held(&node.claim(pool, key, &input).await?.0).map_or(Outcome::Failed, Outcome::Holds)
        }
        Action::Release { key, id } => {
            let (pool, key) = split(key);
            match node.release(pool, key, id).await?.outcome.as_str() {
                "released" => Outcome::Released,
                _ => Outcome::Gone,
            }
        }
        Action::Renew { key, id } => {
            let (pool, key) = split(key);
            held(&node.renew(pool, key, id, Some("40m".into())).await?)
                .map_or(Outcome::Failed, Outcome::Holds)
        }
        Action::ReadKey { key } => {
            let (pool, key) = split(key);
            let claim = node.look_up(pool, key).await?;
            claim.as_ref().and_then(held).map_or(Outcome::Nothing, Outcome::Holds)
        }
        Action::ReadAddress { address } => {
            let places = node.explain(address).await?.places;
            let claim = places.iter().find_map(|place| place.claim.as_ref());
            claim.and_then(held).map_or(Outcome::Nothing, Outcome::Holds)
        }
        Action::List { prefix } => {
            let pool = prefix.trim_end_matches('/').to_owned();
            // One page, which is of one moment.
            let query = ClaimQuery { pool: Some(pool), limit: Some(1000), ..ClaimQuery::default() };
            let page = node.page(&query).await?;
            assert!(page.next.is_none(), "a list of one page");
            Outcome::All(page.items.iter().filter_map(held).collect())
        }
    })
}

/// The meaning of an error, and the next step of a client.
fn understand(action: &Action, error: &ClientError) -> (Outcome, NextStep) {
    let exact = matches!(action, Action::Claim { exact: Some(_), .. });
    match error {
        ClientError::Refused(problem) => match problem.slug() {
            "address-held" | "holds-another" if exact => (Outcome::Taken, NextStep::GoOn),
            "already-gone" | "no-such-claim" => (Outcome::Gone, NextStep::GoOn),
            "exhausted" if !exact => (Outcome::Exhausted, NextStep::GoOn),
            // One that was dropped because its time was over was not done.
            "too-late" | "timeout" => (Outcome::Failed, NextStep::AskAgain),
            other => panic!("{action:?} was refused: {other}: {error}"),
        },
        ClientError::Unknown { .. } => (Outcome::Unknown, NextStep::AskAgain),
        // Nothing was done, the server says, or it was never reached.
        ClientError::Unavailable { .. } | ClientError::Unreachable { .. } | ClientError::Slow { .. } => {
            (Outcome::Failed, NextStep::AskAgain)
        }
        other => panic!("{action:?}: {other}"),
    }
}

fn split(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap()
}

fn held(claim: &ClaimOutput) -> Option<Held> {
    let key = format!("{}/{}", claim.pool, claim.key);
    Some(Held::new(&key, claim.address.as_deref()?, claim.id.as_deref()?))
}
