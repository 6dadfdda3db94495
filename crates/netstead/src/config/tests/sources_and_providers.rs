//! Sources, providers and domains.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{problems_of, understood};
use crate::config::layout;

const LAN: &str = "[dns.lan]\ntype = \"powerdns\"\nurl = \"http://ns1:8081\"\napi_key = { env = \"KEY\" }\ndomains = [\"home.test\"]\n";

#[test]
fn what_is_wrong_with_names_is_told_by_line_and_column() {
    let second = LAN.replace("dns.lan", "dns.other");
    let files = [
        ("a source without a type", "[source.office]\npath = \"hosts\"\n".to_owned()),
        ("an unknown source", "[source.office]\ntype = \"host\"\npath = \"hosts\"\n".into()),
        ("a mistyped key", "[source.office]\ntype = \"hosts\"\npth = \"hosts\"\n".into()),
        ("a name of ours", "[source.ledger]\ntype = \"hosts\"\npath = \"hosts\"\n".into()),
        ("a provider without a type", LAN.replace("type = \"powerdns\"\n", "")),
        ("an unknown type", LAN.replace("powerdns", "powrdns")),
        ("a mistyped common key", format!("{LAN}  exclude_domain = [\"x.home.test\"]\n")),
        ("a key of another type", format!("{LAN}servers = [\"ns1\"]\n")),
        ("a mistyped own key", LAN.replace("api_key", "apikey")),
        ("no domains", LAN.replace("domains = [\"home.test\"]\n", "")),
        ("a domain that is none", LAN.replace("home.test", "home test")),
        ("a broken regex", LAN.replace("home.test", "/(/")),
        ("a mode", format!("{LAN}mode = \"manged\"\n")),
        ("a secret in two places", LAN.replace("env = \"KEY\"", "env = \"KEY\", file = \"x\"")),
        ("a secret nowhere", LAN.replace("{ env = \"KEY\" }", "{ evn = \"KEY\" }")),
        ("a secret that is a number", LAN.replace("{ env = \"KEY\" }", "7")),
        ("servers beside a server", format!("{LAN}urls = [\"http://ns2:8081\"]\n")),
        ("no servers at all", LAN.replace("url = \"http://ns1:8081\"", "urls = []")),
        ("one server twice", LAN.replace("url = \"http://ns1:8081\"", "urls = [\"http://ns1:8081\", \"http://ns1:8081/\"]")),
        ("servers of a kind without a url", "[dns.b]\ntype = \"rfc2136\"\nservers = [\"ns1\"]\nurls = [\"ns2\"]\ndomains = [\"a.test\"]\n".into()),
        ("a url", LAN.replace("http://ns1:8081", "ns1:8081")),
        ("a breaker", format!("{LAN}breaker = {{ percent = 200, totl = 1 }}\n")),
        ("a target that is a word", format!("{LAN}target = \"publik\"\n")),
        ("an interface without a name", format!("{LAN}target = \"interface:\"\ntarget_endpoints = [\"ifconfig\"]\n")),
        ("a CNAME to nowhere", format!("{LAN}record_type = \"CNAME\"\n")),
        ("too often", format!("{LAN}interval = \"10ms\"\n")),
        ("an owner", format!("{LAN}owner = \"default\"\n")),
        ("zones without servers", format!("{LAN}create_zones = true\n")),
        ("two that mean one", format!("{LAN}{second}")),
        ("two that overlap", format!("{LAN}{}", second.replace("home.test", "lab.home.test"))),
        ("a key without a secret", "[dns.b]\ntype = \"rfc2136\"\nservers = [\"ns1\"]\ntsig_name = \"k\"\ndomains = [\"a.test\"]\n".into()),
        ("an old algorithm", "[dns.b]\ntype = \"rfc2136\"\nservers = [\"ns1\"]\ntsig_name = \"k\"\ntsig_secret = { file = \"k\" }\ntsig_algorithm = \"hmac-md5\"\ndomains = [\"a.test\"]\n".into()),
        ("no servers", "[dns.b]\ntype = \"rfc2136\"\ndomains = [\"a.test\"]\n".into()),
        ("a network", "[domain.\"home.test\"]\nnetworks = [\"10.0.3.0/33\", { cdir = \"10.0.3.0/24\" }, 7]\n".into()),
        ("a shared name", "[domain.\"home.test\"]\nnetworks = [{ cidr = \"10.0.3.0/24\", shared_name = \"a b\" }]\n".into()),
        ("a template", "[domain.\"home.test\"]\ntemplate = \"{nmae}.{domain}\"\n".into()),
        ("a network in two", "[domain.\"a.test\"]\nnetworks = [\"10.0.3.0/24\"]\n[domain.\"b.test\"]\nnetworks = [\"10.0.3.0/24\"]\n".into()),
        ("a place to listen", "[nameserver]\nlisten = \"localhost\"\nhostnme = \"ns1.test\"\n".into()),
    ];
    let mut all = String::new();
    for (what, text) in files {
        let told = problems_of(&text, &[]);
        assert!(!told.starts_with("understood"), "{what}: {told}");
        let _ = writeln!(all, "## {what}\n{told}");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn each_server_of_a_table_is_a_provider_of_its_own() {
    let text =
        LAN.replace("url = \"http://ns1:8081\"", "urls = [\"http://ns1:8081\", \"http://10.0.0.2:8081\"]");
    let config = understood(&text, &[]);
    let names: Vec<&str> = config.providers.iter().map(|provider| provider.name.as_str()).collect();
    assert_eq!(names, ["lan-ns1-8081", "lan-10-0-0-2-8081"]);
    for (number, provider) in config.providers.iter().enumerate() {
        assert_eq!(provider.common.group.as_ref().unwrap().as_str(), "lan");
        assert_eq!(provider.common.was.is_some(), number == 0, "the first goes on with what the table had");
    }
    assert_ne!(config.providers[0].server.written, config.providers[1].server.written);
}

#[test]
fn two_providers_of_one_server_may_differ() {
    let second = LAN.replace("dns.lan", "dns.other");
    for text in [
        format!("{LAN}{}", second.replace("home.test", "lab.test")),
        format!("{LAN}{second}owner = \"second\"\n"),
        format!("{LAN}record_type = \"A\"\n{second}record_type = \"AAAA\"\n"),
        format!(
            "{LAN}exclude_domains = [\"lab.home.test\"]\n{}",
            second.replace("home.test", "lab.home.test")
        ),
        format!("{LAN}{}", second.replace("ns1:8081", "ns2:8081")),
        format!("{LAN}[dns.own]\ntype = \"builtin\"\n"),
    ] {
        assert_eq!(understood(&text, &[]).providers.len(), 2, "{text}");
    }
}

/// One server has many spellings.
#[test]
fn the_same_server_is_known_however_it_is_written() {
    let second = LAN.replace("dns.lan", "dns.other");
    let plain = LAN.replace("http://ns1:8081", "http://ns1");
    for (one, other) in [
        (LAN.to_owned(), format!("{second}server_id = \"localhost\"\n")),
        (plain, second.replace("http://ns1:8081", "http://NS1:80/api/v1/")),
    ] {
        let told = problems_of(&format!("{one}{other}"), &[]);
        assert!(told.contains("dns.lan and dns.other mean the same server"), "{one}{other}{told}");
    }
    let both =
        format!("{LAN}[dns.dyn]\ntype = \"rfc2136\"\nservers = [\"ns1\"]\ndomains = [\"home.test\"]\n");
    let warnings: Vec<_> = understood(&both, &[]).warnings.iter().map(ToString::to_string).collect();
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(
        warning.ends_with(
            "dns.dyn (rfc2136) and dns.lan (powerdns) are both at ns1, and both answer for `home.test`: if that is one \
             server, they undo each other's work"
        ),
        "{warning}"
    );
}

/// A section and a kind of it.
type SectionKind = (&'static str, &'static str);

/// A kind is carried over by each importer, or listed here as one that the other tool does not have. terraform-provider-netaddr
/// has no kinds: its importer makes claims.
#[test]
fn every_kind_is_known_to_the_importers_or_has_no_counterpart() {
    let all: BTreeSet<(&str, &str)> = layout::named_sections()
        .iter()
        .flat_map(|section| section.kinds.iter().map(|(kind, _, _)| (section.name, *kind)))
        .collect();
    // The API of another program is what a pool draws from; none of these tools has pools.
    let backends = ["netaddr", "netbox", "netstead", "phpipam"].map(|kind| ("backend", kind));
    let importers: [(&str, Vec<SectionKind>, &[SectionKind]); 3] = [
        (
            "dnsweaver",
            crate::import::dnsweaver_kinds(),
            &[
                ("dns", "builtin"),
                ("dns", "external-dns"),
                ("source", "hosts"),
                ("ipam", "netbox"),
                ("ipam", "phpipam"),
                ("ipam", "webhook"),
            ],
        ),
        (
            "external-dns",
            crate::import::external_dns_kinds(),
            &[
                ("dns", "builtin"),
                // Built-in providers alone are carried over; these are reached by webhook providers.
                ("dns", "adguard"),
                ("dns", "dnsmasq"),
                ("dns", "technitium"),
                ("dns", "webhook"),
                ("source", "docker"),
                ("source", "hosts"),
                ("source", "proxmox"),
                ("source", "traefik"),
                ("ipam", "netbox"),
                ("ipam", "phpipam"),
                ("ipam", "webhook"),
            ],
        ),
        (
            "pipam",
            crate::import::PIPAM_KINDS.to_vec(),
            &[
                ("dns", "adguard"),
                ("dns", "builtin"),
                ("dns", "cloudflare"),
                ("dns", "dnsmasq"),
                ("dns", "external-dns"),
                ("dns", "pihole"),
                ("dns", "rfc2136"),
                ("dns", "technitium"),
                ("dns", "webhook"),
                ("source", "docker"),
                ("source", "hosts"),
                ("source", "kubernetes"),
                ("source", "traefik"),
                ("ipam", "phpipam"),
                ("ipam", "webhook"),
            ],
        ),
    ];
    for (tool, mapped, none) in importers {
        let mapped: BTreeSet<_> = mapped.into_iter().collect();
        let none: BTreeSet<_> = none.iter().copied().chain(backends).collect();
        let both: Vec<_> = mapped.intersection(&none).collect();
        assert!(both.is_empty(), "{tool}: {both:?} are mapped and listed as absent");
        let known: BTreeSet<_> = mapped.union(&none).copied().collect();
        assert_eq!(known, all, "{tool}: map each kind in its importer, or list it here");
    }
}

#[test]
fn names_are_understood_and_secrets_are_not_told() {
    let text = r#"
        [source.office]
        type = "hosts"
        path = "hosts"
        [dns.lan]
        type = "powerdns"
        url = "https://ns1:8081"
        api_key = "hunter2"
        domains = ["home.test", "*.lab.test", "/^web[0-9]+\\./"]
        mode = "additive"
        target = ["10.0.0.1", "fd00::1"]
        breaker = { percent = 50 }
        fingerprint = "aa:bb:cc:dd:ee:ff:00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff:00:11:22:33:44:55:66:77:88:99"
        [dns.dyn]
        type = "rfc2136"
        servers = ["ns1", "[fd00::53]:5353"]
        tsig_name = "netstead"
        tsig_secret = { file = "tsig" }
        domains = ["dyn.test"]
        was = "old"
        [domain."home.test"]
        networks = ["10.0.4.0/24", { cidr = "10.0.3.0/24", shared_name = "nodes" }]
        [nameserver]
        listen = "127.0.0.1:5353"
        transfer_to = ["10.0.0.0/8"]
    "#;
    let config = understood(text, &[("NETSTEAD_DNS_LAN_TTL", "60"), ("NETSTEAD_DNS_MORE_TYPE", "builtin")]);
    let shown = serde_json::to_string_pretty(&config).unwrap() + &format!("{config:?}");
    assert!(!shown.contains("hunter2"));
    insta::assert_snapshot!(
        serde_json::to_string_pretty(&(config.sources, config.providers, config.domains, config.nameserver))
            .unwrap()
    );
}

#[test]
fn the_api_names_every_kind_of_the_lists_and_our_own_sources() {
    let named = super::super::kind_names();
    let sources = netstead_sources::KINDS.iter().map(|kind| kind.name);
    let all: Vec<&str> = ["ledger", "manual", "external-dns"].into_iter().chain(sources).collect();
    let absent = netstead_sources::ABSENT.to_vec();
    assert_eq!(named.sources, [all, absent].concat());
    let providers = netstead_providers::dns::KINDS.iter().map(|kind| kind.name);
    let mut providers: Vec<&str> = ["builtin"].into_iter().chain(providers).collect();
    // A webhook is one of both.
    let systems = netstead_providers::ipam::KINDS.iter().map(|kind| kind.name);
    let more: Vec<&str> = systems.filter(|name| !providers.contains(name)).collect();
    providers.extend(more);
    assert_eq!(named.providers, providers);
}
