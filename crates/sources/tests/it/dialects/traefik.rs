//! Routers of Traefik.

use netstead_sources::dialects::{Dialect, Reader, TraefikSettings};

use super::{all, lines, reading};

fn with(settings: TraefikSettings, labels: &[(&str, &str)]) -> Vec<String> {
    lines(&reading(&Reader::new([Dialect::Traefik]).with_traefik(settings), labels))
}

/// The names of one rule, or why there are none.
fn rule(rule: &str) -> Vec<String> {
    let found = reading(&Reader::default(), &[("traefik.http.routers.r.rule", rule)]);
    let names = found.requests.iter().map(|ask| ask.name.to_string());
    names.chain(found.why_not.iter().map(|why| why.replace("traefik.http.routers.r.rule: ", "! "))).collect()
}

#[test]
fn a_rule_names_the_hosts_that_can_match() {
    for (text, names) in [
        ("Host(`a.test`)", vec!["a.test"]),
        ("Host(`a.test`, `b.test`)", vec!["a.test", "b.test"]),
        ("Host(\"A.test\") && PathPrefix(`/x`)", vec!["a.test"]),
        ("host(`a.test`) || HOST(\"b\\u002etest\",)", vec!["a.test", "b.test"]),
        ("(Host(`a.test`) || Host(`b.test`)) && !Host(`b.test`)", vec!["a.test"]),
        ("!(!Host(`a.test`))", vec!["a.test"]),
        ("!(Host(`a.test`) || !Host(`b.test`))", vec!["b.test"]),
        ("Host(`a.test`) || PathPrefix(`/x`)", vec!["a.test"]),
        ("Host(`a.test`) && Method(`GET`, `POST`) && ClientIP(`10.0.0.0/8`)", vec!["a.test"]),
        ("HostHeader(`a.test`)\n  && Headers(`X`, `Host(b.test)`)", vec!["a.test"]),
        ("HostRegexp(`^(www|api)\\.a\\.test$`)", vec!["api.a.test", "www.a.test"]),
        (
            "HostRegexp(`^n[1-3]x?\\.a\\.test$`) && !Host(`n2.a.test`)",
            vec!["n1.a.test", "n1x.a.test", "n2x.a.test", "n3.a.test", "n3x.a.test"],
        ),
        ("HostRegexp(`{sub:(?:x|y)}.a.test`, `b.test`)", vec!["b.test", "x.a.test", "y.a.test"]),
        ("Host(`*.a.test`)", vec!["*.a.test"]),
    ] {
        assert_eq!(rule(text), names, "{text}");
    }
}

#[test]
fn a_rule_that_names_no_host_says_why() {
    for (text, why) in [
        ("!Host(`a.test`)", "! the rule names no host"),
        ("PathPrefix(`/`)", "! the rule names no host"),
        ("Host(`a.test`) && Host(`b.test`)", "! the rule names no host"),
        ("Host('a.test')", "! single quotes do not make a text; use backticks at character 6"),
        ("Host(`a.test`", "! `)` was expected, not the end at character 14"),
        ("Host(`a.test)", "! the backtick is never closed at character 6"),
        ("Host(`a.test`) Host(`b.test`)", "! `Host` does not belong there at character 16"),
        ("Host(`a.test`) &&", "! a matcher was expected, not the end at character 18"),
        ("Host(`a.test`) & Path(`/`)", "! `&` has no meaning at character 16"),
        ("   ", "! there is no rule, and no default rule either"),
        (
            "HostRegexp(`^[a-z]+\\.a\\.test$`)",
            "! HostRegexp(`^[a-z]+\\\\.a\\\\.test$`) gives no name: it matches more than 256 hosts; write them out, or ask for a wildcard with netstead.hostname",
        ),
        (
            "HostRegexp(`(www|api)\\.a\\.test`)",
            "! HostRegexp(`(www|api)\\\\.a\\\\.test`) gives no name: without `^` and `$` it matches any number of hosts",
        ),
        (
            "HostRegexp(`{sub}.a.test`)",
            "! HostRegexp(`{sub}.a.test`) gives no name: it matches more than 256 hosts; write them out, or ask for a wildcard with netstead.hostname",
        ),
    ] {
        assert_eq!(rule(text), [why], "{text}");
    }
}

