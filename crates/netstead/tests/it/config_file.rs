use crate::sandbox::{SOON, Sandbox};

fn write(sandbox: &Sandbox, text: &str) {
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
}

#[test]
fn pools_of_the_file_are_read_only_elsewhere() {
    let mut sandbox = Sandbox::empty();
    write(&sandbox, "[pool.lan]\nnetwork = \"10.0.3.0/24\"\ngateway = \"10.0.3.1\"\n");
    sandbox.start(&[]);
    assert!(
        sandbox.server().log().lines().next().unwrap().contains("netstead.toml"),
        "{}",
        sandbox.server().log()
    );
    assert_eq!(sandbox.does("claim lan web-1"), "10.0.3.2\n");
    assert!(sandbox.fails("pool update lan --cooldown 1m").err.contains("configuration file"));
    assert!(sandbox.fails("pool delete lan").err.contains("configuration file"));

    sandbox.stop();
    write(
        &sandbox,
        "[pool.lan]\nnetwork = \"10.0.3.0/24\"\nranges = [\"10.0.3.2-10.0.3.9\"]\n[pool.new]\nranges = [\"10.1.0.1\"]\n",
    );
    sandbox.start(&[]);
    assert_eq!(sandbox.does("get pools -o name"), "lan\nnew\n");
    assert!(sandbox.does("get pools").contains("10.0.3.2-10.0.3.9"));

    // What is gone from the file stays, and can be changed again.
    sandbox.stop();
    write(&sandbox, "");
    sandbox.start(&[]);
    assert_eq!(sandbox.does("get pools -o name"), "lan\nnew\n");
    sandbox.does("pool update lan --cooldown 1m");
    sandbox.does("pool delete new");
}

