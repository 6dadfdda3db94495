//! Numbers for Prometheus, and a server that is read by name.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
};

use netstead_testkit::SecretiveBind;

use crate::{resolve, sandbox::Sandbox};

/// The text of `/metrics`.
pub(crate) fn metrics(sandbox: &Sandbox) -> String {
    let place = sandbox.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&place).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The value of the line that begins with `name`.
pub(crate) fn value(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} is missing in\n{text}"))
        .rsplit(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn changes_and_passes_are_counted_and_no_label_is_a_host() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    sandbox.does("claim lan web-1");
    resolve::until(&["10.0.3.50"], || resolve::a(sandbox.dns(), "web-1.home.test"));
    sandbox.does("apply");
    let text = metrics(&sandbox);
    let changes =
        "netstead_changes_total{provider=\"builtin\",zone=\"other\",action=\"create\",outcome=\"applied\"}";
    assert!(value(&text, changes) >= 2.0, "{text}");
    assert!(value(&text, "netstead_dns_queries_total{transport=\"udp\",rcode=\"NOERROR\"}") >= 1.0, "{text}");
    assert!(value(&text, "netstead_provider_passes_total{provider=\"builtin\",outcome=\"done\"}") >= 1.0);
    assert!(value(&text, "netstead_pass_duration_seconds_count{provider=\"builtin\"}") >= 1.0);
    for name in ["success_age_seconds", "parked_age_seconds", "parked", "drift", "pass_age_seconds"] {
        value(&text, &format!("netstead_provider_{name}{{provider=\"builtin\"}}"));
    }
    value(&text, "netstead_source_complete_age_seconds{source=\"ledger\"}");
    assert!(!text.contains("web-1"), "{text}");
    // A count of something that never happened is 0 and not missing, or no alert could be made for it.
    value(&text, "netstead_late_writes_total{provider=\"builtin\"}");
    // The commands above knocked at no door that was closed to them.
    assert!(!text.contains("status=\"401\""), "{text}");
}

#[test]
fn bind_without_transfers_is_read_by_name_and_every_call_is_counted() {
    let Some(server) = SecretiveBind::start(&["home.test", "3.0.10.in-addr.arpa"]) else { return };
    let (port, key) = (server.address().port(), server.key());
    let config = |read: &str| {
        format!(
            "[dns.lan]\ntype = \"rfc2136\"\nservers = [\"127.0.0.1:{port}\"]\ntsig_name = \"{}\"\n\
             tsig_algorithm = \"{}\"\ntsig_secret = \"{}\"\ndomains = [\"home.test\", \"3.0.10.in-addr.arpa\"]\n\
             zones = [\"3.0.10.in-addr.arpa\"]\nread = \"{read}\"\n",
            key.name, key.algorithm, key.secret
        )
    };
    let mut sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), config("query")).unwrap();
    sandbox.start(&[]);
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    sandbox.does("claim lan web-1");
    resolve::until(&["10.0.3.50"], || resolve::a(port, "web-1.home.test"));
    resolve::until(&["web-1.home.test."], || resolve::ptr(port, Ipv4Addr::new(10, 0, 3, 50)));
    // A second name while the serial stands still: it was not asked for before, and is now.
    sandbox.does("claim lan web-2");
    resolve::until(&["10.0.3.51"], || resolve::a(port, "web-2.home.test"));
    sandbox.does("apply --provider lan");
    assert_eq!(sandbox.does("plan lan"), "lan: nothing to change\n");
    assert_eq!(sandbox.does("get drift -o name"), "");
    sandbox.does("release lan web-1");
    resolve::until(&[], || resolve::a(port, "web-1.home.test"));
    sandbox.does("apply --provider lan");
    let text = metrics(&sandbox);
    let calls = |operation: &str| {
        let labels = format!("{{provider=\"lan\",operation=\"{operation}\",outcome=\"answered\"}}");
        value(&text, &format!("netstead_provider_calls_total{labels}"))
    };
    assert!(calls("query") > 10.0 && calls("update") > 2.0, "{text}");
    let applied = text.lines().filter(|line| {
        line.starts_with("netstead_changes_total{provider=\"lan\",zone=\"home.test\",action=")
            && line.contains("outcome=\"applied\"")
    });
    let numbers = applied.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    assert!(numbers.sum::<f64>() >= 3.0, "{text}");
    value(&text, "netstead_call_duration_seconds_count{provider=\"lan\",operation=\"query\"}");
    sandbox.stop();

    // The same server, asked for its whole zone: a clear reason, and nothing is written.
    std::fs::write(sandbox.path().join("netstead.toml"), config("transfer")).unwrap();
    sandbox.start(&[]);
    sandbox.netstead(["apply"]);
    let said = sandbox.does("status");
    assert!(said.contains("read = \"query\""), "{said}");
}
