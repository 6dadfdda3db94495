//! Whole screens when much is going on at once, at 80 columns.

use netstead_testkit::{PowerDns, wait_until};

use super::dns_fixture::{HOSTS, SOON, Server, ZONES, powerdns, sandbox};
use crate::sandbox::Sandbox;

/// A screen without what is otherwise in every run.
fn steady(sandbox: &Sandbox, text: &str) -> String {
    let mut steady = String::new();
    for line in text.lines() {
        assert!(line.chars().count() <= 80 || line.contains("data"), "too wide:\n{line}");
        for (place, word) in line.split(' ').enumerate() {
            if place > 0 {
                steady.push(' ');
            }
            steady += &steady_word(word);
        }
        steady.truncate(steady.trim_end_matches(' ').len());
        steady.push('\n');
    }
    steady.replace(&sandbox.path().display().to_string(), "HOME")
}

fn steady_word(word: &str) -> String {
    let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let hex = |length| bare.len() == length && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (front, port) = bare.rsplit_once(':').unwrap_or((bare, ""));
    let is_age = bare.len() <= 4
        && bare
            .strip_suffix('s')
            .is_some_and(|age| !age.is_empty() && age.bytes().all(|b| b.is_ascii_digit()));
    if hex(16) {
        word.replace(bare, "0123456789abcdef")
    } else if hex(8) {
        word.replace(bare, "01234567")
    } else if bare.ends_with('Z') && bare.contains("T0") | bare.contains("T1") | bare.contains("T2") {
        word.replace(bare, "2026-01-01T00:00:00Z")
    } else if front.ends_with("127.0.0.1") && port.bytes().all(|byte| byte.is_ascii_digit()) {
        word.replace(port, "PORT")
    } else if is_age {
        // As wide as it was, or a slow run would move the columns.
        word.replace(bare, &format!("{:<1$}", "0s", bare.len()))
    } else {
        word.to_owned()
    }
}

#[test]
fn a_plan_and_the_status_read_well_when_much_is_going_on() {
    let (Some(daemon), Some(strict)) = (PowerDns::start(&ZONES), PowerDns::start(&ZONES)) else { return };
    let by_hand = "INSERT INTO records (domain_id, name, type, content, ttl, disabled, auth) \
                   SELECT id, 'mail.home.test', 'A', '192.0.2.25', 300, 0, 1 FROM domains WHERE name = 'home.test'";
    daemon.sql(by_hand).unwrap();
    let config = |more: &str| {
        format!(
            "{HOSTS}[source.lab]\ntype = \"hosts\"\npath = \"lab\"\n{}{}",
            powerdns("lan", &daemon.api_url(), more),
            powerdns("edge", &strict.api_url(), "").replace("netstead-test", "wrong")
        )
    };
    let mut sandbox = sandbox(&config(""));
    sandbox.write("hosts", "10.0.3.2 nas.home.test\n10.0.3.3 printer.home.test\n");
    sandbox.start(&[]);
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.59 --domain home.test");
    for line in ["claim lan web-1", "claim lan web-2", "record set www.home.test A 10.0.3.9"] {
        sandbox.does(line);
    }
    sandbox.does("record set app.home.test CNAME www.home.test.");
    let server = Server::from(&daemon);
    let there = wait_until(SOON, || (server.zone("home.test").plain().len() == 7).then_some(()));
    assert!(there.is_some(), "{:?}", server.zone("home.test"));

    // One of each: what the server will not have, what another owner has, what a typo would take away, a file that
    // cannot be read in full, a change, a removal and something new.
    sandbox.netstead(["record", "set", "shop.home.test", "MX", "10 _mail.home.test."]);
    sandbox.does("record set mail.home.test A 10.0.3.25");
    sandbox.reload(&config("exclude_domains = [\"app.home.test\"]"));
    sandbox.write("hosts", "10.0.3.2 nas.home.test\n");
    sandbox.netstead(["apply", "--provider", "lan"]);
    sandbox.write("hosts", "10.0.3.2 nas.home.test\n10.0.3 printer.home.test\n");
    sandbox.netstead(["apply", "--provider", "lan"]);
    sandbox.does("pause --provider lan --reason moving");
    for line in ["release lan web-2", "claim lan db-1", "record set www.home.test A 10.0.3.10"] {
        sandbox.does(line);
    }
    let planned = wait_until(SOON, || {
        let plan = sandbox.netstead(["plan", "lan"]).out;
        ["db-1", "→ 10.0.3.10", "- web-2", "rejects", "blocked", "incomplete"]
            .iter()
            .all(|part| plan.contains(part))
            .then_some(plan)
    });
    let plan = planned.unwrap_or_else(|| panic!("{}", sandbox.netstead(["plan", "lan"]).out));
    insta::assert_snapshot!("plan", steady(&sandbox, &plan));
    sandbox.netstead(["apply", "--provider", "builtin"]);
    sandbox.settles("builtin");
    insta::assert_snapshot!("status", steady(&sandbox, &sandbox.does("status")));
    let said = sandbox.does("explain shop.home.test");
    insta::assert_snapshot!("explain", steady(&sandbox, &said));
}
