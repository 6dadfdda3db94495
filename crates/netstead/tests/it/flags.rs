//! Every flag of `pool` and `claim`, typed, and read back.

use serde_json::{Value, json};

use crate::sandbox::{SOON, Sandbox};

impl Sandbox {
    /// The output of a command with `-o json`.
    fn shows(&self, line: &str) -> Value {
        serde_json::from_str(&self.does(&format!("{line} -o json"))).unwrap()
    }
}

/// These fields of an object.
fn only(object: &Value, fields: &[&str]) -> Value {
    fields
        .iter()
        .map(|field| ((*field).to_owned(), object[field].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn a_pool_is_what_the_flags_say() {
    let sandbox = Sandbox::with_server();
    let made = sandbox.shows(
        "pool create lan --vrf lab --network 10.0.3.0/24 --range 10.0.3.0-10.0.3.9 --exclude 10.0.3.3 \
         --exclude 10.0.3.5-10.0.3.6 --gateway 10.0.3.1 --use-reserved --domain home.test --order next --cooldown 5m \
         --cooldown-min 2m --no-sticky --max-per-owner 5 --label site=ams --description machines",
    );
    let wanted = json!({
        "name": "lan", "family": "ipv4", "vrf": "lab", "network": "10.0.3.0/24",
        "ranges": ["10.0.3.0-10.0.3.9"], "exclude": ["10.0.3.3", "10.0.3.5-10.0.3.6"], "gateway": "10.0.3.1",
        "use_reserved": true, "domain": "home.test", "order": "next", "cooldown": "5m", "cooldown_min": "2m",
        "sticky": false, "max_per_owner": 5, "labels": {"site": "ams"}, "description": "machines",
    });
    let fields: Vec<&str> = wanted.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(only(&made, &fields), wanted);
    assert_eq!(only(&sandbox.shows("get pools --vrf lab")[0], &fields), wanted);
    assert_eq!(sandbox.shows("get pools --vrf default"), json!([]));

    // And it hands out as it says: the first of the network too, nothing that is excluded, no more than five.
    for (key, address) in [("a", "10.0.3.0"), ("b", "10.0.3.2"), ("c", "10.0.3.4"), ("d", "10.0.3.7")] {
        assert_eq!(sandbox.does(&format!("claim lan {key}")), format!("{address}\n"));
    }
    // Without its old address, because it does not stick to the key.
    sandbox.does("release lan b");
    assert_eq!(sandbox.does("claim lan b"), "10.0.3.8\n");
    sandbox.does("claim lan e");
    assert!(sandbox.fails("claim lan f").err.contains("which allows 5 per owner"));

    sandbox.does("release lan a");
    sandbox.does("pool update lan --sticky --no-use-reserved --order lowest --max-per-owner 9");
    let changed = sandbox.shows("get pools --vrf lab")[0].clone();
    let now = json!({"sticky": true, "use_reserved": false, "order": "lowest", "max_per_owner": 9});
    assert_eq!(only(&changed, &["sticky", "use_reserved", "order", "max_per_owner"]), now);
    assert_eq!(changed["exclude"], wanted["exclude"]);
    sandbox.does("pool update lan --no-sticky --use-reserved");
    let back = sandbox.shows("get pools --vrf lab")[0].clone();
    assert_eq!((&back["sticky"], &back["use_reserved"]), (&json!(false), &json!(true)));
}

#[test]
fn a_claim_is_what_the_flags_say() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    sandbox.does("pool create sites --prefix fd00:2::/48 --length 64");
    let claim = sandbox.shows(
        "claim lan a --prefer 10.0.3.55 --ttl 1h --label team=a --hostname a.home.test --description tests --owner ann",
    );
    let wanted = json!({
        "address": "10.0.3.55", "fixed": true, "ttl": "1h", "labels": {"team": "a"}, "hostnames": ["a.home.test"],
        "description": "tests", "owner": "ann",
    });
    let fields: Vec<&str> = wanted.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(only(&claim, &fields), wanted);
    assert_eq!(only(&sandbox.shows("get claims --pool lan --key a")[0], &fields), wanted);
    let second = sandbox.shows("claim lan b --prefer 10.0.3.55");
    assert_eq!(only(&second, &["address", "fixed"]), json!({"address": "10.0.3.50", "fixed": false}));
    assert_eq!(sandbox.does("claim sites ber --length 56"), "fd00:2::/56\n");

    // What rests is taken by force only.
    sandbox.does("release lan b");
    let said = sandbox.fails("claim lan c --address 10.0.3.50");
    assert!(said.err.contains("hint: wait, or take it with `--force`"), "{}", said.err);
    assert_eq!(sandbox.does("claim lan c --address 10.0.3.50 --force"), "10.0.3.50\n");
    // A foreign address is only adopted.
    let said = sandbox.fails("claim lan a");
    assert!(said.err.contains("ann") && said.err.contains("--adopt"), "{}", said.err);
    assert_eq!(sandbox.shows("claim lan a --adopt --owner bob")["owner"], "bob");

    let within = |range: &str| sandbox.does(&format!("get addresses --pool lan --within {range} -o name"));
    assert_eq!(within("10.0.3.51-10.0.3.60"), "10.0.3.55\n");
    assert_eq!(within("10.0.3.50").lines().count(), 1);
}

#[test]
fn what_is_said_beside_a_file_counts_for_its_lines() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    let lines = "lan,a\n{\"key\":\"b\",\"each\":[\"lan\"]}\n\
        {\"key\":\"c\",\"each\":[\"lan\"],\"claim\":{\"ttl\":\"2h\",\"labels\":{\"env\":\"live\"}}}\n";
    std::fs::write(sandbox.path().join("hosts"), lines).unwrap();
    let claims = sandbox.shows("claim --file hosts --ttl 1h --label site=ams --label env=dev --owner team-a");
    let seen: Vec<Value> = claims
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| only(claim, &["key", "ttl", "owner", "labels"]))
        .collect();
    let (all, own) = (json!({"env": "dev", "site": "ams"}), json!({"env": "live", "site": "ams"}));
    let wanted = [
        json!({"key": "a", "ttl": "1h", "owner": "team-a", "labels": all}),
        json!({"key": "b", "ttl": "1h", "owner": "team-a", "labels": all}),
        json!({"key": "c", "ttl": "2h", "owner": "team-a", "labels": own}),
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn an_empty_value_takes_a_setting_of_a_pool_away() {
    let sandbox = Sandbox::with_server();
    sandbox.does(
        "pool create lan --network 10.0.3.0/24 --range 10.0.3.50-10.0.3.60 --exclude 10.0.3.52 --gateway 10.0.3.1 \
         --domain home.test --max-per-owner 2 --label a=1 --label empty= --description x",
    );
    sandbox.does("pool create sites --prefix fd00:2::/48 --length 64");
    let fields = ["ranges", "exclude", "gateway", "domain", "max_per_owner", "description", "labels"];
    let lan = || only(&sandbox.shows("get pools --selector a=1")[0], &fields);
    let before = lan();
    assert_eq!(before["labels"], json!({"a": "1", "empty": ""}));
    sandbox.does("pool update lan --cooldown 1h");
    assert_eq!(lan(), before, "what is not given stays, an empty label too");
    sandbox.does(
        "pool update lan --gateway= --exclude= --domain= --max-per-owner= --description= --label empty=",
    );
    let after = json!({
        "ranges": ["10.0.3.50-10.0.3.60"], "exclude": [], "gateway": null, "domain": null, "max_per_owner": null,
        "description": null, "labels": {"a": "1"},
    });
    assert_eq!(lan(), after);
    let said = sandbox.netstead(["pool", "update", "lan", "--range", "", "--gateway", "10.0.3.2"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(only(&lan(), &["ranges", "gateway"]), json!({"ranges": [], "gateway": "10.0.3.2"}));
    sandbox.does("pool update sites --length=");
    assert!(sandbox.fails("claim sites ber").err.contains("length"));
    // A new pool has nothing to take away, so an empty value is a slip.
    for flag in ["--range", "--exclude", "--gateway", "--domain", "--length", "--max-per-owner"] {
        let said = sandbox.fails(&format!("pool create new --network 10.0.9.0/24 {flag}="));
        assert!(said.err.starts_with(&format!("error: {flag}: it is empty")), "{}", said.err);
    }
}

#[test]
fn several_pools_let_go_of_a_key_together_or_not_at_all() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    sandbox.does("pool create lan6 --range fd00:1::10-fd00:1::20");
    sandbox.does("pool create sites --prefix 10.8.0.0/16 --length 24");
    sandbox.does("claim lan,lan6,sites k");
    sandbox.does("pool create inner --network 10.8.0.0/24");
    let before = sandbox.does("events export");
    // The prefix carries a pool, so it cannot go, and neither do the others.
    let said = sandbox.fails("release lan,lan6,sites k");
    assert!(said.err.contains("`inner`") && said.err.contains("nothing was released"), "{}", said.err);
    let said = sandbox.fails("release lan,nowhere k");
    assert!(said.err.contains("nowhere"), "{}", said.err);
    assert_eq!(sandbox.does("events export"), before);
    sandbox.does("pool delete inner");
    sandbox.does("release lan6 k");
    let said = sandbox.netstead(["release", "lan,lan6,sites", "k"]);
    let lines: Vec<&str> = said.err.lines().collect();
    assert!(lines[0].starts_with("released 10.0.3.50 (`k` of "), "{said:?}");
    assert_eq!(lines[1], "`k` holds nothing in pool `lan6`: already gone");
    assert!(lines[2].starts_with("released 10.8.0.0/24 (`k` of "), "{said:?}");
    let both: Value = sandbox.shows("get events --what released --limit 2");
    assert_eq!(both[0]["request"], both[1]["request"], "one request, one commit");
    assert_eq!(sandbox.does("get claims -o name"), "");
}

#[test]
fn the_level_of_the_log_is_what_the_flag_says() {
    let mut sandbox = Sandbox::empty();
    sandbox.start(&["--log-level", "netstead_api=debug,warn"]);
    // The first of these takes no connection, which is worth a line for those who look closely only.
    let urls = format!("http://127.0.0.1:1,{}", sandbox.url());
    let token = sandbox.token();
    let told = |level: &str| {
        sandbox.netstead(["status", "--url", &urls, "--token", &token, "--log-level", level]).err
    };
    assert!(told("debug").contains("the next one is asked"));
    assert_eq!(told("warn"), "");
    assert!(sandbox.fails("status --log-level loud").err.contains("--log-level"));
    sandbox.server().wait_for_line("Request answered.", SOON).unwrap();
}
