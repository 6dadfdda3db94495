use std::process::Stdio;

use crate::sandbox::Sandbox;

#[test]
fn every_list_has_every_format() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    sandbox.does("claim lan web-1");
    sandbox.does("reserve lan r 10.0.3.60");
    for list in ["pools", "claims", "addresses", "events", "reservations", "tokens"] {
        let json: serde_json::Value =
            serde_json::from_str(&sandbox.does(&format!("get {list} -o json"))).unwrap();
        let count = json.as_array().unwrap().len();
        assert!(count > 0, "{list}");
        for (format, head) in [("table", 1), ("wide", 1), ("csv", 1), ("name", 0)] {
            let lines = sandbox.does(&format!("get {list} -o {format}")).lines().count();
            assert_eq!(lines, count + head, "{list} as {format}");
        }
        assert!(sandbox.does(&format!("get {list} -o yaml")).starts_with("- "), "{list}");
    }
    assert!(sandbox.does("status -o json").contains("\"ledger\""));
    assert!(sandbox.does("claim lan web-1 -o yaml").contains("10.0.3.50"));
    assert_eq!(sandbox.does("get claims --owner nobody -o json"), "[]\n");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.0.0-10.0.3.255");
    let keys: Vec<_> = (0..1000).map(|n| format!("lan,host-{n}")).collect();
    std::fs::write(sandbox.path().join("hosts"), keys.join("\n")).unwrap();
    sandbox.does("claim --file hosts");
    let mut child = sandbox.command();
    let mut child = child
        .args(["get", "claims", "-o", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn completions_and_man_pages_come_from_the_same_types() {
    let sandbox = Sandbox::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(sandbox.does(&format!("completions {shell}")).contains("netstead"), "{shell}");
    }
    sandbox.does("man pages");
    let page = |name: &str| std::fs::read_to_string(sandbox.path().join("pages").join(name)).unwrap();
    assert!(page("netstead.1").contains("netstead run"));
    assert!(page("netstead-pool-create.1").contains(".SH EXAMPLES"));
}
