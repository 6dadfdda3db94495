use proptest::prelude::*;

use super::*;
use crate::in_cluster::InClusterSpec;

fn space(range: &str) -> AddressSpace {
    let spec = InClusterSpec { addresses: vec![range.to_owned()], prefix: 24, ..InClusterSpec::default() };
    AddressSpace::of_addresses(&spec).unwrap()
}

fn index(range: &str) -> PoolIndex {
    let mut index = PoolIndex::default();
    index.set_space(Some(space(range)), BTreeMap::new());
    index
}

fn claim(name: &str) -> ObjectName {
    ObjectName::new("shop", name)
}

fn at(second: i64) -> Option<Timestamp> {
    Timestamp::from_second(second).ok()
}

fn get(index: &mut PoolIndex, name: &str, second: i64) -> String {
    match index.reserve(&claim(name), at(second), None) {
        Ok(address) => address.to_string(),
        Err(refusal) => format!("{refusal:?}"),
    }
}

/// The claims that were woken, in order, once each.
fn woken(index: &mut PoolIndex) -> Vec<ObjectName> {
    let woken: BTreeSet<ObjectName> = index.take_woken().into_iter().collect();
    woken.into_iter().collect()
}

fn ip(text: &str) -> Address {
    text.parse().unwrap()
}

#[test]
fn the_lowest_free_address_is_next_and_a_claim_keeps_its_own() {
    let mut index = index("10.0.0.10-10.0.0.12");
    assert_eq!(get(&mut index, "a", 1), "10.0.0.10");
    assert_eq!(get(&mut index, "b", 1), "10.0.0.11");
    assert_eq!(get(&mut index, "a", 1), "10.0.0.10");
    index.hold(&claim("a"), Some(ip("10.0.0.10")), at(5));
    index.hold(&claim("b"), Some(ip("10.0.0.11")), at(6));
    assert_eq!(get(&mut index, "c", 2), "10.0.0.12");
    index.free_object(&claim("a"));
    assert_eq!(get(&mut index, "d", 3), "10.0.0.10");
}

#[test]
fn waiting_claims_are_served_in_the_order_they_came() {
    let mut index = index("10.0.0.10");
    assert_eq!(get(&mut index, "holder", 1), "10.0.0.10");
    index.hold(&claim("holder"), Some(ip("10.0.0.10")), at(1));
    assert_eq!(get(&mut index, "late", 9), "Exhausted");
    assert_eq!(get(&mut index, "early", 2), "Exhausted");
    assert_eq!(index.counts().waiting, 2);
    // The oldest is woken, and a newcomer does not overtake it.
    index.take_woken();
    index.free_object(&claim("holder"));
    assert_eq!(woken(&mut index), [claim("early")]);
    assert_eq!(get(&mut index, "late", 9), "Exhausted");
    assert_eq!(get(&mut index, "newcomer", 10), "Exhausted");
    assert_eq!(get(&mut index, "early", 2), "10.0.0.10");
    // One that leaves makes room for the next.
    index.take_woken();
    index.forget(&claim("early"));
    assert_eq!(woken(&mut index), [claim("late")]);
    assert_eq!(get(&mut index, "late", 9), "10.0.0.10");
}

#[test]
fn a_wider_pool_wakes_as_many_as_it_can_serve() {
    let mut index = index("10.0.0.10");
    for (name, second) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        get(&mut index, name, second);
    }
    index.hold(&claim("a"), Some(ip("10.0.0.10")), at(1));
    index.take_woken();
    index.set_space(Some(space("10.0.0.10-10.0.0.12")), BTreeMap::new());
    assert_eq!(woken(&mut index), [claim("b"), claim("c")]);
    assert_eq!(get(&mut index, "c", 3), "10.0.0.11");
    assert_eq!(get(&mut index, "d", 4), "Exhausted");
    assert_eq!(get(&mut index, "b", 2), "10.0.0.12");
}

