use netstead_testkit::Process;

use crate::sandbox::{SOON, Sandbox};

/// The quick start of the issue, as typed.
#[test]
fn a_new_user_gets_an_address() {
    let sandbox = Sandbox::with_server();
    let said = sandbox.netstead([
        "pool",
        "create",
        "lan",
        "--range",
        "10.0.3.50-10.0.3.200",
        "--gateway",
        "10.0.3.1",
        "--domain",
        "home.test",
    ]);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    assert_eq!(said.err, "pool lan created: 151 addresses\n");

    let said = sandbox.netstead(["claim", "lan", "web-1"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "10.0.3.50\n", ""));
    assert_eq!(sandbox.does("claim lan web-1"), "10.0.3.50\n");
    assert_eq!(sandbox.does("claim lan db --address 10.0.3.60"), "10.0.3.60\n");

    let before = sandbox.does("get claims -o json");
    let said = sandbox.fails("claim lan other --address 10.0.3.60");
    assert!(said.err.contains("`db` of `admin`"), "{}", said.err);
    assert_eq!((said.out.as_str(), sandbox.does("get claims -o json")), ("", before));

    assert_eq!(sandbox.does("release lan web-1"), "");
    assert_eq!(sandbox.does("claim lan web-2"), "10.0.3.51\n");

    let claims: serde_json::Value = serde_json::from_str(&sandbox.does("get claims -o json")).unwrap();
    let held: Vec<_> =
        claims.as_array().unwrap().iter().map(|claim| claim["address"].as_str().unwrap()).collect();
    assert_eq!(held, ["10.0.3.51", "10.0.3.60"]);
    let history = sandbox.does("history 10.0.3.50");
    assert!(history.contains("claimed") && history.contains("released"), "{history}");

    sandbox.does("pool create macs --range 52:54:00:00:00:00-52:54:00:ff:ff:ff");
    assert_eq!(sandbox.does("claim macs vm-1"), "52:54:00:00:00:00\n");
    sandbox.does("pool create v6 --range fd00:1::/64");
    sandbox.does("pool create sites --prefix fd00:2::/48 --length 64");
    assert_eq!(sandbox.does("claim sites ber"), "fd00:2::/64\n");
}

#[test]
fn one_key_gets_an_address_of_every_family_or_none() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.51");
    sandbox.does("pool create lan6 --range fd00:1::10-fd00:1::20");
    sandbox.does("pool create macs --range 52:54:00:00:00:01-52:54:00:00:00:01");
    assert_eq!(sandbox.does("claim lan,lan6,macs web-1"), "10.0.3.50\nfd00:1::10\n52:54:00:00:00:01\n");
    let said = sandbox.fails("claim lan,lan6,macs web-2");
    assert!(said.err.contains("macs"), "{}", said.err);
    assert_eq!(sandbox.does("get claims -o name"), "lan/web-1\nlan6/web-1\nmacs/web-1\n");
    sandbox.does("release lan,lan6,macs web-1");
    assert_eq!(sandbox.does("get claims -o name"), "");
}

#[test]
fn the_first_pool_with_room_serves_a_choice() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create a --range 10.0.1.1 --label site=ams");
    sandbox.does("pool create b --range 10.0.2.1-10.0.2.9 --label site=ams");
    assert_eq!(sandbox.does("claim --any a,b one"), "10.0.1.1\n");
    assert_eq!(sandbox.does("claim --any a,b two"), "10.0.2.1\n");
    assert_eq!(sandbox.does("claim --any a,b one"), "10.0.1.1\n");
    assert_eq!(sandbox.does("claim --select site=ams three"), "10.0.2.2\n");
    assert!(sandbox.fails("claim --select site=ber four").err.contains("site=ber"));
}

