//! Labels that were written for a proxy.

use netstead_sources::dialects::{Dialect, Reader};

use super::{all, lines, reading_with_environment};

#[test]
fn sites_of_caddy_lose_scheme_port_and_path() {
    let labels = [
        ("caddy", "a.test, https://B.test:8443/x http://c.test/y/*"),
        ("caddy.reverse_proxy", "{{upstreams 80}}"),
        ("caddy_0", "*.d.test"),
        ("caddy_1", "(snippet)"),
        ("caddy_1.tls", "internal"),
        ("caddy_10", ":443 http://"),
        ("caddy_2", "{$DOMAIN} localhost [::1]:80 192.0.2.1"),
        ("caddy_x", "not.a.site.test"),
        ("caddyfile", "e.test"),
    ];
    assert_eq!(
        all(&labels),
        [
            "*.d.test -> Source (caddy_0)",
            "a.test -> Source (caddy)",
            "b.test -> Source (caddy)",
            "c.test -> Source (caddy)",
            "! caddy_2: `{$DOMAIN}` has a placeholder that only Caddy knows",
            "! caddy_2: localhost is no name for others",
            "! caddy_2: `[::1]:80` is an address, not a name",
            "! caddy_2: `192.0.2.1` is not a DNS name: it is an IP address; write a name such as `web.example.net`",
        ]
    );
}

#[test]
fn nginx_proxys_hosts_come_from_the_environment_and_from_labels() {
    let reader = Reader::default();
    assert_eq!(reader.wanted_environment(), ["VIRTUAL_HOST", "VIRTUAL_HOST_MULTIPORTS"]);
    assert!(Reader::new([Dialect::Caddy]).wanted_environment().is_empty());
    let environment = [("VIRTUAL_HOST", "a.test, *.b.test,~^c\\..*$,d.*"), ("SECRET", "e.test")];
    let labels = [("VIRTUAL_HOST", "f.test"), ("com.nginx-proxy.virtual_host", "f.test,g.test")];
    assert_eq!(
        lines(&reading_with_environment(&reader, &labels, &environment)),
        [
            "*.b.test -> Source (VIRTUAL_HOST (environment))",
            "a.test -> Source (VIRTUAL_HOST (environment))",
            "f.test -> Source (VIRTUAL_HOST (label), com.nginx-proxy.virtual_host (label))",
            "g.test -> Source (com.nginx-proxy.virtual_host (label))",
            "! VIRTUAL_HOST (environment): `~^c\\\\..*$` is a regular expression, which names no host",
            "! VIRTUAL_HOST (environment): `d.*` has its wildcard at the end, where the DNS has none",
        ]
    );
}

#[test]
fn hosts_with_several_ports_are_yaml() {
    let reader = Reader::default();
    let several = "www.a.test:\nservice.a.test:\n  \"/\":\n    port: 8000\n";
    let environment = [("VIRTUAL_HOST", "left.aside.test"), ("VIRTUAL_HOST_MULTIPORTS", several)];
    let place = "(VIRTUAL_HOST_MULTIPORTS (environment))";
    assert_eq!(
        lines(&reading_with_environment(&reader, &[], &environment)),
        [format!("service.a.test -> Source {place}"), format!("www.a.test -> Source {place}")]
    );
    let found = reading_with_environment(&reader, &[], &[("VIRTUAL_HOST_MULTIPORTS", "- a\n- b: [")]);
    assert_eq!(found.requests, []);
    assert!(found.why_not[0].contains("it is not the YAML of hosts"), "{:?}", found.why_not);
}

#[test]
fn external_dns_annotations_work_with_both_prefixes() {
    let labels = [
        ("external-dns.alpha.kubernetes.io/hostname", "a.test,b.test."),
        ("external-dns.alpha.kubernetes.io/ttl", "1m"),
        ("external-dns.alpha.kubernetes.io/target", "192.0.2.1"),
        ("external-dns.kubernetes.io/cloudflare-proxied", "true"),
        ("external-dns.kubernetes.io/internal-hostname", "c.test"),
        ("external-dns.kubernetes.io/ttl", "30"),
    ];
    let old = "proxied=true ttl=30 (external-dns.alpha.kubernetes.io/hostname)";
    assert_eq!(
        all(&labels),
        [
            format!("a.test -> Addresses([Address(192.0.2.1)]) {old}"),
            format!("b.test -> Addresses([Address(192.0.2.1)]) {old}"),
            "c.test -> Source proxied=true ttl=30 (external-dns.kubernetes.io/internal-hostname)".into(),
        ]
    );
    let other = [
        ("external-dns.kubernetes.io/hostname", "a.test"),
        ("external-dns.kubernetes.io/controller", "somebody-else"),
    ];
    assert_eq!(
        all(&other),
        ["! external-dns.kubernetes.io/controller is not dns-controller, so another tool shall read it"]
    );
}

#[test]
fn a_name_of_several_dialects_is_asked_for_once() {
    let labels = [
        ("caddy", "a.test"),
        ("external-dns.kubernetes.io/hostname", "a.test"),
        ("netstead.hostname", "a.test"),
        ("traefik.http.routers.a.rule", "Host(`a.test`)"),
        ("VIRTUAL_HOST", "a.test"),
    ];
    assert_eq!(
        all(&labels),
        [
            "a.test -> Source (netstead.hostname, external-dns.kubernetes.io/hostname, traefik.http.routers.a.rule, caddy, VIRTUAL_HOST (label))"
        ]
    );
}
