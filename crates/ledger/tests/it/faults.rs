//! A store that fails, delays, loses answers and lands late, leaders that come and go, and callers that never give up:
//! no answer is ever wrong.
//!
//! On memory, time is tokio's paused clock, so a run is as fast as its decisions; on other stores it is real, and goes
//! by faster. A failing run prints its seed;
//! `LEDGER_SEED=17 cargo test -p netstead-ledger --test it faults` plays that one alone, `LEDGER_SEEDS=2000` many.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use netstead_ledger::{Caller, ClaimFilter, Command, Freshness, Ledger, LedgerError, Options, Reply, check};
use netstead_model::{Address, Claim, ClaimId, EventKind, Key, Released, Span};
use netstead_store::{FaultyStore, Store, faults::Fault};
use tokio::time::sleep;

use crate::{
    determinism::{Dice, TokioClock},
    store_under_test::StoreFactory,
    support::{any, claim, create, exact, key, living, target},
};

/// State that all callers share: the ledger that leads now, and the holders that are certain.
struct World {
    /// The store as each process has it; the first is the one that leads now.
    stores: Mutex<Vec<Arc<FaultyStore>>>,
    /// How many times as fast as they say everybody does everything.
    pace: u32,
    ledger: Mutex<Ledger>,
    certain: Mutex<BTreeMap<Address, (Key, ClaimId)>>,
    released: Mutex<Vec<ClaimId>>,
    options: Options,
}

impl World {
    async fn new(seed: u64, handles: Vec<Arc<dyn Store>>, pace: u32) -> Arc<Self> {
        let mut dice = Dice::new(seed);
        let percent = [5, 20, 40, 70][usize::try_from(dice.below(4)).unwrap()];
        let learn_timeout = Duration::from_millis([0, 50, 5000][usize::try_from(dice.below(3)).unwrap()]);
        let options = Options { learn_timeout, ..Options::default() };
        // In a slow store groups are decided while others are on their way.
        let slowness = Duration::from_millis([0, 30, 400][usize::try_from(dice.below(3)).unwrap()]);
        let mut stores = Vec::new();
        for (store, number) in handles.into_iter().zip(0..) {
            let (store, mut dice) = (FaultyStore::new(store), Dice::new(seed * 7 + number));
            store.slow_down(slowness / pace);
            store.decide(move |_, _| dice.fault(percent, pace));
            stores.push(Arc::new(store));
        }
        let ledger = Mutex::new(open(&stores[0], &options).await);
        let (stores, certain, released) = (Mutex::new(stores), Mutex::default(), Mutex::default());
        let world = Self { stores, pace, ledger, certain, released, options };
        let pool = create("lan", "10.0.0.1-10.0.0.20", |spec| spec.cooldown = Span::from_secs(1));
        world.insist("admin", &pool).await.unwrap();
        Arc::new(world)
    }

    fn ledger(&self) -> Ledger {
        self.ledger.lock().unwrap().clone()
    }

    /// Another process takes over; the old one is left running and finds out.
    async fn take_over(&self) {
        let store = {
            let mut stores = self.stores.lock().unwrap();
            stores.rotate_left(1);
            stores[0].clone()
        };
        let new = open(&store, &self.options).await;
        *self.ledger.lock().unwrap() = new;
    }

    async fn rest(&self, time: Duration) {
        sleep(time / self.pace).await;
    }

    async fn once(&self, who: &str, command: &Command) -> Result<Reply, LedgerError> {
        let patience = Duration::from_secs(2);
        self.ledger().submit(Caller::new(who), command.clone(), patience).await.map(|done| done.reply)
    }

    /// Asks until there is an answer: done, or refused.
    async fn insist(&self, who: &str, command: &Command) -> Result<Reply, LedgerError> {
        for _ in 0..2000 {
            match self.once(who, command).await {
                Err(
                    LedgerError::Unknown { .. }
                    | LedgerError::Unavailable { .. }
                    | LedgerError::NotLeading
                    | LedgerError::TooLate,
                ) => {
                    self.rest(Duration::from_millis(100)).await;
                }
                answer => return answer,
            }
        }
        panic!("no answer to {command:?}");
    }

    async fn read_claim(&self, key: &Key) -> Option<Claim> {
        loop {
            let pool = "lan".parse().unwrap();
            let seen = self.ledger().read(Freshness::Fresh, |book| book.claim(&pool, key)).await;
            match seen {
                Ok(seen) => return seen.value.map(|view| Claim::clone(&view.claim)),
                Err(_) => self.rest(Duration::from_millis(100)).await,
            }
        }
    }