#[test]
fn a_claim_is_renewed_moved_and_explained() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60 --domain home.test");
    sandbox.does("claim lan ci --ttl 1h --label team=a --hostname ci.home.test --description tests");
    assert!(
        sandbox
            .netstead(["renew", "lan", "ci", "--ttl", "2h"])
            .err
            .contains("10.0.3.50 is held by `ci` until")
    );
    sandbox.does("move lan ci ci-2 --owner team-b");
    let claim: serde_json::Value =
        serde_json::from_str(&sandbox.does("claim lan ci-2 --owner team-b -o json")).unwrap();
    assert_eq!((claim["owner"].as_str(), claim["ttl"].as_str()), (Some("team-b"), Some("2h")));
    let told = sandbox.does("explain 10.0.3.50");
    assert!(told.contains("held") && told.contains("ci-2") && told.contains("ci.home.test"), "{told}");
    assert!(sandbox.does("explain 10.0.3.51").contains("free"));
    // Nothing is kept of a claim that has no name, and still it can be asked why.
    sandbox.does("pool create plain --range 10.0.9.1-10.0.9.9");
    sandbox.does("claim plain db");
    let told = sandbox.does("explain db.home.test");
    assert!(told.contains("ledger/plain/db: the pool has no domain."), "{told}");
    assert!(!sandbox.does("get workloads").contains("plain/db"));
    sandbox.does("release plain db");
    let said = sandbox.fails("renew lan nobody");
    assert_eq!(said.err.lines().next(), Some("error: `nobody` holds nothing in pool `lan`"));
    // A claim that was named is the only one that goes.
    let id = claim["id"].as_str().unwrap();
    sandbox.does(&format!("release lan ci-2 --id {id}"));
    sandbox.does("claim lan ci-2 --owner team-b");
    let said = sandbox.netstead(["release", "lan", "ci-2", "--id", id]);
    assert_eq!((said.code, said.err.contains("already gone")), (0, true), "{}", said.err);
    assert_eq!(sandbox.does("get claims -o name"), "lan/ci-2\n");
}

#[test]
fn pools_are_updated_by_what_is_given_only() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60 --domain home.test --cooldown 1h --label a=1 --label b=2");
    sandbox.does("pool update lan --cooldown 2h --label b= --label c=3");
    let pools: serde_json::Value = serde_json::from_str(&sandbox.does("get pools -o json")).unwrap();
    let pool = &pools[0];
    assert_eq!((pool["domain"].as_str(), pool["cooldown"].as_str()), (Some("home.test"), Some("2h")));
    assert_eq!(pool["labels"], serde_json::json!({"a": "1", "c": "3"}));
    sandbox.does("claim lan x --address 10.0.3.60");
    let said = sandbox.fails("pool update lan --range 10.0.3.50-10.0.3.55");
    assert!(said.err.contains("10.0.3.60"), "{}", said.err);
    assert!(sandbox.fails("pool delete lan").err.contains("1 claim"));
    let said = sandbox.netstead(["pool", "delete", "lan", "--force", "moving out"]);
    assert_eq!((said.code, said.err.as_str()), (0, "pool lan deleted, 1 claim released\n"));
    assert!(sandbox.does("history 10.0.3.60 -o wide").contains("moving out"));
}

#[test]
fn a_part_of_a_pool_is_reserved() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    sandbox.does("reserve lan printers 10.0.3.50-10.0.3.54");
    assert_eq!(sandbox.does("claim lan web"), "10.0.3.55\n");
    assert_eq!(sandbox.does("claim lan printer --address 10.0.3.51"), "10.0.3.51\n");
    assert!(sandbox.does("get reservations").contains("printers"));
    sandbox.does("unreserve lan printers");
    assert_eq!(sandbox.does("claim lan web-2"), "10.0.3.50\n");
}

#[test]
fn many_claims_come_from_a_file() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.0.0-10.0.3.255");
    let lines: Vec<_> = (0..200).map(|n| format!("lan,host-{n}")).collect();
    let lines = lines.join("\n");
    std::fs::write(
        sandbox.path().join("hosts.csv"),
        format!("pool,key,address\n{lines}\nlan,fixed,10.0.3.7\n"),
    )
    .unwrap();
    let first = sandbox.does("claim --file hosts.csv");
    assert_eq!(first.lines().count(), 201);
    assert_eq!(first, sandbox.does("claim --file hosts.csv"), "again gives the same");
    assert_eq!(first.lines().last(), Some("10.0.3.7"));
    std::fs::write(sandbox.path().join("bad.csv"), "lan,a\nlan\n").unwrap();
    assert!(sandbox.fails("claim --file bad.csv").err.contains("bad.csv:2: "));
    assert_eq!(sandbox.does("get claims -o name").lines().count(), 201);
}

