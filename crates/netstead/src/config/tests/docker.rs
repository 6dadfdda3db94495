//! Docker hosts.

use super::{problems_of, understood};

const HOST: &str = "[source.dock]\ntype = \"docker\"\n";

#[test]
fn what_is_said_of_a_docker_host_is_understood() {
    let text = format!(
        "{HOST}target = \"interface:eth0\"\ntarget_interval = \"10s\"\nexposed_by_default = false\n\
         entrypoints = \"websecure\"\ndefault_rule = \"Host(`{{{{ normalize .Name }}}}.home.test`)\"\nobserve = true\n"
    );
    let config = understood(&text, &[("NETSTEAD_SOURCE_DOCK_TARGET_ENDPOINTS", "http://192.0.2.1/ip")]);
    insta::assert_snapshot!(serde_json::to_string(&config.sources[0]).unwrap(), @r#"{"name":"dock","was":null,"type":"docker","host":"unix:///var/run/docker.sock","dialects":["netstead","dnsweaver","external-dns","traefik","caddy","nginx-proxy"],"mode":"auto","target":"interface:eth0","keep_stopped":false,"observe":true,"tls":null,"target_endpoints":["http://192.0.2.1/ip"],"target_interval":"10s","exposed_by_default":false,"entrypoints":["websecure"],"default_entrypoints":[],"default_rule":"Host(`{{ normalize .Name }}.home.test`)"}"#);
}

#[test]
fn what_is_wrong_with_a_docker_host_is_told() {
    for (line, wanted) in [
        ("target = \"lb.home.test\"", "a source points at addresses"),
        ("target = \"interface:\"", "write the interface's name after `interface:`"),
        ("target_endpoints = [\"ifconfig\"]", "`ifconfig` is no URL"),
        ("target_interval = \"1ms\"", "that is too often"),
        ("default_rule = \"Host(`{{ .Nmae }}`)\"", ".Nmae is not known"),
        ("expose_by_default = true", "did you mean `exposed_by_default`"),
        ("paths = [\"x\"]", "a source of type docker has no `paths`"),
    ] {
        let told = problems_of(&format!("{HOST}{line}\n"), &[]);
        assert!(told.contains(wanted), "{line}: {told}");
    }
    let told = problems_of("[source.files]\ntype = \"traefik\"\npaths = [\"x\"]\nmode = \"auto\"\n", &[]);
    assert!(told.contains("a source of type traefik has no `mode`"), "{told}");
}