    /// From here on until it asks for release, the caller relies on the address being its own.
    fn rely(&self, claim: &Claim) {
        let before = self.certain.lock().unwrap().insert(claim.address, (claim.key.clone(), claim.id));
        assert!(before.is_none(), "{} is held by {:?} and by {}", claim.address, before, claim.key);
    }

    fn let_go(&self, claim: &Claim) {
        self.certain.lock().unwrap().remove(&claim.address);
    }
}

async fn open(store: &Arc<FaultyStore>, options: &Options) -> Ledger {
    loop {
        match Ledger::open(store.clone(), TokioClock::shared(), options.clone()).await {
            Ok(ledger) => return ledger,
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// One caller: claims, releases, renews and moves its own keys, and checks each answer.
async fn live(world: Arc<World>, who: String, mut dice: Dice) -> BTreeMap<Key, Claim> {
    let mut mine: BTreeMap<Key, Claim> = BTreeMap::new();
    for turn in 0..12 {
        world.rest(Duration::from_millis(dice.below(1500))).await;
        let name = format!("{who}-{}", dice.below(3));
        match (mine.remove(&key(&name)), dice.below(4)) {
            (None, choice) => {
                let claims = try_claim(&world, &who, &name, choice, &mut dice).await;
                mine.extend(claims.into_iter().map(|claim| (claim.key.clone(), claim)));
            }
            (Some(claim), 0) => {
                let renew = Command::Renew { target: target("lan", &name, Some(claim.id)), ttl: None };
                world.insist(&who, &renew).await.expect("what is held can be renewed");
                mine.insert(claim.key.clone(), claim);
            }
            (Some(claim), 1) => {
                let to = key(&format!("{name}-moved-{turn}"));
                let target = target("lan", &name, Some(claim.id));
                let reply = world.insist(&who, &Command::Move { target, key: to, owner: None }).await;
                let Ok(Reply::Moved(moved)) = reply else { panic!("{reply:?}") };
                assert_eq!((moved.id, moved.address), (claim.id, claim.address));
                world.certain.lock().unwrap().insert(moved.address, (moved.key.clone(), moved.id));
                mine.insert(moved.key.clone(), Claim::clone(&moved));
            }
            (Some(claim), _) => mine.extend(try_release(&world, &who, claim, &mut dice).await),
        }
    }
    mine
}

/// Asks for an address, or for two at once; what came of it.
async fn try_claim(world: &World, who: &str, name: &str, choice: u64, dice: &mut Dice) -> Vec<Claim> {
    let other = format!("{name}-too");
    let taken = world.read_claim(&key(&other)).await.is_some();
    let (command, names) = match choice {
        0 => (claim("lan", name, exact(&format!("10.0.0.{}", 1 + dice.below(20)))), vec![name]),
        1 => (claim("lan", name, living(3600)), vec![name]),
        2 => (claim("lan", name, |request| request.wait = Some(Span::from_secs(2))), vec![name]),
        _ if taken => (any("lan", name), vec![name]),
        _ => (Command::Bulk(vec![any("lan", name), any("lan", &other)]), vec![name, &other]),
    };
    let mut answer = world.once(who, &command).await;
    let nothing = matches!(
        answer,
        Err(LedgerError::Unavailable { .. } | LedgerError::NotLeading | LedgerError::TooLate)
    );
    // A place in the queue may be taken before the ledger is heard of no more.
    if nothing && choice != 2 && dice.below(2) == 0 {
        for name in names {
            assert_eq!(world.read_claim(&key(name)).await, None, "{answer:?}, and yet it was done");
        }
        return Vec::new();
    }
    if !matches!(answer, Ok(_) | Err(LedgerError::Refused(_))) {
        answer = world.insist(who, &command).await;
    }
    let replies = match answer {
        Ok(Reply::Bulk(replies)) => replies,
        Ok(reply) => vec![reply],
        Err(LedgerError::Refused(refusal)) => {
            for name in names {
                assert_eq!(world.read_claim(&key(name)).await, None, "{refusal}, and yet it was done");
            }
            return Vec::new();
        }
        other => panic!("{other:?}"),
    };
    let claimed = replies.into_iter().map(|reply| match reply {
        Reply::Claimed { claim, .. } => Claim::clone(&claim),
        other => panic!("{other:?}"),
    });
    claimed.inspect(|claim| world.rely(claim)).collect()
}

/// Gives an address back; what is left of it if the answer said that nothing was done.
async fn try_release(world: &World, who: &str, claim: Claim, dice: &mut Dice) -> Option<(Key, Claim)> {
    world.let_go(&claim);
    let command = Command::Release(target("lan", claim.key.as_str(), Some(claim.id)));
    let answer = world.once(who, &command).await;
    if let Err(LedgerError::Unavailable { .. } | LedgerError::NotLeading | LedgerError::TooLate) = answer
        && dice.below(2) == 0
    {
        let there = world.read_claim(&claim.key).await.map(|there| there.id);
        assert_eq!(there, Some(claim.id), "{answer:?}, and yet it was done");
        world.rely(&claim);
        return Some((claim.key.clone(), claim));
    }
    let answer = if answer.is_ok() { answer } else { world.insist(who, &command).await };
    assert!(matches!(answer, Ok(Reply::Released(Released::Done(_) | Released::AlreadyGone))), "{answer:?}");
    world.released.lock().unwrap().push(claim.id);
    None
}

async fn play(seed: u64, handles: Vec<Arc<dyn Store>>, pace: u32) {
    let world = World::new(seed, handles, pace).await;
    let mut dice = Dice::new(seed + 1);
    let callers: Vec<_> = (0..6)
        .map(|n| tokio::spawn(live(world.clone(), format!("caller{n}"), Dice::new(seed * 31 + n))))
        .collect();
    for _ in 0..dice.below(5) {
        world.rest(Duration::from_millis(dice.below(8000))).await;
        world.take_over().await;
    }
    let mut expected: Vec<Claim> = Vec::new();
    for caller in callers {
        expected.extend(caller.await.unwrap().into_values());
    }
    for store in world.stores.lock().unwrap().iter() {
        store.decide(|_, _| Fault::Pass);
    }
    world.rest(Duration::from_mins(1)).await;
    settle(&world, expected).await;
}

/// In the end a fresh ledger on the same store agrees with what everybody was told.
async fn settle(world: &World, mut expected: Vec<Claim>) {
    let leading = world.ledger();
    let before =
        leading.read(Freshness::Fresh, |book| book.claims(&ClaimFilter::default(), None, 1000)).await;
    let store = world.stores.lock().unwrap()[0].clone();
    let fresh = Ledger::open(store.clone(), TokioClock::shared(), Options::default()).await.unwrap();
    let now =
        fresh.read(Freshness::Fresh, |book| book.claims(&ClaimFilter::default(), None, 1000)).await.unwrap();
    let plain = |views: &[netstead_ledger::ClaimView]| -> Vec<Claim> {
        views.iter().map(|view| Claim::clone(&view.claim)).collect()
    };
    assert_eq!(plain(&before.unwrap().value), plain(&now.value), "a fresh Book is another");
    expected.sort_by_key(|claim| claim.address);
    assert_eq!(plain(&now.value), expected, "what was told is not what is");
    let report = check::check(&*store).await.unwrap();
    assert_eq!(report.problems, []);

    let query = netstead_ledger::EventQuery { limit: 100_000, ..Default::default() };
    let events = fresh.events(&query).await.unwrap().events;
    let count =
        |what, id| events.iter().filter(|e| e.what == what && e.claim().is_some_and(|c| c.id == id)).count();
    for claim in expected {
        assert_eq!((count(EventKind::Claimed, claim.id), count(EventKind::Released, claim.id)), (1, 0));
    }
    for id in world.released.lock().unwrap().iter() {
        assert_eq!((count(EventKind::Claimed, *id), count(EventKind::Released, *id)), (1, 1));
    }
}

#[test]
fn nobody_is_ever_lied_to() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("LEDGER_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LEDGER_SEEDS").unwrap_or(120),
    };
    for seed in seeds {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.block_on(async { play(seed, StoreFactory::memory().handles(2).await, 1).await });
        }));
        assert!(result.is_ok(), "it failed with LEDGER_SEED={seed}");
    }
}

/// The same on a store that takes real time, with threads that really run at once.
pub(crate) fn nobody_is_lied_to_on(ground: &Arc<StoreFactory>, seeds: u64) {
    for seed in 0..seeds {
        // With it end all who still do something, and give their store back.
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let done = runtime.block_on(async {
            let handles = ground.handles(3).await;
            tokio::spawn(play(seed, handles, 20)).await
        });
        assert!(done.is_ok(), "it failed with seed {seed}");
    }
}
