//! Any labels: reading them ends soon and never panics.
//!
//! `cargo xtask fuzz` runs these with many more cases; `FUZZ_CASES` says how many.

use std::{collections::BTreeMap, time::Duration};

use netstead_model::{Clock as _, SystemClock};
use netstead_sources::dialects::{Dialect, Reader, Reading, TraefikSettings, WorkloadLabels};
use proptest::{prelude::*, sample::select};

fn config() -> ProptestConfig {
    let cases = std::env::var("FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2000);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn read(labels: &BTreeMap<String, String>, default_rule: Option<&str>) -> Reading {
    let traefik = TraefikSettings {
        default_rule: default_rule.and_then(|rule| rule.parse().ok()),
        ..TraefikSettings::default()
    };
    check(&Reader::default().with_traefik(traefik), labels)
}

fn check(reader: &Reader, labels: &BTreeMap<String, String>) -> Reading {
    let told = WorkloadLabels { name: "app", labels, environment: labels };
    let reading = reader.read(&told);
    assert_eq!(reading, reader.read(&told), "the same labels come to the same");
    let names = reading.requests.iter().map(|ask| &ask.name);
    assert!(names.is_sorted(), "asks come in order of name");
    assert!(
        reading.why_not.iter().all(|why| why.len() < 4000 && !why.contains('\n')),
        "{:?}",
        reading.why_not
    );
    reading
}

/// Pieces of every dialect's words, and some that belong nowhere.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec![
            "Host(`", "`)", "HostRegexp(`", "HostSNI(\"", "\")", "`, `", " && ", " || ", "!", "(", ")", "^", "$", "\\.",
            "[a-c]", "{1,3}", "{sub:", "}", "{{", "}}", ".Name", "|", "a.test", "*.b.test", "x", ".", ",", " ", "://",
            ":80", "/path", "~", "10.0.0.1", "fd00::1", "host", "network:", "public", "true", "false", "\\u0041", "\\",
            "SRV", "TXT", "A", "5m", "60", "-1", "99999999999", "if ", "end", "\"", "'", "\n", "- ", ": ", "&a", "*a",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat())
}

/// Labels of each dialect, and what they begin with.
const WORDS: [(Dialect, &[&str], &[&str]); 6] = [
    (
        Dialect::Netstead,
        &[
            "netstead.hostname",
            "netstead.hostnames",
            "netstead.ttl",
            "netstead.type",
            "netstead.target",
            "netstead.providers",
            "netstead.enabled",
            "netstead.pool",
            "netstead.adopt",
            "netstead.share",
            "netstead.proxied",
            "netstead.records.a.hostname",
            "netstead.records.a.type",
            "netstead.records.a.value",
            "netstead.records.a.port",
            "netstead.records.a.priority",
            "netstead.records.a.weight",
            "netstead.records.a.target",
            "netstead.records.",
        ],
        &["netstead.", "netstead.records.", "netstead.records.a."],
    ),
    (
        Dialect::Dnsweaver,
        &[
            "dnsweaver.hostname",
            "dnsweaver.hostnames",
            "dnsweaver.enabled",
            "dnsweaver.ttl",
            "dnsweaver.instances",
            "dnsweaver.records.b.hostname",
            "dnsweaver.records.b.type",
            "dnsweaver.records.b.port",
            "dnsweaver.records.b.target",
            "dnsweaver.records.b.provider",
            "dnsweaver.records.b.meta.x",
        ],
        &["dnsweaver.", "dnsweaver.records."],
    ),
    (
        Dialect::ExternalDns,
        &[
            "external-dns.kubernetes.io/hostname",
            "external-dns.alpha.kubernetes.io/hostname",
            "external-dns.alpha.kubernetes.io/internal-hostname",
            "external-dns.alpha.kubernetes.io/target",
            "external-dns.kubernetes.io/ttl",
            "external-dns.kubernetes.io/controller",
        ],
        &["external-dns.", "external-dns.kubernetes.io/", "external-dns.alpha.kubernetes.io/"],
    ),
    (
        Dialect::Traefik,
        &[
            "traefik.enable",
            "traefik.http.routers.r.rule",
            "traefik.http.routers.r.entrypoints",
            "traefik.tcp.routers.r.rule",
            "traefik.http.routers.r.tls.domains[0].main",
            "traefik.http.routers.r.tls.domains[0].sans",
        ],
        &["traefik.", "traefik.http.routers.", "traefik.http.routers.r.tls.domains[", "traefik.tcp.routers."],
    ),
    (Dialect::Caddy, &["caddy", "caddy_0", "caddy_1", "caddy.reverse_proxy"], &["caddy", "caddy_"]),
    (
        Dialect::NginxProxy,
        &["VIRTUAL_HOST", "VIRTUAL_HOST_MULTIPORTS", "com.nginx-proxy.virtual_host"],
        &["VIRTUAL_HOST", "com.nginx-proxy."],
    ),
];

fn label(dialects: &[Dialect]) -> impl Strategy<Value = String> + use<> {
    let words = WORDS.iter().filter(|(dialect, ..)| dialects.contains(dialect));
    let known: Vec<&str> = words.clone().flat_map(|(_, labels, _)| labels.iter().copied()).collect();
    let prefixes: Vec<&str> = words.flat_map(|(.., prefixes)| prefixes.iter().copied()).chain([""]).collect();
    prop_oneof![
        6 => select(known).prop_map(str::to_owned),
        1 => (select(prefixes), piece()).prop_map(|(prefix, rest)| format!("{prefix}{rest}")),
    ]
}