#[test]
fn a_claim_waits_and_leaves_the_queue() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50 --cooldown 0");
    sandbox.does("claim lan first");
    let said = sandbox.fails("claim lan second");
    assert!(said.err.contains("no free address") && said.err.contains("--wait"), "{}", said.err);
    sandbox.fails("claim lan second --wait 200ms");
    assert_eq!(sandbox.does("get claims -o name"), "lan/first\n");
    let said = sandbox.netstead(["claim", "lan", "second", "--wait", "200ms", "--keep"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("`second` waits in pool `lan`"), "{}", said.err);
    assert!(sandbox.does("get claims").contains("waiting"));
    assert!(sandbox.netstead(["release", "lan", "second"]).err.contains("left the queue"));
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| sandbox.does("claim lan third --wait 50s"));
        while !sandbox.does("get claims").contains("third") {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        sandbox.does("release lan first");
        waiting.join().unwrap()
    });
    assert_eq!(waiting, "10.0.3.50\n");
}

#[test]
fn without_any_setting_everything_is_in_the_state_directory() {
    let sandbox = Sandbox::empty();
    let state = sandbox.path().join("state/netstead");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("credentials.json"), "{\"servers\":{}}").unwrap();
    assert!(sandbox.fails("store check --local").err.contains("no store in"));
    let mut server =
        Process::start("netstead", sandbox.command().args(["run", "--listen", "127.0.0.1:0"])).unwrap();
    let line = server.wait_for_line("  api ", SOON).unwrap();
    let url = line.split_whitespace().nth(1).unwrap().trim_end_matches(',').to_owned();
    sandbox.does(&format!("--url {url} pool create lan --range 10.0.3.1-10.0.3.9"));
    assert_eq!(sandbox.does(&format!("--url {url} claim lan web-1")), "10.0.3.1\n");
    server.terminate().unwrap();
    assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
    assert_eq!(sandbox.does("get claims --local -o name"), "lan/web-1\n");
}

#[test]
fn prefixes_and_macs_have_a_history_too() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create sites --prefix fd00:2::/48 --length 64");
    sandbox.does("pool create macs --range 52:54:00:00:00:00-52:54:00:00:00:ff");
    sandbox.does("claim sites ber");
    sandbox.does("claim macs vm");
    assert!(sandbox.does("history fd00:2::/64").contains("ber"));
    assert!(sandbox.does("explain fd00:2::/64").contains("ber"));
    assert!(sandbox.does("explain fd00:2::1").contains("ber"));
    assert!(sandbox.does("history 52-54-00-00-00-00").contains("vm"));
    assert!(sandbox.does("history vm").contains("52:54:00:00:00:00"));
    assert!(sandbox.does("explain 52:54:00:00:00:01").contains("free"));
}

#[test]
fn a_pool_lies_inside_a_claimed_prefix() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create blocks --prefix 10.8.0.0/16 --length 24");
    let said = sandbox.fails("pool create office --network 10.8.0.0/24");
    assert!(said.err.contains("`blocks`"), "an unclaimed part is nobody's: {}", said.err);
    assert_eq!(sandbox.does("claim blocks office"), "10.8.0.0/24\n");
    sandbox.does("pool create office --network 10.8.0.0/24 --gateway 10.8.0.1");
    let pools: serde_json::Value = serde_json::from_str(&sandbox.does("get pools -o json")).unwrap();
    let claims: serde_json::Value = serde_json::from_str(&sandbox.does("get claims -o json")).unwrap();
    assert_eq!((&pools[1]["name"], &pools[1]["within"]), (&"office".into(), &claims[0]["id"]));
    assert_eq!(sandbox.does("claim office printer"), "10.8.0.2\n");
    // The next block is another's, and a pool that sticks out lies in nobody's.
    assert_eq!(sandbox.does("claim blocks lab"), "10.8.1.0/24\n");
    assert!(sandbox.fails("pool create wide --network 10.8.0.0/23").err.contains("`blocks`"));
    assert!(sandbox.fails("pool create again --network 10.8.0.0/25").err.contains("`office`"));
    // The prefix is held for as long as the pool is there.
    let said = sandbox.fails("release blocks office");
    assert!(said.err.contains("10.8.0.0/24") && said.err.contains("`office`"), "{}", said.err);
    assert!(sandbox.fails("pool delete blocks --force moving").err.contains("`office`"));
    sandbox.does("release office printer");
    sandbox.does("pool delete office");
    sandbox.does("release blocks office");
    assert_eq!(sandbox.does("get claims -o name"), "blocks/lab\n");
}