#[test]
fn wanted_and_promised_addresses_are_kept_for_their_claims() {
    let mut index = PoolIndex::default();
    let promises =
        BTreeMap::from([("vip".to_owned(), ip("10.0.0.10")), ("shop/db".to_owned(), ip("10.0.0.12"))]);
    index.set_space(Some(space("10.0.0.10-10.0.0.13")), promises);
    assert_eq!(get(&mut index, "a", 1), "10.0.0.11");
    let wish =
        |index: &mut PoolIndex, name: &str, text: &str| index.reserve(&claim(name), at(1), Some(ip(text)));
    assert_eq!(wish(&mut index, "b", "10.0.0.13"), Ok(ip("10.0.0.13")));
    assert_eq!(wish(&mut index, "c", "10.0.0.13"), Err(Refusal::Taken { by: "shop/b".to_owned() }));
    assert_eq!(wish(&mut index, "c", "10.0.0.10"), Err(Refusal::Taken { by: "vip".to_owned() }));
    assert_eq!(wish(&mut index, "c", "10.0.9.9"), Err(Refusal::Outside));
    assert_eq!(get(&mut index, "d", 1), "Exhausted");
    assert_eq!(get(&mut index, "vip", 1), "10.0.0.10");
    assert_eq!(get(&mut index, "db", 1), "10.0.0.12");
    assert_eq!(wish(&mut index, "e", "10.0.0.13"), Err(Refusal::Taken { by: "shop/b".to_owned() }));
    index.take_woken();
    index.forget(&claim("b"));
    assert_eq!(woken(&mut index), [claim("d"), claim("e")]);
}

#[test]
fn claims_that_enter_the_line_before_they_are_looked_at_are_served_in_its_order() {
    let mut index = index("10.0.0.10");
    for (name, second) in [("z", 3), ("b", 2), ("a", 3)] {
        index.enter_line(&claim(name), at(second));
    }
    // A worker comes to them in another order.
    assert_eq!(get(&mut index, "z", 3), "Exhausted");
    assert_eq!(get(&mut index, "a", 3), "Exhausted");
    assert_eq!(get(&mut index, "b", 2), "10.0.0.10");
    index.forget(&claim("b"));
    // Of one second, by name.
    assert_eq!(get(&mut index, "z", 3), "Exhausted");
    assert_eq!(get(&mut index, "a", 3), "10.0.0.10");
}

#[test]
fn every_replica_ranks_two_with_one_address_alike() {
    let rank = |order: [(&str, i64); 2]| {
        let mut index = index("10.0.0.10-10.0.0.20");
        for (name, second) in order {
            index.hold(&claim(name), Some(ip("10.0.0.10")), at(second));
        }
        let first = |name: &str| index.rivals(&claim(name)).first().map(|rival| rival.is_first);
        (first("ours"), first("theirs"))
    };
    // Whichever was seen first: the one that was made first, and in the same second the one whose name is lower.
    for order in [[("ours", 7), ("theirs", 6)], [("theirs", 6), ("ours", 7)]] {
        assert_eq!(rank(order), (Some(true), Some(false)));
    }
    for order in [[("ours", 7), ("theirs", 7)], [("theirs", 7), ("ours", 7)]] {
        assert_eq!(rank(order), (Some(false), Some(true)));
    }
}

#[test]
fn neither_of_two_with_one_address_frees_that_of_the_other_and_one_that_waits_is_woken() {
    let mut index = index("10.0.0.10-10.0.0.20");
    index.hold(&claim("ours"), Some(ip("10.0.0.10")), at(6));
    index.hold(&claim("theirs"), Some(ip("10.0.0.10")), at(7));
    index.take_woken();
    index.free_object(&claim("theirs"));
    assert_eq!(woken(&mut index), [claim("ours")]);
    assert_eq!(index.rivals(&claim("ours")), []);
    assert_eq!(get(&mut index, "a", 1), "10.0.0.11");
    // One that was deleted and made anew has another age.
    index.hold(&claim("theirs"), Some(ip("10.0.0.10")), at(8));
    index.hold(&claim("ours"), Some(ip("10.0.0.10")), at(9));
    assert_eq!(index.rivals(&claim("ours")), [Rival { name: claim("theirs"), is_first: true }]);
}

