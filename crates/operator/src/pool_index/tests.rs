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

fn ip(text: &str) -> Address {
    text.parse().unwrap()
}

#[test]
fn the_lowest_free_address_is_next_and_a_claim_keeps_its_own() {
    let mut index = index("10.0.0.10-10.0.0.12");
    assert_eq!(get(&mut index, "a", 1), "10.0.0.10");
    assert_eq!(get(&mut index, "b", 1), "10.0.0.11");
    assert_eq!(get(&mut index, "a", 1), "10.0.0.10");
    index.hold(&claim("a"), Some(ip("10.0.0.10")), 5);
    index.hold(&claim("b"), Some(ip("10.0.0.11")), 6);
    assert_eq!(get(&mut index, "c", 2), "10.0.0.12");
    index.free_object(&claim("a"));
    assert_eq!(get(&mut index, "d", 3), "10.0.0.10");
}

#[test]
fn waiting_claims_are_served_in_the_order_they_came() {
    let mut index = index("10.0.0.10");
    assert_eq!(get(&mut index, "holder", 1), "10.0.0.10");
    index.hold(&claim("holder"), Some(ip("10.0.0.10")), 1);
    assert_eq!(get(&mut index, "late", 9), "Exhausted");
    assert_eq!(get(&mut index, "early", 2), "Exhausted");
    assert_eq!(index.counts().waiting, 2);
    // The oldest is woken, and a newcomer does not overtake it.
    assert_eq!(index.free_object(&claim("holder")), [claim("early")]);
    assert_eq!(get(&mut index, "late", 9), "Exhausted");
    assert_eq!(get(&mut index, "newcomer", 10), "Exhausted");
    assert_eq!(get(&mut index, "early", 2), "10.0.0.10");
    // One that leaves makes room for the next.
    assert_eq!(index.forget(&claim("early")), [claim("late")]);
    assert_eq!(get(&mut index, "late", 9), "10.0.0.10");
}

#[test]
fn a_wider_pool_wakes_as_many_as_it_can_serve() {
    let mut index = index("10.0.0.10");
    for (name, second) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        get(&mut index, name, second);
    }
    index.hold(&claim("a"), Some(ip("10.0.0.10")), 1);
    let woken = index.set_space(Some(space("10.0.0.10-10.0.0.12")), BTreeMap::new());
    assert_eq!(woken, [claim("b"), claim("c")]);
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
    let mut woken = index.forget(&claim("b"));
    woken.sort();
    assert_eq!(woken, [claim("c"), claim("d"), claim("e")]);
}

#[test]
fn the_server_decides_between_two_with_one_address() {
    let mut index = index("10.0.0.10-10.0.0.20");
    index.hold(&claim("ours"), Some(ip("10.0.0.10")), 7);
    index.hold(&claim("theirs"), Some(ip("10.0.0.10")), 6);
    assert_eq!(index.rivals(&claim("ours")), [Rival { name: claim("theirs"), older: true }]);
    assert_eq!(index.rivals(&claim("theirs")), [Rival { name: claim("ours"), older: false }]);
    // Neither frees the address of the other.
    index.free_object(&claim("ours"));
    assert_eq!(get(&mut index, "a", 1), "10.0.0.11");
}

#[test]
fn what_is_outside_is_counted_and_free_is_never_negative() {
    let mut index = index("10.0.0.10-10.0.0.20");
    for number in 10..15 {
        index.hold(&claim(&number.to_string()), Some(ip(&format!("10.0.0.{number}"))), 1);
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
    index.hold(&claim("odd"), None, 1);
    assert_eq!(counts(&index), (1, 5, 0, 4));
}
