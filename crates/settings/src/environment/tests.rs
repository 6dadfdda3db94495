use std::path::Path;

use super::*;

fn key(name: &'static str) -> VariableKey {
    VariableKey { name, secret: name == "api_key" }
}

fn layout(extra: Option<(&'static str, Vec<VariableKey>)>) -> (Vec<PlainKeys>, Vec<NamedKeys>) {
    let plain = vec![PlainKeys { section: "api", keys: vec![key("listen"), key("tls_cert")] }];
    let pool = ["network", "cooldown", "cooldown_min"].map(key).to_vec();
    let mut kinds = vec![
        ("powerdns", ["url", "api_key"].map(key).to_vec()),
        ("rfc2136", ["servers", "read"].map(key).to_vec()),
    ];
    kinds.extend(extra);
    let named = vec![
        NamedKeys { section: "pool", shared: pool, kinds: Vec::new() },
        NamedKeys { section: "dns", shared: ["type", "ttl", "domains"].map(key).to_vec(), kinds },
    ];
    (plain, named)
}

/// Settings from the variables, each as `path=value`, or the problems with them.
fn understood(
    text: &str,
    variables: &[(&str, &str)],
    extra: Option<(&'static str, Vec<VariableKey>)>,
) -> Vec<String> {
    let mut problems = Problems::new(Path::new("x.toml"), text);
    let mut root = crate::tree::parse(text, &mut problems);
    let (plain, named) = layout(extra);
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Environment::new(variables, &[]).overlay(&mut root, &plain, &named, &mut problems);
    let mut lines = Vec::new();
    walk("", &root, &mut lines);
    if let Err(found) = problems.none_or(()) {
        lines.extend(found.into_iter().map(|problem| problem.to_string()));
    }
    lines
}

fn walk(path: &str, table: &Table, lines: &mut Vec<String>) {
    for (name, entry) in &table.entries {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match &entry.node.value {
            Value::Table(inner) => walk(&path, inner, lines),
            Value::Plain(value) => lines.push(format!("{path}={value}")),
            _ => {}
        }
    }
}

#[test]
fn a_variable_names_a_key() {
    let variables = [
        ("NETSTEAD_API_TLS_CERT", "a"),
        ("NETSTEAD_POOL_LAN_NETWORK", "b"),
        ("NETSTEAD_POOL_A_B_COOLDOWN_MIN", "c"),
        ("NETSTEAD_POOL_NETWORK", "d"),
        ("NETSTEAD_API", "e"),
    ];
    assert_eq!(
        understood("", &variables, None),
        [
            "api.tls_cert=a",
            "pool.a_b.cooldown_min=c",
            "pool.lan.network=b",
            "NETSTEAD_API: this variable means nothing",
            "NETSTEAD_POOL_NETWORK: this variable means nothing",
        ]
    );
}

#[test]
fn a_table_that_exists_comes_before_a_new_one() {
    let file = "[dns.lan]\ntype = \"powerdns\"\n[dns.lan-url]\ntype = \"rfc2136\"\n";
    let set = understood(
        file,
        &[("NETSTEAD_DNS_LAN_URL", "http://ns1"), ("NETSTEAD_DNS_LAN_URL_READ", "query")],
        None,
    );
    assert_eq!(set, ["dns.lan.url=http://ns1", "dns.lan-url.read=query"]);
}

#[test]
fn two_meanings_are_an_error_that_names_both() {
    let file = "[pool.my-lan]\n[pool.my_lan]\n";
    let set = understood(file, &[("NETSTEAD_POOL_MY_LAN_NETWORK", "x")], None);
    let problem =
        "NETSTEAD_POOL_MY_LAN_NETWORK: it could mean `pool.my-lan.network` or `pool.my_lan.network`";
    assert_eq!(set, [problem]);
}

#[test]
fn a_secret_may_be_in_a_file_that_a_variable_names() {
    let set = understood(
        "[dns.lan]\ntype = \"powerdns\"\n",
        &[("NETSTEAD_DNS_LAN_API_KEY_FILE", "/run/key"), ("NETSTEAD_DNS_LAN_URL_FILE", "/x")],
        None,
    );
    assert_eq!(
        set,
        ["dns.lan.api_key.file=/run/key", "NETSTEAD_DNS_LAN_URL_FILE: this variable means nothing"]
    );
}

/// A later version brings a kind with keys that end like those of today.
#[test]
fn a_new_kind_changes_the_meaning_of_no_variable() {
    let variables = [
        ("NETSTEAD_DNS_HOME_LAB_TYPE", "powerdns"),
        ("NETSTEAD_DNS_HOME_LAB_URL", "http://ns1"),
        ("NETSTEAD_DNS_HOME_LAB_TTL", "60"),
        ("NETSTEAD_DNS_HOME_LAB_API_KEY", "k"),
        ("NETSTEAD_DNS_MORE_TTL", "60"),
        ("NETSTEAD_DNS_OLD_DOMAINS", "a.test"),
    ];
    let before = understood("[dns.old]\ntype = \"rfc2136\"\n", &variables, None);
    let later = ("later", ["lab_url", "lab_ttl", "b_api_key", "old_domains", "more_ttl"].map(key).to_vec());
    let after = understood("[dns.old]\ntype = \"rfc2136\"\n", &variables, Some(later));
    assert_eq!(before, after);
    assert_eq!(before.len(), variables.len());
}

#[test]
fn kubernetes_speaks_of_its_own_services() {
    for (name, value) in [
        ("NETSTEAD_SERVICE_HOST", "10.96.0.7"),
        ("NETSTEAD_SERVICE_PORT", "5301"),
        ("NETSTEAD_SERVICE_PORT_HTTP", "5301"),
        ("NETSTEAD_PORT", "tcp://10.96.0.7:5301"),
        ("NETSTEAD_PORT_5301_TCP", "tcp://10.96.0.7:5301"),
        ("NETSTEAD_PORT_5301_TCP_PROTO", "tcp"),
        ("NETSTEAD_API_PORT", "tcp://10.96.0.7:5301"),
    ] {
        assert!(is_kubernetes(name, value), "{name}");
    }
    for (name, value) in
        [("NETSTEAD_PORT", "5301"), ("NETSTEAD_PORT_X_TCP", ""), ("NETSTEAD_API_LISTEN", "tcp://x")]
    {
        assert!(!is_kubernetes(name, value), "{name}");
    }
}
