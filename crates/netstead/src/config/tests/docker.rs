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
    insta::assert_snapshot!(serde_json::to_string(&config.sources[0]).unwrap(), @r#"{"apex":null,"ca_file":null,"client_cert":null,"client_key":null,"default_entrypoints":[],"default_rule":"Host(`{{ normalize .Name }}.home.test`)","dialects":null,"domains":null,"entrypoints":["websecure"],"exposed_by_default":false,"fingerprint":null,"host":"unix:///var/run/docker.sock","insecure":false,"keep_stopped":false,"min_tls_version":"1.2","mode":"auto","name":"dock","observe":true,"server_name":null,"target":"interface:eth0","target_endpoints":["http://192.0.2.1/ip"],"target_interval":"10s","tls":null,"type":"docker","types":null,"was":null,"wildcard":null}"#);
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
        ("paths = [\"x\"]", "only a table of type traefik has it"),
    ] {
        let told = problems_of(&format!("{HOST}{line}\n"), &[]);
        assert!(told.contains(wanted), "{line}: {told}");
    }
    let told = problems_of("[source.files]\ntype = \"traefik\"\npaths = [\"x\"]\nmode = \"auto\"\n", &[]);
    assert!(told.contains("only a table of type docker has it"), "{told}");
}
