use crate::sandbox::Sandbox;

#[test]
fn without_a_server_the_store_is_opened_itself() {
    let mut sandbox = Sandbox::empty();
    let data = sandbox.data().display().to_string();
    let local = format!("--local --data-dir {data}");
    // Only a server and a restore make a store: a slip in a name makes none.
    for command in ["get pools", "pool create lan --range 10.0.3.50-10.0.3.60"] {
        let said = sandbox.fails(&format!("{command} {local}"));
        assert!(
            said.err.contains("there is no store in") && said.err.contains("netstead run"),
            "{}",
            said.err
        );
    }
    assert!(!sandbox.data().exists());
    sandbox.start(&[]);
    sandbox.stop();
    sandbox.does(&format!("pool create lan --range 10.0.3.50-10.0.3.60 {local}"));
    assert_eq!(sandbox.does(&format!("claim lan web-1 {local}")), "10.0.3.50\n");
    sandbox.start(&[]);
    let said = sandbox.fails(&format!("get claims {local}"));
    assert!(
        said.err.contains("another netstead") && said.err.contains("leave out `--local`"),
        "{}",
        said.err
    );
    // Who did not ask for it is not told to leave it out.
    sandbox.does("store backup whole.backup");
    let said = sandbox.fails(&format!("store restore whole.backup --data-dir {data}"));
    assert!(said.err.contains("stop it first") && !said.err.contains("--local"), "{}", said.err);
    assert_eq!(sandbox.does("claim lan web-1"), "10.0.3.50\n", "the same owner with and without a server");
    sandbox.stop();
    assert_eq!(sandbox.does(&format!("get claims -o name {local}")), "lan/web-1\n");
    // The token of one command is not left behind.
    sandbox.start(&[]);
    assert_eq!(sandbox.does("token list -o name").lines().count(), 1);
}

#[test]
fn a_backup_is_restored_paused_and_resumed() {
    let mut sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    sandbox.does("claim lan web-1");
    let secret = sandbox.does("token create ci --role claim");
    sandbox.does("store backup one.backup");
    let piped = sandbox.does("store backup -");
    assert!(piped.lines().count() > 3);
    assert!(sandbox.fails("store backup one.backup").err.contains("exists already"));
    let data = sandbox.data().display().to_string();
    assert!(
        sandbox
            .fails(&format!("store restore one.backup --data-dir {data}"))
            .err
            .contains("another netstead")
    );
    sandbox.stop();
    assert!(
        sandbox
            .fails(&format!("store restore one.backup --data-dir {data}"))
            .err
            .contains("holds a store already")
    );
    sandbox.does(&format!("store backup two.backup --local --data-dir {data}"));

    let text = std::fs::read_to_string(sandbox.path().join("one.backup")).unwrap();
    std::fs::write(sandbox.path().join("damaged.backup"), text.replace("web-1", "web-2")).unwrap();
    sandbox.fails("store restore damaged.backup --data-dir new");
    let _ = std::fs::remove_dir_all(sandbox.path().join("new"));

    std::fs::rename(sandbox.data(), sandbox.path().join("old")).unwrap();
    assert!(sandbox.fails("store restore none.backup --data-dir new").err.contains("none.backup"));
    let said = |line: String| {
        let said = sandbox.netstead(line.split_whitespace());
        assert_eq!(said.code, 0, "{}", said.err);
        said.err
    };
    let restored = said(format!("store restore two.backup --data-dir {data}"));
    let keys: usize = restored.split_whitespace().next().unwrap().parse().unwrap();
    assert!(
        restored.contains("\n1 token is left out, which is not the local admin's: make a new one"),
        "{restored}"
    );
    let there = said(format!("store check --local --data-dir {data}"));
    // The restore itself is an event.
    assert!(there.contains(&format!("{} keys, all well", keys + 1)), "{restored}{there}");
    sandbox.start(&[]);
    assert_eq!(sandbox.does("get claims -o name"), "lan/web-1\n");
    let said = sandbox.netstead(["claim", "lan", "web-2"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("netstead resume"), "{}", said.err);
    assert_eq!(sandbox.netstead(["status", "--check"]).code, 3);
    assert_eq!(sandbox.does("claim lan web-1"), "10.0.3.50\n");
    assert_eq!(sandbox.does("claim lan web-9 --address 10.0.3.59"), "10.0.3.59\n");
    assert!(sandbox.fails(&format!("status --token {}", secret.trim())).err.contains("token"));
    sandbox.does("resume");
    assert_eq!(sandbox.does("claim lan web-2"), "10.0.3.51\n");
    assert_eq!(sandbox.netstead(["status", "--check"]).code, 0);
}

#[test]
fn a_store_is_checked() {
    let mut sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    sandbox.does("claim lan web-1");
    assert!(sandbox.netstead(["store", "check"]).err.contains("all well"));
    assert!(sandbox.fails("store check --repair").err.contains("--local"));
    sandbox.stop();
    let data = sandbox.data().display().to_string();
    sandbox.does(&format!("store check --repair --local --data-dir {data}"));
    assert!(sandbox.fails("store check --local --data-dir nowhere").err.contains("no store in nowhere"));
    assert!(!sandbox.path().join("nowhere").exists());
}
