use crate::house::House;

fn write(house: &House, text: &str) {
    std::fs::write(house.path().join("netstead.toml"), text).unwrap();
}

#[test]
fn pools_of_the_file_are_read_only_elsewhere() {
    let mut house = House::empty();
    write(&house, "[pool.lan]\nnetwork = \"10.0.3.0/24\"\ngateway = \"10.0.3.1\"\n");
    house.start(&[]);
    assert!(
        house.server().log().lines().next().unwrap().contains("netstead.toml"),
        "{}",
        house.server().log()
    );
    assert_eq!(house.does("claim lan web-1"), "10.0.3.2\n");
    assert!(house.fails("pool update lan --cooldown 1m").err.contains("configuration file"));
    assert!(house.fails("pool delete lan").err.contains("configuration file"));

    house.stop();
    write(
        &house,
        "[pool.lan]\nnetwork = \"10.0.3.0/24\"\nranges = [\"10.0.3.2-10.0.3.9\"]\n[pool.new]\nranges = [\"10.1.0.1\"]\n",
    );
    house.start(&[]);
    assert_eq!(house.does("get pools -o name"), "lan\nnew\n");
    assert!(house.does("get pools").contains("10.0.3.2-10.0.3.9"));

    // What is gone from the file stays, and can be changed again.
    house.stop();
    write(&house, "");
    house.start(&[]);
    assert_eq!(house.does("get pools -o name"), "lan\nnew\n");
    house.does("pool update lan --cooldown 1m");
    house.does("pool delete new");
}

#[test]
fn a_bad_file_stops_the_start_with_line_and_column() {
    let house = House::empty();
    write(&house, "[pool.lan]\nnetwrok = \"10.0.3.0/24\"\n[log]\nlevel = 7\n");
    for line in ["run", "config check"] {
        let said = house.fails(line);
        assert!(said.err.contains("netstead.toml:2:1: unknown key `netwrok` in `pool.lan`"), "{}", said.err);
        assert!(said.err.contains("hint: did you mean `network`?"), "{}", said.err);
        assert!(said.err.contains("netstead.toml:4:9: "), "{}", said.err);
    }
    assert!(house.fails("config check /nowhere.toml").err.contains("/nowhere.toml"));
}

#[test]
fn config_check_says_what_was_understood() {
    let house = House::empty();
    let said = house.netstead(["config", "check"]);
    assert_eq!(said.code, 0);
    assert!(
        said.err.contains("no file is found") && said.out.contains("127.0.0.1:5301"),
        "{}{}",
        said.out,
        said.err
    );
    write(&house, "[pool.lan]\nnetwork = \"10.0.3.0/24\"\n");
    assert!(house.does("config check").contains("lan: ipv4, 254 of 10.0.3.0/24"));
    let json: serde_json::Value = serde_json::from_str(&house.does("config check -o json")).unwrap();
    assert_eq!(json["pool"][0]["name"], "lan");
}

#[test]
fn variables_are_settings_too() {
    let house = House::empty();
    let mut command = house.command();
    command
        .args(["config", "check"])
        .env("NETSTEAD_POOL_LAN_NETWORK", "10.0.3.0/24")
        .env("NETSTEAD_SERVICE_HOST", "x");
    let output = command.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("lan: ipv4"), "{output:?}");
    let output =
        house.command().args(["config", "check"]).env("NETSTEAD_POL_LAN_NETWORK", "x").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("NETSTEAD_POL_LAN_NETWORK"), "{output:?}");
}
