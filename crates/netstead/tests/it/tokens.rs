use crate::house::House;

#[test]
fn a_token_does_what_its_role_and_scope_allow() {
    let house = House::with_server();
    house.does("pool create lan --range 10.0.3.50-10.0.3.60");
    house.does("pool create dmz --range 10.0.4.50-10.0.4.60");
    let said =
        house.netstead(["token", "create", "ci", "--role", "claim", "--pool", "lan", "--expires", "1h"]);
    let secret = said.out.trim().to_owned();
    assert!(said.code == 0 && secret.starts_with("nst_") && !said.err.contains(&secret), "{said:?}");
    let as_ci = |line: &str| house.does(&format!("--token {secret} {line}"));
    let not_ci = |line: &str| house.fails(&format!("--token {secret} {line}"));

    assert_eq!(as_ci("claim lan build-7"), "10.0.3.50\n");
    not_ci("claim dmz build-7");
    not_ci("pool create x --range 10.9.0.1");
    not_ci("token list");
    not_ci("claim lan other --owner somebody");
    assert!(house.fails("claim lan build-7").err.contains("`ci`"), "the key is ci's");
    assert_eq!(house.does("claim lan build-7 --adopt"), "10.0.3.50\n");
    assert!(!house.does("token list -o json").contains(&secret));

    let id =
        house.does("token list -o csv").lines().find(|line| line.contains(",ci,")).unwrap()[..12].to_owned();
    std::fs::write(house.path().join("token"), format!("{secret}\n")).unwrap();
    house.does("status --token-file token");
    house.does(&format!("token revoke {id}"));
    house.fails("status --token-file token");
    assert!(house.fails("status --token nonsense").err.contains("hint: "));
}

#[test]
fn a_token_that_no_longer_works_is_replaced_at_the_next_start() {
    let mut house = House::with_server();
    let first = house.token();
    house.stop();
    std::fs::rename(house.data(), house.path().join("old")).unwrap();
    house.start(&[]);
    let second = house.token();
    assert_ne!(first, second);
    house.does("status");
    house.stop();
    house.start(&[]);
    assert_eq!(house.token(), second, "one that works stays");
}

#[test]
fn only_its_user_can_read_the_token() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::with_server();
    let mode = |path: &str| std::fs::metadata(house.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("state/netstead/credentials.json"), 0o600);
    assert_eq!(mode("state/netstead"), 0o700);
    assert_eq!(mode("data"), 0o700);
}
