use crate::house::House;

#[test]
fn without_a_server_the_store_is_opened_itself() {
    let mut house = House::empty();
    let data = house.data().display().to_string();
    let local = format!("--local --data-dir {data}");
    // Only a server and a restore make a store: a slip in a name makes none.
    for command in ["get pools", "pool create lan --range 10.0.3.50-10.0.3.60"] {
        let said = house.fails(&format!("{command} {local}"));
        assert!(
            said.err.contains("there is no store in") && said.err.contains("netstead run"),
            "{}",
            said.err
        );
    }
    assert!(!house.data().exists());
    house.start(&[]);
    house.stop();
    house.does(&format!("pool create lan --range 10.0.3.50-10.0.3.60 {local}"));
    assert_eq!(house.does(&format!("claim lan web-1 {local}")), "10.0.3.50\n");
    house.start(&[]);
    let said = house.fails(&format!("get claims {local}"));
    assert!(
        said.err.contains("another netstead") && said.err.contains("leave out `--local`"),
        "{}",
        said.err
    );
    // Who did not ask for it is not told to leave it out.
    house.does("store backup whole.backup");
    let said = house.fails(&format!("store restore whole.backup --data-dir {data}"));
    assert!(said.err.contains("stop it first") && !said.err.contains("--local"), "{}", said.err);
    assert_eq!(house.does("claim lan web-1"), "10.0.3.50\n", "the same owner with and without a server");
    house.stop();
    assert_eq!(house.does(&format!("get claims -o name {local}")), "lan/web-1\n");
    // The token of one command is not left behind.
    house.start(&[]);
    assert_eq!(house.does("token list -o name").lines().count(), 1);
}

#[test]
fn a_backup_is_restored_paused_and_resumed() {
    let mut house = House::with_server();
    house.does("pool create lan --range 10.0.3.50-10.0.3.60");
    house.does("claim lan web-1");
    let secret = house.does("token create ci --role claim");
    house.does("store backup one.backup");
    let piped = house.does("store backup -");
    assert!(piped.lines().count() > 3);
    assert!(house.fails("store backup one.backup").err.contains("exists already"));
    let data = house.data().display().to_string();
    assert!(
        house.fails(&format!("store restore one.backup --data-dir {data}")).err.contains("another netstead")
    );
    house.stop();
    assert!(
        house
            .fails(&format!("store restore one.backup --data-dir {data}"))
            .err
            .contains("holds a store already")
    );
    house.does(&format!("store backup two.backup --local --data-dir {data}"));

    let text = std::fs::read_to_string(house.path().join("one.backup")).unwrap();
    std::fs::write(house.path().join("damaged.backup"), text.replace("web-1", "web-2")).unwrap();
    house.fails("store restore damaged.backup --data-dir new");
    let _ = std::fs::remove_dir_all(house.path().join("new"));

    std::fs::rename(house.data(), house.path().join("old")).unwrap();
    assert!(house.fails("store restore none.backup --data-dir new").err.contains("none.backup"));
    let said = |line: String| {
        let said = house.netstead(line.split_whitespace());
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
    house.start(&[]);
    assert_eq!(house.does("get claims -o name"), "lan/web-1\n");
    let said = house.netstead(["claim", "lan", "web-2"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("netstead resume"), "{}", said.err);
    assert_eq!(house.netstead(["status", "--check"]).code, 3);
    assert_eq!(house.does("claim lan web-1"), "10.0.3.50\n");
    assert_eq!(house.does("claim lan web-9 --address 10.0.3.59"), "10.0.3.59\n");
    assert!(house.fails(&format!("status --token {}", secret.trim())).err.contains("token"));
    house.does("resume");
    assert_eq!(house.does("claim lan web-2"), "10.0.3.51\n");
    assert_eq!(house.netstead(["status", "--check"]).code, 0);
}

#[test]
fn a_store_is_checked() {
    let mut house = House::with_server();
    house.does("pool create lan --range 10.0.3.50-10.0.3.60");
    house.does("claim lan web-1");
    assert!(house.netstead(["store", "check"]).err.contains("all well"));
    assert!(house.fails("store check --repair").err.contains("--local"));
    house.stop();
    let data = house.data().display().to_string();
    house.does(&format!("store check --repair --local --data-dir {data}"));
    assert!(house.fails("store check --local --data-dir nowhere").err.contains("no store in nowhere"));
    assert!(!house.path().join("nowhere").exists());
}
