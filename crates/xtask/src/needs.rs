//! Programs that tests and benches need beside Rust and a C compiler, and how a Debian machine gets them.

use std::{
    io::{IsTerminal, Write, stderr, stdin},
    process::Command,
};

use anyhow::{Result, bail};

use crate::shell::{command, is_installed, is_root, run};

/// A program that some test or bench runs.
#[derive(Debug)]
pub(crate) struct Need {
    command: &'static str,
    why: &'static str,
}

const fn need(command: &'static str, why: &'static str) -> Need {
    Need { command, why }
}

impl Need {
    fn package(&self) -> &'static str {
        PACKAGES
            .iter()
            .find(|(command, _)| *command == self.command)
            .map_or(self.command, |(_, package)| package)
    }
}

/// The packages of Debian that are not called like their program.
const PACKAGES: &[(&str, &str)] = &[
    ("busybox", "busybox-static"),
    ("chromedriver", "chromium-driver"),
    ("dig", "bind9-dnsutils"),
    ("dnsmasq", "dnsmasq-base"),
    ("docker", "docker.io"),
    ("dockerd", "docker.io"),
    ("etcd", "etcd-server"),
    ("etcdctl", "etcd-client"),
    ("ip", "iproute2"),
    ("kdig", "knot-dnsutils"),
    ("knotd", "knot"),
    ("named", "bind9"),
    ("nsenter", "util-linux"),
    ("pdns_server", "pdns-backend-sqlite3"),
    ("pdnsutil", "pdns-backend-sqlite3"),
    ("pg_config", "libpq-dev"),
    ("pg_ctlcluster", "postgresql"),
    ("setpriv", "util-linux"),
    ("ssh", "openssh-client"),
    ("sshd", "openssh-server"),
    ("systemd-analyze", "systemd"),
    ("update-ca-certificates", "ca-certificates"),
    ("xz", "xz-utils"),
];

pub(crate) const TESTS: &[Need] = &[
    need("bash", "types the commands of the documents"),
    need("curl", "the documents call the REST API with it"),
    need("chromium", "the web page is looked at with it"),
    need("chromedriver", "drives that browser"),
    need("jq", "the documents read JSON with it"),
    need("pdns_server", "PowerDNS is tested against itself"),
    need("pdnsutil", "gives PowerDNS its zones and keys"),
    need("sqlite3", "makes the database of PowerDNS"),
    need("named", "DNS UPDATE is tested against BIND"),
    need("knotd", "DNS UPDATE is tested against Knot"),
    need("dig", "asks our nameserver as people do"),
    need("kdig", "asks our nameserver as people do"),
    need("dnsmasq", "is tested against itself"),
    need("unbound", "the guide's line for it is tried"),
    need("etcd", "the store in an etcd is tested against a real one"),
    need("etcdctl", "gives etcd its users"),
    need("dockerd", "the source docker is tested against Docker itself"),
    need("docker", "starts the containers of those tests"),
    need("containerd", "Docker runs containers with it"),
    need("runc", "Docker runs containers with it"),
    need("iptables", "Docker makes its networks with it, and faults cut them"),
    need("ip", "each node of a cluster has a network of its own"),
    need("faketime", "a node whose clock is wrong"),
    need("docker-compose", "a stack goes up and down with it"),
    need("update-ca-certificates", "the roots of TLS go into the image"),
    need("sshd", "a Docker host is reached through ssh"),
    need("ssh", "a Docker host is reached through ssh"),
    need("openssl", "prints the fingerprint of a certificate, as people do"),
    need("busybox", "the whole of a container in tests"),
    need("nsenter", "a Docker of its own for the tests"),
    need("mount", "a disk small enough to fill is a tmpfs"),
    need("systemd-analyze", "finds the faults of the unit"),
    need("pg_ctlcluster", "NetBox has its objects in a PostgreSQL"),
    need("pg_config", "NetBox's driver of PostgreSQL is built with it"),
    need("redis-server", "NetBox has its cache there"),
    need("setpriv", "PostgreSQL is never started by root"),
    need("tar", "unpacks the stores of earlier releases"),
    need("xz", "unpacks the stores of earlier releases"),
];

/// Programs that `fixture` writes stores with.
pub(crate) const FIXTURE: &[Need] = &[
    need("pdns_server", "has names in the fixture"),
    need("pdnsutil", "gives PowerDNS its zones and keys"),
    need("sqlite3", "makes the database of PowerDNS"),
    need("tar", "packs the stores"),
    need("xz", "packs the stores"),
];

