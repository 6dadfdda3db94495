//! Workloads that ask for a name and do not get it, wherever people look.

use std::time::Duration;

use netstead_testkit::wait_until;

use crate::sandbox::{SOON, Sandbox};

const PATIENCE: Duration = Duration::from_secs(20);

fn waits_for(sandbox: &Sandbox, line: &str, wanted: &str) -> String {
    let flat = || {
        let said = sandbox.netstead(line.split(' '));
        format!("{} {}", said.out, said.err).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let found = wait_until(PATIENCE, || Some(flat()).filter(|said| said.contains(wanted)));
    found.unwrap_or_else(|| panic!("`{line}` never said `{wanted}`:\n{}", flat()))
}

#[test]
fn what_got_no_name_is_counted_listed_logged_and_explained() {
    let mut sandbox = Sandbox::with_server();
    sandbox.does("pool create hosts --range 10.0.3.50-10.0.3.200 --domain home.test");
    let said = sandbox.netstead(["claim", "hosts", "bad_key"]);
    assert_eq!((said.code, said.out.as_str()), (0, "10.0.3.50\n"));
    assert!(
        said.err.contains("warning: `bad_key` in pool `hosts` has no name: its key is not a host label"),
        "{}",
        said.err
    );
    let said = sandbox.netstead(["claim", "hosts", "web-1"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    waits_for(&sandbox, "get records --name web-1.home.test", "ok");

    let said = sandbox.netstead(["record", "set", "web-1.home.test", "CNAME", "x.test."]);
    let told = "warning: web-1.home.test gets no CNAME record: ledger/hosts/web-1 has it with A 10.0.3.51";
    assert!(said.code == 0 && said.err.contains(told), "{said:?}");
    let said = sandbox.netstead(["record", "set", "alone", "A", "10.0.3.9"]);
    assert!(said.code == 0 && said.err.contains("warning: alone is a name of one label"), "{said:?}");
    let said = sandbox.netstead(["record", "set", "www.home.test", "A", "10.0.3.9"]);
    assert!(said.code == 0 && !said.err.contains("warning"), "{said:?}");

    waits_for(&sandbox, "status", "3 workloads ask for a name that they do not get.");
    let list = waits_for(&sandbox, "get workloads --problems", "alone is a name of one label");
    assert!(list.contains("ledger/hosts/bad_key") && list.contains("its key is not a host label"), "{list}");
    assert!(list.contains("web-1.home.test: ") && !list.contains("www.home.test"), "{list}");
    waits_for(&sandbox, "doctor", "3 workloads ask for a name that they do not get");
    assert_eq!(sandbox.netstead(["doctor"]).code, 0, "it may be meant so");
    assert_eq!(sandbox.netstead(["status", "--check"]).code, 0);
    waits_for(&sandbox, "explain 10.0.3.50", "it has no name: its key is not a host label");
    sandbox.server().wait_for_line("No name: its key is not a host label", SOON).unwrap();

    sandbox.does("release hosts bad_key");
    sandbox.does("record delete web-1.home.test");
    sandbox.does("record delete alone");
    waits_for(&sandbox, "get workloads --problems", "everything that asks for a name has it");
    let warned = sandbox.server().log().matches("No name: its key").count();
    assert_eq!(warned, 1, "each is logged once");
}

#[test]
fn the_log_names_each_record_that_is_changed_up_to_twenty_of_a_plan() {
    let mut sandbox = Sandbox::with_server();
    let texts: Vec<String> = (1..=25).map(|number| format!("text-{number}")).collect();
    sandbox.does(&format!("record set many.home.test TXT {}", texts.join(" ")));
    sandbox.server().wait_for_line("A plan was carried out.", SOON).unwrap();
    let log = sandbox.server().log();
    let changes: Vec<&str> = log.lines().filter(|line| line.contains("A record was changed.")).collect();
    assert_eq!(changes.len(), 20, "{log}");
    for field in ["provider=builtin", "name=\"many.home.test\"", "type=\"TXT\"", "action=\"create\"", "text-"]
    {
        assert!(changes[0].contains(field), "{}", changes[0]);
    }
}