#[test]
fn a_released_address_rests_and_is_given_again_afterwards() {
    let mut index = index("10.0.0.10-10.0.0.11");
    let counts = |index: &PoolIndex| {
        let Counts { total, used, free, cooling, .. } = index.counts();
        (total, used, free, cooling)
    };
    assert_eq!(get(&mut index, "a", 1), "10.0.0.10");
    index.hold(&claim("a"), Some(ip("10.0.0.10")), at(1));
    index.cool(ip("10.0.0.10"), 100);
    assert_eq!(counts(&index), (2, 1, 1, 0));
    index.free_object(&claim("a"));
    assert_eq!(counts(&index), (2, 0, 1, 1));
    assert_eq!(get(&mut index, "b", 2), "10.0.0.11");
    assert_eq!(get(&mut index, "c", 3), "Exhausted");
    let wish = index.reserve(&claim("w"), at(4), Some(ip("10.0.0.10")));
    assert_eq!(wish, Err(Refusal::Resting { until: 100 }));
    index.take_woken();
    // The rest outlives a change of the pool.
    index.set_space(Some(space("10.0.0.9-10.0.0.11")), BTreeMap::new());
    assert_eq!(counts(&index), (3, 0, 2, 1));
    index.set_space(Some(space("10.0.0.10-10.0.0.11")), BTreeMap::new());
    index.take_woken();
    index.warm_up(Timestamp::from_second(99).unwrap());
    assert_eq!(woken(&mut index), []);
    index.warm_up(Timestamp::from_second(100).unwrap());
    assert_eq!(woken(&mut index), [claim("c"), claim("w")]);
    assert_eq!((get(&mut index, "c", 3).as_str(), index.counts().cooling), ("10.0.0.10", 0));
}

#[test]
fn an_address_that_is_held_again_does_not_rest() {
    let mut index = index("10.0.0.10-10.0.0.11");
    index.cool(ip("10.0.0.10"), 100);
    assert_eq!(index.counts().cooling, 1);
    index.hold(&claim("adopted"), Some(ip("10.0.0.10")), at(1));
    assert_eq!((index.counts().cooling, index.counts().free), (0, 1));
    index.warm_up(Timestamp::from_second(100).unwrap());
    assert_eq!((index.counts().cooling, index.counts().free), (0, 1));
    index.free_object(&claim("adopted"));
    assert_eq!((index.counts().cooling, index.counts().free), (0, 2));
}

#[test]
fn what_is_outside_is_counted_and_free_is_never_negative() {
    let mut index = index("10.0.0.10-10.0.0.20");
    for number in 10..15 {
        index.hold(&claim(&number.to_string()), Some(ip(&format!("10.0.0.{number}"))), at(1));
    }
    let counts = |index: &PoolIndex| {
        let Counts { total, used, free, out_of_range, .. } = index.counts();
        (total, used, free, out_of_range)
    };
    assert_eq!(counts(&index), (11, 5, 6, 0));
    index.set_space(Some(space("10.0.0.13-10.0.0.20")), BTreeMap::new());
    assert_eq!(index.outside(), ["10.0.0.10", "10.0.0.11", "10.0.0.12"].map(ip));
    assert_eq!(counts(&index), (8, 5, 6, 3));
    index.set_space(Some(space("10.0.0.14")), BTreeMap::new());
    assert_eq!(counts(&index), (1, 5, 0, 4));
    index.free_object(&claim("10"));
    assert_eq!(counts(&index), (1, 4, 0, 3));
    index.hold(&claim("odd"), None, at(1));
    assert_eq!(counts(&index), (1, 5, 0, 4));
}

/// A change of a small pool.
#[derive(Debug, Clone)]
enum Change {
    Ask(u8),
    Seen(u8),
    Gone(u8),
    Forget(u8),
    Widen(u8),
    Cool(u8, i64),
    Warm(i64),
}

