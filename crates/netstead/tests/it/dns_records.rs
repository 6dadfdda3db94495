//! Names, from a claim or a file to an answer.

use std::{net::Ipv4Addr, time::Duration};

use netstead_testkit::Process;

use crate::{
    resolve::{self, Stopwatch},
    sandbox::{SOON, Sandbox},
};

const REFUSED: u8 = 5;

#[test]
fn a_claim_has_its_name_at_once_and_a_release_takes_it_away() {
    let sandbox = Sandbox::with_server();
    let (dns, address) = (sandbox.dns(), Ipv4Addr::new(10, 0, 3, 50));
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    assert_eq!(resolve::a(dns, "web-1.home.test").code, REFUSED);
    // The first of all names pays for what is set up once; of the others the quickest of several counts, because this
    // machine has other things to do as well.
    let mut took = Vec::new();
    for round in 0..5 {
        assert_eq!(sandbox.does("claim lan web-1"), "10.0.3.50\n");
        let forward = resolve::until(&["10.0.3.50"], || resolve::a(dns, "web-1.home.test"));
        let backward = resolve::until(&["web-1.home.test."], || resolve::ptr(dns, address));
        sandbox.does("release lan web-1");
        let gone = resolve::until(&[], || resolve::a(dns, "web-1.home.test"));
        let pointer = resolve::until(&[], || resolve::ptr(dns, address));
        // Outside of configured domains nothing is denied: another server may know the name.
        assert_eq!(resolve::a(dns, "web-1.home.test").code, REFUSED, "round {round}");
        took.push((forward + backward).max(gone + pointer));
    }
    assert!(took.iter().min().unwrap() < &Duration::from_millis(100), "{took:?}");
}

#[test]
fn a_record_is_set_and_deleted_by_hand() {
    let sandbox = Sandbox::with_server();
    let dns = sandbox.dns();
    let said =
        sandbox.netstead(["record", "set", "www.home.test", "A", "10.0.3.9", "10.0.3.10", "--ttl", "60"]);
    assert_eq!((said.code, said.err.as_str()), (0, "www.home.test A is 10.0.3.9, 10.0.3.10\n"));
    resolve::until(&["10.0.3.9", "10.0.3.10"], || {
        let mut answer = resolve::a(dns, "www.home.test");
        answer.values.sort_by_key(String::len);
        answer
    });
    sandbox.does("record set www.home.test A 10.0.3.11");
    resolve::until(&["10.0.3.11"], || resolve::a(dns, "www.home.test"));
    assert!(sandbox.does("explain www.home.test").contains("record set by admin"));
    assert!(sandbox.does("export --zonefile").contains("www.home.test. 300 IN A 10.0.3.11\n"));

    for line in ["record set www.home.test A 10.0.3.999", "record set www.home.test CNAME other.home.test."] {
        sandbox.fails(line);
    }
    sandbox.does("record delete www.home.test A");
    resolve::until(&[], || resolve::a(dns, "www.home.test"));
    assert!(sandbox.fails("record delete www.home.test").err.contains("hint: "));
    assert_eq!(sandbox.does("get records -o name"), "");
}

#[test]
fn a_plan_says_by_its_exit_code_how_things_stand() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    assert_eq!(sandbox.does("plan"), "builtin: nothing to change\n");
    sandbox.does("pause --reason moving");
    sandbox.does("claim lan web-1");
    let pending = |sandbox: &Sandbox| sandbox.netstead(["plan", "builtin"]);
    let begun = Stopwatch::start();
    while pending(&sandbox).code != 2 {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", pending(&sandbox));
    }
    insta::assert_snapshot!(pending(&sandbox).out);
    assert!(sandbox.does("get providers").contains("paused"));
    assert!(sandbox.does("get records --state pending").contains("web-1.home.test"));
    assert!(resolve::a(sandbox.dns(), "web-1.home.test").values.is_empty());

    sandbox.does("resume");
    resolve::until(&["10.0.3.50"], || resolve::a(sandbox.dns(), "web-1.home.test"));
    sandbox.does("apply");
    assert_eq!(sandbox.does("plan"), "builtin: nothing to change\n");
    let said = sandbox.fails("plan nobody");
    assert!(said.err.contains("`nobody`") && said.err.contains("netstead get providers"), "{}", said.err);
    assert!(sandbox.fails("apply 0123456789abcdef").err.contains("netstead plan"));
}

#[test]
fn everything_about_names_can_be_listed() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    sandbox.does("claim lan web-1");
    sandbox.does("apply");
    for (what, wanted) in [
        ("records", "web-1.home.test         A     10.0.3.50         300  ok     builtin"),
        ("zones", "web-1.home.test         builtin   1        0"),
        ("sources", "ledger  ledger  complete"),
        ("providers", "builtin  builtin  in sync  2"),
        ("plans", "builtin"),
        ("workloads", "ledger  web-1  claim  present  10.0.3.50  web-1.home.test"),
        ("drift", "PROVIDER"),
    ] {
        let said = sandbox.does(&format!("get {what}"));
        assert!(said.contains(wanted), "get {what}:\n{said}");
        assert!(said.lines().all(|line| line.chars().count() <= 80), "get {what}:\n{said}");
        for format in ["json", "yaml", "csv", "wide", "name"] {
            sandbox.does(&format!("get {what} -o {format}"));
        }
    }
    let status = sandbox.does("status");
    assert!(status.contains("own nameserver on 127.0.0.1:") && status.contains("in sync"), "{status}");
    assert!(sandbox.does("store check").is_empty());
}