fn labels(dialects: &[Dialect]) -> impl Strategy<Value = BTreeMap<String, String>> + use<> {
    prop::collection::btree_map(label(dialects), value(), 0..8)
}

/// One dialect alone, so that the others' labels do not take its cases away.
macro_rules! fuzz_alone {
    ($($test:ident: $dialect:ident,)*) => { proptest! {
        #![proptest_config(config())]
        $(
            #[test]
            fn $test(labels in labels(&[Dialect::$dialect])) {
                check(&Reader::new([Dialect::$dialect]), &labels);
            }
        )*
    } };
}

fuzz_alone! {
    fuzz_netstead: Netstead,
    fuzz_dnsweaver: Dnsweaver,
    fuzz_external_dns: ExternalDns,
    fuzz_traefik: Traefik,
    fuzz_caddy: Caddy,
    fuzz_nginx_proxy: NginxProxy,
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn fuzz_labels_of_all_dialects(labels in labels(&Dialect::ALL), rule in value()) {
        read(&labels, Some(&rule));
    }

    #[test]
    fn fuzz_rules(rule in value()) {
        let labels = BTreeMap::from([("traefik.http.routers.r.rule".to_owned(), rule)]);
        let reading = read(&labels, None);
        prop_assert!(!reading.requests.is_empty() || !reading.why_not.is_empty(), "a rule that gives no name says why");
    }

    /// A rule made of hosts joined by `||`, some ruled out: its hosts are known.
    #[test]
    fn fuzz_hosts_that_are_named_and_not_ruled_out_are_found(
        hosts in prop::collection::btree_set("[a-z]{1,6}\\.test", 1..6),
        out in prop::collection::btree_set("[a-z]{1,6}\\.test", 0..3),
        deep in 0_usize..5,
    ) {
        let named: Vec<String> = hosts.iter().map(|host| format!("Host(`{host}`)")).collect();
        let ruled: Vec<String> = out.iter().map(|host| format!(" && !Host(\"{host}\")")).collect();
        let rule = format!("{}({}){}{}", "(".repeat(deep), named.join(" || "), ruled.concat(), ")".repeat(deep));
        let labels = BTreeMap::from([("traefik.http.routers.r.rule".to_owned(), rule)]);
        let found: Vec<String> = read(&labels, None).requests.iter().map(|ask| ask.name.to_string()).collect();
        let wanted: Vec<String> = hosts.difference(&out).cloned().collect();
        prop_assert_eq!(found, wanted);
    }
}

/// Values of 64 KB that would take long if any part were looked at again and again.
#[test]
fn labels_of_64_kilobytes_are_read_in_a_moment() {
    let size = 64 << 10;
    let fill = |piece: &str| piece.repeat(size / piece.len());
    let numbered = |front: &str, back: &str| -> String {
        let count = size / (front.len() + back.len() + 10);
        let each: Vec<String> = (0..count).map(|number| format!("{front}h{number}.test{back}")).collect();
        each.concat()
    };
    let values = [
        fill("("),
        fill("!"),
        fill("`"),
        fill("\\"),
        fill("Host(`a.test`) || "),
        numbered("Host(`", "`) || ") + "Host(`z.test`)",
        numbered("!Host(`", "`) && ") + "Host(`z.test`)",
        format!(
            "({}Host(`z.test`)) && !({}Host(`z.test`))",
            numbered("Host(`", "`) || "),
            "Host(`y.test`) || "
        ),
        format!("HostRegexp({}`a`)", fill("`^[a-z]{1,2}$`,")),
        format!("Host({}`a`)", fill("`a.test`,")),
        numbered("", ","),
        numbered("", " "),
        fill("a."),
        fill(","),
        fill("{{"),
        fill("- "),
        fill("["),
        fill("{a: "),
        numbered("", ":\n"),
        fill("a{"),
        fill("ä"),
    ];
    let labels = [
        "netstead.hostnames",
        "netstead.providers",
        "netstead.target",
        "netstead.records.a.value",
        "dnsweaver.hostnames",
        "traefik.http.routers.r.rule",
        "caddy",
        "VIRTUAL_HOST",
        "VIRTUAL_HOST_MULTIPORTS",
        "external-dns.kubernetes.io/hostname",
    ];
    let slowest = if cfg!(debug_assertions) { Duration::from_secs(8) } else { Duration::from_millis(500) };
    let mut longest = (Duration::ZERO, String::new());
    for label in labels {
        for value in &values {
            let map = BTreeMap::from([(label.to_owned(), value.clone())]);
            let reader = Reader::new(Dialect::ALL);
            let begun = SystemClock.monotonic();
            let _ = reader.read(&WorkloadLabels { name: "app", labels: &map, environment: &map });
            let took = SystemClock.monotonic().saturating_sub(begun);
            let front: String = value.chars().take(20).collect();
            assert!(took < slowest, "{label}={front}… took {took:?}");
            longest = longest.max((took, format!("{label}={front}…")));
        }
    }
    println!("64 KB: none took longer than {}: {:?}", longest.1, longest.0);
    // Many labels instead of long ones.
    let many =
        (0..4000).map(|number| (format!("netstead.records.r{number}.hostname"), format!("h{number}.test")));
    let many: BTreeMap<String, String> = many.collect();
    let begun = SystemClock.monotonic();
    assert_eq!(read(&many, None).requests.len(), 4000);
    assert!(SystemClock.monotonic().saturating_sub(begun) < slowest);
}
