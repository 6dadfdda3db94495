//! What tests and benches need beside Rust and a C compiler, and how a Debian machine gets it.

use std::{
    io::{IsTerminal, Write, stderr, stdin},
    process::Command,
};

use anyhow::{Result, bail};

use crate::shell::{command, found, is_root, run};

/// A program that some test or bench runs.
#[derive(Debug)]
pub(crate) struct Need {
    command: &'static str,
    package: &'static str,
    why: &'static str,
}

pub(crate) const TESTS: &[Need] = &[
    Need { command: "bash", package: "bash", why: "types the commands of the documents" },
    Need { command: "curl", package: "curl", why: "the documents call the REST API with it" },
    Need { command: "jq", package: "jq", why: "the documents read JSON with it" },
    Need {
        command: "pdns_server",
        package: "pdns-backend-sqlite3",
        why: "PowerDNS is tested against itself",
    },
    Need { command: "pdnsutil", package: "pdns-backend-sqlite3", why: "gives PowerDNS its zones and keys" },
    Need { command: "sqlite3", package: "sqlite3", why: "makes the database of PowerDNS" },
    Need { command: "named", package: "bind9", why: "DNS UPDATE is tested against BIND" },
    Need { command: "knotd", package: "knot", why: "DNS UPDATE is tested against Knot" },
    Need { command: "dnsmasq", package: "dnsmasq-base", why: "the guide's line for it is tried" },
    Need { command: "unbound", package: "unbound", why: "the guide's line for it is tried" },
    Need {
        command: "etcd",
        package: "etcd-server",
        why: "the store in an etcd is tested against a real one",
    },
    Need { command: "etcdctl", package: "etcd-client", why: "gives etcd its users" },
    Need {
        command: "dockerd",
        package: "docker.io",
        why: "the source docker is tested against Docker itself",
    },
    Need { command: "docker", package: "docker.io", why: "starts the containers of those tests" },
    Need { command: "containerd", package: "containerd", why: "Docker runs containers with it" },
    Need { command: "runc", package: "runc", why: "Docker runs containers with it" },
    Need {
        command: "iptables",
        package: "iptables",
        why: "Docker makes its networks with it, and faults cut them",
    },
    Need { command: "ip", package: "iproute2", why: "each node of a cluster has a network of its own" },
    Need { command: "faketime", package: "faketime", why: "a node whose clock is wrong" },
    Need { command: "docker-compose", package: "docker-compose", why: "a stack goes up and down with it" },
    Need {
        command: "update-ca-certificates",
        package: "ca-certificates",
        why: "the roots of TLS go into the image",
    },
    Need { command: "sshd", package: "openssh-server", why: "a Docker host is reached through ssh" },
    Need { command: "ssh", package: "openssh-client", why: "a Docker host is reached through ssh" },
    Need { command: "busybox", package: "busybox-static", why: "the whole of a container in tests" },
    Need { command: "nsenter", package: "util-linux", why: "a Docker of its own for the tests" },
    Need { command: "mount", package: "mount", why: "a disk small enough to fill is a tmpfs" },
];

/// What `faults` runs its nodes with.
pub(crate) const FAULTS: &[Need] = &[
    Need { command: "etcd", package: "etcd-server", why: "the store below the nodes" },
    Need { command: "etcdctl", package: "etcd-client", why: "fills etcd and replaces its members" },
    Need { command: "ip", package: "iproute2", why: "each node has a network of its own" },
    Need { command: "iptables", package: "iptables", why: "networks are cut with it" },
    Need { command: "faketime", package: "faketime", why: "a node whose clock is wrong" },
    Need { command: "mount", package: "mount", why: "a disk small enough to fill is a tmpfs" },
];

/// What `bench stores` measures against.
pub(crate) const STORES: &[Need] =
    &[Need { command: "etcd", package: "etcd-server", why: "is measured bare and below a ledger" }];

/// What `bench docker` starts its containers with.
pub(crate) const DOCKER: &[Need] = &[
    Need { command: "dockerd", package: "docker.io", why: "starts containers and tells of it" },
    Need { command: "docker", package: "docker.io", why: "asks for containers" },
    Need { command: "containerd", package: "containerd", why: "Docker runs containers with it" },
    Need { command: "runc", package: "runc", why: "Docker runs containers with it" },
    Need { command: "iptables", package: "iptables", why: "Docker makes its networks with it" },
    Need { command: "busybox", package: "busybox-static", why: "the whole of a container" },
    Need { command: "nsenter", package: "util-linux", why: "a Docker of its own" },
];

/// What `bench names` measures against, and with.
pub(crate) const BENCH: &[Need] = &[
    Need { command: "pdns_server", package: "pdns-backend-sqlite3", why: "takes names" },
    Need { command: "pdnsutil", package: "pdns-backend-sqlite3", why: "gives PowerDNS its zones and keys" },
    Need { command: "sqlite3", package: "sqlite3", why: "makes the database of PowerDNS" },
    Need { command: "knotd", package: "knot", why: "answers questions" },
    Need { command: "dnsperf", package: "dnsperf", why: "asks questions" },
];

/// Installs what is missing. At a terminal it asks first, unless `yes`.
pub(crate) fn provide(needs: &[Need], yes: bool) -> Result<()> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("This needs what is not here yet:");
    for need in &missing {
        eprintln!("  {:<12} {} (package {})", need.command, need.why, need.package);
    }
    let packages: Vec<_> = missing.iter().map(|need| need.package).collect();
    if !found("apt-get") {
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
        Some(need) => bail!("`{}` is still not found after installing {}", need.command, need.package),
    }
}

fn missing(needs: &[Need]) -> Vec<&Need> {
    needs.iter().filter(|need| !found(need.command)).collect()
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
    fn each_need_has_a_package_and_a_reason() {
        for need in TESTS.iter().chain(BENCH).chain(DOCKER).chain(FAULTS).chain(STORES) {
            assert!(!need.package.is_empty() && !need.why.is_empty(), "{need:?}");
        }
    }
}
