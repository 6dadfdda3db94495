//! Docker hosts that are reached over the network.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use netstead_testkit::{Process, free_port, has_command, skip};
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
    for program in ["sshd", "ssh", "ssh-keygen"] {
        if !has_command(program) {
            return skip(&format!("`{program}` is not installed"));
        }
    }
    let Some(docker) = shared() else { return };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let port = free_port().unwrap();
    for key in ["host", "user"] {
        let mut keygen = std::process::Command::new("ssh-keygen");
        assert!(keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]).status().unwrap().success());
    }
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("authorized", &std::fs::read_to_string(at("user.pub")).unwrap());
    write(
        "sshd_config",
        &format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
             StrictModes no\nSetEnv DOCKER_HOST={}\n",
            at("host"),
            at("authorized"),
            docker.host()
        ),
    );
    std::fs::create_dir_all("/run/sshd").ok();
    let sshd = ["/usr/sbin/sshd", "/usr/bin/sshd"].into_iter().find(|path| Path::new(path).exists());
    let mut command = std::process::Command::new(sshd.unwrap());
    let mut server = Process::start("sshd", command.args(["-D", "-e", "-f", &at("sshd_config")])).unwrap();
    server.wait_for_port(([127, 0, 0, 1], port).into(), SOON).unwrap();

    // The user's own settings for ssh, which in a test cannot be those of the user.
    let config = format!(
        "Host 127.0.0.1\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  StrictHostKeyChecking yes\n",
        at("user"),
        at("known")
    );
    write("ssh_config", &config);
    let bin = dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("ssh"), format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", at("ssh_config")))
        .unwrap();
    std::fs::set_permissions(bin.join("ssh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let user =
        String::from_utf8(std::process::Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let mut sandbox = looking_at(&format!("ssh://{}@127.0.0.1:{port}", user.trim()), "");
    sandbox.set("PATH", &format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    write("known", "");
    sandbox.start(&[]);
    let begun = Stopwatch::start();
    while !sandbox.does("get sources -o json").contains("Host key verification failed") {
        assert!(begun.elapsed() < SOON, "{}", sandbox.does("get sources -o json"));
    }
    let key = std::fs::read_to_string(at("host.pub")).unwrap();
    write("known", &format!("[127.0.0.1]:{port} {key}"));
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