/// Programs that `faults` runs its nodes with.
pub(crate) const FAULTS: &[Need] = &[
    need("etcd", "the store below the nodes"),
    need("etcdctl", "fills etcd and replaces its members"),
    need("ip", "each node has a network of its own"),
    need("iptables", "networks are cut with it"),
    need("faketime", "a node whose clock is wrong"),
    need("mount", "a disk small enough to fill is a tmpfs"),
    need("named", "is kept in line meanwhile"),
    need("pdns_server", "is kept in line meanwhile"),
    need("pdnsutil", "gives PowerDNS its zones and keys"),
    need("sqlite3", "makes the database of PowerDNS"),
];

/// Servers that `bench stores` measures against.
pub(crate) const STORES: &[Need] = &[need("etcd", "is measured bare and below a ledger")];

/// Programs that `bench docker` starts its containers with.
pub(crate) const DOCKER: &[Need] = &[
    need("dockerd", "starts containers and reports them"),
    need("docker", "asks for containers"),
    need("containerd", "Docker runs containers with it"),
    need("runc", "Docker runs containers with it"),
    need("iptables", "Docker makes its networks with it"),
    need("busybox", "the whole of a container"),
    need("nsenter", "a Docker of its own"),
];

/// Programs that `bench names` measures against, and with.
pub(crate) const BENCH: &[Need] = &[
    need("pdns_server", "takes names"),
    need("pdnsutil", "gives PowerDNS its zones and keys"),
    need("sqlite3", "makes the database of PowerDNS"),
    need("knotd", "answers questions"),
    need("dnsperf", "asks questions"),
];

/// Installs what is missing. At a terminal it asks first, unless `yes`.
pub(crate) fn provide(needs: &[Need], yes: bool) -> Result<()> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("This needs what is not here yet:");
    for need in &missing {
        eprintln!("  {:<12} {} (package {})", need.command, need.why, need.package());
    }
    let packages: Vec<_> = missing.iter().map(|need| need.package()).collect();
    if !is_installed("apt-get") {
        bail!("this machine has no apt-get: install {} by hand", packages.join(", "));
    }
    if !yes && stdin().is_terminal() && stderr().is_terminal() && !agreed()? {
        bail!("nothing was installed; `cargo test --workspace` runs what needs nothing");
    }
    let install = run(&mut apt_get(&["update"]))?
        && run(apt_get(&["install", "--yes", "--no-install-recommends"]).args(&packages))?;
    if !install {
        bail!("apt-get failed: install {} by hand", packages.join(", "));
    }
    match self::missing(needs).first() {
        None => Ok(()),
        Some(need) => bail!("`{}` is still not found after installing {}", need.command, need.package()),
    }
}

fn missing(needs: &[Need]) -> Vec<&Need> {
    needs.iter().filter(|need| !is_installed(need.command)).collect()
}

fn agreed() -> Result<bool> {
    eprint!("Install with apt-get? [Y/n] ");
    stderr().flush()?;
    let mut answer = String::new();
    // No byte at all is the end of input, not a return key.
    let read = stdin().read_line(&mut answer)?;
    Ok(read > 0 && matches!(answer.trim(), "" | "y" | "Y" | "yes"))
}

/// Through sudo unless we are root. `env` carries the variable through sudo as well.
fn apt_get(arguments: &[&str]) -> Command {
    let words = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"];
    let mut apt_get = command(if is_root() { "env" } else { "sudo" });
    apt_get.args(words.iter().skip(usize::from(is_root()))).args(arguments);
    apt_get
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_is_of_a_program_that_is_needed() {
        let all = || TESTS.iter().chain(BENCH).chain(DOCKER).chain(FAULTS).chain(STORES);
        assert!(all().all(|need| !need.why.is_empty()));
        for (command, _) in PACKAGES {
            assert!(all().any(|need| need.command == *command), "{command}");
        }
        let package = |command: &str| all().find(|need| need.command == command).map(Need::package);
        assert_eq!((package("etcd"), package("curl")), (Some("etcd-server"), Some("curl")));
    }

    /// The runs of `faults` are tests, so a machine that has what tests need has what they need.
    #[test]
    fn faults_need_nothing_that_tests_do_not() {
        for need in FAULTS {
            assert!(TESTS.iter().any(|other| other.command == need.command), "{}", need.command);
        }
    }

    /// `faults` runs with names too, and skips nothing.
    #[test]
    fn faults_install_the_servers_that_names_go_to() {
        for server in ["named", "pdns_server", "pdnsutil", "sqlite3"] {
            assert!(FAULTS.iter().any(|need| need.command == server), "{server}");
        }
    }
}
