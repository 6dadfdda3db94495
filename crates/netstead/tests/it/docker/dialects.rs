//! Every dialect at once, from a label to an answer.

use super::*;
use crate::resolve::ptr;

/// Starts a container with these words before its image.
fn start(docker: &Dockerd, words: &[&str]) -> String {
    let name = fresh("dialect");
    docker.docker(&[&["run", "-d", "--name", &name][..], words, &["tiny:1"]].concat());
    name
}

#[test]
fn a_container_with_labels_of_any_dialect_is_answered_for() {
    let Some(docker) = shared() else { return };
    let sandbox = sandbox(docker, "target = \"198.51.100.7\"");
    let zone = fresh("dialects");
    let host = |name: &str| format!("{name}.{zone}.test");
    let words = [
        ("own", format!("netstead.hostname={}", host("own"))),
        ("weaver", format!("dnsweaver.hostname={}", host("weaver"))),
        ("router", format!("traefik.http.routers.r.rule=Host(`{}`) && PathPrefix(`/x`)", host("router"))),
        ("sni", format!("traefik.tcp.routers.t.rule=HostSNI(`{}`)", host("sni"))),
        ("caddy", format!("caddy=https://{}:8443", host("caddy"))),
        ("kube", format!("external-dns.alpha.kubernetes.io/hostname={}", host("kube"))),
    ];
    let mut names: Vec<String> = words.iter().map(|(_, label)| start(docker, &["--label", label])).collect();
    let variable = format!("VIRTUAL_HOST={},{}", host("proxy"), host("second"));
    names.push(start(docker, &["--env", &variable]));
    for name in ["own", "weaver", "router", "sni", "caddy", "kube", "proxy", "second"] {
        until(&["198.51.100.7"], || a(sandbox.dns(), &host(name)));
    }
    // The address is the proxy's, and called after none of them.
    assert!(ptr(sandbox.dns(), "198.51.100.7".parse().unwrap()).values.is_empty());
    let label = format!("caddy={}", host("quiet"));
    names.push(start(docker, &["--label", &label, "--label", "netstead.enabled=false"]));
    let bad = format!("traefik.http.routers.r.rule=Host(`{}`", host("bad"));
    names.push(start(docker, &["--label", &bad]));
    let seen = || sandbox.does("get workloads -o json");
    let begun = Stopwatch::start();
    while !(seen().contains("netstead.enabled is false") && seen().contains("traefik.http.routers.r.rule: "))
    {
        assert!(begun.elapsed() < SOON, "{}", seen());
    }
    assert!(a(sandbox.dns(), &host("quiet")).values.is_empty());
    let sources = sandbox.does("get sources");
    assert!(
        sources.lines().any(|line| line.starts_with("dock ") && line.contains(" complete ")),
        "{sources}"
    );
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    docker.docker(&[&["rm", "-f"], &names[..]].concat());
}

#[test]
fn what_traefik_was_told_in_its_configuration_counts() {
    let Some(docker) = shared() else { return };
    let zone = fresh("settings");
    let sandbox = sandbox(
        docker,
        &format!(
            "target = \"198.51.100.7\"\ndialects = [\"traefik\"]\nexposed_by_default = false\n\
             entrypoints = [\"websecure\"]\ndefault_rule = \"Host(`{{{{ normalize .Name }}}}.{zone}.test`)\"\n"
        ),
    );
    let named = start(docker, &["--label", "traefik.enable=true"]);
    until(&["198.51.100.7"], || a(sandbox.dns(), &format!("{named}.{zone}.test")));
    let rule = |host: &str| format!("traefik.http.routers.r.rule=Host(`{host}.{zone}.test`)");
    let entry = "traefik.http.routers.r.entrypoints=web";
    let secure = "traefik.http.routers.r.entrypoints=websecure";
    let enable = "traefik.enable=true";
    let closed = start(docker, &["--label", &rule("closed")]);
    let plain = start(docker, &["--label", enable, "--label", &rule("plain"), "--label", entry]);
    let shown = start(docker, &["--label", enable, "--label", &rule("shown"), "--label", secure]);
    until(&["198.51.100.7"], || a(sandbox.dns(), &format!("shown.{zone}.test")));
    for host in ["closed", "plain"] {
        assert!(a(sandbox.dns(), &format!("{host}.{zone}.test")).values.is_empty());
    }
    let seen = sandbox.does("get workloads -o json");
    assert!(seen.contains("traefik.enable is not set to true"), "{seen}");
    assert!(seen.contains("it is on none of the wanted entrypoints"), "{seen}");
    docker.docker(&["rm", "-f", &named, &closed, &plain, &shown]);
}