#[test]
fn rules_nest_only_so_deep() {
    let nested = |depth: usize| format!("{}Host(`a.test`){}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(rule(&nested(100)), ["a.test"]);
    assert_eq!(rule(&nested(101)), ["! it nests deeper than 100 at character 101"]);
    assert_eq!(rule(&nested(30_000)), ["! it nests deeper than 100 at character 101"]);
    assert_eq!(
        rule(&format!("{}Host(`a.test`)", "!".repeat(30_000))),
        ["! it nests deeper than 100 at character 101"]
    );
}

#[test]
fn routers_of_tcp_have_names_too_and_label_names_have_no_case() {
    let labels = [
        ("Traefik.HTTP.Routers.web.Rule", "Host(`web.test`)"),
        ("traefik.tcp.routers.db.rule", "HostSNI(`db.test`, `db2.test`)"),
        ("traefik.tcp.routers.raw.rule", "HostSNI(`*`)"),
        ("traefik.udp.routers.dns.entrypoints", "dns"),
        ("traefik.http.services.web.loadbalancer.server.port", "80"),
    ];
    assert_eq!(
        all(&labels),
        [
            "db.test -> Source (traefik.tcp.routers.db.rule)",
            "db2.test -> Source (traefik.tcp.routers.db.rule)",
            "web.test -> Source (traefik.http.routers.web.rule)",
            "! traefik.tcp.routers.raw.rule: HostSNI(`*`) names no host",
        ]
    );
}

#[test]
fn certificates_name_the_hosts_of_a_router_that_does_not() {
    let labels = [
        ("traefik.http.routers.a.rule", "HostRegexp(`^.+\\.a\\.test$`)"),
        ("traefik.http.routers.a.tls.domains[0].main", "a.test"),
        ("traefik.http.routers.a.tls.domains[0].sans", "*.a.test, b.test"),
        ("traefik.http.routers.c.rule", "Host(`c.test`)"),
        ("traefik.http.routers.c.tls.domains[0].main", "d.test"),
    ];
    let place = "(traefik.http.routers.a.rule (tls.domains))";
    assert_eq!(
        all(&labels),
        [
            format!("*.a.test -> Source {place}"),
            format!("a.test -> Source {place}"),
            format!("b.test -> Source {place}"),
            "c.test -> Source (traefik.http.routers.c.rule)".into(),
        ]
    );
}

#[test]
fn only_exposed_containers_give_names() {
    let router = ("traefik.http.routers.a.rule", "Host(`a.test`)");
    let closed = || TraefikSettings { exposed_by_default: false, ..TraefikSettings::default() };
    let name = "a.test -> Source (traefik.http.routers.a.rule)";
    assert_eq!(with(closed(), &[router, ("traefik.enable", "true")]), [name]);
    assert_eq!(with(TraefikSettings::default(), &[router]), [name]);
    assert_eq!(
        with(closed(), &[router]),
        ["! traefik.enable is not set to true, so its Traefik routers give no name"]
    );
    assert_eq!(
        with(TraefikSettings::default(), &[router, ("traefik.enable", "false")]),
        ["! traefik.enable is false, so its Traefik routers give no name"]
    );
    assert!(with(closed(), &[]).is_empty());
}

#[test]
fn entrypoints_decide_which_routers_count() {
    let settings = || TraefikSettings {
        entrypoints: vec!["lan".into()],
        default_entrypoints: vec!["web".into()],
        ..TraefikSettings::default()
    };
    let labels = [
        ("traefik.http.routers.a.rule", "Host(`a.test`)"),
        ("traefik.http.routers.a.entrypoints", "web, lan"),
        ("traefik.http.routers.b.rule", "Host(`b.test`)"),
        ("traefik.http.routers.b.entrypoints", "web"),
        ("traefik.http.routers.c.rule", "Host(`c.test`)"),
    ];
    let (a, c) =
        ("a.test -> Source (traefik.http.routers.a.rule)", "c.test -> Source (traefik.http.routers.c.rule)");
    let not = |router: &str| {
        format!("! traefik.http.routers.{router}.rule: it is on none of the wanted entrypoints")
    };
    assert_eq!(with(settings(), &labels), [a.to_owned(), not("b"), not("c")]);
    let unknown = TraefikSettings { default_entrypoints: Vec::new(), ..settings() };
    assert_eq!(with(unknown, &labels), [a.to_owned(), c.to_owned(), not("b")]);
}

#[test]
fn a_default_rule_names_what_has_no_rule() {
    let filled = |template: &str, labels: &[(&str, &str)]| {
        let default_rule = Some(template.parse().unwrap());
        with(TraefikSettings { default_rule, ..TraefikSettings::default() }, labels)
    };
    let name = |name: &str| format!("{name} -> Source (Traefik's default rule)");
    let compose = [
        ("com.docker.compose.project", "my_stack"),
        ("com.docker.compose.service", "web.1"),
        ("zone", "b.test"),
    ];
    assert_eq!(filled("Host(`{{ normalize .Name }}.a.test`)", &[]), [name("app.a.test")]);
    for (template, made) in [
        ("Host(`{{ normalize .Name }}.a.test`)", "web-1-my-stack.a.test"),
        ("Host(`{{ .ContainerName }}.{{ index .Labels \"zone\" }}`)", "app.b.test"),
        ("Host(`{{ trimSuffix \"-my-stack\" .Name | upper | lower }}.a.test`)", "web-1.a.test"),
        (
            "Host(`{{ index .Labels \"com.docker.compose.service\" | replace \".\" \"-\" }}.a.test`)",
            "web-1.a.test",
        ),
        (
            "Host(`app.{{- if (index .Labels \"none\") }} x {{ else if .Labels.zone }}{{ .Labels.zone }}{{ end -}} `)",
            "app.b.test",
        ),
        ("Host(`{{ .Labels.none | default (first (splitList \"-\" .Name)) }}.a.test`)", "web.a.test"),
        ("Host(`{{ .Name | trunc 3 }}{{/* short */}}.a.test`)", "web.a.test"),
    ] {
        assert_eq!(filled(template, &compose), [name(made)], "{template}");
    }
    let router = ("traefik.http.routers.x.entrypoints", "web");
    assert_eq!(
        filled("Host(`{{ .Name }}.a.test`)", &[router]),
        ["app.a.test -> Source (traefik.http.routers.x.rule)"]
    );
    assert!(
        filled("Host(`{{ .Name }}.a.test`)", &[("traefik.tcp.services.x.loadbalancer.server.port", "1")])
            .is_empty()
    );
}

#[test]
fn a_default_rule_that_cannot_work_is_refused_when_it_is_written() {
    use netstead_sources::dialects::DefaultRule;
    for (template, why) in [
        ("Host(`{{ .Name `)", "a quote is never closed"),
        ("Host(`{{ .Name", "`{{` is never closed"),
        ("{{ .Nmae }}", ".Nmae is not known; there are .Name, .ContainerName and .Labels"),
        ("{{ shout .Name }}", "shout with 1 arguments is not known; there are normalize"),
        ("{{ range .Labels }}x{{ end }}", "`range` is not understood here"),
        ("{{ if .Name }}x", "`if` without `end`"),
        ("x{{ end }}", "`end` or `else` without `if`"),
        ("{{ (.Name }}", "`(` is never closed"),
        ("{{ .Name) }}", "`)` without `(`"),
        ("{{ .Name .Name }}", "two values stand beside each other"),
        ("{{ }}{{ $x := 1 }}", "`$` is not understood here"),
    ] {
        let error = template.parse::<DefaultRule>().unwrap_err().to_string();
        assert!(error.contains(why), "{template}: {error}");
    }
    let pipes = format!("{{{{ .Name {} }}}}", "| lower".repeat(1000));
    assert!(pipes.parse::<DefaultRule>().is_err());
}

#[test]
fn a_name_knows_the_entry_points_of_all_its_routers() {
    let settings =
        TraefikSettings { default_entrypoints: vec!["web".to_owned()], ..TraefikSettings::default() };
    let entrypoints = |labels: &[(&str, &str)]| {
        let found = reading(
            &Reader::new([Dialect::Netstead, Dialect::Traefik]).with_traefik(settings.clone()),
            labels,
        );
        found.requests.iter().map(|ask| ask.entrypoints.clone()).collect::<Vec<_>>()
    };
    let (rule, on) = ("traefik.http.routers.r.rule", "traefik.http.routers.r.entrypoints");
    let (other, other_on) = ("traefik.http.routers.s.rule", "traefik.http.routers.s.entrypoints");
    assert_eq!(
        entrypoints(&[(rule, "Host(`a.test`)"), (on, "websecure,internal")]),
        [["websecure", "internal"]]
    );
    assert_eq!(entrypoints(&[(rule, "Host(`a.test`)")]), [["web"]]);
    let both =
        [(rule, "Host(`a.test`)"), (on, "websecure"), (other, "Host(`a.test`)"), (other_on, "internal")];
    assert_eq!(entrypoints(&both), [["internal", "websecure"]]);
    // A name that a label asks for by itself is on no entry point, and so on all.
    let named = [(rule, "Host(`a.test`)"), (on, "websecure"), ("netstead.hostname", "a.test")];
    assert_eq!(entrypoints(&named), [Vec::<String>::new()]);
}
