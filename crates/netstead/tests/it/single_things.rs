//! One thing by its name, and all of a long plan.

use netstead_testkit::wait_until;

use crate::sandbox::{SOON, Sandbox};

#[test]
fn one_thing_is_shown_by_its_name() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    sandbox.does("pool create lab --range 10.0.4.1-10.0.4.9");
    sandbox.does("claim lan web-1");
    sandbox.does("claim lab web-1");
    sandbox.does("claim lan web-2");
    sandbox.does("release lan web-2");

    let pools = sandbox.does("get pools");
    assert!(pools.lines().all(|line| line.chars().count() <= 80), "{pools}");
    // The numbers of a row add up: 151 = 1 held + 1 resting + 149 free.
    let row: Vec<&str> =
        pools.lines().find(|line| line.starts_with("lan ")).unwrap().split_whitespace().collect();
    assert_eq!(row[3..7], ["151", "1", "1", "149"], "{pools}");

    let one = sandbox.does("get pool lan");
    assert!(one.contains("10.0.3.50-10.0.3.200") && !one.contains("lab"), "{one}");
    let one = sandbox.does("get claim lan/web-1");
    assert!(one.contains("10.0.3.50") && !one.contains("10.0.4.1"), "{one}");
    for (line, wanted) in [
        ("describe pool lan", ["10.0.3.50-10.0.3.200", "web-2", "released"]),
        ("describe pools lan", ["10.0.3.50-10.0.3.200", "web-2", "released"]),
        ("describe claim lan/web-1", ["10.0.3.50", "web-1.home.test", "claimed"]),
        ("describe provider builtin", ["builtin", "home.test", "in sync"]),
        ("describe source ledger", ["ledger", "complete", "ledger"]),
        ("describe workload web-1", ["web-1", "10.0.3.50", "present"]),
        ("describe 10.0.3.50", ["held", "web-1", "web-1.home.test"]),
        ("describe web-1.home.test", ["web-1.home.test", "10.0.3.50", "builtin"]),
    ] {
        let said = sandbox.does(line);
        assert!(wanted.iter().all(|part| said.contains(part)), "{line}:\n{said}");
    }
    let said = sandbox.fails("get pool lam");
    assert!(said.err.contains("`lam`") && said.err.contains("`netstead get pools`"), "{}", said.err);
    let said = sandbox.fails("describe things lan");
    assert!(said.err.contains("pool, claim, provider, source, workload"), "{}", said.err);
}

#[test]
fn a_long_plan_is_cut_and_all_of_it_is_shown_on_request() {
    let mut sandbox = Sandbox::empty();
    let write = |file: &str, text: &str| std::fs::write(sandbox.path().join(file), text).unwrap();
    let lines = (1..=60).map(|number| format!("10.0.3.{number} host-{number}.home.test\n"));
    write("hosts", &lines.collect::<String>());
    let table = "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n";
    write("netstead.toml", table);
    sandbox.start(&[]);
    let all_there = || {
        let owned = sandbox.does("get records");
        (owned.lines().filter(|line| line.starts_with("host-")).count() == 60).then_some(())
    };
    assert!(wait_until(SOON, all_there).is_some(), "{}", sandbox.does("get records"));
    // The configuration no longer lets the source ask for these names: all of them are parked.
    std::fs::write(sandbox.path().join("netstead.toml"), format!("{table}domains = [\"lab.test\"]\n"))
        .unwrap();
    let parked = || Some(sandbox.netstead(["plan", "builtin"])).filter(|said| said.code == 3);
    let short = wait_until(SOON, parked).expect("the changes are parked").out;
    let removed = |text: &str| text.lines().filter(|line| line.trim_start().starts_with("- host-")).count();
    assert!(short.contains("`netstead plan builtin --all` shows them"), "{short}");
    assert!(removed(&short) < 60, "{short}");
    let long = sandbox.netstead(["plan", "builtin", "--all"]).out;
    assert_eq!(removed(&long), 60, "{long}");
}