/// One server by two kinds is allowed, and probably not meant.
#[test]
fn warnings_of_the_file_are_logged_at_the_start_and_shown_while_they_last() {
    let mut sandbox = Sandbox::empty();
    let one = "[dns.api]\ntype = \"powerdns\"\nurl = \"http://127.0.0.1:9\"\napi_key = \"a\"\ndomains = [\"home.test\"]\n";
    let both = format!(
        "{one}[dns.updates]\ntype = \"rfc2136\"\nservers = [\"127.0.0.1:9\"]\ndomains = [\"home.test\"]\n"
    );
    write(&sandbox, &both);
    let said = sandbox.netstead(["config", "check"]);
    assert!(said.code == 0 && said.err.contains("they undo each other's work"), "{said:?}");

    sandbox.start(&[]);
    let log = sandbox.server().log();
    let warned: Vec<&str> = log.lines().filter(|line| line.contains("they undo each other's work")).collect();
    assert_eq!(warned.len(), 1, "{log}");
    assert!(warned[0].contains("WARN") && warned[0].contains("netstead.toml:6:6"), "{log}");
    assert!(warned[0].contains("give them other `domains`"), "{log}");
    assert!(log.contains("netstead.toml, with a warning: `netstead config check` shows it"), "{log}");
    let screen = sandbox.netstead(["status"]).out;
    assert!(
        screen.contains("Warnings of the configuration:") && screen.contains("netstead.toml:6:6"),
        "{screen}"
    );
    let warnings = |sandbox: &Sandbox| {
        let said = sandbox.netstead(["status", "-o", "json"]).out;
        let status: serde_json::Value = serde_json::from_str(&said).unwrap();
        status["warnings"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(warnings(&sandbox), 1);
    let doctor = sandbox.netstead(["doctor"]).out;
    assert!(doctor.contains("they undo each other's work") && doctor.contains("give them other"), "{doctor}");

    sandbox.stop();
    write(&sandbox, one);
    sandbox.start(&[]);
    assert_eq!(warnings(&sandbox), 0);
    let log = sandbox.server().log();
    assert!(!log.contains("undo each other") && !log.contains("with a warning"), "{log}");
    write(&sandbox, &both);
    sandbox.server().wait_for_line("they undo each other's work", SOON).unwrap();
    sandbox.server().wait_for_line("Configuration read again", SOON).unwrap();
    assert_eq!(warnings(&sandbox), 1);
}

#[test]
fn a_bad_file_stops_the_start_with_line_and_column() {
    let sandbox = Sandbox::empty();
    write(&sandbox, "[pool.lan]\nnetwrok = \"10.0.3.0/24\"\n[log]\nlevel = 7\n");
    for line in ["run", "config check"] {
        let said = sandbox.fails(line);
        assert!(said.err.contains("netstead.toml:2:1: unknown key `netwrok` in `pool.lan`"), "{}", said.err);
        assert!(said.err.contains("hint: did you mean `network`?"), "{}", said.err);
        assert!(said.err.contains("netstead.toml:4:9: "), "{}", said.err);
    }
    assert!(sandbox.fails("config check /nowhere.toml").err.contains("/nowhere.toml"));
}

#[test]
fn config_check_says_what_was_understood() {
    let sandbox = Sandbox::empty();
    let said = sandbox.netstead(["config", "check"]);
    assert_eq!(said.code, 0);
    assert!(
        said.err.contains("no file is found") && said.out.contains("127.0.0.1:5301"),
        "{}{}",
        said.out,
        said.err
    );
    write(&sandbox, "[pool.lan]\nnetwork = \"10.0.3.0/24\"\n");
    assert!(sandbox.does("config check").contains("lan: ipv4, 254 of 10.0.3.0/24"));
    let json: serde_json::Value = serde_json::from_str(&sandbox.does("config check -o json")).unwrap();
    assert_eq!(json["pool"][0]["name"], "lan");
}

#[test]
fn variables_are_settings_too() {
    let sandbox = Sandbox::empty();
    let mut command = sandbox.command();
    command
        .args(["config", "check"])
        .env("NETSTEAD_POOL_LAN_NETWORK", "10.0.3.0/24")
        .env("NETSTEAD_SERVICE_HOST", "x");
    let output = command.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("lan: ipv4"), "{output:?}");
    let output =
        sandbox.command().args(["config", "check"]).env("NETSTEAD_POL_LAN_NETWORK", "x").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("NETSTEAD_POL_LAN_NETWORK"), "{output:?}");
}

#[test]
fn a_check_opens_the_secrets_that_the_file_names_unless_told_not_to() {
    let sandbox = Sandbox::empty();
    let missing = "[dns.ns1]\ntype = \"powerdns\"\nurl = \"http://127.0.0.1:9\"\ndomains = [\"home.test\"]\n\
                   api_key = { file = \"no-key\" }\n";
    write(&sandbox, missing);
    let said = sandbox.fails("config check");
    assert!(said.err.contains("netstead.toml:5:11: dns.ns1.api_key: cannot read no-key"), "{}", said.err);
    assert!(sandbox.does("config check --no-secrets").contains("ns1: powerdns"));

    let key = "[dns.ns2]\ntype = \"rfc2136\"\nservers = [\"127.0.0.1:9\"]\ndomains = [\"home.test\"]\n\
               tsig_name = \"key.\"\ntsig_secret = \"no base64!\"\n";
    write(&sandbox, key);
    let said = sandbox.fails("config check");
    assert!(said.err.contains("dns.ns2.tsig") && !said.err.contains("no base64!"), "{}", said.err);

    write(
        &sandbox,
        "[notify]\nurl = { env = \"NO_SUCH_VARIABLE\" }\n[api]\ntls_cert = \"no.pem\"\ntls_key = \"no.key\"\n",
    );
    let said = sandbox.fails("config check");
    for wrong in ["notify.url: the variable NO_SUCH_VARIABLE is not set", "api.tls_cert: cannot read no.pem"]
    {
        assert!(said.err.contains(wrong), "{}", said.err);
    }
}
