//! A write that was on its way to a server that cannot refuse it, while the lead moved to another node.

use std::time::Duration;

use netstead_testkit::{DelayingProxy, Etcd, PowerDns, wait_until};

use super::nodes::ready;
use crate::{
    resolve::{self, Stopwatch},
    sandbox::{SOON, Sandbox},
};

/// In how much time a server that cannot refuse a late write holds again what it should.
const BACK: Duration = Duration::from_secs(10);

fn is_patch(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PATCH ")
}

#[test]
fn what_a_sleeping_leader_sent_is_repaired_by_the_new_one() {
    let Some(etcd) = Etcd::start(1) else { return };
    let Some(server) = PowerDns::start(&["home.test"]) else { return };
    let api = server.api_url();
    let gate =
        DelayingProxy::before(api.strip_prefix("http://").unwrap().parse().unwrap(), is_patch).unwrap();
    let config = |url: &str| {
        format!(
            "[store]\ntype = \"etcd\"\nendpoints = [\"{}\"]\n[dns.lan]\ntype = \"powerdns\"\nurl = \"{url}\"\n\
             api_key = \"{}\"\ndomains = [\"home.test\"]\nreverse = false\n",
            etcd.endpoints()[0],
            server.api_key()
        )
    };
    let (first_house, mut first) = ready(&config(&format!("http://{}", gate.address())));
    first.wait_for_line("This node leads", SOON).unwrap();
    let holds =
        |value: &str| resolve::until(&[value], || resolve::a(server.address().port(), "www.home.test"));
    first_house.does("record set www.home.test A 10.0.3.9");
    holds("10.0.3.9");
    let (second_house, mut second) = ready(&config(&api));
    // It has looked, has asked the store, and is stopped on its way to the server.
    gate.shut();
    first_house.does("record set www.home.test A 10.0.3.10");
    assert!(gate.holds_one(SOON));
    first.signal("STOP").unwrap();
    second.wait_for_line("This node leads", SOON).unwrap();
    second_house.does("record set www.home.test A 10.0.3.11");
    holds("10.0.3.11");

    let passed = gate.passed();
    gate.open();
    // The late one arrives, and who sent it wakes.
    assert!(
        wait_until(SOON, || (gate.passed() > passed).then_some(())).is_some(),
        "the late write did arrive"
    );
    first.signal("CONT").unwrap();
    let woke = Stopwatch::start();
    // It is told of by who sent it, and taken back.
    let repaired = |sandbox: &Sandbox| sandbox.does("get changes -o json").contains("late").then_some(());
    assert!(wait_until(SOON, || repaired(&second_house)).is_some(), "{}\n{}", first.log(), second.log());
    holds("10.0.3.11");
    let took = woke.elapsed();
    println!("a late write was repaired {took:?} after who had sent it woke");
    assert!(took < BACK, "{took:?}");
    first.wait_for_line("this one follows", SOON).unwrap();
    assert!(first.running());
    // As one who follows it serves: what it is told is done by the other.
    first_house.does("record set www.home.test A 10.0.3.12");
    holds("10.0.3.12");
    // Asked one after the other, they may see two moments.
    let same = || (first_house.does("get records") == second_house.does("get records")).then_some(());
    assert!(wait_until(SOON, same).is_some());
}
