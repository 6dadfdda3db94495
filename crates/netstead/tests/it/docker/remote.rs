//! Docker hosts that are reached over the network.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use netstead_testkit::Sshd;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

use super::*;

const PORT: u16 = 2376;

/// An authority, and what it signed for the daemon and for us.
fn certificates(dir: &Path) {
    let write = |name: &str, text: String| std::fs::write(dir.join(name), text).unwrap();
    let authority = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    write("ca.pem", params.self_signed(&authority).unwrap().pem());
    let issuer = Issuer::new(params, authority);
    for (name, usage) in
        [("server", ExtendedKeyUsagePurpose::ServerAuth), ("client", ExtendedKeyUsagePurpose::ClientAuth)]
    {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        write(&format!("{name}.pem"), params.signed_by(&key, &issuer).unwrap().pem());
        write(&format!("{name}-key.pem"), key.serialize_pem());
    }
}

/// As `openssl x509 -fingerprint -sha256` prints it.
fn fingerprint(file: &Path) -> String {
    let mut command = std::process::Command::new("openssl");
    command.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]).arg(file);
    let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
    printed.trim().rsplit('=').next().unwrap().to_owned()
}

/// A sandbox that looks at one host, with more lines in its table.
fn looking_at(host: &str, more: &str) -> Sandbox {
    let sandbox = Sandbox::empty();
    let text =
        format!("[source.dock]\ntype = \"docker\"\nhost = \"{host}\"\ntarget = \"198.51.100.7\"\n{more}\n");
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    sandbox
}

#[test]
fn a_docker_behind_tls_is_looked_at_by_those_it_knows() {
    let tls = |dir: &Path| {
        certificates(dir);
        let file = |name: &str| dir.join(name).display().to_string();
        vec![
            format!("--host=tcp://127.0.0.1:{PORT}"),
            "--tlsverify".to_owned(),
            format!("--tlscacert={}", file("ca.pem")),
            format!("--tlscert={}", file("server.pem")),
            format!("--tlskey={}", file("server-key.pem")),
        ]
    };
    let Some(docker) = Dockerd::start_with(tls) else { return };
    let host = format!("tcp://{}", docker.reach(PORT).unwrap());
    let dir = docker.dir().display();
    let known = format!(
        "ca_file = \"{dir}/ca.pem\"\nclient_cert = \"{dir}/client.pem\"\nclient_key = \"{dir}/client-key.pem\"\n"
    );
    let mut sandbox = looking_at(&host, &known);
    sandbox.start(&[]);
    run(&docker, "far", "far.example.test", &[]);
    until(&["198.51.100.7"], || a(sandbox.dns(), "far.example.test"));
    // What it tells by itself comes through as well: this is sooner than any timer.
    run(&docker, "next", "next.example.test", &[]);
    until(&["198.51.100.7"], || a(sandbox.dns(), "next.example.test"));

    let said = sandbox.netstead(["doctor"]);
    assert!(said.out.contains(&format!("ok       source.dock    {host} is Docker ")), "{}", said.out);
    let counted = crate::metrics::metrics(&sandbox);
    let calls = "netstead_source_calls_total{source=\"dock\",operation=\"containers\",outcome=\"answered\"}";
    assert!(crate::metrics::value(&counted, calls) >= 1.0, "{counted}");

    // Its certificate alone is enough to know it by.
    let pinned = format!(
        "fingerprint = \"{}\"\nclient_cert = \"{dir}/client.pem\"\nclient_key = \"{dir}/client-key.pem\"\n",
        fingerprint(&docker.dir().join("server.pem"))
    );
    let mut pinning = looking_at(&host, &pinned);
    pinning.start(&[]);
    until(&["198.51.100.7"], || a(pinning.dns(), "far.example.test"));

    for (more, why) in [
        (format!("ca_file = \"{dir}/ca.pem\"\n"), "does not answer"),
        ("tls = true\n".to_owned(), "cannot be trusted"),
    ] {
        let mut stranger = looking_at(&host, &more);
        stranger.start(&[]);
        let begun = Stopwatch::start();
        while !stranger.does("get sources -o json").contains("failed") {
            assert!(begun.elapsed() < SOON, "{}", stranger.does("get sources"));
        }
        let said = stranger.does("get sources -o json");
        assert!(said.contains(why), "{said}");
        assert!(a(stranger.dns(), "far.example.test").values.is_empty());
    }
}

#[test]
fn a_docker_at_the_other_end_of_ssh_is_looked_at() {
    let Some(docker) = shared() else { return };
    let Some(server) = Sshd::start(&[("DOCKER_HOST", &docker.host())]) else { return };
    // The user's own settings for ssh, which in a test cannot be those of the user.
    let dir = tempfile::tempdir().unwrap();
    let ssh = dir.path().join("ssh");
    let config = server.config_file();
    std::fs::write(&ssh, format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", config.display())).unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut sandbox = looking_at(&server.url(), "");
    sandbox.set("PATH", &format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap()));
    sandbox.start(&[]);
    let begun = Stopwatch::start();
    while !sandbox.does("get sources -o json").contains("Host key verification failed") {
        assert!(begun.elapsed() < SOON, "{}", sandbox.does("get sources -o json"));
    }
    server.make_known().unwrap();
    let (name, next) = (fresh("distant"), fresh("distant"));
    let host = |name: &str| format!("{name}.example.test");
    run(docker, &name, &host(&name), &[]);
    sandbox.does("apply");
    until(&["198.51.100.7"], || a(sandbox.dns(), &host(&name)));
    docker.docker(&["rm", "-f", &name]);
    run(docker, &next, &host(&next), &[]);
    until(&["198.51.100.7"], || a(sandbox.dns(), &host(&next)));
    docker.docker(&["rm", "-f", &next]);
}