fn change() -> impl Strategy<Value = Change> {
    let claims = 0_u8..12;
    prop_oneof![
        4 => claims.clone().prop_map(Change::Ask),
        2 => claims.clone().prop_map(Change::Seen),
        2 => claims.clone().prop_map(Change::Gone),
        1 => claims.prop_map(Change::Forget),
        1 => (1_u8..8).prop_map(Change::Widen),
        1 => (10_u8..18, 1_i64..50).prop_map(|(number, until)| Change::Cool(number, until)),
        1 => (0_i64..50).prop_map(Change::Warm),
    ]
}

proptest! {
    /// Beside sets of numbers that are counted one by one.
    #[test]
    fn it_gives_what_a_naive_pool_would(changes in prop::collection::vec(change(), 0..80)) {
        let mut index = index("10.0.0.10-10.0.0.13");
        let mut last = 13_u8;
        let (mut reserved, mut held) = (BTreeMap::<u8, u8>::new(), BTreeMap::<u8, u8>::new());
        let (mut line, mut cooling) = (BTreeSet::<u8>::new(), BTreeMap::<u8, i64>::new());
        let mut now = 0;
        let name = |number: u8| claim(&format!("c{number:02}"));
        for change in changes {
            let is_free = |address: u8, reserved: &BTreeMap<u8, u8>, held: &BTreeMap<u8, u8>, cooling: &BTreeMap<u8, i64>| {
                !reserved.values().chain(held.values()).any(|one| *one == address) && !cooling.contains_key(&address)
            };
            match change {
                Change::Ask(number) if !held.contains_key(&number) => {
                    let free: Vec<u8> = (10..=last).filter(|one| is_free(*one, &reserved, &held, &cooling)).collect();
                    let got = index.reserve(&name(number), at(1), None).ok().map(|address| address.to_string());
                    let wanted = if let Some(address) = reserved.get(&number) {
                        Some(*address)
                    } else {
                        line.insert(number);
                        let before = line.iter().take_while(|one| **one != number).count();
                        let given = free.first().copied().filter(|_| before < free.len());
                        if let Some(address) = given {
                            line.remove(&number);
                            reserved.insert(number, address);
                        }
                        given
                    };
                    prop_assert_eq!(got, wanted.map(|number| format!("10.0.0.{number}")));
                }
                Change::Seen(number) => {
                    if let Some(address) = reserved.remove(&number) {
                        index.hold(&name(number), Some(ip(&format!("10.0.0.{address}"))), at(1));
                        held.insert(number, address);
                    }
                }
                Change::Gone(number) => {
                    index.free_object(&name(number));
                    held.remove(&number);
                }
                Change::Forget(number) => {
                    index.forget(&name(number));
                    reserved.remove(&number);
                    line.remove(&number);
                }
                Change::Widen(more) => {
                    last = 9 + more;
                    index.set_space(Some(space(&format!("10.0.0.10-10.0.0.{last}"))), BTreeMap::new());
                    reserved.retain(|_, address| *address <= last);
                }
                Change::Cool(number, until) if until > now => {
                    index.cool(ip(&format!("10.0.0.{number}")), until);
                    cooling.insert(number, until);
                }
                Change::Warm(at) => {
                    now = now.max(at);
                    index.warm_up(Timestamp::from_second(now).unwrap());
                    cooling.retain(|_, until| *until > now);
                }
                Change::Ask(_) | Change::Cool(..) => {}
            }
            let inside = held.values().filter(|address| **address <= last).count() as u128;
            let taken = |address: &u8| reserved.values().chain(held.values()).any(|one| one == address);
            let resting = cooling.keys().filter(|address| **address <= last && !taken(address)).count() as u128;
            let total = u128::from(last - 9);
            let counts = Counts {
                total,
                used: held.len() as u128,
                free: total - inside - resting,
                out_of_range: held.len() as u128 - inside,
                cooling: resting,
                waiting: line.len() as u128,
            };
            prop_assert_eq!(index.counts(), counts);
        }
    }
}
