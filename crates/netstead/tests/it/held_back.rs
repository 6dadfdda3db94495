//! Commands about a DNS server that cannot be read, or that is paused.

use std::{net::TcpListener, time::Duration};

use netstead_testkit::wait_until;

use crate::sandbox::Sandbox;

#[test]
fn a_server_that_cannot_be_read_is_named_by_every_command() {
    // A port on which nothing answers.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut sandbox = Sandbox::empty();
    let config = format!(
        "[dns.lan]\ntype = \"powerdns\"\nurl = \"http://127.0.0.1:{port}\"\napi_key = \"x\"\ndomains = [\"home.test\"]\n"
    );
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    sandbox.does("pool create hosts --range 10.0.3.50-10.0.3.200 --domain home.test");
    sandbox.does("claim hosts web-1");
    let server = format!("lan cannot be read: http://127.0.0.1:{port} cannot be reached");
    let said = wait_until(Duration::from_secs(20), || {
        let said = sandbox.netstead(["plan"]);
        said.out.contains(&server).then_some(said)
    });
    let said = said.unwrap_or_else(|| panic!("{:?}", sandbox.netstead(["plan"])));
    assert!(said.code == 1 && said.out.contains(&server), "{said:?}");
    let said = sandbox.netstead(["plan", "lan"]);
    assert!(said.code == 1 && said.out.contains("lan cannot be read: "), "{said:?}");
    let said = sandbox.netstead(["get", "plans", "-o", "name"]);
    assert!(said.out.lines().any(|line| line == "lan"), "{said:?}");
    // What should be there is known all the same, and why it is not.
    let explained = wait_until(Duration::from_secs(20), || {
        let said = sandbox.netstead(["explain", "web-1.home.test"]).out;
        said.contains("lan: A 10.0.3.50").then_some(said)
    });
    let explained = explained.unwrap_or_else(|| sandbox.netstead(["explain", "web-1.home.test"]).out);
    assert!(explained.contains("lan: A 10.0.3.50") && explained.contains("cannot be reached"), "{explained}");
    let records = sandbox.does("get records --provider lan -o csv");
    assert!(records.contains("pending") && !records.contains(",ok"), "{records}");
}

#[test]
fn a_pause_is_told_with_its_reason_and_its_end_wherever_it_holds_changes_back() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create hosts --range 10.0.3.50-10.0.3.200 --domain home.test");
    let said = sandbox.netstead(["pause", "--provider", "builtin", "--reason", "moving house"]);
    assert_eq!(said.code, 0, "{said:?}");
    sandbox.does("claim hosts web-1");
    let resume = "`netstead resume --provider builtin`";
    let told = |text: &str| text.contains("paused by admin: moving house") && text.contains(resume);
    let said = wait_until(Duration::from_secs(20), || {
        let said = sandbox.netstead(["apply"]);
        said.err.contains("held back").then_some(said)
    });
    let said = said.unwrap_or_else(|| panic!("{:?}", sandbox.netstead(["apply"])));
    assert!(said.code == 3 && told(&said.err), "{said:?}");
    let said = sandbox.netstead(["plan"]);
    assert!(said.code == 2 && told(&said.out), "{said:?}");
    let said = sandbox.netstead(["status", "--check"]);
    let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.code == 3 && told(&flat), "{said:?}");
    let said = sandbox.netstead(["doctor"]);
    let flat = format!("{} {}", said.out, said.err).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told(&flat), "{said:?}");
    let said = sandbox.netstead(["explain", "web-1.home.test"]);
    assert!(told(&said.out.split_whitespace().collect::<Vec<_>>().join(" ")), "{said:?}");
    sandbox.does("resume --provider builtin");
    assert_eq!(sandbox.netstead(["apply"]).code, 0);
}