#[test]
fn a_place_that_is_taken_is_a_problem_only_if_it_was_asked_for() {
    let sandbox = Sandbox::with_server();
    let other = Sandbox::empty();
    let place = format!("127.0.0.1:{}", sandbox.dns());
    let said = other.netstead(["run", "--listen", "127.0.0.1:0", "--dns-listen", &place]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("names cannot be answered for") && said.err.contains("--dns-listen"),
        "{}",
        said.err
    );

    // The usual place may be free on this machine or not; two cannot both have it.
    let start = || {
        let mut command = other.command();
        command
            .args(["run", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(tempfile::tempdir().unwrap().keep());
        let mut server = Process::start("netstead", &mut command).unwrap();
        server.wait_for_line("next ", SOON).unwrap();
        server
    };
    let servers = [start(), start()];
    let without =
        servers.iter().filter(|server| server.log().contains("no nameserver: 127.0.0.1:5300")).count();
    assert!(without >= 1, "{}", servers[1].log());
}

#[test]
fn a_dry_run_writes_nothing() {
    let mut sandbox = Sandbox::empty();
    sandbox.start(&["--dry-run"]);
    sandbox.does("record set www.home.test A 10.0.3.9");
    sandbox.does("apply");
    assert_eq!(sandbox.netstead(["plan"]).code, 2);
    assert!(resolve::a(sandbox.dns(), "www.home.test").values.is_empty());
}

#[test]
fn what_was_done_to_a_name_can_be_looked_up() {
    let mut sandbox = Sandbox::with_server();
    sandbox.does("record set www.home.test A 10.0.3.9");
    resolve::until(&["10.0.3.9"], || resolve::a(sandbox.dns(), "www.home.test"));
    sandbox.does("record set www.home.test A 10.0.3.10");
    resolve::until(&["10.0.3.10"], || resolve::a(sandbox.dns(), "www.home.test"));
    sandbox.does("pause --reason moving");
    let of_it = |sandbox: &Sandbox| {
        let text = sandbox.does("get changes --name www.home.test");
        let lines = text.lines().skip(1).map(|line| {
            let words: Vec<&str> = line.split_whitespace().skip(1).collect();
            words.join(" ")
        });
        lines.collect::<Vec<String>>()
    };
    let done = [
        "set manual www.home.test A 10.0.3.9 was set by hand",
        "applied builtin www.home.test + A 10.0.3.9",
        "set manual www.home.test A 10.0.3.10 was set by hand",
        "applied builtin www.home.test ~ A 10.0.3.9 \u{2192} 10.0.3.10",
    ];
    let mut found = of_it(&sandbox);
    let mut wanted = done.map(str::to_owned).to_vec();
    // What a person asked for and what was done about it are told side by side.
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
    let newest = sandbox.does("get changes --limit 1");
    assert!(newest.contains("paused") && newest.contains("all is paused: moving"), "{newest}");
    assert!(newest.lines().all(|line| line.chars().count() <= 80), "{newest}");
    let wide = sandbox.does("get changes --what applied -o wide");
    assert!(wide.contains("GENERATION") && wide.contains("record set by admin"), "{wide}");
    let json: serde_json::Value =
        serde_json::from_str(&sandbox.does("get changes --what applied --provider builtin -o json")).unwrap();
    assert_eq!(json[0]["changes"][0]["action"], "add", "{json}");
    assert_eq!(json[0]["zone"], json[0]["changes"][0]["zone"], "{json}");
    assert!(sandbox.does("get changes -o yaml").contains("what: paused"));
    assert_eq!(sandbox.does("get changes --since 1h --until 30m -o name"), "");
    assert!(sandbox.fails("get changes --what nonsense").err.contains("it is one of applied, changed"));
    let before = of_it(&sandbox);
    sandbox.stop();
    sandbox.start(&[]);
    assert_eq!(of_it(&sandbox), before, "a restart forgets nothing and tells nothing twice");

    let mut watching = sandbox.command();
    watching.args(["get", "changes", "--watch", "--name", "www.home.test"]);
    let mut watching = Process::start("watch", &mut watching).unwrap();
    watching.wait_for_line("10.0.3.10", SOON).unwrap();
    sandbox.does("resume");
    sandbox.does("record set www.home.test A 10.0.3.11");
    watching.wait_for_line("~ A 10.0.3.10", SOON).unwrap();
}

/// The server must not need the names that it keeps: only the server itself knows `ns1.home.test`.
#[test]
fn the_names_it_keeps_are_not_needed_to_start() {
    let mut sandbox = Sandbox::empty();
    let file = "[dns.far]\ntype = \"powerdns\"\nurl = \"http://ns1.home.test:8081\"\napi_key = \"x\"\n\
                domains = [\"home.test\"]\n[dns.own]\ntype = \"builtin\"\ndomains = [\"home.test\"]\n";
    std::fs::write(sandbox.path().join("netstead.toml"), file).unwrap();
    sandbox.start(&[]);
    sandbox.does("record set ns1.home.test A 127.0.0.1");
    resolve::until(&["127.0.0.1"], || resolve::a(sandbox.dns(), "ns1.home.test"));
    assert!(sandbox.does("export --zonefile --provider own").contains("ns1.home.test. 300 IN A 127.0.0.1"));
    sandbox.stop();
    sandbox.start(&[]);
    resolve::until(&["127.0.0.1"], || resolve::a(sandbox.dns(), "ns1.home.test"));
    let begun = Stopwatch::start();
    while !sandbox.netstead(["status"]).out.contains("Provider `far` fails") {
        assert!(begun.elapsed() < SOON, "{}", sandbox.netstead(["status"]).out);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(sandbox.does("export --zonefile --provider own").contains("ns1.home.test. 300 IN A 127.0.0.1"));
}
