//! The lines of the guide that send a network's questions to Netstead, in the servers they are for.

use std::{path::Path, process::Command};

use netstead_testkit::{Process, free_port, has_command, skip, wait_until};

use crate::{
    resolve::{a, try_a},
    sandbox::{SOON, Sandbox},
};

const GUIDE: &str = include_str!("../../../../docs/guide/docker.md");

/// The line of the guide for a server, with this machine for the Docker host.
fn line(server: &str, dns: u16) -> String {
    let row = GUIDE.lines().find(|line| line.starts_with("| ") && line.contains(server)).unwrap();
    let code = row.rsplit('`').nth(1).unwrap();
    assert!(code.contains("192.168.1.10") && code.contains("5300"), "{row}");
    code.replace("192.168.1.10", "127.0.0.1").replace("5300", &dns.to_string())
}

/// A sandbox that answers for one name.
fn sandbox() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("hosts"), "10.0.3.9 whoami.home.example.com\n").unwrap();
    let text = "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n";
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    sandbox.start(&[]);
    crate::resolve::until(&["10.0.3.9"], || a(sandbox.dns(), "whoami.home.example.com"));
    sandbox
}

/// Starts a server with this configuration and asks it what only Netstead knows.
fn forwards(program: &str, words: &[&str], file: &Path, port: u16) {
    let mut server = Process::start(program, Command::new(program).args(words).arg(file)).unwrap();
    let asked = wait_until(SOON, || {
        let answer = server.running().then(|| try_a(port, "whoami.home.example.com"))?;
        answer.filter(|answer| answer.values == ["10.0.3.9"])
    });
    assert!(asked.is_some(), "{}", server.log());
}

#[test]
fn the_line_for_dnsmasq_and_pihole_works() {
    if !has_command("dnsmasq") {
        return skip("`dnsmasq` is not installed");
    }
    let (sandbox, port) = (sandbox(), free_port().unwrap());
    assert_eq!(line("dnsmasq |", sandbox.dns()), line("Pi-hole 6", sandbox.dns()));
    let file = sandbox.path().join("dnsmasq.conf");
    let text = format!(
        "port={port}\nlisten-address=127.0.0.1\nbind-interfaces\nno-resolv\nno-hosts\nuser=root\npid-file\n{}\n",
        line("dnsmasq |", sandbox.dns())
    );
    std::fs::write(&file, text).unwrap();
    forwards("dnsmasq", &["--keep-in-foreground", "--log-facility=-", "-C"], &file, port);
}

#[test]
fn the_line_for_unbound_works_with_its_guard_against_private_addresses() {
    if !has_command("unbound") {
        return skip("`unbound` is not installed");
    }
    let (sandbox, port) = (sandbox(), free_port().unwrap());
    let file = sandbox.path().join("unbound.conf");
    let dir = sandbox.path().display();
    let text = format!(
        "server:\n  interface: 127.0.0.1\n  port: {port}\n  username: \"\"\n  chroot: \"\"\n  directory: \"{dir}\"\n  \
         pidfile: \"{dir}/unbound.pid\"\n  use-syslog: no\n  do-not-query-localhost: no\n  private-address: 10.0.0.0/8\n  \
         private-domain: \"home.example.com\"\n  domain-insecure: \"home.example.com\"\n\
         remote-control:\n  control-enable: no\n{}\n",
        line("unbound", sandbox.dns())
    );
    std::fs::write(&file, text).unwrap();
    forwards("unbound", &["-d", "-c"], &file, port);
}

#[test]
fn the_line_for_bind_works() {
    if !has_command("named") {
        return skip("`named` is not installed");
    }
    let (sandbox, port) = (sandbox(), free_port().unwrap());
    let file = sandbox.path().join("named.conf");
    let dir = sandbox.path().display();
    let text = format!(
        "options {{ directory \"{dir}\"; pid-file none; session-keyfile none; listen-on port {port} {{ 127.0.0.1; }};\n\
         listen-on-v6 {{ none; }}; dnssec-validation no; recursion yes; allow-query {{ any; }}; }};\ncontrols {{ }};\n{}\n",
        line("BIND", sandbox.dns())
    );
    std::fs::write(&file, text).unwrap();
    forwards("named", &["-g", "-c"], &file, port);
}
