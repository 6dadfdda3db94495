use std::{sync::Arc, time::Duration};

use proptest::{collection::vec, prelude::*};

use super::{brute_force::possible, *};

fn at(start: u64, end: u64, action: Action, outcome: Outcome) -> Operation {
    let moment = Duration::from_millis;
    Operation { client: 0, start: moment(start), end: moment(end), action, outcome }
}

fn claim(key: &str) -> Action {
    Action::Claim { key: key.into(), exact: None }
}

fn release(key: &str, id: &str) -> Action {
    Action::Release { key: key.into(), id: id.into() }
}

fn read(key: &str) -> Action {
    Action::ReadKey { key: key.into() }
}

fn read_address(address: &str) -> Action {
    Action::ReadAddress { address: address.into() }
}

fn list() -> Action {
    Action::List { prefix: "".into() }
}

fn holds(key: &str, address: &str, id: &str) -> Outcome {
    Outcome::Holds(Held::new(key, address, id))
}

/// As the real one, in a pool with all keys and these addresses.
fn check(operations: &[Operation]) -> Result<Summary, Vec<Violation>> {
    super::check(operations, &[Pool::new("", ADDRESSES.len())])
}

/// The violations of a history, in words.
fn wrong(operations: &[Operation]) -> String {
    let violations = check(operations).expect_err("this cannot have happened");
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_address_has_one_holder() {
    let said = wrong(&[
        at(0, 1, claim("web"), holds("web", ".50", "x")),
        at(2, 3, claim("db"), holds("db", ".50", "y")),
        at(4, 5, claim("web"), holds("web", ".50", "x")),
    ]);
    assert_eq!(said, ".50 is held by web = .50 (id x) and by db = .50 (id y) at the same time");
}

#[test]
fn a_claim_that_was_acknowledged_stays() {
    let lost = [at(0, 1, claim("web"), holds("web", ".50", "x")), at(2, 3, read("web"), Outcome::Nothing)];
    assert!(wrong(&lost).contains("though web = .50 (id x) was held all the time"));
    let by_address =
        [at(0, 1, claim("web"), holds("web", ".50", "x")), at(2, 3, read_address(".50"), Outcome::Nothing)];
    assert!(wrong(&by_address).contains("was held all the time"));
    let gone =
        [at(0, 1, claim("web"), holds("web", ".50", "x")), at(2, 3, release("web", "x"), Outcome::Gone)];
    assert!(wrong(&gone).contains("was held all the time"));
    // The read may have been before the claim.
    let before = [at(0, 5, claim("web"), holds("web", ".50", "x")), at(2, 3, read("web"), Outcome::Nothing)];
    check(&before).unwrap();
}

#[test]
fn a_repeat_gives_the_same() {
    let other =
        [at(0, 1, claim("web"), holds("web", ".50", "x")), at(2, 3, claim("web"), holds("web", ".51", "y"))];
    assert!(wrong(&other).starts_with("web holds web = .50 (id x) and web = .51 (id y)"));
    let same_id =
        [at(0, 1, claim("web"), holds("web", ".50", "x")), at(2, 3, claim("web"), holds("web", ".51", "x"))];
    assert!(wrong(&same_id).starts_with("one id for"));
}

#[test]
fn what_was_released_is_gone() {
    let there = [
        at(0, 1, claim("web"), holds("web", ".50", "x")),
        at(2, 3, release("web", "x"), Outcome::Released),
        at(4, 5, read("web"), holds("web", ".50", "x")),
    ];
    assert!(wrong(&there).contains("was seen after its release was acknowledged"));
    let mut known = there.to_vec();
    known[1].outcome = Outcome::Unknown;
    check(&known).expect("it may not have been released");
    known.push(at(6, 7, read("web"), Outcome::Nothing));
    check(&known).expect("or later");
    known.push(at(8, 9, read("web"), holds("web", ".50", "x")));
    assert!(wrong(&known).contains("was held all the time"), "but not back and forth");
}

#[test]
fn a_request_without_an_answer_made_at_most_one_claim() {
    let one = [
        at(0, 1, claim("web"), Outcome::Unknown),
        at(2, 3, read("web"), holds("web", ".50", "x")),
        at(4, 5, release("web", "x"), Outcome::Released),
        at(6, 7, read("web"), holds("web", ".51", "y")),
    ];
    check(&one[..3]).unwrap();
    assert!(wrong(&one).contains("web = .51 (id y) is there and nobody asked for it"));
}

#[test]
fn a_list_is_true_at_one_moment() {
    let both = |all: Vec<Held>| {
        [
            at(0, 1, claim("web"), holds("web", ".50", "x")),
            at(2, 30, list(), Outcome::All(all)),
            at(3, 4, release("web", "x"), Outcome::Released),
            at(5, 6, claim("db"), holds("db", ".51", "y")),
        ]
    };
    let (web, db) = (Held::new("web", ".50", "x"), Held::new("db", ".51", "y"));
    check(&both(vec![web.clone()])).unwrap();
    check(&both(vec![db.clone()])).unwrap();
    check(&both(vec![])).unwrap();
    assert!(wrong(&both(vec![web, db])).contains("never true at one moment"));
}

#[test]
fn an_address_is_refused_only_because_of_somebody() {
    let exact = Action::Claim { key: "db".into(), exact: Some(".50".into()) };
    let refused = at(2, 3, exact, Outcome::Taken);
    assert!(wrong(std::slice::from_ref(&refused)).contains("nobody had it"));
    check(&[at(0, 1, claim("web"), holds("web", ".50", "x")), refused.clone()]).unwrap();
    check(&[at(0, 1, claim("web"), Outcome::Unknown), refused]).unwrap();
}

/// A pool of three addresses of which all are held, from 10 on.
fn full() -> Vec<Operation> {
    let keys = KEYS.iter().zip(ADDRESSES);
    keys.map(|(key, address)| at(0, 10, claim(key), holds(key, address, key))).collect()
}

fn with(more: impl IntoIterator<Item = Operation>) -> Vec<Operation> {
    full().into_iter().chain(more).collect()
}

#[test]
fn a_pool_is_exhausted_only_while_all_of_it_may_be_held() {
    let exhausted = |start, end| at(start, end, claim("chat"), Outcome::Exhausted);
    check(&with([exhausted(20, 21)])).unwrap();
    check(&with([exhausted(5, 6)])).expect("all three may have been quicker");
    let said = wrong(&full()[1..].iter().cloned().chain([exhausted(20, 21)]).collect::<Vec<_>>());
    assert!(said.ends_with("and at no moment more than 2 of 3 can have been held by others"), "{said}");

    // While an address is free, and at the edges of that time.
    let freed = [
        at(20, 30, release("db", "db"), Outcome::Released),
        at(40, 50, claim("db"), holds("db", ".51", "again")),
    ];
    let during = |start, end| with(freed.iter().cloned().chain([exhausted(start, end)]));
    check(&during(25, 26)).expect("the release may have been later");
    check(&during(35, 41)).expect("the claim may have been sooner");
    check(&during(15, 60)).unwrap();
    assert!(wrong(&during(31, 39)).contains("no moment more than 2 of 3"));

    // All of it must be held at one moment, not each address at another.
    let one_by_one = [
        at(0, 1, claim("web"), holds("web", ".50", "x")),
        at(0, 1, claim("mail"), holds("mail", ".52", "z")),
        at(10, 11, release("web", "x"), Outcome::Released),
        at(12, 13, claim("db"), holds("db", ".51", "y")),
        exhausted(5, 20),
    ];
    assert!(wrong(&one_by_one).contains("no moment more than 2 of 3"));

    // A key that holds an address is given it again.
    let own = with([at(20, 21, claim("web"), Outcome::Exhausted)]);
    assert!(wrong(&own).contains("its key held an address all the time"));
    let exact = Action::Claim { key: "chat".into(), exact: Some(".50".into()) };
    assert!(wrong(&with([at(20, 21, exact, Outcome::Exhausted)])).contains("no answer to that"));
}

#[test]
fn what_nobody_saw_may_fill_a_pool_until_somebody_looks() {
    let lost = |key: &str| at(0, 1, claim(key), Outcome::Unknown);
    let two = full()[1..].to_vec();
    let exhausted = at(20, 21, claim("chat"), Outcome::Exhausted);
    let told = |more: &[Operation]| two.iter().chain(more).cloned().collect::<Vec<_>>();
    check(&told(&[lost("web"), exhausted.clone()])).unwrap();
    check(&told(&[lost("chat"), exhausted.clone()])).expect_err("it would have been given its own");
    check(&told(&[lost("db"), exhausted.clone()])).expect_err("a key has one address");
    let looked = [
        at(22, 23, read("web"), Outcome::Nothing),
        at(
            22,
            23,
            list(),
            Outcome::All(vec![Held::new("db", ".51", "db"), Held::new("mail", ".52", "mail")]),
        ),
        at(22, 23, claim("web"), holds("web", ".50", "late")),
    ];
    for look in &looked[..2] {
        let said = wrong(&told(&[lost("web"), exhausted.clone(), look.clone()]));
        assert!(said.contains("no moment more than 2 of 3"), "what is there stays there: {said}");
    }
    check(&told(&[lost("web"), exhausted.clone(), looked[2].clone()])).expect("it made what was seen later");
    // A release without an answer may be still to come, unless it was seen that it was not.
    let maybe = [at(12, 13, release("web", "web"), Outcome::Unknown), exhausted.clone()];
    check(&with(maybe.clone())).unwrap();
    let gone = at(14, 15, release("web", "web"), Outcome::Gone);
    assert!(wrong(&with(maybe.into_iter().chain([gone]))).contains("no moment more than 2 of 3"));
}

/// A step of a ledger that works, with how long before and after it its client waited.
#[derive(Debug, Clone)]
struct Step {
    kind: u8,
    key: usize,
    address: usize,
    before: usize,
    after: u64,
    lost: bool,
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (0..8_u8, 0..4_usize, 0..3_usize, 0..40_usize, 0..40_u64, prop::bool::weighted(0.15));
    let step = step.prop_map(|(kind, key, address, before, after, lost)| Step {
        kind,
        key,
        address,
        before,
        after,
        lost,
    });
    vec(step, 1..most)
}

const KEYS: [&str; 4] = ["web", "db", "mail", "chat"];
const ADDRESSES: [&str; 3] = [".50", ".51", ".52"];

/// The history of a correct ledger: each step is done at once, one after the other.
fn truthful(steps: &[Step]) -> Vec<Operation> {
    let mut held: Vec<Held> = Vec::new();
    let mut known: Vec<Held> = Vec::new();
    let mut operations = Vec::new();
    for (number, step) in (1_u64..).zip(steps) {
        let (key, address) = (KEYS[step.key], ADDRESSES[step.address]);
        let here = held.iter().find(|held| &*held.key == key).cloned();
        let there = held.iter().find(|held| &*held.address == address).cloned();
        let seen = |found: Option<Held>| found.map_or(Outcome::Nothing, Outcome::Holds);
        let (action, outcome) = match step.kind {
            0..=2 => match (here, there) {
                (Some(here), _) => (claim(key), Outcome::Holds(here)),
                (None, _) if held.len() == ADDRESSES.len() => (claim(key), Outcome::Exhausted),
                (None, Some(_)) => {
                    (Action::Claim { key: key.into(), exact: Some(address.into()) }, Outcome::Taken)
                }
                (None, None) => {
                    let new = Held::new(key, address, &format!("id{number}"));
                    held.push(new.clone());
                    (claim(key), Outcome::Holds(new))
                }
            },
            3 | 4 => {
                // A client can name only an id that it was given.
                let Some(target) = known.get(step.before % known.len().max(1)).cloned() else {
                    continue;
                };
                let was = held.len();
                held.retain(|held| held.id != target.id);
                let outcome = if held.len() < was { Outcome::Released } else { Outcome::Gone };
                (Action::Release { key: target.key, id: target.id }, outcome)
            }
            5 => (read(key), seen(here)),
            6 => (read_address(address), seen(there)),
            _ => (list(), Outcome::All(held.clone())),
        };
        let moment = number * 10;
        let outcome = if step.lost { Outcome::Unknown } else { outcome };
        match &outcome {
            Outcome::Holds(held) => known.push(held.clone()),
            Outcome::All(all) => known.extend(all.iter().cloned()),
            _ => {}
        }
        operations.push(at(
            moment.saturating_sub(step.before as u64),
            moment + step.after + 1,
            action,
            outcome,
        ));
    }
    operations
}

/// One answer becomes another one.
fn falsified(mut operations: Vec<Operation>, which: usize, how: usize) -> Vec<Operation> {
    let all: Vec<Outcome> = operations.iter().map(|operation| operation.outcome.clone()).collect();
    let count = operations.len().max(1);
    if let Some(operation) = operations.get_mut(which % count) {
        operation.outcome = match (&operation.action, how % 4) {
            (Action::List { .. }, _) => Outcome::All(Vec::new()),
            (Action::Release { .. }, _) if operation.outcome == Outcome::Gone => Outcome::Released,
            (Action::Release { .. }, _) => Outcome::Gone,
            (Action::ReadKey { .. } | Action::ReadAddress { .. }, 0 | 1) => Outcome::Nothing,
            _ => all.get(how % all.len().max(1)).cloned().unwrap_or(Outcome::Failed),
        };
        if matches!(operation.outcome, Outcome::All(_)) != matches!(operation.action, Action::List { .. }) {
            operation.outcome = Outcome::Failed;
        }
    }
    operations
}

/// Refusals and lists are judged by what may have been, so they are left out where both must agree.
fn without_refusals(mut operations: Vec<Operation>) -> Vec<Operation> {
    operations.retain(|operation| !matches!(operation.outcome, Outcome::Taken | Outcome::Exhausted));
    operations
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_a_ledger_that_works_says_is_possible(steps in steps(200)) {
        let operations = truthful(&steps);
        prop_assert_eq!(check(&operations).map_err(|wrong| wrong[0].to_string()).err(), None);
    }

    #[test]
    fn every_order_tried_says_the_same(steps in steps(9), which in 0..9_usize, how in 0..9_usize) {
        let no_lists: Vec<_> = steps.into_iter().map(|step| Step { kind: step.kind.min(6), ..step }).collect();
        let operations = without_refusals(truthful(&no_lists));
        prop_assert!(possible(&operations, ADDRESSES.len()));
        let operations = without_refusals(falsified(operations, which, how));
        prop_assert_eq!(check(&operations).is_ok(), possible(&operations, ADDRESSES.len()), "{:#?}", operations);
    }

    #[test]
    fn nothing_possible_is_called_impossible(steps in steps(9), which in 0..9_usize, how in 0..9_usize) {
        let mut operations = falsified(truthful(&steps), which, how);
        operations.retain(|operation| operation.outcome != Outcome::Taken);
        if possible(&operations, ADDRESSES.len()) {
            prop_assert_eq!(check(&operations).err(), None, "{:#?}", operations);
        }
    }
}

/// Twenty thousand operations of sixteen clients, and each kind of lie among them.
#[test]
fn a_lie_among_twenty_thousand_is_found_at_once() {
    let mut dice = 7_u64;
    let mut next = move |below: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % below
    };
    let mut operations = Vec::new();
    let mut held: Vec<Held> = Vec::new();
    for number in 0..20_000_u64 {
        let (start, end) = (number * 10, number * 10 + 1 + next(150));
        let key = format!("key-{}", next(200));
        let found = held.iter().position(|held| *held.key == *key);
        let (action, outcome) = match (next(4), found) {
            (0 | 1, None) => {
                let taken = |address: &str| held.iter().any(|held| &*held.address == address);
                let address = (0..1000).map(|n| format!(".{n}")).find(|address| !taken(address)).unwrap();
                let new = Held::new(&key, &address, &format!("id-{number}"));
                held.push(new.clone());
                (claim(&key), Outcome::Holds(new))
            }
            (0 | 1, Some(at)) => (claim(&key), Outcome::Holds(held[at].clone())),
            (2, Some(at)) => {
                let old = held.swap_remove(at);
                (Action::Release { key: old.key, id: old.id }, Outcome::Released)
            }
            (_, found) => (read(&key), found.map_or(Outcome::Nothing, |at| Outcome::Holds(held[at].clone()))),
        };
        // No client knows the result of step `start + 1` before.
        operations.push(at(start, end, action, outcome));
        if number % 500 == 0 {
            operations.push(at(start + 2, start + 3, list(), Outcome::All(held.clone())));
        }
    }
    let check =
        |operations: &[Operation]| super::check(operations, &[Pool::new("key-", 200), Pool::new("", 1000)]);
    let summary = check(&operations).map_err(|wrong| wrong[0].to_string()).unwrap();
    assert!(summary.operations > 20_000 && summary.holdings > 2000, "{summary:?}");
    let end = 20_000 * 10 + 1000;
    let victim = held[held.len() / 2].clone();
    let Held { key, address, id } = &victim;
    let ended = operations.iter().rev().find_map(|operation| match &operation.action {
        Action::Release { id, .. } => Some(Arc::clone(id)),
        _ => None,
    });
    let ended = ended.unwrap();
    let old = operations.iter().find_map(|operation| match &operation.outcome {
        Outcome::Holds(held) if held.id == ended => Some(held.clone()),
        _ => None,
    });
    let old = old.unwrap();
    let lies = [
        at(end, end + 1, claim("other"), holds("other", address, "new")),
        at(end, end + 1, claim(key), holds(key, ".9999", "new")),
        at(end, end + 1, read(key), Outcome::Nothing),
        at(end, end + 1, read_address(address), Outcome::Nothing),
        at(end, end + 1, release(key, id), Outcome::Gone),
        at(end, end + 1, read(&old.key), Outcome::Holds(old.clone())),
        at(end, end + 1, list(), Outcome::All(held[1..].to_vec())),
        at(end, end + 1, claim("other"), Outcome::Exhausted),
    ];
    for lie in lies {
        let mut operations = operations.clone();
        // Others who see the truth afterwards.
        operations.push(at(end + 2, end + 3, read(key), Outcome::Holds(victim.clone())));
        assert!(check(&operations).is_ok());
        operations.push(lie.clone());
        let violations = check(&operations).expect_err(&lie.to_string());
        assert!(violations.len() <= 2, "{lie} is named, not everything: {}", violations.len());
    }
}
