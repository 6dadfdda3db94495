//! Guests that are called alike, and addresses that are left out: both are shown.

use std::time::Duration;

use netstead_testkit::{FakePve, PowerDns, PveGuest, PveVersion};

use super::{configured, destination, source};
use crate::resolve;

/// On one line, as tables and sentences wrap.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn of_two_guests_with_one_name_the_older_has_it_and_the_other_says_why_not() {
    let Some(server) = PowerDns::start(&["lab.test"]) else { return };
    let fake = FakePve::start(PveVersion::Nine, &["pve1"]);
    // The one with the greater number is older.
    let made = |vmid: u32, name: &str, address: &str, second: u32| {
        let guest = PveGuest::machine(vmid, "pve1", name, address);
        PveGuest { hostname: "web".into(), ..guest }
            .with("meta", format!("creation-qemu=10.1.0,ctime={}", 1_760_000_000 + second))
    };
    fake.add(made(101, "clone", "10.0.3.11/24", 200));
    fake.add(made(102, "original", "10.0.3.12/24", 100));
    fake.add(PveGuest::machine(103, "pve1", "db", "10.0.3.13/24"));
    let every = "interval = \"1s\"\naddress_interval = \"1s\"";
    let mut sandbox = configured(&(source("pve", &fake, every) + &destination(&server)));
    sandbox.start(&[]);
    let port = server.address().port();
    resolve::until(&["10.0.3.12"], || resolve::a(port, "web.lab.test"));
    sandbox.does("apply");
    assert_eq!(resolve::a(port, "web.lab.test").values, ["10.0.3.12"]);
    let told = "`original` (pve/102/00000066) is called the same and came first; rename one of the two";
    let said = on_one_line(&sandbox.does("explain web.lab.test"));
    assert!(said.contains(told), "{said}");
    // Problems of names are counted beside the passes.
    let begun = resolve::Stopwatch::start();
    loop {
        let said = on_one_line(&sandbox.does("get workloads --problems -o json"));
        if said.contains(told) && !said.contains("original\",") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{said}");
    }
    assert_eq!(resolve::a(port, "web.lab.test").values, ["10.0.3.12"]);
    sandbox.stop();
}

#[test]
fn an_address_that_is_left_out_is_explained_by_name_and_by_address() {
    let fake = FakePve::start(PveVersion::Nine, &["pve1"]);
    let guest = PveGuest::machine(107, "pve1", "vm-7", "10.0.9.12/24");
    fake.add(PveGuest { hostname: "web1".into(), ..guest });
    let keys = "interval = \"1s\"\nskip_cidrs = [\"10.0.9.0/24\"]";
    let config = source("pve", &fake, keys)
        + "[domain.\"lab.test\"]\nnetworks = [\"10.0.0.0/8\"]\n[dns.own]\ntype = \"builtin\"\ndomains = [\"lab.test\"]\n";
    let mut sandbox = configured(&config);
    sandbox.start(&[]);
    sandbox.does("apply");
    let why = "10.0.9.12 is left out: `skip_cidrs` has 10.0.9.0/24";
    for (subject, told) in [("web1.lab.test", "pve/107/0000006b"), ("10.0.9.12", "pve/107/0000006b (`vm-7`)")]
    {
        let said = on_one_line(&sandbox.does(&format!("explain {subject}")));
        assert!(said.contains(&format!("{told}: {why}.")), "{said}");
    }
    let said = on_one_line(&sandbox.does("explain 10.0.9.13"));
    assert!(!said.contains("left out"), "{said}");
    // A token of one zone does not learn of guests.
    let secret = sandbox.does("token create ci --role read --zone other.test").trim().to_owned();
    let said = sandbox.netstead(["--token", &secret, "explain", "10.0.9.12"]);
    assert!(!said.out.contains("left out"), "{said:?}");
    sandbox.stop();
}
