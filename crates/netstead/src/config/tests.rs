#[cfg(feature = "docker")]
mod docker;
mod limits;
mod reference;
mod schema;
mod sources_and_providers;

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// Everything that is wrong with a file, as a person reads it.
fn problems_of(text: &str, environment: &[(&str, &str)]) -> String {
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let own = ["NETSTEAD_URL", "NETSTEAD_TOKEN", "NETSTEAD_CONFIG"].map(str::to_owned);
    match read(Some((Path::new("netstead.toml"), text)), environment, &own) {
        Ok(config) => format!("understood: {config:#?}"),
        Err(problems) => {
            let mut told = String::new();
            for problem in problems {
                let hint = problem.hint.as_ref().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
                let _ = writeln!(told, "{problem}{hint}");
            }
            told
        }
    }
}

fn understood(text: &str, environment: &[(&str, &str)]) -> Config {
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    read(Some((Path::new("/etc/netstead/netstead.toml"), text)), environment, &[]).unwrap()
}

#[test]
fn bad_files_are_told_by_line_and_column() {
    let files = [
        ("unknown table", "[pools.lan]\nnetwork = \"10.0.3.0/24\"\n"),
        ("unknown key", "[pool.lan]\nnetwork = \"10.0.3.0/24\"\n  gatway = \"10.0.3.1\"\n"),
        ("unknown key, nothing like it", "[api]\nxyzzy = 1\n"),
        ("unknown key at the top", "listen = \"127.0.0.1:1\"\n"),
        ("number for text", "[api]\nlisten = 5301\n"),
        ("text for a list", "[pool.lan]\nranges = \"10.0.3.50-10.0.3.200\"\n"),
        ("number in a list", "[pool.lan]\nranges = [\"10.0.3.50\", 7]\n"),
        ("text for a flag", "[pool.lan]\nnetwork = \"10.0.3.0/24\"\nsticky = \"yes\"\n"),
        ("text for a table", "pool = \"lan\"\n"),
        ("text for a pool", "[pool]\nlan = \"10.0.3.0/24\"\n"),
        ("reversed range", "[pool.lan]\nranges = [\"10.0.3.200-10.0.3.50\"]\n"),
        ("mixed families", "[pool.lan]\nranges = [\"10.0.3.1\", \"fd00::1\"]\n"),
        ("a /129", "[pool.v6]\nnetwork = \"fd00::/129\"\n"),
        ("a short MAC", "[pool.macs]\nranges = [\"52:54:00:00:00-52:54:00:ff:ff:ff\"]\n"),
        ("no addresses", "[pool.lan]\ncooldown = \"10m\"\n"),
        ("a wrong name", "[pool.\"My LAN\"]\nnetwork = \"10.0.3.0/24\"\n"),
        ("a time without unit", "[ledger]\nretention = \"400\"\n"),
        ("out of range", "[ledger]\nmax_events = 5\n"),
        (
            "more than 64 bits",
            "[pool.lan]\nnetwork = \"10.0.3.0/24\"\nmax_per_owner = 99999999999999999999\n",
        ),
        (
            "unknown word",
            "[pool.lan]\nnetwork = \"10.0.3.0/24\"\norder = \"lowset\"\n[log]\nformat = \"jsn\"\n",
        ),
        ("half a certificate", "[api]\ntls_cert = \"cert.pem\"\n"),
        ("a node that says too little", "[store]\ntype = \"raft\"\n"),
        (
            "a node that says too much",
            "[store]\ntype = \"raft\"\nlisten = \"0.0.0.0:5302\"\npeers = [\"node2\"]\nsecret = \"x\"\nca_file = \"x\"\n\
             endpoints = [\"http://x\"]\n",
        ),
        (
            "a node that nobody finds",
            "[store]\ntype = \"raft\"\nlisten = \"0.0.0.0:5302\"\nadvertise = \"0.0.0.0:5302\"\n\
             peers = [\"0.0.0.0:5302\"]\nsecret = \"x\"\n",
        ),
        ("a path in memory", "[store]\ntype = \"memory\"\npath = \"/x\"\n"),
        ("gateway elsewhere", "[pool.lan]\nnetwork = \"10.0.3.0/24\"\ngateway = \"10.0.4.1\"\n"),
        (
            "overlap",
            "[pool.a]\nnetwork = \"10.0.3.0/24\"\n[pool.b]\nranges = [\"10.0.3.9-10.0.4.9\"]\n[pool.c]\nvrf = \"x\"\nnetwork = \"10.0.3.0/24\"\n",
        ),
        ("labels", "[pool.lan]\nnetwork = \"10.0.3.0/24\"\nlabels = { site = 1, \"a b\" = \"x\" }\n"),
        ("no TOML", "[pool.lan\nnetwork = \n"),
        ("twice", "[log]\nlevel = \"info\"\nlevel = \"warn\"\n"),
        (
            "several at once, umlauts before",
            "# Grüße\n[log]\nlevel = \"inof\"\n[store]\ntype = \"fast\"\nsize = 2\n",
        ),
        ("no port", "[api]\nlisten = \"127.0.0.1\"\n"),
        ("more for one than for all", "[api]\nmax_connections = 10\nmax_connections_per_peer = 20\n"),
    ];
    let mut all = String::new();
    for (what, text) in files {
        let _ = writeln!(all, "## {what}\n{}", problems_of(text, &[]));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn bad_variables_are_told_by_name() {
    let variables = [
        ("NETSTEAD_POOL_LAN_NETWROK", "10.0.3.0/24"),
        ("NETSTEAD_API_LISTN", "127.0.0.1:1"),
        ("NETSTEAD_TOKN", "x"),
        ("NETSTEAD_PORT", "5301"),
        ("NETSTEAD_LEDGER_MAX_EVENTS", "many"),
        ("NETSTEAD_POOL_MY_LAN_GATEWAY", "10.0.3.1"),
        ("OTHER_THING", "is none of ours"),
    ];
    let file = "[pool.my-lan]\nnetwork = \"10.0.3.0/24\"\n[pool.my_lan]\nnetwork = \"10.0.4.0/24\"\n";
    insta::assert_snapshot!(problems_of(file, &variables));
}

#[test]
fn a_file_is_understood() {
    let config = understood(
        r#"
            [store]
            path = "data"
            [api]
            listen = "0.0.0.0:6000"
            hosts = ["ns.example.com"]
            tls_cert = "/etc/ssl/ns.pem"
            tls_key = "ns.key"
            [log]
            level = "debug"
            format = "json"
            [ledger]
            retention = "30d"
            [pool.lan]
            network = "10.0.3.0/24"
            ranges = ["10.0.3.50-10.0.3.200"]
            gateway = "10.0.3.1"
            labels = { site = "ams" }
            [pool.sites]
            family = "prefix"
            network = "fd00:2::/48"
            length = 64
        "#,
        &[],
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&config).unwrap());
}

#[test]
fn nothing_at_all_is_fine() {
    assert_eq!(read(None, [], &[]), Ok(Config::default()));
    let defaults = Config::default();
    assert_eq!(defaults.api.listen.to_string(), "127.0.0.1:5301");
    assert_eq!(defaults.store, StoreConfig::default());
}

#[test]
fn the_environment_sets_and_creates() {
    let file = "[pool.my-lan]\nnetwork = \"10.0.3.0/24\"\n";
    let config = understood(
        file,
        &[
            ("NETSTEAD_POOL_MY_LAN_GATEWAY", "10.0.3.1"),
            ("NETSTEAD_POOL_V6_RANGES", "fd00:1::1-fd00:1::ff, fd00:1::1:0/112"),
            ("NETSTEAD_POOL_V6_STICKY", "false"),
            ("NETSTEAD_POOL_V6_LABELS", "site=ams,env=dev"),
            ("NETSTEAD_POOL_V6_MAX_PER_OWNER", "7"),
            ("NETSTEAD_API_LISTEN", "[::1]:6000"),
            ("NETSTEAD_SERVICE_HOST", "10.96.0.1"),
        ],
    );
    assert_eq!(config.api.listen.to_string(), "[::1]:6000");
    let [lan, v6] = config.pools.as_slice() else { panic!("{config:?}") };
    assert_eq!((lan.name.as_str(), lan.gateway.unwrap().to_string().as_str()), ("my-lan", "10.0.3.1"));
    assert_eq!((v6.name.as_str(), v6.ranges.len(), v6.sticky), ("v6", 2, false));
    assert_eq!((v6.max_per_owner, v6.labels.get("env")), (Some(7), Some("dev")));
}

proptest! {
    #[test]
    fn the_parser_never_panics(text in "\\PC{0,200}") {
        let _ = read(Some((Path::new("x.toml"), &text)), [], &[]);
    }

    #[test]
    fn nor_on_what_looks_like_a_file(
        lines in prop::collection::vec(
            prop_oneof![
                "\\[(pool|api|store|log|ledger)(\\.[a-zé-]{0,5})?\\]",
                "(network|ranges|listen|type|level|labels|length|cooldown|hosts) = ([0-9]{1,25}|\"[^\"]{0,30}\"|\\[\"[0-9a-f.:/-]{0,20}\"\\]|true|\\{a=1\\}|1979-05-27|0x[0-9a-f]{1,20})",
                "\\PC{0,30}",
            ],
            0..12,
        ),
        variables in prop::collection::vec(("NETSTEAD_[A-Z_]{0,30}", "\\PC{0,20}"), 0..5),
    ) {
        let text = lines.join("\n");
        if let Err(problems) = read(Some((Path::new("x.toml"), &text)), variables, &[]) {
            prop_assert!(!problems.is_empty());
        }
    }

    #[test]
    fn nor_on_deep_nesting(depth in 0_usize..3000) {
        let text = format!("x = {}{}", "[".repeat(depth), "]".repeat(depth));
        let _ = read(Some((Path::new("x.toml"), &text)), [], &[]);
    }
}
