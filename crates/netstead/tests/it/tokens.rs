use crate::sandbox::Sandbox;

#[test]
fn a_token_does_what_its_role_and_scope_allow() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    sandbox.does("pool create dmz --range 10.0.4.50-10.0.4.60");
    let said =
        sandbox.netstead(["token", "create", "ci", "--role", "claim", "--pool", "lan", "--expires", "1h"]);
    let secret = said.out.trim().to_owned();
    assert!(said.code == 0 && secret.starts_with("nst_") && !said.err.contains(&secret), "{said:?}");
    let as_ci = |line: &str| sandbox.does(&format!("--token {secret} {line}"));
    let not_ci = |line: &str| sandbox.fails(&format!("--token {secret} {line}"));

    assert_eq!(as_ci("claim lan build-7"), "10.0.3.50\n");
    let before = sandbox.does("events export");
    for (line, told) in [
        ("claim dmz build-7", "your token is for the pools `lan` and not for `dmz`"),
        ("claim lan,dmz build-8", "your token is for the pools `lan` and not for `dmz`"),
        ("claim --any lan,dmz build-8", "your token is for the pools `lan` and not for `dmz`"),
        ("release dmz build-7", "your token is for the pools `lan` and not for `dmz`"),
        ("release lan,dmz build-7", "your token is for the pools `lan` and not for `dmz`"),
        ("get claims --pool dmz", "your token is for the pools `lan` and not for `dmz`"),
        ("pool create x --range 10.9.0.1", "needs a token of role `write`, and yours has `claim`"),
        ("token list", "needs a token of role `admin`, and yours has `claim`"),
        ("claim lan other --owner somebody", "only a token of role `write` may name another owner"),
    ] {
        let said = not_ci(line);
        assert!(said.err.contains(told) && said.out.is_empty(), "`netstead {line}`: {said:?}");
    }
    assert_eq!(sandbox.does("events export"), before, "nothing changed");
    assert!(sandbox.fails("claim lan build-7").err.contains("`ci`"), "the key is ci's");
    assert_eq!(sandbox.does("claim lan build-7 --adopt"), "10.0.3.50\n");
    assert!(!sandbox.does("token list -o json").contains(&secret));

    let id = sandbox.does("token list -o csv").lines().find(|line| line.contains(",ci,")).unwrap()[..12]
        .to_owned();
    std::fs::write(sandbox.path().join("token"), format!("{secret}\n")).unwrap();
    sandbox.does("status --token-file token");
    sandbox.does(&format!("token revoke {id}"));
    sandbox.fails("status --token-file token");
    assert!(sandbox.fails("status --token nonsense").err.contains("hint: "));
}

#[test]
fn a_token_of_a_vrf_or_a_zone_is_bound_to_it() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60 --domain home.test");
    sandbox.does("pool create lab --range 10.0.3.50-10.0.3.60 --domain lab.test --vrf lab");
    sandbox.does("claim lan web-1");
    let token =
        |scope: &str| sandbox.does(&format!("token create ci --role write {scope}")).trim().to_owned();
    let (vrf, zone) = (token("--vrf lab"), token("--zone lab.test"));
    let before = sandbox.does("events export");
    let of_vrf = "your token is for the VRFs `lab` and not for `default`";
    let of_zone = |name: &str| format!("your token is for the zones `lab.test` and not for `{name}`");
    for (token, line, told) in [
        (&vrf, "claim lan web-2", of_vrf.to_owned()),
        (&vrf, "pool update lan --cooldown 1h", of_vrf.to_owned()),
        (&vrf, "pool delete lan --force spite", of_vrf.to_owned()),
        (&zone, "claim lan web-2", of_zone("web-2.home.test")),
        (&zone, "claim lab web-2 --hostname www.home.test", of_zone("www.home.test")),
        (&zone, "release lan web-1", of_zone("web-1.home.test")),
        (&zone, "pool update lab --domain home.test", of_zone("home.test")),
        (&zone, "pool delete lan --force spite", of_zone("home.test")),
        (&zone, "record set www.home.test A 10.0.3.9", of_zone("www.home.test")),
    ] {
        let said = sandbox.fails(&format!("--token {token} {line}"));
        assert!(said.err.contains(&told) && said.out.is_empty(), "`netstead {line}`: {said:?}");
    }
    assert_eq!(sandbox.does("events export"), before, "nothing changed");
    assert_eq!(sandbox.does("get records --name www.home.test -o name"), "");
    for token in [&vrf, &zone] {
        assert_eq!(sandbox.does(&format!("--token {token} claim lab web-2")), "10.0.3.50\n");
        sandbox.does(&format!("--token {token} release lab web-2"));
        sandbox.does(&format!("--token {token} pool update lab --cooldown 0"));
    }
    sandbox.does(&format!("--token {vrf} pool delete lab"));
}

#[test]
fn a_token_that_no_longer_works_is_replaced_at_the_next_start() {
    let mut sandbox = Sandbox::with_server();
    let first = sandbox.token();
    sandbox.stop();
    std::fs::rename(sandbox.data(), sandbox.path().join("old")).unwrap();
    sandbox.start(&[]);
    let second = sandbox.token();
    assert_ne!(first, second);
    sandbox.does("status");
    sandbox.stop();
    sandbox.start(&[]);
    assert_eq!(sandbox.token(), second, "one that works stays");
}

#[test]
fn only_its_user_can_read_the_token() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::with_server();
    let mode =
        |path: &str| std::fs::metadata(sandbox.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("state/netstead/credentials.json"), 0o600);
    assert_eq!(mode("state/netstead"), 0o700);
    assert_eq!(mode("data"), 0o700);
}
